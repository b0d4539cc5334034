// fagen: what a tuner has found, in SQLite.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store.h"
#include "lab/cases/problem.h"
#include "lab/support/json_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace fagen::lab::tune {

static constexpr const char *kSchema = R"(
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA busy_timeout = 10000;
CREATE TABLE IF NOT EXISTS study (
  id INTEGER PRIMARY KEY, gpu TEXT NOT NULL, driver TEXT NOT NULL, compiler TEXT NOT NULL, spec_hash TEXT NOT NULL,
  problem TEXT NOT NULL, description TEXT NOT NULL, UNIQUE (gpu, driver, compiler, spec_hash, problem));
CREATE TABLE IF NOT EXISTS evaluation (
  study INTEGER NOT NULL REFERENCES study, candidate TEXT NOT NULL, settings TEXT NOT NULL, outcome TEXT NOT NULL,
  stage TEXT NOT NULL, why TEXT NOT NULL, samples TEXT NOT NULL, median REAL NOT NULL, seconds REAL NOT NULL,
  generation INTEGER NOT NULL, attempts INTEGER NOT NULL, strategy TEXT NOT NULL, PRIMARY KEY (study, candidate));
CREATE TABLE IF NOT EXISTS tile (
  gpu TEXT NOT NULL, driver TEXT NOT NULL, compiler TEXT NOT NULL, tile TEXT NOT NULL, candidate TEXT NOT NULL,
  microseconds REAL NOT NULL, PRIMARY KEY (gpu, driver, compiler, tile, candidate));
)";

namespace {

/// A prepared statement with its values.
class Statement {
public:
  Statement(sqlite3 *database, const char *sql) : database(database) {
    if (sqlite3_prepare_v2(database, sql, -1, &handle, nullptr) != SQLITE_OK)
      throw UserError(fmt::format("results: {}", sqlite3_errmsg(database)));
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  Statement &bind(const std::string &text) {
    sqlite3_bind_text(handle, ++bound, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement &bind(double value) { return sqlite3_bind_double(handle, ++bound, value), *this; }
  Statement &bind(long value) { return sqlite3_bind_int64(handle, ++bound, value), *this; }
  Statement &bind(int value) { return bind(long{value}); }
  /// False at the end.
  bool step() {
    int status = sqlite3_step(handle);
    if (status != SQLITE_ROW && status != SQLITE_DONE)
      throw UserError(fmt::format("results: {}", sqlite3_errmsg(database)));
    return status == SQLITE_ROW;
  }
  std::string text(int column) {
    auto *letters = reinterpret_cast<const char *>(sqlite3_column_text(handle, column));
    return letters ? letters : "";
  }
  double real(int column) { return sqlite3_column_double(handle, column); }
  long integer(int column) { return sqlite3_column_int64(handle, column); }

private:
  sqlite3 *database;
  sqlite3_stmt *handle = nullptr;
  int bound = 0;
};

/// Texts of JSON in a row of a table.
struct Parts {
  const std::string where;

  template <class T> T get(const std::string &text) const {
    try {
      return parseText(text).get<T>();
    } catch (const nlohmann::json::exception &error) {
      throw UserError(fmt::format("results: {}: {}", where, reasonOf(error)));
    } catch (const NoJson &error) {
      throw UserError(fmt::format("results: {}: {}", where, error.what()));
    }
  }
};

} // namespace

Store::Store(const std::string &file) {
  if (sqlite3_open(file.c_str(), &database) != SQLITE_OK) {
    std::string reason = sqlite3_errmsg(database);
    sqlite3_close(database);
    throw UserError(fmt::format("cannot open {}: {}", file, reason));
  }
  try {
    execute(kSchema);
  } catch (const UserError &error) {
    sqlite3_close(database);
    throw UserError(fmt::format("{}: {}", file, error.what()));
  }
}

Store::~Store() { sqlite3_close(database); }

void Store::execute(const char *sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw UserError(sqlite3_errmsg(database));
}

long Store::open(const StudyKey &key, const std::string &description) {
  auto bindKey = [&](Statement &statement) -> Statement & {
    return statement.bind(key.gpu).bind(key.driver).bind(key.compiler).bind(key.specHash).bind(key.problem);
  };
  Statement insert(database, "INSERT OR IGNORE INTO study (gpu, driver, compiler, spec_hash, problem, description) "
                             "VALUES (?, ?, ?, ?, ?, ?)");
  bindKey(insert).bind(description).step();
  Statement select(database, "SELECT id FROM study WHERE gpu = ? AND driver = ? AND compiler = ? AND spec_hash = ? AND "
                             "problem = ?");
  bindKey(select).step();
  return select.integer(0);
}

std::map<std::string, Record> Store::records(long study) {
  Statement select(database, "SELECT candidate, settings, outcome, stage, why, samples, median, seconds, generation, "
                             "attempts, strategy FROM evaluation WHERE study = ?");
  select.bind(study);
  std::map<std::string, Record> records;
  while (select.step()) {
    const Parts parts{fmt::format("study {}, candidate {}", study, select.text(0))};
    parts.get<std::map<std::string, std::string>>(select.text(1));
    Record record{select.text(0),
                  select.text(1),
                  select.text(2),
                  select.text(3),
                  select.text(4),
                  parts.get<std::vector<double>>(select.text(5)),
                  select.real(6),
                  select.real(7),
                  static_cast<int>(select.integer(8)),
                  static_cast<int>(select.integer(9)),
                  select.text(10)};
    records[record.candidate] = record;
  }
  return records;
}

void Store::begin(long study, const Record &record) {
  Statement upsert(database, "INSERT INTO evaluation VALUES (?, ?, ?, 'running', '', '', '[]', 0, 0, ?, 1, ?) ON "
                             "CONFLICT (study, candidate) DO UPDATE SET attempts = attempts + (outcome = "
                             "'running'), outcome = 'running'");
  upsert.bind(study).bind(record.candidate).bind(record.settings).bind(record.generation).bind(record.strategy).step();
}

void Store::finish(long study, const Record &record) {
  Statement update(database, "UPDATE evaluation SET outcome = ?, stage = ?, why = ?, samples = ?, median = ?, seconds "
                             "= ? WHERE study = ? AND candidate = ?");
  update.bind(record.outcome).bind(record.stage).bind(record.why).bind(nlohmann::json(record.samples).dump());
  update.bind(record.median).bind(record.seconds).bind(study).bind(record.candidate).step();
}

void Store::abandon(long study, const std::string &candidate) {
  Statement remove(database, "DELETE FROM evaluation WHERE study = ? AND candidate = ? AND outcome = 'running'");
  remove.bind(study).bind(candidate).step();
}

std::map<std::string, double> Store::tiles(const StudyKey &key, const std::string &tile) {
  Statement select(database, "SELECT candidate, microseconds FROM tile WHERE gpu = ? AND driver = ? AND compiler = ? "
                             "AND tile = ?");
  select.bind(key.gpu).bind(key.driver).bind(key.compiler).bind(tile);
  std::map<std::string, double> found;
  while (select.step())
    found[select.text(0)] = select.real(1);
  return found;
}

void Store::keepTile(const StudyKey &key, const std::string &tile, const std::string &candidate, double microseconds) {
  Statement insert(database, "INSERT OR REPLACE INTO tile VALUES (?, ?, ?, ?, ?, ?)");
  insert.bind(key.gpu).bind(key.driver).bind(key.compiler).bind(tile).bind(candidate).bind(microseconds).step();
}

std::vector<Store::Evidence> Store::evidence() {
  Statement select(database,
                   "SELECT gpu, driver, compiler, spec_hash, problem, description, id FROM study ORDER BY id");
  std::vector<Evidence> found;
  while (select.step()) {
    Parts{fmt::format("study {}", select.text(6))}.get<std::map<std::string, Json>>(select.text(5));
    Evidence study{
        {select.text(0), select.text(1), select.text(2), select.text(3), select.text(4)}, select.text(5), {}};
    for (const auto &[candidate, record] : records(select.integer(6)))
      if (record.timed())
        study.records.push_back(record);
    found.push_back(std::move(study));
  }
  return found;
}

} // namespace fagen::lab::tune
