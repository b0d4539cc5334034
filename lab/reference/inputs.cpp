// fagen: the values of each kind of input.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/abi_problem.h"
#include "lab/support/parallel.h"
#include "lab/support/random.h"
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace fagen::lab {

/// One tensor's rule: constant * factor of the row + normal * spread.
struct Rule {
  double constant, spread;
  std::function<double(int64_t element)> factor = [](int64_t) { return 1.0; };
};

static void fill(std::vector<uint16_t> &tensor, int64_t count, DType dtype, const Rule &rule, uint64_t seed,
                 uint32_t stream) {
  tensor.resize(count);
  NormalStream normals(seed, stream);
  parallelFor((count + 7) / 8, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      auto values = normals.block(block);
      for (int64_t i = 0; i < 8 && block * 8 + i < count; ++i)
        tensor[block * 8 + i] = halfOfFloat(
            dtype, static_cast<float>(rule.constant * rule.factor(block * 8 + i) + rule.spread * values[i]));
    }
  });
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
  case Inputs::Constant:
    q = k = {0.5, 0};
    break;
  }
  DenseInputs inputs;
  fill(inputs.q, c.shape.qElements(), c.dtype, q, seed, 0);
  fill(inputs.k, c.shape.kElements(), c.dtype, k, seed, 1);
  fill(inputs.v, c.shape.vElements(), c.dtype, {0, 1}, seed, 2);
  const Placements places(c);
  shareRows(inputs.q, places.q);
  shareRows(inputs.k, places.k);
  shareRows(inputs.v, places.v);
  return inputs;
}

} // namespace fagen::lab
