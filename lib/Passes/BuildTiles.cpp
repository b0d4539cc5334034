// fagen: pass build-tiles: the attention algorithm over tiles, as plain as it can be written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One loop over key tiles: copy K(j) and V(j), S = Q K^T, mask, online softmax, O += P V; then O / l. Nothing is ahead
// of anything and every tile is masked: split-mask-loops and pipeline-loads change that. All backends are the same
// sequence; they differ in where S and P live: fragments (mma_sync), one shared tile (scalar), or a shared tile each,
// since nobody knows a wmma fragment's layout. Then P V too is stored and read again to be added to O. Where heads are
// packed, rows of Q and O are numbered over all heads that share a K/V head, those of one query side by side: K and V
// are read once for all of them, and causal masks still grow with the row.
// A form says what scores become and which keys a row sees (fagen/Form/Form.h): its score is a map before the mask, but
// for what joins the factor of exp2; its sink joins the sums at the end.
// Bulk copies (with wgmma) signal an mbarrier each; who waits there is decided when there are roles.

#include "fagen/IR/LibraryConstants.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/IR/RunValues.h"
#include "fagen/Passes/Passes.h"
#include "form/FormBuilder.h"
#include "tiles/CommonKeyEnd.h"
#include "tiles/Tensors.h"

#include "fagen/Spec/Spec.h"
#include "fagen/Target/MmaInstrs.h"

#include "fagen/device/tile/layout.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

namespace {

class TileBuilder {
public:
  TileBuilder(Kernel &kernel, const Variant &variant, const Arranged &arranged)
      : kernel(kernel), problem(variant.problem), schedule(variant.schedule), variant(variant), arranged(arranged),
        family(mmaFamily(schedule.mma)), isScalar(!family.isCollective),
        isWmma(family.isCollective && !family.keepsResults), isBulk(schedule.copy == Copy::Tma),
        reduceShared(schedule.reduce == Reduce::Shared), form(kernel, variant), tensors(kernel, variant),
        element(elementOfQueries(problem)), ofKeys(elementOfKeys(problem)),
        result(problem.accum == DType::F16 ? ElementType::F16 : ElementType::F32) {}

  /// The second launch of a split kernel: all the splits' rows become O and LSE.
  void buildCombine() {
    tensors.addOutput();
    addParts();
    kernel.roles.push_back({"all", 0, device::kCombineWarps, {}});
    Builder builder(kernel.roles.front().body);
    at(builder, "split");
    const Expr rows = variable(RunValue::SeqQ) * variable(RunValue::Heads) *
                      variable(RunValue::Batch); // of all heads, one after the other
    builder.add(makeCombine({.o = {tensors.o.tensor, {}},
                             .lse = {tensors.lse.tensor, {}},
                             .parts = {parts, {}},
                             .row = variable(RunValue::RowBegin),
                             .limit = rows,
                             .unit = form.rowUnit()}));
  }

  void build() {
    addTensors();
    addTiles();
    addFragments();
    addLets();
    form.declare(*s, *m);
    tensors.addViews();
    kernel.roles.push_back({"all", 0, schedule.warps, {}});
    Builder builder(kernel.roles.front().body);
    buildPrologue(builder);
    Op &loop = builder.loop("j", constant(0), variable(kernel.lets.back().name), [&] { buildStep(builder); });
    LoopOp(loop).setAbout("Key tile j");
    buildEpilogue(builder);
  }

private:
  Buffer *add(llvm::StringRef name, Space space, ElementType type, const Count &rows, const Count &columns,
              llvm::StringRef key, const Count &stages = 1) {
    Buffer buffer;
    buffer.name = name.str();
    buffer.space = space;
    buffer.type = type;
    buffer.rows = rows;
    buffer.columns = columns;
    buffer.stages = stages;
    buffer.location = schedule.locationOf(key);
    return &kernel.addBuffer(std::move(buffer));
  }

  Count count(Measure measure) const { return countOf(kernel, variable(measure)); }

  void addTensors() {
    tensors.addInputs();
    if (schedule.isSplit())
      addParts();
    if (!isMergedLater(schedule))
      tensors.addOutput();
  }

  /// What splits leave for the second launch, in the workspace.
  void addParts() {
    const Expr columns = variable(Measure::HeadDimV) + variable(LibraryConstant::SplitExtra);
    parts = add("parts", Space::Global, ElementType::F32, 0, countOf(kernel, columns), "split");
  }

  void addTiles() {
    const Count rows = count(Measure::TileRows), keys = count(Measure::TileKeys), stages = count(Measure::Stages);
    q = add("q", Space::Shared, element, rows, count(Measure::HeadDimQK), "tile");
    k = add("k", Space::Shared, ofKeys, keys, count(Measure::HeadDimQK), "stages", stages);
    v = add("v", Space::Shared, ofKeys, keys, count(Measure::HeadDimV), "stages", stages);
    k->isRing = v->isRing = true;
    if (arranged.isQueryOverRing)
      q->overlays = k;
    if (schedule.keyWarps > 1) {
      partial = add("partial", Space::Shared, ElementType::F32,
                    countOf(kernel, variable(Measure::KeyWarps) * variable(Measure::TileRows)),
                    countOf(kernel, variable(Measure::HeadDimV) + variable(LibraryConstant::PartialExtra)), "warps");
      partial->overlays = k;
    }
    if (isBulk)
      addMbarriers();
    if (isScalar && reduceShared)
      scratch = add("scratch", Space::Shared, ElementType::F32, rows, 32, "reduce");
  }

  /// Whether products widen K and V.
  bool widens() const { return ofKeys != element; }

  void addMbarriers() {
    qFull = add("q_full", Space::Shared, ElementType::MBarrier, 1, 1, "copy");
    kFull = add("k_full", Space::Shared, ElementType::MBarrier, 1, 1, "copy", count(Measure::Stages));
    vFull = add("v_full", Space::Shared, ElementType::MBarrier, 1, 1, "copy", count(Measure::Stages));
    kFull->isRing = vFull->isRing = true;
    q->guard = {.full = qFull, .filledBy = {}};
    k->guard = {.full = kFull, .filledBy = {}};
    v->guard = {.full = vFull, .filledBy = {}};
  }

  void addFragments() {
    const Count rows = count(Measure::WarpRows), keys = count(Measure::WarpKeys);
    if (schedule.qIn == OperandPlace::Registers) {
      qFragment = add("q_fragment", Space::Fragment, element, rows, count(Measure::HeadDimQK), "q_in");
      qFragment->isInQuads = widens();
    }
    if (isScalar) {
      s = add("s", Space::Shared, ElementType::F32, count(Measure::TileRows), count(Measure::TileKeys), "mma");
      p = s;
    } else if (isWmma) {
      addResults();
    } else {
      s = add("s", Space::Fragment, ElementType::F32, rows, keys, "mma");
      p = add("p", Space::Fragment, element, rows, keys, "mma");
    }
    o = add("o", Space::Fragment, ElementType::F32, rows, count(Measure::HeadDimV), "mma");
    if (widens()) {
      o->isInQuads = true;
      oInPairs = add(kernel.freshName("o_in_pairs"), Space::Fragment, ElementType::F32, rows, o->columns, "mma");
    }
    m = add("m", Space::Fragment, ElementType::F32, rows, 1, "mma");
    mNew = add("m_new", Space::Fragment, ElementType::F32, rows, 1, "mma");
    l = add("l", Space::Fragment, ElementType::F32, rows, 1, "mma");
  }

  /// Where P and P V have the shape and type of S they take its place, one of them.
  void addResults() {
    const Count rows = count(Measure::TileRows), keys = count(Measure::TileKeys);
    s = add("s", Space::Shared, result, rows, keys, "mma");
    p = result == element ? s : add("p", Space::Shared, element, rows, keys, "mma");
    pv = p != s && schedule.tileKeys == problem.headDimV
             ? s
             : add("pv", Space::Shared, result, rows, count(Measure::HeadDimV), "mma");
  }

  /// The keys that any row of the tile sees are [0, key_end); split-mask-loops narrows this by the mask.
  void addLets() {
    kernel.lets.push_back({"key_tiles", ceilDiv(keys(), variable(Measure::TileKeys)), "every key tile"});
  }

  /// Of a split the keys are numbered from its first one.
  Expr keys() const { return variable(schedule.isSplit() ? RunValue::SplitKeys : RunValue::SeqKv); }

  /// Where a copy finds the first key of tile j: boxes are of the whole head, pointers of the split.
  Expr keyRow() const {
    const Expr row = variable("j") * variable(Measure::TileKeys);
    return isBulk && schedule.isSplit() ? variable(RunValue::SplitBegin) + row : row;
  }

  void at(Builder &builder, llvm::StringRef key) { builder.setLocation(schedule.locationOf(key)); }
  void place(Builder &builder, PlaceName name) { builder.add(makePlace({.name = name})); }

  CopyKind copyKind() const {
    return isBulk ? CopyKind::Bulk : schedule.copy == Copy::CpAsync ? CopyKind::CpAsync : CopyKind::LdSt;
  }

  /// `full` is null but for bulk copies.
  void copy(Builder &builder, Buffer *target, Expr position, const Global &source, Expr row, Buffer *full,
            CacheHint hint) {
    at(builder, "copy");
    builder.add(makeCopyIssue({.dst = {target, position},
                               .src = {source.view, {}},
                               .full = {full, full ? position : Expr()},
                               .kind = copyKind(),
                               .row = row,
                               .hint = full ? std::optional(hint) : std::nullopt}));
  }

  void buildPrologue(Builder &builder) {
    copy(builder, q, {}, tensors.q, variable(RunValue::RowBegin), qFull,
         CacheHint::EvictFirst); // no other CTA reads it
    if (qFragment) {
      at(builder, "q_in");
      builder.add(makeLoadFragment({.dst = {qFragment, {}}, .src = {q, {}}}));
    }
    at(builder, "mma");
    builder.add(makeMap({.dst = {o, {}}, .value = real(0)}));
    builder.add(makeMap({.dst = {l, {}}, .value = real(0)}));
    const float least = takesMaximum() ? -std::numeric_limits<float>::infinity() : 0;
    builder.add(makeMap({.dst = {m, {}}, .value = real(least)}));
    form.rowReads().fill(builder);
  }

  /// Where scores are bounded m stays 0.
  bool takesMaximum() const { return schedule.rescale != RescalePolicy::None; }

  /// By wmma the results' type says what is summed in; accumulators of mma_sync are f32 all the same.
  void multiply(Builder &builder, MmaForm form, Buffer *acc, Buffer *a, Operand b, bool accumulate) {
    const bool sumsF16 = family.keepsResults && !family.isAsynchronous && problem.accum == DType::F16;
    builder.add(makeMma({.acc = {acc, {}},
                         .a = {a, {}},
                         .b = b,
                         .form = form,
                         .accumulate = accumulate,
                         .sums = sumsF16 ? std::optional(SumType::F16) : std::nullopt}));
  }

  void buildStep(Builder &builder) {
    const Expr j = variable("j");
    copy(builder, k, j, tensors.k, keyRow(), kFull, CacheHint::EvictLast);
    copy(builder, v, j, tensors.v, keyRow(), vFull, CacheHint::EvictLast);

    at(builder, "mma");
    multiply(builder, MmaForm::Abt, s, qFragment ? qFragment : q, {k, j}, /*accumulate=*/false);
    if (isWmma) // other lanes wrote the scores that the mask changes
      place(builder, PlaceName::AfterScores);
    builder.setLocation(form.lineOf(&form::Form::scoreLocation, variant.location));
    const Expr row = variable(RunValue::RowBegin), key = j * variable(Measure::TileKeys);
    const RowReads &reads = form.rowReads();
    if (const Expr score = form.score())
      builder.add(makeMap(
          {.dst = {s, {}}, .x = reads.operand(0), .y = reads.operand(1), .value = score, .row = row, .key = key}));
    builder.setLocation(form.lineOf(&form::Form::maskLocation, variant.locationOf("mask")));
    const Expr visible = form.mask(keys());
    builder.add(makeMap({.dst = {s, {}}, .value = maskOf(*s, visible), .row = row, .key = key}));
    if (!isBulk) // zeros in place of values that no row sees: 0 times a NaN is none
      tensors.v.view->shape.front() = commonKeyEnd(visible);
    if (!isWmma)
      place(builder, PlaceName::AfterScores);
    buildSoftmax(builder);
    at(builder, "mma");
    multiply(builder, MmaForm::Ab, pv ? pv : o, p, {v, j}, /*accumulate=*/!pv);
    place(builder, PlaceName::AfterPv);
    if (pv)
      builder.add(makeMap({.dst = {o, {}}, .x = {pv, {}}, .value = elementOf(*o) + elementOf(*pv)}));
    place(builder, PlaceName::AfterTile);
  }

  static void reduce(Builder &builder, Reduction what, ReduceReach reach, Buffer *dst, Buffer *src,
                     Buffer *with = nullptr) {
    builder.add(makeReduce({.dst = {dst, {}}, .src = {src, {}}, .with = {with, {}}, .op = what, .reach = reach}));
  }

  void buildMaximum(Builder &builder) {
    at(builder, "reduce");
    if (scratch) {
      reduce(builder, Reduction::Max, ReduceReach::Thread, scratch, s);
      reduce(builder, Reduction::Max, ReduceReach::Lanes, mNew, scratch, m);
    } else {
      reduce(builder, Reduction::Max, ReduceReach::Row, mNew, s, m);
    }
    place(builder, PlaceName::AfterMax);
    at(builder, "mma");
    const bool isLazy = schedule.rescale == RescalePolicy::Lazy;
    const Rescaling rescaling{
        .o = o, .l = l, .m = m, .mNew = mNew, .factor = form.factor(), .isGuarded = true, .isLazy = isLazy};
    for (std::unique_ptr<Op> &op : makeRescaling(rescaling, schedule.locationOf("mma")))
      builder.add(std::move(op));
  }

  void buildSoftmax(Builder &builder) {
    if (takesMaximum())
      buildMaximum(builder);
    else
      place(builder, PlaceName::AfterMax);
    at(builder, "mma");
    const Expr shift = takesMaximum() ? finiteOf(elementOf(*m)) : elementOf(*m);
    builder.add(makeMap({.dst = {s, {}},
                         .x = {m, {}},
                         .value = powersOf(*s, shift, form.factor(), form.order),
                         .every = schedule.exp == Exp::Mixed ? std::optional(schedule.expMixed) : std::nullopt}));
    reduce(builder, Reduction::Sum, ReduceReach::Thread, l, s, l);
    if (p != s)
      builder.add(makeConvert({.p = {p, {}}, .s = {s, {}}}));
    place(builder, PlaceName::AfterExp);
  }

  void buildEpilogue(Builder &builder) {
    at(builder, "reduce");
    if (scratch) {
      reduce(builder, Reduction::Sum, ReduceReach::Thread, scratch, l);
      reduce(builder, Reduction::Sum, ReduceReach::Lanes, l, scratch);
    } else {
      reduce(builder, Reduction::Sum, ReduceReach::Row, l, l);
    }
    at(builder, "mma");
    if (oInPairs) {
      builder.add(makeConvert({.p = {oInPairs, {}}, .s = {o, {}}}));
      o = oInPairs;
    }
    form.end(builder, {o, m, mNew, l});
    at(builder, "warps");
    if (partial)
      builder.add(makeStorePartial({.partial = {partial, {}}, .o = {o, {}}, .m = {m, {}}, .l = {l, {}}}));
    if (parts)
      return storeParts(builder);
    const Expr row = variable(RunValue::RowBegin);
    if (partial) {
      builder.add(makeStoreMerged({.o = {tensors.o.view, {}},
                                   .lse = {tensors.lse.view, {}},
                                   .partial = {partial, {}},
                                   .row = row,
                                   .unit = form.rowUnit()}));
      return;
    }
    at(builder, "mma");
    builder.add(makeMap({.dst = {o, {}}, .x = {l, {}}, .value = quotientOf(*o, *l)}));
    builder.add(makeStore({.dst = {tensors.o.view, {}}, .o = {o, {}}, .row = row}));
    const Expr factor = form.rowUnit() ? Expr() : variable(RunValue::Scale);
    if (tensors.lse.view)
      builder.add(makeStoreLse({.dst = {tensors.lse.view, {}},
                                .m = {m, {}},
                                .l = {l, {}},
                                .row = row,
                                .unit = form.rowUnit(),
                                .factor = factor}));
  }

  void storeParts(Builder &builder) {
    const Expr row = variable(RunValue::RowBegin), limit = tensors.rows(), split = variable(RunValue::Split);
    at(builder, "split");
    if (isMergedLater(schedule)) {
      builder.add(makeStoreSplit(
          {.dst = {parts, {}}, .o = {o, {}}, .m = {m, {}}, .l = {l, {}}, .row = row, .limit = limit, .split = split}));
      return;
    }
    builder.add(makeStoreMergedSplit({.dst = {parts, {}},
                                      .partial = {partial, {}},
                                      .row = row,
                                      .limit = limit,
                                      .split = split,
                                      .unit = form.rowUnit()}));
    builder.add(makeCombineLast({.o = {tensors.o.view, {}},
                                 .lse = {tensors.lse.view, {}},
                                 .parts = {parts, {}},
                                 .partial = {partial, {}},
                                 .row = row,
                                 .unit = form.rowUnit()}));
  }

  Kernel &kernel;
  const Problem &problem;
  const Schedule &schedule;
  const Variant &variant;
  const Arranged &arranged;
  const MmaFamilyInfo &family;
  const bool isScalar, isWmma, isBulk, reduceShared;
  FormBuilder form;
  Tensors tensors;
  const ElementType element, ofKeys, result; ///< of Q and O; of K and V; of the products that cross shared memory
  Buffer *parts = nullptr;
  Buffer *qFull = nullptr, *kFull = nullptr, *vFull = nullptr;
  Buffer *q = nullptr, *k = nullptr, *v = nullptr, *partial = nullptr, *scratch = nullptr;
  Buffer *qFragment = nullptr, *s = nullptr, *p = nullptr, *pv = nullptr, *o = nullptr, *oInPairs = nullptr,
         *m = nullptr, *mNew = nullptr, *l = nullptr;
};

} // namespace

bool fagen::buildTiles(Kernel &kernel, PassContext &context) {
  TileBuilder builder(kernel, *context.variant, context.arranged);
  if (isCombine(kernel, context))
    builder.buildCombine();
  else
    builder.build();
  kernel.phase = Phase::Built;
  return true;
}
