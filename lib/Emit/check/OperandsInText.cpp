// fagen: which operands the device library has functions for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library's types stand in tile/fragment.h and tile/shared_tile.h. Whoever reads rows of a shared tile by warps
// reads as many as its fragment has, and the proof takes it that warps divide the tile's rows: both are so only where
// the tile has just the rows of all warps' fragments.

#include "OperandsInText.h"

#include "fagen/IR/Names.h"
#include "fagen/IR/Patterns.h"
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
constexpr unsigned kMostOfBox = 256; ///< rows, and columns, that one bulk copy moves (CUDA Driver API, tensor maps)

/// What a buffer is to the device library.
enum class Held : uint8_t { Accumulator, LeftOperand, RowValues, Tile, Nothing };

bool isHalf(ElementType type) { return type == ElementType::F16 || type == ElementType::BF16; }

Held heldAs(const Buffer &buffer) {
  if (buffer.space == Space::Shared)
    return isHalf(buffer.type) && buffer.columns % 8 == 0 ? Held::Tile : Held::Nothing;
  if (buffer.space != Space::Fragment || buffer.rows % kBlock != 0)
    return Held::Nothing;
  if (buffer.columns == 1)
    return buffer.type == ElementType::F32 ? Held::RowValues : Held::Nothing;
  if (buffer.columns % kBlock != 0)
    return Held::Nothing;
  return buffer.type == ElementType::F32 ? Held::Accumulator : isHalf(buffer.type) ? Held::LeftOperand : Held::Nothing;
}

llvm::StringRef nameOf(Held held) {
  switch (held) {
  case Held::Accumulator:
    return "a fragment of f32, of whole blocks of 16 x 16";
  case Held::LeftOperand:
    return "a fragment of f16 or bf16, of whole blocks of 16 x 16";
  case Held::RowValues:
    return "a fragment of f32 with one column and a multiple of 16 rows";
  case Held::Tile:
    return "a shared tile of f16 or bf16, with a multiple of 8 columns";
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
    else if (const auto product = dynCast<MmaOp>(op))
      checkProduct(*product);
    else if (const auto product = dynCast<MmaIssueOp>(op))
      checkIssue(*product);
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
    needs(tile, {Held::Tile});
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
    needsRowsOfWarps(src, dst);
    lacks(dst.columns > src.columns, "%" + dst.name + " has more columns than %" + src.name);
  }

  void checkMap(MapOp<const Op> map) {
    const Buffer &dst = *map.dst().buffer;
    if (keptRowsOf(*map) && kernel.hasOwnParams() && dst.space == Space::Shared)
      return needs(dst, {Held::Tile});
    needs(dst, {Held::Accumulator, Held::RowValues});
    for (const Operand *source : {&map.x(), &map.y()})
      if (source->buffer)
        needs(*source->buffer, heldAs(dst) == Held::RowValues ? llvm::ArrayRef(Held::RowValues)
                                                              : llvm::ArrayRef({Held::Accumulator, Held::RowValues}));
  }

  void checkConvert(const Buffer &p, const Buffer &s) {
    needs(p, {Held::LeftOperand});
    needs(s, {Held::Accumulator});
  }

  template <typename Product> void checkProductOf(Product product) {
    const Buffer &acc = *product.acc().buffer, &a = *product.a().buffer, &b = *product.b().buffer;
    needs(acc, {Held::Accumulator});
    needs(a, {Held::LeftOperand, Held::Tile});
    needs(b, {Held::Tile});
    needsSameType(a, b);
    if (a.space == Space::Shared)
      needsRowsOfWarps(a, acc);
    const unsigned summed = product.form() == MmaForm::Abt ? b.columns : b.rows;
    lacks(summed % kBlock != 0, "products sum over a multiple of 16; %" + b.name + " is " + shapeOf(b));
  }

  void checkProduct(MmaOp<const Op> product) {
    checkProductOf(product);
    const Buffer &b = *product.b().buffer;
    lacks(product.sums() && b.type != ElementType::F16,
          "sums in f16 are of f16; %" + b.name + " is of " + toString(b.type));
    lacks(product.sums() && product.form() == MmaForm::Abt && product.accumulate(),
          "sums in f16 of form abt are not added to others; accumulate is 1");
    const WarpGrid grid = warpGridOf(kernel, role);
    lacks(grid.columns > 1 && product.form() == MmaForm::Ab && product.b().buffer->rows % (kBlock * grid.columns) != 0,
          "warps divide the rows of %" + product.b().buffer->name + " by " + Twine(grid.columns) +
              ", not into multiples of 16");
  }

  void checkIssue(MmaIssueOp<const Op> product) {
    checkProductOf(product);
    const Buffer &acc = *product.acc().buffer;
    lacks(acc.rows != kBlock, "a warp of a group has 16 rows; %" + acc.name + " has " + Twine(acc.rows));
    lacks(acc.columns > kMostOfBox,
          "a product of a group has at most 256 columns; %" + acc.name + " has " + Twine(acc.columns));
    lacks(warpGridOf(kernel, role).columns != 1, "groups of role " + role.name + " divide columns");
    for (const Operand *operand : {&product.a(), &product.b()})
      lacks(operand->buffer->space == Space::Shared && operand->buffer->layout != Layout::Xor,
            "products of groups read swizzled tiles; %" + operand->buffer->name + " has no swizzle xor");
    lacks(product.held().buffer && product.accumulate(),
          "a product that is added takes no columns from registers, as %" +
              (product.held().buffer ? product.held().buffer->name : "") + " has");
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
    needs(src, {isMax || !isOfRow ? Held::Accumulator : Held::RowValues});
    lacks(isMax && (!isOfRow || !with),
          "a maximum is of whole rows (reach = \"row\"), and of one before it: a third operand");
    lacks(!isMax && isOfRow && (&src != &dst || with), "the parts of a row's sum come together in place: %" + dst.name +
                                                           ", %" + dst.name + ", and no third operand");
    lacks(!isMax && !isOfRow && with != &dst,
          "a thread's elements are added to what it has: the third operand is %" + dst.name);
  }

  void checkStore(const Buffer &o, const Buffer &matrix) {
    needs(o, {Held::Accumulator});
    lacks(!isHalf(matrix.type) && matrix.type != ElementType::F32,
          "results are f16, bf16 or f32; %" + matrix.name + " is of " + toString(matrix.type));
  }

  void checkStage(StageOutputOp<const Op> stage) {
    const Buffer &dst = *stage.dst().buffer, &o = *stage.o().buffer;
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
