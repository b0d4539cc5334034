// fagen: adds up clocks of a CTA, an SM and a grid.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CtaModel.h"

#include "fagen/Analysis/Resources.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/DenseMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include "fmt/format.h"

#include <algorithm>
#include <functional>
#include <queue>

using namespace fagen;
using namespace fagen::ir;
using namespace fagen::model;

// Where these come from: docs/internals/Model.md.
static constexpr double kLaunchMicroseconds = 0.5; ///< of one launch of a graph
/// Each tile of a grid is placed: for larger grids that would take long.
static constexpr uint64_t kMaxTiles = 1 << 24;

//===-- Shapes ----------------------------------------------------------------------------------------------------===//

std::string Shape::str() const { return fmt::format("{},{},{},{},{},{}", batch, heads, kvHeads, seqQ, seqKv, headDim); }

std::optional<Shape> model::parseShape(llvm::StringRef text) {
  constexpr int64_t kLargest = 1 << 20; // so that no count of CTAs overflows
  llvm::SmallVector<llvm::StringRef, 6> parts;
  text.split(parts, ',');
  int64_t values[6];
  if (parts.size() != std::size(values))
    return std::nullopt;
  for (auto [part, value] : llvm::zip(parts, values))
    if (part.getAsInteger(10, value) || value < 1 || value > kLargest)
      return std::nullopt;
  if (values[1] % values[2] != 0)
    return std::nullopt;
  return Shape{values[0], values[1], values[2], values[3], values[4], values[5]};
}

Ranking model::rankingOf(const GpuRates &gpu, bool isCausal) {
  return isCausal ? Ranking{gpu.causalRank / 100.0, gpu.causalVariants}
                  : Ranking{gpu.unmaskedRank / 100.0, gpu.unmaskedVariants};
}

//===-- A grid ----------------------------------------------------------------------------------------------------===//

namespace {

/// In grid order, all query tiles of a head, then the next head: each tile goes to the place that is free first, or
/// where `isFixed` to each place in turn. A place is free from `start` on.
double clocksOfGrid(llvm::ArrayRef<double> full, llvm::ArrayRef<double> last, uint64_t tiles, uint64_t places,
                    double start, bool isFixed) {
  std::vector<double> ends(isFixed ? places : 0, start);
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  const uint64_t lastBegin = tiles / places * places;
  double end = 0;
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    const double clocks = (tile < lastBegin ? full : last)[tile % full.size()];
    if (isFixed) {
      end = std::max(end, ends[tile % places] += clocks);
      continue;
    }
    double begin = start;
    if (free.size() == places) {
      begin = free.top();
      free.pop();
    }
    free.push(begin + clocks);
    end = std::max(end, begin + clocks);
  }
  return end;
}

/// Q, O, and the keys and values once each.
double leastBytes(const model::Shape &s) {
  constexpr double kElement = 2;
  return 2 * kElement * double(s.headDim) *
         (double(s.batch * s.heads) * double(s.seqQ) + double(s.batch * s.kvHeads) * double(s.seqKv));
}

/// Each kind of fragment takes more or less than its elements fill (docs/internals/Model.md).
unsigned registersOf(const Kernel &kernel, const TargetInfo &limits) {
  constexpr double kOthers = 47, kOutput = 1.2, kScores = 1.57, kQuery = 0.8;
  llvm::DenseMap<const Buffer *, double> factors; // P takes the registers that S leaves
  for (const Role &role : kernel.roles) {
    const auto fed = fedProducts(role.body);
    forEach<MmaOp>(role.body, [&](MmaOp<const Op> product) {
      factors[product.acc().buffer] = fed.contains(&*product) ? kOutput : kScores;
    });
    forEach<LoadFragmentOp>(role.body, [&](LoadFragmentOp<const Op> load) { factors[load.dst().buffer] = kQuery; });
  }
  double registers = kOthers;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers) {
    if (buffer->space != Space::Fragment || buffer->columns == 1)
      continue;
    const double own = double(buffer->rows) * buffer->columns * sizeOf(buffer->type) / 4 / 32;
    registers += own * factors.lookup(buffer.get());
  }
  return unsigned(std::min(registers, double(limits.maxRegistersPerThread)));
}

} // namespace

static bool needsCopyEngine(const Kernel &kernel) {
  bool found = false;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) { found |= isBulkCopy(op); });
  return found;
}

/// Whether each CTA knows its tiles from the start.
static bool hasFixedTiles(const Kernel &kernel) { return !drawsTiles(kernel) && kernel.grid.isPersistent; }

/// Clocks of each of a head's tiles, the longest first, in a grid that fills its places and in the rest of one.
struct TileClocks {
  std::vector<double> full, last;
};

/// None where the number of a loop's steps cannot be told. Each section gets its steps.
static std::optional<TileClocks> clocksOfTiles(CtaModel &cta, int64_t tiles, int64_t rows, unsigned resident,
                                               unsigned inTail) {
  TileClocks clocks;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const std::vector<double> steps = cta.stepsOf(tile * rows);
    if (steps.empty())
      return std::nullopt;
    for (auto [section, count] : llvm::zip(cta.sections, steps))
      section.steps += count / double(tiles);
    clocks.full.push_back(cta.clocksOf(steps, resident));
    clocks.last.push_back(cta.clocksOf(steps, inTail));
  }
  if (clocks.full.back() > clocks.full.front()) { // as the kernels did that the record is of
    std::reverse(clocks.full.begin(), clocks.full.end());
    std::reverse(clocks.last.begin(), clocks.last.end());
  }
  return clocks;
}

std::optional<Prediction> model::predict(const Kernel &kernel, const GpuRates &gpu, const TargetInfo &limits,
                                         const model::Shape &shape) {
  const Role *role = multiplyingRole(kernel);
  if (!role || kernel.phase < Phase::Allocated || !mmaFamily(kernel.backend).keepsResults || kernel.hasOwnParams())
    return std::nullopt;
  if (needsCopyEngine(kernel) && gpu.bulkBytes == 0)
    return std::nullopt;
  const bool sharesRegisters = kernel.roles.size() > 1;
  const unsigned registers =
      sharesRegisters ? estimateResources(kernel, kernel.sharedBytes, limits).registers : registersOf(kernel, limits);
  const Occupancy occupancy = occupancyOf(registers, kernel.threads, kernel.sharedBytes, limits);
  if (occupancy.ctasPerSm == 0)
    return std::nullopt;
  const int64_t rows = rowsOfTile(kernel, *role), groups = kernel.packsHeads() ? shape.kvHeads : shape.heads;
  const int64_t tiles = llvm::divideCeil(uint64_t(shape.seqQ * shape.heads / groups), uint64_t(rows));
  Prediction result;
  result.registers = registers;
  result.ctasPerSm = occupancy.ctasPerSm;
  result.occupancyLimit = occupancy.limit;
  result.sharedBytes = kernel.sharedBytes;
  result.ctas = uint64_t(tiles * groups * shape.batch);
  if (result.ctas > kMaxTiles)
    return std::nullopt;
  const uint64_t places = uint64_t(gpu.sms) * occupancy.ctasPerSm, rest = result.ctas % places;
  result.waves = double(result.ctas) / double(places);
  result.tail = rest == 0 ? 1 : double(rest) / double(places);
  auto perSm = [&](uint64_t ctas) { return unsigned(llvm::divideCeil(ctas, uint64_t(gpu.sms))); };
  result.resident = std::min(occupancy.ctasPerSm, perSm(result.ctas));
  const unsigned inTail = rest == 0 ? occupancy.ctasPerSm : perSm(rest);

  CtaModel cta(kernel, *role, gpu, shape);
  const std::optional<TileClocks> clocks = clocksOfTiles(cta, tiles, rows, result.resident, inTail);
  if (!clocks)
    return std::nullopt;
  for (Section &section : cta.sections)
    section.together =
        cta.clocksOf(section, std::max(1.0, section.steps), result.resident) / std::max(1.0, section.steps);
  result.sections = cta.sections;
  result.dramMicroseconds = leastBytes(shape) / gpu.dramGBs / 1e3;
  const double end = clocksOfGrid(clocks->full, clocks->last, result.ctas, places, cta.clocksOnce(result.resident),
                                  hasFixedTiles(kernel));
  result.microseconds = kLaunchMicroseconds + std::max(result.dramMicroseconds, end / gpu.clockMhz);
  return result;
}
