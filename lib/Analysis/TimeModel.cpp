// fagen: adds up clocks of a CTA, an SM and a grid.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/TimeModel.h"

#include "fagen/Analysis/Resources.h"
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

// Where these come from: docs/Model.md.
static constexpr double kStepClocks = 320;         ///< of a step: what waits for results in its chain of ops
static constexpr double kPrologueClocks = 4450;    ///< a CTA's start and end: parameters, addresses, first load, O
static constexpr double kLaunchMicroseconds = 0.5; ///< of one launch of a graph
/// Each CTA of a grid is placed: for larger grids that would take long.
static constexpr uint64_t kMaxCtas = 1 << 24;

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
  return Shape{values[0], values[1], values[2], values[3], values[4], values[5]};
}

Ranking model::rankingOf(const GpuRates &gpu, bool isCausal) {
  return isCausal ? Ranking{gpu.causalRank / 100.0, gpu.causalVariants}
                  : Ranking{gpu.unmaskedRank / 100.0, gpu.unmaskedVariants};
}

//===-- A CTA -----------------------------------------------------------------------------------------------------===//

namespace {

/// A body as a list, loops left out.
void flatten(const Block &block, std::vector<const Op *> &ops) {
  for (const std::unique_ptr<Op> &op : block.ops) {
    if (op->kind == OpKind::Loop)
      continue;
    ops.push_back(op.get());
    if (op->kind != OpKind::Vote) // which warps hardly ever pass
      flatten(op->body, ops);
  }
}

class CtaModel {
public:
  CtaModel(const Kernel &kernel, const GpuRates &gpu, const model::Shape &shape)
      : kernel(kernel), role(kernel.roles.front()), gpu(gpu), shape(shape) {
    std::vector<const Op *> straight;
    flatten(role.body, straight);
    sections.push_back(sectionOf("once", straight));
    sections.back().clocks.latency += kPrologueClocks;
    loops.push_back(nullptr);
    walk(role.body, [&](const Op &op) {
      if (op.kind != OpKind::Loop)
        return;
      std::vector<const Op *> body;
      flatten(op.body, body);
      sections.push_back(sectionOf(op.has(Attr::Name) ? op.text(Attr::Name).str() : "loop", body));
      sections.back().clocks.latency += kStepClocks + exposedLoads(body);
      loops.push_back(&op);
    });
  }

  /// How often each section runs for the CTA of these rows; empty when a bound cannot be told.
  std::vector<double> stepsOf(int64_t rowBegin) const {
    std::vector<double> steps{1};
    for (const Op *loop : llvm::drop_begin(loops)) {
      std::optional<int64_t> begin = value(loop->expr(Attr::Begin), rowBegin),
                             end = value(loop->expr(Attr::End), rowBegin);
      if (!begin || !end)
        return {};
      steps.push_back(double(std::max<int64_t>(0, *end - *begin)));
    }
    return steps;
  }

  std::vector<Section> sections; ///< the first is what happens once

private:
  Section sectionOf(std::string name, llvm::ArrayRef<const Op *> ops) const {
    Section section;
    section.name = std::move(name);
    for (const Op *op : ops)
      section.work += workOf(kernel, role, *op);
    section.clocks = clocksOf(section.work, gpu);
    return section;
  }

  /// A wait leaves `pending` groups; the newest that it waits for was closed so many commits before, in this turn of
  /// the loop or an earlier one. What of the load's time the ops in between do not fill stands still.
  double exposedLoads(llvm::ArrayRef<const Op *> body) const {
    double exposed = 0;
    for (auto [at, wait] : llvm::enumerate(body)) {
      if (wait->kind != OpKind::CopyWait)
        continue;
      double filled = 0;
      int64_t newer = 0;
      for (size_t back = 1; filled < kLoadClocks && back <= 16 * body.size(); ++back) {
        const Op &op = *body[(at + 16 * body.size() - back) % body.size()];
        if (op.kind == OpKind::CopyCommit && newer++ == wait->integer(Attr::Pending)) {
          exposed += kLoadClocks - filled;
          break;
        }
        filled += together(clocksOf(workOf(kernel, role, op), gpu), 1, role.warps);
      }
    }
    return exposed;
  }

  std::optional<int64_t> value(const Expr &expr, int64_t rowBegin) const {
    return expr.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
      if (name == kRowBegin)
        return rowBegin;
      if (name == "seq_q")
        return shape.seqQ;
      if (name == "seq_kv")
        return shape.seqKv;
      if (name == "heads_per_kv")
        return shape.heads / shape.kvHeads;
      for (const Let &let : kernel.lets)
        if (let.name == name)
          return value(let.value, rowBegin);
      return kernel.hasConstant(name) ? std::optional(kernel.constant(name)) : std::nullopt;
    });
  }

  const Kernel &kernel;
  const Role &role;
  const GpuRates &gpu;
  const model::Shape &shape;
  std::vector<const Op *> loops; ///< beside the sections; null for the first
};

double clocksOfCta(llvm::ArrayRef<Section> sections, llvm::ArrayRef<double> steps, unsigned resident, unsigned warps) {
  double clocks = 0;
  for (auto [section, count] : llvm::zip(sections, steps))
    clocks += count * together(section.clocks, resident, warps);
  return clocks;
}

/// CTAs go to the place that is free first, in grid order: all query tiles of a head, then the next head.
double clocksOfGrid(llvm::ArrayRef<double> full, llvm::ArrayRef<double> last, uint64_t ctas, uint64_t places) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  const uint64_t lastBegin = ctas / places * places;
  double end = 0;
  for (uint64_t cta = 0; cta < ctas; ++cta) {
    double start = 0;
    if (free.size() == places) {
      start = free.top();
      free.pop();
    }
    const double stop = start + (cta < lastBegin ? full : last)[cta % full.size()];
    free.push(stop);
    end = std::max(end, stop);
  }
  return end;
}

/// Q, O, and the keys and values once each.
double leastBytes(const model::Shape &s) {
  constexpr double kElement = 2;
  return 2 * kElement * double(s.headDim) *
         (double(s.batch * s.heads) * double(s.seqQ) + double(s.batch * s.kvHeads) * double(s.seqKv));
}

/// Each kind of fragment takes more or less than its elements fill (docs/Model.md).
unsigned registersOf(const Kernel &kernel, const TargetInfo &limits) {
  constexpr double kOthers = 47, kOutput = 1.2, kScores = 1.57, kQuery = 0.8;
  llvm::DenseMap<const Buffer *, double> factors; // P takes the registers that S leaves
  for (const Role &role : kernel.roles) {
    forEach<MmaOp>(role.body, [&](MmaOp<const Op> product) {
      factors[product.acc().buffer] = product.form() == MmaForm::Abt ? kScores : kOutput;
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

std::optional<Prediction> model::predict(const Kernel &kernel, const GpuRates &gpu, const TargetInfo &limits,
                                         const model::Shape &shape) {
  const unsigned registers = registersOf(kernel, limits);
  const Occupancy occupancy = occupancyOf(registers, kernel.threads, kernel.sharedBytes, limits);
  if (mmaFamily(kernel.backend).family != Mma::MmaSync || kernel.roles.size() != 1 || occupancy.ctasPerSm == 0 ||
      !kernel.hasConstant("kTileRows"))
    return std::nullopt;
  const unsigned warps = kernel.roles.front().warps;
  const int64_t rows = kernel.constant("kTileRows"), groups = kernel.packsHeads() ? shape.kvHeads : shape.heads;
  const int64_t tiles = llvm::divideCeil(uint64_t(shape.seqQ * shape.heads / groups), uint64_t(rows));
  Prediction result;
  result.registers = registers;
  result.ctasPerSm = occupancy.ctasPerSm;
  result.occupancyLimit = occupancy.limit;
  result.sharedBytes = kernel.sharedBytes;
  result.ctas = uint64_t(tiles * groups * shape.batch);
  if (result.ctas > kMaxCtas)
    return std::nullopt;
  const uint64_t places = uint64_t(gpu.sms) * occupancy.ctasPerSm, rest = result.ctas % places;
  result.waves = double(result.ctas) / double(places);
  result.tail = rest == 0 ? 1 : double(rest) / double(places);
  auto perSm = [&](uint64_t ctas) { return unsigned(llvm::divideCeil(ctas, uint64_t(gpu.sms))); };
  result.resident = std::min(occupancy.ctasPerSm, perSm(result.ctas));
  const unsigned inTail = rest == 0 ? occupancy.ctasPerSm : perSm(rest);

  CtaModel cta(kernel, gpu, shape);
  std::vector<double> full, last;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const std::vector<double> steps = cta.stepsOf(tile * rows);
    if (steps.empty())
      return std::nullopt;
    for (auto [section, count] : llvm::zip(cta.sections, steps))
      section.steps += count / double(tiles);
    full.push_back(clocksOfCta(cta.sections, steps, result.resident, warps));
    last.push_back(clocksOfCta(cta.sections, steps, inTail, warps));
  }
  if (full.back() > full.front()) { // as the kernels did that the record is of
    std::reverse(full.begin(), full.end());
    std::reverse(last.begin(), last.end());
  }
  for (Section &section : cta.sections)
    section.together = together(section.clocks, result.resident, warps);
  result.sections = cta.sections;
  result.dramMicroseconds = leastBytes(shape) / gpu.dramGBs / 1e3;
  const double clocks = clocksOfGrid(full, last, result.ctas, places);
  result.microseconds = kLaunchMicroseconds + std::max(result.dramMicroseconds, clocks / gpu.clockMhz);
  return result;
}
