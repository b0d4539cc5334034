// fagen: which operands the device library has functions for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library's types stand in tile/fragment.h and tile/shared_tile.h. Whoever reads rows of a shared tile by warps
// reads as many as its fragment has, and the proof takes it that warps divide the tile's rows: both are so only where
// the tile has just the rows of all warps' fragments.

#include "OperandsInText.h"

#include "fagen/IR/Names.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Sync.h"
#include "fagen/Target/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::Twine;

namespace {

constexpr unsigned kBlock = 16;      ///< rows and columns that fragments are made of
constexpr unsigned kChunkBytes = 16; ///< that lie together in every layout
constexpr unsigned kSliceBytes = 32; ///< of a row, that a product sums over at a time
constexpr unsigned kMostOfBox = 256; ///< rows, and columns, that one bulk copy moves (CUDA Driver API, tensor maps)

/// What a buffer is to the device library.
enum class Held : uint8_t {
  Accumulator,
  LeftOperand,
  RowValues,
  Tile,
  RealTile,
  ColumnValues,
  StagedRowValues,
  Nothing
};

/// What copies move and products take.
bool isOfTiles(ElementType type) {
  switch (type) {
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::E4M3:
  case ElementType::E5M2:
    return true;
  case ElementType::F32:
  case ElementType::U32:
  case ElementType::MBarrier:
  case ElementType::I32:
  case ElementType::U8:
  case ElementType::Bit:
    break;
  }
  return false;
}

Held heldAs(const Buffer &buffer) {
  const unsigned rowBytes = buffer.columns * sizeOf(buffer.type);
  if (buffer.space == Space::Shared && buffer.type == ElementType::F32 && buffer.columns == 1)
    return buffer.rows % kBlock == 0 && buffer.layout == Layout::RowMajor ? Held::StagedRowValues : Held::Nothing;
  if (buffer.space == Space::Shared && buffer.type == ElementType::F32)
    return buffer.columns % 8 != 0 || buffer.layout != Layout::RowMajor ? Held::Nothing
           : buffer.rows == 1                                           ? Held::ColumnValues
                                                                        : Held::RealTile;
  if (buffer.space == Space::Shared)
    return isOfTiles(buffer.type) && rowBytes % kChunkBytes == 0 ? Held::Tile : Held::Nothing;
  if (buffer.space != Space::Fragment || buffer.rows % kBlock != 0)
    return Held::Nothing;
  if (buffer.type == ElementType::F32)
    return buffer.columns == 1 ? Held::RowValues : buffer.columns % kBlock == 0 ? Held::Accumulator : Held::Nothing;
  return isOfTiles(buffer.type) && rowBytes % kSliceBytes == 0 ? Held::LeftOperand : Held::Nothing;
}

llvm::StringRef nameOf(Held held) {
  switch (held) {
  case Held::Accumulator:
    return "a fragment of f32, of whole blocks of 16 x 16";
  case Held::LeftOperand:
    return "a fragment of f16 or bf16, of whole blocks of 16 x 16, or of e4m3, of 16 x 32";
  case Held::RowValues:
    return "a fragment of f32 with one column and a multiple of 16 rows";
  case Held::Tile:
    return "a shared tile of f16 or bf16, with a multiple of 8 columns, or of e4m3, of 16";
  case Held::RealTile:
    return "a shared tile of f32, of several rows, with a multiple of 8 columns";
  case Held::ColumnValues:
    return "one row of f32 in shared memory, a value for each of a multiple of 8 columns";
  case Held::StagedRowValues:
    return "a column of f32 in shared memory, a value for each of a multiple of 16 rows";
  case Held::Nothing:
    break;
  }
  return "";
}

std::string shapeOf(const Buffer &buffer) {
  return (toString(buffer.space) + " " + toString(buffer.type) + "[" + Twine(buffer.rows) + " x " +
          Twine(buffer.columns) + "]")
      .str();
}

class TextChecker {
public:
  TextChecker(const Kernel &kernel, const Role &role, const Op &op) : kernel(kernel), role(role), op(op) {}

  std::string run(bool isAlone) {
    checkTarget();
    for (const Operand &operand : op.operands)
      if (operand.buffer && operand.buffer->space == Space::Fragment)
        checkHeight(*operand.buffer);
    if (isAlone)
      checkOperands();
    else
      checkPart();
    return std::move(why);
  }

private:
  /// Of several ops that are one function: their shapes are known by what they compute.
  void checkPart() {
    const bool isOfElements = op.kind == OpKind::Map || op.kind == OpKind::Reduce || op.kind == OpKind::Vote;
    for (const Operand &operand : op.operands)
      if (isOfElements && operand.buffer)
        needs(*operand.buffer, {Held::Accumulator, Held::RowValues});
  }

  void checkOperands() {
    if (const auto copy = dynCast<CopyIssueOp>(op))
      checkCopied(*copy->dst().buffer, isBulkCopy(op));
    else if (const auto store = dynCast<BulkStoreOp>(op))
      checkCopied(*store->src().buffer, true);
    else if (const auto load = dynCast<LoadFragmentOp>(op))
      checkLoad(*load->dst().buffer, *load->src().buffer);
    else if (const auto map = dynCast<MapOp>(op))
      checkMap(*map);
    else if (const auto convert = dynCast<ConvertOp>(op))
      checkConvert(*convert->p().buffer, *convert->s().buffer);
    else if (const auto product = asProduct(op))
      checkProduct(*product);
    else if (const auto store = dynCast<StoreOp>(op))
      checkStore(*store->o().buffer, *store->dst().buffer);
    else if (const auto stage = dynCast<StageOutputOp>(op))
      checkStage(*stage);
    else if (const auto reduce = dynCast<ReduceOp>(op))
      checkReduce(*reduce);
    else if (const auto vote = dynCast<VoteOp>(op))
      needsRows({&vote->x(), &vote->y()});
    else if (const auto store = dynCast<StoreLseOp>(op))
      needsRows({&store->m(), &store->l()});
    else if (const auto store = dynCast<StorePartialOp>(op))
      checkPartial(*store);
    else if (const auto store = dynCast<StoreMergedSplitOp>(op))
      checkMerged(*store->partial().buffer, nullptr);
    else if (const auto merge = dynCast<MergePartsOp>(op))
      lacks(constantOf(kernel, merge->o().buffer->shape.back()).value_or(0) % (128 * role.warps) != 0,
            "each warp of role " + role.name + " has the same multiple of 128 columns; %" + merge->o().buffer->name +
                " has " + merge->o().buffer->shape.back().str());
    else if (const auto combine = dynCast<CombineLastOp>(op))
      checkMerged(*combine->partial().buffer, combine->o().buffer);
  }

  /// A row for each row of each warp: the warp's columns of O, then pairs of its maximum and sum.
  void checkPartial(StorePartialOp<const Op> store) {
    const Buffer &o = *store.o().buffer, &partial = *store.partial().buffer;
    needs(o, {Held::Accumulator});
    needsRows({&store.m(), &store.l()});
    checkMerged(partial, nullptr);
    const WarpGrid grid = warpGridOf(kernel, role);
    const unsigned rows = o.rows * grid.rows * grid.columns, columns = o.columns + device::kPartialExtra;
    lacks(partial.rows != rows || partial.columns != columns, "%" + partial.name + " is " + shapeOf(partial) +
                                                                  "; warps of role " + role.name + " leave " +
                                                                  Twine(rows) + " rows of " + Twine(columns) + " f32");
  }

  void checkMerged(const Buffer &partial, const Buffer *results) {
    lacks(partial.space != Space::Shared || partial.type != ElementType::F32 || partial.layout != Layout::RowMajor ||
              partial.isRing || partial.columns <= device::kPartialExtra ||
              partial.rows % (kBlock * warpGridOf(kernel, role).columns) != 0,
          "%" + partial.name + " is " + shapeOf(partial) +
              "; what warps leave of their results is f32 in shared memory, " +
              "rows of all warps that divide columns, with " + Twine(unsigned(device::kPartialExtra)) +
              " columns more than O, without a swizzle");
    lacks(results && results->type != ElementType::F16 && results->type != ElementType::BF16,
          "merged results are f16 or bf16");
  }

  /// The first that is said is kept.
  void lacks(bool isLacking, const Twine &what) {
    if (isLacking && why.empty())
      why = what.str();
  }

  void needs(const Buffer &buffer, llvm::ArrayRef<Held> held) {
    std::string wanted;
    for (Held each : held)
      wanted += (wanted.empty() ? "" : ", or ") + nameOf(each).str();
    lacks(!llvm::is_contained(held, heldAs(buffer)),
          "%" + buffer.name + " is " + shapeOf(buffer) + "; it takes " + wanted);
  }

  void needsSameType(const Buffer &a, const Buffer &b) {
    lacks(a.type != b.type, "%" + a.name + " is of " + toString(a.type) + ", %" + b.name + " of " + toString(b.type));
  }

  void checkTarget() {
    const SyncInfo &sync = syncOf(op);
    FeatureMask needed = 0;
    if (sync.agent == Agent::AsyncProxy || isBetweenRoles(sync.releases) || isBetweenRoles(sync.acquires) ||
        sync.releases == Means::AsyncFence || sync.releases == Means::InitFence || op.kind == OpKind::MbarrierInit)
      needed |= featureBit(Feature::Tma);
    if (sync.agent == Agent::TensorCores || sync.releases == Means::ProductFence ||
        sync.releases == Means::ProductGroups || sync.acquires == Means::ProductGroups)
      needed |= featureBit(Feature::Wgmma);
    if (sync.agent == Agent::CpAsync)
      needed |= featureBit(Feature::CpAsync);
    if (op.kind == OpKind::AwaitLaunches) // targets with the one have the other
      needed |= featureBit(Feature::Tma);
    if (op.kind == OpKind::StageOutput)
      needed |= featureBit(Feature::StMatrix);
    const TargetInfo *const target = lookupTarget(kernel.target), *const first = firstTargetWith(needed);
    lacks(target && first && !target->hasAll(needed),
          "it needs " + (first ? first->name : "") + "; the target is " + kernel.target);
  }

  /// A role's warps stand one fragment below the other. A tile's number is none.
  void checkHeight(const Buffer &fragment) {
    if (fragment.type == ElementType::U32)
      return;
    walk(role.body, [&](const Op &other) {
      for (const Operand &operand : other.operands)
        if (const Buffer *const each = operand.buffer;
            each && each->space == Space::Fragment && each->type != ElementType::U32)
          lacks(each->rows.number() != fragment.rows.number(), "fragments of a role have as many rows; %" +
                                                                   fragment.name + " has " + Twine(fragment.rows) +
                                                                   ", %" + each->name + " has " + Twine(each->rows));
    });
  }

  /// Rows of the tile are those of all warps' fragments.
  void needsRowsOfWarps(const Buffer &tile, const Buffer &fragment) {
    const unsigned rows = fragment.rows * warpGridOf(kernel, role).rows;
    lacks(tile.rows != rows, "%" + tile.name + " has " + Twine(tile.rows) + " rows; warps of role " + role.name +
                                 " have " + Twine(rows) + " rows of %" + fragment.name);
  }

  void checkCopied(const Buffer &tile, bool isBulk) {
    needs(tile, {Held::Tile, Held::RealTile, Held::ColumnValues});
    const unsigned vector = vectorBytesOf(kernel), bytes = tile.columns * sizeOf(tile.type);
    if (!isBulk)
      return lacks(bytes % vector != 0, "rows of %" + tile.name + " are " + Twine(bytes) +
                                            " bytes long, which vectors of " + Twine(vector) + " do not divide");
    lacks(tile.layout == Layout::Padded, "%" + tile.name + " is padded; boxes have no gaps");
    lacks(tile.rows > kMostOfBox || (tile.layout == Layout::RowMajor && tile.columns > kMostOfBox),
          "a box has at most 256 rows and, without a swizzle, 256 columns; %" + tile.name + " is " + shapeOf(tile));
  }

  void checkLoad(const Buffer &dst, const Buffer &src) {
    needs(dst, {Held::LeftOperand});
    needs(src, {Held::Tile});
    needsSameType(dst, src);
    lacks(dst.isInQuads && sizeOf(dst.type) != 2, "quads are of 16-bit elements; %" + dst.name + " is " + shapeOf(dst));
    needsRowsOfWarps(src, dst);
    lacks(dst.columns > src.columns, "%" + dst.name + " has more columns than %" + src.name);
  }

  void checkMap(MapOp<const Op> map) {
    const Buffer &dst = *map.dst().buffer;
    if (keptRowsOf(*map) && dst.space == Space::Shared)
      return needs(dst, {Held::Tile});
    needs(dst, {Held::Accumulator, Held::RowValues});
    for (const Operand *operand : {&map.x(), &map.y()}) {
      const Buffer *const source = operand->buffer;
      if (!source)
        continue;
      if (heldAs(dst) == Held::RowValues)
        needs(*source, {Held::RowValues, Held::StagedRowValues});
      else
        needs(*source, {Held::Accumulator, Held::RowValues, Held::ColumnValues, Held::StagedRowValues});
      if (heldAs(*source) == Held::StagedRowValues)
        needsRowsOfWarps(*source, dst);
      lacks(heldAs(*source) == Held::ColumnValues && warpGridOf(kernel, role).columns != 1,
            "warps of role " + role.name + " divide columns, and %" + source->name + " has a value for each");
    }
  }

  /// To registers where an accumulator has the tile's elements, or from such registers to an operand's.
  void checkConvert(const Buffer &p, const Buffer &s) {
    if (s.space == Space::Shared) {
      const unsigned columns = p.columns * warpGridOf(kernel, role).columns;
      needs(p, {Held::Accumulator});
      needs(s, {Held::Tile, Held::RealTile});
      needsRowsOfWarps(s, p);
      lacks(sizeOf(s.type) == 1 || s.isPaired, "%" + s.name + " is " + shapeOf(s) +
                                                   "; elements of a byte, and paired "
                                                   "columns, are for products");
      lacks(columns > s.columns, "%" + s.name + " has " + Twine(s.columns) + " columns; warps of role " + role.name +
                                     " have " + Twine(columns) + " columns of %" + p.name);
      return;
    }
    lacks(p.type == ElementType::F32 && heldAs(s) == Held::LeftOperand && !s.isInQuads,
          "%" + s.name +
              " has its elements where a product wants them; convert takes them to f32 from the shared tile: "
              "convert %" +
              p.name + ", %TILE");
    needs(p, {s.isInQuads ? Held::Accumulator : Held::LeftOperand});
    needs(s, {Held::Accumulator});
    lacks(s.isInQuads && p.columns != s.columns, "%" + p.name + " and %" + s.name + " differ in columns");
  }

  void checkProduct(const Product &product) {
    const Buffer &acc = *product.acc, &a = *product.a, &b = *product.b;
    needs(acc, {Held::Accumulator});
    needs(a, {Held::LeftOperand, Held::Tile});
    needs(b, {Held::Tile});
    const WarpGrid grid = warpGridOf(kernel, role);
    if (const MmaInstrInfo *const instr = instructionOf(kernel, product)) {
      const TargetInfo *const target = lookupTarget(kernel.target);
      lacks(target && !target->hasAll(instr->needs),
            kernel.target + " has no product of " + toString(b.type) + " with sums in " + toString(acc.type));
      lacks(product.sumsOfRight() % instr->k != 0,
            "products sum over a multiple of " + Twine(instr->k) + "; %" + b.name + " is " + shapeOf(b));
    }
    lacks(widensRight(product) && b.columns % kSliceBytes != 0,
          "bytes are widened by 32 columns; %" + b.name + " is " + shapeOf(b));
    lacks(functionOf(kernel, product).empty(), kernel.backend + " has no function for form " + toString(product.form) +
                                                   " with accumulate = " + Twine(int(product.accumulates)));
    if (a.space == Space::Shared) {
      const unsigned rows = acc.rows * grid.rows;
      lacks(product.rowsOfLeft() != rows, "%" + a.name + " has " + Twine(product.rowsOfLeft()) +
                                              (product.takesLeftTransposed() ? " columns" : " rows") +
                                              "; warps of role " + role.name + " have " + Twine(rows) + " rows of %" +
                                              acc.name);
      lacks(grid.columns > 1 && !product.takesRightTransposed(),
            "warps of role " + role.name + " divide columns; a product of form " + toString(product.form) +
                " whose left operand is in shared memory has none side by side");
    } else {
      lacks(product.rowsOfLeft() != acc.rows, "%" + a.name + " and %" + acc.name + " differ in rows");
      lacks(grid.columns > 1 && product.dividesSums() && b.rows % (kBlock * grid.columns) != 0,
            "warps divide the rows of %" + b.name + " by " + Twine(grid.columns) + ", not into multiples of 16");
    }
    lacks(product.first != 0 && !product.isAsynchronous,
          "only products of groups begin at another column than the first");
    product.isAsynchronous ? checkIssued(product, MmaIssueOp(op)) : checkSums(product);
  }

  /// ops/mma_f16.h has no others.
  void checkSums(const Product &product) {
    const bool isThere =
        product.takesRightTransposed() ? !product.accumulates : product.dividesSums() && product.accumulates;
    lacks(product.sumsInF16 && !isThere, "sums in f16 are of form abt with accumulate = 0, or of form ab with "
                                         "accumulate = 1 and a left operand in registers");
  }

  void checkIssued(const Product &product, MmaIssueOp<const Op> issue) {
    const Buffer &acc = *product.acc, &a = *product.a;
    lacks(acc.rows != kBlock, "a warp of a group has 16 rows; %" + acc.name + " has " + Twine(acc.rows));
    lacks(acc.columns > kMostOfBox,
          "a product of a group has at most 256 columns; %" + acc.name + " has " + Twine(acc.columns));
    lacks(warpGridOf(kernel, role).columns != 1, "groups of role " + role.name + " divide columns");
    lacks(product.first != 0 && (a.space != Space::Shared || product.first % 64 != 0),
          "products of groups begin at a multiple of 64 columns, with the left operand in shared memory");
    for (const Buffer *operand : {product.a, product.b})
      lacks(operand->space == Space::Shared && operand->layout != Layout::Xor,
            "products of groups read swizzled tiles; %" + operand->name + " has no swizzle xor");
    if (const Buffer *const held = issue.held().buffer)
      lacks(product.accumulates || !product.takesRightTransposed(),
            "only a product of form abt with accumulate = 0 takes columns from registers, as %" + held->name + " has");
  }

  void needsRows(std::initializer_list<const Operand *> operands) {
    for (const Operand *operand : operands)
      if (operand->buffer)
        needs(*operand->buffer, {Held::RowValues});
  }

  /// A maximum is of whole rows, and of one before it; a sum is added to what is there, or completed in place.
  void checkReduce(ReduceOp<const Op> reduce) {
    const Buffer &dst = *reduce.dst().buffer, &src = *reduce.src().buffer;
    const Buffer *const with = reduce.with().buffer;
    needsRows({&reduce.dst(), &reduce.with()});
    const bool isMax = reduce.op() == Reduction::Max, isOfRow = reduce.reach() == ReduceReach::Row;
    lacks(!isMax && isOfRow && heldAs(src) == Held::Accumulator,
          "a row's sum is made of those of its threads: first reduce %" + dst.name + ", %" + src.name + ", %" +
              dst.name + " {op = \"sum\", reach = \"thread\"}, then reduce %" + dst.name + ", %" + dst.name +
              " {op = \"sum\", reach = \"row\"}");
    needs(src, {isMax || !isOfRow ? Held::Accumulator : Held::RowValues});
    lacks(isMax && (!isOfRow || !with), "a maximum is of whole rows (reach = \"row\"), and of one before it, a third "
                                        "operand, which may be -inf: reduce %" +
                                            dst.name + ", %" + src.name + ", %" + dst.name);
    lacks(!isMax && isOfRow && (&src != &dst || with), "the parts of a row's sum come together in place: %" + dst.name +
                                                           ", %" + dst.name + ", and no third operand");
    lacks(!isMax && !isOfRow && with != &dst,
          "a thread's elements are added to what it has: the third operand is %" + dst.name);
  }

  void checkStore(const Buffer &o, const Buffer &matrix) {
    needs(o, {Held::Accumulator, Held::RowValues});
    const bool isStored =
        matrix.type == ElementType::F16 || matrix.type == ElementType::BF16 || matrix.type == ElementType::F32;
    lacks(!isStored, "results that threads store are f16, bf16 or f32, and of e4m3 they leave through shared memory: "
                     "stage_output; %" +
                         matrix.name + " is of " + toString(matrix.type));
  }

  void checkStage(StageOutputOp<const Op> stage) {
    const Buffer &dst = *stage.dst().buffer, &o = *stage.o().buffer;
    if (heldAs(o) == Held::RowValues) {
      needs(dst, {Held::StagedRowValues});
      return needsRowsOfWarps(dst, o);
    }
    needs(dst, {Held::Tile});
    needs(o, {Held::Accumulator});
    needsRowsOfWarps(dst, o);
    const int64_t left = int64_t(o.columns) - stage.first();
    lacks(stage.first() % 8 != 0 || left <= 0 || std::min<int64_t>(left, dst.columns) % kBlock != 0,
          "columns leave in multiples of 16; %" + o.name + " has " + Twine(o.columns) + ", %" + dst.name + " has " +
              Twine(dst.columns) + ", the first is " + Twine(stage.first()));
  }

  const Kernel &kernel;
  const Role &role;
  const Op &op;
  std::string why;
};

} // namespace

std::string fagen::whyNoText(const Kernel &kernel, const Role &role, const Op &op, bool isAlone) {
  return TextChecker(kernel, role, op).run(isAlone);
}
