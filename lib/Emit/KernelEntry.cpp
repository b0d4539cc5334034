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
  return kernel.grid.hasClusters() ? "kTileRows, " + clusterOf(kernel) : "kTileRows";
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
  return OpEmitter(kernel, divisors, points, out, opsOfText).expression(value);
}

/// One tile after the other, by one thread that loads or by whole warps, which therefore say their group: `body` writes
/// what is done with each. CTAs take them in turn, or go on with `next`, which the body leaves.
void KernelEmitter::emitTurns(bool isLoading, llvm::function_ref<void()> body) {
  const bool isFetched = !sections.handover.empty(), areLanes = isLoading && judgesTiles();
  OpEmitter emitter(kernel, divisors, points, out, opsOfText);
  const Braces scope(out, "}", "for (int tile = {}, turn = 0, base = 0; tile < tile_count<{}>(params); {}++turn) {{",
                     emitter.tileOf("ptx::cta_index()", "params"), tileArguments(),
                     isFetched ? "" : "tile += ptx::cta_count(), ");
  if (isInstrumented())
    line(out, "{}clock.count_tile();", isLoading ? "" : "r.");
  line(out, "const Cta cta = cta_at(params{}, {}, tile, turn, base);", formArgument(), isLoading ? "0" : "group");
  if (areLanes) { // the others only judge tiles, and go on with the first one's next
    if (isFetched)
      line(out, "int handed = 0;");
    const Braces ofFirst(out, "}", "if (is_first) {{");
    body();
    if (isFetched)
      line(out, "handed = next;");
  } else {
    body();
  }
  line(out, "base += {};", expressionOf(turns->step()));
  if (isFetched)
    line(out, "tile = {};", areLanes ? "of_first_lane(handed)" : "next");
}

/// What the thread that loads does after the first barrier.
void KernelEmitter::emitCopies(OpEmitter &emitter, llvm::ArrayRef<const Op *> ops, const std::string &params) {
  const char *const byOne = turns && judgesTiles() ? "if (is_first)\n  " : ""; // others judge, and leave no record
  if (isInstrumented())
    line(out, "{}clock.mark({}, Stage::kBarrierWait);", byOne, params);
  emitter.emitBlock(turns ? ops.drop_back() : ops);
  if (turns)
    emitTurns(/*isLoading=*/true, [&] { emitter.emitBlock(pointersTo(ops.back()->body.ops)); });
  if (isInstrumented())
    line(out, "{}clock.stop({});", byOne, params);
}

/// One thread works on both sides of the first barrier; at the second one, if there is one, all meet again
/// (findBeyondOneThread). Where tiles are judged, its warp goes on with it.
void KernelEmitter::emitLoad() {
  const Points loadPoints(*load);
  line(out, "/// Role load: one thread makes the mbarriers, then copies Q and, tile by tile, K and V.");
  const Braces scope(out, "}\n", "__device__ __forceinline__ void load(const {}) {{",
                     turns ? std::string("MappedAttentionParams &params") + formParameter() : "Cta &cta");
  OpEmitter emitter(kernel, divisors, loadPoints, out, opsOfText, load),
      plain(kernel, divisors, loadPoints, out, opsOfText, load); // of all threads
  const std::string params = turns ? "params" : "cta.params";
  if (isInstrumented()) {
    line(out, "ThreadClock<{}> clock;\nclock.start();", clockArguments());
    emitter.markStages({"clock", params});
  }
  const llvm::SmallVector<const Op *, 16> ops = pointersTo(load->body.ops);
  auto isBarrier = [](const Op *op) { return op->kind == OpKind::Barrier; };
  const auto *const first = llvm::find_if(ops, isBarrier), *const last = std::find_if(first + 1, ops.end(), isBarrier);
  {
    const Braces byOne(out, "}", "const bool is_first = ptx::thread_index() == 0;\nif (is_first) {{");
    if (turns)
      line(out, "const Cta cta = cta_at(params{}, 0, 0, {}, 0);", formArgument(), judgesTiles() ? -1 : 0);
    emitter.emitBlock({ops.begin(), first});
  }
  plain.emitBlock({*first});
  const bool areLanes = turns && judgesTiles();
  if (last == ops.end()) {
    line(out, "if ({})\n  return;", areLanes ? "ptx::warp_index() != 0" : "!is_first");
    return emitCopies(emitter, {first + 1, last}, params);
  }
  {
    const Braces byOne(out, "}", "if ({}) {{", areLanes ? "ptx::warp_index() == 0" : "is_first");
    emitCopies(emitter, {first + 1, last}, params);
  }
  plain.emitBlock({*last});
}

/// `atEnd` writes what no op says, after the ops.
void KernelEmitter::emitFunction(const Function &function, llvm::ArrayRef<const Op *> ops,
                                 llvm::function_ref<void(OpEmitter &)> atEnd) {
  line(out, "/// {}", function.summary);
  if (function.isSampled)
    line(out, "template <bool kSampled>");
  const Braces scope(out, "}\n", "__device__ __forceinline__ void {}(const Cta &cta, Registers &r{}) {{", function.name,
                     function.parameters);
  OpEmitter emitter(kernel, divisors, points, out, opsOfText, load ? &math : nullptr);
  if (function.part == Part::Epilogue) {
    emitter.enterEpilogue();
    line(out, "const {} place = {}(cta.params{});", placeType(), locate(), turns ? ", cta.tile" : "");
  }
  if (function.isSampled)
    emitter.sampleStages();
  else if (isInstrumented())
    emitter.markStages();
  if (function.part == Part::Prologue)
    for (const Buffer *ring : runningRings()) // from the first row on
      line(out,
           "r.next_{0} = own_source<TileShare<kThreads, kVectorBytes, {1}>>(cta.{0}, cta.params.{0}_stride[2], 0);",
           ring->name, typeOfTile(ring->name));
  emitter.emitBlock(ops);
  if (atEnd)
    atEnd(emitter);
}

/// Of a loop that may run often; clocks are read where each step has one text.
std::optional<StepApart> KernelEmitter::stepApart(LoopOp<const Op> loop) const {
  std::optional<StepApart> step = isInstrumented() ? std::nullopt : asStepApart(*loop);
  return step && !runsAtMostOnce(loop) ? std::move(step) : std::nullopt;
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

void KernelEmitter::emitTile() {
  line(out, "prologue(cta, r);");
  emitLoops();
  line(out, "epilogue(cta, r);");
}

/// Of a kernel whose CTAs take one tile after the other.
void KernelEmitter::emitTiles() {
  line(out, "const int group = ptx::warp_group_index(); // 0 loads");
  emitRoles();
  OpEmitter emitter(kernel, divisors, points, out, opsOfText, &math);
  if (isInstrumented()) {
    line(out, "Registers r;\nr.clock.start();");
    emitter.markStages({"r.clock", "params"});
  }
  for (const std::unique_ptr<Op> &op : math.body.ops)
    if (op.get() != &**turns)
      emitter.emitBlock({op.get()});
    else
      emitTurns(/*isLoading=*/false, [&] {
        if (!isInstrumented())
          line(out, "Registers r;");
        emitTile();
        emitter.emitBlock(sections.handover);
      });
}

void KernelEmitter::emitEntry() {
  const Braces scope(out, "}",
                     "extern \"C\" __global__ void {}__launch_bounds__(kThreads, 1) {}(const __grid_constant__ {}) {{",
                     clusterDims(kernel), kernel.symbol,
                     isFormed() ? "FormedParams<FormParams> all" : std::string(paramsType()) + " params");
  if (isFormed())
    line(out, "const MappedAttentionParams &params = all.attention;\nconst FormParams &form = all.form;");
  if (awaitsLaunchesAtItsHead(kernel))
    line(out, "// {}\nptx::await_launches();\nptx::release_launches();", kernel.roles.front().body.ops.front()->note);
  if (turns) {
    emitTiles();
  } else {
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
    emitTile();
  }
  if (isInstrumented())
    line(out, "r.clock.stop(params);");
}

/// The launch that follows: its one op is the kernel.
void KernelEmitter::emitCombine() {
  const Op &op = *others.combine->roles.front().body.ops.front();
  line(out, "\n/// The second launch: merges the parts of each query row, a row each warp ({}).", op.location.str());
  const Braces scope(
      out, "}",
      "extern \"C\" __global__ void __launch_bounds__(32 * kCombineWarps) {}(const __grid_constant__ AttentionParams "
      "params) {{",
      others.combine->symbol);
  line(out, "const long long row_begin = static_cast<long long>(ptx::cta_index()) * kCombineWarps;");
  text.ops[others.combine].push_back(
      {out.getLine(), Points(others.combine->roles.front()).nameOf(&op), op.location.str(), 0});
  line(out, "combine_splits<Element, kHeadDimV, kVectorBytes, {}{}>(params, row_begin + ptx::warp_index());",
       CombineOp(op).lse().buffer != nullptr, unitOf(op).argument);
}
