// fagen: values of forms to expressions of the IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Form/Lower.h"

#include "Ranges.h"

#include "fagen/IR/RunValues.h"

#include "llvm/Support/ErrorHandling.h"

#include <cmath>

using namespace fagen::ir;

namespace fagen::form {

static constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.693147180559945309f;

namespace {

class Lowering {
public:
  Lowering(const Use &use, const Names &names) : use(use), form(*use.form), names(names) {}

  Expr lower(const Node &node) {
    switch (node.op) {
    case Op::Integer:
      return constant(node.integer);
    case Op::Real:
      return ir::real(float(node.real));
    case Op::PlaceOf:
      return names.place(Place(node.index));
    case Op::Param:
      return param(node.index);
    case Op::Let:
      return lower(*form.lets[node.index].value);
    case Op::Read:
      return read(node);
    case Op::Select:
      return select(operand(node, 0), operand(node, 1), operand(node, 2));
    default:
      return node.operands.size() == 1 ? unary(node) : binary(node, operand(node, 0), operand(node, 1));
    }
  }

private:
  Expr operand(const Node &node, unsigned index) { return lower(*node.operands[index]); }

  Expr param(unsigned index) const {
    if (const Bound *bound = use.boundOf(index))
      return form.params[index].element == Element::I32 ? constant(bound->integer) : ir::real(float(bound->real));
    return variable(names.params[index]);
  }

  Expr extent(const Extent &extent) {
    switch (extent.kind) {
    case Extent::Number:
      return constant(extent.value);
    case Extent::OfPlace:
      return names.place(Place(extent.value));
    case Extent::OfParam:
      return param(unsigned(extent.value));
    }
    llvm_unreachable("an extent is a number, a place or a param");
  }

  /// Batches and heads of a CTA exist; rows and keys of its last tiles may not.
  static bool isInside(const Node &index, const Extent &extent) {
    if (extent.kind == Extent::Number)
      return index.range.low >= 0 && index.range.high < extent.value;
    if (extent.kind != Extent::OfPlace || index.op != Op::PlaceOf)
      return false;
    const Place place = Place(index.index), end = Place(extent.value);
    return (place == Place::Batch && end == Place::Batches) || (place == Place::Head && end == Place::Heads) ||
           (place == Place::KvHead && end == Place::KvHeads);
  }

  Expr read(const Node &node) {
    const Param &tensor = form.params[node.index];
    std::vector<Expr> indices;
    Expr isEmpty;
    for (unsigned i = 0; i != node.operands.size(); ++i) {
      const Node &index = *node.operands[i];
      const Extent &end = tensor.extents[i];
      Expr at = lower(index);
      if (!isInside(index, end)) {
        at = min(at, extent(end) - constant(1));
        if (index.range.low < 0)
          at = max(at, constant(0));
      }
      const bool mayBeEmpty = end.kind == Extent::OfParam
                                  ? form.params[end.value].range.low <= 0
                                  : !names.keysExist && end.kind == Extent::OfPlace && Place(end.value) == Place::SeqKv;
      if (mayBeEmpty)
        isEmpty = isEmpty ? Expr::binary(ExprKind::Or, isEmpty, equal(extent(end), constant(0)))
                          : equal(extent(end), constant(0));
      indices.push_back(std::move(at));
    }
    Expr element = Expr::read(names.params[node.index], indices);
    if (tensor.isAscending)
      element = Expr::unary(ExprKind::Ascending, element);
    if (!isEmpty)
      return element;
    return select(isEmpty, node.type == Type::F32 ? ir::real(0) : constant(0), element);
  }

  Expr unary(const Node &node) {
    const Expr x = operand(node, 0);
    const Type from = node.operands[0]->type;
    switch (node.op) {
    case Op::Neg:
      return node.type == Type::F32 ? ir::real(-1) * x : constant(0) - x;
    case Op::Not:
      return Expr::unary(ExprKind::Not, x);
    case Op::Abs:
      return Expr::unary(ExprKind::Abs, x);
    case Op::ToF32:
      return from == Type::F32 ? x : Expr::unary(ExprKind::F32, x);
    case Op::ToI32:
      return from == Type::F32 ? Expr::unary(ExprKind::I32, x) : x;
    case Op::Exp:
      return exp2(x * ir::real(kLog2E));
    case Op::Exp2:
      return exp2(x);
    case Op::Log:
      return Expr::unary(ExprKind::Log2, x) * ir::real(kLn2);
    case Op::Log2:
      return Expr::unary(ExprKind::Log2, x);
    case Op::Sqrt:
      return Expr::unary(ExprKind::Sqrt, x);
    case Op::Tanh:
      return Expr::unary(ExprKind::Tanh, x);
    default:
      llvm_unreachable("no operator of one operand");
    }
  }

  static ExprKind kindOf(Op op) {
    switch (op) {
    case Op::Add:
      return ExprKind::Add;
    case Op::Sub:
      return ExprKind::Sub;
    case Op::Mul:
      return ExprKind::Mul;
    case Op::Div:
      return ExprKind::Div;
    case Op::FloorDiv:
      return ExprKind::FloorDiv;
    case Op::FloorMod:
      return ExprKind::FloorMod;
    case Op::Min:
      return ExprKind::Min;
    case Op::Max:
      return ExprKind::Max;
    case Op::BitAnd:
      return ExprKind::BitAnd;
    case Op::BitOr:
      return ExprKind::BitOr;
    case Op::BitXor:
      return ExprKind::BitXor;
    case Op::ShiftLeft:
      return ExprKind::ShiftLeft;
    case Op::ShiftRight:
      return ExprKind::ShiftRight;
    case Op::Lt:
      return ExprKind::Lt;
    case Op::Le:
      return ExprKind::Le;
    case Op::Gt:
      return ExprKind::Gt;
    case Op::Ge:
      return ExprKind::Ge;
    case Op::Eq:
      return ExprKind::Eq;
    case Op::Ne:
      return ExprKind::Ne;
    case Op::And:
      return ExprKind::And;
    case Op::Or:
      return ExprKind::Or;
    default:
      llvm_unreachable("no operator of two operands");
    }
  }

  /// What is added to the key where the value is k + x: of a split k itself is one.
  std::optional<Interval> shiftOf(const Node &node) const {
    if (node.op == Op::Let)
      return shiftOf(*form.lets[node.index].value);
    if (node.op == Op::PlaceOf)
      return placeInfo(Place(node.index)).range;
    return node.op == Op::Add ? std::optional(node.operands[1]->range) : std::nullopt;
  }

  /// Whether x - y fits in 32 bits, y being what the key is shifted by.
  bool canMove(const Node &x, const Node &shifted) const {
    const std::optional<Interval> y = shiftOf(shifted);
    return y && x.range.low - y->high >= kI32.low && x.range.high - y->low <= kI32.high;
  }

  /// A key of a split is counted from the split's first: k + begin <= x is k <= x - begin.
  Expr compare(const Node &node, ExprKind kind, const Expr &a, const Expr &b) const {
    auto isShifted = [](const Expr &expr) {
      return expr.kind() == ExprKind::Add && expr.lhs() == variable(RunValue::ElementKey);
    };
    const Node &left = *node.operands[0], &right = *node.operands[1];
    if (isShifted(a) && !b.uses(nameOf(RunValue::ElementKey)) && canMove(right, left))
      return Expr::binary(kind, a.lhs(), b - a.rhs());
    if (isShifted(b) && !a.uses(nameOf(RunValue::ElementKey)) && canMove(left, right))
      return Expr::binary(kind, a - b.rhs(), b.lhs());
    return Expr::binary(kind, a, b);
  }

  /// Whether a launch may have it be 0: there may be no rows and no keys, and no element then, but bounds of some.
  static bool namesLength(const Expr &value) {
    bool found = false;
    value.forEachVariable([&](llvm::StringRef name) {
      const RunValueInfo *const info = findRunValue(name);
      found |= info && info->kind == RunKind::Length;
    });
    return found;
  }

  /// Ranges show that it is positive; so does the expression.
  static Expr divisor(const Expr &value) {
    return value.kind() == ExprKind::Variable || namesLength(value) ? max(value, constant(1)) : value;
  }

  Expr binary(const Node &node, const Expr &a, const Expr &b) {
    const ExprKind kind = kindOf(node.op);
    if (kind == ExprKind::FloorDiv || kind == ExprKind::FloorMod)
      return Expr::binary(kind, a, divisor(b));
    const bool comparesIntegers = kind >= ExprKind::Lt && kind <= ExprKind::Ne && node.operands[0]->type == Type::I32;
    return comparesIntegers ? compare(node, kind, a, b) : Expr::binary(kind, a, b);
  }

  const Use &use;
  const Form &form;
  const Names &names;
};

} // namespace

Expr lower(const Node &node, const Use &use, const Names &names) { return Lowering(use, names).lower(node); }

/// What the node is, lets seen through.
static NodePtr resolve(NodePtr node, const Form &form) {
  while (node->op == Op::Let)
    node = form.lets[node->index].value;
  return node;
}

/// Whether it is a positive finite number that all elements of a tile share, whose rows may be of several heads.
static bool isUnit(const Node &node, bool arePacked) {
  const uint32_t ofElements = 1u << unsigned(Place::Score) | 1u << unsigned(Place::Query) | 1u << unsigned(Place::Key) |
                              1u << unsigned(Place::QueryPlace) | unsigned(arePacked) << unsigned(Place::Head);
  const RealRange &range = node.realRange;
  return (node.places & ofElements) == 0 && range.low > 0 && std::isfinite(range.high) && !range.mayBeNan &&
         !range.mayBePositiveInfinity && !range.mayBeNegativeInfinity;
}

Scaled splitUnit(const Form &form, bool arePacked) {
  Scaled scaled;
  if (!form.score)
    return scaled;
  NodePtr rest = resolve(form.score, form);
  while (rest->op == Op::Mul || rest->op == Op::Div) {
    const NodePtr &a = rest->operands[0], &b = rest->operands[1];
    if (rest->op == Op::Mul && isUnit(*b, arePacked)) {
      scaled.units.push_back(b);
      rest = resolve(a, form);
    } else if (rest->op == Op::Mul && isUnit(*a, arePacked)) {
      scaled.units.push_back(a);
      rest = resolve(b, form);
    } else {
      break;
    }
  }
  const bool isScore = rest->op == Op::PlaceOf && Place(rest->index) == Place::Score;
  if (!isScore)
    scaled.held = std::move(rest);
  return scaled;
}

bool hidesAll(const Use &use) { return scoreRange(use).isNegativeInfinity(); }

} // namespace fagen::form
