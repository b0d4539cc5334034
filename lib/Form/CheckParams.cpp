// fagen: params of a form: types, extents, ranges.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checker.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen::form {

static constexpr unsigned kMostExtents = 4; ///< fagen_arg has so many strides
static constexpr int64_t kDefaultMost = int64_t(1) << 30;

static constexpr Element kElements[] = {Element::Bit, Element::U8,   Element::I32,
                                        Element::F16, Element::BF16, Element::F32};

bool Checker::setElement(const ast::FormParam &source, Param &param) {
  const bool isTensor = !source.extents.empty();
  std::vector<StringRef> known;
  for (Element element : kElements)
    if (isTensor || element == Element::I32 || element == Element::F32)
      known.push_back(toString(element));
  for (Element element : kElements) {
    if (toString(element) != source.type.text)
      continue;
    param.element = element;
    if (is_contained(known, source.type.text))
      return true;
    diags.error(source.type.range,
                source.type.text + " is the element of a tensor; a param of one number is i32 or f32");
    return false;
  }
  const StringRef word = source.type.text, near = word.starts_with("int")                         ? "i32"
                                                  : word.starts_with("float") || word == "double" ? "f32"
                                                  : word.starts_with("bool") && isTensor          ? "bit"
                                                                                         : nearestWord(word, known);
  diags.error(source.type.range, fmt::format("unknown type '{}'; {}", source.type.text,
                                             near.empty() ? "it is " + alternatives(known)
                                                          : fmt::format("did you mean '{}'?", near.str())));
  return false;
}

std::optional<Extent> Checker::extentOf(const ast::Name &name) {
  auto report = [&](const Twine &message) -> std::optional<Extent> {
    diags.error(name.range, message);
    return std::nullopt;
  };
  int64_t number = 0;
  if (!StringRef(name.text).getAsInteger(10, number))
    return number > 0 ? std::optional(Extent{Extent::Number, number}) : report("an extent is at least 1");
  Name *found = lookup(name.text, name.range);
  if (!found || found->isBroken)
    return std::nullopt;
  found->isUsed = true;
  if (found->kind == Name::OfPlace && placeInfo(Place(found->index)).isExtent)
    return Extent{Extent::OfPlace, int64_t(found->index)};
  const bool isScalar = found->kind == Name::OfParam && !form.params[found->index].isTensor() &&
                        form.params[found->index].element == Element::I32;
  if (!isScalar)
    return report("an extent is an integer, batch, heads, kv_heads, seq_q, seq_kv or a param of i32 above it, not '" +
                  name.text + "'");
  if (form.params[found->index].range.low < 0)
    return report("'" + name.text + "' may be negative and is an extent; give it a range from 0 or 1 on");
  return Extent{Extent::OfParam, int64_t(found->index)};
}

bool Checker::setExtents(const ast::FormParam &source, Param &param) {
  if (source.extents.size() > kMostExtents) {
    diags.error(source.extents[kMostExtents].range,
                fmt::format("a tensor has at most {} extents, not {}", kMostExtents, source.extents.size()));
    return false;
  }
  for (const ast::Name &name : source.extents) {
    std::optional<Extent> extent = extentOf(name);
    if (!extent)
      return false;
    param.extents.push_back(*extent);
  }
  param.isAscending = source.isAscending;
  if (!param.isAscending || param.element == Element::I32)
    return true;
  diags.error(source.range, "only tensors of i32 are ascending");
  return false;
}

/// A number with its sign.
std::optional<double> Checker::numberOf(const ast::Expr &expr, bool isInteger) {
  const bool isNegative = expr.kind == ast::Expr::Unary && expr.name == "-";
  const ast::Expr &number = isNegative ? *expr.operands[0] : expr;
  const bool isNumber = number.kind == ast::Expr::Integer || (number.kind == ast::Expr::Decimal && !isInteger);
  if (!isNumber) {
    diags.error(expr.range, Twine("an end of this range is ") + (isInteger ? "an integer" : "a number") + ", not '" +
                                textAt(expr.range) + "'");
    return std::nullopt;
  }
  const double value = number.kind == ast::Expr::Integer ? double(number.integer) : number.decimal;
  return isNegative ? -value : value;
}

bool Checker::setRange(const ast::FormParam &source, Param &param) {
  const bool isInteger = typeOf(param.element) == Type::I32;
  param.range = param.element == Element::U8 ? ir::Interval{0, 255} : ir::Interval{-kDefaultMost, kDefaultMost};
  if (!source.low)
    return true;
  if (typeOf(param.element) == Type::Bool) {
    diags.error(source.low->range, "a bit is 0 or 1; it takes no range");
    return false;
  }
  std::optional<double> low = numberOf(*source.low, isInteger), high = low ? numberOf(*source.high, isInteger) : low;
  if (!high)
    return false;
  if (*low > *high) {
    diags.error(source.low->range, "the range is empty: it begins at " + textAt(source.low->range) + " and ends at " +
                                       textAt(source.high->range) + "; the smaller end comes first");
    return false;
  }
  param.hasRange = true;
  if (isInteger)
    param.range = {int64_t(*low), int64_t(*high)};
  else
    param.realRange = {float(*low), float(*high)};
  return true;
}

void Checker::addParam(const ast::FormParam &source) {
  Param param;
  param.name = source.name.text;
  param.location = diags.locate(source.name.range.Start);
  const bool isRight =
      !source.isDamaged && setElement(source, param) && setExtents(source, param) && setRange(source, param);
  if (!declare(source.name, Name::OfParam, form.params.size()))
    return;
  names[source.name.text].isBroken = !isRight;
  if (isRight)
    form.params.push_back(std::move(param));
}

} // namespace fagen::form
