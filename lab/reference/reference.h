// fagen: attention in f64, and the plain rule in f32 that says how much error 16-bit arithmetic explains.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "form.h"
#include "lab/cases/placement.h"

#include <cstdint>
#include <vector>

namespace fagen::lab {

/// Dense inputs [batch, head, row, column] as bits of the case's dtype.
struct DenseInputs {
  std::vector<uint16_t> q, k, v;
};
DenseInputs makeInputs(const Case &c, uint64_t seed);
/// K or V of such inputs as bytes, where the case's kv says so.
std::vector<uint8_t> bytesOf(const Case &c, const std::vector<uint16_t> &tensor);

/// How far a form's arithmetic in f32 may move a result; empty without a form. docs/Checking.md derives it.
struct FormErrors {
  std::vector<double> rounding, tanh; ///< of each row's LSE; the second in units of a tanh's error
  std::vector<uint8_t> undecided;     ///< rows with a comparison that rounding decides
  double o[kMoves] = {};              ///< of all elements of O: by Tanh, and by underflow alone
};

/// What a correct result looks like. Dense, [batch, head, row, column] and [batch, head, row].
struct Reference {
  std::vector<double> o;
  std::vector<double> lse;     ///< natural log, the form's sink included; -infinity where there is nothing to sum
  std::vector<double> lseLoss; ///< how far tensor cores' sums may move the LSE of each row; empty with plainLse
  std::vector<uint16_t> plain; ///< bits of the dtype
  std::vector<float> plainLse; ///< of products that accumulate in f16; else empty
  FormErrors form;
  double maxPlainError = 0; ///< max |plain - o|
  double maxMagnitude = 0;  ///< max |o|
  double plainCosine = 0;   ///< with plainLse: its cosine difference and LSE error, as criteria.h has them; else 0
  double maxPlainLseError = 0;
};

/// Products of a step of a matrix instruction: an f16 accumulator is rounded after so many.
inline constexpr int64_t kAccumulatedProducts = 16;

/// Of one query row: sum of P_j e_j over its keys j, e_j the most that tensor cores may lose of `scale` q . k_j.
/// `q` and `k` (one row a key) are f64, `scores` what exp is taken of, `lse` theirs; `slopes`, where there are any, how
/// much of a product's error a form lets through.
double lseLossOf(const double *q, const double *k, int64_t headDim, DType dtype, double scale,
                 const std::vector<double> &scores, double lse, const std::vector<double> &slopes = {});

/// Keys that a query of the case's form sees, as a share of all: the mean of some hundred queries, evenly drawn.
double visibleShare(const Case &c);

/// With room for a case's results: zeros.
Reference emptyReference(const Case &c);

/// Fills the figures below `plainLse` from what stands above.
void summarize(Reference &reference, DType dtype);

/// 1 - 2 a.b / (a.a + b.b): 0 for equal vectors (also two zero vectors).
double cosineDifference(double ab, double aa, double bb);
/// |lse - expected| / max(1, |expected|)
double lseDifference(double lse, double expected);

/// Where references are computed: the CPU for small shapes, a GPU for all.
class ReferenceEngine {
public:
  virtual ~ReferenceEngine() = default;
  virtual Reference compute(const Case &c, const DenseInputs &inputs) = 0;
};

class CpuReference : public ReferenceEngine {
public:
  Reference compute(const Case &c, const DenseInputs &inputs) override;
};

} // namespace fagen::lab
