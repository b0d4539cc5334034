// fagen: manifest.json and its .cu files as a fagen_table in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "manifest.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace fagen::lab {

namespace fs = std::filesystem;
using nlohmann::json;

/// Everything that the table's pointers point into. Deques: their elements never move.
struct KernelSet::Storage {
  fs::path directory;
  std::deque<std::string> texts;
  std::deque<std::vector<fagen_op>> programs;
  std::deque<std::vector<fagen_workspace>> workspaces;
  std::deque<std::vector<fagen_map>> maps;
  std::deque<fagen_code> codes;
  std::vector<const char *> schedules;
  std::vector<fagen_select> select;
  std::vector<fagen_row> rows; ///< sorted by key
  std::vector<uint64_t> keys;
  std::vector<Gate> gates;
  std::map<std::string, RowFacts> facts;          ///< by symbol
  std::map<std::string, std::vector<OpLine>> ops; ///< by symbol
  fagen_table table{};

  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }
};

namespace {

/// A value of the manifest that knows where it stands, for messages: "rows[3].launches[0].threads".
class Field {
public:
  Field(const fs::path &file, const json &value, std::string path = "")
      : file(file), value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw UserError(fmt::format("{}: {}{}{}", file.string(), path, path.empty() ? "" : " ", what));
  }

  bool has(const char *key) const { return value.is_object() && value.contains(key); }

  Field operator[](const char *key) const {
    std::string name = path.empty() ? key : path + "." + key;
    if (!has(key))
      Field(file, value, name).fail("is missing");
    return {file, value[key], name};
  }

  std::vector<Field> items() const {
    if (!value.is_array())
      fail("is not a list");
    std::vector<Field> fields;
    for (size_t i = 0; i < value.size(); ++i)
      fields.emplace_back(file, value[i], fmt::format("{}[{}]", path, i));
    return fields;
  }

  int64_t integer() const {
    if (value.is_boolean())
      return value.get<bool>();
    if (!value.is_number_integer())
      fail("is not a whole number");
    return value.get<int64_t>();
  }

  double decimal() const {
    if (!value.is_number())
      fail("is not a number");
    return value.get<double>();
  }

  template <class T = uint32_t> T number() const {
    constexpr int64_t kMost = std::numeric_limits<T>::max();
    int64_t whole = integer();
    if (whole < 0 || whole > kMost)
      fail(fmt::format("is {}, not a number from 0 to {}", whole, kMost));
    return static_cast<T>(whole);
  }

  bool isText() const { return value.is_string(); }

  std::string text() const {
    if (!value.is_string())
      fail("is not text");
    return value.get<std::string>();
  }

private:
  const fs::path &file;
  const json &value;
  std::string path;
};

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    throw UserError(fmt::format("cannot read {}", path.string()));
  return text.str();
}

/// Operations and variables by their numbers in <fagen/table.h>.
constexpr const char *kOperations[] = {nullptr, nullptr, "add", "sub", "mul", "div", "mod", "ceil_div", "neg",
                                       "not",   "eq",    "ne",  "lt",  "le",  "gt",  "ge",  "and",      "or"};
constexpr const char *kVariables[] = {"batch",       "heads",      "kv_heads", "seq_q", "seq_kv", "sms",
                                      "head_dim_qk", "head_dim_v", "dtype",    "mask",  "splits"};

/// Words for the numbers of fagen.h and table.h.
struct Word {
  const char *word;
  uint32_t number;
};
constexpr Word kPasses[] = {{"forward", FAGEN_PASS_FORWARD}, {"backward", FAGEN_PASS_BACKWARD}};
constexpr Word kDTypes[] = {{"f16", FAGEN_DTYPE_F16}, {"bf16", FAGEN_DTYPE_BF16}, {"e4m3", FAGEN_DTYPE_E4M3}};
constexpr Word kMasks[] = {{"none", FAGEN_MASK_NONE}, {"causal", FAGEN_MASK_CAUSAL}};
constexpr Word kDispatches[] = {
    {"dispatched", FAGEN_ROW_DISPATCHED}, {"fallback", FAGEN_ROW_FALLBACK}, {"by_name", FAGEN_ROW_BY_NAME}};
constexpr Word kGrids[] = {{"tiles", FAGEN_GRID_TILES},
                           {"packed_tiles", FAGEN_GRID_PACKED_TILES},
                           {"persistent", FAGEN_GRID_PERSISTENT},
                           {"splits", FAGEN_GRID_SPLITS},
                           {"packed_splits", FAGEN_GRID_PACKED_SPLITS},
                           {"split_keys", FAGEN_GRID_SPLIT_KEYS},
                           {"packed_split_keys", FAGEN_GRID_PACKED_SPLIT_KEYS},
                           {"rows", FAGEN_GRID_ROWS},
                           {"clusters", FAGEN_GRID_CLUSTERS}};

template <size_t N> uint32_t wordOf(const Field &field, const Word (&words)[N]) {
  std::string text = field.text();
  std::vector<std::string> known;
  for (const Word &entry : words) {
    if (text == entry.word)
      return entry.number;
    known.emplace_back(entry.word);
  }
  field.fail(fmt::format("is '{}'; known: {}", text, fmt::join(known, ", ")));
}

template <size_t N> std::optional<uint32_t> indexOf(const char *const (&names)[N], const std::string &name) {
  for (uint32_t i = 0; i < N; ++i)
    if (names[i] && name == names[i])
      return i;
  return std::nullopt;
}

/// Numbers, variables and operations in postfix order: ["seq_q", 32, "le"].
std::vector<fagen_op> readProgram(const Field &field) {
  std::vector<fagen_op> program;
  for (const Field &item : field.items()) {
    if (!item.isText())
      program.push_back({FAGEN_OP_CONSTANT, 0, item.integer()});
    else if (auto variable = indexOf(kVariables, item.text()))
      program.push_back({FAGEN_OP_VARIABLE, 0, *variable});
    else if (auto operation = indexOf(kOperations, item.text()))
      program.push_back({*operation, 0, 0});
    else
      item.fail(fmt::format("is '{}', neither an operation nor a variable", item.text()));
  }
  return program;
}

/// Reads one manifest into a storage.
class Loader {
public:
  Loader(KernelSet::Storage &storage, const Field &manifest) : storage(storage), manifest(manifest) {}

  void load() {
    if (manifest.has("unfinished"))
      manifest.fail("the kernel set is unfinished: fagen was interrupted while it wrote the files, or still writes "
                    "them; run fagen SPEC -o DIR again");
    if (uint32_t abi = manifest["abi"].number(); abi != FAGEN_ABI)
      manifest["abi"].fail(fmt::format("is {}; this fagen-run reads {}", abi, FAGEN_ABI));
    for (const Field &name : manifest["schedules"].items())
      storage.schedules.push_back(storage.keep(name.text()));
    for (const Field &line : manifest["select"].items())
      storage.select.push_back(readSelect(line));
    for (const Field &row : manifest["rows"].items())
      storage.rows.push_back(readRow(row));
    if (manifest.has("gates"))
      for (const Field &gate : manifest["gates"].items())
        storage.gates.push_back(readGate(gate));
    finishTable();
  }

private:
  static Gate readGate(const Field &field) {
    static const std::string kRelations[] = {"<", "<=", "==", "!=", ">=", ">"};
    static const std::string kNames[] = {"registers", "spills", "shared", "ctas", "error", "time"};
    auto known = [](const Field &word, const auto &words) {
      std::string text = word.text();
      if (std::find(std::begin(words), std::end(words), text) == std::end(words))
        word.fail(fmt::format("is '{}'; known: {}", text, fmt::join(words, ", ")));
      return text;
    };
    return {known(field["name"], kNames), known(field["relation"], kRelations), field["value"].decimal(),
            field["baseline"].text(), field["text"].text()};
  }

  fagen_select readSelect(const Field &field) {
    const auto &program = storage.programs.emplace_back(readProgram(field["condition"]));
    return {program.data(), static_cast<uint32_t>(program.size()), field["schedule"].number(),
            storage.keep(field["text"].text())};
  }

  fagen_launch readLaunch(const Field &field) {
    const char *symbol = storage.keep(field["symbol"].text());
    storage.ops[symbol] = readOps(field);
    const std::string grid = field["grid"].text(); // some have a number under their own name
    return {symbol, wordOf(field["grid"], kGrids), field["threads"].number(), field["shared_bytes"].number(),
            field.has(grid.c_str()) ? field[grid.c_str()].number() : 0};
  }

  static std::vector<OpLine> readOps(const Field &launch) {
    std::vector<OpLine> ops;
    if (!launch.has("ops"))
      return ops;
    for (const Field &op : launch["ops"].items())
      ops.push_back({static_cast<int>(op["line"].number()), op["op"].text(), op.has("spec") ? op["spec"].text() : "",
                     op.has("site") ? op["site"].number() : 0, op.has("silent") && op["silent"].number() != 0});
    return ops;
  }

  fagen_workspace readWorkspace(const Field &field) {
    const auto &program = storage.programs.emplace_back(readProgram(field["bytes"]));
    return {storage.keep(field["name"].text()), program.data(), static_cast<uint32_t>(program.size()),
            field["alignment"].number()};
  }

  /// A row without the key has none.
  void readMaps(const Field &field, fagen_row &row) {
    static constexpr Word kTensors[] = {{"q", FAGEN_MAP_Q}, {"k", FAGEN_MAP_K}, {"v", FAGEN_MAP_V}, {"o", FAGEN_MAP_O}};
    auto &maps = storage.maps.emplace_back();
    if (field.has("maps"))
      for (const Field &map : field["maps"].items()) {
        const std::vector<Field> box = map["box"].items();
        if (box.size() != 3)
          map["box"].fail(fmt::format("has {} numbers; columns, rows and panels are three", box.size()));
        maps.push_back({wordOf(map["tensor"], kTensors), box[0].number(), box[1].number(),
                        map["swizzle"].number<uint16_t>(), box[2].number<uint16_t>()});
      }
    row.maps = maps.data();
    row.map_count = static_cast<uint32_t>(maps.size());
  }

  fagen_row readRow(const Field &field) {
    fagen_row row{};
    row.variant = storage.keep(field["variant"].text());
    row.target = storage.keep(field["target"].text());
    row.pass = wordOf(field["pass"], kPasses);
    row.dtype = wordOf(field["dtype"], kDTypes);
    row.mask = wordOf(field["mask"], kMasks);
    row.dispatch = wordOf(field["dispatch"], kDispatches);
    const std::pair<const char *, uint32_t *> numbers[] = {{"sm", &row.sm},
                                                           {"first_sm", &row.first_sm},
                                                           {"last_sm", &row.last_sm},
                                                           {"exact", &row.exact},
                                                           {"lse", &row.lse},
                                                           {"head_dim_qk", &row.head_dim_qk},
                                                           {"head_dim_v", &row.head_dim_v},
                                                           {"schedule", &row.schedule},
                                                           {"order", &row.order},
                                                           {"alignment", &row.alignment},
                                                           {"tile_rows", &row.tile_rows},
                                                           {"tile_keys", &row.tile_keys}};
    for (auto [key, place] : numbers)
      *place = field[key].number();
    std::vector<Field> launches = field["launches"].items();
    if (launches.empty() || launches.size() > FAGEN_MAX_LAUNCHES)
      field["launches"].fail(fmt::format("has {} entries; 1 to {} are possible", launches.size(), FAGEN_MAX_LAUNCHES));
    for (const Field &launch : launches)
      row.launches[row.launch_count++] = readLaunch(launch);
    auto &parts = storage.workspaces.emplace_back();
    for (const Field &part : field["workspace"].items())
      parts.push_back(readWorkspace(part));
    row.workspace = parts.data();
    row.workspace_count = static_cast<uint32_t>(parts.size());
    readMaps(field, row);
    row.code = readCode(field["source"]);
    readFacts(field, row);
    return row;
  }

  const fagen_code *readCode(const Field &field) {
    fagen_code &code = storage.codes.emplace_back();
    code.source_name = storage.keep(field.text());
    fs::path path = storage.directory / code.source_name;
    if (std::error_code error; !fs::is_regular_file(path, error))
      field.fail(fmt::format("names {}, which is not there", path.string()));
    code.source = storage.keep(readFile(path));
    return &code;
  }

  void readFacts(const Field &field, const fagen_row &row) {
    Field schedule = field["plan"]["schedule"];
    RowFacts &facts = storage.facts[row.launches[0].symbol];
    facts.warps = static_cast<int>(schedule["warps"].number());
    facts.stages = static_cast<int>(schedule["stages"].number());
    facts.mma = schedule["mma"].text();
    facts.copy = schedule["copy"].text();
    facts.accum = field.has("accum") ? field["accum"].text() : "f32";
  }

  void finishTable() {
    std::sort(storage.rows.begin(), storage.rows.end(),
              [](const fagen_row &a, const fagen_row &b) { return fagen_row_key(&a) < fagen_row_key(&b); });
    for (const fagen_row &row : storage.rows)
      storage.keys.push_back(fagen_row_key(&row));
    fagen_table &table = storage.table;
    table.struct_size = sizeof(fagen_table);
    table.abi = FAGEN_ABI;
    table.kernel = storage.keep(manifest["kernel"].text());
    table.spec = storage.keep(manifest["spec"].text());
    table.rows = storage.rows.data();
    table.keys = storage.keys.data();
    table.schedules = storage.schedules.data();
    table.select = storage.select.data();
    table.row_count = static_cast<uint32_t>(storage.rows.size());
    table.row_size = sizeof(fagen_row);
    table.schedule_count = static_cast<uint32_t>(storage.schedules.size());
    table.select_count = static_cast<uint32_t>(storage.select.size());
    if (storage.rows.empty())
      manifest["rows"].fail("is empty");
    if (fagen_table_check(&table) != FAGEN_OK)
      manifest.fail(fagen_last_error());
  }

  KernelSet::Storage &storage;
  const Field &manifest;
};

} // namespace

KernelSet::KernelSet(std::unique_ptr<Storage> storage) : storage(std::move(storage)) {}
KernelSet::~KernelSet() = default;

std::unique_ptr<KernelSet> KernelSet::load(const fs::path &directory) {
  fs::path file = directory / "manifest.json";
  if (std::error_code error; !fs::is_regular_file(file, error))
    throw UserError(fmt::format("{} has no manifest.json; fagen SPEC -o DIR writes one", directory.string()));
  json value = json::parse(readFile(file), nullptr, false);
  if (value.is_discarded())
    throw UserError(fmt::format("{} is not JSON", file.string()));
  auto storage = std::make_unique<Storage>();
  storage->directory = directory;
  Loader(*storage, Field(file, value)).load();
  return std::unique_ptr<KernelSet>(new KernelSet(std::move(storage)));
}

const fagen_table *KernelSet::table() const { return &storage->table; }
const fs::path &KernelSet::directory() const { return storage->directory; }

std::vector<const fagen_row *> KernelSet::rows() const {
  std::vector<const fagen_row *> rows;
  for (const fagen_row &row : storage->rows)
    rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const fagen_row *a, const fagen_row *b) { return a->order < b->order; });
  return rows;
}

fs::path KernelSet::sourcePath(const fagen_row &row) const { return storage->directory / row.code->source_name; }

const RowFacts &KernelSet::facts(const fagen_row &row) const { return storage->facts.at(row.launches[0].symbol); }

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

const std::vector<OpLine> &KernelSet::ops(const fagen_row &row, uint32_t launch) const {
  return storage->ops.at(row.launches[launch].symbol);
}

/// The directory itself, or those in it, that have a manifest. UserError when it cannot be read.
static std::vector<fs::path> kernelDirectories(const fs::path &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    throw UserError(
        fmt::format("{} is not a directory{}{}", path.string(), error ? ": " : "", error ? error.message() : ""));
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
