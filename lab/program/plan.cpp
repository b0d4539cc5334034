// fagen: reads a program's plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan.h"

#include "own_row.h"

#include "lab/cases/problem.h"
#include "lab/support/json_file.h"

#include <fagen/device/tensor_map.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace fagen::lab {

using PlanJson = nlohmann::json;

namespace {

constexpr Element kElements[] = {Element::F16, Element::BF16, Element::E4M3, Element::F32, Element::U32, Element::I32};

/// Reads one plan; every mistake names the plan and where in it.
class PlanReader {
public:
  explicit PlanReader(const std::string &name) : name(name) {}

  ProgramPlan read(const std::string &text) {
    const PlanJson json = parsed(text);
    if (!json.is_object())
      refuse("it is not a JSON object");
    plan.name = string(json, "program");
    plan.source = string(json, "source");
    plan.target = string(json, "target");
    if (!isTarget(plan.target))
      refuse(fmt::format("'target' is '{}', not one like sm_80 or sm_90a", plan.target));
    for (const PlanJson &each : array(json, "buffers"))
      plan.buffers.push_back(buffer(each));
    for (const PlanJson &each : array(json, "params"))
      plan.params.push_back(param(each));
    for (const PlanJson &each : array(json, "launches"))
      plan.launches.push_back(launch(each));
    if (plan.buffers.empty() || plan.launches.empty())
      refuse(plan.buffers.empty() ? "it has no buffer" : "it has no launch");
    return std::move(plan);
  }

private:
  static bool isTarget(std::string_view name) {
    const bool isNamed = name.starts_with("sm_");
    name.remove_prefix(isNamed ? 3 : 0);
    name.remove_suffix(name.ends_with('a') ? 1 : 0);
    return isNamed && name.size() >= 2 && name.size() <= 3 &&
           std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  [[noreturn]] void refuse(const std::string &why) const {
    throw UserError(fmt::format("{} is not a plan of a program: {}{}", name, why,
                                name.ends_with(".fa") ? "; a spec's kernels run by fagen-run check DIR" : ""));
  }

  PlanJson parsed(const std::string &text) const {
    try {
      return parseText<PlanJson>(text);
    } catch (const NoJson &error) {
      refuse(error.what());
    }
  }

  const PlanJson &member(const PlanJson &json, const char *key) const {
    if (!json.is_object() || !json.contains(key))
      refuse(fmt::format("'{}' is missing in {}", key, json.dump().substr(0, 60)));
    return json[key];
  }
  std::string string(const PlanJson &json, const char *key) const {
    const PlanJson &value = member(json, key);
    if (!value.is_string())
      refuse(fmt::format("'{}' is not a string", key));
    return value;
  }
  const PlanJson &array(const PlanJson &json, const char *key) const {
    const PlanJson &value = member(json, key);
    if (!value.is_array())
      refuse(fmt::format("'{}' is not a list", key));
    return value;
  }
  unsigned number(const PlanJson &json, const char *key, unsigned most) const {
    const PlanJson &value = member(json, key);
    if (!value.is_number_unsigned() || value.get<uint64_t>() > most)
      refuse(fmt::format("'{}' is not a number from 0 to {}", key, most));
    return value.get<unsigned>();
  }
  static bool flag(const PlanJson &json, const char *key) { return json.contains(key) && json[key] == true; }

  SizeExpr expression(const PlanJson &json, const char *key) const {
    std::vector<std::variant<int64_t, std::string>> terms;
    for (const PlanJson &term : array(json, key))
      terms.push_back(termOf(term, key));
    try {
      return SizeExpr(std::move(terms));
    } catch (const UserError &error) {
      refuse(fmt::format("'{}': {}", key, error.what()));
    }
  }
  std::variant<int64_t, std::string> termOf(const PlanJson &term, const char *key) const {
    if (term.is_number_integer())
      return term.get<int64_t>();
    if (term.is_string())
      return term.get<std::string>();
    refuse(fmt::format("'{}' has a term that is neither a number nor a name", key));
  }

  Element element(const std::string &type, const std::string &ofBuffer) const {
    std::vector<std::string> known;
    for (const Element element : kElements) {
      if (type == nameOf(element))
        return element;
      known.push_back(nameOf(element));
    }
    refuse(fmt::format("buffer '{}' has elements of '{}'; known: {}", ofBuffer, type, fmt::join(known, ", ")));
  }

  ProgramBuffer buffer(const PlanJson &json) const {
    ProgramBuffer buffer;
    buffer.name = string(json, "name");
    buffer.element = element(string(json, "type"), buffer.name);
    for (const PlanJson &size : array(json, "shape"))
      buffer.shape.push_back(expression(PlanJson{{"shape", size}}, "shape"));
    if (buffer.shape.empty())
      refuse(fmt::format("buffer '{}' has no dimensions", buffer.name));
    buffer.isWritten = flag(json, "written");
    buffer.isZeroed = flag(json, "zeroed");
    buffer.isRestored = flag(json, "restored");
    if (buffer.isRestored && !buffer.isZeroed)
      refuse(fmt::format("buffer '{}' is restored, but not zeroed: to what is not known", buffer.name));
    buffer.promises =
        (flag(json, "ascending") ? FAGEN_TENSOR_ASCENDING : 0) | (flag(json, "distinct") ? FAGEN_TENSOR_DISTINCT : 0);
    if (json.contains("in"))
      setRange(array(json, "in"), buffer);
    if (json.contains("clocks_of"))
      buffer.clocksOf = string(json, "clocks_of");
    if (json.contains("alignment"))
      buffer.alignment = std::max(number(json, "alignment", 16), 1u);
    return buffer;
  }

  void setRange(const PlanJson &range, ProgramBuffer &buffer) const {
    if (range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer())
      refuse(fmt::format("'in' of buffer '{}' is not a list of two whole numbers", buffer.name));
    buffer.promises |= FAGEN_TENSOR_IN_RANGE;
    buffer.low = range[0];
    buffer.high = range[1];
  }

  unsigned bufferNamed(const std::string &wanted) const {
    for (unsigned i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].name == wanted)
        return i;
    refuse(fmt::format("there is no buffer '{}'", wanted));
  }

  ParamField param(const PlanJson &json) const {
    ParamField field;
    const std::string kind = string(json, "kind");
    if (kind == "pointer" || kind == "stride" || kind == "map") {
      field.kind = kind == "pointer" ? ParamField::Pointer : kind == "stride" ? ParamField::Stride : ParamField::Map;
      field.buffer = bufferNamed(string(json, "buffer"));
      const auto rank = static_cast<unsigned>(plan.buffers[field.buffer].shape.size());
      if (field.kind == ParamField::Stride)
        field.dimension = number(json, "dimension", rank - 1);
      if (field.kind == ParamField::Map)
        field.map = map(json);
    } else if (kind == "i32" || kind == "i64") {
      field.kind = kind == "i32" ? ParamField::Int32 : ParamField::Int64;
      field.value = expression(json, "value");
    } else if (kind == "f32") {
      field.kind = ParamField::Float32;
      if (member(json, "value").is_string())
        field.name = json["value"];
      else if (json["value"].is_number())
        field.number = json["value"];
      else
        refuse("'value' of an f32 is neither a number nor the name of one");
    } else {
      refuse(fmt::format("unknown parameter '{}'; known: pointer, stride, map, i32, i64, f32", kind));
    }
    return field;
  }

  MapField map(const PlanJson &json) const {
    MapField map;
    for (const PlanJson &dimension : array(json, "dimensions"))
      map.dimensions.push_back(
          {expression(dimension, "size"), expression(dimension, "stride"), number(dimension, "box", 256)});
    if (map.dimensions.empty() || map.dimensions.size() > device::kMapRank)
      refuse(fmt::format("a map of {} dimensions; 1 to {} are possible", map.dimensions.size(), device::kMapRank));
    map.swizzle = number(json, "swizzle", 128);
    return map;
  }

  ProgramLaunch launch(const PlanJson &json) const {
    ProgramLaunch launch;
    launch.symbol = string(json, "symbol");
    launch.threads = number(json, "threads", 1024);
    launch.cluster = json.contains("cluster") ? number(json, "cluster", 16) : 1;
    launch.sharedBytes = expression(json, "shared_bytes");
    launch.ctas = expression(json, "ctas");
    launch.isResident = flag(json, "resident");
    if (json.contains("roles"))
      for (const PlanJson &role : array(json, "roles"))
        launch.roles.push_back({string(role, "name"), static_cast<int>(number(role, "first_warp", 31)),
                                static_cast<int>(number(role, "warps", 32))});
    if (launch.threads == 0 || launch.cluster == 0)
      refuse(fmt::format("launch '{}' has no threads", launch.symbol));
    return launch;
  }

  const std::string &name;
  ProgramPlan plan;
};

} // namespace

ProgramPlan ProgramPlan::parse(const std::string &json, const std::string &name) {
  ProgramPlan plan = PlanReader(name).read(json);
  plan.own = std::make_shared<OwnRow>(json, name);
  return plan;
}

ProgramPlan ProgramPlan::load(const std::string &path) {
  ProgramPlan plan = parse(readText(path), path);
  plan.source = (std::filesystem::path(path).parent_path() / plan.source).string();
  return plan;
}

std::vector<std::string> ProgramPlan::numberNames() const {
  std::vector<std::string> names;
  for (const ParamField &field : params)
    if (!field.name.empty())
      names.push_back(field.name);
  return names;
}

void ProgramPlan::setNumbers(const std::map<std::string, double> &numbers) {
  const std::vector<std::string> names = numberNames();
  for (const auto &[given, value] : numbers)
    if (std::find(names.begin(), names.end(), given) == names.end())
      throw UserError(fmt::format("{} has no number '{}'; it has {}", name, given,
                                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
  for (ParamField &field : params) {
    if (field.name.empty())
      continue;
    const auto found = numbers.find(field.name);
    if (found == numbers.end())
      throw UserError(fmt::format("number '{0}' has no value; give it as --set {0}=...", field.name));
    field.number = found->second;
  }
}

std::vector<std::string> ProgramPlan::sizeNames() const {
  std::set<std::string> found;
  auto add = [&found](const SizeExpr &expression) {
    for (const std::string &name : expression.names())
      if (name != "sms")
        found.insert(name);
  };
  for (const ProgramBuffer &buffer : buffers)
    for (const SizeExpr &size : buffer.shape)
      add(size);
  for (const ParamField &field : params) {
    add(field.value);
    for (const MapField::Dimension &dimension : field.map.dimensions) {
      add(dimension.size);
      add(dimension.stride);
    }
  }
  for (const ProgramLaunch &launch : launches) {
    add(launch.ctas);
    add(launch.sharedBytes);
  }
  return {found.begin(), found.end()};
}

} // namespace fagen::lab
