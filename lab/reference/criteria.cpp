// fagen: applies the tolerances to a result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "criteria.h"
#include "lab/cases/placement.h"
#include "lab/support/parallel.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <mutex>

namespace fagen::lab {

double ulpAt(DType dtype, double x) {
  int mantissaBits = dtype == DType::F16 ? 10 : 7;
  int lowestExponent = dtype == DType::F16 ? -14 : -126;
  int exponent = x > 0 ? std::max(std::ilogb(x), lowestExponent) : lowestExponent;
  return std::ldexp(1.0, exponent - mantissaBits);
}

Products productsOf(const std::string &mma) {
  return mma == "mma_sync" || mma == "wmma" || mma == "wgmma" ? Products::TensorCores : Products::Scalar;
}

Tanh tanhOf(const std::string &word) { return word == "exp" ? Tanh::Exact : Tanh::Approx; }

static bool isUndecided(const Reference &reference, int64_t row) {
  return !reference.form.undecided.empty() && reference.form.undecided[row] != 0;
}

/// "batch 0, head 1, row 5, column 3" of a dense index.
static std::string placeOf(const Shape &s, int64_t index, int64_t columns) {
  int64_t row = index / columns;
  std::string text =
      fmt::format("batch {}, head {}, row {}", row / s.seqQ / s.heads, row / s.seqQ % s.heads, row % s.seqQ);
  return columns == 1 ? text : fmt::format("{}, column {}", text, index % columns);
}

/// How often something was seen, and where first.
struct Seen {
  int64_t count = 0, first = INT64_MAX;
  void add(int64_t index) {
    ++count;
    first = std::min(first, index);
  }
  void merge(const Seen &other) {
    count += other.count;
    first = std::min(first, other.first);
  }
};

struct OutputSums {
  double maxError = 0, ab = 0, aa = 0, bb = 0;
  double bbOnGrid = 0; ///< of bb, elements that the type holds, as where one key has all the weight
  int64_t worst = 0, judged = 0;
  Seen unwritten, notFinite, maskedNotZero;

  void merge(const OutputSums &other) {
    if (other.maxError > maxError || (other.maxError == maxError && other.worst < worst)) {
      maxError = other.maxError;
      worst = other.worst;
    }
    ab += other.ab;
    aa += other.aa;
    bb += other.bb;
    bbOnGrid += other.bbOnGrid;
    judged += other.judged;
    unwritten.merge(other.unwritten);
    notFinite.merge(other.notFinite);
    maskedNotZero.merge(other.maskedNotZero);
  }
};

/// Whether the type holds a reference's value, but for next to nothing.
static bool isOnGrid(DType dtype, double value) {
  const double rounded = floatOfHalf(dtype, halfOfFloat(dtype, float(value)));
  return std::abs(value - rounded) <= ulpAt(dtype, std::abs(value)) / 1024;
}

static OutputSums compareOutputs(const Case &c, const Reference &reference, const std::vector<uint16_t> &o) {
  OutputSums total;
  std::mutex lock;
  int64_t columns = c.shape.headDimV;
  parallelFor(static_cast<int64_t>(o.size()), 65536, [&](int64_t begin, int64_t end) {
    OutputSums sums;
    for (int64_t i = begin; i < end; ++i) {
      double value = floatOfHalf(c.dtype, o[i]);
      if (o[i] == kPoison16)
        sums.unwritten.add(i);
      else if (!std::isfinite(value))
        sums.notFinite.add(i);
      else if (!isUndecided(reference, i / columns)) {
        double error = std::abs(value - reference.o[i]);
        if (error > sums.maxError) {
          sums.maxError = error;
          sums.worst = i;
        }
        sums.ab += value * reference.o[i];
        sums.aa += value * value;
        sums.bb += reference.o[i] * reference.o[i];
        if (isOnGrid(c.dtype, reference.o[i]))
          sums.bbOnGrid += reference.o[i] * reference.o[i];
        ++sums.judged;
        if (std::isinf(reference.lse[i / columns]) && value != 0)
          sums.maskedNotZero.add(i);
      }
    }
    std::lock_guard guard(lock);
    total.merge(sums);
  });
  return total;
}

/// What the cosine difference is less than: a share of each element's size, and what an element may lose whatever its
/// size. The cosine difference is half the relative square error, so the two add up by their roots.
static double cosineBoundOf(const Case &c, const Reference &reference, const OutputSums &sums) {
  double bound = kTolerances.cosine + kTolerances.plainFactor * reference.plainCosine;
  if (c.arguments && !c.arguments->form->texts.score.empty()) {
    const double onGrid = sums.bb > 0 ? sums.bbOnGrid / sums.bb : 0; // off by 2 u, the others by u
    bound += std::pow(ulpAt(c.dtype, 1) / 2, 2) / 2 * (1 + 3 * onGrid);
  }
  if (sums.bb == 0)
    return bound;
  const double lost = reference.form.o[kUnderflow] + ulpAt(c.dtype, 0) / 2;
  return std::pow(std::sqrt(bound) + lost * std::sqrt(double(sums.judged) / (2 * sums.bb)), 2);
}

static void judgeOutputs(const Case &c, const Reference &reference, Arithmetic arithmetic,
                         const std::vector<uint16_t> &o, Measured &measured) {
  OutputSums sums = compareOutputs(c, reference, o);
  auto fail = [&](const char *criterion, std::string message) { measured.failures.push_back({criterion, message}); };
  auto at = [&](int64_t index) { return placeOf(c.shape, index, c.shape.headDimV); };

  measured.maxError = sums.maxError;
  measured.bound = kTolerances.plainFactor * reference.maxPlainError +
                   kTolerances.ulps * ulpAt(c.dtype, reference.maxMagnitude) +
                   reference.form.o[size_t(arithmetic.tanh)];
  measured.cosine = cosineDifference(sums.ab, sums.aa, sums.bb);
  const double cosineBound = cosineBoundOf(c, reference, sums);
  if (sums.unwritten.count)
    fail("unwritten", fmt::format("{} of {} elements of O were never written; the first: {}", sums.unwritten.count,
                                  o.size(), at(sums.unwritten.first)));
  if (sums.notFinite.count)
    fail("nan", fmt::format("{} of {} elements of O are not finite; the first: {}", sums.notFinite.count, o.size(),
                            at(sums.notFinite.first)));
  if (sums.maskedNotZero.count)
    fail("masked-row", fmt::format("{} elements of O are not 0 in rows that see no key; the first: {}",
                                   sums.maskedNotZero.count, at(sums.maskedNotZero.first)));
  if (!(measured.maxError <= measured.bound))
    fail("error",
         fmt::format("|O - ref| is {:.3e}, at most {:.3e} is allowed, at {}: O {:.6g}, ref {:.6g}", measured.maxError,
                     measured.bound, at(sums.worst), floatOfHalf(c.dtype, o[sums.worst]), reference.o[sums.worst]));
  if (!(measured.cosine < cosineBound))
    fail("cosine", fmt::format("cosine difference is {:.3e}, below {:.3g} is required", measured.cosine, cosineBound));
}

static void judgeLse(const Case &c, const Reference &reference, Arithmetic arithmetic, const std::vector<uint32_t> &lse,
                     Measured &measured) {
  const double bound = kTolerances.lse + kTolerances.plainFactor * reference.maxPlainLseError;
  const bool hasLoss = arithmetic.products == Products::TensorCores && !reference.lseLoss.empty();
  const bool hasForm = !reference.form.rounding.empty();
  const auto formOf = [&](int64_t i) {
    return hasForm ? reference.form.rounding[i] + kTanhErrors[size_t(arithmetic.tanh)] * reference.form.tanh[i] : 0;
  };
  const auto lossOf = [&](int64_t i) { return hasLoss ? reference.lseLoss[i] : 0; };
  Seen unwritten, misplaced, wrong;
  int64_t worst = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(lse.size()); ++i) {
    double value = floatOfBits(lse[i]), expected = reference.lse[i];
    if (lse[i] == kPoison32) {
      unwritten.add(i);
    } else if (isUndecided(reference, i)) {
      continue;
    } else if (std::isinf(expected) || !std::isfinite(value)) {
      if (value != expected)
        misplaced.add(i);
    } else {
      const double error = std::abs(value - expected);
      const double used = error / (bound * std::max(1.0, std::abs(expected)) + lossOf(i) + formOf(i));
      measured.lseError = std::max(measured.lseError, lseDifference(value, expected));
      if (used > measured.lseUsed) {
        measured.lseUsed = used;
        worst = i;
      }
      if (used > 1)
        wrong.add(i);
    }
  }
  auto fail = [&](const Seen &seen, int64_t place, const char *what) {
    if (seen.count)
      measured.failures.push_back(
          {"lse", fmt::format("{} of {} values of LSE {}; {}: LSE {:.8g}, ref {:.8g}", seen.count, lse.size(), what,
                              placeOf(c.shape, place, 1), floatOfBits(lse[place]), reference.lse[place])});
  };
  fail(unwritten, unwritten.first, "were never written");
  fail(misplaced, misplaced.first, "are infinite or NaN in the wrong place");
  std::string allowed = fmt::format("{:.3g} * max(1, |ref|)", bound);
  if (hasLoss)
    allowed += fmt::format(" and what tensor cores may lose, {:.2g}", lossOf(worst));
  if (hasForm)
    allowed += fmt::format(" and what the form's arithmetic may be off, {:.2g}", formOf(worst));
  fail(wrong, worst, ("differ by more than " + allowed).c_str());
}

Measured judge(const Case &c, const Reference &reference, Arithmetic arithmetic, const std::vector<uint16_t> &o,
               const std::vector<uint32_t> *lse) {
  Measured measured;
  judgeOutputs(c, reference, arithmetic, o, measured);
  if (lse)
    judgeLse(c, reference, arithmetic, *lse, measured);
  const auto undecided = std::count(reference.form.undecided.begin(), reference.form.undecided.end(), 1);
  measured.undecided = undecided;
  if (double(undecided) > kTolerances.undecided * double(c.shape.rows()))
    measured.failures.push_back(
        {"undecided",
         fmt::format("rounding decides comparisons of the form in {} of {} rows: this case says too little", undecided,
                     c.shape.rows())});
  return measured;
}

} // namespace fagen::lab
