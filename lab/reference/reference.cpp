// fagen: the reference on the CPU, one query row at a time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reference.h"
#include "criteria.h"
#include "lab/cases/form_inputs.h"
#include "lab/kernels/sum_loss.h"
#include "lab/support/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

namespace fagen::lab {

/// Q, K and V as Real, once for all rows.
template <typename Real> static std::vector<Real> widen(const std::vector<uint16_t> &bits, DType dtype) {
  std::vector<Real> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(), [&](uint16_t b) { return floatOfHalf(dtype, b); });
  return values;
}

/// As an f16 accumulator holds it.
template <typename Real> static Real asHalf(Real x) {
  return floatOfHalf(DType::F16, halfOfFloat(DType::F16, static_cast<float>(x)));
}

/// One query row in precision Real. With `roundP`, each probability is rounded once to the 16-bit format before it
/// meets V, as tensor cores need it; the row sum takes it unrounded.
template <typename Real> struct RowAttention {
  const Real *q, *k, *v; ///< the row's q; its head's K and V
  int64_t keys, headDimQK, headDimV;
  Real scale;
  bool roundP;
  bool halfAccum; ///< sums of products are f16: a score after each 16 products, P V after each 16 keys
  DType dtype;
  BoundForm *form; ///< null: the mask says which keys there are
  FormElement place;

  /// q . k of one key.
  Real score(int64_t key) const {
    const Real *column = k + key * headDimQK;
    Real dot = 0;
    for (int64_t first = 0; first < headDimQK; first += kAccumulatedProducts) {
      Real part = halfAccum ? Real(0) : dot;
      for (int64_t c = first; c < std::min(first + kAccumulatedProducts, headDimQK); ++c)
        part += q[c] * column[c];
      dot = halfAccum ? asHalf(dot + part) : part;
    }
    return dot;
  }

  /// Without its score, which a mask does not ask for.
  FormElement at(int64_t key) const {
    FormElement element = place;
    element.key = key;
    return element;
  }
  FormElement scored(FormElement element) const {
    element.score = double(score(element.key) * scale);
    return element;
  }

  /// What exp is taken of: -infinity where the form's mask hides the key.
  Real exponent(int64_t key) const {
    if (!form)
      return score(key) * scale;
    const FormElement element = at(key);
    return form->mask(element) ? Real(form->score(scored(element))) : -std::numeric_limits<Real>::infinity();
  }

  Real sink() const {
    return form ? Real(form->sink(place).value_or(-std::numeric_limits<double>::infinity()))
                : -std::numeric_limits<Real>::infinity();
  }

  /// Writes headDimV columns to o, returns the log-sum-exp. `p` has room for `keys`: their exponents.
  Real compute(std::vector<Real> &p, std::vector<Real> &o) const {
    std::fill(o.begin(), o.end(), Real(0));
    const Real ofSink = sink();
    Real rowMax = ofSink;
    for (int64_t j = 0; j < keys; ++j) {
      p[j] = exponent(j);
      rowMax = std::max(rowMax, p[j]);
    }
    if (rowMax == -std::numeric_limits<Real>::infinity())
      return rowMax;
    std::vector<Real> part(halfAccum ? headDimV : 0);
    std::vector<Real> &sums = halfAccum ? part : o;
    Real sum = std::exp(ofSink - rowMax);
    for (int64_t j = 0; j < keys; ++j) {
      Real probability = std::exp(p[j] - rowMax);
      sum += probability;
      if (roundP)
        probability = floatOfHalf(dtype, halfOfFloat(dtype, static_cast<float>(probability)));
      for (int64_t c = 0; c < headDimV; ++c)
        sums[c] += probability * v[j * headDimV + c];
      if (halfAccum && (j % kAccumulatedProducts == kAccumulatedProducts - 1 || j == keys - 1))
        for (int64_t c = 0; c < headDimV; ++c)
          o[c] += asHalf(std::exchange(part[c], Real(0)));
    }
    for (Real &column : o)
      column /= sum;
    return rowMax + std::log(sum);
  }
};

double lseLossOf(const double *q, const double *k, int64_t headDim, DType dtype, double scale,
                 const std::vector<double> &scores, double lse, const std::vector<double> &slopes) {
  double sum = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    const double weight = std::exp(scores[j] - lse) * (slopes.empty() ? 1 : slopes[j]);
    if (!(weight > 0))
      continue;
    const double *column = k + static_cast<int64_t>(j) * headDim;
    SumLoss loss(dtype);
    for (int64_t first = 0; first < headDim; first += kTensorSum.products)
      loss.addStep([&](int i) { return q[first + i]; }, [&](int i) { return column[first + i]; },
                   static_cast<int>(std::min<int64_t>(kTensorSum.products, headDim - first)));
    sum += weight * loss.bound();
  }
  return sum * std::abs(scale);
}

static std::optional<BoundForm> boundFormOf(const Case &c) {
  if (c.form.empty())
    return std::nullopt;
  if (!c.arguments)
    throw std::logic_error("a case without the arguments of its form");
  return FormProgram(c.arguments->form->texts).bind(c.shape, c.arguments->arguments);
}

/// What f32 may make of one row's form: adds up, key by key, what moves LSE and O.
class RowErrors {
public:
  RowErrors(const RowAttention<double> &row, const std::vector<double> &o, double lse) : row(row), o(o), lse(lse) {
    moved.fill(std::vector<double>(o.size()));
  }

  /// `exponents` is of all keys; what their scores' errors are multiplied by is left in `slopes`.
  void add(const std::vector<double> &exponents, std::vector<double> &slopes) {
    slopes.assign(exponents.size(), 0);
    for (size_t j = 0; j < exponents.size(); ++j) {
      const FormElement element = row.at(int64_t(j));
      const FormValue mask = row.form->maskWithError(element);
      undecided |= mask.rounding != 0;
      if (mask.value == 0)
        continue;
      const FormValue value = row.form->scoreWithError(row.scored(element), kFormRounding * sizeOf(int64_t(j)));
      slopes[j] = value.score;
      addTerm(value, std::exp(exponents[j] - lse), row.v + int64_t(j) * row.headDimV);
    }
    if (row.form->hasSink())
      addTerm(row.form->sinkWithError(row.place), std::exp(row.sink() - lse), nullptr);
  }

  void store(FormErrors &errors, int64_t i) const {
    errors.rounding[i] = rounding;
    errors.tanh[i] = tanh;
    errors.undecided[i] = undecided;
  }
  double largest(size_t kind) const {
    return undecided || moved[kind].empty() ? 0 : *std::max_element(moved[kind].begin(), moved[kind].end());
  }

private:
  /// Of a score's products: an f32 sum of them is off by some roundings of this.
  double sizeOf(int64_t key) const {
    double sum = 0;
    for (int64_t c = 0; c < row.headDimQK; ++c)
      sum += std::abs(row.q[c] * row.k[key * row.headDimQK + c]);
    return sum * std::abs(row.scale);
  }

  /// Of weight `p`; `v` is its row of V, or null for a sink.
  void addTerm(const FormValue &value, double p, const double *v) {
    undecided |= std::isinf(value.rounding);
    if (!(p > 0) || undecided)
      return;
    rounding += p * value.rounding;
    tanh += p * value.tanh;
    double moves[kMoves];
    movesOf(value, p, moves);
    for (size_t kind = 0; kind < moved.size(); ++kind)
      for (size_t c = 0; c < o.size() && moves[kind] > 0; ++c)
        moved[kind][c] += moves[kind] * std::abs((v ? v[c] : 0) - o[c]);
  }

  const RowAttention<double> &row;
  const std::vector<double> &o;
  const double lse;
  double rounding = 0, tanh = 0;
  bool undecided = false;
  std::array<std::vector<double>, kMoves> moved; ///< of each column of O
};

/// V times what the form says.
template <typename Real>
static void scaleValues(std::vector<Real> &v, const Shape &s, const std::optional<BoundForm> &bound) {
  if (!bound || bound->programs().view.vScale.size == 0)
    return;
  BoundForm form = *bound;
  const int64_t ofHead = s.seqKv * s.headDimV;
  for (int64_t head = 0; head < s.batch * s.kvHeads; ++head) {
    const FormElement element{0, head / s.kvHeads, head % s.kvHeads * (s.heads / s.kvHeads), 0, 0};
    const Real factor = static_cast<Real>(form.vScale(element));
    for (int64_t i = head * ofHead; i < (head + 1) * ofHead; ++i)
      v[i] *= factor;
  }
}

/// visit(i, attention, p, o) of each row i; `p` has room for its keys, `o` for its columns.
template <typename Real, typename Visit>
static void forEachRow(const Case &c, const DenseInputs &inputs, bool roundP, Visit visit) {
  const Shape &s = c.shape;
  auto q = widen<Real>(inputs.q, c.dtype), k = widen<Real>(inputs.k, c.dtype), v = widen<Real>(inputs.v, c.dtype);
  const std::optional<BoundForm> bound = boundFormOf(c);
  scaleValues(v, s, bound);
  parallelFor(s.rows(), 8, [&](int64_t begin, int64_t end) {
    std::vector<Real> p, o(s.headDimV);
    std::optional<BoundForm> form = bound;
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = i % s.seqQ, head = i / s.seqQ % s.heads, batch = i / s.seqQ / s.heads;
      int64_t kvHead = batch * s.kvHeads + head / (s.heads / s.kvHeads);
      RowAttention<Real> attention{q.data() + i * s.headDimQK,
                                   k.data() + kvHead * s.seqKv * s.headDimQK,
                                   v.data() + kvHead * s.seqKv * s.headDimV,
                                   form ? s.seqKv : visibleKeys(s, c.mask, row),
                                   s.headDimQK,
                                   s.headDimV,
                                   static_cast<Real>(c.scaleValue()),
                                   roundP,
                                   roundP && c.halfAccum,
                                   c.dtype,
                                   form ? &*form : nullptr,
                                   {0, batch, head, row, 0}};
      p.resize(attention.keys);
      visit(i, attention, p, o);
    }
  });
}

Reference emptyReference(const Case &c) {
  Reference reference;
  reference.o.resize(c.shape.oElements());
  reference.plain.resize(c.shape.oElements());
  reference.lse.resize(c.shape.rows());
  reference.lseLoss.resize(c.halfAccum ? 0 : c.shape.rows());
  reference.plainLse.resize(c.halfAccum ? c.shape.rows() : 0);
  const int64_t formed = c.form.empty() ? 0 : c.shape.rows();
  reference.form.rounding.resize(formed);
  reference.form.tanh.resize(formed);
  reference.form.undecided.resize(formed);
  return reference;
}

Reference CpuReference::compute(const Case &c, const DenseInputs &inputs) {
  Reference reference = emptyReference(c);
  int64_t columns = c.shape.headDimV;
  std::mutex lock;
  forEachRow<double>(c, inputs, false, [&](int64_t i, const RowAttention<double> &row, auto &scores, auto &o) {
    const double lse = reference.lse[i] = row.compute(scores, o);
    std::vector<double> slopes;
    if (row.form) {
      RowErrors errors(row, o, lse);
      errors.add(scores, slopes);
      errors.store(reference.form, i);
      const std::lock_guard guard(lock);
      for (size_t kind = 0; kind < kMoves; ++kind)
        reference.form.o[kind] = std::max(reference.form.o[kind], errors.largest(kind));
    }
    if (!c.halfAccum)
      reference.lseLoss[i] = lseLossOf(row.q, row.k, row.headDimQK, c.dtype, row.scale, scores, lse, slopes);
    std::copy(o.begin(), o.end(), reference.o.begin() + i * columns);
  });
  forEachRow<float>(c, inputs, true, [&](int64_t i, const RowAttention<float> &row, auto &scores, auto &o) {
    const float lse = row.compute(scores, o);
    if (c.halfAccum)
      reference.plainLse[i] = lse;
    for (int64_t column = 0; column < columns; ++column)
      reference.plain[i * columns + column] = halfOfFloat(c.dtype, o[column]);
  });
  summarize(reference, c.dtype);
  return reference;
}

double visibleShare(const Case &c) {
  constexpr int64_t kQueries = 256;
  std::optional<BoundForm> form = boundFormOf(c);
  const Shape &s = c.shape;
  const int64_t rows = s.rows(), count = std::min(rows, kQueries);
  int64_t seen = 0;
  for (int64_t n = 0; n < count && form; ++n) {
    const int64_t i = (2 * n + 1) * rows / (2 * count);
    FormElement element{0, i / s.seqQ / s.heads, i / s.seqQ % s.heads, i % s.seqQ, 0};
    for (element.key = 0; element.key < s.seqKv; ++element.key)
      seen += form->mask(element);
  }
  const int64_t all = count * s.seqKv;
  return form && all != 0 ? double(seen) / double(all) : 1;
}

void summarize(Reference &reference, DType dtype) {
  std::mutex lock;
  reference.maxPlainError = reference.maxMagnitude = 0;
  double ab = 0, aa = 0, bb = 0;
  parallelFor(static_cast<int64_t>(reference.o.size()), 65536, [&](int64_t begin, int64_t end) {
    double error = 0, magnitude = 0, partAb = 0, partAa = 0, partBb = 0;
    for (int64_t i = begin; i < end; ++i) {
      const double plain = floatOfHalf(dtype, reference.plain[i]), o = reference.o[i];
      error = std::max(error, std::abs(plain - o));
      magnitude = std::max(magnitude, std::abs(o));
      partAb += plain * o;
      partAa += plain * plain;
      partBb += o * o;
    }
    std::lock_guard guard(lock);
    ab += partAb;
    aa += partAa;
    bb += partBb;
    reference.maxPlainError = std::max(reference.maxPlainError, error);
    reference.maxMagnitude = std::max(reference.maxMagnitude, magnitude);
  });
  if (!reference.plainLse.empty())
    reference.plainCosine = cosineDifference(ab, aa, bb);
  for (size_t i = 0; i < reference.plainLse.size(); ++i)
    if (std::isfinite(reference.lse[i]))
      reference.maxPlainLseError =
          std::max(reference.maxPlainLseError, lseDifference(reference.plainLse[i], reference.lse[i]));
}

double cosineDifference(double ab, double aa, double bb) { return aa + bb == 0 ? 0 : 1 - 2 * ab / (aa + bb); }

double lseDifference(double lse, double expected) {
  return std::abs(lse - expected) / std::max(1.0, std::abs(expected));
}

} // namespace fagen::lab
