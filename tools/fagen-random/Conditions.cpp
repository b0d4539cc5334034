// fagen: random conditions of when and select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An expression is drawn as text, and its value at every point of the problem next to it. Divisors are variables that
// are never zero, and numbers.

#include "Conditions.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace fagen::random {

namespace {

/// How tightly an operator binds; each level is that of the parser's table.
enum Level : unsigned { kOr, kAnd, kEquality, kRelation, kSum, kProduct, kUnary, kPrimary };

struct Term {
  std::string text;
  Level level = kPrimary;
  std::vector<int64_t> values; ///< at each point; none in select
};

struct NumberName {
  std::string text;
  std::vector<int64_t> values;
  bool isNeverZero;
};

/// An enumeration: its values' names, and which of them it has at each point.
struct EnumName {
  std::string text;
  std::vector<std::string> names;
  std::vector<unsigned> values; ///< indices of names
};

class ConditionDrawer {
public:
  ConditionDrawer(Random &random, size_t points) : random(random), points(points) {}

  void addNumber(StringRef text, bool isNeverZero, std::vector<int64_t> values) {
    numbers.push_back({text.str(), std::move(values), isNeverZero});
  }
  void addEnum(EnumName name) { enums.push_back(std::move(name)); }

  Term drawTruth(unsigned depth);

private:
  Term drawComparison();
  Term drawEnumComparison();
  Term drawSum(unsigned depth);
  Term drawNumber();
  Term drawName(bool isDivisor);
  Term call(const Term &left, const Term &right);
  Term combine(StringRef op, Level level, const Term &left, const Term &right);
  Term negate(StringRef op, const Term &operand);
  std::string operand(const Term &term, Level least);

  Random &random;
  const size_t points;
  std::vector<NumberName> numbers;
  std::vector<EnumName> enums;
};

} // namespace

static int64_t apply(StringRef op, int64_t a, int64_t b) {
  if (op == "||")
    return a || b;
  if (op == "&&")
    return a && b;
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  if (op == "<")
    return a < b;
  if (op == "<=")
    return a <= b;
  if (op == ">")
    return a > b;
  if (op == ">=")
    return a >= b;
  if (op == "+")
    return int64_t(uint64_t(a) + uint64_t(b));
  if (op == "-")
    return int64_t(uint64_t(a) - uint64_t(b));
  if (op == "*")
    return int64_t(uint64_t(a) * uint64_t(b));
  return op == "/" ? a / b : a % b;
}

std::string ConditionDrawer::operand(const Term &term, Level least) {
  if (term.level >= least && !random.percent(8))
    return term.text;
  return "(" + term.text + ")";
}

Term ConditionDrawer::combine(StringRef op, Level level, const Term &left, const Term &right) {
  Term result;
  result.level = level;
  const std::string space = random.percent(85) ? " " : "";
  result.text = operand(left, level) + space + op.str() + space; // one statement a draw: + has no order
  result.text += operand(right, Level(level + 1));
  for (size_t i = 0; i != points; ++i)
    result.values.push_back(apply(op, left.values[i], right.values[i]));
  return result;
}

Term ConditionDrawer::negate(StringRef op, const Term &term) {
  Term result;
  result.level = kUnary;
  result.text = op.str() + operand(term, kUnary);
  for (int64_t value : term.values)
    result.values.push_back(op == "-" ? -value : !value);
  return result;
}

/// ceil_div(a, b): the least integer not below the quotient. Drawn divisors are positive.
Term ConditionDrawer::call(const Term &left, const Term &right) {
  Term result;
  result.text = "ceil_div(" + left.text + ", " + right.text + ")";
  for (size_t i = 0; i != points; ++i) {
    const int64_t a = left.values[i], b = right.values[i];
    result.values.push_back(a / b + (a % b > 0));
  }
  return result;
}

Term ConditionDrawer::drawNumber() {
  static constexpr unsigned kLikely[] = {1, 2, 3, 8, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 512, 1024, 4096};
  const unsigned number = random.percent(80) ? random.pick(kLikely) : random.between(1, 5000);
  Term term;
  term.text = std::to_string(number);
  const unsigned unit = random.percent(4) ? random.percent(50) ? 1024 : 1 : 0;
  if (unit)
    term.text += unit == 1 ? " B" : " KiB";
  term.values.assign(points, int64_t(number) * std::max(unit, 1u));
  return term;
}

Term ConditionDrawer::drawName(bool isDivisor) {
  std::vector<const NumberName *> fitting;
  for (const NumberName &name : numbers)
    if (!isDivisor || name.isNeverZero)
      fitting.push_back(&name);
  const NumberName &name = *random.pick(fitting);
  return {name.text, kPrimary, name.values};
}

Term ConditionDrawer::drawSum(unsigned depth) {
  if (depth == 0 || random.percent(40))
    return random.percent(70) ? drawName(false) : drawNumber();
  const Term left = drawSum(depth - 1);
  const unsigned kind = random.below(10);
  if (kind < 4) {
    const Term right = drawSum(depth - 1);
    return combine(kind < 2 ? "+" : kind < 3 ? "-" : "*", kind < 3 ? kSum : kProduct, left, right);
  }
  if (kind == 4)
    return negate("-", left);
  const Term divisor = random.percent(60) ? drawNumber() : drawName(true);
  return kind < 6 ? call(left, divisor) : combine(kind < 8 ? "/" : "%", kProduct, left, divisor);
}

Term ConditionDrawer::drawEnumComparison() {
  const EnumName &name = random.pick(enums);
  const unsigned wanted = random.below(name.names.size());
  const bool isEqual = random.percent(70);
  Term term;
  term.level = kEquality;
  const std::string op = isEqual ? " == " : " != ";
  term.text = random.percent(85) ? name.text + op + name.names[wanted] : name.names[wanted] + op + name.text;
  for (unsigned value : name.values)
    term.values.push_back((value == wanted) == isEqual);
  return term;
}

Term ConditionDrawer::drawComparison() {
  static constexpr StringLiteral kRelations[] = {"<", "<=", ">", ">="}, kEqualities[] = {"==", "!="};
  if (!enums.empty() && random.percent(45))
    return drawEnumComparison();
  const Term left = drawSum(random.below(3)), right = random.percent(70) ? drawNumber() : drawSum(1);
  return random.percent(70) ? combine(random.pick(kRelations), kRelation, left, right)
                            : combine(random.pick(kEqualities), kEquality, left, right);
}

Term ConditionDrawer::drawTruth(unsigned depth) {
  if (depth == 0 || random.percent(50))
    return random.percent(96) ? drawComparison() : drawSum(2); // any number but zero is true
  const Term left = drawTruth(depth - 1);
  if (random.percent(25))
    return negate("!", left);
  const Term right = drawTruth(depth - 1);
  return random.percent(50) ? combine("&&", kAnd, left, right) : combine("||", kOr, left, right);
}

//===-- Names
//------------------------------------------------------------------------------------------------------===//

static EnumName enumOf(const OptionInfo &option, const std::vector<Point> &points) {
  EnumName name{option.name.str(), {}, {}};
  if (option.type == OptionType::Switch)
    name.names = {"off", "on"};
  for (const OptionValueInfo &value : option.values)
    name.names.push_back(value.text.str());
  for (const Point &point : points) {
    const unsigned number = point.problem.at(option.key).number;
    auto found = find_if(option.values, [&](const OptionValueInfo &value) { return value.number == number; });
    name.values.push_back(option.type == OptionType::Switch ? number : found - option.values.begin());
  }
  return name;
}

static EnumName enumOfTarget(const std::vector<Point> &points) {
  EnumName name{"target", {}, {}};
  for (const TargetInfo &target : allTargets())
    name.names.push_back(target.name.str());
  for (const Point &point : points)
    name.values.push_back(point.target - allTargets().data());
  return name;
}

static void addHeadDims(ConditionDrawer &drawer, const std::vector<Point> &points, bool hasValues) {
  std::vector<int64_t> qk, v;
  for (const Point &point : points) {
    qk.push_back(point.problem.at(OptionKey::HeadDim).number);
    v.push_back(point.problem.at(OptionKey::HeadDim).second);
  }
  const bool isPair = qk != v;
  if (!hasValues)
    qk.clear(), v.clear();
  drawer.addNumber("head_dim_qk", true, qk);
  drawer.addNumber("head_dim_v", true, v);
  if (!isPair)
    drawer.addNumber("head_dim", true, qk);
}

Condition drawWhenCondition(Random &random, const std::vector<Point> &points) {
  ConditionDrawer drawer(random, points.size());
  addHeadDims(drawer, points, true);
  drawer.addEnum(enumOfTarget(points));
  for (const OptionInfo &option : allOptions())
    if (option.block == OptionBlock::Problem && option.type != OptionType::HeadDim)
      drawer.addEnum(enumOf(option, points));
  const Term term = drawer.drawTruth(2);
  Condition condition{term.text, {}};
  for (int64_t value : term.values)
    condition.holds.push_back(value != 0);
  return condition;
}

std::string drawSelectCondition(Random &random, const std::vector<Point> &points) {
  ConditionDrawer drawer(random, 0);
  addHeadDims(drawer, points, false);
  const bool isInvariant =
      any_of(points, [](const Point &point) { return point.problem.at(OptionKey::Invariant).number != 0; });
  for (StringRef name : {"seq_q", "seq_kv"})
    drawer.addNumber(name, false, {});
  if (!isInvariant) {
    drawer.addNumber("batch", false, {});
    for (StringRef name : {"heads", "kv_heads", "sms"})
      drawer.addNumber(name, true, {});
  }
  for (const OptionInfo &option : allOptions()) {
    if (option.block != OptionBlock::Problem || option.type == OptionType::HeadDim)
      continue;
    EnumName name = enumOf(option, points);
    const bool isDispatched = option.key == OptionKey::DType || option.key == OptionKey::Mask;
    if (!isDispatched && !all_equal(name.values))
      continue;
    name.values.clear();
    drawer.addEnum(std::move(name));
  }
  return drawer.drawTruth(3).text;
}

} // namespace fagen::random
