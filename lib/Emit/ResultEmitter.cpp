// fagen: how O and LSE leave a CTA, in CUDA.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpEmitter.h"

using namespace fagen;
using namespace fagen::ir;

void OpEmitter::emitStorePartial(const Op &op) {
  const StorePartialOp store(op);
  line(out, "store_partial({}, ptx::warp_index() / kRowWarps * kTileRows + warp_row(), {}, {}, {});",
       operand(store.partial()), operand(store.o()), operand(store.m()), operand(store.l()));
}

/// By which the store functions get from row 0 to the others.
const char *OpEmitter::rowsOfO() const {
  return kernel.packsHeads() ? "packed_rows(cta.params, cta.params.o_stride)" : "cta.params.o_stride[2]";
}
const char *OpEmitter::rowsOfParts() const {
  return kernel.packsHeads() ? "packed_split_rows<kHeadDimV>(cta.params)" : "split_columns<kHeadDimV>()";
}
const char *OpEmitter::rowsOfLse() const { return kernel.packsHeads() ? "packed_lse_rows(cta.params), " : ""; }

void OpEmitter::emitStoreMerged(const Op &op) {
  const StoreMergedOp store(op);
  const bool hasLse = store.lse().buffer != nullptr;
  line(out, "store_merged<kThreads, kKeyWarps, kVectorBytes>(");
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, {}), {},", headOf(op), rowsOfO());
  line(out, "{}, {}{}, {}, {}, {}, {});", hasLse ? fmt::format("head_lse(cta.params, {})", headOf(op)) : "nullptr",
       rowsOfLse(), operand(store.partial()), unitOf(op).toNats, unitOf(op).toExponents, expression(store.row()),
       expression(rowEndOf(op)));
}

UnitText fagen::unitOf(const Op &op) {
  if (!op.has(Attr::Unit))
    return {"cta.params.scale", "cta.params.scale_log2", ""};
  if (parse<RowUnit>(op.text(Attr::Unit)) == RowUnit::Nats)
    return {"1.0f", "kLog2E", ", kOfNats"};
  return {"kLn2", "1.0f", ", kOfExponents"};
}

void OpEmitter::emitStore(const Op &op) {
  const StoreOp store(op);
  line(out, "Element *const o = head_rows<Element>(cta.params.o, cta.params.o_stride, {});", headOf(op));
  callStandsHere();
  line(out, "store_rows<kVectorBytes>(o, {}, {}, {} + warp_row(), {});", rowsOfO(), operand(store.o()),
       expression(store.row()), expression(rowEndOf(op)));
}

void OpEmitter::emitStoreLse(const Op &op) {
  const StoreLseOp store(op);
  line(out, "float *const lse = head_lse(cta.params, {});", headOf(op));
  callStandsHere();
  line(out, "store_lse(lse, {}{}, {}, {}, {} + warp_row(), {});", rowsOfLse(), operand(store.m()), operand(store.l()),
       store.factor() ? element(op, store.factor()) : unitOf(op).toNats, expression(store.row()),
       expression(rowEndOf(op)));
}

/// By the first thread of each group of warps, when all its threads have staged their rows.
void OpEmitter::emitBulkStore(const Op &op) {
  const std::string first = op.has(Attr::First) ? std::to_string(op.integer(Attr::First)) : "";
  if (const auto stage = dynCast<StageOutputOp>(op))
    return line(out, "stage_{}{}({}, {}, warp_row());", stage->dst().buffer->isPaired ? "paired" : "rows",
                first.empty() ? "" : "<" + first + ">", operand(stage->dst()), operand(stage->o()));
  if (op.kind == OpKind::BulkCommit)
    return line(out, "commit_boxes_by_group();");
  if (const auto wait = dynCast<BulkWaitOp>(op))
    return line(out, "wait_for_boxes_by_group<{}>();", wait->pending());
  const BulkStoreOp store(op);
  const Matrix matrix(store.dst());
  line(out, "store_boxes_by_group<{}>({}, cta.group_row, cta.params.o_map, {}, {}, {});",
       first.empty() ? "kHeadDimV" : store.src().buffer->columns.str() + ", " + first, operand(store.src()),
       expression(store.row() + firstOf(matrix, 2)), expression(matrix.at()[1]), expression(matrix.at()[0]));
}

/// From the registers, or of warps that share keys from where they left their results.
void OpEmitter::emitStoreSplit(const Op &op) {
  const std::string row = expression(op.expr(Attr::Row)), limit = expression(rowEndOf(op));
  line(out, "float *const rows = split_rows<kHeadDimV>(cta.params, {}, place.batch, place.head);",
       expression(op.expr(Attr::Split)));
  callStandsHere();
  if (const auto merged = dynCast<StoreMergedSplitOp>(op))
    return line(out, "store_merged_split<kWarps, kKeyWarps{}>(cta.params, rows, {}, {}, {}, {});", unitOf(op).argument,
                rowsOfParts(), operand(merged->partial()), row, limit);
  const StoreSplitOp store(op);
  line(out, "store_split(rows, {}, {}, {}, {}, {} + warp_row(), {});", rowsOfParts(), operand(store.o()),
       operand(store.m()), operand(store.l()), row, limit);
}

void OpEmitter::emitCombineLast(const Op &op) {
  const CombineLastOp combine(op);
  const bool hasLse = combine.lse().buffer != nullptr;
  line(out, "combine_last<kWarps, kKeyWarps, kVectorBytes{}>(", unitOf(op).argument);
  auto scope = out.scope();
  auto deeper = out.scope();
  line(out, "cta.params, {}, split_rows<kHeadDimV>(cta.params, 0, place.batch, place.head), {},",
       operand(combine.partial()), rowsOfParts());
  line(out, "head_rows<Element>(cta.params.o, cta.params.o_stride, {}), {},", headOf(op), rowsOfO());
  line(out, "{}, {}{}, {});", hasLse ? fmt::format("head_lse(cta.params, {})", headOf(op)) : "nullptr", rowsOfLse(),
       expression(combine.row()), expression(rowEndOf(op)));
}
