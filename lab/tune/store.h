// fagen: what a tuner has found, in SQLite: each candidate is written before it runs and when it has ended.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

struct sqlite3;

namespace fagen::lab::tune {

/// Times compare within one study only.
struct StudyKey {
  std::string gpu, driver, compiler, specHash, problem; ///< problem: the shape class, with dtype and mask
};

struct Record {
  std::string candidate; ///< nameOf(space, point)
  std::string settings;  ///< JSON: the schedule's keys
  std::string outcome;   ///< ok, raced (stopped early), refused, wrong, crashed, hung, failed; running: in flight
  std::string stage;     ///< compile, gate, time; where it ended
  std::string why;
  std::vector<double> samples; ///< microseconds, or millijoules in a study of joules
  double median = 0, seconds = 0;
  int generation = 0, attempts = 0;
  std::string strategy;

  bool timed() const { return outcome == "ok" || outcome == "raced"; }
};

class Store {
public:
  /// Opens or makes the file. UserError when it is no database of the tuner's.
  explicit Store(const std::string &file);
  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  /// The study's number; made when it is new. `description`: JSON that tells readers what the key's words mean.
  long open(const StudyKey &key, const std::string &description = "{}");
  std::map<std::string, Record> records(long study);
  /// Marks the candidate as running; one attempt more when a tuner that was killed had left it running.
  void begin(long study, const Record &record);
  void finish(long study, const Record &record);
  /// Forgets a candidate that was in flight when the user stopped.
  void abandon(long study, const std::string &candidate);

  /// Microseconds of synthetic tiles by candidate; `tile`: what was timed, of which kernel.
  std::map<std::string, double> tiles(const StudyKey &key, const std::string &tile);
  void keepTile(const StudyKey &key, const std::string &tile, const std::string &candidate, double microseconds);

  /// Everything that was timed, by study, for fagen --tuned.
  struct Evidence {
    StudyKey key;
    std::string description;
    std::vector<Record> records;
  };
  std::vector<Evidence> evidence();

private:
  void execute(const char *sql);
  sqlite3 *database = nullptr;
};

} // namespace fagen::lab::tune
