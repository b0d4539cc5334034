// fagen: strides, addresses and tensor maps of a program's tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tensors.h"

#include "../error.h"
#include "../maps.h"

#include <algorithm>
#include <cstring>

namespace fagen {
namespace {

constexpr int64_t kMaxReach = int64_t(1) << 52; // of a tensor, gaps included

fagen_status failReach(const char *program, const fagen_recipe_tensor &tensor) {
  return fail(FAGEN_INVALID, "%s: tensor '%s' reaches over more than 2^52 bytes", program, tensor.name);
}

bool hasStrides(const fagen_recipe_tensor &tensor, const fagen_named_tensor *given, bool isExplicit) {
  return given &&
         (isExplicit || std::any_of(given->stride, given->stride + tensor.rank, [](auto s) { return s != 0; }));
}

/// Dense strides; how far they reach must be a number.
fagen_status setDense(const char *program, const fagen_recipe_tensor &tensor, BoundTensor &shaped) {
  int64_t next = 1;
  for (uint32_t d = tensor.rank; d-- != 0;) {
    shaped.stride[d] = next;
    if (__builtin_mul_overflow(next, std::max<int64_t>(shaped.extent[d], 1), &next))
      return failReach(program, tensor);
  }
  return next > kMaxReach / factsOf(tensor.element).bytes ? failReach(program, tensor) : FAGEN_OK;
}

/// The caller's in the place of those dense ones that are used.
fagen_status takeStrides(const char *program, const fagen_recipe_tensor &tensor, const fagen_named_tensor &given,
                         BoundTensor &shaped) {
  int64_t reach = 0;
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (shaped.extent[d] <= 1)
      continue;
    const int64_t stride = given.stride[d];
    if (stride < 0)
      return fail(FAGEN_INVALID, "%s: stride %u of tensor '%s' is %lld; it must not be negative", program, d,
                  tensor.name, (long long)stride);
    const bool mayDiffer = (tensor.flags & FAGEN_TENSOR_STRIDED) && d + 1 != tensor.rank;
    if (stride != shaped.stride[d] && !mayDiffer)
      return fail(FAGEN_INVALID, "%s: stride %u of tensor '%s' is %lld; %s: %lld, copy it to be so", program, d,
                  tensor.name, (long long)stride,
                  d + 1 == tensor.rank ? "its last dimension is dense" : "the program takes it dense",
                  (long long)shaped.stride[d]);
    shaped.stride[d] = stride;
    int64_t last = 0;
    if (__builtin_mul_overflow(stride, shaped.extent[d] - 1, &last) || __builtin_add_overflow(reach, last, &reach))
      return failReach(program, tensor);
  }
  return reach >= kMaxReach / factsOf(tensor.element).bytes ? failReach(program, tensor) : FAGEN_OK;
}

/// From the smallest stride on each is at least as long as what the smaller ones reach: the rule for O.
fagen_status checkApart(const char *program, const fagen_recipe_tensor &tensor, const BoundTensor &shaped) {
  uint32_t order[FAGEN_MAX_RANK] = {4, 3, 2, 1, 0};
  std::stable_sort(std::begin(order), std::end(order),
                   [&](uint32_t a, uint32_t b) { return shaped.stride[a] < shaped.stride[b]; });
  int64_t reach = 1;
  for (uint32_t d : order) {
    if (d >= tensor.rank || shaped.extent[d] <= 1)
      continue;
    if (shaped.stride[d] < reach)
      return fail(
          FAGEN_INVALID,
          "%s: stride %u of tensor '%s', which is written, is %lld: elements would overlap; at least %lld keeps "
          "them apart",
          program, d, tensor.name, (long long)shaped.stride[d], (long long)reach);
    reach += shaped.stride[d] * (shaped.extent[d] - 1);
  }
  return FAGEN_OK;
}

fagen_status checkAligned(const char *program, const fagen_recipe_tensor &tensor, const BoundTensor &shaped) {
  for (uint32_t d = 0; d + 1 < tensor.rank; ++d)
    if (const int64_t bytes = shaped.stride[d] * factsOf(tensor.element).bytes;
        shaped.extent[d] > 1 && bytes % tensor.alignment != 0)
      return fail(FAGEN_MISALIGNED,
                  "%s: stride %u of tensor '%s' is %lld elements, %lld bytes; it takes multiples of %u", program, d,
                  tensor.name, (long long)shaped.stride[d], (long long)bytes, tensor.alignment);
  return FAGEN_OK;
}

/// An address for the map of a tensor without elements, which nobody loads: that of another.
const void *anyAddress(const BoundCall &bound) {
  for (uint32_t i = 0; i < bound.recipe->tensor_count; ++i)
    if (const fagen_recipe_tensor &tensor = tensorAt(*bound.recipe, i);
        tensor.alignment >= 16 && elementsOf(tensor, bound.tensors[i]) > 0)
      return bound.addressOf(i);
  return nullptr;
}

} // namespace

int64_t elementsOf(const fagen_recipe_tensor &tensor, const BoundTensor &shaped) {
  int64_t count = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d)
    count *= shaped.extent[d];
  return count;
}

fagen_status setStrides(const char *program, const fagen_recipe_tensor &tensor, const fagen_named_tensor *given,
                        bool isExplicit, BoundTensor &shaped) {
  if (fagen_status status = setDense(program, tensor, shaped))
    return status;
  if (elementsOf(tensor, shaped) == 0)
    return FAGEN_OK;
  if (hasStrides(tensor, given, isExplicit)) {
    fagen_status status = takeStrides(program, tensor, *given, shaped);
    if (!status && (tensor.flags & FAGEN_TENSOR_WRITTEN))
      status = checkApart(program, tensor, shaped);
    if (status)
      return status;
  }
  return checkAligned(program, tensor, shaped);
}

fagen_status checkAddresses(const BoundCall &bound) {
  for (uint32_t i = 0; i < bound.recipe->tensor_count; ++i) {
    const fagen_recipe_tensor &tensor = tensorAt(*bound.recipe, i);
    const BoundTensor &shaped = bound.tensors[i];
    if (!shaped.given || elementsOf(tensor, shaped) == 0)
      continue;
    if (!shaped.given->data)
      return fail(FAGEN_INVALID, "%s: data of tensor '%s' is NULL; it has %lld elements", bound.program, tensor.name,
                  (long long)elementsOf(tensor, shaped));
    const uint32_t alignment = std::max(tensor.alignment, factsOf(tensor.element).bytes);
    if (reinterpret_cast<uintptr_t>(shaped.given->data) % alignment)
      return fail(FAGEN_MISALIGNED, "%s: tensor '%s' is at %p; it needs %u-byte alignment", bound.program, tensor.name,
                  shaped.given->data, alignment);
  }
  return FAGEN_OK;
}

device::TensorMapDescription describeMap(const BoundCall &bound, const fagen_recipe_map &map) {
  const fagen_recipe_tensor &tensor = tensorAt(*bound.recipe, map.tensor);
  const BoundTensor &shaped = bound.tensors[map.tensor];
  const bool isEmpty = elementsOf(tensor, shaped) == 0;
  MapDimension dimensions[FAGEN_MAX_RANK];
  for (uint32_t i = 0; i < map.rank; ++i) {
    const auto &dimension = map.dimensions[i];
    dimensions[i].size = isEmpty ? 1 : uint64_t(valueOf(bound, dimension.size).value_or(0));
    dimensions[i].stride = dimension.along == FAGEN_OWN_STRIDE ? valueOf(bound, dimension.stride).value_or(0)
                                                               : shaped.stride[dimension.along];
    dimensions[i].box = dimension.box;
  }
  return describeBox(isEmpty ? anyAddress(bound) : bound.addressOf(map.tensor), factsOf(tensor.element).ofMaps,
                     {dimensions, map.rank}, map.swizzle);
}

fagen_status checkMaps(const BoundCall &bound) {
  for (uint32_t i = 0; i < bound.recipe->map_count; ++i) {
    const fagen_recipe_map &map = mapAt(*bound.recipe, i);
    device::TensorMapDescription description = describeMap(bound, map);
    description.base = nullptr;
    if (const char *reason = refusalOf(description))
      return fail(FAGEN_UNSUPPORTED, "%s cannot have a tensor map of '%s': %s", bound.program,
                  tensorAt(*bound.recipe, map.tensor).name, reason);
  }
  return FAGEN_OK;
}

fagen_status packPlain(const BoundCall &bound, const fagen_recipe_field &field, unsigned char *place) {
  switch (field.kind) {
  case FAGEN_FIELD_POINTER: {
    const void *const address = bound.addressOf(field.index);
    memcpy(place, &address, sizeof(address));
    return FAGEN_OK;
  }
  case FAGEN_FIELD_STRIDE:
    memcpy(place, &bound.tensors[field.index].stride[field.dimension], sizeof(int64_t));
    return FAGEN_OK;
  case FAGEN_FIELD_F32:
    memcpy(place, &bound.reals[field.index], sizeof(float));
    return FAGEN_OK;
  }
  const int64_t value = valueOf(bound, field.value).value_or(0);
  const auto narrow = int32_t(value);
  if (field.kind == FAGEN_FIELD_I64)
    memcpy(place, &value, sizeof(value));
  else
    memcpy(place, &narrow, sizeof(narrow));
  if (field.kind == FAGEN_FIELD_I32 && narrow != value)
    return fail(FAGEN_INVALID, "%s: a parameter of 32 bits would be %lld", bound.program, (long long)value);
  return FAGEN_OK;
}

} // namespace fagen
