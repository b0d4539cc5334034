// fagen: fagen_table_load: manifest.json, its .cu files and their machine code as a table in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile/cache.h"
#include "dispatch.h"
#include "error.h"
#include "fields.h"
#include "files/mapped_file.h"
#include "programs/postfix_text.h"
#include "programs/read.h"
#include "verbose.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>

using namespace fagen;

namespace {

/// A table, and everything that its pointers point into. Deques: their elements never move.
struct LoadedTable : fagen_table {
  LoadedTable() : fagen_table{} {}

  std::deque<std::string> texts;
  std::deque<MappedFile> machineCode; ///< of a set for many GPUs a process reads little
  std::deque<std::vector<fagen_op>> programs;
  std::deque<std::vector<fagen_workspace>> workspaces;
  std::deque<std::vector<fagen_map>> maps;
  std::deque<std::vector<fagen_form_param>> params;
  std::vector<fagen_form> formList;
  std::deque<std::unique_ptr<LoadedRecipe>> recipes;
  std::deque<fagen_code> codes;
  std::deque<std::vector<fagen_binary>> binaries;
  std::vector<const char *> schedules;
  std::vector<fagen_select> select;
  std::vector<fagen_row> rows; ///< sorted by key
  std::vector<uint64_t> keys;

  const char *keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }
};

/// Words for the numbers of fagen.h and table.h.
constexpr Word kPasses[] = {
    {"forward", FAGEN_PASS_FORWARD}, {"backward", FAGEN_PASS_BACKWARD}, {"program", FAGEN_PASS_PROGRAM}};
constexpr Word kKvDTypes[] = {{"e4m3", FAGEN_KV_E4M3}, {"e5m2", FAGEN_KV_E5M2}};
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
                           {"key_tiles", FAGEN_GRID_KEY_TILES},
                           {"clusters", FAGEN_GRID_CLUSTERS},
                           {"recipe", FAGEN_GRID_RECIPE}};
constexpr Word kElements[] = {{"bit", FAGEN_ELEMENT_BIT}, {"u8", FAGEN_ELEMENT_U8},     {"i32", FAGEN_ELEMENT_I32},
                              {"f16", FAGEN_ELEMENT_F16}, {"bf16", FAGEN_ELEMENT_BF16}, {"f32", FAGEN_ELEMENT_F32}};
constexpr Word kTensors[] = {{"q", FAGEN_MAP_Q}, {"k", FAGEN_MAP_K}, {"v", FAGEN_MAP_V}, {"o", FAGEN_MAP_O}};

constexpr const char *kRemedy = "fagen SPEC -o DIR writes the kernel set anew";

/// Reads one manifest into a table.
class Loader {
public:
  Loader(LoadedTable &loaded, std::filesystem::path directory, const Field &manifest)
      : loaded(loaded), directory(std::move(directory)), manifest(manifest) {}

  void load() {
    for (const Field &name : manifest["schedules"].items())
      loaded.schedules.push_back(loaded.keep(name.text()));
    for (const Field &line : manifest["select"].items())
      loaded.select.push_back(readSelect(line));
    if (manifest.has("claim"))
      readClaim(manifest["claim"]);
    if (manifest.has("forms"))
      for (const Field &form : manifest["forms"].items())
        readForm(form);
    for (const Field &row : manifest["rows"].items())
      loaded.rows.push_back(readRow(row));
    if (loaded.rows.empty())
      manifest["rows"].fail("is empty");
    finishTable();
    if (fagen_table_check(&loaded) != FAGEN_OK)
      manifest.fail(fagen_last_error());
  }

private:
  fagen_select readSelect(const Field &field) {
    const auto &program = loaded.programs.emplace_back(readProgram(field["condition"]));
    return {program.data(), static_cast<uint32_t>(program.size()), field["schedule"].number(),
            loaded.keep(field["text"].text())};
  }

  void readClaim(const Field &field) {
    const auto &program = loaded.programs.emplace_back(readProgram(field["condition"]));
    loaded.claim = program.data();
    loaded.claim_size = static_cast<uint32_t>(program.size());
    loaded.claim_text = loaded.keep(field["text"].text());
  }

  fagen_launch readLaunch(const Field &field) {
    const std::string &grid = field["grid"].text(); // some have a number under their own name
    return {loaded.keep(field["symbol"].text()), wordOf(field["grid"], kGrids), field["threads"].number(),
            field["shared_bytes"].number(), field.has(grid.c_str()) ? field[grid.c_str()].number() : 0};
  }

  void readLaunches(const Field &field, fagen_row &row) {
    const std::vector<Field> launches = field.items();
    if (launches.empty() || launches.size() > FAGEN_MAX_LAUNCHES)
      field.fail("has " + std::to_string(launches.size()) + " entries; 1 to " + std::to_string(FAGEN_MAX_LAUNCHES) +
                 " are possible");
    for (const Field &launch : launches) {
      if (launch.has("dependent") && launch["dependent"].integer() != 0)
        row.dependent_launches = uint16_t(row.dependent_launches | 1u << row.launch_count);
      row.launches[row.launch_count++] = readLaunch(launch);
    }
  }

  void readWorkspace(const Field &field, fagen_row &row) {
    auto &parts = loaded.workspaces.emplace_back();
    for (const Field &part : field.items()) {
      if (part.has("scratch") && part["scratch"].integer() != 0)
        ++row.scratch_parts;
      else if (row.scratch_parts)
        part.fail("must be zero, but stands after parts that need not be");
      const auto &program = loaded.programs.emplace_back(readProgram(part["bytes"]));
      parts.push_back({loaded.keep(part["name"].text()), program.data(), static_cast<uint32_t>(program.size()),
                       part["alignment"].number()});
    }
    row.workspace = parts.data();
    row.workspace_count = static_cast<uint32_t>(parts.size());
  }

  void readForm(const Field &field) {
    const std::vector<Field> fields = field["params"].items();
    std::vector<std::string> names;
    for (const Field &param : fields)
      names.push_back(param["name"].text());
    auto &params = loaded.params.emplace_back();
    for (const Field &param : fields)
      params.push_back(readParam(param, names));
    fagen_form form{};
    form.name = loaded.keep(field["name"].text());
    form.text = loaded.keep(field["text"].text());
    form.hash = readHash(field["hash"]);
    form.params = params.data();
    form.param_count = static_cast<uint32_t>(params.size());
    form.param_size = sizeof(fagen_form_param);
    form.bytes = field["bytes"].number();
    loaded.formList.push_back(form);
  }

  fagen_form_param readParam(const Field &field, const std::vector<std::string> &names) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    fagen_form_param param{};
    param.name = loaded.keep(field["name"].text());
    param.element = wordOf(field["element"], kElements);
    param.flags = flagOf(field, "ascending", FAGEN_PARAM_ASCENDING) | flagOf(field, "mask", FAGEN_PARAM_IN_MASK);
    param.low = field.has("low") ? field["low"].decimal() : -kInfinity;
    param.high = field.has("high") ? field["high"].decimal() : kInfinity;
    const bool isBound = field.has("bound");
    param.offset = isBound ? FAGEN_PARAM_BOUND : field["offset"].number();
    param.bound = isBound ? field["bound"].decimal() : 0;
    if (!field.has("extents"))
      return param;
    const std::vector<Field> extents = field["extents"].items();
    if (extents.size() > std::size(param.extents))
      field["extents"].fail("has " + std::to_string(extents.size()) + " extents; at most 4 are possible");
    for (const Field &extent : extents) {
      const auto &program = loaded.programs.emplace_back(readProgram(extent, names));
      param.extents[param.rank++] = {program.data(), static_cast<uint32_t>(program.size()), 0};
    }
    return param;
  }

  static uint32_t flagOf(const Field &field, const char *key, uint32_t flag) {
    return field.has(key) && field[key].integer() != 0 ? flag : 0;
  }

  /// 64 bits as 16 hexadecimal digits: JSON's numbers have 53.
  static uint64_t readHash(const Field &field) {
    const std::string &text = field.text();
    uint64_t hash = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
      field.fail("is " + inQuotes(text) + ", not 16 hexadecimal digits");
    return hash;
  }

  void readMaps(const Field &field, fagen_row &row) {
    auto &maps = loaded.maps.emplace_back();
    for (const Field &map : field.items()) {
      const std::vector<Field> box = map["box"].items();
      if (box.size() != 3)
        map["box"].fail("has " + std::to_string(box.size()) + " numbers; columns, rows and panels are three");
      maps.push_back({wordOf(map["tensor"], kTensors), box[0].number(), box[1].number(),
                      map["swizzle"].number<uint16_t>(), box[2].number<uint16_t>()});
    }
    row.maps = maps.data();
    row.map_count = static_cast<uint32_t>(maps.size());
  }

  fagen_row readRow(const Field &field) {
    fagen_row row{};
    row.variant = loaded.keep(field["variant"].text());
    row.target = loaded.keep(field["target"].text());
    row.pass = wordOf(field["pass"], kPasses);
    row.dispatch = wordOf(field["dispatch"], kDispatches);
    readNumbers(field, {{"sm", &row.sm},
                        {"first_sm", &row.first_sm},
                        {"last_sm", &row.last_sm},
                        {"exact", &row.exact},
                        {"order", &row.order},
                        {"alignment", &row.alignment}});
    readLaunches(field["launches"], row);
    if (row.pass == FAGEN_PASS_PROGRAM)
      readProgramRow(field["program"], row);
    else
      readAttention(field, row);
    row.code = readCode(field);
    return row;
  }

  static void readNumbers(const Field &field, std::initializer_list<std::pair<const char *, uint32_t *>> numbers) {
    for (auto [key, place] : numbers)
      *place = field[key].number();
  }

  /// What only rows of programs have.
  void readProgramRow(const Field &plan, fagen_row &row) {
    row.recipe = &loaded.recipes.emplace_back(readRecipe(plan, row.launch_count))->recipe;
    const std::vector<Field> launches = plan["launches"].items();
    for (uint32_t i = 0; i < row.launch_count; ++i)
      if (launches[i].has("cluster"))
        row.launches[i].reserved = launches[i]["cluster"].number();
  }

  /// What only rows of attention have.
  void readAttention(const Field &field, fagen_row &row) {
    row.dtype = wordOf(field["dtype"], kDTypes);
    if (field.has("kv_dtype"))
      row.dtype |= wordOf(field["kv_dtype"], kKvDTypes);
    row.mask = field.has("form") ? FAGEN_MASK_FORM_0 + field["form"].number(FAGEN_MAX_FORMS - 1u)
                                 : wordOf(field["mask"], kMasks);
    readNumbers(field, {{"lse", &row.lse},
                        {"head_dim_qk", &row.head_dim_qk},
                        {"head_dim_v", &row.head_dim_v},
                        {"schedule", &row.schedule},
                        {"tile_rows", &row.tile_rows},
                        {"tile_keys", &row.tile_keys}});
    readWorkspace(field["workspace"], row);
    if (field.has("maps"))
      readMaps(field["maps"], row);
    if (field.has("shared_tiles"))
      readSharedTiles(field["shared_tiles"], row);
  }

  /// Params have a dollar in front.
  void readSharedTiles(const Field &field, fagen_row &row) {
    std::vector<std::string> words;
    if (row.mask >= FAGEN_MASK_FORM_0 && row.mask - FAGEN_MASK_FORM_0 < loaded.formList.size())
      for (const fagen_form_param &param : loaded.params[row.mask - FAGEN_MASK_FORM_0])
        words.push_back(std::string("$") + param.name);
    const auto &program = loaded.programs.emplace_back(readProgram(field, words));
    row.shared_tiles = program.data();
    row.shared_tiles_size = static_cast<uint32_t>(program.size());
    row.launches[0].reserved = FAGEN_SPLITS_OF_SHARED;
  }

  /// A file of the kernel set.
  std::string fileOf(const Field &field) const {
    const std::filesystem::path name = field.text(), path = directory / name;
    if (name.is_absolute() || std::find(name.begin(), name.end(), "..") != name.end())
      field.fail("is " + inQuotes(field.text()) + ", which leads out of the kernel set");
    if (std::error_code error; !std::filesystem::is_regular_file(path, error))
      field.fail("names " + inQuotes(field.text()) + ", which is not in " + directory.string());
    return path.string();
  }

  const fagen_code *readCode(const Field &row) {
    fagen_code &code = loaded.codes.emplace_back();
    code.source_name = loaded.keep(row["source"].text());
    const std::string &source = loaded.texts.emplace_back(readWholeFile(fileOf(row["source"])));
    code.source = source.c_str();
    if (row.has("binaries"))
      readBinaries(row["binaries"], source, code);
    return &code;
  }

  /// Machine code that was made of this source; code of a text that somebody has changed since is left out.
  void readBinaries(const Field &field, const std::string &source, fagen_code &code) {
    auto &binaries = loaded.binaries.emplace_back();
    const std::string hash = hashParts({source});
    for (const Field &binary : field.items()) {
      if (binary["made_from"].text() != hash) {
        verbose("%s: made of another text than %s: not used", binary["file"].text().c_str(), code.source_name);
        continue;
      }
      const std::string_view code = loaded.machineCode.emplace_back(fileOf(binary["file"])).bytes();
      binaries.push_back(
          {FAGEN_BINARY_CUBIN, binary["sm"].number(), binary["exact"].number(), 0, code.data(), code.size()});
    }
    code.binaries = binaries.data();
    code.binary_count = binaries.size();
  }

  void finishTable() {
    std::sort(loaded.rows.begin(), loaded.rows.end(),
              [](const fagen_row &a, const fagen_row &b) { return fagen_row_key(&a) < fagen_row_key(&b); });
    for (const fagen_row &row : loaded.rows)
      loaded.keys.push_back(fagen_row_key(&row));
    fagen_table &table = loaded;
    table.struct_size = sizeof(fagen_table);
    table.abi = FAGEN_ABI;
    table.kernel = loaded.keep(manifest["kernel"].text());
    table.spec = loaded.keep(manifest["spec"].text());
    table.rows = loaded.rows.data();
    table.keys = loaded.keys.data();
    table.schedules = loaded.schedules.data();
    table.select = loaded.select.data();
    table.row_count = static_cast<uint32_t>(loaded.rows.size());
    table.row_size = sizeof(fagen_row);
    table.schedule_count = static_cast<uint32_t>(loaded.schedules.size());
    table.select_count = static_cast<uint32_t>(loaded.select.size());
    table.forms = loaded.formList.data();
    table.form_count = static_cast<uint32_t>(loaded.formList.size());
    table.form_size = sizeof(fagen_form);
  }

  LoadedTable &loaded;
  std::filesystem::path directory;
  const Field &manifest;
};

/// The manifest of a kernel set's directory, or the file itself.
std::filesystem::path manifestOf(const std::filesystem::path &path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return path;
  if (!std::filesystem::is_regular_file(path / "manifest.json", error))
    throw FieldError(path.string() + " has no manifest.json; fagen SPEC -o DIR writes one");
  return path / "manifest.json";
}

fagen_status load(const std::filesystem::path &path, std::unique_ptr<LoadedTable> &loaded) {
  const std::filesystem::path file = manifestOf(path);
  const std::string name = file.string(), remedy = kRemedy, none;
  const Json json = readJsonFile(name);
  if (json.find("unfinished"))
    Field(name, json, none)
        .fail("the kernel set is unfinished: fagen was interrupted while it wrote the files, or still writes them; run "
              "fagen SPEC -o DIR again");
  const Field manifest(name, json, remedy);
  if (const uint32_t abi = manifest["abi"].number(); abi != FAGEN_ABI)
    return fail(FAGEN_ABI_MISMATCH, "%s: abi is %u; this library reads %u: take the fagen that it came with",
                name.c_str(), abi, FAGEN_ABI);
  loaded = std::make_unique<LoadedTable>();
  Loader(*loaded, file.parent_path(), manifest).load();
  return FAGEN_OK;
}

} // namespace

fagen_status fagen_table_load(const char *path, const fagen_table **table) {
  if (!path || !table)
    return fail(FAGEN_INVALID, "%s is NULL", path ? "table" : "path");
  *table = nullptr;
  try {
    std::unique_ptr<LoadedTable> loaded;
    if (fagen_status status = load(path, loaded))
      return status;
    *table = loaded.release();
    return FAGEN_OK;
  } catch (const std::bad_alloc &) {
    return fail(FAGEN_OUT_OF_MEMORY, "no host memory for the kernel set %s", path);
  } catch (const std::exception &error) {
    return fail(FAGEN_INVALID, "%s", error.what());
  }
}

void fagen_table_release(const fagen_table *table) { delete static_cast<const LoadedTable *>(table); }
