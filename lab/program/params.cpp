// fagen: the argument of a program's kernels, packed as C++ lays out the struct.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.h"

#include "lab/cases/problem.h"
#include "runtime/src/maps.h"

#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

namespace {

std::vector<int64_t> shapeOf(const ProgramBuffer &buffer, const Sizes &sizes) {
  std::vector<int64_t> shape;
  for (const SizeExpr &size : buffer.shape)
    shape.push_back(size.evaluate(sizes));
  return shape;
}

int64_t strideOf(const ProgramBuffer &buffer, const Sizes &sizes, unsigned dimension) {
  int64_t stride = 1;
  const std::vector<int64_t> shape = shapeOf(buffer, sizes);
  for (size_t n = dimension + 1; n < shape.size(); ++n)
    stride *= shape[n];
  return stride;
}

device::TensorMapDescription describe(const MapField &map, const ProgramBuffer &buffer, const Sizes &sizes,
                                      const void *base) {
  device::TensorMapDescription d = {};
  d.base = base;
  d.element = infoOf(buffer.element).ofMaps;
  d.element_bytes = static_cast<unsigned char>(device::bytes_of(d.element));
  d.swizzle = static_cast<device::BoxSwizzle>(map.swizzle);
  d.mark = device::kMapMark;
  for (const MapField::Dimension &dimension : map.dimensions) {
    d.sizes[d.rank] = static_cast<unsigned>(dimension.size.evaluate(sizes));
    d.strides[d.rank] = static_cast<uint64_t>(dimension.stride.evaluate(sizes)) * d.element_bytes;
    d.box[d.rank++] = static_cast<unsigned short>(dimension.box);
  }
  if (const char *reason = refusalOf(d))
    throw UserError(fmt::format("buffer '{}' has no tensor map: {}", buffer.name, reason));
  return d;
}

class Packer {
public:
  template <typename T> void add(T value) { std::memcpy(place(sizeof(T), alignof(T)), &value, sizeof(T)); }

  void *place(size_t size, size_t align) {
    alignment = std::max(alignment, align);
    bytes.resize((bytes.size() + align - 1) / align * align + size);
    return bytes.data() + bytes.size() - size;
  }

  std::vector<unsigned char> finish() {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return std::move(bytes);
  }

private:
  std::vector<unsigned char> bytes;
  size_t alignment = 1;
};

int32_t narrow(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    throw UserError(fmt::format("a parameter of 32 bits cannot be {}", value));
  return static_cast<int32_t>(value);
}

} // namespace

int64_t elementsOf(const ProgramBuffer &buffer, const Sizes &sizes) {
  int64_t count = 1;
  for (const int64_t size : shapeOf(buffer, sizes)) {
    constexpr int64_t kMost = int64_t{1} << 36;
    if (size < 0 || (size > 0 && count > kMost / size))
      throw UserError(
          fmt::format("buffer '{}' would have a side of {}, or more than 2^36 elements", buffer.name, size));
    count *= size;
  }
  return count;
}

std::vector<unsigned char>
packParams(const ProgramPlan &plan, const Sizes &sizes, const std::vector<const void *> &addresses,
           const std::function<void(const device::TensorMapDescription &, const ProgramBuffer &, void *)> &encode) {
  Packer packer;
  for (const ParamField &field : plan.params) {
    switch (field.kind) {
    case ParamField::Pointer:
      packer.add(addresses[field.buffer]);
      break;
    case ParamField::Stride:
      packer.add(strideOf(plan.buffers[field.buffer], sizes, field.dimension));
      break;
    case ParamField::Int32:
      packer.add(narrow(field.value.evaluate(sizes)));
      break;
    case ParamField::Int64:
      packer.add(field.value.evaluate(sizes));
      break;
    case ParamField::Float32:
      packer.add(static_cast<float>(field.number));
      break;
    case ParamField::Map: {
      const ProgramBuffer &buffer = plan.buffers[field.buffer];
      encode(describe(field.map, buffer, sizes, addresses[field.buffer]), buffer,
             packer.place(sizeof(device::TensorMap), alignof(device::TensorMap)));
      break;
    }
    }
  }
  return packer.finish();
}

uint32_t ctasOf(const ProgramLaunch &launch, const Sizes &sizes) {
  const int64_t ctas = launch.ctas.evaluate(sizes);
  if (ctas < 0 || ctas > std::numeric_limits<int32_t>::max() || ctas % launch.cluster)
    throw UserError(
        fmt::format("launch '{}' would have {} CTAs in clusters of {}", launch.symbol, ctas, launch.cluster));
  return static_cast<uint32_t>(ctas);
}

} // namespace fagen::lab
