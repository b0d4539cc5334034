// fagen: the source of our own kernels, embedded at build time from kernels/.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::lab {

extern const char *const kNumericText;          ///< kernels/numeric.h
extern const char *const kFormValueText;        ///< kernels/form_value.h
extern const char *const kFormProgramText;      ///< kernels/form_program.h
extern const char *const kFormReferenceText;    ///< kernels/form_reference.cu
extern const char *const kReferenceText;        ///< kernels/reference.cu
extern const char *const kConformanceText;      ///< kernels/conformance.cu
extern const char *const kConformanceBytesText; ///< kernels/conformance_bytes.cu
extern const char *const kConformanceSm90aText; ///< kernels/conformance_sm90a.cu
extern const char *const kSoakText;             ///< kernels/soak.cu
extern const char *const kSoftmaxText;          ///< kernels/softmax.cu
extern const char *const kStreamText;           ///< kernels/stream.cu
extern const char *const kSumLossText;          ///< kernels/sum_loss.h

} // namespace fagen::lab
