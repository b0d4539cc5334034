// fagen: when a result is right. The one table of tolerances, and the functions that apply it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "emulator/emulator.h"
#include "reference.h"

#include <memory>
#include <string>
#include <vector>

namespace fagen::lab {

/// docs/Checking.md says where each number comes from.
struct Tolerances {
  double plainFactor = 2; ///< max |O - ref| <= plainFactor * max |plain - ref| + ulps at max |ref|
  double ulps = 2;
  double cosine = 5e-6; ///< 1 - 2 O.ref / (O.O + ref.ref) < cosine
  double lse = 1e-5;    ///< |LSE - ref| <= lse * max(1, |ref|), and of tensor cores what they may lose besides
  /// Of all rows: so many may have a comparison of a form that rounding decides. They are not judged.
  double undecided = 0.25;
  // Where products accumulate in f16, cosine and lse are widened by plainFactor times what plain has.
  int runs = 3; ///< equal bits in each
};
inline constexpr Tolerances kTolerances;

/// One criterion that does not hold, in words.
struct Failure {
  std::string criterion; ///< error, cosine, nan, unwritten, masked-row, lse, guard, determinism, input, launch, ...
  std::string message;
  std::shared_ptr<const emulator::Finding> finding = {}; ///< of the emulator: where and who, beyond the message
};

/// What makes a kernel's sums of products, with f32 accumulators.
enum class Products { Scalar, TensorCores };
/// By the manifest's word for the instructions (`mma`). TensorCores stands for sums as kTensorSum says, so a word that
/// conformance has not looked at is Scalar, for which no more than kTolerances is allowed.
Products productsOf(const std::string &mma);

/// How a kernel computes the tanh of a form.
enum class Tanh : uint8_t { Exact, Approx };
/// By the manifest's word (`tanh`): exp is nearly exact. Approx, an instruction, is what no word means.
Tanh tanhOf(const std::string &word);
// How far each is off: kTanhErrors (lab/kernels/form_value.h).

/// What of a kernel says how far its results may be off.
struct Arithmetic {
  Products products;
  Tanh tanh;
  Arithmetic(Products products, Tanh tanh = Tanh::Exact) : products(products), tanh(tanh) {}
};

/// The numbers of one result, kept whether it passed or not.
struct Measured {
  double maxError = 0, bound = 0, cosine = 0;
  double lseError = 0;          ///< the largest |LSE - ref| / max(1, |ref|)
  int64_t undecided = 0;        ///< rows that were not judged
  double lseUsed = 0;           ///< the largest share of a row's bound: |LSE - ref| / what is allowed there
  std::string digest;           ///< of the bits of O and LSE; the same for kernels that give the same results
  std::string firstBatchDigest; ///< of the first batch alone, whose inputs are the same however many follow
  std::vector<Failure> failures;
};

/// Distance between adjacent values of the format around magnitude x.
double ulpAt(DType dtype, double x);

/// Compares O (dense bits) and, when given, LSE (dense bits of f32) with the reference.
Measured judge(const Case &c, const Reference &reference, Arithmetic arithmetic, const std::vector<uint16_t> &o,
               const std::vector<uint32_t> *lse);

} // namespace fagen::lab
