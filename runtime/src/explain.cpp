// fagen: fagen_explain: which row, why, and why not the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch.h"
#include "error.h"
#include "words.h"

#include <cstring>

using namespace fagen;

namespace {

void addPick(Text &text, const Picked &picked, const fagen_device &device) {
  text.add("picked   %s (%s): ", picked.row->variant, picked.row->target);
  switch (picked.pick) {
  case Pick::None:
    break;
  case Pick::Name:
    text.add("asked for by name");
    break;
  case Pick::Claim:
    text.add("%s claims '%s'; ", picked.table->kernel, picked.table->claim_text);
    [[fallthrough]];
  case Pick::Select:
    text.add("select line '%s' of %s", picked.line->text, picked.table->kernel);
    break;
  case Pick::Fitting:
    text.add("no row that select names fits; this one does");
    break;
  case Pick::Fallback:
    text.add("the fallback: no other row fits");
    break;
  }
  text.add(picked.row->sm == device.sm ? "; exact target\n" : "; nearest target that runs on sm_%u\n", device.sm);
}

/// Of a row whose keys are split: by how many CTAs.
void addSplits(Text &text, const fagen_row &row, const Problem &problem, const fagen_device &device) {
  switch (row.launches[0].grid) {
  case FAGEN_GRID_SPLITS:
  case FAGEN_GRID_PACKED_SPLITS:
  case FAGEN_GRID_SPLIT_KEYS:
  case FAGEN_GRID_PACKED_SPLIT_KEYS:
    text.add("splits   %u of the keys of each tile of rows\n", splitsOf(row, problem, device));
  }
}

/// Why dispatch passed a row that fits.
void addPassed(Text &text, const fagen_table &table, const fagen_row &row, const Picked &picked, const Problem &problem,
               const fagen_device &device) {
  if (problem.variant && strcmp(row.variant, problem.variant) != 0)
    text.add("fits, but has another name");
  else if (picked.pick == Pick::Claim && &table != picked.table)
    text.add("fits, but %s claims the problem", picked.table->kernel);
  else if (picked.row && targetDistance(row, device) > targetDistance(*picked.row, device))
    text.add("fits, but %s is farther from sm_%u than %s", row.target, device.sm, picked.row->target);
  else if (const fagen_form *form = picked.row ? formOf(*picked.table, picked.row->mask) : nullptr;
           form && row.mask != picked.row->mask)
    text.add("fits, but %s is for %s", picked.row->variant, form->text);
  else if (row.dispatch == FAGEN_ROW_BY_NAME)
    text.add("fits, but is reached by name only");
  else if (row.dispatch == FAGEN_ROW_FALLBACK)
    text.add("fits, but is the fallback");
  else
    text.add("fits, but select takes another schedule");
}

void addSelect(Text &text, const fagen_table &table, const Problem &problem, uint32_t mask,
               const fagen_device &device) {
  const Variables variables = variablesWith(problem, mask, device.smCount);
  const fagen_form *form = formOf(table, mask);
  const char *between = form ? ", " : "", *of = form ? form->text : "";
  if (hasClaim(table))
    text.add("claim    %s%s%s: %s: %s\n", table.kernel, between, of, table.claim_text,
             claims(table, variables) ? "true" : "false");
  for (const fagen_select &line : std::span(table.select, table.select_count)) {
    bool always = line.condition_size == 0;
    std::optional<int64_t> value =
        always ? std::optional<int64_t>(1) : evaluate(line.condition, line.condition_size, variables);
    const char *verdict = !value ? "false (division by zero)" : *value ? "true" : "false";
    const char *schedule = table.schedules[line.schedule];
    text.add("select   %s%s%s: %s : %s: %s\n", table.kernel, between, of, line.text, *schedule ? schedule : "(unnamed)",
             verdict);
  }
}

/// Rows of one key that were not picked, and select's lines for them.
void addOthers(Text &text, const fagen_table &table, uint32_t mask, const Picked &picked, const Problem &problem,
               const fagen_device &device) {
  const RowRange range = rowsOf(table, keyWith(problem, mask));
  if (range.begin != range.end && !problem.variant)
    addSelect(text, table, problem, mask, device);
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const fagen_row &row = rowAt(table, i);
    if (&row == picked.row)
      continue;
    text.add("not      %s (%s): ", row.variant, row.target);
    Misfit misfit = misfitOf(row, problem, device);
    if (misfit == Misfit::None)
      addPassed(text, table, row, picked, problem, device);
    else
      addMisfit(text, misfit, row, problem, device);
    text.add("\n");
  }
}

/// Rows for a form of the problem's name that it does not mean: other values are bound, or it says something else.
void addOtherForms(Text &text, const fagen_table &table, const Problem &problem) {
  for (uint32_t number = 0; number < formCount(table); ++number) {
    const fagen_form &form = formAt(table, number);
    if (strcmp(form.name, problem.form.name) != 0)
      continue;
    const bool isMeant = isOf(form, problem);
    const std::optional<uint32_t> other = isMeant ? firstOtherBound(form, problem) : std::nullopt;
    if (isMeant && !other)
      continue;
    const RowRange range = rowsOf(table, keyWith(problem, FAGEN_MASK_FORM_0 + number));
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const fagen_row &row = rowAt(table, i);
      text.add("not      %s (%s): is for %s; ", row.variant, row.target, form.text);
      if (isMeant) {
        text.add("the problem has ");
        addArg(text, paramAt(form, *other), problem.form.args[*other]);
      } else {
        text.add("this '%s' is another form than the one that takes these args", form.name);
      }
      text.add("\n");
    }
  }
}

} // namespace

size_t fagen_explain(const fagen_table *const *tables, size_t table_count, const fagen_problem *problem,
                     const fagen_device *device, char *buffer, size_t size) {
  Text text(buffer, buffer ? size : 0);
  Problem known;
  fagen_status status = checkTables(tables, table_count);
  if (!status && !device)
    status = fail(FAGEN_INVALID, "device is NULL");
  status = status ? status : readProblem(problem, known);
  Tables span(tables, table_count);
  if (!status && known.form.name)
    status = readForm(span, known);
  if (status) {
    text.add("%s: %s\n", fagen_status_name(status), fagen_last_error());
    return text.length();
  }
  const device::AttentionParams &p = known.params;
  text.add("problem  ");
  addProblemKey(text, known);
  text.add("; batch %d, heads %d, kv_heads %d, seq_q %d, seq_kv %d\n", p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv);
  text.add("device   %s (sm_%u)\n", device->name, device->sm);
  Picked picked = pickRow(span, known, *device);
  if (picked.row) {
    addPick(text, picked, *device);
    addSplits(text, *picked.row, known, *device);
  } else {
    status = failUnfit(span, known, *device);
    text.add("picked   none: %s: %s\n", fagen_status_name(status), fagen_last_error());
  }
  for (const fagen_table *table : span) {
    for (uint32_t mask : masksOf(*table, known))
      addOthers(text, *table, mask, picked, known, *device);
    if (known.form.name)
      addOtherForms(text, *table, known);
  }
  return text.length();
}
