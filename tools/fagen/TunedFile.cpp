// fagen: --tuned: measured times from a tuner's database or its export.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The export (fagen-run tune --export FILE):
//   {"fagen_tuned": 1, "studies": [{"gpu", "driver", "spec_hash",
//     "about": {"kernel", "target", "dtype", "accum", "mask", "lse", "head_dim_qk", "head_dim_v", "batch", "heads",
//               "kv_heads", "seq_q", "seq_kv", "sms"},
//     "times": [{"settings": {"tile": "128 x 64", ...}, "median_us": 12.3}, ...]}, ...]}
// Where `about` has "measure": "joules", a time is "median_mj".
// The database has the same: `about` is study.description, a time is a row of evaluation.

#include "TunedFile.h"

#include "fagen/Spec/Options.h"
#include "fagen/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#ifdef FAGEN_HAS_SQLITE
#include <sqlite3.h>
#endif

using namespace llvm;

namespace fagen {

static constexpr StringLiteral kDatabaseHead = "SQLite format 3";

/// What is wrong with it; empty where nothing is.
static std::string readAbout(const json::Value &value, TunedStudy &study) {
  json::Path::Root root("about");
  json::ObjectMapper map(value, root);
  bool read = map && map.map("kernel", study.kernel) && map.map("target", study.target) &&
              map.map("dtype", study.dtype) && map.map("accum", study.accum) && map.map("mask", study.mask) &&
              map.map("lse", study.lse) && map.map("head_dim_qk", study.headDimQK) &&
              map.map("head_dim_v", study.headDimV) && map.map("batch", study.batch) && map.map("heads", study.heads) &&
              map.map("kv_heads", study.kvHeads) && map.map("seq_q", study.seqQ) && map.map("seq_kv", study.seqKv) &&
              map.map("sms", study.sms);
  if (!read)
    return toString(root.getError());
  study.measure = value.getAsObject()->getString("measure").value_or("time").str();
  if (study.measure != "time" && study.measure != "joules")
    return "about.measure is '" + study.measure + "'; it is time or joules";
  if (!optionInfo(OptionKey::DType).findValue(study.dtype))
    return "about.dtype is '" + study.dtype + "', which is none";
  return optionInfo(OptionKey::Mask).findValue(study.mask) ? "" : "about.mask is '" + study.mask + "', which is none";
}

static StringRef medianKey(const TunedStudy &study) { return study.measure == "joules" ? "median_mj" : "median_us"; }

/// The same of a time.
static std::string readTime(const json::Value &settings, double cost, TunedStudy &study) {
  const json::Object *object = settings.getAsObject();
  if (!object)
    return "its settings are no JSON object";
  if (!(cost > 0))
    return "its " + medianKey(study).str() + " is no number above 0";
  TunedTime time;
  time.cost = cost;
  for (const auto &[key, value] : *object) {
    std::optional<StringRef> text = value.getAsString();
    if (!text)
      return "its setting '" + key.str() + "' is no string";
    time.settings[key.str()] = text->str();
  }
  study.times.push_back(std::move(time));
  return "";
}

/// The same of a study.
static std::string readStudy(const json::Value &value, TunedStudy &study) {
  const json::Object *object = value.getAsObject();
  const json::Value *about = object ? object->get("about") : nullptr;
  const json::Array *times = object ? object->getArray("times") : nullptr;
  if (!about || !times)
    return about ? "it has no array 'times'" : "it has no 'about'";
  if (std::string reason = readAbout(*about, study); !reason.empty())
    return reason;
  study.gpu = object->getString("gpu").value_or("").str();
  study.driver = object->getString("driver").value_or("").str();
  study.specHash = object->getString("spec_hash").value_or("").str();
  for (const auto &[index, time] : enumerate(*times)) {
    const json::Object *entry = time.getAsObject();
    const json::Value *settings = entry ? entry->get("settings") : nullptr;
    const std::string reason =
        settings ? readTime(*settings, entry->getNumber(medianKey(study)).value_or(0), study) : "it has no 'settings'";
    if (!reason.empty())
      return ("times[" + Twine(index) + "]: " + reason).str();
  }
  return "";
}

/// The same of an export.
static std::string readStudies(StringRef text, std::vector<TunedStudy> &studies) {
  Expected<json::Value> value = parseJson(text);
  if (!value)
    return toString(value.takeError());
  const json::Object *object = value->getAsObject();
  if (!object || !object->get("fagen_tuned"))
    return object ? "it has no 'fagen_tuned'" : "it is no JSON object";
  if (object->getInteger("fagen_tuned") != 1)
    return "its 'fagen_tuned' is not 1, the one that this fagen reads";
  const json::Array *list = object->getArray("studies");
  if (!list)
    return "it has no array 'studies'";
  for (const auto &[index, study] : enumerate(*list))
    if (std::string reason = readStudy(study, studies.emplace_back()); !reason.empty())
      return ("studies[" + Twine(index) + "]: " + reason).str();
  return "";
}

static std::optional<std::vector<TunedStudy>> readExport(StringRef text, const std::string &path, Diagnostics &diags) {
  std::vector<TunedStudy> studies;
  const std::string reason = readStudies(text, studies);
  if (reason.empty())
    return studies;
  diags.error(Location(), path + " is neither a database of fagen-run tune nor its export: " + reason +
                              "; fagen-run tune --export FILE writes one");
  return std::nullopt;
}

#ifdef FAGEN_HAS_SQLITE

namespace {

/// A query over the database; the reason of a failure in `problem`.
class Rows {
public:
  Rows(sqlite3 *database, const char *query) : database(database) {
    if (sqlite3_prepare_v2(database, query, -1, &statement, nullptr) != SQLITE_OK)
      problem = sqlite3_errmsg(database);
  }
  ~Rows() { sqlite3_finalize(statement); }
  Rows(const Rows &) = delete;
  Rows &operator=(const Rows &) = delete;

  bool next() {
    if (!statement)
      return false;
    const int status = sqlite3_step(statement);
    if (status != SQLITE_ROW && status != SQLITE_DONE) // a page of the file is damaged
      problem = sqlite3_errmsg(database);
    return status == SQLITE_ROW;
  }
  std::string text(int column) {
    auto *letters = reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
    return letters ? letters : "";
  }
  double real(int column) { return sqlite3_column_double(statement, column); }

  std::string problem;

private:
  sqlite3 *database;
  sqlite3_stmt *statement = nullptr;
};

} // namespace

/// The reason why it cannot be read; else empty.
static std::string readRows(sqlite3 *database, std::vector<TunedStudy> &studies) {
  Rows rows(database,
            "SELECT study.id, gpu, driver, spec_hash, description, settings, median FROM study JOIN evaluation "
            "ON study.id = evaluation.study WHERE outcome IN ('ok', 'raced') ORDER BY study.id, candidate");
  std::string last;
  while (rows.next()) {
    if (rows.text(0) != last) {
      last = rows.text(0);
      TunedStudy &study = studies.emplace_back();
      study.gpu = rows.text(1);
      study.driver = rows.text(2);
      study.specHash = rows.text(3);
      Expected<json::Value> about = parseJson(rows.text(4));
      if (!about)
        return toString(about.takeError());
      if (std::string reason = readAbout(*about, study); !reason.empty())
        return "study " + last + " does not say what was timed: " + reason;
    }
    Expected<json::Value> settings = parseJson(rows.text(5));
    if (!settings)
      return toString(settings.takeError());
    if (std::string reason = readTime(*settings, rows.real(6), studies.back()); !reason.empty())
      return "study " + last + " has a time that is none: " + reason;
  }
  return rows.problem;
}

static std::optional<std::vector<TunedStudy>> readDatabase(const std::string &path, Diagnostics &diags) {
  sqlite3 *database = nullptr;
  std::vector<TunedStudy> studies;
  std::string reason;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
    reason = sqlite3_errmsg(database);
  else
    reason = readRows(database, studies);
  sqlite3_close(database);
  if (reason.empty())
    return studies;
  diags.error(Location(), "cannot read '" + path + "': " + reason);
  return std::nullopt;
}

#else

static std::optional<std::vector<TunedStudy>> readDatabase(const std::string &path, Diagnostics &diags) {
  diags.error(Location(), path + " is a database, and this fagen was built without SQLite; fagen-run tune --db " +
                              path + " --export FILE writes what it takes");
  return std::nullopt;
}

#endif

std::optional<std::vector<TunedStudy>> readTuned(const std::string &path, Diagnostics &diags) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    diags.error(Location(), "cannot read '" + path + "': " + buffer.getError().message());
    return std::nullopt;
  }
  if ((*buffer)->getBuffer().starts_with(kDatabaseHead))
    return readDatabase(path, diags);
  return readExport((*buffer)->getBuffer(), path, diags);
}

void warnOfOtherText(const KernelSpec &kernel, StringRef text, ArrayRef<std::string> targets,
                     ArrayRef<TunedStudy> studies, Diagnostics &diags) {
  std::vector<std::string> known = {tunedSpecHash(text, "")};
  for (const std::string &target : targets)
    known.push_back(tunedSpecHash(text, target));
  bool isOther = any_of(studies, [&](const TunedStudy &study) {
    return study.kernel == kernel.name && !is_contained(known, study.specHash);
  });
  if (isOther)
    diags.warning(kernel.location, "times of " + kernel.name + " were taken with other text of this spec");
}

} // namespace fagen
