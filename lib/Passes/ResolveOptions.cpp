// fagen: pass resolve-options: every constant of the kernel, each with the spec key it comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Passes/Passes.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/Spec/Options.h"
#include "fagen/Spec/Spec.h"
#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

#include <fagen/device/tile/layout.h>

#include <fmt/format.h>

using namespace fagen;

/// What the head of the kernel's text says: where it comes from, and what it does.
static std::vector<std::string> describe(const ir::Kernel &kernel, const Variant &variant) {
  const Schedule &schedule = variant.schedule;
  const std::string name = schedule.implicit       ? "made by the compiler for unaligned tensors"
                           : schedule.name.empty() ? "its only schedule"
                                                   : "schedule " + schedule.name;
  return {fmt::format("Kernel {} ({}), target {}, {} ({}).", variant.name, variant.location.str(), kernel.target, name,
                      schedule.location.str()),
          fmt::format(
              "O = softmax(scale Q K^T + mask) V; {} query rows x {} keys at once, {} warps: {} over rows x {} over "
              "keys.",
              schedule.tileRows, schedule.tileKeys, schedule.warps, schedule.rowWarps, schedule.keyWarps)};
}

bool fagen::isMergedLater(const Schedule &schedule) { return schedule.isSplit() && schedule.keyWarps == 1; }

bool fagen::isCombine(const ir::Kernel &kernel, const PassContext &context) {
  return context.program && !context.program->kernels.empty() && &kernel != context.program->kernels.front().get();
}

/// The second launch has a warp for each query row, whatever the tiles of the first.
static Schedule combineSchedule(const Schedule &first) {
  Schedule schedule = first;
  schedule.mma = plainFamily().family;
  schedule.roles = Roles::Unified;
  schedule.tileRows = schedule.warps = schedule.rowWarps = device::kCombineWarps;
  schedule.keyWarps = 1;
  schedule.numbers.clear();
  return schedule;
}

/// What the passes begin with: those that make a CTA take several tiles change it.
static ir::CtaGrid gridOf(const Variant &variant, bool isCombine) {
  if (isCombine)
    return {.unit = ir::CtaGrid::Rows};
  if (!variant.schedule.isSplit())
    return {};
  if (const unsigned keys = splitKeys(variant.problem, variant.schedule))
    return {.split = ir::TileSplit{keys, /*countsKeys=*/true}};
  return {.split = ir::TileSplit{variant.schedule.split}};
}

namespace {

class OptionResolver {
public:
  OptionResolver(ir::Kernel &kernel, const Variant &variant, const Schedule &schedule, const Arranged &arranged)
      : kernel(kernel), variant(variant), schedule(schedule), arranged(arranged) {}

  void run() {
    kernel.threads = 32 * (schedule.warps + (isSpecialized ? policy.loadWarps : 0));
    addTile();
    if (isSpecialized)
      addRoles();
    else
      kernel.addConstant("kThreads", kernel.threads, "= 32 * kWarps");
    addShares();
    for (const auto &[key, number] : llvm::reverse(schedule.numbers))
      addOf(optionInfo(key).constant, number, optionInfo(key).name);
    setOptions();
  }

private:
  /// A constant that says which key of the spec it is.
  void addOf(llvm::StringRef name, int64_t value, llvm::StringRef key) {
    const bool isSet = llvm::any_of(schedule.locations, [&](const auto &entry) { return entry.first == key; });
    kernel.addConstant(name, value, isSet ? key.str() : (key + ", by default").str(), schedule.locationOf(key));
  }

  void addTile() {
    addOf("kTileRows", schedule.tileRows, "tile");
    addOf("kTileKeys", schedule.tileKeys, "tile");
    kernel.addConstant("kHeadDimQK", variant.problem.headDimQK, "head_dim", variant.locationOf("head_dim"));
    kernel.addConstant("kHeadDimV", variant.problem.headDimV, "head_dim", variant.locationOf("head_dim"));
    addOf("kStages", schedule.stages, "stages");
    addOf("kWarps", schedule.warps, "warps");
  }

  void addRoles() {
    kernel.options.loadWarps = {
        kernel.addConstant("kLoadWarps", policy.loadWarps, "warps that load, before the others"),
        schedule.locationOf("roles")};
    kernel.addConstant("kThreads", kernel.threads, "= 32 * (kLoadWarps + kWarps)");
    addRegisters();
    if (arranged.querySlots > 1)
      kernel.options.querySlots = {
          kernel.addConstant("kQuerySlots", arranged.querySlots, "slots of Q, through which results leave"),
          schedule.locationOf("grid")};
    else if (arranged.stagedColumns != 0)
      kernel.options.stagedColumns = {
          kernel.addConstant("kStagedColumns", arranged.stagedColumns, "columns of the results that leave at once"),
          schedule.locationOf("grid")};
  }

  /// Whole warp groups hand them over, where the target can.
  void addRegisters() {
    const unsigned groups = schedule.warps / ir::kGroupWarps;
    if (!variant.target->has(Feature::SetMaxNReg) || schedule.warps % ir::kGroupWarps != 0 || groups > policy.groups)
      return;
    const RoleRegisters &registers = policy.registers[groups - 1];
    kernel.addConstant("kLoadRegisters", registers.load, "registers of a thread that loads");
    kernel.addConstant("kMathRegisters", registers.math, "registers of a thread that computes");
  }

  /// What warps, splits and threads have of a tile.
  void addShares() {
    kernel.addConstant("kRowWarps", schedule.rowWarps, "warps side by side over query rows");
    kernel.addConstant("kKeyWarps", schedule.keyWarps, "warps side by side over keys");
    kernel.addConstant("kWarpRows", schedule.tileRows / schedule.rowWarps, "= kTileRows / kRowWarps");
    kernel.addConstant("kWarpKeys", schedule.tileKeys / schedule.keyWarps, "= kTileKeys / kKeyWarps");
    if (schedule.isSplit())
      kernel.addConstant("kSplitKeys", splitKeys(variant.problem, schedule),
                         "invariant: keys of every split; 0: as they divide", schedule.locationOf("split"));
    addOf("kVectorBytes", schedule.vectorBytes, "vector");
  }

  void setOptions() {
    kernel.options.refill = {schedule.refill, schedule.locationOf("refill")};
    if (isSpecialized) {
      kernel.options.overlap = {schedule.overlap, schedule.locationOf("overlap")};
      if (schedule.rescale == RescalePolicy::Optimistic) // the others are in the ops
        kernel.options.rescale = {schedule.rescale, schedule.locationOf("rescale")};
      kernel.options.grid = {schedule.grid, schedule.locationOf("grid")};
    }
    kernel.options.swizzle = {schedule.swizzle, schedule.locationOf("swizzle")};
    kernel.options.barriers = {schedule.barriers, schedule.locationOf("barriers")};
  }

  ir::Kernel &kernel;
  const Variant &variant;
  const Schedule &schedule;
  const Arranged &arranged;
  const TargetPolicy &policy = variant.target->policy;
  const bool isSpecialized = schedule.roles == Roles::Specialized;
};

} // namespace

bool fagen::resolveOptions(ir::Kernel &kernel, PassContext &context) {
  assert(context.variant && "resolve-options reads the variant");
  const Variant &variant = *context.variant;
  const bool isSecond = isCombine(kernel, context);
  const Schedule schedule = isSecond ? combineSchedule(variant.schedule) : variant.schedule;

  kernel.target = variant.target->name.str();
  kernel.location = variant.location;
  kernel.symbol = variant.symbol + (isSecond ? "_combine" : "");
  kernel.backend = toString(schedule.mma).str();
  if (!isSecond)
    kernel.about = describe(kernel, variant);
  kernel.grid = gridOf(variant, isSecond);
  OptionResolver(kernel, variant, schedule, context.arranged).run();
  return true;
}
