// fagen: statements of a form: names once, results once and of their types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Checker.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen::form {

StringRef toString(Type type) { return type == Type::Bool ? "bool" : type == Type::I32 ? "i32" : "f32"; }

StringRef describe(Type type) {
  return type == Type::Bool ? "a truth value" : type == Type::I32 ? "an integer" : "a real number (f32)";
}

std::string textAt(SMRange range) {
  SmallVector<StringRef> words;
  SplitString(StringRef(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer()), words);
  return join(words, " ");
}

static constexpr uint32_t bit(Place place) { return 1u << unsigned(place); }

bool Checker::declare(const ast::Name &name, Name::Kind kind, unsigned index) {
  auto report = [&](const Twine &message) {
    diags.error(name.range, message);
    return false;
  };
  if (name.text == "inf" || placeByName(name.text))
    return report("'" + name.text + "' has a meaning in every form; take another name");
  for (const OpInfo &info : allOps())
    if (info.text == name.text)
      return report("'" + name.text + "' is a function; take another name");
  auto [earlier, inserted] = names.insert({name.text, {kind, index, name.range}});
  if (inserted)
    return true;
  report("'" + name.text + "' is declared twice; give one another name");
  diags.note(earlier->second.range, "here for the first time");
  return false;
}

void Checker::addLet(const ast::FormLine &line) {
  NodePtr node = line.value ? value(*line.value) : nullptr;
  if (!declare(line.name, Name::OfLet, form.lets.size()))
    return;
  names[line.name.text].isBroken = !node;
  if (node)
    form.lets.push_back({line.name.text, std::move(node)});
}

/// Whether a result may depend on the places that it names.
bool Checker::checkPlaces(const ast::FormLine &line, const Node &value) {
  if (line.kind == ast::FormLine::Mask && (value.places & bit(Place::Score)) != 0) {
    diags.error(line.value->range,
                "a mask cannot depend on the score; score = s > t ? s : -inf does, and skips no tiles");
    return false;
  }
  const bool isSink = line.kind == ast::FormLine::Sink;
  if (!isSink && line.kind != ast::FormLine::VScale)
    return true;
  const uint32_t allowed = bit(Place::Batch) | (isSink ? bit(Place::Head) | bit(Place::Query) : bit(Place::KvHead));
  for (unsigned place = 0; place != kPlaces; ++place) {
    if ((value.places & ~allowed & (1u << place)) == 0)
      continue;
    diags.error(line.value->range,
                (isSink ? "a sink depends on b, h, q and params, not on '" : "v_scale depends on b, hk and params, not on '") +
                    placeInfo(Place(place)).name +
                    (isSink ? "': it is one number a query row" : "': it is one number for all of a K/V head's V"));
    return false;
  }
  return true;
}

void Checker::addResult(const ast::FormLine &line, NodePtr &result, Type type) {
  if (result) {
    diags.error(line.name.range, "a form has one " + line.name.text + "; " +
                                     (line.kind == ast::FormLine::Mask ? "join both with && or ||" : "take one out"));
    return;
  }
  NodePtr node = line.value ? value(*line.value) : nullptr;
  if (!node)
    return;
  if (node->type != type) {
    diags.error(line.value->range,
                fmt::format("{} is {}, not {}{}", line.name.text, describe(type).str(), describe(node->type).str(),
                            type == Type::F32 ? "; f32(...) makes one of it" : "; compare it"));
    return;
  }
  if (checkPlaces(line, *node))
    result = std::move(node);
}

void Checker::warnOfScore() {
  if (!form.score)
    return;
  const RealRange &range = form.score->realRange;
  const char *what = range.mayBeNan && range.mayBePositiveInfinity ? "NaN or +inf"
                     : range.mayBeNan                              ? "NaN"
                     : range.mayBePositiveInfinity                 ? "+inf"
                                                                   : nullptr;
  if (!what)
    return;
  for (const ast::FormLine &line : source.lines)
    if (line.kind == ast::FormLine::Score)
      diags.warning(line.value->range,
                    Twine("the score may be ") + what +
                        "; a score is finite or -inf. Ranges of params that keep 0 out of divisors and bounds out of "
                        "exp, log and sqrt show that it is");
}

void Checker::warnOfUnused() {
  for (const ast::FormParam &param : source.params)
    if (auto found = names.find(param.name.text); found != names.end() && !found->second.isUsed)
      diags.warning(param.name.range, "param '" + param.name.text + "' is not used");
  for (const ast::FormLine &line : source.lines)
    if (auto found = names.find(line.name.text);
        line.kind == ast::FormLine::Let && found != names.end() && !found->second.isUsed)
      diags.warning(line.name.range, "let '" + line.name.text + "' is not used");
}

std::optional<Form> Checker::check() {
  const unsigned before = diags.errorCount();
  form.name = source.name.text;
  form.location = diags.locate(source.name.range.Start);
  for (unsigned place = 0; place != kPlaces; ++place)
    names[placeInfo(Place(place)).name] = {Name::OfPlace, place, {}};
  for (const ast::FormParam &param : source.params)
    addParam(param);
  for (const ast::FormLine &line : source.lines) {
    if (line.kind == ast::FormLine::Mask)
      form.maskLocation = diags.locate(line.name.range.Start);
    else if (line.kind == ast::FormLine::Score)
      form.scoreLocation = diags.locate(line.name.range.Start);
    if (line.kind == ast::FormLine::Let)
      addLet(line);
    else if (line.kind == ast::FormLine::Mask)
      addResult(line, form.mask, Type::Bool);
    else
      addResult(line, line.kind == ast::FormLine::Score    ? form.score
                      : line.kind == ast::FormLine::Sink ? form.sink
                                                         : form.vScale,
                Type::F32);
  }
  if (source.isDamaged || diags.errorCount() != before)
    return std::nullopt;
  warnOfScore();
  warnOfUnused();
  return std::move(form);
}

std::optional<Form> checkForm(const ast::Form &form, Diagnostics &diags) { return Checker(form, diags).check(); }

} // namespace fagen::form
