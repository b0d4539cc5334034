// fagen: from a variant to a program that has all its buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Lower/Lower.h"

#include "fagen/Analysis/Resources.h"
#include "fagen/IR/Queries.h"
#include "fagen/Passes/Pipeline.h"
#include "fagen/Support/Memory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ThreadPool.h"

using namespace llvm;

namespace fagen {

std::unique_ptr<ir::Program> beginProgram(const Variant &variant) {
  auto program = std::make_unique<ir::Program>();
  program->name = variant.name;
  program->kernels.push_back(std::make_unique<ir::Kernel>());
  if (isMergedLater(variant.schedule)) // by one that finds what the first one left
    program->kernels.push_back(std::make_unique<ir::Kernel>());
  return program;
}

/// Passes that order copies, and all after them, only change ops.
static bool addsBuffers(const PassEntry &pass) { return pass.leaves < ir::Phase::Pipelined; }

std::vector<std::string> passesBehindBuffers() {
  std::vector<std::string> names;
  for (const PassEntry &pass : pipelinePasses())
    if (!addsBuffers(pass))
      names.push_back(pass.name.str());
  return names;
}

/// What a kernel of these buffers takes of an SM.
static MeasuredSchedule measureBuffers(const ir::Kernel &kernel, PassContext &context) {
  ir::Kernel alone;
  alone.target = kernel.target;
  alone.backend = kernel.backend;
  alone.threads = kernel.threads;
  alone.constants = kernel.constants;
  alone.options = kernel.options;
  for (const std::unique_ptr<ir::Buffer> &buffer : kernel.buffers)
    alone.addBuffer(*buffer);
  for (std::unique_ptr<ir::Buffer> &buffer : alone.buffers)
    if (buffer->overlays)
      buffer->overlays = alone.buffer(buffer->overlays->name);
  assignLayouts(alone, context);
  allocateShared(alone, context);
  MeasuredSchedule measured;
  measured.shared.total = alone.sharedBytes;
  for (const std::unique_ptr<ir::Buffer> &buffer : alone.buffers)
    if (buffer->space == ir::Space::Shared)
      measured.shared.buffers.push_back(
          {buffer->name, buffer->bytes(), buffer->overlays != nullptr, buffer->columns > 1});
  const ResourceEstimate estimate = estimateResources(kernel, alone.sharedBytes, *context.variant->target);
  measured.figures = {estimate.registers, estimate.leastRegisters, estimate.mostRegisters, estimate.ctasPerSm};
  return measured;
}

namespace {

struct Lowered {
  Arranged arranged;
  std::unique_ptr<ir::Program> program = nullptr; ///< null, and nothing measured, where a pass refuses the variant
  MeasuredSchedule measured = {};
};

} // namespace

/// Runs the passes that add buffers, and reads what they take.
static Lowered lowerAs(const Variant &variant, const Arranged &arranged) {
  SourceMgr noSources;
  Diagnostics diags(noSources, nulls());
  std::unique_ptr<ir::Program> program = beginProgram(variant);
  PassContext context{.diags = diags, .variant = &variant, .program = program.get(), .arranged = arranged};
  for (const PassEntry &pass : make_filter_range(pipelinePasses(), addsBuffers)) {
    for (size_t i = 0; i != program->kernels.size(); ++i) // a pass may add one
      pass.run(*program->kernels[i], context);
    if (diags.hasErrors())
      return {arranged};
  }
  MeasuredSchedule measured = measureBuffers(*program->kernels.front(), context);
  return {arranged, std::move(program), std::move(measured)};
}

/// How the head dims let CTAs that take tile after tile be arranged, if they do.
static std::optional<Arranged> arrange(const Problem &problem, Arrangement arrangement) {
  constexpr unsigned kPanelColumns = 64; // of the swizzle's 128 B
  const unsigned half = problem.headDimV / 2;
  switch (arrangement) {
  case Arrangement::None:
    return std::nullopt;
  case Arrangement::TwoQueries:
    return problem.headDimV <= problem.headDimQK ? std::optional(Arranged{.querySlots = 2}) : std::nullopt;
  case Arrangement::HalfOfResults:
    return half % kPanelColumns == 0 ? std::optional(Arranged{.stagedColumns = half}) : std::nullopt;
  }
  llvm_unreachable("an arrangement");
}

/// The first arrangement of the target's that fits.
static Lowered lowerPersistent(const Variant &variant) {
  for (const Arrangement arrangement : variant.target->policy.arrangements)
    if (const std::optional<Arranged> arranged = arrange(variant.problem, arrangement))
      if (Lowered lowered = lowerAs(variant, *arranged);
          lowered.program && lowered.measured.shared.total <= variant.target->sharedPerBlock)
        return lowered;
  return lowerAs(variant, {});
}

/// Whether the tiles that are on their way to registers fit over the rings.
static bool fitsOverRings(const ir::Kernel &kernel) {
  uint64_t rings = 0;
  for (const std::unique_ptr<ir::Buffer> &buffer : kernel.buffers)
    if (buffer->space == ir::Space::Shared && buffer->isRing)
      rings += buffer->bytes();
  uint64_t most = 0;
  for (const ir::Role &role : kernel.roles)
    ir::forEach<ir::LoadFragmentOp>(
        role.body, [&](ir::LoadFragmentOp<const ir::Op> load) { most = std::max(most, load.src().buffer->bytes()); });
  return most <= rings;
}

/// Q on its way to registers may lie over the ring, but in bytes of its own the first K and V come at the same time.
static Lowered lowerQueryInRegisters(const Variant &variant) {
  const uint64_t halfOfSm = uint64_t(variant.target->policy.halfOfSmKiB) * 1024;
  Lowered apart = lowerAs(variant, {});
  return apart.program && (apart.measured.shared.total <= halfOfSm || !fitsOverRings(*apart.program->kernels.front()))
             ? std::move(apart)
             : lowerAs(variant, {.isQueryOverRing = true});
}

static Lowered lowerAsItFits(const Variant &variant) {
  const Schedule &schedule = variant.schedule;
  if (schedule.grid != Grid::Tiles)
    return lowerPersistent(variant);
  if (schedule.qIn == OperandPlace::Registers && schedule.roles == Roles::Unified) // else its slot is guarded
    return lowerQueryInRegisters(variant);
  return lowerAs(variant, {});
}

std::vector<MeasuredSchedule> Lowering::measure(ArrayRef<const Variant *> variants) {
  std::vector<Lowered> all(variants.size());
  auto lowerOne = [&](size_t i) { all[i] = lowerAsItFits(*variants[i]); };
  if (variants.size() == 1) {
    lowerOne(0);
  } else {
    DefaultThreadPool pool;
    for (size_t i = 0; i != variants.size(); ++i)
      pool.async([&, i] {
        takeLargePages();
        lowerOne(i);
      });
    pool.wait();
  }
  // Of two schedules of one name, as tune(...) makes them, the first is the one that is compiled.
  std::vector<MeasuredSchedule> measured;
  for (auto &&[variant, lowered] : zip(variants, all)) {
    measured.push_back(std::move(lowered.measured));
    kept.try_emplace(variant->symbol, Kept{variant->schedule, lowered.arranged, std::move(lowered.program)});
  }
  return measured;
}

Lowering::Kept *Lowering::find(const Variant &variant) {
  const auto found = kept.find(variant.symbol);
  return found != kept.end() && haveSameValues(found->second.schedule, variant.schedule) ? &found->second : nullptr;
}

std::unique_ptr<ir::Program> Lowering::take(const Variant &variant) {
  Kept *const found = find(variant);
  return found ? std::move(found->program) : nullptr;
}

Arranged Lowering::arrangedOf(const Variant &variant) {
  const Kept *const found = find(variant);
  return found ? found->arranged : lowerAsItFits(variant).arranged;
}

} // namespace fagen
