// fagen: masks and forms by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forms.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace fagen::lab {

FormPtr formOfText(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text) {
  for (const auto &set : sets)
    for (const FormPtr &form : set->forms())
      if (form->text == text)
        return form;
  return nullptr;
}

static size_t boundParams(const FormDefinition &form) {
  return size_t(std::count_if(form.params.begin(), form.params.end(), [](const FormParam &p) { return p.bound; }));
}

MaskChoice chooseMask(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text) {
  if (text == nameOf(Mask::None) || text == nameOf(Mask::Causal))
    return {parseMask(text), nullptr};
  if (FormPtr form = formOfText(sets, withoutBlanks(text)))
    return {Mask::None, form};
  FormPtr best;
  std::vector<std::string> known = {"none", "causal"};
  for (const auto &set : sets)
    for (const FormPtr &form : set->forms()) {
      if (std::find(known.begin(), known.end(), form->text) == known.end())
        known.push_back(form->text);
      if (form->name == text && (!best || boundParams(*form) < boundParams(*best)))
        best = form;
    }
  if (!best)
    throw UserError(fmt::format("unknown mask or form '{}'; the kernel sets have {}", text, fmt::join(known, ", ")));
  return {Mask::None, best};
}

/// Of a row's dtype what says what Q and O are.
constexpr uint32_t kQueryBits = 3;

DType chooseDType(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &name) {
  if (!name.empty())
    return parseDType(name);
  std::set<uint32_t> known;
  for (const auto &set : sets)
    for (const fagen_row *row : set->rows())
      known.insert(row->dtype & kQueryBits);
  return known.size() == 1 && *known.begin() == FAGEN_DTYPE_BF16 ? DType::BF16 : DType::F16;
}

Case caseFor(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text, const std::string &dtype) {
  Case problem = parseCase(text);
  if (text.find(" dtype=") == std::string::npos)
    problem.dtype = chooseDType(sets, dtype);
  return problem;
}

Case explainedCase(const std::vector<std::unique_ptr<KernelSet>> &sets, const std::string &text,
                   const std::string &mask, const std::string &dtype, const std::vector<std::string> &numbers) {
  const Case written = caseFor(sets, text, dtype);
  const bool saysMask = text.find(" mask=") != std::string::npos, saysForm = text.find(" form=") != std::string::npos;
  const MaskChoice choice = chooseMask(sets, saysForm   ? written.form
                                             : saysMask ? std::string(nameOf(written.mask))
                                                        : mask);
  Case problem;
  problem.dtype = written.dtype;
  problem.kv = written.kv;
  problem.mask = choice.mask;
  return timedCase(written.shape, problem, choice.form, parseNumbers(numbers), 1);
}

Case caseOfRow(const KernelSet &set, const fagen_row &row) {
  Case c;
  c.shape.headDimQK = row.head_dim_qk;
  c.shape.headDimV = row.head_dim_v;
  c.dtype = (row.dtype & kQueryBits) == FAGEN_DTYPE_F16 ? DType::F16 : DType::BF16;
  c.kv = row.dtype & FAGEN_KV_E4M3 ? KvDType::E4M3 : row.dtype & FAGEN_KV_E5M2 ? KvDType::E5M2 : KvDType::Same;
  c.halfAccum = set.facts(row).accum == "f16";
  c.mask = row.mask == FAGEN_MASK_CAUSAL ? Mask::Causal : Mask::None;
  if (const FormPtr form = set.form(row))
    c.form = form->text;
  c.lse = row.lse != 0;
  return c;
}

std::map<std::string, double> usualNumbers(const FormDefinition &form, std::map<std::string, double> given) {
  constexpr double kUsualInteger = 1024, kUsualReal = 50;
  for (const FormParam &param : form.params) {
    if (param.isTensor() || param.bound)
      continue;
    const bool hasRange = std::isfinite(param.low) && std::isfinite(param.high);
    const double usual = !param.isReal() ? kUsualInteger : hasRange ? kUsualReal : 1;
    given.try_emplace(param.name, std::clamp(usual, param.low, param.high));
  }
  return given;
}

Case timedCase(const Shape &shape, Case c, const FormPtr &form, const std::map<std::string, double> &numbers,
               uint64_t seed) {
  c.shape = shape;
  if (form)
    c.numbers = usualNumbers(*form, numbers);
  return withForm(std::move(c), form, seed);
}

std::map<std::string, double> parseNumbers(const std::vector<std::string> &texts) {
  std::map<std::string, double> numbers;
  for (const std::string &text : texts) {
    const auto number = parseNumber(text);
    if (!numbers.insert(number).second)
      throw UserError(fmt::format("arg '{}' is given twice", number.first));
  }
  return numbers;
}

} // namespace fagen::lab
