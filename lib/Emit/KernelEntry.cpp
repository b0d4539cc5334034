// fagen: the functions of a generated kernel: roles, steps, and the entry that calls them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelEmitter.h"
#include "ProgramOps.h"

#include "splits/SharedKeys.h"

#include "fagen/IR/Patterns.h"

using namespace fagen;
using namespace fagen::ir;

/// Whether only some steps tell their stages: of loops that may run often, and do not mask each step.
bool KernelEmitter::isSampled(LoopOp<const Op> loop) const {
  bool multiplies = false, masks = false;
  for (const std::unique_ptr<Op> &op : loop->body.ops) {
    multiplies |= op->kind == OpKind::Mma || op->kind == OpKind::MmaIssue;
    masks |= isMask(*op) && !op->has(Attr::When);
  }
  return instrument == Instrument::Stages && multiplies && !masks && !runsAtMostOnce(loop) &&
         !oneStepOf(loop.variable(), loop.begin(), loop.end());
}

/// Tiles in the order of their rows, or the longest first when later rows have more key tiles.
std::string KernelEmitter::locate() const {
  if (turns)
    return "locate_tile<" + tileArguments() + ">"; // whose numbers are in order already
  const std::string order = seesMoreInLaterRows(kernel) ? ", TileOrder::kLastTileFirst"
                            : kernel.packsHeads()       ? ", TileOrder::kFirstTileFirst"
                                                        : "";
  return fmt::format("locate_{}{}{}>", isSplit() ? "split<kTileRows, kTileKeys, kSplitKeys" : "cta<kTileRows", order,
                     kernel.packsHeads() ? ", Rows::kOfGroup" : "");
}

/// By which tiles of query rows are counted.
std::string KernelEmitter::tileArguments() const {
  return kernel.grid.hasClusters() ? "kTileRows, kCluster" : "kTileRows";
}

const Op *fagen::findBeyondOneThread(const Role &load) {
  unsigned barriers = 0;
  for (const std::unique_ptr<Op> &op : load.body.ops) {
    const bool isBarrier = op->kind == OpKind::Barrier;
    if (op->kind == OpKind::AwaitLaunches && op == load.body.ops.front()) // of the kernel
      continue;
    if (barriers == 2 || !(isBarrier || isByFirstThread(*op)))
      return op.get();
    barriers += isBarrier;
  }
  return nullptr;
}

/// As inside a generated function.
std::string KernelEmitter::expressionOf(const Expr &value) {
  return OpEmitter(kernel, divisors, points, out, text.ops).expression(value);
}

/// The other lanes of the warp only judge tiles, and go on with the first one's next.
void KernelEmitter::emitByFirstLane(bool isFetched, llvm::function_ref<void()> body) {
  if (isFetched)
    line(out, "int handed = 0;");
  line(out, "if (is_first) {{");
  {
    auto scope = out.scope();
    body();
    if (isFetched)
      line(out, "handed = next;");
  }
  line(out, "}}");
}

/// One tile after the other, by one thread or by whole warps, which therefore say their group: `body` writes what is
/// done with each. CTAs take them in turn, or go on with `next`, which the body leaves.
void KernelEmitter::emitTurns(Turns of, llvm::function_ref<void()> body) {
  const bool isFetched = !sections.handover.empty(), isLoading = of == Turns::Loads;
  OpEmitter emitter(kernel, divisors, points, out, text.ops);
  line(out, "for (int tile = {}, turn = 0, base = 0; tile < tile_count<{}>(params); {}++turn) {{",
       emitter.tileOf("ptx::cta_index()", "params"), tileArguments(), isFetched ? "" : "tile += ptx::cta_count(), ");
  {
    auto scope = out.scope();
    if (isInstrumented())
      line(out, "{}clock.count_tile();", isLoading ? "" : "r.");
    line(out, "const Cta cta = cta_at(params{}, {}, tile, turn, base);", formArgument(), isLoading ? "0" : "group");
    const bool areLanes = isLoading && judgesTiles();
    if (areLanes)
      emitByFirstLane(isFetched, body);
    else
      body();
    line(out, "base += {};", expressionOf(turns->step()));
    if (isFetched)
      line(out, "tile = {};", areLanes ? "of_first_lane(handed)" : "next");
  }
  line(out, "}}");
}

namespace {

/// One thread works on both sides of the first barrier; at the second one, if there is one, all meet again
/// (findBeyondOneThread).
struct LoadParts {
  std::vector<const Op *> before, after, barriers;

  explicit LoadParts(const Role &load) {
    for (const std::unique_ptr<Op> &op : load.body.ops)
      if (op->kind == OpKind::Barrier)
        barriers.push_back(op.get());
      else
        (barriers.empty() ? before : after).push_back(op.get());
  }
};

} // namespace

/// What the thread that loads does after the first barrier.
void KernelEmitter::emitCopies(OpEmitter &emitter, llvm::ArrayRef<const Op *> ops, const std::string &params) {
  const char *const byOne = turns && judgesTiles() ? "if (is_first)\n  " : ""; // others judge, and leave no record
  if (isInstrumented())
    line(out, "{}clock.mark({}, Stage::kBarrierWait);", byOne, params);
  if (!turns)
    emitter.emitBlock(ops);
  else {
    emitter.emitBlock(ops.drop_back());
    emitTurns(Turns::Loads, [&] { emitter.emitBlock(pointersTo(ops.back()->body.ops)); });
  }
  if (isInstrumented())
    line(out, "{}clock.stop({});", byOne, params);
}

void KernelEmitter::emitLoad() {
  const Points loadPoints(*load);
  line(out, "/// Role load: one thread makes the mbarriers, then copies Q and, tile by tile, K and V.");
  line(out, "__device__ __forceinline__ void load(const {}) {{",
       turns ? std::string("MappedAttentionParams &params") + formParameter() : "Cta &cta");
  {
    auto scope = out.scope();
    OpEmitter emitter(kernel, divisors, loadPoints, out, text.ops, load);
    const LoadParts parts(*load);
    const std::string params = turns ? "params" : "cta.params";
    if (isInstrumented()) {
      line(out, "ThreadClock<{}> clock;\nclock.start();", clockArguments());
      emitter.markStages({"clock", params});
    }
    line(out, "const bool is_first = ptx::thread_index() == 0;\nif (is_first) {{");
    {
      auto inner = out.scope();
      if (turns)
        line(out, "const Cta cta = cta_at(params{}, 0, 0, {}, 0);", formArgument(), judgesTiles() ? -1 : 0);
      emitter.emitBlock(parts.before);
    }
    line(out, "}}");
    OpEmitter plain(kernel, divisors, loadPoints, out, text.ops, load); // of all threads
    plain.emitBlock({parts.barriers.front()});
    const bool areLanes = turns && judgesTiles();
    if (parts.barriers.size() == 1) {
      line(out, "if ({})\n  return;", areLanes ? "ptx::warp_index() != 0" : "!is_first");
      emitCopies(emitter, parts.after, params);
    } else {
      line(out, "if ({}) {{", areLanes ? "ptx::warp_index() == 0" : "is_first");
      {
        auto inner = out.scope();
        emitCopies(emitter, parts.after, params);
      }
      line(out, "}}");
      plain.emitBlock({parts.barriers.back()});
    }
  }
  line(out, "}}\n");
}

/// Running copies begin with the first row.
void KernelEmitter::emitFirstSources() {
  for (const Buffer *ring : runningRings())
    line(out, "r.next_{0} = own_source<TileShare<kThreads, kVectorBytes, {1}>>(cta.{0}, cta.params.{0}_stride[2], 0);",
         ring->name, typeOfTile(ring->name));
}

/// `atEnd` writes what no op says, after the ops.
void KernelEmitter::emitFunction(const Function &function, llvm::ArrayRef<const Op *> ops,
                                 llvm::function_ref<void(OpEmitter &)> atEnd) {
  line(out, "/// {}", function.summary);
  if (function.isSampled)
    line(out, "template <bool kSampled>");
  line(out, "__device__ __forceinline__ void {}(const Cta &cta, Registers &r{}) {{", function.name,
       function.parameters);
  {
    auto scope = out.scope();
    OpEmitter emitter(kernel, divisors, points, out, text.ops, load ? &math : nullptr);
    if (function.part == Part::Epilogue) {
      emitter.enterEpilogue();
      line(out, "const {} place = {}(cta.params{});", placeType(), locate(), turns ? ", cta.tile" : "");
    }
    if (function.isSampled)
      emitter.sampleStages();
    else if (isInstrumented())
      emitter.markStages();
    if (function.part == Part::Prologue)
      emitFirstSources();
    emitter.emitBlock(ops);
    if (atEnd)
      atEnd(emitter);
  }
  line(out, "}}\n");
}

/// Of a loop that may run often; clocks are read where each step has one text.
std::optional<StepApart> KernelEmitter::stepApart(LoopOp<const Op> loop) const {
  return isInstrumented() || runsAtMostOnce(loop) ? std::nullopt : asStepApart(*loop);
}

void KernelEmitter::emitStep(LoopOp<const Op> loop) {
  const std::string variable = loop.variable().str();
  if (const std::optional<StepApart> step = stepApart(loop))
    return emitFunction(
        {Part::Step, nameOfStep(loop) + "s", aboutOf(loop) + ".", fmt::format(", int {}, int end", variable)}, {},
        [&](OpEmitter &emitter) { emitter.emitStepsApart(*step, variable, "", "end"); });
  emitFunction({Part::Step, nameOfStep(loop), aboutOf(loop) + ".", ", int " + variable, isSampled(loop)},
               pointersTo(loop->body.ops));
}

void KernelEmitter::emitLoops() {
  for (const auto &[loop, before] : sections.loops) {
    if (!before.empty())
      line(out, "{}(cta, r);", nameOfBefore(loop));
    const std::string variable = loop.variable().str();
    auto spell = [&](const Expr &expr) { return turns ? expressionOf(expr) : letValue(expr); };
    const std::string step = nameOfStep(loop);
    if (stepApart(loop)) {
      line(out, "{}s(cta, r, {}, {});", step, spell(loop.begin()), spell(loop.end()));
      continue;
    }
    line(out, "{}", loopHead(loop, runsAtMostOnce(loop), spell));
    if (!isSampled(loop)) {
      line(out, "  {}(cta, r, {});", step, variable);
      continue;
    }
    const std::string begin = spell(loop.begin());
    line(out, "  if (r.clock.samples({}))", begin == "0" ? variable : fmt::format("{} - {}", variable, begin));
    line(out, "    {}<true>(cta, r, {});\n  else\n    {}<false>(cta, r, {});", step, variable, step, variable);
  }
}

/// Registers go from those who load to those who compute.
void KernelEmitter::emitRoles() {
  const bool areHandedOver = measureOf(kernel, Measure::MathRegisters).has_value();
  line(out, "if (group == 0) {{\n{}  load({});\n  return;\n}}",
       areHandedOver ? "  ptx::setmaxnreg_dec<kLoadRegisters>();\n" : "",
       turns ? std::string("params") + formArgument() : "cta");
  if (areHandedOver)
    line(out, "ptx::setmaxnreg_inc<kMathRegisters>();");
}

/// The entry of a kernel whose CTAs take one tile after the other.
void KernelEmitter::emitPersistentEntry() {
  auto scope = out.scope();
  line(out, "const int group = ptx::warp_group_index(); // 0 loads");
  emitRoles();
  OpEmitter emitter(kernel, divisors, points, out, text.ops, &math);
  if (isInstrumented()) {
    line(out, "Registers r;\nr.clock.start();");
    emitter.markStages({"r.clock", "params"});
  }
  for (const std::unique_ptr<Op> &op : math.body.ops)
    if (op.get() != &**turns)
      emitter.emitBlock({op.get()});
    else
      emitTurns(Turns::Multiplies, [&] {
        line(out, "{}prologue(cta, r);", isInstrumented() ? "" : "Registers r;\n");
        emitLoops();
        line(out, "epilogue(cta, r);");
        emitter.emitBlock(sections.handover);
      });
  if (isInstrumented())
    line(out, "r.clock.stop(params);");
}

void KernelEmitter::emitEntry() {
  line(out, "extern \"C\" __global__ void {}__launch_bounds__(kThreads, 1) {}(const __grid_constant__ {}) {{",
       kernel.grid.hasClusters() ? "__cluster_dims__(kCluster, 1, 1) " : "", kernel.symbol,
       isFormed() ? "FormedParams<FormParams> all" : std::string(paramsType()) + " params");
  if (isFormed())
    line(out, "  const MappedAttentionParams &params = all.attention;\n  const FormParams &form = all.form;");
  if (awaitsLaunchesAtItsHead(kernel))
    line(out, "  // {}\n  ptx::await_launches();\n  ptx::release_launches();",
         kernel.roles.front().body.ops.front()->note);
  if (turns)
    emitPersistentEntry();
  else
    emitEntryOfOneTile();
  line(out, "}}");
}

void KernelEmitter::emitEntryOfOneTile() {
  auto scope = out.scope();
  if (isInstrumented())
    line(out, "Registers r;\nr.clock.start();");
  line(out, "{}{} place = {}(params);", sharedKeys(kernel) ? "" : "const ", placeType(), locate());
  if (load)
    line(out, "const int group = ptx::warp_group_index(); // 0 loads");
  emitLets();
  emitValueOfCta("const Cta cta");
  if (load)
    emitRoles();
  line(out, "{}", isInstrumented() ? "r.clock.mark(params, Stage::kPrologue);" : "Registers r;");
  line(out, "prologue(cta, r);");
  emitLoops();
  line(out, "epilogue(cta, r);");
  if (isInstrumented())
    line(out, "r.clock.stop(params);");
}

/// The launch that follows: its one op is the kernel.
void KernelEmitter::emitCombine() {
  const Op &op = *others.combine->roles.front().body.ops.front();
  line(out, "\n/// The second launch: merges the parts of each query row, a row each warp ({}).", op.location.str());
  line(out,
       "extern \"C\" __global__ void __launch_bounds__(32 * kCombineWarps) {}(const __grid_constant__ AttentionParams "
       "params) {{",
       others.combine->symbol);
  {
    auto scope = out.scope();
    line(out, "const long long row_begin = static_cast<long long>(ptx::cta_index()) * kCombineWarps;");
    text.combineOps.push_back({out.getLine(), Points(others.combine->roles.front()).nameOf(&op), op.location.str(), 0});
    line(out, "combine_splits<Element, kHeadDimV, kVectorBytes, {}{}>(params, row_begin + ptx::warp_index());",
         CombineOp(op).lse().buffer != nullptr, unitOf(op).argument);
  }
  line(out, "}}");
}
