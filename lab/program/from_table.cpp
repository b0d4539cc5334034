// fagen: a program of a kernel set's table, and calls of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "from_table.h"

#include "lab/support/json_file.h"
#include "lab/support/text_table.h"
#include "lab/support/user_error.h"
#include "runtime/src/programs/recipe.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace fagen::lab {

namespace {

ProgramPlan planOf(const KernelSet &set, const fagen_row &row) {
  const std::string file = (set.directory() / "manifest.json").string();
  const auto manifest = parseText<nlohmann::json>(readText(file));
  for (const auto &entry : manifest["rows"])
    if (entry["variant"] == row.variant && entry["target"] == row.target) {
      nlohmann::json plan = entry["program"];
      plan["source"] = set.sourcePath(row).string();
      ProgramPlan read = ProgramPlan::parse(plan.dump(), file);
      read.table = set.table();
      return read;
    }
  throw UserError(fmt::format("{} has changed while it was read", file));
}

/// What the runtime keeps in the workspace is not the caller's to give.
bool isGiven(const ProgramPlan &plan, const ProgramBuffer &buffer) {
  for (uint32_t i = 0; i < plan.table->row_count; ++i) {
    const fagen_row &row = plan.table->rows[i];
    if (!isProgram(row) || row.variant != plan.name || row.target != plan.target)
      continue;
    for (uint32_t t = 0; t < row.recipe->tensor_count; ++t)
      if (const fagen_recipe_tensor &tensor = tensorAt(*row.recipe, t); tensor.name == buffer.name)
        return !isInWorkspace(tensor);
  }
  return true;
}

} // namespace

TableProgram TableProgram::load(const std::string &path, const std::string &name) {
  TableProgram found;
  found.sets = loadKernelSets({path});
  std::set<std::string> names;
  for (const auto &set : found.sets)
    for (const fagen_row *row : set->programs()) {
      if (name.empty() ? names.empty() : row->variant == name)
        found.plan = planOf(*set, *row);
      names.insert(row->variant);
    }
  if (names.empty())
    throw UserError(fmt::format("{} has no programs; fagen FILE.fair -o DIR writes them", path));
  if (name.empty() ? names.size() > 1 : !names.contains(name))
    throw UserError(fmt::format("{} has {}{}; --name takes {}", path,
                                name.empty() ? fmt::format("{} programs", names.size()) : "no program ",
                                name.empty() ? "" : fmt::format("'{}'", name), fmt::join(names, ", ")));
  return found;
}

TableCall::TableCall(const ProgramPlan &plan, const Sizes &sizes, const std::vector<const void *> &addresses) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const ProgramBuffer &buffer = plan.buffers[i];
    if (!isGiven(plan, buffer))
      continue;
    fagen_named_tensor &tensor = tensors.emplace_back();
    tensor.name = buffer.name.c_str();
    tensor.data = const_cast<void *>(addresses[i]);
    tensor.dtype = infoOf(buffer.element).dtype;
    for (const SizeExpr &size : buffer.shape)
      tensor.extent[tensor.rank++] = size.evaluate(sizes);
  }
  for (const auto &[name, value] : sizes)
    if (name != "sms")
      numbers.push_back({name.c_str(), FAGEN_ARG_I32, 0, value, 0});
  for (const ParamField &field : plan.params)
    if (!field.name.empty())
      numbers.push_back({field.name.c_str(), FAGEN_ARG_F32, 0, 0, field.number});
  call.program = plan.name.c_str();
  call.tensors = tensors.data();
  call.numbers = numbers.data();
  call.tensor_count = static_cast<uint32_t>(tensors.size());
  call.number_count = static_cast<uint32_t>(numbers.size());
}

std::string programTable(const std::vector<std::unique_ptr<KernelSet>> &sets) {
  TextTable table({{"program"}, {"target"}, {"kernel"}, {"tensors"}, {"launches", true}});
  bool hasAny = false;
  for (const auto &set : sets)
    for (const fagen_row *row : set->programs()) {
      std::string tensors;
      for (uint32_t i = 0; i < row->recipe->tensor_count; ++i) {
        const fagen_recipe_tensor &tensor = tensorAt(*row->recipe, i);
        tensors += fmt::format("{}{} {}", tensors.empty() ? "" : ", ", tensor.name, tensor.text);
      }
      table.add({row->variant, row->target, set->table()->kernel, tensors, std::to_string(row->launch_count)});
      hasAny = true;
    }
  return hasAny ? "\n" + table.text() : "";
}

} // namespace fagen::lab
