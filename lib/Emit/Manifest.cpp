// fagen: manifest.json.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Emit/Manifest.h"

#include "form/FormTables.h"

#include "fagen/IR/Names.h"

#include "fagen/Emit/Table.h"
#include "fagen/Spec/Options.h"
#include "fagen/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <fagen/table.h>

#include <map>

using namespace fagen;
using namespace llvm;

static constexpr unsigned kIndent = 2;
/// Of a row's text: a stream without a buffer takes each character on its own.
static constexpr size_t kBufferBytes = size_t(1) << 14;

/// Words rather than numbers, so that a person and a tool of another ABI can read them.
static constexpr StringLiteral kOpWords[] = {"constant", "variable", "add", "sub", "mul", "div", "mod",
                                             "ceil_div", "neg",      "not", "eq",  "ne",  "lt",  "le",
                                             "gt",       "ge",       "and", "or",  "min", "max", "floor_div"};
static constexpr StringLiteral kVariableWords[] = {"batch",       "heads",      "kv_heads", "seq_q", "seq_kv", "sms",
                                                   "head_dim_qk", "head_dim_v", "dtype",    "mask",  "splits", "row"};
static_assert(std::size(kOpWords) == FAGEN_OP_FLOOR_DIV + 1 && std::size(kVariableWords) == FAGEN_VAR_ROW + 1);

StringRef fagen::wordOf(SelectOp::Kind kind) { return kOpWords[kind]; }
StringRef fagen::wordOf(SelectVariable variable) { return kVariableWords[unsigned(variable)]; }

/// An operation is its word; a constant is its number; a variable is its name: ["seq_q", 32, "le"].
static json::Value jsonOf(const SelectOp &op) {
  if (op.kind == SelectOp::Constant)
    return op.value;
  return op.kind == SelectOp::Variable ? wordOf(SelectVariable(op.value)) : wordOf(op.kind);
}

/// With room for all of them: an array that grows copies its values.
template <typename T> static json::Array arrayOf(const std::vector<T> &values, json::Value (*valueOf)(const T &)) {
  json::Array array;
  array.reserve(values.size());
  for (const T &value : values)
    array.push_back(valueOf(value));
  return array;
}

/// A param is a dollar and its name: it may be called like an operation.
static json::Array sharedTilesOf(const VariantPlan &plan) {
  json::Array array;
  for (const SelectOp &op : plan.sharedTiles)
    if (const form::Use *const use = plan.variant->problem.form.get();
        op.kind == SelectOp::Variable && op.value >= kFirstScalar)
      array.push_back("$" + use->form->params[paramOfScalar(*use, op.value - kFirstScalar)].name);
    else
      array.push_back(jsonOf(op));
  return array;
}

static json::Value jsonOf(const WorkspacePlan &part) {
  json::Object object{{"name", part.name}, {"bytes", arrayOf(part.bytes, jsonOf)}, {"alignment", part.alignment}};
  if (part.isScratch)
    object["scratch"] = true;
  return object;
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

// Three lists are most of the text. A Value of each entry would take longer than its text, so they are written as they
// are gone through: entries in the order of their keys, as those of a Value are.

static void write(json::OStream &out, const OpPlan &op) {
  out.attribute("line", op.line);
  out.attribute("op", StringRef(op.op));
  if (op.isSilent)
    out.attribute("silent", true);
  if (op.site)
    out.attribute("site", op.site);
  if (!op.spec.empty())
    out.attribute("spec", StringRef(op.spec));
}

static void write(json::OStream &out, const BufferPlan &buffer) {
  out.attribute("bytes", int64_t(buffer.bytes));
  out.attribute("columns", buffer.columns);
  out.attribute("layout", StringRef(buffer.layout));
  out.attribute("name", StringRef(buffer.name));
  if (buffer.space == ir::Space::Shared)
    out.attribute("offset", int64_t(buffer.offset));
  out.attribute("rows", buffer.rows);
  out.attribute("space", ir::toString(buffer.space));
  out.attribute("stages", buffer.stages);
  out.attribute("type", StringRef(buffer.type));
}

static void write(json::OStream &out, const BarrierPlan &barrier) {
  out.attribute("covers", StringRef(barrier.covers));
  out.attribute("site", barrier.site);
  out.attribute("what", StringRef(barrier.what));
}

template <typename T> static void writeList(json::OStream &out, const std::vector<T> &entries) {
  out.array([&] {
    for (const T &entry : entries)
      out.object([&] { write(out, entry); });
  });
}

/// An object of these members and lists, in the order of the keys.
static void writeObject(json::OStream &out, const json::Object &members,
                        std::map<StringRef, llvm::function_ref<void()>> lists) {
  std::vector<StringRef> keys;
  for (const auto &member : members)
    keys.push_back(member.first);
  for (const auto &list : lists)
    keys.push_back(list.first);
  llvm::sort(keys);
  out.object([&] {
    for (StringRef key : keys) {
      out.attributeBegin(key);
      if (const json::Value *value = members.get(key))
        out.value(*value);
      else
        lists.at(key)();
      out.attributeEnd();
    }
  });
}

static void write(json::OStream &out, const VariantPlan &plan, const LaunchPlan &launch) {
  json::Object object{{"symbol", launch.symbol},
                      {"grid", gridWordOf(plan, launch)},
                      {"threads", launch.threads},
                      {"shared_bytes", int64_t(launch.sharedBytes)}};
  if (!plan.recipe && (numberOf(launch.grid) != 0 || launch.grid.fillsBySplits()))
    object[nameOf(launch.grid)] = numberOf(launch.grid);
  if (launch.isDependent)
    object["dependent"] = true;
  writeObject(out, object, {{"ops", [&] { writeList(out, launch.ops); }}});
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
  if (schedule.tanh != Tanh::Approx)
    object["tanh"] = toString(schedule.tanh);
  if (!schedule.barrierPlaces.empty())
    object["barrier_places"] = json::Array(schedule.barrierPlaces);
  if (schedule.gqa == Gqa::Pack)
    object["gqa"] = toString(schedule.gqa);
  if (schedule.isSplit())
    object["split"] = schedule.split;
  for (const auto &[key, number] : schedule.numbers)
    object[optionInfo(key).name] = number;
  if (schedule.exp == Exp::Mixed)
    object["exp_mixed"] = schedule.expMixed;
  return object;
}

static const char *dispatchWord(const Variant &variant) {
  static const char *const words[] = {"dispatched", "fallback", "by_name"};
  return words[dispatchOf(variant)];
}

static json::Value jsonOf(const BinaryPlan &binary) {
  return json::Object{
      {"exact", binary.isExact}, {"file", binary.path}, {"made_from", binary.madeFrom}, {"sm", binary.sm}};
}

/// What is known without a variant, less launches, buffers and barriers; by the names of <fagen/table.h>.
static json::Object membersOf(const VariantPlan &plan) {
  json::Object object{
      {"alignment", plan.alignment}, {"source", plan.sourcePath}, {"workspace", arrayOf(plan.workspace, jsonOf)}};
  if (!plan.binaries.empty())
    object["binaries"] = arrayOf(plan.binaries, jsonOf);
  if (!plan.maps.empty())
    object["maps"] = arrayOf(plan.maps, jsonOf);
  return object;
}

json::Object fagen::rowOf(const VariantPlan &plan, unsigned order) {
  const Variant &variant = *plan.variant;
  const TargetInfo &target = *variant.target;
  json::Object object = membersOf(plan);
  for (auto &[key, value] : json::Object{{"variant", variant.name},
                                         {"target", target.name},
                                         {"sm", target.sm},
                                         {"first_sm", plan.recipe ? target.firstSm : firstSmOf(variant)},
                                         {"last_sm", target.lastSm},
                                         {"exact", target.exact},
                                         {"dispatch", dispatchWord(variant)},
                                         {"order", order}})
    object[key] = value;
  if (plan.recipe) {
    object["pass"] = "program";
    object["program"] = json::Object(*plan.recipe);
    object["alignment"] = 1; // each tensor has its own
    return object;
  }
  const Problem &problem = variant.problem;
  for (auto &[key, value] : json::Object{{"pass", toString(problem.pass)},
                                         {"dtype", toString(problem.dtype)},
                                         {"accum", toString(problem.accum)},
                                         {"mask", maskText(problem)},
                                         {"lse", problem.lse},
                                         {"head_dim_qk", problem.headDimQK},
                                         {"head_dim_v", problem.headDimV},
                                         {"schedule", variant.scheduleIndex},
                                         {"tile_rows", variant.schedule.tileRows},
                                         {"tile_keys", variant.schedule.tileKeys}})
    object[key] = value;
  if (problem.kvDType != KvDType::Same)
    object["kv_dtype"] = toString(problem.kvDType);
  if (problem.form)
    object["form"] = problem.formIndex;
  if (!plan.sharedTiles.empty())
    object["shared_tiles"] = sharedTilesOf(plan);
  if (!variant.evidence.empty())
    object["evidence"] = json::Array(variant.evidence);
  return object;
}

std::vector<std::string> fagen::filesOf(const KernelPlan &plan) {
  std::vector<std::string> files = {"CMakeLists.txt", "manifest.json", "table.cpp", "table.h"};
  for (const VariantPlan &variant : plan.variants) {
    files.push_back(variant.sourcePath);
    for (const BinaryPlan &binary : variant.binaries)
      files.push_back(binary.path);
  }
  llvm::sort(files);
  return files;
}

/// What stands under "plan" in addition to the given members.
static void writePlan(json::OStream &out, const VariantPlan &plan, json::Object members) {
  if (!plan.recipe)
    members["estimates"] = jsonOf(plan.estimates);
  writeObject(out, members, {{"buffers", [&] { writeList(out, plan.buffers); }}, {"barriers", [&] {
                                                                                    writeList(out, plan.barriers);
                                                                                  }}});
}

/// The members, the launches, and the plan with `ofPlan`.
static void writeRow(json::OStream &out, const VariantPlan &plan, const json::Object &members, json::Object ofPlan) {
  writeObject(out, members,
              {{"launches",
                [&] {
                  out.array([&] {
                    for (const LaunchPlan &launch : plan.launches)
                      write(out, plan, launch);
                  });
                }},
               {"plan", [&] { writePlan(out, plan, std::move(ofPlan)); }}});
}

std::string fagen::emitPlan(const VariantPlan &plan, StringRef program) {
  json::Object members = membersOf(plan);
  members["program"] = program;
  std::string text;
  raw_string_ostream os(text);
  json::OStream out(os, kIndent);
  writeRow(out, plan, members, json::Object());
  out.flush();
  os << '\n';
  return text;
}

/// As it stands in the manifest's array of rows, two levels in.
std::string fagen::emitRow(const VariantPlan &plan, unsigned order) {
  std::string text;
  raw_string_ostream os(text);
  os.SetBufferSize(kBufferBytes);
  json::OStream out(os, kIndent);
  std::string row;
  out.array([&] { // two of them, which indent it
    out.array([&] {
      out.flush();
      const size_t begin = text.size();
      writeRow(out, plan, rowOf(plan, order),
               plan.recipe ? json::Object() : json::Object{{"schedule", jsonOf(plan.variant->schedule)}});
      out.flush();
      row = StringRef(text).substr(begin).ltrim().str();
    });
  });
  return row;
}

std::string fagen::emitManifest(const KernelPlan &plan) {
  const std::vector<unsigned> order = tableOrder(plan);
  std::string text;
  size_t bytes = size_t(1) << 16; // for all but the rows
  for (const VariantPlan &variant : plan.variants)
    bytes += variant.row.size();
  text.reserve(bytes);
  raw_string_ostream os(text);
  json::OStream out(os, kIndent);
  out.object([&] { // in the order of the keys
    out.attribute("abi", int64_t(FAGEN_ABI));
    if (const Claim &claim = plan.kernel->claim; !claim.condition.empty())
      out.attribute("claim", json::Object{{"condition", arrayOf(claim.condition, jsonOf)}, {"text", claim.text}});
    out.attribute("files", json::Array(filesOf(plan)));
    if (!plan.kernel->forms.empty())
      out.attribute("forms", manifestForms(*plan.kernel));
    out.attribute("gates", arrayOf(plan.kernel->gates, jsonOf));
    out.attribute("kernel", plan.kernel->name);
    out.attributeArray("rows", [&] {
      for (unsigned number : order)
        if (const VariantPlan &variant = plan.variants[number]; variant.row.empty())
          out.rawValue(emitRow(variant, number));
        else
          out.rawValue(variant.row);
    });
    out.attribute("schedules", json::Array(plan.kernel->scheduleNames));
    out.attribute("select", arrayOf(plan.kernel->select, jsonOf));
    out.attribute("spec", plan.specName);
  });
  os << '\n';
  return text;
}

std::string fagen::emitUnfinishedManifest(const KernelPlan &plan, StringRef older) {
  std::vector<std::string> files = filesOf(plan);
  llvm::append_range(files, filesOfManifest(older));
  llvm::sort(files);
  files.erase(llvm::unique(files), files.end());
  const json::Object object{
      {"abi", int64_t(FAGEN_ABI)}, {"files", json::Array(files)}, {"kernel", plan.kernel->name}, {"unfinished", true}};
  std::string text;
  raw_string_ostream(text) << formatv("{0:2}", json::Value(json::Object(object))) << '\n';
  return text;
}

/// Whether a manifest's path stays in its directory.
static bool isInside(StringRef path) {
  if (path.empty() || sys::path::is_absolute(path))
    return false;
  return llvm::none_of(llvm::make_range(sys::path::begin(path), sys::path::end(path)),
                       [](StringRef part) { return part == ".." || part == "."; });
}

/// The array "files" of an object; nothing where there is none.
static std::optional<json::Array> filesIn(StringRef text) {
  Expected<json::Value> value = parseJson(text);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  json::Object *const object = value->getAsObject();
  json::Array *const files = object ? object->getArray("files") : nullptr;
  return files ? std::optional(std::move(*files)) : std::nullopt;
}

/// emitManifest writes the list before the rest, which is long: up to the list's end it is an object, too.
static std::optional<json::Array> filesAtHead(StringRef text) {
  const size_t end = text.find(']');
  return end == StringRef::npos ? std::nullopt : filesIn((text.take_front(end + 1) + "}").str());
}

std::vector<std::string> fagen::filesOfManifest(StringRef text) {
  std::vector<std::string> files;
  std::optional<json::Array> listed = filesAtHead(text);
  if (!listed)
    listed = filesIn(text);
  if (!listed)
    return files;
  for (const json::Value &file : *listed)
    if (std::optional<StringRef> path = file.getAsString(); path && isInside(*path))
      files.push_back(path->str());
  return files;
}
