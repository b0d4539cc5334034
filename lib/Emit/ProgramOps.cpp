// fagen: ops of kernels with parameters of their own, as text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramOps.h"
#include "KernelEmitter.h"
#include "Stages.h"

#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/GridQueries.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/SetVector.h"

using namespace fagen;
using namespace fagen::ir;

bool fagen::isByFirstThread(const Op &op) {
  if (const auto fence = dynCast<FenceOp>(op))
    return fence->kind() == FenceKind::MbarrierInit;
  if (opInfo(op.kind).hasBody)
    return llvm::all_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return isByFirstThread(*inner); });
  const bool isOfRole = op.has(Attr::By) || op.kind == OpKind::AwaitLaunches || op.kind == OpKind::FetchTile ||
                        op.kind == OpKind::HandTile || op.kind == OpKind::StoreNumber || op.kind == OpKind::BulkStore ||
                        op.kind == OpKind::BulkCommit || op.kind == OpKind::BulkWait;
  return op.kind == OpKind::MbarrierInit || isBulkCopy(op) || (isOfRole && actorOf(op) == Actor::Role);
}

bool fagen::isOverlain(const Kernel &kernel, const Buffer &buffer) {
  return llvm::any_of(kernel.buffers, [&](const auto &over) {
    return over->overlays && buffer.isRing && !buffer.overlays && *buffer.offset >= *over->overlays->offset;
  });
}

bool fagen::isLoopOverTiles(const Kernel &kernel, const Op &op) {
  const auto loop = dynCast<LoopOp>(op);
  return loop && expand(kernel, loop->end()) == variable(RunValue::TilesOfCta);
}

/// Of the role's struct: a number of a tile is a variable of its own.
static bool isInRegisters(const Buffer &buffer) {
  return buffer.space == Space::Fragment && buffer.type != ElementType::U32;
}

std::vector<const Buffer *> fagen::fragmentsOf(const Role &role) {
  llvm::SetVector<const Buffer *> found;
  forEachComposition(role.body, [&](const Composition &composition) {
    for (const Buffer *buffer : composition.registers)
      if (buffer && isInRegisters(*buffer))
        found.insert(buffer);
  });
  return {found.begin(), found.end()};
}

const Op *fagen::ownerOfRegisters(const Kernel &kernel, const Role &role) {
  const Op *tiles = nullptr;
  for (const std::unique_ptr<Op> &op : role.body.ops) {
    bool names = false;
    auto look = [&](const Op &each) {
      names |= llvm::any_of(each.operands, [](const Operand &of) { return of.buffer && isInRegisters(*of.buffer); });
    };
    look(*op);
    walk(op->body, look);
    if (names && (tiles || !isLoopOverTiles(kernel, *op)))
      return nullptr;
    tiles = names ? op.get() : tiles;
  }
  return tiles;
}

std::string fagen::asFactor(const Expr &expr) {
  const bool isCall = expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::CeilDiv ||
                      expr.kind() == ExprKind::Min || expr.kind() == ExprKind::Max;
  return expr.isBinary() && !isCall ? "(" + expr.str() + ")" : expr.str();
}

llvm::StringSet<> fagen::namesOfTiles(const Kernel &kernel) {
  llvm::StringSet<> names;
  for (const GridIndex &index : kernel.grid.indices)
    names.insert(index.name);
  return withFollowers(kernel, std::move(names));
}

void fagen::forEachExprInText(const Op &op, llvm::function_ref<void(const Expr &)> visit) {
  forEachExpr(op, visit);
  for (const Operand *const global : globalOperandsOf(op)) {
    llvm::for_each(global->buffer->shape, visit);
    if (global->buffer->map)
      llvm::for_each(global->buffer->map->at, visit);
  }
}

/// Those that stand in the text: floor_div has a reciprocal in its divisor's place.
static void addNamesOf(const TileDivisors &divisors, const Expr &expr, llvm::StringSet<> &names) {
  if (!expr)
    return;
  if (expr.kind() == ExprKind::Variable)
    names.insert(expr.name());
  if (expr.kind() == ExprKind::FloorDiv && divisors.of(expr))
    return addNamesOf(divisors, expr.lhs(), names);
  for (const Expr &operand : expr.operands())
    addNamesOf(divisors, operand, names);
}

/// Names that expressions of the ops depend on, by way of lets, too.
static llvm::StringSet<> namesUsedBy(const Kernel &kernel, const TileDivisors &divisors,
                                     llvm::ArrayRef<const Op *> ops) {
  llvm::StringSet<> used;
  auto use = [&](const Expr &expr) { addNamesOf(divisors, expr, used); };
  auto useAll = [&](const Op &op) { forEachExprInText(op, use); };
  for (const Op *op : ops) {
    useAll(*op);
    walk(op->body, useAll);
  }
  if (!kernel.grid.listed.empty())
    used.insert(kernel.grid.listed);
  for (const Let &let : llvm::reverse(kernel.lets))
    if (used.contains(let.name)) {
      use(let.value);
      if (let.source)
        llvm::for_each(let.source->at, use);
    }
  return used;
}

ProgramOpEmitter::ProgramOpEmitter(const Kernel &kernel, const TileDivisors &divisors, const Role &role,
                                   const ProgramParams &params, const Points &points, IndentedStream &out,
                                   std::vector<OpPlan> &places)
    : OpEmitter(kernel, divisors, points, out, places), ofRole(role), params(params), ofTiles(namesOfTiles(kernel)),
      tile(kernel.freshName("tile")), drawn(kernel.freshName("drawn")), next(kernel.freshName("next_number")),
      clock(kernel.freshName("clock")), used(namesUsedBy(kernel, divisors, pointersTo(role.body.ops))) {}

Expr fagen::ofParams(const Kernel &kernel, const Expr &expr, llvm::StringRef params) {
  Expr result = expr;
  for (const std::string &size : kernel.sizes)
    result = result.substitute(size, variable((params + "." + size).str()));
  return result;
}

std::string ProgramOpEmitter::elementType(ElementType type) const { return spellType(type).str(); }

/// From the whole to its parts: an index of what is read may be read itself.
Expr ProgramOpEmitter::withReads(const Expr &expr) const {
  if (expr.kind() == ExprKind::Read)
    return variable(elementAt(*kernel.buffer(expr.operands().front().name().drop_front()), expr.indices()));
  llvm::SmallVector<Expr, 3> operands;
  for (const Expr &operand : expr.operands())
    operands.push_back(withReads(operand));
  return operands.empty() ? expr : expr.withOperands(operands);
}

Expr ProgramOpEmitter::spelled(const Expr &expr) const {
  const Expr called =
      spellCalls(kernel, divisors, withReads(expr), "", [this](const Expr &each) { return expression(each); });
  Expr result = ofParams(kernel, called, "cta.params");
  for (const Scalar &scalar : kernel.scalars)
    result = result.substitute(scalar.name, variable("cta.params." + scalar.name));
  return result.substitute(nameOf(RunValue::GroupRow), variable("cta.group_row"));
}

std::string ProgramOpEmitter::expression(const Expr &expr) const {
  for (const auto &[known, name] : firstKeys)
    if (known == expr)
      return name;
  return spelled(expr).str();
}

/// What begins the keys of several masks of a step has a name there.
void ProgramOpEmitter::nameFirstKeys(const Op &loop) {
  std::vector<Expr> begins;
  walk(loop.body, [&](const Op &op) {
    if (op.has(Attr::Key) && op.expr(Attr::Key).isBinary())
      begins.push_back(op.expr(Attr::Key));
  });
  if (begins.size() < 2 || !llvm::all_equal(begins))
    return;
  const std::string name = kernel.freshName("first_key");
  line(out, "const int {} = {};", name, expression(begins.front()));
  firstKeys.push_back({begins.front(), name});
}

std::string ProgramOpEmitter::heading(const Op &op) const {
  const std::optional<Product> product = asProduct(op);
  return product ? fmt::format("{} {} {}{} {}{}", product->acc->name, product->accumulates ? "+=" : "=",
                               product->a->name, product->takesLeftTransposed() ? "^T" : "", product->b->name,
                               product->takesRightTransposed() ? "^T" : "")
                 : "";
}

std::string ProgramOpEmitter::rowOfWarp() const {
  unsigned rows = 0;
  walk(ofRole.body, [&](const Op &op) {
    for (const Operand &each : op.operands)
      if (each.buffer && each.buffer->space == Space::Fragment)
        rows = std::max(rows, each.buffer->rows.number());
  });
  const WarpGrid grid = warpGridOf(kernel, ofRole);
  const std::string warp =
      ofRole.firstWarp == 0 ? "ptx::warp_index()" : fmt::format("(ptx::warp_index() - {})", ofRole.firstWarp);
  return grid.columns == 1 ? fmt::format("{} * {}", warp, rows) : fmt::format("{} % {} * {}", warp, grid.rows, rows);
}

std::string ProgramOpEmitter::columnOfWarp() const {
  const WarpGrid grid = warpGridOf(kernel, ofRole);
  unsigned columns = 0;
  walk(ofRole.body, [&](const Op &op) {
    if (const auto product = asProduct(op); product && product->takesRightTransposed())
      columns = product->acc->columns;
  });
  return grid.columns == 1 ? "0"
                           : fmt::format("(ptx::warp_index() - {}) / {} * {}", ofRole.firstWarp, grid.rows, columns);
}

// Places in global memory.

/// Dense dimensions follow from the sizes.
std::string ProgramOpEmitter::address(const Buffer &tensor, llvm::ArrayRef<Expr> index) const {
  const std::string offset = offsetOf(tensor, index);
  return "cta.params." + tensor.param + (offset.empty() ? "" : " + " + offset);
}

/// In elements; empty of the first one.
std::string ProgramOpEmitter::offsetOf(const Buffer &tensor, llvm::ArrayRef<Expr> index) const {
  const unsigned last = index.size() - 1;
  std::string offset;
  for (unsigned i = 0; i < last; ++i) {
    if (tensor.isStrided) {
      if (!(index[i] == constant(0)))
        offset += fmt::format("{}{} * cta.params.{}[{}]", offset.empty() ? "" : " + ", asFactor(spelled(index[i])),
                              membersOfStrides(tensor.param), i);
      continue;
    }
    const std::string wide = i == 0 ? fmt::format("static_cast<long long>({})", expression(index[i]))
                                    : fmt::format("({} + {})", offset, asFactor(spelled(index[i])));
    offset = fmt::format("{} * {}", wide, asFactor(spelled(tensor.shape[i + 1])));
  }
  const Expr &column = index[last];
  const bool isFirst = column == constant(0);
  return offset + (isFirst ? "" : (offset.empty() ? "" : " + ") + expression(column));
}

std::string ProgramOpEmitter::elementAt(const Buffer &tensor, llvm::ArrayRef<Expr> index) const {
  const std::string offset = offsetOf(tensor, index);
  const std::string element =
      fmt::format("ptx::element_of(cta.params.{}, {})", tensor.param, offset.empty() ? "0" : offset);
  return tensor.type == ElementType::F32 ? element : "static_cast<int>(" + element + ")";
}

/// By its name, where the kernel has one.
std::string ProgramOpEmitter::vectorBytes() const {
  return byName(kernel, Measure::VectorBytes, vectorBytesOf(kernel)).str();
}

/// As row_of of <fagen/device/ops/matrix.h>. A view's row has the view's name for it, by which analyses know it.
std::string ProgramOpEmitter::rowsOf(const Matrix &matrix) const {
  const std::string row = matrix.isView() ? matrix.map().row : kernel.freshName("row");
  return fmt::format("[&](int {}) {{ return {}; }}", row,
                     address(matrix.tensor(), matrix.indexOf(variable(row), constant(0))));
}

/// The first element of a box, the fastest dimension first.
std::string ProgramOpEmitter::cornerOf(const Op &op, const Expr &row) const {
  llvm::SmallVector<Expr, 5> index(matrixOf(op).indexOf(row, firstColumnOf(op)));
  if (const BoxShape box = boxOf(kernel, ofRole, op); box.panels > 1)
    index.insert(index.begin() + box.rowDimension, constant(0)); // the first of them
  std::string corner;
  for (const Expr &at : llvm::reverse(index))
    corner += (corner.empty() ? "" : ", ") + expression(at);
  return "{" + corner + "}";
}

/// In elements, from a row of a matrix with even rows to the next one.
std::string ProgramOpEmitter::rowStrideOf(const Matrix &matrix) const {
  const Buffer &tensor = matrix.tensor();
  const unsigned dimension = boxMapOf(matrix)->rowDimension;
  if (tensor.isStrided)
    return fmt::format("cta.params.{}[{}]", membersOfStrides(tensor.param), dimension);
  std::string stride;
  for (const Expr &size : llvm::ArrayRef(tensor.shape).drop_front(dimension + 1))
    stride += (stride.empty() ? "" : " * ") + asFactor(spelled(size));
  return stride;
}

std::string ProgramOpEmitter::nextOf(const Buffer &ring) const { return kernel.freshName("next_of_" + ring.name); }

/// Where the thread's next vector comes from, of rings that copies fill one after the other.
void ProgramOpEmitter::emitRunningSources() {
  llvm::StringSet<> known;
  forEach<CopyIssueOp>(ofRole.body, [&](CopyIssueOp<const Op> copy) {
    const Buffer &ring = *copy.dst().buffer;
    if (!copy.running() || !known.insert(ring.name).second)
      return;
    const Matrix matrix(copy.src());
    line(out, "auto {} = own_source<TileShare<{}, {}, {}>>({}, {}, 0);", nextOf(ring), 32 * ofRole.warps, vectorBytes(),
         typeOfTile(ring.name), address(matrix.tensor(), matrix.indexOf(constant(0), constant(0))),
         rowStrideOf(matrix));
  });
}

bool fagen::findsRows(CopyIssueOp<const Op> copy) {
  return copy.kind() == CopyKind::CpAsync &&
         llvm::any_of(Matrix(copy.src()).indexOf(constant(0), constant(0)), readsMemory);
}

void ProgramOpEmitter::emitCopy(CopyIssueOp<const Op> copy) {
  const Op &op = *copy;
  const Matrix matrix(copy.src());
  if (copiesWholeRows(op)) {
    const std::string source = copy.running() ? nextOf(*copy.dst().buffer)
                                              : address(matrix.tensor(), matrix.indexOf(constant(0), constant(0)));
    return line(out, "copy_{}tile{}<{}, {}>({}, {}, {}, {}, {});", copy.running() ? "next_" : "",
                copy.kind() == CopyKind::CpAsync ? "_async" : "", 32 * ofRole.warps, vectorBytes(), operand(copy.dst()),
                source, rowStrideOf(matrix), expression(firstRowOf(op)), expression(matrix.rows()));
  }
  line(out, "copy_{}{}<{}, {}>({}, {}, {}, {}, {}, {});", findsRows(copy) ? "found_rows" : "matrix",
       copy.kind() == CopyKind::CpAsync ? "_async" : "", 32 * ofRole.warps, vectorBytes(), operand(copy.dst()),
       rowsOf(matrix), expression(firstRowOf(op)), expression(matrix.rows()), expression(firstColumnOf(op)),
       expression(matrix.columns()));
}

/// Of a tile in shared memory.
bool ProgramOpEmitter::emitKeptRows(const Op &op) {
  const Expr kept = keptRowsOf(op);
  const Operand &tile = op.operands.front();
  if (!kept || tile.buffer->space != Space::Shared)
    return false;
  std::optional<IndentedStream::Scope> scope;
  if (op.has(Attr::When)) {
    line(out, "if ({})", expression(op.expr(Attr::When)));
    scope.emplace(out);
    callStandsHere();
  }
  line(out, "clear_rows<{}, {}, {}>({}, {}, [&](int q) {{ return {}; }});", 32 * ofRole.firstWarp, 32 * ofRole.warps,
       vectorBytes(), operand(tile), expression(MapOp(op).row()), expression(kept));
  return true;
}

void ProgramOpEmitter::emitStore(const Op &op) {
  const StoreOp store(op);
  const Matrix matrix(store.dst());
  if (storesValues(op))
    return line(out, "store_values({}, {}, {} + warp_row(), {});", rowsOf(matrix), operand(store.o()),
                expression(firstRowOf(op)), expression(matrix.rows()));
  if (storesVectors(op)) // the stride is taken by reference: no constant's name by itself
    return line(out, "store_rows<{}>({}, {}{}, {}, {} + warp_row(), {});", vectorBytes(),
                address(matrix.tensor(), matrix.indexOf(constant(0), constant(0))),
                matrix.tensor().isStrided ? "" : "1LL * ", rowStrideOf(matrix), operand(store.o()),
                expression(firstRowOf(op)), expression(matrix.rows()));
  line(out, "store_matrix<{}>({}, {}, {} + warp_row(), {}, {}, {});", vectorBytes(), rowsOf(matrix), operand(store.o()),
       expression(firstRowOf(op)), expression(matrix.rows()), expression(firstColumnOf(op)),
       expression(matrix.columns()));
}

/// Where the elements of a row begin, in elements of the tensor.
std::string ProgramOpEmitter::offsetsOf(const Matrix &matrix) const {
  const std::string row = matrix.isView() ? matrix.map().row : kernel.freshName("row"),
                    offset = offsetOf(matrix.tensor(), matrix.indexOf(variable(row), constant(0)));
  return fmt::format("[&](int {}) -> long long {{ return {}; }}", row, offset.empty() ? "0" : offset);
}

/// "cta.params.o, [&](int r) -> long long { return ...; }": a tensor, and where the rows of a matrix lie in it.
std::string ProgramOpEmitter::placedRows(const Operand &operand) const {
  if (!operand.buffer)
    return "static_cast<float *>(nullptr), 1LL";
  const Matrix matrix(operand);
  return fmt::format("cta.params.{}, {}", matrix.tensor().param, offsetsOf(matrix));
}

/// In elements, from a part to the next one.
std::string ProgramOpEmitter::strideOfParts(const Buffer &tensor) const {
  std::string stride = "1LL";
  for (const Expr &size : llvm::drop_begin(tensor.shape))
    stride += " * " + asFactor(spelled(size));
  return stride;
}

/// What is the same in all ops that merge parts: how many there are, and how far apart, and the units of their maxima.
std::string ProgramOpEmitter::partsOf(const Op &op, const Operand &operand) const {
  const Buffer &tensor = tensorOf(*operand.buffer);
  const std::string stride = strideOfParts(tensor);
  const std::string toNats = op.has(Attr::Factor) ? element(op, op.expr(Attr::Factor)) : "1.0f",
                    toExponents = op.has(Attr::Exponent) ? element(op, op.expr(Attr::Exponent)) : "1.0f";
  return fmt::format("Parts{{{}, {}, {}, {}}}", expression(tensor.shape.front()), toNats, toExponents, stride);
}

/// What warps that share keys leave in shared memory, and what becomes of it.
void ProgramOpEmitter::emitMerge(const Op &op) {
  const WarpGrid grid = warpGridOf(kernel, ofRole);
  const std::string unit = op.has(Attr::Unit) ? unitOf(op).argument : "";
  if (const auto store = dynCast<StorePartialOp>(op))
    return line(out, "store_partial({}, ptx::warp_index() / {} * {} + warp_row(), {}, {}, {});",
                operand(store->partial()), grid.rows, store->partial().buffer->rows / grid.columns, operand(store->o()),
                operand(store->m()), operand(store->l()));
  if (const auto store = dynCast<StoreMergedSplitOp>(op))
    return line(out, "store_merged_split<{}, {}{}>({}, {}, {}, {}, {});", ofRole.warps, grid.columns, unit,
                partsOf(op, store->dst()), placedRows(store->dst()), operand(store->partial()),
                expression(firstRowOf(op)), expression(rowEndOf(op)));
  const CombineLastOp combine(op);
  line(out, "combine_last<{}, {}, {}{}>({}, {},", ofRole.warps, grid.columns, vectorBytes(), unit,
       partsOf(op, combine.parts()), operand(combine.partial()));
  auto scope = out.scope();
  auto deeper = out.scope();
  for (const Operand *const rows : {&combine.parts(), &combine.o(), &combine.lse()})
    line(out, "{},", placedRows(*rows));
  line(out, "{}, {});", expression(firstRowOf(op)), expression(rowEndOf(op)));
}

void ProgramOpEmitter::emitMergeParts(MergePartsOp<const Op> merge) {
  const Buffer &parts = tensorOf(*merge.parts().buffer);
  line(out, "merge_parts<{}, {}, {}>({},", constantOf(kernel, Matrix(merge.o()).columns()).value(), ofRole.warps,
       vectorBytes(), expression(parts.shape.front()));
  auto scope = out.scope();
  auto deeper = out.scope();
  for (const Operand *const each : {&merge.parts(), &merge.sums()})
    line(out, "RowsOfParts{{{}, {}}},", placedRows(*each), strideOfParts(tensorOf(*each->buffer)));
  line(out, "{}, {},", placedRows(merge.o()), placedRows(merge.lse()));
  line(out, "{}, {}, ptx::warp_index() - {});", expression(firstRowOf(*merge)), expression(Matrix(merge.o()).rows()),
       ofRole.firstWarp);
}

void ProgramOpEmitter::emitStoreNumber(StoreNumberOp<const Op> store) {
  const Matrix matrix = matrixOf(*store);
  const llvm::SmallVector<Expr, 4> index = matrix.indexOf(firstRowOf(*store), constant(0));
  line(out, "ptx::st_global_u32({}, {});", address(matrix.tensor(), index), expression(store.number()));
}

void ProgramOpEmitter::emitTranspose(TransposeOp<const Op> transpose) {
  const Matrix to(transpose.dst()), from(transpose.src());
  line(out, "transpose_{}<{}, {}, {}>({}, {}, {}, {}, {}, ptx::warp_index() - {});",
       to.tensor().isPaired ? "paired" : "bytes", constantOf(kernel, to.rows()).value(), transpose.tile(), ofRole.warps,
       rowsOf(to), rowsOf(from), expression(transpose.column()), expression(to.columns()), expression(from.rows()),
       ofRole.firstWarp);
}

void ProgramOpEmitter::emitStoreLse(const Op &op) {
  const StoreLseOp store(op);
  const Matrix matrix(store.dst());
  line(out, "store_lse({}, {}, {}, {}, {} + warp_row(), {});", rowsOf(matrix), operand(store.m()), operand(store.l()),
       store.factor() ? element(op, store.factor()) : unitOf(op).toNats, expression(firstRowOf(op)),
       expression(matrix.rows()));
}

void ProgramOpEmitter::emitPlanRows(PlanRowsOp<const Op> plan) {
  auto of = [](const Operand &operand) { return "cta.params." + operand.buffer->param; };
  line(out, "plan_rows<{}, {}, {}, {}>({{{}, {}, {}, {}, {}}}, {{{}, {}, {}, {}, {}, {}, {}, {} != 0, {} != 0}});",
       plan.tile(), plan.tileKeys(), plan.causal(), ofRole.warps, of(plan.rows()), of(plan.words()), of(plan.order()),
       of(plan.count()), expression(plan.order().buffer->shape[0]), of(plan.offsets()), of(plan.keyOffsets()),
       of(plan.used()), of(plan.usedKeys()), expression(plan.used().buffer->shape[0]), expression(plan.total()),
       expression(plan.totalKeys()), expression(plan.uses()), expression(plan.usesKeys()));
}

/// The dimension along which rows of a box follow each other, the fastest being 0.
static unsigned rowOfBox(const Matrix &matrix) {
  return matrix.tensor().shape.size() - 1 - boxMapOf(matrix)->rowDimension;
}

void ProgramOpEmitter::emitBulkCopy(CopyIssueOp<const Op> copy) {
  const Op &op = *copy;
  const Matrix matrix(copy.src());
  const unsigned row = rowOfBox(matrix);
  if (const unsigned pageRows = boxMapOf(matrix)->pageRows; pageRows != 0)
    return line(out,
                "copy_pages<{}, {}>({}, cta.params.{}, {}, {}, [&](int {}) {{ return BoxCorner<{}>{{{}}}; }}, {}{});",
                pageRows, row, operand(copy.dst()), params.mapOf(kernel, ofRole, op).str(), expression(firstRowOf(op)),
                expression(matrix.rows()), matrix.map().row, matrix.tensor().shape.size(),
                cornerOf(op, variable(matrix.map().row)), mbarrier(copy.full()), cacheHintOf(copy));
  const std::string call = copy.cluster() ? fmt::format("copy_share_of_boxes<{}, {}>", kernel.grid.cluster, row)
                           : boxOf(kernel, ofRole, op).panels > 1 ? "copy_box"
                                                                  : "copy_boxes";
  line(out, "{}({}, cta.params.{}, {}, {}{});", call, operand(copy.dst()), params.mapOf(kernel, ofRole, op).str(),
       cornerOf(op, firstRowOf(op)), mbarrier(copy.full()), cacheHintOf(copy));
}

void ProgramOpEmitter::emitBulkStore(const Op &op) {
  const BulkStoreOp store(op);
  const unsigned row = rowOfBox(Matrix(store.dst()));
  const bool isOfGroup = actorOf(op) == Actor::Group;
  if (isOfGroup) {
    line(out, "if (ptx::thread_index() % {} == 0)", 32 * kGroupWarps);
    callStandsHere();
  }
  line(out, "{}store_boxes<{}>({}, {}, cta.params.{}, {});", isOfGroup ? "  " : "", row, operand(store.src()),
       isOfGroup ? "cta.group_row" : "0", params.mapOf(kernel, ofRole, op).str(), cornerOf(op, firstRowOf(op)));
}

// Control.

void ProgramOpEmitter::emitLet(const Let &let) {
  const std::string value = let.source ? elementAt(*let.source->buffer, let.source->at) : expression(let.value);
  line(out, "const {} {} = {};{}", isReal(kernel, let.name) ? "float" : "int", let.name, value,
       let.note.empty() ? "" : " // " + let.note);
}

void ProgramOpEmitter::emitFixedLets() {
  for (const Let &let : kernel.lets)
    if (isUsed(let.name) && !ofTiles.contains(let.name) && !(let.value == variable(RunValue::TilesOfCta)))
      emitLet(let);
}

std::string ProgramOpEmitter::tileCount() const {
  const std::string &listed = kernel.grid.listed;
  return listed.empty() ? "tile_count(cta.params)" : fmt::format("min(tile_count(cta.params), {})", listed);
}

/// Where the order is not that of numbers.
std::string ProgramOpEmitter::tileAt(const std::string &ticket) const {
  return kernel.grid.order == TileOrder::FirstFirst ? ticket : fmt::format("tile_at(cta.params, {})", ticket);
}

void ProgramOpEmitter::emitTile() {
  line(out, "[[maybe_unused]] const int {} = {};", tile, tileAt("ptx::cta_index()"));
  emitPlace();
}

/// Where the ops begin that have the tile's place anew: after the last loop of a role whose warps multiply, if that
/// takes no reads of memory.
size_t ProgramOpEmitter::findPlaceAnew(llvm::ArrayRef<const Op *> ops) const {
  size_t first = ops.size();
  while (first != 0 && ops[first - 1]->kind != OpKind::Loop)
    --first;
  const llvm::StringSet<> names = namesUsedBy(kernel, divisors, ops.drop_front(first));
  const bool readsMemory = llvm::any_of(kernel.lets, [&](const Let &let) {
    return names.contains(let.name) && (let.source || fagen::ir::readsMemory(let.value));
  });
  const bool usesPlace = llvm::any_of(ofTiles, [&](const auto &name) { return names.contains(name.first()); });
  const bool isFound = first != 0 && usesPlace && !readsMemory && !kernel.grid.isPersistent &&
                       !mmaFamily(kernel.backend).isAsynchronous && !fragmentsOf(ofRole).empty();
  return isFound ? first : ops.size();
}

void ProgramOpEmitter::emitRole() {
  const llvm::SmallVector<const Op *, 16> all = pointersTo(ofRole.body.ops);
  const llvm::ArrayRef<const Op *> ops(all);
  const size_t anew = findPlaceAnew(ops);
  emitBlock(ops.take_front(anew));
  if (anew == ops.size())
    return;
  llvm::StringSet<> ofRest = namesUsedBy(kernel, divisors, ops.drop_front(anew));
  std::swap(used, ofRest);
  {
    const Braces scope(out, "}", "{{ // the tile's place anew: the loop needs the registers");
    line(out, "const int {} = {};", tile, tileAt("ptx::recompute(ptx::cta_index())"));
    emitPlace();
    emitBlock(ops.drop_front(anew));
  }
  std::swap(used, ofRest);
}

/// The last index is the fastest.
void ProgramOpEmitter::emitPlace() {
  std::string rest = tile;
  for (const GridIndex &index : llvm::reverse(kernel.grid.indices)) {
    const bool isFirst = &index == &kernel.grid.indices.front();
    const std::string extent = asFactor(spelled(index.extent));
    const TileDivisor *const by = isFirst ? nullptr : divisors.by(expand(kernel, index.extent));
    if (isUsed(index.name))
      line(out, "const int {} = {};", index.name,
           isFirst ? rest
           : by    ? fmt::format("rest_of({}, {}, {})", rest, extent, by->name)
                   : rest + " % " + extent);
    rest = by ? fmt::format("floor_div({}, {})", rest, by->name) : rest + " / " + extent;
  }
  for (const Let &let : kernel.lets)
    if (isUsed(let.name) && ofTiles.contains(let.name))
      emitLet(let);
}

void ProgramOpEmitter::emitBlock(llvm::ArrayRef<const Op *> ops) {
  while (!ops.empty()) {
    const bool isOfFirst = !isUnderFirst && isByFirstThread(*ops.front());
    const auto together =
        ops.take_while([&](const Op *op) { return isUnderFirst || isByFirstThread(*op) == isOfFirst; });
    if (isOfFirst) {
      const Marks outer = marks;
      marks = isByOneThread() ? outer : Marks::None; // else the warp's lanes tell together
      inBraces("if (is_first)", [&] {
        isUnderFirst = true;
        OpEmitter::emitBlock(together);
        isUnderFirst = false;
      });
      if (std::exchange(marks, outer) != outer)
        emitMark(stagesOf(kernel, together).back(), /*isBeforeWait=*/true);
    } else
      OpEmitter::emitBlock(together);
    ops = ops.drop_front(together.size());
  }
}

/// Whether one thread does all that the role does.
bool ProgramOpEmitter::isByOneThread() const {
  bool found = fragmentsOf(ofRole).empty();
  walk(ofRole.body,
       [&](const Op &op) { found &= opInfo(op.kind).hasBody || op.kind == OpKind::Barrier || isByFirstThread(op); });
  return found;
}

void ProgramOpEmitter::startClock() {
  const ProgramParam *const records = params.clocksOf(kernel);
  if (!records)
    return;
  const std::string place = kernel.freshName("records");
  line(out, "const ClockRecords {}{{cta.params.{}}};\n{}<{}, false> {};\n{}.start();", place, records->name,
       isByOneThread() ? "ThreadClock" : "StageClock", kernel.threads / 32, clock, clock);
  markStages({clock, place});
}

void ProgramOpEmitter::stopClock() {
  if (params.clocksOf(kernel))
    line(out, "{}{}.stop({});", isByOneThread() ? "if (is_first)\n  " : "", clock, kernel.freshName("records"));
}

void ProgramOpEmitter::emitLoop(const Op &op) {
  const LoopOp loop(op);
  if (isLoopOverTiles(kernel, op))
    return emitTiles(op);
  if (op.has(Attr::About) || op.has(Attr::Name))
    line(out, "// {}", aboutOf(loop));
  const bool isOnce = runsAtMostOnce(kernel, ofRole, loop);
  if (const std::optional<StepApart> step = isOnce ? std::nullopt : asStepApart(op))
    return emitStepsApart(*step, loop.variable().str(),
                          fmt::format("int {} = {}", loop.variable().str(), expression(loop.begin())),
                          expression(loop.end()));
  auto spell = [&](const Expr &expr) { return expression(expr); };
  std::string head = loopHead(loop, isOnce, spell);
  if (const std::string carry = loop.carry().str(); !carry.empty())
    head = fmt::format("for (int {0} = {1}, {3} = 0; {0} < {2}; {3} += {4}, ++{0})", loop.variable().str(),
                       spell(loop.begin()), spell(loop.end()), carry, spell(loop.step()));
  inBraces(head, [&] { emitBodyOf(op); });
}

/// Tiles go to the CTAs in turn, or each CTA goes on with the one that is handed over.
void ProgramOpEmitter::emitTiles(const Op &op) {
  const LoopOp loop(op);
  const std::string carry = loop.carry().str(), turn = loop.variable().str(), first = "ptx::cta_index()";
  const bool isDrawn = kernel.grid.isDrawn, isByTicket = !isDrawn && kernel.grid.order != TileOrder::FirstFirst;
  const std::string counted = isByTicket ? kernel.freshName("ticket") : tile;
  const Braces scope(out, "}", "for (int {0} = {1}, {2} = 0{3}; {0} < {4}; {5}++{2}) {{", counted,
                     isDrawn ? tileAt(first) : first, turn, carry.empty() ? "" : fmt::format(", {} = 0", carry),
                     tileCount(), isDrawn ? "" : fmt::format("{} += ptx::cta_count(), ", counted));
  if (isByTicket)
    line(out, "const int {} = {};", tile, tileAt(counted));
  if (params.clocksOf(kernel))
    line(out, "{}.count_tile();", clock);
  emitPlace();
  emitBodyOf(op);
  if (!carry.empty())
    line(out, "{} += {};", carry, expression(loop.step()));
  if (isDrawn)
    line(out, "{} = {};", tile, next);
}

/// One thread draws and hands over, and all others take; what it says is in the order of tiles.
void ProgramOpEmitter::emitTicket(const Op &op) {
  if (const auto fetch = dynCast<FetchTileOp>(op))
    return line(out, "const unsigned {} = draw(cta.params.{}, {});", drawn, fetch->counter().buffer->param,
                tileCount());
  if (const auto take = dynCast<TakeTileOp>(op))
    return line(out, "const int {} = take_tile(cta.shared.{});", next, take->src().buffer->name);
  line(out, "const int {} = {};", next, tileAt(fmt::format("ticket_of({}, {})", drawn, tileCount())));
  callStandsHere();
  line(out, "hand_tile(cta.shared.{}, {});", HandTileOp(op).dst().buffer->name, next);
}

void ProgramOpEmitter::emitBodyOf(const Op &owner) {
  if (&owner == ownerOfRegisters(kernel, ofRole))
    line(out, "{} r;", typeOfRegisters(ofRole.name));
  const auto outer = firstKeys;
  auto isLoop = [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; };
  if (owner.kind == OpKind::Loop && llvm::none_of(owner.body.ops, isLoop))
    nameFirstKeys(owner);
  emitBlock(pointersTo(owner.body.ops));
  firstKeys = outer;
}

bool ProgramOpEmitter::emitOwn(const Op &op) {
  switch (op.kind) {
  case OpKind::Loop:
    return emitLoop(op), true;
  case OpKind::If:
    return inBraces(fmt::format("if ({})", expression(IfOp(op).condition())), [&] { emitBodyOf(op); }), true;
  case OpKind::Map:
    return emitKeptRows(op);
  case OpKind::FetchTile:
  case OpKind::HandTile:
  case OpKind::TakeTile:
    return emitTicket(op), true;
  case OpKind::Store:
    return emitStore(op), true;
  case OpKind::StoreLse:
    return emitStoreLse(op), true;
  case OpKind::StoreNumber:
    return emitStoreNumber(StoreNumberOp(op)), true;
  case OpKind::StorePartial:
  case OpKind::StoreMergedSplit:
  case OpKind::CombineLast:
    return emitMerge(op), true;
  case OpKind::MergeParts:
    return emitMergeParts(MergePartsOp(op)), true;
  case OpKind::Transpose:
    return emitTranspose(TransposeOp(op)), true;
  case OpKind::PlanRows:
    return emitPlanRows(PlanRowsOp(op)), true;
  case OpKind::BulkStore:
    return emitBulkStore(op), true;
  case OpKind::BulkCommit:
    return actorOf(op) == Actor::Role && (line(out, "ptx::tma_commit();"), true);
  case OpKind::BulkWait:
    return actorOf(op) == Actor::Role && (line(out, "ptx::tma_wait_read<{}>();", BulkWaitOp(op).pending()), true);
  default:
    return false;
  }
}
