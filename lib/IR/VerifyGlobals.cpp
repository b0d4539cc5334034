// fagen: the IR verifier: parameters of a kernel's own: sizes, the grid's indices, global buffers, views, reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Views.h"

#include "fagen/IR/Queries.h"

#include <fagen/device/tile/layout.h>

#include <limits>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Of a tensor map (fagen/device/tensor_map.h).
constexpr unsigned kMaxDimensions = 5;
/// Of the runtime's strides (fagen_arg).
constexpr unsigned kMaxReadDimensions = 4;

class GlobalVerifier {
public:
  explicit GlobalVerifier(VerifierState &state) : state(state), kernel(state.kernel) {}

  /// Before lets are known: what they, too, may name.
  void checkParams() {
    for (const std::string &size : kernel.sizes)
      checkSize(size);
    for (const Scalar &scalar : kernel.scalars)
      checkScalar(scalar);
    for (const GridIndex &index : kernel.grid.indices)
      checkOfSizes(index.extent, kernel.location, "the extent of grid index '" + index.name + "'");
    if (const std::optional<TurnOrder> &turns = kernel.grid.turns; turns && turns->rowsOfRun)
      checkOfSizes(turns->rowsOfRun, kernel.location, "longest_first: the rows of a run");
    for (const GridIndex &index : kernel.grid.indices)
      declare(index.name, "grid index '" + index.name + "'");
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->space == Space::Global && !buffer->map)
        checkTensor(*buffer);
  }

  /// After lets.
  void checkViews() {
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->map)
        checkView(*buffer);
  }

private:
  /// What a CTA knows of itself, and divisors, have a meaning to analyses and the text; other parameters may be called
  /// as attention's are.
  static bool isReserved(StringRef name) {
    const RunValueInfo *const info = findRunValue(name);
    return info && isIntegerOfRun(*info) && (info->scope != RunScope::Launch || info->kind == RunKind::Divisor);
  }

  void declare(StringRef name, const Twine &what) {
    if (!state.declare(name) || isReserved(name))
      state.defect(kernel.location, what + " hides another value of that name");
  }

  void checkOfSizes(const Expr &expr, const Location &location, const Twine &what) {
    expr.forEachVariable([&](StringRef name) {
      if (!llvm::is_contained(kernel.sizes, name) && !kernel.hasConstant(name) && !state.isOfLaunch(name))
        state.defect(location, what + " names '" + name + "', which is neither a size nor a constant");
    });
  }

  void checkSize(const std::string &size) {
    declare(size, "size '" + size + "'");
    if (const Interval range = kernel.rangeOfSize(size);
        range.low < 0 || range.low > range.high || range.high > kMostOfSize)
      state.defect(kernel.location, "size '" + size + "': [" + Twine(range.low) + ", " + Twine(range.high) +
                                        "] is not a range of sizes from 0 to " + Twine(kMostOfSize));
  }

  void checkScalar(const Scalar &scalar) {
    const bool isTaken = scalar.isReal ? !state.declareReal(scalar.name) : !state.declare(scalar.name);
    const RunValueInfo *const info = findRunValue(scalar.name);
    if (isTaken || isReserved(scalar.name) || (info && hasRunValue(kernel, *info)))
      state.defect(kernel.location, "param '" + scalar.name + "' hides another value of that name");
    if (scalar.low > scalar.high)
      state.defect(kernel.location, "param '" + scalar.name + "' has an empty range");
  }

  static bool isOfIntegers(ElementType type, Interval values) {
    return type == ElementType::I32 && values.low <= values.high && values.low >= std::numeric_limits<int32_t>::min() &&
           values.high <= std::numeric_limits<int32_t>::max();
  }

  /// One that expressions read in addition to attention's tensors: its extents are values of the launch.
  void checkReadTensor(const Buffer &buffer) {
    if (buffer.param.empty() && &buffer != kernel.scratchTensor())
      state.defect(buffer.location, "%" + buffer.name + ": a kernel has one scratch, and this is the second");
    if (buffer.shape.size() > kMaxReadDimensions)
      state.defect(buffer.location, "%" + buffer.name + ": " + Twine(buffer.shape.size()) +
                                        " dimensions; a tensor that is read has at most " + Twine(kMaxReadDimensions));
    for (const Expr &size : buffer.shape)
      state.checkNames(size, buffer.location, "%" + buffer.name + ": its shape");
    if (const std::optional<Interval> &values = buffer.values; values && !isOfIntegers(buffer.type, *values))
      state.defect(buffer.location, "%" + buffer.name + ": [" + Twine(values->low) + ", " + Twine(values->high) +
                                        "] is not a range of i32, or its elements are not");
    if (buffer.type == ElementType::MBarrier || buffer.type == ElementType::U32)
      state.defect(buffer.location, "%" + buffer.name + ": elements that are read are bit, u8, i32, f16, bf16 or f32");
  }

  void checkTensor(const Buffer &buffer) {
    const std::string name = "%" + buffer.name + ": ";
    const bool isScratch = buffer.param.empty() && !buffer.shape.empty(), isOwn = kernel.hasOwnParams();
    if (isOwn && isScratch)
      return state.defect(buffer.location, name + "a scratch belongs to kernels with attention's parameters");
    if (isScratch || llvm::is_contained(kernel.readTensors(), &buffer))
      return checkReadTensor(buffer);
    if ((isOwn || !buffer.param.empty()) && buffer.shape.empty())
      return state.defect(buffer.location, name + "declare it after the kernel's sizes, and with its shape");
    if (buffer.shape.size() > kMaxDimensions)
      state.defect(buffer.location,
                   name + Twine(buffer.shape.size()) + " dimensions; a tensor has at most " + Twine(kMaxDimensions));
    for (const Expr &size : buffer.shape)
      checkOfSizes(size, buffer.location, name + "its shape");
    if (buffer.isStrided && buffer.shape.size() < 2)
      state.defect(buffer.location, name + "its only dimension is dense; it has no strides");
    checkPromises(buffer);
  }

  /// What the caller promises of elements that say where others lie.
  void checkPromises(const Buffer &buffer) {
    if (!buffer.values && !buffer.isAscending && !buffer.isDistinct && !buffer.isConstant)
      return;
    const bool isSigned = buffer.type == ElementType::I32;
    if (!isSigned && buffer.type != ElementType::U32)
      return state.defect(buffer.location, "%" + buffer.name + ": elements of " + toString(buffer.type) +
                                               " promise nothing; those of u32 and i32 may have a range, ascend, be "
                                               "distinct and constant");
    const Interval most = {isSigned ? -kMaxReadValue : 0, kMaxReadValue};
    if (buffer.values &&
        (buffer.values->low > buffer.values->high || buffer.values->low < most.low || buffer.values->high > most.high))
      state.defect(buffer.location, "%" + buffer.name + ": [" + Twine(buffer.values->low) + ", " +
                                        Twine(buffer.values->high) + "] is not a range of values from " +
                                        Twine(most.low) + " to " + Twine(most.high));
  }

  void checkView(const Buffer &view) {
    const AddressMap &map = *view.map;
    const std::string name = "%" + view.name + ": ";
    if (view.shape.size() != (map.column.empty() ? 1 : 2))
      state.defect(view.location, name + "a view has rows and columns: two dimensions, or one where rows are single "
                                         "elements: (r) ->");
    if (map.base->map || map.base->space != Space::Global)
      return state.defect(view.location,
                          name + "it views %" + map.base->name + ", which is not a tensor among the parameters");
    if (map.base->type != view.type)
      state.defect(view.location, name + "elements of %" + map.base->name + " are " + toString(map.base->type));
    if (map.base->shape.size() != map.at.size())
      return state.defect(view.location, name + Twine(map.at.size()) + " indices; %" + map.base->name + " has " +
                                             Twine(map.base->shape.size()) + " dimensions");
    const bool hasIndex = !map.index.empty();
    if (hasIndex && !state.declare(map.index))
      return state.defect(view.location, name + "its index '" + map.index + "' is another value's name");
    for (const Expr &size : view.shape)
      state.checkNames(size, view.location, name + "its shape");
    checkIndices(view, map, name);
    if (hasIndex)
      state.forget(map.index);
  }

  void checkIndices(const Buffer &view, const AddressMap &map, const std::string &name) {
    const bool hasColumns = !map.column.empty();
    if (map.row == map.column || !state.declare(map.row) || (hasColumns && !state.declare(map.column)))
      return state.defect(view.location, name + "'" + map.row + "' or '" + map.column + "' is another value's name");
    for (const Expr &index : map.at)
      state.checkNames(index, view.location, name + "an index");
    state.forget(map.row);
    if (!hasColumns)
      return;
    state.forget(map.column);
    for (const Expr &index : llvm::ArrayRef(map.at).drop_back())
      if (index.uses(map.column))
        state.defect(view.location, name + "only the last index may name the column '" + map.column +
                                        "': elements of a row lie side by side");
    if (!restBeside(map.at.back(), map.column) || map.at.back().uses(map.row))
      state.defect(view.location, name + "the last index is not the column '" + map.column +
                                      "' plus what no row changes: elements of a row lie side by side");
  }

  VerifierState &state;
  const Kernel &kernel;
};

} // namespace

void ir::verifyParams(VerifierState &state) { GlobalVerifier(state).checkParams(); }
void ir::verifyViews(VerifierState &state) { GlobalVerifier(state).checkViews(); }

void ir::verifySource(const Let &let, VerifierState &state) {
  const GlobalElement &source = *let.source;
  const std::string name = "let " + let.name;
  const bool isSigned = source.buffer->type == ElementType::I32;
  constexpr Interval kInt = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  if (source.buffer->shape.empty() || !(isSigned || source.buffer->type == ElementType::U32))
    return state.defect(state.kernel.location,
                        name + " reads %" + source.buffer->name + "; only elements of u32 and i32 tensors are read");
  if (source.buffer->shape.size() != source.at.size())
    state.defect(state.kernel.location, name + ": " + Twine(source.at.size()) + " indices; %" + source.buffer->name +
                                            " has " + Twine(source.buffer->shape.size()) + " dimensions");
  const Interval most = source.buffer->values.value_or(kInt);
  if (source.low < most.low || source.low > source.high || source.high > most.high)
    state.defect(state.kernel.location, name + ": [" + Twine(source.low) + ", " + Twine(source.high) +
                                            "] is not a range of values from " + Twine(most.low) + " to " +
                                            Twine(most.high));
  for (const Expr &index : source.at)
    state.checkNames(index, state.kernel.location, name + ": an index");
}

static bool isOneElement(const Buffer &tensor) {
  return tensor.shape.size() == 1 && tensor.shape.front() == constant(1);
}

/// A value a row, as sums of rows are.
static void verifyColumn(const Op &op, const Buffer &matrix, VerifierState &state) {
  const bool isColumn = matrix.shape.size() == 1 || (matrix.shape.size() == 2 && matrix.shape[1] == constant(1));
  if (!isColumn || matrix.type != ElementType::F32)
    state.defect(op.location, opInfo(op.kind).name + ": %" + matrix.name +
                                  " is not an f32 for each row: a view (r) -> of a tensor of f32");
}

/// What warps that share keys, or CTAs that do, leave for who merges them.
static void verifyParts(const Op &op, const Buffer &parts, const Buffer &partial, VerifierState &state) {
  const std::string name = opInfo(op.kind).name.str() + ": %" + parts.name;
  const int64_t columns = int64_t(partial.columns) - device::kPartialExtra + device::kSplitExtra;
  const std::optional<unsigned> dimension = partDimensionOf(parts);
  if (!dimension || *dimension != 0 || tensorOf(parts).isStrided || parts.type != ElementType::F32)
    state.defect(op.location, name + " is not the parts of a result: a view with an index, which is the first index of "
                                     "a dense tensor of f32, view %part[p] : f32[...] = (r, c) -> %parts[p, ..., c]");
  else if (parts.shape.size() != 2 || constantOf(state.kernel, parts.shape[1]) != columns)
    state.defect(op.location, name + " has no rows of " + Twine(columns) + " f32: those of O, then " +
                                  Twine(device::kSplitExtra) + " for maximum, sum and count");
}

/// What makes other units of m, where the unit does not say.
static void verifyFactors(const Op &op, std::initializer_list<Attr> needed, VerifierState &state) {
  if (op.has(Attr::Unit))
    return;
  for (Attr attr : needed)
    if (!op.has(attr))
      state.defect(op.location, opInfo(op.kind).name + ": attribute '" + nameOf(attr) + "' is missing: what makes " +
                                    (attr == Attr::Factor ? "nats" : "exponents of two") + " of maxima");
}

/// Whether the parts are a tensor of the kernel's own.
static bool mergesParts(const Op &op) {
  const auto combine = dynCast<CombineLastOp>(op);
  return combine && !combine->parts().buffer->shape.empty();
}

/// Ops that merge what warps or CTAs have found of the same rows, in a kernel with parameters of its own.
static void verifyMerge(const Op &op, VerifierState &state) {
  if (const auto store = dynCast<StoreMergedSplitOp>(op)) {
    verifyParts(op, *store->dst().buffer, *store->partial().buffer, state);
    if (store->split())
      state.defect(op.location, "store_merged_split: attribute 'split' is given, but the position of %" +
                                    store->dst().buffer->name + " says which part it is");
    return verifyFactors(op, {Attr::Exponent}, state);
  }
  const CombineLastOp combine(op);
  if (const Buffer *const lse = combine.lse().buffer)
    verifyColumn(op, *lse, state);
  for (const Operand *const rows : globalOperandsOf(op))
    if (!(Matrix(*rows).rows() == matrixOf(op).rows()))
      state.defect(op.location, "combine_last: %" + rows->buffer->name + " has " + Matrix(*rows).rows().str() +
                                    " rows, %" + combine.o().buffer->name + " has " + matrixOf(op).rows().str() +
                                    "; they are the same rows");
  verifyParts(op, *combine.parts().buffer, *combine.partial().buffer, state);
  if (!(combine.parts().position == constant(0)))
    state.defect(op.location, "combine_last: it takes all parts, from %" + combine.parts().buffer->name + "[0] on");
  verifyFactors(op, {Attr::Factor, Attr::Exponent}, state);
}

/// Normalised results of all parts, and their log-sum-exps, of the same rows as what they become.
static void verifyMergeOfParts(MergePartsOp<const Op> merge, VerifierState &state) {
  auto defect = [&](const Twine &message) { state.defect(merge->location, "merge_parts: " + message); };
  const Matrix o(merge.o());
  verifyColumn(*merge, *merge.lse().buffer, state);
  verifyColumn(*merge, *merge.sums().buffer, state);
  for (const Operand *const rows : globalOperandsOf(*merge))
    if (!(Matrix(*rows).rows() == o.rows()))
      defect("%" + rows->buffer->name + " has " + Matrix(*rows).rows().str() + " rows, %" + merge.o().buffer->name +
             " has " + o.rows().str() + "; they are the same rows");
  for (const Operand *const parts : {&merge.parts(), &merge.sums()}) {
    const Buffer &view = *parts->buffer, &tensor = tensorOf(view);
    const std::optional<unsigned> dimension = partDimensionOf(view);
    if (!dimension || *dimension != 0 || tensor.isStrided || view.type != ElementType::F32)
      defect("%" + view.name +
             " is not what parts left: a view with an index, which is the first index of a dense "
             "tensor of f32, view %part[p] : f32[...] = (r, c) -> %parts[p, ..., c]");
    else if (!(parts->position == constant(0)))
      defect("it takes all parts, from %" + view.name + "[0] on");
    else if (!(tensor.shape.front() == tensorOf(*merge.sums().buffer).shape.front()))
      defect("%" + view.name + " has " + tensor.shape.front().str() + " parts, %" + merge.sums().buffer->name +
             " has " + tensorOf(*merge.sums().buffer).shape.front().str());
  }
  const std::optional<int64_t> columns = o.isVector() ? std::nullopt : constantOf(state.kernel, o.columns());
  if (!columns || *columns % 128 != 0 || Matrix(merge.parts()).isVector() ||
      constantOf(state.kernel, Matrix(merge.parts()).columns()) != columns)
    defect("%" + merge.o().buffer->name + " and %" + merge.parts().buffer->name +
           " have equally many columns, a multiple of 128, which constants say");
}

/// Vectors of 16 elements go to rows of dst: each begins at a multiple of 16 columns, and ends there.
static void verifyTranspose(TransposeOp<const Op> transpose, VerifierState &state) {
  auto defect = [&](const Twine &message) { state.defect(transpose->location, "transpose: " + message); };
  const Buffer &dst = *transpose.dst().buffer, &src = *transpose.src().buffer;
  for (const Buffer *const matrix : {&dst, &src})
    if (matrix->shape.size() != 2 || matrix->type != ElementType::E4M3)
      return defect("%" + matrix->name + " is not a matrix of e4m3: a tensor, or a view (r, c) ->");
  if (tensorOf(src).isPaired)
    defect("%" + src.name + " has its columns paired; they are rows of the result");
  const Matrix to(transpose.dst()), from(transpose.src());
  const std::optional<int64_t> rows = constantOf(state.kernel, to.rows());
  if (!rows || *rows % 64 != 0 || constantOf(state.kernel, from.columns()) != rows)
    defect("%" + dst.name + " has " + to.rows().str() + " rows, %" + src.name + " has " + from.columns().str() +
           " columns; they are equally many, a multiple of 64, which constants say");
  auto isOfVectors = [&](const Expr &expr) { return isMultiple(expand(state.kernel, expr), 16); };
  if (transpose.tile() % 128 != 0 || !isOfVectors(transpose.column()) || !isOfVectors(to.columns()))
    defect(Twine(transpose.tile()) + " columns from " + transpose.column().str() + " on, of " + to.columns().str() +
           "; tiles have a multiple of 128, and begin and end with their matrix at multiples of 16");
}

/// Whole numbers that a launch stores. The caller promises nothing of them, so nothing may be believed.
static void verifyNumbers(const Op &op, const Buffer &matrix, VerifierState &state) {
  const Buffer &tensor = tensorOf(matrix);
  if (matrix.shape.size() != 1 || (matrix.type != ElementType::U32 && matrix.type != ElementType::I32))
    state.defect(op.location, "store_number: %" + matrix.name +
                                  " is not a u32 or an i32 for each row: a tensor of one dimension, or a view (r) ->");
  else if (tensor.values || tensor.isAscending || tensor.isDistinct || tensor.isConstant)
    state.defect(op.location, "store_number: %" + tensor.name +
                                  " has promises of the caller, who does not write it; lets "
                                  "that read it are held to what they say");
}

/// Ops with a matrix of global memory, or a counter.
void ir::verifyMatrix(const Op &op, VerifierState &state) {
  const Buffer *const matrix = globalOf(op);
  const bool isOfColumn = op.kind == OpKind::StoreLse || storesValues(op),
             isMatrixOp = op.kind == OpKind::CopyIssue || op.kind == OpKind::BulkStore || op.kind == OpKind::Store ||
                          isOfColumn || op.kind == OpKind::StoreMerged || op.kind == OpKind::StoreMergedSplit ||
                          op.kind == OpKind::CombineLast || op.kind == OpKind::StoreNumber ||
                          op.kind == OpKind::MergeParts || op.kind == OpKind::Transpose;
  const std::string name = opInfo(op.kind).name.str() + ": ";
  auto defect = [&](const Twine &message) { state.defect(op.location, name + message); };
  const bool isOfTensors =
      op.kind == OpKind::ClassifyTiles || op.kind == OpKind::Combine || op.kind == OpKind::PlanRows; // whole ones
  if (!matrix || isOfTensors)
    return;
  if (matrix->shape.empty()) {
    if (isMatrixOp && !op.has(Attr::Limit))
      defect("attribute 'limit' is missing");
    if (op.kind == OpKind::StoreMergedSplit && !op.has(Attr::Split))
      defect("attribute 'split' is missing");
    if (op.has(Attr::Column))
      defect("attribute 'column' belongs to matrices with a shape; %" + matrix->name + " has none");
    return;
  }
  if (op.kind == OpKind::FetchTile) {
    if (matrix->type != ElementType::U32 || !isOneElement(*matrix))
      defect("%" + matrix->name + " is no counter: a tensor of u32 with one element, [1]");
    return;
  }
  if (!isMatrixOp)
    return defect("it takes attention's tensors; %" + matrix->name + " is a parameter of this kernel's own");
  if (op.kind == OpKind::StoreMergedSplit || mergesParts(op))
    verifyMerge(op, state);
  if (op.kind == OpKind::StoreNumber)
    return verifyNumbers(op, *matrix, state);
  if (op.kind == OpKind::MergeParts)
    return verifyMergeOfParts(MergePartsOp(op), state);
  if (const auto transpose = dynCast<TransposeOp>(op))
    return verifyTranspose(*transpose, state);
  if (isOfColumn) {
    verifyColumn(op, *matrix, state);
    if (op.kind == OpKind::StoreLse && !op.has(Attr::Factor) && !op.has(Attr::Unit))
      defect("attribute 'factor' is missing: what makes nats of %" + op.operands[1].buffer->name);
  } else if (matrix->shape.size() != 2) {
    return defect("%" + matrix->name + " has " + Twine(matrix->shape.size()) +
                  " dimensions; copies and stores take a view with rows and columns");
  }
  if (op.has(Attr::Limit))
    defect("attribute 'limit' is given, but %" + matrix->name + " says itself where it ends");
  if (op.isSet(Attr::Running) && !hasEvenRows(matrixOf(op)))
    defect("rows of %" + matrix->name +
           " do not follow each other along one dimension: no running copy can follow them");
}

/// A box brings a whole page, to a place where a swizzle's pattern begins.
static void verifyPages(const Op &op, const Buffer &tile, unsigned pageRows, VerifierState &state) {
  constexpr unsigned kPatternRows = 8;
  const std::string name = opInfo(op.kind).name.str() + ": ",
                    pages = "pages of " + std::to_string(pageRows) + " rows of %" + globalOf(op)->name;
  auto isWhole = [&](const Expr &expr) { return isMultiple(expand(state.kernel, expr), pageRows); };
  if (op.kind != OpKind::CopyIssue || op.isSet(Attr::Cluster))
    state.defect(op.location, name + pages + " are copied by one CTA for itself, and not stored: do it by threads");
  else if (pageRows % kPatternRows != 0 || tile.rows % pageRows != 0)
    state.defect(op.location, name + pages + " do not fill a tile of " + Twine(tile.rows) +
                                  " rows by whole pages of a multiple of 8 rows: copy them by threads");
  else if (!isWhole(firstRowOf(op)))
    state.defect(op.location, name + "row " + firstRowOf(op).str() + " may begin within " + pages);
  else if (!isWhole(matrixOf(op).rows()))
    state.defect(op.location, name + "%" + globalOf(op)->name + " ends at row " + matrixOf(op).rows().str() +
                                  ", which may be within a page of " + Twine(pageRows) +
                                  " rows: a box brings all of it. Let the view end with its last page, ceil_div(n, " +
                                  Twine(pageRows) + ") * " + Twine(pageRows) + ", or copy by threads");
}

void ir::verifyBox(const Op &op, const Buffer &tile, VerifierState &state) {
  const Matrix matrix = matrixOf(op);
  const std::optional<BoxMap> box = boxMapOf(matrix);
  const std::string name = opInfo(op.kind).name.str() + ": ", ofMatrix = "%" + globalOf(op)->name;
  if (!box)
    return state.defect(op.location, name + "rows of " + ofMatrix +
                                         " do not follow each other along one dimension: copy them by threads");
  if (box->pageRows != 0)
    verifyPages(op, tile, box->pageRows, state);
  if (!boxEndsWithMatrix(op, tile) && !state.holds(isBoxInside(op, tile)))
    state.defect(op.location, name + "a box of " + Twine(tile.rows) + " x " + Twine(tile.columns) +
                                  " may reach beyond " + ofMatrix + " into other elements of %" + matrix.tensor().name +
                                  ": copy and store them by threads");
}
