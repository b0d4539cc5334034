// fagen: lists kernel sets and explains dispatch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "listing.h"
#include "forms.h"
#include "lab/cases/abi_problem.h"

#include <fmt/format.h>

namespace fagen::lab {

static const char *dispatchName(const fagen_row &row) {
  switch (row.dispatch) {
  case FAGEN_ROW_DISPATCHED:
    return "by select";
  case FAGEN_ROW_FALLBACK:
    return "as fallback";
  default:
    return "by name";
  }
}

static std::string typeOf(const FormParam &param) {
  static constexpr const char *kElements[] = {"", "bit", "u8", "i32", "f16", "bf16", "f32"};
  return kElements[param.element] + (param.isTensor() ? fmt::format(", rank {}", param.extents.size()) : "") +
         (param.isAscending ? ", ascending" : "");
}

static std::string valuesOf(const FormParam &param) {
  return param.bound ? fmt::format("{}, bound", *param.bound) : fmt::format("{} to {}", param.low, param.high);
}

/// What callers give to each form; nothing where there are none.
static std::string formTable(const std::vector<std::unique_ptr<KernelSet>> &sets) {
  TextTable table({{"kernel"}, {"form"}, {"param"}, {"type"}, {"values"}});
  bool any = false;
  for (const auto &set : sets)
    for (const FormPtr &form : set->forms()) {
      any = true;
      if (form->params.empty())
        table.add({set->table()->kernel, form->text, "", "", ""});
      for (const FormParam &param : form->params)
        table.add({set->table()->kernel, form->text, param.name, typeOf(param), valuesOf(param)});
    }
  return any ? "\n" + table.text() : "";
}

static Json formsJson(const KernelSet &set) {
  Json forms = Json::array();
  for (const FormPtr &form : set.forms()) {
    Json params = Json::array();
    for (const FormParam &param : form->params)
      params.push_back({{"name", param.name}, {"type", typeOf(param)}, {"values", valuesOf(param)}});
    forms.push_back({{"name", form->name}, {"text", form->text}, {"params", params}});
  }
  return forms;
}

std::string listTable(const std::vector<std::unique_ptr<KernelSet>> &sets) {
  TextTable table({{"kernel"},
                   {"variant"},
                   {"target"},
                   {"tile", true},
                   {"warps", true},
                   {"stages", true},
                   {"mma"},
                   {"copy"},
                   {"shared B", true},
                   {"align B", true},
                   {"dispatched"}});
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows()) {
      const RowFacts &facts = set->facts(*row);
      table.add({set->table()->kernel, row->variant, row->target,
                 fmt::format("{} x {}", row->tile_rows, row->tile_keys), std::to_string(facts.warps),
                 std::to_string(facts.stages), facts.mma, facts.copy, std::to_string(row->launches[0].shared_bytes),
                 std::to_string(row->alignment), dispatchName(*row)});
    }
  return table.text() + formTable(sets);
}

Json listJson(const std::vector<std::unique_ptr<KernelSet>> &sets) {
  Json json = Json::array();
  for (const auto &set : sets) {
    Json rows = Json::array();
    for (const fagen_row *row : set->rows()) {
      const RowFacts &facts = set->facts(*row);
      rows.push_back({{"variant", row->variant},
                      {"target", row->target},
                      {"tile_rows", row->tile_rows},
                      {"tile_keys", row->tile_keys},
                      {"warps", facts.warps},
                      {"stages", facts.stages},
                      {"mma", facts.mma},
                      {"copy", facts.copy},
                      {"shared_bytes", row->launches[0].shared_bytes},
                      {"alignment", row->alignment},
                      {"dispatched", dispatchName(*row)},
                      {"mask", maskText(caseOfRow(*set, *row))}});
    }
    json.push_back({{"kernel", set->table()->kernel}, {"spec", set->table()->spec}, {"rows", rows}});
    if (!set->forms().empty())
      json.back()["forms"] = formsJson(*set);
  }
  return json;
}

Explanation explain(const std::vector<std::unique_ptr<KernelSet>> &sets, const Case &problem, uint32_t sm,
                    uint32_t sms) {
  fagen_device *device = nullptr;
  if (fagen_device_describe(sm, sms, &device) != FAGEN_OK)
    throw UserError(fagen_last_error());
  std::unique_ptr<fagen_device, void (*)(fagen_device *)> owner(device, fagen_device_destroy);
  std::vector<const fagen_table *> tables;
  for (const auto &set : sets)
    tables.push_back(set->table());
  fagen_problem described = describeProblem(problem, Placements(problem));
  fagen_choice choice = makeAbi<fagen_choice>();

  Explanation explanation;
  explanation.problem = problem;
  explanation.sm = sm;
  explanation.status = fagen_query(tables.data(), tables.size(), &described, device, &choice);
  if (explanation.status == FAGEN_OK) {
    explanation.variant = choice.row->variant;
    explanation.target = choice.row->target;
  }
  size_t length = fagen_explain(tables.data(), tables.size(), &described, device, nullptr, 0);
  explanation.text.resize(length + 1);
  fagen_explain(tables.data(), tables.size(), &described, device, explanation.text.data(), length + 1);
  explanation.text.resize(length);
  for (const auto &set : sets)
    if (explanation.status == FAGEN_OK && set->table() == choice.table)
      for (const std::string &line : set->evidence(*choice.row))
        explanation.text += "evidence " + line + '\n';
  return explanation;
}

Json explanationJson(const Explanation &e) {
  const std::map<std::string, double> none;
  const auto &numbers = e.problem.arguments ? e.problem.arguments->arguments.numbers : none;
  return {{"args", numbers},      {"case", formatCase(e.problem)},
          {"sm", e.sm},           {"status", fagen_status_name(e.status)},
          {"variant", e.variant}, {"target", e.target},
          {"explanation", e.text}};
}

} // namespace fagen::lab
