// fagen: manifest.json.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Manifest.h"

#include "fagen/Emit/Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Path.h"

#include <fagen/table.h>

using namespace fagen;
using namespace llvm;

static constexpr unsigned kIndent = 2;

/// Words rather than numbers, so that a person and a tool of another ABI can read them.
static const char *const kOpWords[] = {"constant", "variable", "add", "sub", "mul", "div", "mod", "ceil_div", "neg",
                                       "not",      "eq",       "ne",  "lt",  "le",  "gt",  "ge",  "and",      "or"};
static const char *const kVariableWords[] = {"batch",       "heads",      "kv_heads", "seq_q", "seq_kv", "sms",
                                             "head_dim_qk", "head_dim_v", "dtype",    "mask",  "splits"};

/// An operation is its word; a constant is its number; a variable is its name: ["seq_q", 32, "le"].
static json::Value jsonOf(const SelectOp &op) {
  if (op.kind == SelectOp::Constant)
    return op.value;
  return op.kind == SelectOp::Variable ? kVariableWords[op.value] : kOpWords[op.kind];
}

/// With room for all of them: an array that grows copies its values.
template <typename T> static json::Array arrayOf(const std::vector<T> &values, json::Value (*valueOf)(const T &)) {
  json::Array array;
  array.reserve(values.size());
  for (const T &value : values)
    array.push_back(valueOf(value));
  return array;
}

static json::Value jsonOf(const WorkspacePlan &part) {
  return json::Object{{"name", part.name}, {"bytes", arrayOf(part.bytes, jsonOf)}, {"alignment", part.alignment}};
}

static json::Value jsonOf(const MapPlan &map) {
  return json::Object{{"tensor", std::string(1, map.tensor)},
                      {"box", json::Array{map.boxColumns, map.boxRows, map.boxPanels}},
                      {"swizzle", map.swizzle}};
}

static json::Value jsonOf(const SelectLine &line) {
  json::Object object{
      {"condition", arrayOf(line.condition, jsonOf)}, {"schedule", line.scheduleIndex}, {"text", line.text}};
  if (!line.evidence.empty())
    object["evidence"] = json::Array(line.evidence);
  return object;
}

static json::Value jsonOf(const Gate &gate) {
  return json::Object{{"name", gate.name},
                      {"relation", gate.relation},
                      {"value", gate.value},
                      {"baseline", gate.baseline},
                      {"text", gate.text}};
}

static json::Value jsonOf(const OpPlan &op) {
  json::Object object{{"line", op.line}, {"op", op.op}};
  if (!op.spec.empty())
    object["spec"] = op.spec;
  if (op.site)
    object["site"] = op.site;
  return object;
}

static json::Value jsonOf(const LaunchPlan &launch) {
  json::Object object{{"symbol", launch.symbol},
                      {"grid", nameOf(launch.grid)},
                      {"threads", launch.threads},
                      {"shared_bytes", int64_t(launch.sharedBytes)},
                      {"ops", arrayOf(launch.ops, jsonOf)}};
  if (launch.grid.number || launch.grid.kind == GridPlan::Splits)
    object[nameOf(launch.grid)] = launch.grid.number;
  return object;
}

static json::Value jsonOf(const BufferPlan &buffer) {
  json::Object object{{"name", buffer.name},     {"space", buffer.space},         {"type", buffer.type},
                      {"rows", buffer.rows},     {"columns", buffer.columns},     {"stages", buffer.stages},
                      {"layout", buffer.layout}, {"bytes", int64_t(buffer.bytes)}};
  if (buffer.space == "shared")
    object["offset"] = int64_t(buffer.offset);
  return object;
}

static json::Value jsonOf(const BarrierPlan &barrier) {
  return json::Object{{"site", barrier.site}, {"what", barrier.what}, {"covers", barrier.covers}};
}

static json::Value jsonOf(const EstimatePlan &estimates) {
  return json::Object{
      {"registers", estimates.registers}, {"ctas_per_sm", estimates.ctasPerSm}, {"limit", estimates.limit}};
}

/// The resolved schedule, in the spec's words.
static json::Value jsonOf(const Schedule &schedule) {
  json::Object object{{"name", schedule.name},
                      {"implicit", schedule.implicit},
                      {"tile", json::Array{schedule.tileRows, schedule.tileKeys}},
                      {"warps", schedule.warps},
                      {"row_warps", schedule.rowWarps},
                      {"key_warps", schedule.keyWarps},
                      {"mma", toString(schedule.mma)},
                      {"copy", toString(schedule.copy)},
                      {"stages", schedule.stages},
                      {"refill", toString(schedule.refill)},
                      {"barriers", toString(schedule.barriers)},
                      {"swizzle", toString(schedule.swizzle)},
                      {"vector", schedule.vectorBytes},
                      {"q_in", toString(schedule.qIn)},
                      {"p_in", toString(schedule.pIn)},
                      {"reduce", toString(schedule.reduce)},
                      {"roles", toString(schedule.roles)},
                      {"overlap", toString(schedule.overlap)},
                      {"grid", toString(schedule.grid)},
                      {"exp", toString(schedule.exp)},
                      {"rescale", toString(schedule.rescale)}};
  if (!schedule.barrierPlaces.empty())
    object["barrier_places"] = json::Array(schedule.barrierPlaces);
  if (schedule.gqa == Gqa::Pack)
    object["gqa"] = toString(schedule.gqa);
  if (schedule.isSplit())
    object["split"] = schedule.split;
  if (schedule.cluster != 1)
    object["cluster"] = schedule.cluster;
  if (schedule.qHeld != 0)
    object["q_held"] = schedule.qHeld;
  if (schedule.exp == Exp::Mixed)
    object["exp_mixed"] = schedule.expMixed;
  return object;
}

static const char *dispatchWord(const Variant &variant) {
  static const char *const words[] = {"dispatched", "fallback", "by_name"};
  return words[dispatchOf(variant)];
}

/// What the table's row has, by the names of <fagen/table.h>.
static json::Object rowOf(const VariantPlan &plan, unsigned order) {
  const Variant &variant = *plan.variant;
  const TargetInfo &target = *variant.target;
  const Problem &problem = variant.problem;
  json::Object object{{"variant", variant.name},
                      {"target", target.name},
                      {"sm", target.sm},
                      {"first_sm", target.firstSm},
                      {"last_sm", target.lastSm},
                      {"exact", target.exact},
                      {"pass", toString(problem.pass)},
                      {"dtype", toString(problem.dtype)},
                      {"accum", toString(problem.accum)},
                      {"mask", toString(problem.mask)},
                      {"lse", problem.lse},
                      {"head_dim_qk", problem.headDimQK},
                      {"head_dim_v", problem.headDimV},
                      {"schedule", variant.scheduleIndex},
                      {"dispatch", dispatchWord(variant)},
                      {"order", order},
                      {"alignment", plan.alignment},
                      {"tile_rows", variant.schedule.tileRows},
                      {"tile_keys", variant.schedule.tileKeys},
                      {"launches", arrayOf(plan.launches, jsonOf)},
                      {"workspace", arrayOf(plan.workspace, jsonOf)},
                      {"source", plan.sourcePath}};
  if (!plan.maps.empty())
    object["maps"] = arrayOf(plan.maps, jsonOf);
  return object;
}

std::vector<std::string> fagen::filesOf(const KernelPlan &plan) {
  std::vector<std::string> files = {"CMakeLists.txt", "manifest.json", "table.cpp", "table.h"};
  for (const VariantPlan &variant : plan.variants)
    files.push_back(variant.sourcePath);
  llvm::sort(files);
  return files;
}

static json::Object rowWithPlan(const VariantPlan &plan, unsigned order) {
  const Variant &variant = *plan.variant;
  json::Object row = rowOf(plan, order);
  row["plan"] = json::Object{{"schedule", jsonOf(variant.schedule)},
                             {"buffers", arrayOf(plan.buffers, jsonOf)},
                             {"barriers", arrayOf(plan.barriers, jsonOf)},
                             {"estimates", jsonOf(plan.estimates)}};
  if (!variant.evidence.empty())
    row["evidence"] = json::Array(variant.evidence);
  return row;
}

/// As it stands in the manifest's array of rows, two levels in.
static std::string rowText(const VariantPlan &plan, unsigned order) {
  std::string text, nested;
  raw_string_ostream os(text);
  json::OStream(os, kIndent).value(rowWithPlan(plan, order));
  for (char c : text) { // strings have no line's end as such
    nested += c;
    if (c == '\n')
      nested.append(2 * kIndent, ' ');
  }
  return nested;
}

std::string fagen::emitManifest(const KernelPlan &plan) {
  const std::vector<unsigned> order = tableOrder(plan);
  std::vector<std::string> rows(order.size()); // side by side: they are most of the text
  parallelFor(0, rows.size(), [&](size_t i) { rows[i] = rowText(plan.variants[order[i]], order[i]); });
  std::string text;
  raw_string_ostream os(text);
  json::OStream out(os, kIndent);
  out.object([&] { // in the order of the keys
    out.attribute("abi", int64_t(FAGEN_ABI));
    out.attribute("files", json::Array(filesOf(plan)));
    out.attribute("gates", arrayOf(plan.kernel->gates, jsonOf));
    out.attribute("kernel", plan.kernel->name);
    out.attributeArray("rows", [&] {
      for (const std::string &row : rows)
        out.rawValue(row);
    });
    out.attribute("schedules", json::Array(plan.kernel->scheduleNames));
    out.attribute("select", arrayOf(plan.kernel->select, jsonOf));
    out.attribute("spec", plan.specName);
  });
  os << '\n';
  return text;
}

/// Whether a manifest's path stays in its directory.
static bool isInside(StringRef path) {
  if (path.empty() || sys::path::is_absolute(path))
    return false;
  return llvm::none_of(llvm::make_range(sys::path::begin(path), sys::path::end(path)),
                       [](StringRef part) { return part == ".." || part == "."; });
}

std::vector<std::string> fagen::filesOfManifest(StringRef text) {
  std::vector<std::string> files;
  Expected<json::Value> manifest = json::parse(text);
  if (!manifest) {
    consumeError(manifest.takeError());
    return files;
  }
  const json::Object *object = manifest->getAsObject();
  const json::Array *listed = object ? object->getArray("files") : nullptr;
  if (!listed)
    return files;
  for (const json::Value &file : *listed)
    if (std::optional<StringRef> path = file.getAsString(); path && isInside(*path))
      files.push_back(path->str());
  return files;
}
