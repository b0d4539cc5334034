// fagen: whether every index of every access to global memory lies inside its extent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Bounds.h"

#include "fagen/Analysis/Inequalities.h"
#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;
using llvm::Twine;

namespace {

bool isDivision(const Expr &expr) {
  return expr.kind() == ExprKind::FloorDiv || expr.kind() == ExprKind::CeilDiv || expr.kind() == ExprKind::Mod ||
         expr.kind() == ExprKind::FloorMod;
}

class BoundsFinder {
public:
  explicit BoundsFinder(const Kernel &kernel) : kernel(kernel), areOfSizes(hasExtentsOfSizes(kernel)), known(kernel) {}

  /// Of attention's parameters: what expressions read next to them.
  std::vector<OutOfBounds> findOfReads() {
    for (const Let &let : kernel.lets)
      if (let.judged) {
        for (const std::string &end : {let.judged->low, let.judged->high})
          known.declare(end, true);
        for (const Expr &expr : {let.judged->first, let.judged->tiles, let.judged->seen, let.judged->whole})
          checkElements(expr, "let " + let.name);
      } else if (let.source) {
        checkElement(*let.source->buffer, let.source->at, "let " + let.name);
      } else {
        checkElements(let.value, "let " + let.name);
      }
    for (const Role &each : kernel.roles)
      walk(each.body, [&](const Op &of) {
        op = &of;
        forEachExpr(of, [&](const Expr &expr) {
          if (expr)
            checkElements(expr, nameOfOp());
        });
      });
    return std::move(found);
  }

  std::vector<OutOfBounds> find() {
    for (const GridIndex &index : kernel.grid.indices)
      checkValue(index.extent, "the extent of grid index '" + index.name + "'");
    for (const Let &let : kernel.lets) {
      const std::string name = "let " + nameOf(let);
      if (let.source)
        checkElement(*let.source->buffer, let.source->at, name);
      else if (let.value)
        checkValue(let.value, name);
    }
    if (found.empty()) // else what is made of them is wrong, too
      for (const Role &each : kernel.roles) {
        role = &each;
        checkBlock(each.body);
      }
    return std::move(found);
  }

private:
  void checkBlock(const Block &block) {
    for (const std::unique_ptr<Op> &each : block.ops) {
      op = each.get();
      const Inequalities::Scope scope(known);
      if (const auto loop = dynCast<LoopOp>(*op))
        enter(*loop);
      else if (const auto branch = dynCast<IfOp>(*op))
        assume(branch->condition());
      else if (each->kind != OpKind::FetchTile && each->kind != OpKind::PlanRows)
        for (const Operand *global : globalOperandsOf(*each))
          checkMatrix(*global);
      checkAttributes();
      checkBlock(each->body);
    }
  }

  /// What values are made of, and all else that the op says; a map's, where it does its work.
  void checkAttributes() {
    const Inequalities::Scope scope(known);
    if (const auto map = dynCast<MapOp>(*op)) {
      if (map->when())
        assume(map->when());
      if (map->row() && map->key())
        declarePlaces(*map);
    }
    for (Attr attribute : {Attr::Value, Attr::Test, Attr::Factor, Attr::Exponent, Attr::Limit})
      if (op->has(attribute))
        checkValue(op->expr(attribute), nameOfOp());
    for (const Operand &operand : op->operands)
      if (operand.position && operand.buffer->space == Space::Shared)
        checkPosition(operand);
  }

  /// Positions count on from tile to tile; a ring's slot is what the number of slots leaves of it.
  void checkPosition(const Operand &operand) {
    const std::string name = nameOfOp() + ": its position of %" + operand.buffer->name;
    checkDivisions(operand.position, name);
    if (operand.buffer->type != ElementType::MBarrier) // nobody waits for a phase before the first
      checkNotNegative(operand.position, name);
  }
  void checkDivisions(const Expr &expr, const std::string &name) {
    checkDivision(expr, name);
    for (const Expr &operand : expr.operands())
      checkDivisions(operand, name);
  }

  /// q and k are places of the tile that warps of the role have.
  void declarePlaces(MapOp<const Op> map) {
    const Buffer &dst = *map.dst().buffer;
    const WarpGrid grid = warpGridOf(kernel, *role);
    const bool isShared = dst.space == Space::Shared;
    const auto declare = [&](RunValue place, const Expr &first, int64_t count) {
      checkValue(first + constant(count), nameOfOp() + ": its last " + ir::nameOf(place).str());
      known.declare(ir::nameOf(place), known.isNotNegative(first));
      known.assumeAtMost(first, variable(ir::nameOf(place)));
      known.assume(lessThan(variable(ir::nameOf(place)), first + constant(count)));
    };
    declare(RunValue::ElementRow, map.row(), int64_t(dst.rows.number()) * (isShared ? 1 : grid.rows));
    if (isShared || dst.columns != 1 || grid.columns == 1) // else a row's value is of the warp's first key
      declare(RunValue::ElementKey, map.key(), int64_t(dst.columns.number()) * (isShared ? 1 : grid.columns));
  }

  void enter(LoopOp<const Op> loop) {
    const std::string name = "loop " + loop.variable().str();
    checkValue(loop.begin(), name + ": its begin");
    checkValue(loop.end(), name + ": its end");
    checkNotNegative(loop.begin(), name + ": its begin");
    const Expr begin = loop.begin(), end = loop.end();
    known.declare(loop.variable(), known.isNotNegative(begin));
    known.assumeAtMost(begin, variable(loop.variable()));
    known.assume(lessThan(variable(loop.variable()), end));
    known.assume(lessThan(begin, end)); // else there is no step
    if (!loop.carry().empty())
      known.declare(loop.carry(), true);
  }

  void assume(const Expr &condition) {
    checkValue(condition, nameOfOp() + ": its condition");
    known.assume(condition);
  }

  // What an op asks for.

  std::string nameOfOp() const { return opInfo(op->kind).name.str(); }

  void checkMatrix(const Operand &operand) {
    const Buffer &global = *operand.buffer;
    const Matrix matrix(operand);
    const TileShape reached = reachOf(kernel, *role, *op, operand);
    const int64_t rows = reached.rows, columns = reached.columns;
    const Expr row = firstRowOf(*op, operand), column = matrix.isVector() ? constant(0) : firstColumnOf(*op, operand);
    const std::string name = nameOfOp() + " of %" + global.name;
    if (op->kind == OpKind::StoreNumber)
      return checkNumber(matrix, name);
    if (operand.position)
      checkValue(operand.position, name + ": its position");
    if (op->has(Attr::When))
      assume(op->expr(Attr::When));
    checkValue(row + constant(rows), name + ": its last row");
    checkValue(column + constant(columns), name + ": its last column");
    const bool isOfBoxes = isBulkCopy(*op) || op->kind == OpKind::BulkStore;
    if (const auto box = boxMapOf(matrix); isOfBoxes && box && box->pageRows != 0)
      return checkPages(matrix, {row, constant(rows)}, column, name);
    if (isOfBoxes)
      return checkCorner(matrix, row, column, rows, columns, name);
    checkNotNegative(row, name + ": its first row");
    checkNotNegative(column, name + ": its first column");
    checkValue(matrix.rows(), name + ": its rows");
    if (!matrix.isVector())
      checkValue(matrix.columns(), name + ": its columns");
    if (op->kind == OpKind::CopyIssue) // rows that are not there are looked up as row 0
      for (const Expr &index : matrix.indexOf(constant(0), constant(0)))
        checkElements(index, name + ", which looks up row 0 where no row is left");
    checkElementsOf(global, matrix, {row, constant(rows)}, {column, constant(columns)}, name);
  }

  /// What one thread stores, whatever the matrix has.
  void checkNumber(const Matrix &matrix, const std::string &name) {
    const Expr row = firstRowOf(*op);
    checkValue(op->expr(Attr::Number), name + ": its number");
    checkValue(row, name + ": its row");
    checkNotNegative(row, name + ": its row");
    for (const auto &[i, index] : llvm::enumerate(matrix.indexOf(row, constant(0)))) {
      checkValue(index, name + ": index " + std::to_string(i));
      checkIndex(matrix.tensor(), i, index, name, [] { return std::string(); });
    }
    if (!known.isAtMost(row + constant(1), matrix.rows()))
      report(name + ": row '" + row.str() + "' may be one that it does not have, of " + matrix.rows().str());
  }

  /// The engine compares coordinates with extents.
  void checkCorner(const Matrix &matrix, const Expr &row, const Expr &column, int64_t rows, int64_t columns,
                   const std::string &name) {
    for (const auto &[i, index] : llvm::enumerate(matrix.indexOf(row + constant(rows), column + constant(columns))))
      checkValue(index, name + ": coordinate " + std::to_string(i));
  }

  struct Range {
    Expr begin, length;
  };

  /// Of each row and column that the op reaches and the matrix has.
  void checkElementsOf(const Buffer &global, const Matrix &matrix, const Range &rows, const Range &columns,
                       const std::string &name) {
    const bool isView = matrix.isView();
    const std::string row = isView ? matrix.map().row : kernel.freshName("row"),
                      column = isView && !matrix.isVector() ? matrix.map().column : kernel.freshName("column");
    const Inequalities::Scope scope(known);
    declareWithin(row, rows, matrix.rows());
    declareWithin(column, columns, matrix.isVector() ? constant(1) : matrix.columns());
    for (const auto &[i, index] : llvm::enumerate(matrix.indexOf(variable(row), variable(column)))) {
      checkValue(index, name + ": index " + std::to_string(i));
      checkIndex(matrix.tensor(), i, index, name, [&]() -> std::string {
        const bool isOfRow = index.uses(row), isOfColumn = !isOfRow && index.uses(column);
        const Expr rest = restBeside(index, isOfRow ? row : column);
        if (!rest || (!isOfRow && !isOfColumn))
          return "";
        const Expr has = isOfRow ? matrix.rows() : matrix.columns(), room = matrix.tensor().shape[i] - rest;
        return "end the " + std::string(isOfRow ? "rows" : "columns") + " of %" + global.name + " at " +
               (has == room ? has : min(has, room)).str();
      });
    }
  }

  void declareWithin(const std::string &name, const Range &range, const Expr &end) {
    const Expr value = variable(name);
    known.declare(name, true); // else it is said of the first one
    known.assumeAtMost(range.begin, value);
    known.assume(lessThan(value, range.begin + range.length));
    known.assume(lessThan(value, end));
    known.assume(lessThan(range.begin, end)); // else there is none
  }

  /// Boxes of the pages that the matrix has: where these are looked up lies inside.
  void checkPages(const Matrix &matrix, const Range &rows, const Expr &column, const std::string &name) {
    const Inequalities::Scope scope(known);
    declareWithin(matrix.map().row, rows, matrix.rows());
    for (const auto &[i, index] : llvm::enumerate(matrix.indexOf(variable(matrix.map().row), column)))
      checkValue(index, name + ": coordinate " + std::to_string(i));
  }

  // Values and indices.

  /// Of an element that an expression reads.
  void checkElement(const Buffer &tensor, llvm::ArrayRef<Expr> at, const std::string &name) {
    for (const auto &[i, index] : llvm::enumerate(at)) {
      checkValue(index, name + ": index " + std::to_string(i) + " of %" + tensor.name);
      checkIndex(tensor, i, index, name, [] { return std::string(); });
    }
  }

  /// All that the expression reads.
  void checkElements(const Expr &expr, const std::string &name) {
    if (expr.kind() == ExprKind::Read)
      if (const Buffer *const tensor = kernel.buffer(expr.operands().front().name().drop_front()))
        for (llvm::ArrayRef<Expr> at = expr.indices(); !at.empty(); at = at.drop_front(tensor->shape.size()))
          checkElement(*tensor, at.take_front(tensor->shape.size()), name); // of a box twice
    for (const Expr &operand : expr.operands())
      checkElements(operand, name);
  }

  void checkIndex(const Buffer &tensor, size_t dimension, const Expr &index, const std::string &name,
                  llvm::function_ref<std::string()> remedyOfView) {
    const Expr &extent = tensor.shape[dimension];
    const Expr last = extent - constant(1);
    const std::string what =
        name + ": index " + std::to_string(dimension) + " of %" + tensor.name + ", '" + index.str() + "', ";
    if (!known.isNotNegative(index))
      report(what + "may be below 0" + whoIsRead(index) + "; max(" + index.str() + ", 0) is not");
    if (known.isAtMost(index, last))
      return;
    const bool hasElements = known.isAtMost(constant(1), extent);
    const std::string ofView = remedyOfView();
    const int64_t least = index.kind() == ExprKind::Constant ? index.value() + 1 : 1;
    const std::string hasNone = "the extent " + extent.str() + " may be " + std::to_string(least - 1) +
                                "; say that it is more, 'size " + sizeIn(extent) + " in [" + std::to_string(least) +
                                ", 65536]'",
                      clamp = "min(" + index.str() + ", " + last.str() + ") is not";
    const std::string remedy = !ofView.empty()                      ? ofView
                               : index.kind() == ExprKind::Constant ? hasNone
                               : hasElements                        ? clamp
                                                                    : hasNone + ", and then " + clamp;
    report(what + "may be beyond " + last.str() + whoIsRead(index) + "; " + remedy);
    if (const Let *const let = letOf(kernel, index); let && hasElements && isRead(*let)) {
      found.back().let = let;
      found.back().most = last;
    }
  }

  void checkNotNegative(const Expr &expr, const std::string &name) {
    if (!known.isNotNegative(expr))
      report(name + ", '" + expr.str() + "', may be below 0" + whoIsRead(expr) + "; max(" + expr.str() + ", 0) is not");
  }

  /// That it fits in 32 bits, and what it is made of, but for parts of sums, which wrap around; that it divides by
  /// nothing below 1, shifts by 0 to 31, and that what it reads is there. Of a real number the integers in it.
  void checkValue(const Expr &expr, const std::string &name) {
    if (expr.kind() == ExprKind::Read)
      return checkElements(expr, name);
    if (expr.operands().empty() || !areOfSizes) // of attention's ValueRange.h says what fits
      return;
    const bool isSum = expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub;
    for (const Expr &operand : expr.operands())
      if (isSum && (operand.kind() == ExprKind::Add || operand.kind() == ExprKind::Sub))
        checkParts(operand, name);
      else
        checkValue(operand, name);
    checkDivision(expr, name);
    checkFits(expr.kind() == ExprKind::CeilDiv ? expr.lhs() + expr.rhs() : expr, name);
  }
  void checkDivision(const Expr &expr, const std::string &name) {
    if (isDivision(expr) && !known.isAtMost(constant(1), expr.rhs()))
      report(name + ": '" + expr.str() + "' may divide by 0 or less; max(" + expr.rhs().str() + ", 1) is 1 or more");
  }
  void checkParts(const Expr &sum, const std::string &name) {
    for (const Expr &operand : sum.operands())
      if (operand.kind() == ExprKind::Add || operand.kind() == ExprKind::Sub)
        checkParts(operand, name);
      else
        checkValue(operand, name);
  }

  void checkFits(const Expr &expr, const std::string &name) {
    constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
    switch (expr.kind()) {
    case ExprKind::Add:
    case ExprKind::Sub:
    case ExprKind::Mul:
      if (isOfReals(expr))
        return;
      break;
    case ExprKind::ShiftLeft:
    case ExprKind::ShiftRight:
      return checkShift(expr, name);
    case ExprKind::Abs:
      if (isOfReals(expr) || known.isAtMost(constant(kLow + 1), expr.operand()))
        return;
      break;
    default: // what it is made of fits
      return;
    }
    const bool fits =
        expr.kind() != ExprKind::Abs && known.isAtMost(constant(kLow), expr) && known.isAtMost(expr, constant(kHigh));
    if (!fits && !fitByParts(expr))
      report(name + ", '" + expr.str() + "', may not fit in 32 bits" + whoIsRead(expr) + "; " + sayWhatMayCome(expr) +
             "clamp it by min and max");
  }

  /// Whether what the terms of a sum may each be adds up to what fits: the search looks at few of them at a time.
  bool fitByParts(const Expr &sum) {
    Interval all = {0, 0};
    if (sum.kind() != ExprKind::Add && sum.kind() != ExprKind::Sub)
      return false;
    addParts(sum, false, all);
    return all.low >= std::numeric_limits<int32_t>::min() && all.high <= std::numeric_limits<int32_t>::max();
  }
  void addParts(const Expr &expr, bool isSubtracted, Interval &all) {
    if (expr.kind() == ExprKind::Add || expr.kind() == ExprKind::Sub) {
      addParts(expr.lhs(), isSubtracted, all);
      return addParts(expr.rhs(), isSubtracted != (expr.kind() == ExprKind::Sub), all);
    }
    // What remains is 0 or more and below its divisor, which is asked to be 1 or more.
    const bool remains = expr.kind() == ExprKind::FloorMod;
    const int64_t above = mostOf(remains ? expr.rhs() : expr), below = remains ? 0 : mostOf(constant(0) - expr);
    all.low -= isSubtracted ? above : below;
    all.high += isSubtracted ? below : above;
  }
  /// 0, or the least power of two that it is proved to be no larger than; 2^32 where there is none that matters.
  int64_t mostOf(const Expr &term) {
    constexpr int64_t kNone = int64_t(1) << 32;
    int64_t most = 0;
    while (most < kNone && !known.isAtMost(term, constant(most)))
      most = most == 0 ? 1 : most * 2;
    return most;
  }

  void checkShift(const Expr &expr, const std::string &name) {
    int64_t most = 31;
    if (!known.isAtMost(expr.rhs(), constant(most)) || !known.isNotNegative(expr.rhs()))
      return report(name + ": '" + expr.str() + "' may shift by less than 0 or by more than 31 bits" +
                    whoIsRead(expr.rhs()) + "; min(max(" + expr.rhs().str() + ", 0), 31) is 0 to 31");
    while (most > 0 && known.isAtMost(expr.rhs(), constant(most - 1)))
      --most;
    if (expr.kind() == ExprKind::ShiftLeft)
      checkFits(expr.lhs() * constant(int64_t(1) << most), name);
  }

  bool isOfReals(const Expr &expr) const {
    std::string error;
    auto typeOfName = [&](StringRef each) { return isReal(kernel, each) ? ExprType::Real : ExprType::Integer; };
    return typeOf(expr, typeOfName, error) == ExprType::Real;
  }

  // The report.

  /// A size that it names, or any.
  std::string sizeIn(const Expr &expr) const {
    std::string size;
    expand(kernel, expr).forEachVariable([&](StringRef name) {
      if (size.empty() && llvm::is_contained(kernel.sizes, name))
        size = name.str();
    });
    return size.empty() ? "..." : size;
  }

  /// Of a size that it names.
  std::string sayWhatMayCome(const Expr &expr) const {
    const std::string size = sizeIn(expr);
    return size == "..." ? "" : "say what may come, 'size " + size + " in [0, 65536]', or ";
  }

  /// Whether it is an element of a tensor, or held to what it may be.
  bool isRead(const Let &let) const {
    if (let.source)
      return true;
    const bool isHeld = let.value && (let.value.kind() == ExprKind::Min || let.value.kind() == ExprKind::Max);
    return isHeld && readsByLet(let.value.lhs());
  }
  bool readsByLet(const Expr &expr) const {
    const Let *const let = letOf(kernel, expr);
    const bool isExtreme = expr.kind() == ExprKind::Min || expr.kind() == ExprKind::Max;
    return let ? let->source.has_value() : isExtreme && readsByLet(expr.lhs());
  }

  /// That of the let which verify-bounds holds to what it may be.
  std::string nameOf(const Let &read) const {
    const auto held = llvm::find_if(kernel.lets, [&](const Let &let) {
      return !let.source && llvm::StringRef(let.note).starts_with("verify-bounds") && let.value.uses(read.name);
    });
    return read.source && held != kernel.lets.end() ? held->name : read.name;
  }

  /// The lets among what it names that memory decides.
  std::string whoIsRead(const Expr &expr) const {
    llvm::SetVector<const Let *> lets;
    collectRead(expr, lets);
    std::string text;
    for (const Let *let : lets)
      text += (text.empty() ? ": let " : ", and let ") + nameOf(*let) + " is read from %" + let->source->buffer->name;
    return text;
  }
  void collectRead(const Expr &expr, llvm::SetVector<const Let *> &lets) const {
    expr.forEachVariable([&](StringRef name) {
      const Let *const let = letOf(kernel, variable(name));
      if (let && let->source)
        lets.insert(let);
      else if (let && !let->judged && let->value)
        collectRead(let->value, lets);
    });
  }

  void report(const std::string &message) {
    const bool isKnown = llvm::any_of(found, [&](const OutOfBounds &each) { return each.message == message; });
    if (!isKnown)
      found.push_back({op, message, nullptr, {}});
  }

  const Kernel &kernel;
  const bool areOfSizes;
  Inequalities known;
  const Role *role = nullptr;
  const Op *op = nullptr;
  std::vector<OutOfBounds> found;
};

/// The tensors that what steers a role is read from.
class SteeringTensors {
public:
  SteeringTensors(const Kernel &kernel, const Role &role) : kernel(kernel) {
    walk(role.body, [&](const Op &op) {
      if (const auto loop = dynCast<LoopOp>(op)) {
        add(loop->begin());
        add(loop->end());
      } else if (const auto branch = dynCast<IfOp>(op)) {
        add(branch->condition());
      } else if (op.has(Attr::When)) {
        add(op.expr(Attr::When));
      }
    });
  }

  llvm::SetVector<const Buffer *> tensors;

private:
  void add(const Expr &expr) {
    if (expr.kind() == ExprKind::Read)
      tensors.insert(kernel.buffer(expr.operands().front().name().drop_front()));
    if (expr.kind() == ExprKind::Variable)
      addName(expr.name());
    for (const Expr &operand : expr.operands())
      add(operand);
  }

  void addName(StringRef name) {
    if (isRunValue(name, RunValue::TilesOfCta) && !kernel.grid.listed.empty())
      return addName(kernel.grid.listed);
    const Let *const let = letOf(kernel, variable(name));
    if (!let || let->judged)
      return;
    if (!let->source)
      return add(let->value);
    tensors.insert(let->source->buffer);
    llvm::for_each(let->source->at, [this](const Expr &index) { add(index); });
  }

  const Kernel &kernel;
};

} // namespace

std::vector<OutOfBounds> fagen::findOutOfBounds(const Kernel &kernel) {
  return hasExtentsOfSizes(kernel) ? BoundsFinder(kernel).find() : BoundsFinder(kernel).findOfReads();
}

std::vector<SteeredTwice> fagen::findSteeredTwice(const Kernel &kernel) {
  std::vector<SteeredTwice> found;
  llvm::SmallVector<std::pair<const Buffer *, const Role *>, 4> known;
  for (const Role &role : kernel.roles)
    for (const Buffer *const tensor : SteeringTensors(kernel, role).tensors) {
      if (!tensor || tensor->isConstant)
        continue;
      const auto *const other = llvm::find_if(known, [&](const auto &each) { return each.first == tensor; });
      if (other == known.end())
        known.push_back({tensor, &role});
      else if (llvm::none_of(found, [&](const SteeredTwice &each) { return each.tensor == tensor; }))
        found.push_back({tensor, other->second, &role});
    }
  return found;
}
