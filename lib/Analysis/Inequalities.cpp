// fagen: proofs that an integer of a kernel is at most another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Inequalities.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>
#include <numeric>
#include <utility>

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

namespace {

constexpr Interval kInt = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
constexpr unsigned kMostSteps = 2000, kMostDepth = 64;

std::string textOf(const Sum &sum) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const auto &[product, times] : sum.terms) {
    os << times;
    for (unsigned factor : product)
      os << '*' << factor;
    os << ' ';
  }
  os << sum.constant;
  return text;
}

/// What an element holds where the caller promises nothing: as an int.
Interval valuesOf(const Buffer &tensor) { return tensor.values.value_or(kInt); }

} // namespace

bool fagen::hasExtentsOfSizes(const Kernel &kernel) {
  auto isOfRun = [&](StringRef name) { return findRunValue(name) && !llvm::is_contained(kernel.sizes, name); };
  bool haveExtents = false, areOfSizes = true;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Global && !buffer->map)
      for (const Expr &extent : buffer->shape) {
        haveExtents = true;
        extent.forEachVariable([&](StringRef name) { areOfSizes &= !isOfRun(name); });
      }
  return haveExtents && areOfSizes;
}

Inequalities::Inequalities(const Kernel &kernel) : kernel(kernel) {
  for (const Constant &constant : kernel.constants)
    known.names[constant.name] = Sum(constant.value);
  declareRunValues(); // sizes may have their names
  for (const std::string &size : kernel.sizes) {
    declare(size, true);
    const Interval range = kernel.rangeOfSize(size);
    bound(known.names[size], range.low, range.high);
  }
  for (const Scalar &scalar : kernel.scalars)
    if (!scalar.isReal) {
      declare(scalar.name, scalar.low >= 0);
      bound(known.names[scalar.name], scalar.low, scalar.high);
    }
  const bool areOfSizes = hasExtentsOfSizes(kernel);
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->space == Space::Global && !buffer->map)
      for (const Expr &extent : buffer->shape) // larger ones are refused when they are bound (fagen.h)
        bound(sumOf(extent), areOfSizes ? 0 : 1, kMostOfSize);
  for (const GridIndex &index : kernel.grid.indices) {
    const Sum extent = sumOf(index.extent);
    learn(extent - Sum(1)); // else there is no CTA
    declare(index.name, true);
    learn(extent - Sum(1) - known.names[index.name]);
  }
  for (const Let &let : kernel.lets) {
    if (let.source) {
      known.names[let.name] = sumOf(Expr::read(let.source->buffer->name, let.source->at));
    } else if (!let.judged && let.value) {
      known.names[let.name] = sumOf(let.value);
    }
  }
}

/// Attention's: a CTA has a row, of a head of a batch, and there is a key. Tensors that are read have an element.
void Inequalities::declareRunValues() {
  for (const RunValueInfo &info : kRunValues) {
    if (info.kind == RunKind::Real)
      continue;
    declare(info.name, true);
    const bool isCount = info.kind == RunKind::Count || info.kind == RunKind::Divisor;
    bound(known.names[info.name], isCount || info.kind == RunKind::Length ? 1 : 0,
          info.scope == RunScope::Launch ? kMostOfSize : kInt.high);
  }
  for (const auto &[index, count] : {std::pair(RunValue::BatchIndex, RunValue::Batch),
                                     {RunValue::Head, RunValue::Heads},
                                     {RunValue::KvHead, RunValue::KvHeads}})
    assume(lessThan(variable(index), variable(count)));
}

Sum Inequalities::add(Atom atom) {
  known.atoms.push_back(std::move(atom));
  return Sum::ofFactor(known.atoms.size() - 1);
}

void Inequalities::declare(StringRef name, bool isNotNegative) { known.names[name] = add({isNotNegative}); }

void Inequalities::bound(const Sum &sum, int64_t low, int64_t high) {
  learn(sum - Sum(low));
  learn(Sum(high) - sum);
}

/// Facts stand with their newest atom, short ones first. What is no more than a min is no more than its sides; likewise
/// of a max.
void Inequalities::learn(const Sum &fact) {
  if (fact.isLost)
    return;
  known.isImpossible |=
      fact.constant < 0 &&
      llvm::all_of(fact.terms, [&](const auto &term) { return term.second < 0 && areNotNegative(term.first); });
  if (fact.terms.empty())
    return;
  const auto [product, times] = *fact.terms.begin();
  const Atom atom = known.atoms[product.front()];
  const bool isOfAtom = product.size() == 1, isBelow = isOfAtom && times > 0;
  const bool isBareAtom = isBelow && fact.terms.size() == 1 && fact.constant <= 0;
  known.atoms[product.front()].isNotNegative |= isBareAtom;
  if (isBareAtom && fact.constant == 0 && atom.isNotNegative)
    return;
  std::vector<Sum> &facts = known.atoms[product.front()].facts;
  const size_t terms = fact.terms.size();
  facts.insert(llvm::partition_point(facts, [&](const Sum &each) { return each.terms.size() <= terms; }), fact);
  if (isOfAtom && (atom.shape == Shape::Smaller || atom.shape == Shape::Larger) &&
      isBelow == (atom.shape == Shape::Smaller))
    for (const Sum &side : {atom.a, atom.b})
      learn(fact.withFactor(product.front(), side));
}

void Inequalities::assume(const Expr &condition) {
  auto both = [&](llvm::function_ref<Sum(const Sum &, const Sum &)> fact) {
    learn(fact(sumOf(condition.lhs()), sumOf(condition.rhs())));
  };
  switch (condition.kind()) {
  case ExprKind::And:
    assume(condition.lhs());
    return assume(condition.rhs());
  case ExprKind::Lt:
    return both([](const Sum &a, const Sum &b) { return b - a - Sum(1); });
  case ExprKind::Gt:
    return both([](const Sum &a, const Sum &b) { return a - b - Sum(1); });
  case ExprKind::Eq:
    both([](const Sum &a, const Sum &b) { return a - b; });
    [[fallthrough]];
  case ExprKind::Le:
    return both([](const Sum &a, const Sum &b) { return b - a; });
  case ExprKind::Ge:
    return both([](const Sum &a, const Sum &b) { return a - b; });
  default:
    return;
  }
}

void Inequalities::assumeAtMost(const Expr &a, const Expr &b) { learn(sumOf(b) - sumOf(a)); }

bool Inequalities::isAtMost(const Expr &a, const Expr &b) { return proves(sumOf(b) - sumOf(a)); }

// Sums of expressions.

Sum Inequalities::sumOf(const Expr &expr) {
  switch (expr.kind()) {
  case ExprKind::Constant:
    return Sum(expr.value());
  case ExprKind::Variable:
    if (const auto name = known.names.find(expr.name()); name != known.names.end())
      return name->second;
    return sumOfAny(expr);
  case ExprKind::Add:
    return sumOf(expr.lhs()) + sumOf(expr.rhs());
  case ExprKind::Sub:
    return sumOf(expr.lhs()) - sumOf(expr.rhs());
  case ExprKind::Mul:
    return sumOf(expr.lhs()) * sumOf(expr.rhs());
  case ExprKind::Ascending:
    return sumOf(expr.operand());
  case ExprKind::Read:
    return sumOfElement(expr);
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
    return sumOfQuotient(expr);
  case ExprKind::Mod: { // what the quotient leaves
    const Sum quotient = sumOfQuotient(floorDiv(expr.lhs(), expr.rhs()));
    return sumOf(expr.lhs()) - quotient * sumOf(expr.rhs());
  }
  case ExprKind::Min:
  case ExprKind::Max:
    return sumOfExtreme(expr);
  case ExprKind::Select:
    return sumOfChoice(expr);
  default:
    return sumOfAny(expr);
  }
}

Sum Inequalities::atomOf(const std::string &key, llvm::function_ref<Atom()> make) {
  if (const auto found = known.made.find(key); found != known.made.end())
    return Sum::ofFactor(found->second);
  const Sum sum = add(make()); // facts are of older atoms
  known.made[key] = known.atoms.size() - 1;
  return sum;
}

Sum Inequalities::sumOfAny(const Expr &expr) {
  const std::string key = expr.str();
  if (!known.made.count(key))
    bound(atomOf(key, [] { return Atom(); }), kInt.low, kInt.high);
  return atomOf(key, [] { return Atom(); });
}

/// Elements at the same place are the same.
Sum Inequalities::sumOfElement(const Expr &read) {
  const StringRef name = read.operands().front().name().drop_front();
  const Buffer *const tensor = kernel.buffer(name);
  std::string key = name.str();
  for (const Expr &index : read.indices())
    key += "[" + textOf(sumOf(index)) + "]";
  const bool isNew = !known.made.count(key);
  const Sum element = atomOf(key, [] { return Atom(); });
  const Interval values = tensor ? valuesOf(*tensor) : kInt;
  if (isNew)
    bound(element, values.low, values.high);
  return element;
}

/// q of a = q d + rest. Quotients of what may be negative are rounded towards it or towards 0, whichever the text
/// calls.
Sum Inequalities::sumOfQuotient(const Expr &expr) {
  const bool isUp = expr.kind() == ExprKind::CeilDiv;
  const Sum a = sumOf(expr.lhs()), d = sumOf(expr.rhs());
  const std::string key = (isUp ? "ceil " : "floor ") + textOf(a) + " / " + textOf(d);
  const bool isNew = !known.made.count(key);
  if (!isNew)
    return atomOf(key, [] { return Atom(); });
  const bool isExact = proves(a), isDivided = proves(d - Sum(1));
  const Sum q = atomOf(key, [&] { return Atom{isExact && isDivided, {}, Shape::Quotient, a, d}; });
  if (!isDivided)
    return q;
  const Sum most = a + (isUp ? d - Sum(1) : Sum(0)), least = isUp ? a : a - d + Sum(1);
  learn(most + (isExact ? Sum(0) : d - Sum(1)) - q * d);
  learn(q * d - least);
  return q;
}

Sum Inequalities::sumOfExtreme(const Expr &expr) {
  const bool isMin = expr.kind() == ExprKind::Min;
  const Sum a = sumOf(expr.lhs()), b = sumOf(expr.rhs());
  const std::string key = (isMin ? "min " : "max ") + textOf(a) + ", " + textOf(b);
  if (known.made.count(key))
    return atomOf(key, [] { return Atom(); });
  const bool isOfA = proves(a), isOfB = proves(b), isNotNegative = isMin ? isOfA && isOfB : isOfA || isOfB;
  const Sum extreme =
      atomOf(key, [&] { return Atom{isNotNegative, {}, isMin ? Shape::Smaller : Shape::Larger, a, b}; });
  for (const Sum &side : {a, b})
    learn(isMin ? side - extreme : extreme - side);
  return extreme;
}

Sum Inequalities::sumOfChoice(const Expr &expr) {
  const Sum a = sumOf(expr.operands()[1]), b = sumOf(expr.operands()[2]);
  const std::string key = expr.operands()[0].str() + " ? " + textOf(a) + " : " + textOf(b);
  if (known.made.count(key))
    return atomOf(key, [] { return Atom(); });
  const bool isNotNegative = proves(a) && proves(b);
  return atomOf(key, [&] { return Atom{isNotNegative, {}, Shape::Choice, a, b, expr.operands()[0]}; });
}

// The search.

bool Inequalities::proves(const Sum &goal) {
  std::set<std::string> outer = std::exchange(tried, {}); // what is asked while a goal is searched for is another goal
  const unsigned before = std::exchange(steps, 0), outerDepth = std::exchange(depth, 0), outerMost = mostDepth;
  bool isProved = false; // by few facts, or by more: a wrong one leads far
  for (mostDepth = 2; !isProved && mostDepth <= kMostDepth; mostDepth *= 2) {
    steps = 0;
    tried.clear();
    isProved = search(goal, 0);
  }
  steps = before;
  tried = std::move(outer);
  depth = outerDepth;
  mostDepth = outerMost;
  return isProved;
}

bool Inequalities::areNotNegative(const Monomial &product) const {
  return llvm::all_of(product, [&](unsigned atom) { return known.atoms[atom].isNotNegative; });
}

bool Inequalities::search(const Sum &goal, int64_t slack) {
  if (goal.isLost || known.isImpossible || ++steps > kMostSteps)
    return known.isImpossible;
  const bool isPlain = goal.constant >= -slack && llvm::all_of(goal.terms, [&](const auto &term) {
                         return term.second > 0 && areNotNegative(term.first);
                       });
  if (isPlain || goal.terms.empty())
    return isPlain;
  const std::string key = textOf(goal) + " " + std::to_string(slack);
  if (depth == mostDepth || !tried.insert(key).second)
    return false;
  ++depth;
  const bool isProved = searchWithoutNewest(goal, slack);
  --depth;
  if (isProved)
    tried.erase(key);
  return isProved;
}

bool Inequalities::searchWithoutNewest(const Sum &goal, int64_t slack) {
  const auto &[product, times] = *goal.terms.begin();
  if (searchByFacts(goal, slack, product, times) || searchBySides(goal, slack, product.front()) ||
      searchTimesDivisor(goal, slack, product))
    return true;
  if (times < 0 || !areNotNegative(product))
    return false;
  Sum rest = goal;
  rest.add(product, -times);
  return search(rest, slack);
}

/// A fact takes the product out of the goal: |n| goal - m |t| fact, where n m is the product and n and t, its numbers
/// there, have one sign. m is not negative.
bool Inequalities::searchByFacts(const Sum &goal, int64_t slack, const Monomial &product, int64_t times) {
  for (const unsigned atom : llvm::SetVector<unsigned>(product.begin(), product.end())) {
    const std::vector<Sum> facts = known.atoms[atom].facts;
    for (const Sum &fact : facts) {
      const auto &[of, number] = *fact.terms.begin();
      Monomial rest;
      if ((number < 0) != (times < 0) || !divide(product, of, rest) || !areNotNegative(rest))
        continue;
      const int64_t common = std::gcd(number, times), scale = std::abs(number / common);
      Sum left;
      left.add(goal, scale);
      left.add(fact, -std::abs(times / common), rest);
      int64_t allowed = 0;
      if (!llvm::MulOverflow(slack, scale, allowed) && !llvm::AddOverflow(allowed, scale - 1, allowed) &&
          search(left, allowed))
        return true;
    }
  }
  return false;
}

/// It is one of two.
bool Inequalities::searchBySides(const Sum &goal, int64_t slack, unsigned atom) {
  const Atom of = known.atoms[atom];
  if (of.shape == Shape::Name || of.shape == Shape::Quotient)
    return false;
  for (const bool isA : {true, false}) {
    const Scope scope(*this);
    if (of.condition && isA)
      assume(of.condition);
    if (of.shape == Shape::Smaller)
      learn(isA ? of.b - of.a : of.a - of.b);
    if (of.shape == Shape::Larger)
      learn(isA ? of.a - of.b : of.b - of.a);
    const auto failed = tried; // more is known on this side
    for (const Sum &fact : of.facts)
      learn(fact.withFactor(atom, isA ? of.a : of.b));
    tried.clear();
    const bool isProved = search(goal.withFactor(atom, isA ? of.a : of.b), slack);
    tried = failed;
    if (!isProved)
      return false;
  }
  return true;
}

/// A quotient whose divisor is no number, and does not stand with it: d goal + d - 1 is not negative where goal is not.
bool Inequalities::searchTimesDivisor(const Sum &goal, int64_t slack, const Monomial &product) {
  const Atom of = known.atoms[product.front()]; // what is asked below moves them
  if (of.shape != Shape::Quotient || of.b.terms.empty())
    return false;
  Monomial rest;
  if (divide(product, of.b.terms.begin()->first, rest) || !proves(of.b - Sum(1)))
    return false;
  Sum scaled = goal * of.b;
  scaled.add(of.b, slack + 1);
  return search(scaled - Sum(1), 0);
}
