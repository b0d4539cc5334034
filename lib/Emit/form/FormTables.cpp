// fagen: the forms of a kernel as its table and manifest have them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FormTables.h"

#include "fagen/Form/Postfix.h"
#include "fagen/Form/Print.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <fagen/table.h>
#include <fmt/format.h>
#include <set>

using namespace fagen;
using namespace llvm;
using form::Element;
using form::Form;
using form::Place;

static_assert(uint32_t(Element::Bit) + 1 == FAGEN_ELEMENT_BIT && uint32_t(Element::F32) + 1 == FAGEN_ELEMENT_F32);
static_assert(form::kMostArgumentBytes == FAGEN_MAX_FORM_BYTES && kFirstFormNumber == FAGEN_MASK_FORM_0 &&
              kMostForms == FAGEN_MAX_FORMS);

/// FNV-1a of what the form says.
static uint64_t hashOf(const Form &form) {
  std::string text;
  raw_string_ostream os(text);
  form::printForm(form, os);
  os.flush();
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// Adds the params that a value depends on, by way of lets too.
static void collectParams(const Form &form, const form::Node &node, std::set<unsigned> &params) {
  if (node.op == form::Op::Param || node.op == form::Op::Read)
    params.insert(node.index);
  if (node.op == form::Op::Let)
    collectParams(form, *form.lets[node.index].value, params);
  for (const form::NodePtr &operand : node.operands)
    collectParams(form, *operand, params);
}

static std::set<unsigned> paramsOfMask(const Form &form) {
  std::set<unsigned> params;
  if (form.mask)
    collectParams(form, *form.mask, params);
  return params;
}

namespace {
/// The ends of a param's range; an infinite one: any finite number.
struct Range {
  double low, high;
};
} // namespace

static Range rangeOf(const form::Param &param) {
  if (form::typeOf(param.element) == form::Type::F32)
    return {param.realRange.low, param.realRange.high};
  if (param.element == Element::Bit)
    return {0, 1};
  return {double(param.range.low), double(param.range.high)};
}

static double boundValue(const Form &form, const form::Bound &bound) {
  return form.params[bound.param].element == Element::I32 ? double(bound.integer) : bound.real;
}

/// The place of a param, by the layout; none of a bound one.
static std::optional<unsigned> offsetOf(const form::Layout &layout, unsigned param) {
  for (const form::Field &field : layout.fields)
    if (field.param == param)
      return field.offset;
  return std::nullopt;
}

static StringRef wordOf(Place place) {
  switch (place) {
  case Place::Batches:
    return "batch";
  case Place::Heads:
    return "heads";
  case Place::KvHeads:
    return "kv_heads";
  case Place::SeqQ:
    return "seq_q";
  case Place::SeqKv:
    return "seq_kv";
  default:
    llvm_unreachable("an extent is the same for all elements");
  }
}

static json::Value wordOf(const Form &form, const form::Extent &extent) {
  switch (extent.kind) {
  case form::Extent::Number:
    return extent.value;
  case form::Extent::OfPlace:
    return wordOf(Place(extent.value));
  case form::Extent::OfParam:
    return form.params[extent.value].name;
  }
  llvm_unreachable("kinds of extents");
}

static json::Object paramObject(const form::Use &use, unsigned index, const form::Layout &layout, bool isInMask) {
  const form::Param &param = use.form->params[index];
  const Range range = rangeOf(param);
  json::Object object{
      {"name", param.name}, {"element", toString(param.element)}, {"rank", int64_t(param.extents.size())}};
  if (const std::optional<unsigned> offset = offsetOf(layout, index))
    object["offset"] = *offset;
  if (param.isAscending)
    object["ascending"] = true;
  if (isInMask)
    object["mask"] = true;
  if (std::isfinite(range.low))
    object["low"] = range.low;
  if (std::isfinite(range.high))
    object["high"] = range.high;
  if (const form::Bound *bound = use.boundOf(index))
    object["bound"] = boundValue(*use.form, *bound);
  json::Array extents;
  for (const form::Extent &extent : param.extents)
    extents.push_back(json::Array{wordOf(*use.form, extent)});
  if (!extents.empty())
    object["extents"] = std::move(extents);
  return object;
}

/// What the manifest says of the form's params, in their order.
static std::vector<json::Object> paramObjects(const form::Use &use) {
  const std::set<unsigned> inMask = paramsOfMask(*use.form);
  const form::Layout layout = layoutOf(use);
  std::vector<json::Object> params;
  for (unsigned index = 0; index < use.form->params.size(); ++index)
    params.push_back(paramObject(use, index, layout, inMask.count(index)));
  return params;
}

// ---- The table ----

/// Names and numbers: nothing to escape.
static std::string quoted(StringRef text) { return "\"" + text.str() + "\""; }

static std::string extentOp(const form::Extent &extent) {
  switch (extent.kind) {
  case form::Extent::Number:
    return fmt::format("{{FAGEN_OP_CONSTANT, 0, {}}}", extent.value);
  case form::Extent::OfPlace:
    return fmt::format("{{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_{}}}", wordOf(Place(extent.value)).upper());
  case form::Extent::OfParam:
    return fmt::format("{{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0 + {}}}", extent.value);
  }
  llvm_unreachable("kinds of extents");
}

/// One param's line; `extent` counts the form's extents.
static std::string paramText(const json::Object &param, unsigned number, unsigned &extent) {
  auto numberOr = [&](StringRef key, const char *absent) {
    const std::optional<double> found = param.getNumber(key);
    return found ? fmt::format("{}", *found) : absent;
  };
  std::vector<StringRef> flags;
  for (const auto &[key, flag] : {std::pair("ascending", "FAGEN_PARAM_ASCENDING"), {"mask", "FAGEN_PARAM_IN_MASK"}})
    if (param.get(key))
      flags.push_back(flag);
  std::string text = fmt::format(
      "    {{.name = {}, .element = FAGEN_ELEMENT_{}, .rank = {}, .offset = {}, .flags = {}, .low = {}, .high = {}",
      quoted(*param.getString("name")), param.getString("element")->upper(), *param.getInteger("rank"),
      numberOr("offset", "FAGEN_PARAM_BOUND"), flags.empty() ? "0" : join(flags, " | "), numberOr("low", "-kInfinity"),
      numberOr("high", "kInfinity"));
  if (param.get("bound"))
    text += ", .bound = " + numberOr("bound", "");
  std::vector<std::string> extents;
  for (int64_t i = 0; i < *param.getInteger("rank"); ++i)
    extents.push_back(fmt::format("{{.ops = kExtents{} + {}, .size = 1}}", number, extent++));
  if (!extents.empty())
    text += ", .extents = {" + join(extents, ", ") + "}";
  return text + "},\n";
}

static std::string paramsText(const form::Use &use, unsigned number) {
  std::string extents, params;
  unsigned extent = 0;
  for (const form::Param &param : use.form->params)
    for (const form::Extent &each : param.extents)
      extents += "    " + extentOp(each) + ",\n";
  for (const json::Object &param : paramObjects(use))
    params += paramText(param, number, extent);
  std::string text;
  if (!extents.empty())
    text += fmt::format("const fagen_op kExtents{}[] = {{\n{}}};\n\n", number, extents);
  if (!params.empty())
    text += fmt::format("const fagen_form_param kParams{}[] = {{\n{}}};\n\n", number, params);
  return text;
}

std::string fagen::tableForms(const KernelSpec &kernel) {
  std::string text, forms;
  for (const auto &[number, use] : enumerate(kernel.forms)) {
    text += paramsText(*use, number);
    forms +=
        fmt::format("    {{.name = {}, .text = {}, .hash = 0x{:016x}, .params = {}, .param_count = {}, .param_size = "
                    "sizeof(fagen_form_param), .bytes = {}}},\n",
                    quoted(use->form->name), quoted(toText(*use)), hashOf(*use->form),
                    use->form->params.empty() ? "nullptr" : fmt::format("kParams{}", number), use->form->params.size(),
                    form::layoutOf(*use).bytes);
  }
  if (forms.empty())
    return "";
  const bool isOpen = any_of(kernel.forms, [](const std::shared_ptr<const form::Use> &use) {
    return any_of(paramObjects(*use),
                  [](const json::Object &param) { return !param.get("low") || !param.get("high"); });
  });
  return (isOpen ? "constexpr double kInfinity = std::numeric_limits<double>::infinity();\n\n" : "") + text +
         "const fagen_form kForms[] = {\n" + forms + "};\n";
}

// ---- The manifest ----

json::Array fagen::manifestForms(const KernelSpec &kernel) {
  json::Array forms;
  for (const std::shared_ptr<const form::Use> &use : kernel.forms) {
    const Form &form = *use->form;
    json::Array params, lets;
    for (json::Object &param : paramObjects(*use))
      params.push_back(std::move(param));
    for (const form::Let &let : form.lets)
      lets.push_back(json::Array{let.name, form::toPostfix(*let.value, form)});
    json::Object object{
        {"name", form.name},           {"text", toText(*use)},          {"hash", fmt::format("{:016x}", hashOf(form))},
        {"params", std::move(params)}, {"bytes", layoutOf(*use).bytes}, {"lets", std::move(lets)}};
    const std::pair<const char *, form::NodePtr> results[] = {
        {"score", form.score}, {"mask", form.mask}, {"sink", form.sink}, {"v_scale", form.vScale}};
    for (const auto &[key, value] : results)
      if (value)
        object[key] = form::toPostfix(*value, form);
    forms.push_back(std::move(object));
  }
  return forms;
}
