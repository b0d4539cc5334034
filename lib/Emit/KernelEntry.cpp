// fagen: the functions of a generated kernel: roles, steps, and the entry that calls them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KernelEmitter.h"

#include "LoopText.h"
#include "splits/SharedKeys.h"

#include "fagen/IR/Patterns.h"

#include "llvm/Support/ErrorHandling.h"

using namespace fagen;
using namespace fagen::ir;

static std::optional<ConstMask> maskIn(const Op &loop) {
  auto mask = llvm::find_if(loop.body.ops, [](const auto &op) { return isMask(*op); });
  return mask == loop.body.ops.end() ? std::nullopt : asMask(std::as_const(**mask));
}

/// Whether every step masks, not only those of the last tiles.
static bool isMasked(const Op &loop) {
  const std::optional<ConstMask> mask = maskIn(loop);
  return mask && !mask->when();
}

/// Whether it has scores of the first keys of a tile alone.
static bool isOfPart(const Op &loop) {
  bool found = false;
  forEach<ConvertOp>(loop.body, [&](ConvertOp<const Op> convert) {
    found |= convert.s().buffer->columns < convert.p().buffer->columns;
  });
  return found;
}

/// Whether step j has key tile j from the end.
bool KernelEmitter::countsBack() const {
  return llvm::any_of(sections.loops, [this](const Sections::Steps &steps) {
    const std::optional<ConstMask> mask = maskIn(*steps.loop);
    return mask && direction(expand(kernel, mask->key()), steps.loop.variable()) == Direction::NotIncreasing;
  });
}

KernelEmitter::Products KernelEmitter::productsOf(const Op &loop) const {
  Products found;
  walk(loop.body, [&](const Op &op) {
    if (op.kind == OpKind::Mma || op.kind == OpKind::MmaIssue)
      (isOfScores(kernel, op) ? found.hasScores : found.hasResults) = true;
  });
  return found;
}

llvm::StringRef KernelEmitter::summaryOf(LoopOp<const Op> loop) const {
  const Products products = productsOf(*loop);
  if (products.hasScores && !products.hasResults)
    return isOfPart(*loop) ? "The first step where rows of the group see the first half of its keys alone."
                           : "Scores and softmax of the first step: no P V runs under them yet.";
  if (products.hasResults && !products.hasScores)
    return "P V of the last step.";
  if (!products.hasScores) {
    const bool takesTurn = llvm::any_of(loop->body.ops, [](const auto &op) { return op->kind == OpKind::PassTurn; });
    return takesTurn ? "The group's turn at key tile j, of which its rows see nothing."
                     : "Key tile j, of which the rows of the group see nothing.";
  }
  const bool isBack = countsBack();
  if (!maskIn(*loop))
    return isBack ? "Key tile j from the end, which every row sees whole." : "Key tile j, which every row sees whole.";
  if (isMasked(*loop))
    return isBack ? "Key tile j from the end, of which some rows see only a part."
                  : "Key tile j, of which some rows see only a part.";
  return "Key tile j.";
}

/// Whether only some steps tell their stages: of the loop over whole tiles.
bool KernelEmitter::isSampled(LoopOp<const Op> loop) const {
  const Products products = productsOf(*loop);
  return instrument == Instrument::Stages && products.hasScores && products.hasResults && !runsAtMostOnce(loop) &&
         !isMasked(*loop);
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

/// Whether the first thread of a role executes the op for all of them.
static bool isByOneThread(const Op &op) {
  switch (op.kind) {
  case OpKind::MbarrierInit:
  case OpKind::FetchTile:
  case OpKind::HandTile:
  case OpKind::Fence:
    return true;
  case OpKind::CopyIssue:
    return isBulkCopy(op);
  case OpKind::Arrive:
  case OpKind::Wait:
  case OpKind::AwaitLaunches:
    return actorOf(op) == Actor::Role;
  case OpKind::Loop:
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isByOneThread(*inner); });
  default:
    return false;
  }
}

const Op *fagen::findBeyondOneThread(const Role &load) {
  unsigned barriers = 0;
  for (const std::unique_ptr<Op> &op : load.body.ops) {
    const bool isBarrier = op->kind == OpKind::Barrier;
    if (op->kind == OpKind::AwaitLaunches && op == load.body.ops.front()) // of the kernel
      continue;
    if (barriers == 2 || !(isBarrier || isByOneThread(*op)))
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

/// What the thread that loads does behind the first barrier.
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

/// `behind` writes what no op says.
void KernelEmitter::emitFunction(const Function &function, llvm::ArrayRef<const Op *> ops,
                                 llvm::function_ref<void(OpEmitter &)> behind) {
  line(out, "/// {}", function.summary.str());
  if (function.isSampled)
    line(out, "template <bool kSampled>");
  line(out, "__device__ __forceinline__ {} {}(const Cta &cta, Registers &r{}) {{", function.result, function.name,
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
    if (behind)
      behind(emitter);
  }
  line(out, "}}\n");
}

/// Of a loop that may run often; clocks are read where each step has one text.
std::optional<StepApart> KernelEmitter::stepApart(LoopOp<const Op> loop) const {
  return isInstrumented() || runsAtMostOnce(loop) ? std::nullopt : asStepApart(*loop);
}

/// The step in three functions: up to its terms, what is rare, and the rest.
void KernelEmitter::emitStepsApart(LoopOp<const Op> loop, const StepApart &step) {
  const std::string name = nameOfStep(loop), parameters = (", int " + loop.variable()).str();
  emitFunction({Part::Step, name, "Interior step, up to its terms: whether a row has outgrown its reference maximum.",
                parameters, false, "bool"},
               {}, [&](OpEmitter &emitter) {
                 emitter.emitOutgrown(step);
                 line(out, "return is_outgrown;");
               });
  emitFunction({Part::Step, name + "_settled",
                "Interior step, rare path: some row has outgrown its reference maximum; rescale and continue.",
                parameters},
               {}, [&](OpEmitter &emitter) { emitter.emitSettled(step); });
  emitFunction({Part::Step, name + "_end", "Interior step, the rest: sums and products of the terms.", parameters}, {},
               [&](OpEmitter &emitter) { emitter.emitSettledEnd(step); });
  emitLoopApart(loop, *step.output);
}

/// Steps of which none is rare make a loop of their own. A vote keeps the two apart: ptxas makes one loop of two that
/// begin at the same place.
void KernelEmitter::emitLoopApart(LoopOp<const Op> loop, const Op &output) {
  const std::string step = nameOfStep(loop), j = loop.variable().str();
  line(out, "/// {}", summaryOf(loop).str());
  line(out, "__device__ __forceinline__ void {}s(const Cta &cta, Registers &r, int {}, int end) {{", step, j);
  {
    auto scope = out.scope();
    line(out, "for (; ptx::any({0} < end); ++{0}) {{ // a vote: ptxas keeps what is rare out of the loop inside", j);
    {
      auto turn = out.scope();
      line(out, "for (;; ++{0}) {{\n  if ({0} >= end)\n    return;\n  if ({1}(cta, r, {0}))\n    break;", j, step);
      line(out, "  {0}_end(cta, r, {1});\n}}\n{0}_settled(cta, r, {1});\n{0}_end(cta, r, {1});", step, j);
      OpEmitter(kernel, divisors, points, out, text.ops, &math).emitSettledOutput(output);
    }
    line(out, "}}");
  }
  line(out, "}}\n");
}

void KernelEmitter::emitStep(LoopOp<const Op> loop) {
  if (const std::optional<StepApart> step = stepApart(loop))
    return emitStepsApart(loop, *step);
  std::vector<const Op *> ops;
  for (const std::unique_ptr<Op> &op : loop->body.ops)
    ops.push_back(op.get());
  emitFunction({Part::Step, nameOfStep(loop), summaryOf(loop), (", int " + loop.variable()).str(), isSampled(loop)},
               ops);
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
    line(out, "{}", loopHead(variable, loop.begin(), loop.end(), runsAtMostOnce(loop), spell));
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
  line(out, "const Cta cta{{params,");
  line(out, "{}              ptx::shared_storage<SharedStorage>(),", isFormed() ? "              form,\n" : "");
  if (load) {
    line(out, "              place.batch,\n              place.head,\n              place.kv_head,");
  } else {
    for (const Matrix &source : sources()) {
      const std::string &tensor = source.tensor().param, first = letValue(firstOf(source, 2));
      line(out, "              head_rows<{4}>(params.{0}, params.{0}_stride, {1}, {2}){3},", tensor,
           letValue(source.at()[0]), letValue(firstOf(source, 1)),
           first == "0" ? "" : fmt::format(" + {} * params.{}_stride[2]", first, tensor),
           spellElement(source.tensor().type).str());
    }
  }
  std::string rest = "place.row_begin";
  if (load)
    rest += ",\n              group_row";
  if (!load && mapsNamePlaces())
    rest += ",\n              place.batch,\n              place.head,\n              place.kv_head";
  if (isSplit())
    rest += ",\n              place.split_begin,\n              place.split_keys";
  line(out, "              {}{}}};", rest, namesOfLets(",\n              "));
  if (load)
    emitRoles();
  line(out, "{}", isInstrumented() ? "r.clock.mark(params, Stage::kPrologue);" : "Registers r;");
  line(out, "prologue(cta, r);");
  emitLoops();
  line(out, "epilogue(cta, r);");
  if (isInstrumented())
    line(out, "r.clock.stop(params);");
}

/// The launch behind: its one op is the kernel.
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
