// fagen: whether integers keep what the caller promises of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "promises.h"

#include "lab/support/user_error.h"
#include "runtime/src/programs/bind.h"

#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unordered_map>

namespace fagen::lab {

namespace {

/// A tensor of 32-bit integers with a promise.
struct Promised {
  const char *name;
  const void *data;
  std::vector<int64_t> extents, strides; ///< elements
  bool isSigned;
  uint32_t flags; ///< FAGEN_TENSOR_...
  int64_t low, high;
};

class PromiseChecker {
public:
  explicit PromiseChecker(const Promised &tensor) : tensor(tensor) {}

  void run() {
    int64_t count = 1;
    for (const int64_t extent : tensor.extents)
      count *= extent;
    for (int64_t n = 0; n < count; ++n)
      checkElement(n);
  }

private:
  std::vector<int64_t> indexOf(int64_t element) const {
    std::vector<int64_t> index(tensor.extents.size());
    for (size_t d = index.size(); d-- > 0; element /= tensor.extents[d])
      index[d] = element % tensor.extents[d];
    return index;
  }

  std::string nameOf(int64_t element) const {
    return fmt::format("{}[{}]", tensor.name, fmt::join(indexOf(element), ", "));
  }

  int64_t valueOf(int64_t element) const {
    const std::vector<int64_t> index = indexOf(element);
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d)
      place += index[d] * tensor.strides[d];
    uint32_t word = 0;
    std::memcpy(&word, static_cast<const char *>(tensor.data) + place * int64_t(sizeof(word)), sizeof(word));
    return tensor.isSigned ? int64_t(static_cast<int32_t>(word)) : int64_t(word);
  }

  void checkElement(int64_t n) {
    const int64_t value = valueOf(n);
    if ((tensor.flags & FAGEN_TENSOR_IN_RANGE) && (value < tensor.low || value > tensor.high))
      throw UserError(fmt::format("{} is {}; the program is promised that elements of '{}' are in [{}, {}]", nameOf(n),
                                  value, tensor.name, tensor.low, tensor.high));
    const bool hasBefore = n % tensor.extents.back() != 0;
    if ((tensor.flags & FAGEN_TENSOR_ASCENDING) && hasBefore && value < valueOf(n - 1))
      throw UserError(fmt::format("{} is {}, and {} is {}; the program is promised that '{}' is ascending along its "
                                  "last dimension",
                                  nameOf(n), value, nameOf(n - 1), valueOf(n - 1), tensor.name));
    if (!(tensor.flags & FAGEN_TENSOR_DISTINCT))
      return;
    const auto [first, isNew] = places.try_emplace(value, n);
    if (!isNew)
      throw UserError(fmt::format("{} is {}, and so is {}; the program is promised that elements of '{}' are distinct",
                                  nameOf(n), value, nameOf(first->second), tensor.name));
  }

  const Promised &tensor;
  std::unordered_map<int64_t, int64_t> places; ///< of values
};

constexpr uint32_t kPromises = FAGEN_TENSOR_IN_RANGE | FAGEN_TENSOR_ASCENDING | FAGEN_TENSOR_DISTINCT;

} // namespace

void requirePromises(const ProgramBuffer &buffer, const std::vector<int64_t> &shape,
                     const std::vector<unsigned char> &bytes) {
  if (!(buffer.promises & kPromises) || buffer.isWritten)
    return;
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * shape[d + 1];
  const Promised tensor = {buffer.name.c_str(), bytes.data(), shape,      strides, buffer.element == Element::I32,
                           buffer.promises,     buffer.low,   buffer.high};
  PromiseChecker(tensor).run();
}

void requirePromises(const BoundCall &bound) {
  for (uint32_t i = 0; i < bound.recipe->tensor_count; ++i) {
    const fagen_recipe_tensor &tensor = tensorAt(*bound.recipe, i);
    const BoundTensor &shaped = bound.tensors[i];
    if (!(tensor.flags & kPromises) || !shaped.given || (tensor.flags & FAGEN_TENSOR_WRITTEN))
      continue;
    const bool hasRange = (tensor.flags & FAGEN_TENSOR_IN_RANGE) != 0; // else the table may be from before it had any
    const Promised promised = {tensor.name,
                               shaped.given->data,
                               {shaped.extent, shaped.extent + tensor.rank},
                               {shaped.stride, shaped.stride + tensor.rank},
                               tensor.element == FAGEN_ELEMENT_I32,
                               tensor.flags,
                               hasRange ? tensor.low : 0,
                               hasRange ? tensor.high : 0};
    PromiseChecker(promised).run();
  }
}

} // namespace fagen::lab
