// fagen: the one-line spelling of a check case, which failures print so that it can be run again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.h"
#include "tensor_rule.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace fagen::lab {

template <typename Enum> struct Named {
  const char *name;
  Enum value;
};
static constexpr Named<Inputs> kInputs[] = {{"normal", Inputs::Normal},     {"large", Inputs::Large},
                                            {"negative", Inputs::Negative}, {"constant", Inputs::Constant},
                                            {"rising", Inputs::Rising},     {"leaps", Inputs::Leaps}};
static constexpr Named<Layout> kLayouts[] = {
    {"bhsd", Layout::Bhsd},     {"bshd", Layout::Bshd},      {"padded", Layout::Padded},
    {"odd", Layout::Odd},       {"offset", Layout::Offset},  {"junk", Layout::Junk},
    {"shared", Layout::Shared}, {"one_row", Layout::OneRow}, {"far", Layout::Far}};

template <typename Enum, size_t N> static const char *nameIn(const Named<Enum> (&table)[N], Enum value) {
  for (const auto &entry : table)
    if (entry.value == value)
      return entry.name;
  throw std::logic_error("enumerator without a name");
}

template <typename Enum, size_t N>
static Enum valueIn(const Named<Enum> (&table)[N], std::string_view key, std::string_view name) {
  std::vector<std::string> names;
  for (const auto &entry : table) {
    if (name == entry.name)
      return entry.value;
    names.emplace_back(entry.name);
  }
  throw UserError(fmt::format("unknown {} '{}'; known: {}", key, name, fmt::join(names, ", ")));
}

double Case::scaleValue() const { return scale ? *scale : 1.0 / std::sqrt(static_cast<double>(shape.headDimQK)); }

std::string formatCase(const Case &c) {
  std::string text = formatShape(c.shape);
  if (c.dtype != DType::F16)
    text += fmt::format(" dtype={}", nameOf(c.dtype));
  if (c.kv != KvDType::Same)
    text += fmt::format(" kv={}", nameOf(c.kv));
  if (c.kvValues != KvDType::Same)
    text += fmt::format(" kv_values={}", nameOf(c.kvValues));
  if (c.halfAccum)
    text += " accum=f16";
  if (c.mask != Mask::None)
    text += fmt::format(" mask={}", nameOf(c.mask));
  if (!c.form.empty())
    text += fmt::format(" form={}", c.form);
  for (const auto &[name, value] : c.numbers)
    text += fmt::format(" arg.{}={}", name, value);
  for (const auto &[name, rule] : c.tensors)
    text += fmt::format(" arg.{}={}", name, rule);
  if (c.scalars != Scalars::Host)
    text += " scalars=device";
  if (c.inputs != Inputs::Normal)
    text += fmt::format(" inputs={}", nameIn(kInputs, c.inputs));
  if (c.layout != Layout::Bhsd)
    text += fmt::format(" layout={}", nameIn(kLayouts, c.layout));
  if (c.scale)
    text += fmt::format(" scale={}", *c.scale);
  if (!c.lse)
    text += " lse=off";
  return text;
}

static std::optional<double> finiteNumber(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

static double parseScale(const std::string &text) {
  const std::optional<double> value = finiteNumber(text);
  if (!value || *value < 0)
    throw UserError(fmt::format("scale is '{}', not a number from 0 up", text));
  return *value;
}

std::pair<std::string, double> parseNumber(std::string_view text) {
  const size_t equals = text.find('=');
  const std::optional<double> value =
      equals == std::string_view::npos ? std::nullopt : finiteNumber(text.substr(equals + 1));
  if (!value || equals == 0)
    throw UserError(fmt::format("arg is '{}', not NAME=NUMBER: window=1024, cap=50", text));
  return {std::string(text.substr(0, equals)), *value};
}

std::string maskText(const Case &c) { return c.form.empty() ? std::string(nameOf(c.mask)) : c.form; }

static void setArgument(Case &c, const std::string &name, const std::string &value) {
  if (c.numbers.contains(name) || c.tensors.contains(name))
    throw UserError(fmt::format("arg '{}' is given twice", name));
  if (isTensorRule(value))
    c.tensors[name] = value;
  else
    c.numbers.insert(parseNumber(fmt::format("{}={}", name, value)));
}

static void setCaseKey(Case &c, std::string_view key, const std::string &value) {
  if (key == "dtype")
    c.dtype = parseDType(value);
  else if (key == "kv")
    c.kv = parseKvDType(value);
  else if (key == "kv_values")
    c.kvValues = parseKvDType(value);
  else if (key == "accum" && (value == "f32" || value == "f16"))
    c.halfAccum = value == "f16";
  else if (key == "mask")
    c.mask = parseMask(value);
  else if (key == "inputs")
    c.inputs = valueIn(kInputs, key, value);
  else if (key == "layout")
    c.layout = valueIn(kLayouts, key, value);
  else if (key == "scale")
    c.scale = parseScale(value);
  else if (key == "form")
    c.form = value;
  else if (key.starts_with("arg."))
    setArgument(c, std::string(key.substr(4)), value);
  else if (key == "scalars" && (value == "host" || value == "device"))
    c.scalars = value == "host" ? Scalars::Host : Scalars::Device;
  else if (key == "lse" && (value == "on" || value == "off"))
    c.lse = value == "on";
  else
    throw UserError(fmt::format(
        "unknown setting '{}={}' of a case; known: dtype, kv=same|e4m3|e5m2, kv_values=same|e4m3|e5m2, accum=f32|f16, mask, inputs, layout, "
        "scale, form, arg.NAME, scalars=host|device, lse=on|off",
        key, value));
}

Case parseCase(std::string_view text) {
  Case c;
  bool first = true;
  for (const std::string &word : split(text, ' ')) {
    if (word.empty())
      continue;
    if (std::exchange(first, false)) {
      c.shape = parseShape(word);
      continue;
    }
    size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw UserError(fmt::format("'{}' of case '{}' is not key=value", word, text));
    setCaseKey(c, std::string_view(word).substr(0, equals), word.substr(equals + 1));
  }
  if (first)
    throw UserError("the case is empty; it begins with a shape, b,h,hkv,sq,sk,d[,dv]");
  return c;
}

} // namespace fagen::lab
