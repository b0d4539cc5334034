// fagen: the values of each kind of input.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/abi_problem.h"
#include "lab/support/byte_floats.h"
#include "lab/support/parallel.h"
#include "lab/support/random.h"
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace fagen::lab {

/// One tensor's rule: constant * factor of the element + normal * spread, where that is wanted.
struct Rule {
  double constant, spread;
  std::function<double(int64_t element)> factor = [](int64_t) { return 1.0; };
  std::function<bool(int64_t element)> isSpread = [](int64_t) { return true; };
};

static void fill(std::vector<uint16_t> &tensor, int64_t count, DType dtype, const Rule &rule, uint64_t seed,
                 uint32_t stream) {
  tensor.resize(count);
  NormalStream normals(seed, stream);
  parallelFor((count + 7) / 8, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      auto values = normals.block(block);
      for (int64_t i = 0; i < 8 && block * 8 + i < count; ++i)
        tensor[block * 8 + i] =
            halfOfFloat(dtype, static_cast<float>(rule.constant * rule.factor(block * 8 + i) +
                                                  (rule.isSpread(block * 8 + i) ? rule.spread * values[i] : 0)));
    }
  });
}

/// A warp is to find larger scores in one of the first steps, a middle one, or one of the last, whichever way it goes
/// through the keys; another of the same warp group elsewhere, and another group nowhere. Of each pair of groups of 64
/// rows the second one's warps of 16 rows leap after a quarter of the keys, after half, at the last 64, and never; in
/// odd rows the other way round. By 40, in odd heads by 110. Each such place has a column of its own in Q and K, which
/// is 0 in rows that do not leap there.
static std::pair<Rule, Rule> leaps(const Shape &shape) {
  constexpr int64_t kGroupRows = 64, kWarpRows = 16, kPlaces = 3, kLast = 64;
  constexpr double kLeap = 40, kLargeLeap = 110;
  const double a = std::sqrt(kLeap * std::sqrt(static_cast<double>(shape.headDimQK)));
  const int64_t columns = shape.headDimQK, rows = std::max<int64_t>(shape.seqQ, 1), heads = shape.heads,
                keys = std::max<int64_t>(shape.seqKv, 1);
  const Rule q{a, 1,
               [=](int64_t element) {
                 const int64_t row = element / columns % rows, head = element / columns / rows % heads;
                 const int64_t place = row % kGroupRows / kWarpRows;
                 const bool leaps = row / kGroupRows % 2 == 1 && place < kPlaces;
                 const bool isHere = leaps && element % columns == place + row % 2 * kPlaces;
                 return !isHere ? 0.0 : head % 2 ? kLargeLeap / kLeap : 1.0;
               },
               [=](int64_t element) { return element % columns >= 2 * kPlaces; }};
  const Rule k{a, 1, [=](int64_t element) {
                 const int64_t column = element % columns, place = column % kPlaces;
                 const int64_t key = element / columns % keys;
                 const int64_t other = column < kPlaces ? key : keys - 1 - key; // the keys on its other side
                 const int64_t begin = place == 0 ? keys / 4 : place == 1 ? keys / 2 : std::max(keys - kLast, keys / 2);
                 return column < 2 * kPlaces && other >= begin ? 1.0 : 0.0;
               }};
  return {q, k};
}

/// Rows that the case's layout puts in one place are the same.
static void shareRows(std::vector<uint16_t> &tensor, const Placement &place) {
  const auto [batches, heads, rows, columns] = place.sizes;
  for (int64_t i = 0; i < batches * heads * rows; ++i) {
    const int64_t batch = i / rows / heads, head = i / rows % heads, row = i % rows;
    const auto first = [&](int dimension, int64_t index) { return place.strides[dimension] ? index : 0; };
    const int64_t source = (first(0, batch) * heads + first(1, head)) * rows + first(2, row);
    if (source != i)
      std::copy_n(tensor.begin() + source * columns, columns, tensor.begin() + i * columns);
  }
}

static const ByteFloat &formatOf(KvDType dtype) { return dtype == KvDType::E4M3 ? kE4M3 : kE5M2; }

/// As K and V hold them: each is a byte's value.
static void roundToBytes(std::vector<uint16_t> &tensor, const Case &c) {
  const KvDType values = c.kv == KvDType::Same ? c.kvValues : c.kv;
  if (values == KvDType::Same)
    return;
  const ByteFloat &format = formatOf(values);
  for (uint16_t &bits : tensor)
    bits = halfOfFloat(c.dtype, float(valueOf(format, byteOf(format, floatOfHalf(c.dtype, bits)))));
}

std::vector<uint8_t> bytesOf(const Case &c, const std::vector<uint16_t> &tensor) {
  std::vector<uint8_t> bytes(tensor.size());
  for (size_t i = 0; i < tensor.size(); ++i)
    bytes[i] = byteOf(formatOf(c.kv), floatOfHalf(c.dtype, tensor[i]));
  return bytes;
}

DenseInputs makeInputs(const Case &c, uint64_t seed) {
  Rule q{0, 1}, k{0, 1};
  switch (c.inputs) {
  case Inputs::Normal:
    break;
  case Inputs::Large:
    q.spread = 30;
    break;
  case Inputs::Negative: {
    // q . k is about -d a^2, so its scaled value is -a^2 sqrt(d).
    double a = std::sqrt(120 / std::sqrt(static_cast<double>(c.shape.headDimQK)));
    q = {a, 0.1};
    k = {-a, 0.1};
    break;
  }
  case Inputs::Rising: {
    // From -150 at one end of the keys to 150 at the other, which way round changes from row to row.
    const double a = std::sqrt(150 / std::sqrt(static_cast<double>(c.shape.headDimQK)));
    const int64_t columns = c.shape.headDimQK, keys = std::max<int64_t>(c.shape.seqKv, 2);
    q = {a, 0.1, [=](int64_t element) { return element / columns % 2 ? -1.0 : 1.0; }};
    k = {a, 0.1, [=](int64_t element) { return 2.0 * (element / columns % keys) / (keys - 1) - 1; }};
    break;
  }
  case Inputs::Leaps:
    std::tie(q, k) = leaps(c.shape);
    break;
  case Inputs::Constant:
    q = k = {0.5, 0};
    break;
  }
  DenseInputs inputs;
  fill(inputs.q, c.shape.qElements(), c.dtype, q, seed, 0);
  fill(inputs.k, c.shape.kElements(), c.dtype, k, seed, 1);
  fill(inputs.v, c.shape.vElements(), c.dtype, {0, 1}, seed, 2);
  roundToBytes(inputs.k, c);
  roundToBytes(inputs.v, c);
  const Placements places(c);
  shareRows(inputs.q, places.q);
  shareRows(inputs.k, places.k);
  shareRows(inputs.v, places.v);
  return inputs;
}

} // namespace fagen::lab
