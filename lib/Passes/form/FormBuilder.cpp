// fagen: forms as maps, lets and params of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FormBuilder.h"

#include "fagen/IR/ExprTypes.h"
#include "fagen/IR/Factors.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Queries.h"
#include "fagen/Support/CppKeywords.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;
using form::Place;

static constexpr float kLog2E = 1.44269504088896341f;

static form::Scaled scaledOf(const Variant &variant) {
  return form::splitUnit(formOf(variant.problem), variant.schedule.gqa == Gqa::Pack);
}

static ExponentOrder orderOf(const Variant &variant) {
  const bool holdsScores = scaledOf(variant).held != nullptr;
  return holdsScores && form::mayBeLarge(*variant.problem.form) ? ExponentOrder::DifferenceFirst
                                                                : ExponentOrder::ProductsFirst;
}

FormBuilder::FormBuilder(Kernel &kernel, const Variant &variant)
    : order(orderOf(variant)), kernel(kernel), problem(variant.problem), schedule(variant.schedule),
      form(formOf(problem)), scaled(scaledOf(variant)) {}

/// Names that a kernel's text has for itself.
static bool isOfText(llvm::StringRef name) {
  static constexpr llvm::StringLiteral kNames[] = {"params", "shared", "form",  "tile", "turn", "base",     "place",
                                                   "cta",    "r",      "group", "next", "lse",  "key_tiles"};
  return isCppKeyword(name) || llvm::is_contained(kNames, name) || findRunValue(name);
}

void FormBuilder::declare(const Buffer &scores, const Buffer &rows) {
  this->scores = &scores;
  for (const auto &[index, param] : llvm::enumerate(form.params)) {
    const std::string name = kernel.freshName(isOfText(param.name) ? param.name + "_" : param.name);
    params.push_back(name);
    if (problem.form->boundOf(index))
      continue;
    if (param.isTensor())
      addTensor(name, param);
    else
      kernel.scalars.push_back({name, param.element == form::Element::F32, param.range.low, param.range.high});
  }
  if (scaled.held)
    held = reads.keep(kernel, heldScore(), scores, rows);
}

static ElementType elementTypeOf(form::Element element) {
  switch (element) {
  case form::Element::Bit:
    return ElementType::Bit;
  case form::Element::U8:
    return ElementType::U8;
  case form::Element::I32:
    return ElementType::I32;
  case form::Element::F16:
    return ElementType::F16;
  case form::Element::BF16:
    return ElementType::BF16;
  case form::Element::F32:
    break;
  }
  return ElementType::F32;
}

void FormBuilder::addTensor(llvm::StringRef name, const form::Param &param) {
  Buffer buffer;
  buffer.name = buffer.param = name.str();
  buffer.space = Space::Global;
  buffer.isStrided = true;
  buffer.type = elementTypeOf(param.element);
  buffer.location = param.location;
  if (param.element == form::Element::I32 && param.hasRange)
    buffer.values = param.range;
  for (const form::Extent &extent : param.extents)
    buffer.shape.push_back(extent.kind == form::Extent::Number    ? constant(extent.value)
                           : extent.kind == form::Extent::OfPlace ? placeOf(Place(extent.value))
                                                                  : paramOf(unsigned(extent.value)));
  kernel.addBuffer(std::move(buffer));
}

/// Of an integer.
Expr FormBuilder::paramOf(unsigned index) const {
  const form::Bound *const bound = problem.form->boundOf(index);
  return bound ? constant(bound->integer) : variable(params[index]);
}

Expr FormBuilder::queryOf(const Expr &row) const {
  return schedule.gqa == Gqa::Pack ? floorDiv(row, variable(RunValue::HeadsPerKv)) : row;
}

/// Of packed rows those of one query lie side by side.
Expr FormBuilder::headOf(const Expr &row) const {
  const Expr perKv = variable(RunValue::HeadsPerKv);
  return schedule.gqa == Gqa::Pack ? variable(RunValue::KvHead) * perKv + (row - floorDiv(row, perKv) * perKv)
                                   : variable(RunValue::Head);
}

/// For an element of the scores.
Expr FormBuilder::placeOf(Place place) const {
  const Expr row = variable(RunValue::ElementRow), key = variable(RunValue::ElementKey);
  switch (place) {
  case Place::Score:
    return elementOf(*scores) * variable(RunValue::Scale);
  case Place::Batch:
    return variable(RunValue::BatchIndex);
  case Place::Head:
    return headOf(row);
  case Place::KvHead:
    return variable(RunValue::KvHead);
  case Place::Query:
    return queryOf(row);
  case Place::Key:
    return schedule.isSplit() ? key + variable(RunValue::SplitBegin) : key;
  case Place::QueryPlace:
    return queryOf(row) + variable(RunValue::SeqKv) - variable(RunValue::SeqQ);
  case Place::Batches:
    return variable(RunValue::Batch);
  case Place::Heads:
    return variable(RunValue::Heads);
  case Place::KvHeads:
    return variable(RunValue::KvHeads);
  case Place::SeqQ:
    return variable(RunValue::SeqQ);
  case Place::SeqKv:
    return variable(RunValue::SeqKv);
  }
  return {};
}

Expr FormBuilder::lower(const form::Node &node, bool keysExist) const {
  form::Use use;
  if (problem.form)
    use = *problem.form;
  else
    use.form = std::shared_ptr<const form::Form>(&form, [](const form::Form *) {});
  return form::lower(node, use, {[&](Place place) { return placeOf(place); }, params, keysExist});
}

Expr FormBuilder::mask(const Expr &keys) {
  const Expr key = variable(RunValue::ElementKey), exists = lessThan(key, keys);
  if (!form.mask)
    return exists;
  const Expr visible = hoistReads(lower(*form.mask));
  if (visible == constant(0)) // of keys, so that it bounds them as any other mask
    return lessThan(key, constant(0));
  return logicalAnd(exists, visible);
}

static bool holdsI32(const Kernel &kernel, const Expr &read) {
  return kernel.buffer(read.operands().front().name().drop_front())->type == ElementType::I32;
}

/// Reads of integers that are the same for a whole tile.
Expr FormBuilder::hoistReads(const Expr &expr) {
  return expr.rewritten([&](const Expr &node) {
    const bool isOfTile = node.kind() == ExprKind::Read && !usesScope(node, RunScope::Element);
    return isOfTile && holdsI32(kernel, node) ? letOfRead(kernel, node) : Expr();
  });
}

/// Real numbers that all elements of a tile share become lets, but for those that a name or a number is already.
Expr FormBuilder::hoistReals(const Expr &expr, llvm::StringRef name) {
  if (!expr)
    return expr;
  std::string error;
  auto typeOfName = [&](llvm::StringRef name) { return isReal(kernel, name) ? ExprType::Real : ExprType::Integer; };
  const bool isLeaf = expr.kind() == ExprKind::Variable || expr.kind() == ExprKind::Real;
  if (isLeaf || expr.kind() == ExprKind::Constant)
    return expr;
  if (isUniform(expr) && typeOf(expr, typeOfName, error) == ExprType::Real)
    return letOf(expr, name);
  if (expr.kind() == ExprKind::Read)
    return expr;
  llvm::SmallVector<Expr, 3> operands;
  for (const Expr &operand : expr.operands())
    operands.push_back(hoistReals(operand, name));
  return expr.withOperands(operands);
}

/// The one with this value, or a new one after the others.
Expr FormBuilder::letOf(const Expr &value, llvm::StringRef name) {
  for (const Let &let : kernel.lets)
    if (!let.source && let.value == value)
      return variable(let.name);
  const bool isRead = value.kind() == ExprKind::Read;
  const std::string own =
      kernel.freshName(isRead ? "own_" + value.operands().front().name().drop_front().str() : name.str());
  kernel.lets.insert(kernel.lets.begin(), {own, value, "of form " + form.name});
  return variable(own);
}

/// tanh(x) as 1 - 2 / (1 + e^2x).
static Expr tanhByExp(const Expr &node) {
  if (node.kind() != ExprKind::Tanh)
    return {};
  return real(1) - real(2) / (real(1) + exp2(node.operand() * real(2 * kLog2E)));
}

Expr FormBuilder::heldScore() {
  if (problem.form && form::hidesAll(*problem.form))
    return real(-std::numeric_limits<float>::infinity());
  Expr score = lower(*scaled.held);
  if (schedule.tanh == Tanh::Exp)
    score = score.rewritten(tanhByExp);
  return score.rewritten(groupFactors);
}

Expr FormBuilder::score() { return held ? hoistReals(held, "score_factor") : Expr(); }

Expr FormBuilder::timesUnits(Expr factor) {
  for (const form::NodePtr &unit : scaled.units)
    factor = factor ? lower(*unit) * factor : lower(*unit);
  return factor;
}

Expr FormBuilder::factor() {
  return hoistReals(timesUnits(scaled.held ? real(kLog2E) : variable(RunValue::ScaleLog2)), "exp_factor");
}

std::optional<RowUnit> FormBuilder::rowUnit() const {
  if (!scaled.held && scaled.units.empty() && !form.sink)
    return std::nullopt;
  return order == ExponentOrder::DifferenceFirst ? RowUnit::Nats : RowUnit::Log2;
}

/// In the rows' unit -inf stays, whatever the factor.
void FormBuilder::end(Builder &builder, const Rows &rows) {
  const Expr m = elementOf(*rows.m), none = real(-std::numeric_limits<float>::infinity());
  const std::optional<RowUnit> unit = rowUnit();
  const Expr toUnit = unit == RowUnit::Nats ? hoistReals(timesUnits({}), "unit") : unit ? factor() : Expr();
  if (toUnit)
    builder.add(makeMap({.dst = {rows.m, {}}, .value = select(equal(m, none), none, m * toUnit)}));
  if (form.sink)
    joinSink(builder, rows);
  if (form.vScale)
    builder.add(
        makeMap({.dst = {rows.o, {}}, .value = elementOf(*rows.o) * hoistReals(lower(*form.vScale), "v_scale")}));
}

/// l += e^(sink - m), in one of the parts that a row is merged from. Where the sink is larger than m all follow
/// it; a row that has seen no key has l = 0 and o = 0.
void FormBuilder::joinSink(Builder &builder, const Rows &rows) const {
  const bool inNats = rowUnit() == RowUnit::Nats;
  const Expr given = lower(*form.sink, /*keysExist=*/false), sink = inNats ? given : given * real(kLog2E),
             m = elementOf(*rows.m), shift = finiteOf(elementOf(*rows.mNew));
  auto powerOf = [&](const Expr &exponent) { return exp2(inNats ? exponent * real(kLog2E) : exponent); };
  auto onRow = [&](Buffer *dst, Buffer *x, Buffer *y, const Expr &value) {
    const bool namesPlace = usesScope(value, RunScope::Element);
    builder.add(makeMap({.dst = {dst, {}},
                         .x = {x, {}},
                         .y = {y, {}},
                         .value = value,
                         .row = namesPlace ? variable(RunValue::RowBegin) : Expr(),
                         .key = namesPlace ? constant(0) : Expr()}));
  };
  onRow(rows.mNew, rows.m, nullptr, ofFirstKeys(max(m, sink), m));
  onRow(rows.l, rows.m, rows.mNew, elementOf(*rows.l) * powerOf(m - shift));
  onRow(rows.o, rows.m, rows.mNew, elementOf(*rows.o) * powerOf(m - shift));
  onRow(rows.l, rows.mNew, nullptr, elementOf(*rows.l) + ofFirstKeys(powerOf(sink - shift), real(0)));
  onRow(rows.m, rows.mNew, nullptr, elementOf(*rows.mNew));
}

/// The value for those who have a row's first keys.
Expr FormBuilder::ofFirstKeys(Expr value, Expr otherwise) const {
  if (schedule.keyWarps > 1)
    value = select(equal(variable(RunValue::ElementKey), constant(0)), value, otherwise);
  if (schedule.isSplit())
    value = select(equal(variable(RunValue::Split), constant(0)), value, otherwise);
  return value;
}

Location FormBuilder::lineOf(Location form::Form::*line, const Location &kernel) const {
  return (form.*line).isKnown() ? form.*line : kernel;
}
