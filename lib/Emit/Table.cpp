// fagen: the dispatch table of a kernel as C++ text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbers are those of <fagen/table.h>, which this file includes: sort keys are computed by the same function that
// the runtime uses, and the asserts below keep the compiler's enumerations in step with the C ones.

#include "fagen/Emit/Table.h"

#include "form/FormTables.h"
#include "programs/RecipeText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <cctype>
#include <fagen/table.h>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <numeric>

using namespace fagen;

static_assert(uint32_t(PassKind::Forward) == FAGEN_PASS_FORWARD && uint32_t(PassKind::Backward) == FAGEN_PASS_BACKWARD);
static_assert(uint32_t(DType::F16) == FAGEN_DTYPE_F16 && uint32_t(DType::BF16) == FAGEN_DTYPE_BF16 &&
              uint32_t(DType::E4M3) == FAGEN_DTYPE_E4M3);
static_assert(uint32_t(Mask::None) == FAGEN_MASK_NONE && uint32_t(Mask::Causal) == FAGEN_MASK_CAUSAL);
static_assert(uint32_t(SelectOp::Constant) == FAGEN_OP_CONSTANT && uint32_t(SelectOp::CeilDiv) == FAGEN_OP_CEIL_DIV &&
              uint32_t(SelectOp::Or) == FAGEN_OP_OR && uint32_t(SelectOp::FloorDiv) == FAGEN_OP_FLOOR_DIV);
static_assert(uint32_t(SelectVariable::Batch) == FAGEN_VAR_BATCH && uint32_t(SelectVariable::Row) == FAGEN_VAR_ROW &&
              kFirstScalar == FAGEN_VAR_FORM_0);

static const char *const kOpNames[] = {"CONSTANT", "VARIABLE", "ADD", "SUB", "MUL", "DIV", "MOD",
                                       "CEIL_DIV", "NEG",      "NOT", "EQ",  "NE",  "LT",  "LE",
                                       "GT",       "GE",       "AND", "OR",  "MIN", "MAX", "FLOOR_DIV"};
static const char *const kVariableNames[] = {"BATCH",       "HEADS",      "KV_HEADS", "SEQ_Q", "SEQ_KV", "SMS",
                                             "HEAD_DIM_QK", "HEAD_DIM_V", "DTYPE",    "MASK",  "SPLITS", "ROW"};
static_assert(std::size(kOpNames) == FAGEN_OP_FLOOR_DIV + 1 && std::size(kVariableNames) == FAGEN_VAR_ROW + 1);

static const char *passConstant(PassKind pass) {
  return pass == PassKind::Backward ? "FAGEN_PASS_BACKWARD" : "FAGEN_PASS_FORWARD";
}

/// What joins the number of the dtype.
static uint32_t kvBits(KvDType dtype) {
  return dtype == KvDType::E4M3 ? FAGEN_KV_E4M3 : dtype == KvDType::E5M2 ? FAGEN_KV_E5M2 : 0;
}

static const char *kvConstant(KvDType dtype) {
  return dtype == KvDType::E4M3 ? " | FAGEN_KV_E4M3" : dtype == KvDType::E5M2 ? " | FAGEN_KV_E5M2" : "";
}

static const char *dtypeConstant(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return "FAGEN_DTYPE_F16";
  case DType::BF16:
    return "FAGEN_DTYPE_BF16";
  case DType::E4M3:
    return "FAGEN_DTYPE_E4M3";
  case DType::F32:
    break;
  }
  llvm_unreachable("no tensor is f32");
}

static std::string maskConstant(const Problem &problem) {
  if (problem.form)
    return fmt::format("FAGEN_MASK_FORM_0 + {}", problem.formIndex);
  return problem.mask == Mask::Causal ? "FAGEN_MASK_CAUSAL" : "FAGEN_MASK_NONE";
}

static const char *dispatchConstant(unsigned dispatch) {
  static const char *const names[] = {"FAGEN_ROW_DISPATCHED", "FAGEN_ROW_FALLBACK", "FAGEN_ROW_BY_NAME"};
  return names[dispatch];
}

/// A C string literal.
static std::string quote(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << '"';
  os.write_escaped(text);
  os << '"';
  return result;
}

static std::string codeName(const Variant &variant) {
  return fmt::format("fagen_code_{}_{}", variant.name, variant.target->name.str());
}

static uint64_t keyOf(const KernelPlan &plan, unsigned index) {
  const Variant &variant = *plan.variants[index].variant;
  const Problem &problem = variant.problem;
  fagen_row row = {};
  if (plan.variants[index].recipe) {
    row.pass = FAGEN_PASS_PROGRAM;
    row.dispatch = dispatchOf(variant);
    row.sm = variant.target->sm;
    row.exact = variant.target->exact;
    row.order = index;
    return fagen_row_key(&row);
  }
  row.pass = uint32_t(problem.pass);
  row.dtype = uint32_t(problem.dtype) | kvBits(problem.kvDType);
  row.mask = maskNumber(problem);
  row.head_dim_qk = problem.headDimQK;
  row.head_dim_v = problem.headDimV;
  row.dispatch = dispatchOf(variant);
  row.sm = variant.target->sm;
  row.exact = variant.target->exact;
  row.order = index;
  return fagen_row_key(&row);
}

unsigned fagen::dispatchOf(const Variant &variant) {
  if (variant.schedule.implicit)
    return FAGEN_ROW_FALLBACK;
  return variant.dispatched ? FAGEN_ROW_DISPATCHED : FAGEN_ROW_BY_NAME;
}

std::vector<unsigned> fagen::tableOrder(const KernelPlan &plan) {
  std::vector<unsigned> order(plan.variants.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned a, unsigned b) { return keyOf(plan, a) < keyOf(plan, b); });
  return order;
}

namespace {

/// Appends formatted lines.
class TableEmitter {
public:
  explicit TableEmitter(const KernelPlan &plan) : plan(plan), order(tableOrder(plan)) {}

  std::string run() {
    emitHead();
    emitDeclarations();
    line("\nnamespace {{\n");
    emitSchedules();
    emitSelect();
    emitForms();
    emitRows();
    emitKeys();
    line("\n}} // namespace\n");
    emitTable();
    return std::move(text);
  }

private:
  template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  }

  void emitHead();
  void emitDeclarations();
  void emitSchedules();
  void emitSelect();
  void emitForms();
  void emitEvidence(const std::vector<std::string> &lines);
  void emitProgram(llvm::StringRef name, const std::vector<SelectOp> &ops, const form::Use *use = nullptr);
  void emitWorkspace(unsigned index);
  void emitSharedTiles(unsigned index);
  void emitMaps(unsigned index);
  void emitRows();
  void emitLaunches(const VariantPlan &plan);
  void emitOptional(const VariantPlan &variantPlan, unsigned index);
  void emitRow(const VariantPlan &variantPlan, unsigned index);
  void emitProgramRow(const VariantPlan &variantPlan, unsigned index);
  void emitKeys();
  void emitTable();

  const KernelPlan &plan;
  const std::vector<unsigned> order;
  std::string text;
};

void TableEmitter::emitHead() {
  line("// Generated by fagen from {}. Do not edit: change the spec and run fagen again.", plan.specName);
  line("// This file is unencumbered: no licence of fagen applies to generated text.");
  line("//");
  line("// The dispatch table of kernel {}: {} rows, sorted by key. The code of the rows is linked in by",
       plan.kernel->name, order.size());
  line("// fagen_add_kernels: machine code and PTX, or source for NVRTC.");
  const bool hasPrograms = llvm::any_of(plan.variants, [](const VariantPlan &variant) { return !!variant.recipe; });
  line("#include <fagen/table.h>{}\n", plan.kernel->forms.empty() && !hasPrograms ? "" : "\n#include <limits>");
}

void TableEmitter::emitDeclarations() {
  line("extern \"C\" {{");
  for (unsigned index : order)
    line("extern const fagen_code {};", codeName(*plan.variants[index].variant));
  line("extern const fagen_table fagen_table_{};", plan.kernel->name);
  line("}}");
}

void TableEmitter::emitSchedules() {
  if (plan.kernel->scheduleNames.empty()) // a set of programs alone
    return;
  line("const char *const kSchedules[] = {{");
  for (const std::string &name : plan.kernel->scheduleNames)
    line("    {},", quote(name));
  line("}};\n");
}

static std::string variableText(int64_t variable, const form::Use *use) {
  return variable < kFirstScalar ? fmt::format("FAGEN_VAR_{}", kVariableNames[variable])
                                 : fmt::format("FAGEN_VAR_FORM_0 + {}", paramOfScalar(*use, variable - kFirstScalar));
}

/// Scalars of the kernel are params of the form that it uses.
void TableEmitter::emitProgram(llvm::StringRef name, const std::vector<SelectOp> &ops, const form::Use *use) {
  line("const fagen_op {}[] = {{", name.str());
  for (const SelectOp &op : ops) {
    std::string value = op.kind == SelectOp::Variable ? variableText(op.value, use)
                        : op.value == INT64_MIN       ? "INT64_MIN"
                                                      : std::to_string(op.value);
    line("    {{FAGEN_OP_{}, 0, {}}},", kOpNames[op.kind], value);
  }
  line("}};\n");
}

void TableEmitter::emitSelect() {
  const std::vector<SelectLine> &select = plan.kernel->select;
  if (select.empty())
    return;
  for (unsigned i = 0; i < select.size(); ++i)
    if (!select[i].condition.empty())
      emitProgram(fmt::format("kCondition{}", i), select[i].condition);
  if (!plan.kernel->claim.condition.empty())
    emitProgram("kClaim", plan.kernel->claim.condition);
  line("const fagen_select kSelect[] = {{");
  for (unsigned i = 0; i < select.size(); ++i) {
    emitEvidence(select[i].evidence);
    line("    {{.condition = {}, .condition_size = {}, .schedule = {}, .text = {}}},",
         select[i].condition.empty() ? "nullptr" : fmt::format("kCondition{}", i), select[i].condition.size(),
         select[i].scheduleIndex, quote(select[i].text));
  }
  line("}};\n");
}

void TableEmitter::emitForms() {
  if (!plan.kernel->forms.empty())
    line("{}", tableForms(*plan.kernel));
}

/// What was measured, as comments.
void TableEmitter::emitEvidence(const std::vector<std::string> &lines) {
  for (const std::string &text : lines)
    line("    // {}", text);
}

void TableEmitter::emitWorkspace(unsigned index) {
  const std::vector<WorkspacePlan> &parts = plan.variants[index].workspace;
  if (parts.empty())
    return;
  for (unsigned i = 0; i < parts.size(); ++i)
    emitProgram(fmt::format("kWorkspace{}Bytes{}", index, i), parts[i].bytes);
  line("const fagen_workspace kWorkspace{}[] = {{", index);
  for (unsigned i = 0; i < parts.size(); ++i)
    line("    {{.name = {}, .bytes = kWorkspace{}Bytes{}, .bytes_size = {}, .alignment = {}}},", quote(parts[i].name),
         index, i, parts[i].bytes.size(), parts[i].alignment);
  line("}};\n");
}

void TableEmitter::emitSharedTiles(unsigned index) {
  const VariantPlan &one = plan.variants[index];
  if (!one.sharedTiles.empty())
    emitProgram(fmt::format("kSharedTiles{}", index), one.sharedTiles, one.variant->problem.form.get());
}

void TableEmitter::emitMaps(unsigned index) {
  const std::vector<MapPlan> &maps = plan.variants[index].maps;
  if (maps.empty())
    return;
  line("const fagen_map kMaps{}[] = {{", index);
  for (const MapPlan &map : maps)
    line("    {{.tensor = FAGEN_MAP_{}, .box_columns = {}, .box_rows = {}, .swizzle = {}, .box_panels = {}}},",
         static_cast<char>(std::toupper(map.tensor)), map.boxColumns, map.boxRows, map.swizzle, map.boxPanels);
  line("}};\n");
}

/// What a launch's `reserved` says of its grid.
static std::string numberText(const VariantPlan &plan, const GridPlan &grid) {
  if (plan.recipe)
    return std::to_string(grid.hasClusters() ? grid.cluster : 0);
  return grid.fillsBySplits() && !plan.sharedTiles.empty() ? "FAGEN_SPLITS_OF_SHARED" : std::to_string(numberOf(grid));
}

void TableEmitter::emitLaunches(const VariantPlan &plan) {
  line("        .launches = {{");
  for (const LaunchPlan &launch : plan.launches)
    line("            {{.symbol = {}, .grid = FAGEN_GRID_{}, .threads = {}, .shared_bytes = {}, .reserved = {}}},",
         quote(launch.symbol), llvm::StringRef(gridWordOf(plan, launch)).upper(), launch.threads, launch.sharedBytes,
         numberText(plan, launch.grid));
  line("        }},");
}

/// A bit for each launch that may begin early.
static unsigned dependentLaunches(const VariantPlan &plan) {
  unsigned bits = 0;
  for (const auto &[i, launch] : llvm::enumerate(plan.launches))
    bits |= unsigned(launch.isDependent) << i;
  return bits;
}

/// Members that few rows have.
void TableEmitter::emitOptional(const VariantPlan &variantPlan, unsigned index) {
  if (!variantPlan.maps.empty()) {
    line("        .maps = kMaps{},", index);
    line("        .map_count = {},", variantPlan.maps.size());
  }
  if (const auto scratch = llvm::count_if(variantPlan.workspace, std::mem_fn(&WorkspacePlan::isScratch)))
    line("        .scratch_parts = {},", scratch);
  if (const unsigned dependent = dependentLaunches(variantPlan))
    line("        .dependent_launches = {},", dependent);
  if (!variantPlan.sharedTiles.empty()) {
    line("        .shared_tiles = kSharedTiles{},", index);
    line("        .shared_tiles_size = {},", variantPlan.sharedTiles.size());
  }
}

void TableEmitter::emitRow(const VariantPlan &variantPlan, unsigned index) {
  const Variant &variant = *variantPlan.variant;
  const TargetInfo &target = *variant.target;
  const Problem &problem = variant.problem;
  emitEvidence(variant.evidence);
  line("    {{");
  line("        .variant = {},", quote(variant.name));
  line("        .target = {},", quote(target.name));
  line("        .sm = {},", target.sm);
  line("        .first_sm = {},", target.firstSm);
  line("        .last_sm = {},", target.lastSm);
  line("        .exact = {},", unsigned(target.exact));
  if (variantPlan.recipe)
    return emitProgramRow(variantPlan, index);
  line("        .pass = {},", passConstant(problem.pass));
  line("        .dtype = {}{},", dtypeConstant(problem.dtype), kvConstant(problem.kvDType));
  line("        .mask = {},", maskConstant(problem));
  line("        .lse = {},", unsigned(problem.lse));
  line("        .head_dim_qk = {},", problem.headDimQK);
  line("        .head_dim_v = {},", problem.headDimV);
  line("        .schedule = {},", variant.scheduleIndex);
  line("        .dispatch = {},", dispatchConstant(dispatchOf(variant)));
  line("        .order = {},", index);
  line("        .alignment = {},", variantPlan.alignment);
  line("        .tile_rows = {},", variant.schedule.tileRows);
  line("        .tile_keys = {},", variant.schedule.tileKeys);
  line("        .launch_count = {},", variantPlan.launches.size());
  line("        .workspace_count = {},", variantPlan.workspace.size());
  emitLaunches(variantPlan);
  line("        .workspace = {},", variantPlan.workspace.empty() ? "nullptr" : fmt::format("kWorkspace{}", index));
  line("        .code = &{},", codeName(variant));
  emitOptional(variantPlan, index);
  line("    }},");
}

/// The rest of a program's row.
void TableEmitter::emitProgramRow(const VariantPlan &variantPlan, unsigned index) {
  const Variant &variant = *variantPlan.variant;
  line("        .pass = FAGEN_PASS_PROGRAM,");
  line("        .dispatch = {},", dispatchConstant(dispatchOf(variant)));
  line("        .order = {},", index);
  line("        .alignment = 1,");
  line("        .launch_count = {},", variantPlan.launches.size());
  emitLaunches(variantPlan);
  line("        .code = &{},", codeName(variant));
  if (const unsigned dependent = dependentLaunches(variantPlan))
    line("        .dependent_launches = {},", dependent);
  line("        .recipe = &kRecipe{},", index);
  line("    }},");
}

void TableEmitter::emitRows() {
  for (unsigned index : order) {
    if (plan.variants[index].recipe) {
      text += recipeText(*plan.variants[index].recipe, index);
      continue;
    }
    emitWorkspace(index);
    emitSharedTiles(index);
    emitMaps(index);
  }
  line("const fagen_row kRows[] = {{");
  for (unsigned index : order)
    emitRow(plan.variants[index], index);
  line("}};\n");
}

void TableEmitter::emitKeys() {
  line("// fagen_row_key of each row.");
  line("const uint64_t kKeys[] = {{");
  for (unsigned index : order)
    line("    0x{:016x},", keyOf(plan, index));
  line("}};");
}

void TableEmitter::emitTable() {
  line("const fagen_table fagen_table_{} = {{", plan.kernel->name);
  line("    .struct_size = sizeof(fagen_table),");
  line("    .abi = FAGEN_ABI,");
  line("    .kernel = {},", quote(plan.kernel->name));
  line("    .spec = {},", quote(plan.specName));
  line("    .rows = kRows,");
  line("    .keys = kKeys,");
  line("    .schedules = {},", plan.kernel->scheduleNames.empty() ? "nullptr" : "kSchedules");
  line("    .select = {},", plan.kernel->select.empty() ? "nullptr" : "kSelect");
  line("    .row_count = {},", order.size());
  line("    .row_size = sizeof(fagen_row),");
  line("    .schedule_count = {},", plan.kernel->scheduleNames.size());
  line("    .select_count = {},", plan.kernel->select.size());
  if (const Claim &claim = plan.kernel->claim; !claim.condition.empty()) {
    line("    .claim = kClaim,");
    line("    .claim_text = {},", quote(claim.text));
    line("    .claim_size = {},", claim.condition.size());
  }
  if (!plan.kernel->forms.empty()) {
    line("    .forms = kForms,");
    line("    .form_count = {},", plan.kernel->forms.size());
    line("    .form_size = sizeof(fagen_form),");
  }
  line("}};");
}

} // namespace

std::string fagen::emitTable(const KernelPlan &plan) { return TableEmitter(plan).run(); }

std::string fagen::emitTableHeader(const KernelPlan &plan) {
  return fmt::format(R"(// Generated by fagen from {0}. Do not edit: change the spec and run fagen again.
// This file is unencumbered: no licence of fagen applies to generated text.
//
// The kernels of {1}: hand &fagen_table_{1} to fagen_query.
#pragma once

#include <fagen/fagen.h>

#ifdef __cplusplus
extern "C" {{
#endif

extern const fagen_table fagen_table_{1};

#ifdef __cplusplus
}}
#endif
)",
                     plan.specName, plan.kernel->name);
}
