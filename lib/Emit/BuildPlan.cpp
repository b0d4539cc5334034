// fagen: the plan of a lowered variant, and its text for --emit=plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/ProgramPlan.h"

#include "KeyTiles.h"
#include "OpEmitter.h"
#include "ProgramParams.h"
#include "splits/SharedKeys.h"
#include "splits/SizeProgram.h"

#include "fagen/Analysis/Resources.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "fmt/format.h"

#include "llvm/ADT/STLExtras.h"

#include <fagen/device/tile/layout.h>
#include <fagen/device/trace.h>

using namespace fagen;
using namespace fagen::ir;

static BufferPlan planBuffer(const Buffer &buffer) {
  BufferPlan plan;
  plan.name = buffer.name;
  plan.space = buffer.space;
  plan.type = toString(buffer.type).str();
  plan.rows = buffer.rows;
  plan.columns = buffer.columns;
  plan.stages = buffer.stages;
  plan.offset = buffer.offset.value_or(0);
  plan.bytes = buffer.bytes();
  plan.layout = buffer.layout == Layout::Xor ? "xor" : buffer.layout == Layout::Padded ? "padded" : "row_major";
  return plan;
}

static SelectOp valueOf(SelectVariable variable) { return {SelectOp::Variable, int64_t(variable)}; }

/// How many CTAs a launch has that is not split.
static std::vector<SelectOp> countCtas(const Kernel &kernel) {
  Expr ctas;
  const std::vector<GridIndex> indices = indicesOf(kernel);
  for (const GridIndex &index : llvm::reverse(indices))
    ctas = ctas ? ctas * index.extent : index.extent;
  return *sizeProgram(kernel, ctas ? ctas : constant(1));
}

/// A map for each tensor that bulk copies read or write. CTAs that share a tile have panels of it each, else rows.
static std::vector<MapPlan> planMaps(const Kernel &kernel) {
  std::vector<MapPlan> maps;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (!isBulkCopy(op) && op.kind != OpKind::BulkStore)
        return;
      const char tensor = tensorOf(*globalOf(op)).param.front();
      BoxShape box = boxOf(kernel, role, op);
      if (const unsigned panels = op.operands[0].buffer->columns / box.columns, ctas = kernel.grid.cluster;
          op.isSet(Attr::Cluster) && panels > 1 && panels % ctas == 0)
        box.rows *= ctas, box.panels = panels / ctas;
      else if (box.panels == 1)
        box.panels = 0;
      if (llvm::none_of(maps, [&](const MapPlan &map) { return map.tensor == tensor; }))
        maps.push_back({tensor, box.columns, box.rows, box.swizzle, box.panels});
    });
  return maps;
}

/// The op by which each split leaves its rows; null when none does.
static const Op *findSplitStore(const Kernel &kernel) {
  const Op *found = nullptr;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (op.kind == OpKind::StoreSplit || op.kind == OpKind::StoreMergedSplit)
        found = &op;
    });
  return found;
}

/// The bytes of so many splits' rows: O, m and l (<fagen/device/ops/split.h>).
static std::vector<SelectOp> countSplitBytes(std::vector<SelectOp> splits, const Buffer &parts) {
  for (const SelectVariable variable : {SelectVariable::Batch, SelectVariable::Heads, SelectVariable::SeqQ}) {
    splits.push_back(valueOf(variable));
    splits.push_back({SelectOp::Mul});
  }
  splits.push_back({SelectOp::Constant, int64_t(sizeOf(parts.type)) * parts.columns});
  splits.push_back({SelectOp::Mul});
  return splits;
}

/// The rows of every split. Where the last one to come merges, those of the first hold the counters.
static std::vector<WorkspacePlan> planSplits(const Op &store) {
  const Buffer &parts = *globalOf(store);
  const SelectOp splits = valueOf(SelectVariable::Splits), one = {SelectOp::Constant, 1};
  if (store.kind == OpKind::StoreSplit)
    return {{"splits", countSplitBytes({splits}, parts), 16, /*isScratch=*/true}};
  return {{"first_split", countSplitBytes({one}, parts), 16},
          {"other_splits", countSplitBytes({splits, one, {SelectOp::Sub}}, parts), 16, /*isScratch=*/true}};
}

/// Counters, which each launch leaves as it finds them, where the kernel looks for them: in front.
static std::vector<WorkspacePlan> planCounters(const Kernel &kernel) {
  std::vector<WorkspacePlan> parts;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Global && buffer->type == ElementType::U32)
      parts.push_back({buffer->name, {{SelectOp::Constant, int64_t(buffer->bytes())}}, sizeOf(buffer->type)});
  return parts;
}

/// What a launch before leaves for this one.
static WorkspacePlan planScratch(const Kernel &kernel, const Buffer &scratch) {
  std::vector<SelectOp> bytes{{SelectOp::Constant, int64_t(sizeOf(scratch.type))}};
  for (const Expr &extent : scratch.shape) {
    const std::optional<std::vector<SelectOp>> length = sizeProgram(kernel, extent);
    assert(length && "extents of a scratch are of sizes");
    llvm::append_range(bytes, *length);
    bytes.push_back({SelectOp::Mul});
  }
  return {scratch.name, std::move(bytes), unsigned(device::kBehindCounter), /*isScratch=*/true};
}

/// Counters, splits, and what <fagen/device/trace.h> lays out, for as many CTAs as there are tiles.
static std::vector<WorkspacePlan> planWorkspace(const Kernel &kernel, Instrument instrument) {
  using Op = SelectOp;
  const int64_t warps = kernel.threads / 32;
  std::vector<WorkspacePlan> parts = planCounters(kernel);
  if (const ir::Op *store = findSplitStore(kernel))
    llvm::append_range(parts, planSplits(*store));
  if (instrument == Instrument::Trace)
    parts.push_back({"trace", {{Op::Constant, device::trace_bytes(int(warps))}}, device::kRecordAlignment, true});
  if (instrument != Instrument::None) {
    std::vector<Op> bytes = countCtas(kernel);
    bytes.push_back({Op::Constant, warps * int64_t(sizeof(device::WarpRecord))});
    bytes.push_back({Op::Mul});
    parts.push_back({"stages", std::move(bytes), device::kRecordAlignment, true});
  }
  if (const Buffer *scratch = kernel.scratchTensor())
    parts.push_back(planScratch(kernel, *scratch));
  return parts;
}

static LaunchPlan planLaunch(const Kernel &kernel, std::vector<OpPlan> ops) {
  return {kernel.symbol,         kernel.threads, kernel.sharedBytes, std::move(ops), {kernel.grid, kernel.packsHeads()},
          awaitsLaunches(kernel)};
}

VariantPlan fagen::buildPlan(const Program &program, KernelText text, Instrument instrument) {
  const Kernel &kernel = *program.kernels.front();
  VariantPlan plan;
  plan.sourcePath = fmt::format("{}/{}.cu", kernel.target, program.name);
  plan.alignment = vectorBytesOf(kernel); // what one access takes
  for (const std::unique_ptr<Kernel> &each : program.kernels)
    plan.launches.push_back(planLaunch(*each, std::move(text.ops[each.get()])));
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Shared || (buffer->space == Space::Fragment && text.registers.contains(buffer.get())))
      plan.buffers.push_back(planBuffer(*buffer));
  for (const LedgerEntry &entry : kernel.ledger)
    plan.barriers.push_back({entry.site, entry.what, entry.covers});
  if (std::optional<llvm::json::Object> recipe = programPlan(program)) {
    plan.recipe = std::make_shared<llvm::json::Object>(std::move(*recipe));
  } else {
    plan.workspace = planWorkspace(kernel, instrument);
    plan.sharedTiles = countSharedTiles(kernel);
    plan.maps = planMaps(kernel);
    plan.keyTiles = planKeyTiles(kernel);
  }
  const ResourceEstimate estimate = estimateResources(kernel, kernel.sharedBytes, *lookupTarget(kernel.target));
  plan.estimates = {estimate.registers, estimate.ctasPerSm, estimate.limit};
  return plan;
}

std::string fagen::nameOf(const GridPlan &grid) { return (grid.packsHeads ? "packed_" : "") + wordOf(grid).str(); }

std::string fagen::gridWordOf(const VariantPlan &plan, const LaunchPlan &launch) {
  return plan.recipe ? "recipe" : nameOf(launch.grid);
}

static std::string gridText(const GridPlan &grid, bool sharesSeen) {
  if (grid.unit == GridPlan::Rows)
    return "a warp for each query row";
  if (grid.unit == GridPlan::KeyTiles)
    return "before the others: warps take the key tiles of each tile of query rows in turn";
  if (grid.fillsBySplits())
    return fmt::format("as many CTAs for each tile of query rows as fill the GPU best{}",
                       sharesSeen ? " with the key tiles that its rows see" : "");
  if (grid.split && grid.split->countsKeys)
    return fmt::format("a CTA for each tile of query rows and {} keys", grid.split->number);
  if (grid.split)
    return fmt::format("{} CTAs for each tile of query rows", grid.split->number);
  if (grid.hasClusters())
    return fmt::format("a CTA for each SM, {} a cluster", grid.cluster);
  return grid.isPersistent ? "a CTA for each SM" : "a CTA for each tile of query rows";
}

/// What only a schedule of attention says.
static void printSchedule(const VariantPlan &plan, llvm::raw_ostream &os) {
  const Variant &variant = *plan.variant;
  const Schedule &schedule = variant.schedule;
  const LaunchPlan &launch = plan.launches.front();
  os << fmt::format("{} for {}{}\n", variant.name, variant.target->name.str(),
                    schedule.implicit    ? ", only for unaligned tensors"
                    : variant.dispatched ? ""
                                         : ", by name only");
  os << fmt::format("  tile {} x {}, {} warps: {} over rows x {} over keys; {} threads; tensors aligned to {} B\n",
                    schedule.tileRows, schedule.tileKeys, schedule.warps, schedule.rowWarps, schedule.keyWarps,
                    launch.threads, plan.alignment);
}

static void printTensors(const VariantPlan &plan, llvm::raw_ostream &os) {
  os << fmt::format("{} for {}, a program\n", plan.variant->name, plan.variant->target->name.str());
  for (const llvm::json::Value &value : *plan.recipe->getArray("buffers")) {
    const llvm::json::Object &buffer = *value.getAsObject();
    os << fmt::format("  tensor   {:<10} {}{}\n", buffer.getString("name")->str(), buffer.getString("declared")->str(),
                      buffer.get("written") ? ", written" : "");
  }
}

static void printVariant(const VariantPlan &plan, llvm::raw_ostream &os) {
  const Variant &variant = *plan.variant;
  const LaunchPlan &launch = plan.launches.front();
  plan.recipe ? printTensors(plan, os) : printSchedule(plan, os);
  for (const BufferPlan &buffer : plan.buffers) {
    const std::string shape = fmt::format("{}{} x {} {}", buffer.stages > 1 ? fmt::format("{} of ", buffer.stages) : "",
                                          buffer.rows, buffer.columns, buffer.type);
    if (buffer.space == ir::Space::Shared)
      os << fmt::format("  shared   {:<10} {:>6} {:>7} B  {}, {}\n", buffer.name, buffer.offset, buffer.bytes, shape,
                        buffer.layout);
    else
      os << fmt::format("  fragment {:<10}        {:>7}    {} a warp\n", buffer.name, "", shape);
  }
  os << toText(plan.keyTiles);
  for (const LaunchPlan &each : plan.launches)
    if (plan.launches.size() > 1 || variant.schedule.isSplit())
      os << fmt::format("  launch   {}, {} threads, {}\n", each.symbol, each.threads,
                        plan.recipe ? "as many CTAs as its grid says" : gridText(each.grid, !plan.sharedTiles.empty()));
  os << fmt::format("  shared   total             {:>7} B of {} B\n", launch.sharedBytes,
                    variant.target->sharedPerBlock);
  for (const BarrierPlan &barrier : plan.barriers)
    os << fmt::format("  site {:>3} {:<14} {}\n", barrier.site, barrier.what,
                      barrier.covers.empty() ? "in the middle of others' chains" : barrier.covers);
  if (!plan.recipe)
    os << fmt::format("  estimate {} registers, {} CTAs an SM (limited by {})\n", plan.estimates.registers,
                      plan.estimates.ctasPerSm, plan.estimates.limit);
  os << '\n';
}

void fagen::printPlan(const KernelPlan &plan, llvm::raw_ostream &os) {
  for (const VariantPlan &variant : plan.variants)
    printVariant(variant, os);
  for (const std::string &remark : plan.kernel->remarks)
    os << "dropped: " << remark << '\n';
}
