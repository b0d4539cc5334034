# Writes kernel_text.cpp: cmake -DSOURCE=dir -DOUTPUT=file -P EmbedText.cmake
foreach(name IN ITEMS conformance.cu conformance_bytes.cu conformance_sm90a.cu form_program.h form_reference.cu form_value.h numeric.h reference.cu soak.cu
        softmax.cu stream.cu sum_loss.h)
  file(READ ${SOURCE}/${name} ${name})
endforeach()
# As the main file of a compilation, a header needs no include guard.
foreach(name IN ITEMS form_program.h form_value.h numeric.h sum_loss.h)
  string(REPLACE "#pragma once\n" "" ${name} "${${name}}")
endforeach()
file(WRITE ${OUTPUT} "// fagen: the reference kernels' source. Made by lab/kernels/EmbedText.cmake.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include \"lab/kernels/kernel_text.h\"

const char *const fagen::lab::kNumericText = R\"fagen_text(${numeric.h})fagen_text\";
const char *const fagen::lab::kFormValueText = R\"fagen_text(${form_value.h})fagen_text\";
const char *const fagen::lab::kFormProgramText = R\"fagen_text(${form_program.h})fagen_text\";
const char *const fagen::lab::kFormReferenceText = R\"fagen_text(${form_reference.cu})fagen_text\";
const char *const fagen::lab::kReferenceText = R\"fagen_text(${reference.cu})fagen_text\";
const char *const fagen::lab::kConformanceText = R\"fagen_text(${conformance.cu})fagen_text\";
const char *const fagen::lab::kConformanceBytesText = R\"fagen_text(${conformance_bytes.cu})fagen_text\";
const char *const fagen::lab::kConformanceSm90aText = R\"fagen_text(${conformance_sm90a.cu})fagen_text\";
const char *const fagen::lab::kSoakText = R\"fagen_text(${soak.cu})fagen_text\";
const char *const fagen::lab::kSoftmaxText = R\"fagen_text(${softmax.cu})fagen_text\";
const char *const fagen::lab::kStreamText = R\"fagen_text(${stream.cu})fagen_text\";
const char *const fagen::lab::kSumLossText = R\"fagen_text(${sum_loss.h})fagen_text\";
")
