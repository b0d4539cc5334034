// fagen: a kernel set: the runtime's table of it, and what else the laboratory reads, by the runtime's parser.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "manifest.h"

#include "lab/cases/form_inputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace fagen::lab {

namespace fs = std::filesystem;

struct KernelSet::Storage {
  ~Storage() { fagen_table_release(table); }

  explicit Storage(fs::path given) : directory(std::move(given)), file(directory / "manifest.json") {}

  Field manifest() const { return {file, json, remedy}; }

  using Name = std::pair<std::string, std::string>; ///< of a row: its variant and target

  const fs::path directory;
  const std::string file, remedy = "fagen SPEC -o DIR writes the kernel set anew";
  fagen::Json json; ///< the whole manifest
  const fagen_table *table = nullptr;
  std::vector<Gate> gates;
  std::vector<FormPtr> forms;                     ///< as the table numbers them
  std::map<std::string, RowFacts> facts;          ///< by symbol
  std::map<std::string, std::vector<OpLine>> ops; ///< by symbol
  std::map<Name, size_t> places;                  ///< in the manifest's list
  std::map<Name, std::vector<std::string>> evidence;
};

namespace {

Gate readGate(const Field &field) {
  static const std::string kRelations[] = {"<", "<=", "==", "!=", ">=", ">"};
  static const std::string kNames[] = {"registers", "spills", "shared", "ctas", "error", "time", "joules"};
  auto known = [](const Field &word, const auto &words) {
    if (std::find(std::begin(words), std::end(words), word.text()) == std::end(words))
      word.fail(fmt::format("is {}; known: {}", inQuotes(word.text()), fmt::join(words, ", ")));
    return word.text();
  };
  return {known(field["name"], kNames), known(field["relation"], kRelations), field["value"].decimal(),
          field["baseline"].text(), field["text"].text()};
}

std::vector<OpLine> readOps(const Field &launch) {
  std::vector<OpLine> ops;
  if (launch.has("ops"))
    for (const Field &op : launch["ops"].items())
      ops.push_back({op["line"].number<int>(), op["op"].text(), op.has("spec") ? op["spec"].text() : "",
                     op.has("site") ? op["site"].number() : 0, op.has("silent") && op["silent"].number() != 0});
  return ops;
}

RowFacts readFacts(const Field &row) {
  const Field schedule = row["plan"]["schedule"];
  return {schedule["warps"].number<int>(),
          schedule["stages"].number<int>(),
          schedule["mma"].text(),
          schedule["copy"].text(),
          row.has("accum") ? row["accum"].text() : "f32",
          schedule.has("tanh") ? schedule["tanh"].text() : ""};
}

FormParam formParam(const fagen_form_param &param) {
  FormParam read{param.name, param.element, {}, (param.flags & FAGEN_PARAM_ASCENDING) != 0, param.low, param.high, {}};
  for (uint32_t i = 0; i < param.rank; ++i)
    read.extents.emplace_back(param.extents[i].ops, param.extents[i].ops + param.extents[i].size);
  if (param.offset == FAGEN_PARAM_BOUND)
    read.bound = param.bound;
  return read;
}

/// Params are the table's, programs the manifest's.
FormPtr readForm(const fagen_form &form, const Field &field) {
  auto read = std::make_shared<FormDefinition>();
  read->name = form.name;
  read->text = withoutBlanks(form.text);
  for (uint32_t i = 0; i < form.param_count; ++i) {
    const auto *params = reinterpret_cast<const char *>(form.params);
    read->params.push_back(formParam(*reinterpret_cast<const fagen_form_param *>(params + i * form.param_size)));
    if (read->params.back().isReal())
      read->texts.reals.insert(read->params.back().name);
  }
  if (field.has("lets"))
    for (const Field &let : field["lets"].items()) {
      const std::vector<Field> parts = let.items();
      if (parts.size() != 2)
        let.fail(fmt::format("has {} entries; a name and a program are two", parts.size()));
      read->texts.lets.emplace_back(parts[0].text(), parts[1].text());
    }
  const std::pair<const char *, std::string *> programs[] = {{"score", &read->texts.score},
                                                             {"mask", &read->texts.mask},
                                                             {"sink", &read->texts.sink},
                                                             {"v_scale", &read->texts.vScale}};
  for (auto [key, text] : programs)
    if (field.has(key))
      *text = field[key].text();
  return read;
}

/// What the table of the same manifest does not have.
void readBeside(KernelSet::Storage &storage) {
  const Field manifest = storage.manifest();
  if (manifest.has("gates"))
    for (const Field &gate : manifest["gates"].items())
      storage.gates.push_back(readGate(gate));
  const std::vector<Field> formFields = manifest.has("forms") ? manifest["forms"].items() : std::vector<Field>();
  if (formFields.size() != storage.table->form_count)
    manifest.fail("has changed while it was read");
  for (uint32_t i = 0; i < storage.table->form_count; ++i) {
    const auto *forms = reinterpret_cast<const char *>(storage.table->forms);
    storage.forms.push_back(
        readForm(*reinterpret_cast<const fagen_form *>(forms + i * storage.table->form_size), formFields[i]));
  }
  const std::vector<Field> rows = manifest["rows"].items();
  for (const Field &row : rows) {
    const KernelSet::Storage::Name name(row["variant"].text(), row["target"].text());
    storage.places[name] = &row - rows.data();
    if (row.has("evidence"))
      for (const Field &line : row["evidence"].items())
        storage.evidence[name].push_back(line.text());
    const std::vector<Field> launches = row["launches"].items();
    if (launches.empty())
      row["launches"].fail("is empty");
    for (const Field &launch : launches)
      storage.ops[launch["symbol"].text()] = readOps(launch);
    if (!row.has("program"))
      storage.facts[launches.front()["symbol"].text()] = readFacts(row);
  }
}

} // namespace

KernelSet::KernelSet(std::unique_ptr<Storage> storage) : storage(std::move(storage)) {}
KernelSet::~KernelSet() = default;

std::unique_ptr<KernelSet> KernelSet::load(const fs::path &directory) {
  auto storage = std::make_unique<Storage>(directory);
  if (fagen_table_load(directory.c_str(), &storage->table) != FAGEN_OK)
    throw UserError(fagen_last_error());
  try {
    storage->json = fagen::readJsonFile(storage->file);
    readBeside(*storage);
  } catch (const FieldError &error) {
    throw UserError(error.what());
  }
  return std::unique_ptr<KernelSet>(new KernelSet(std::move(storage)));
}

const fagen_table *KernelSet::table() const { return storage->table; }
const fs::path &KernelSet::directory() const { return storage->directory; }

/// Rows of programs, or all others; in the order of the spec.
static std::vector<const fagen_row *> rowsOf(const fagen_table &table, bool arePrograms) {
  std::vector<const fagen_row *> rows;
  for (uint32_t i = 0; i < table.row_count; ++i)
    if ((table.rows[i].pass == FAGEN_PASS_PROGRAM) == arePrograms)
      rows.push_back(table.rows + i);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const fagen_row *a, const fagen_row *b) { return a->order < b->order; });
  return rows;
}

std::vector<const fagen_row *> KernelSet::rows() const { return rowsOf(*storage->table, false); }
std::vector<const fagen_row *> KernelSet::programs() const { return rowsOf(*storage->table, true); }

fs::path KernelSet::sourcePath(const fagen_row &row) const { return storage->directory / row.code->source_name; }

const RowFacts &KernelSet::facts(const fagen_row &row) const { return storage->facts.at(row.launches[0].symbol); }

FormPtr KernelSet::form(const fagen_row &row) const {
  return row.mask < FAGEN_MASK_FORM_0 ? nullptr : storage->forms.at(row.mask - FAGEN_MASK_FORM_0);
}

const std::vector<FormPtr> &KernelSet::forms() const { return storage->forms; }

const std::vector<Gate> &KernelSet::gates() const { return storage->gates; }

bool Gate::holds(double figure) const {
  if (relation == "<")
    return figure < value;
  if (relation == "<=")
    return figure <= value;
  if (relation == "==")
    return figure == value;
  if (relation == "!=")
    return figure != value;
  return relation == ">" ? figure > value : figure >= value;
}

static KernelSet::Storage::Name nameOf(const fagen_row &row) { return {row.variant, row.target}; }

Field KernelSet::entry(const fagen_row &row) const {
  return storage->manifest()["rows"].items()[storage->places.at(nameOf(row))];
}

const std::vector<std::string> &KernelSet::evidence(const fagen_row &row) const {
  return storage->evidence[nameOf(row)];
}

const std::vector<OpLine> &KernelSet::ops(const fagen_row &row, uint32_t launch) const {
  return storage->ops.at(row.launches[launch].symbol);
}

/// The directory itself, or those in it, that have a manifest. UserError when it cannot be read.
static std::vector<fs::path> kernelDirectories(const fs::path &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    throw UserError(fmt::format("{} is not a directory{}{}; fagen SPEC -o DIR writes kernels to one", path.string(),
                                error ? ": " : "", error ? error.message() : ""));
  if (fs::exists(path / "manifest.json", error))
    return {path};
  std::vector<fs::path> found;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (std::error_code ignored; fs::exists(entry->path() / "manifest.json", ignored))
      found.push_back(entry->path());
  if (error)
    throw UserError(fmt::format("cannot read {}: {}", path.string(), error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::unique_ptr<KernelSet>> loadKernelSets(const std::vector<std::string> &paths) {
  std::vector<std::unique_ptr<KernelSet>> sets;
  for (const std::string &path : paths) {
    const std::vector<fs::path> found = kernelDirectories(path);
    if (found.empty())
      throw UserError(
          fmt::format("neither {0} nor a directory in it has a manifest.json; fagen SPEC -o {0} writes one", path));
    for (const fs::path &directory : found)
      sets.push_back(KernelSet::load(directory));
  }
  return sets;
}

} // namespace fagen::lab
