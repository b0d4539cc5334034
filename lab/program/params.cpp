// fagen: the argument of a program's kernels, packed as C++ lays out the struct.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "from_table.h"
#include "own_row.h"
#include "run.h"

#include "lab/cases/problem.h"
#include "runtime/src/programs/bind.h"

#include <fmt/format.h>
#include <limits>

namespace fagen::lab {

std::vector<int64_t> shapeOf(const ProgramBuffer &buffer, const Sizes &sizes) {
  std::vector<int64_t> shape;
  for (const SizeExpr &size : buffer.shape)
    shape.push_back(size.evaluate(sizes));
  return shape;
}

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
           const std::function<void(const device::TensorMapDescription &, const char *, void *)> &encode) {
  const TableCall made(plan, sizes, addresses);
  BoundCall bound;
  if (bindCall(plan.own->row, made.call, static_cast<uint32_t>(sizes.at("sms")), false, bound) ||
      checkAddresses(bound) || checkMaps(bound))
    throw UserError(fagen_last_error());
  std::vector<unsigned char> argument(bound.recipe->argument_bytes);
  const fagen_status status = packArgument(
      bound, argument.data(), [&](const device::TensorMapDescription &map, const char *name, unsigned char *place) {
        encode(map, name, place);
        return fagen_status(FAGEN_OK);
      });
  if (status)
    throw UserError(fagen_last_error());
  return argument;
}

uint32_t ctasOf(const ProgramLaunch &launch, const Sizes &sizes) {
  const int64_t ctas = launch.ctas.evaluate(sizes);
  if (ctas < 0 || ctas > std::numeric_limits<int32_t>::max() || ctas % launch.cluster)
    throw UserError(
        fmt::format("launch '{}' would have {} CTAs in clusters of {}", launch.symbol, ctas, launch.cluster));
  return static_cast<uint32_t>(ctas);
}

} // namespace fagen::lab
