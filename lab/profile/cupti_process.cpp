// fagen: counts one launch with CUPTI in a process of its own, which CUPTI may crash.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cupti_process.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

namespace fagen::lab {

using nlohmann::json;

static constexpr double kCuptiSeconds = 300;

std::vector<std::string> cuptiCommand(const std::string &program, const ProfiledRow &row,
                                      const std::vector<std::string> &metrics, const std::filesystem::path &logFile) {
  std::vector<std::string> command = {program,
                                      "profile",
                                      row.set->directory().string(),
                                      "--counters",
                                      "cupti",
                                      "--in-process",
                                      "--json",
                                      "--variant",
                                      row.row->variant,
                                      "--shape",
                                      formatShape(row.problem.shape),
                                      "--seed",
                                      fmt::to_string(row.seed),
                                      "--cupti-log",
                                      logFile.string()};
  for (const std::string &metric : metrics)
    command.insert(command.end(), {"--metric", metric});
  return command;
}

std::string unfinishedCall(const std::string &log) {
  const std::string last = log.substr(log.find_last_of('\n') + 1); // the whole of it where there is no line's end
  return last.starts_with("cupti") && last.find(':') == std::string::npos ? last : "";
}

Reading readCuptiProcess(const ChildOutcome &outcome, const std::string &output, const std::string &log) {
  const std::string call = unfinishedCall(log);
  const std::string where = call.empty() ? "" : " in " + call;
  if (outcome.timedOut)
    throw CountersRefused(fmt::format("CUPTI took more than {} s{}", kCuptiSeconds, where));
  if (outcome.signal)
    throw CountersRefused(fmt::format("CUPTI crashed{}: {}", where, strsignal(outcome.signal)));
  if (outcome.exitCode == kNotStarted)
    throw CountersRefused("the process that counts with CUPTI could not be started");
  const json result = json::parse(output, nullptr, /*allow_exceptions=*/false);
  const json profiles = result.is_object() ? result.value("profile", json::array()) : json::array();
  if (profiles.size() != 1 || !profiles[0].is_object())
    throw CountersRefused(fmt::format("the process that counts with CUPTI ended with exit code {}: {}",
                                      outcome.exitCode, outcome.errors.substr(0, outcome.errors.find('\n'))));
  if (const json refused = profiles[0].value("refused", json::object()); refused.contains("cupti"))
    throw CountersRefused(refused.at("cupti").get<std::string>());
  const json readings = profiles[0].value("readings", json::array());
  if (readings.size() != 1)
    throw CountersRefused("the process that counts with CUPTI told no counters");
  return {CounterKind::Cupti, readings[0].value("by", ""), readings[0].at("counters").get<Counters>()};
}

namespace {

/// A log that nobody asked for is read and thrown away.
class Log {
public:
  explicit Log(const std::filesystem::path &wanted) : path(wanted), isTemporary(wanted.empty()) {
    if (!isTemporary)
      return;
    std::string name = (std::filesystem::temp_directory_path() / "fagen-cupti-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0)
      throw UserError(fmt::format("cannot write {}", name));
    close(descriptor);
    path = name;
  }
  ~Log() {
    std::error_code ignored;
    if (isTemporary)
      std::filesystem::remove(path, ignored);
  }
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path path;

private:
  bool isTemporary;
};

} // namespace

Reading countWithCuptiProcess(const ProfiledRow &row, const std::vector<std::string> &metrics,
                              const std::filesystem::path &logFile) {
  const char *named = getenv("FAGEN_PROFILER");
  const std::string program = named && *named ? named : std::filesystem::read_symlink("/proc/self/exe").string();
  const Log log(logFile);
  std::string output;
  const ChildOutcome outcome = runChild(cuptiCommand(program, row, metrics, log.path), kCuptiSeconds,
                                        [&](const std::string &line) { output += line + "\n"; });
  const std::string calls = log.text();
  if (!unfinishedCall(calls).empty())
    std::ofstream(log.path, std::ios::app) << ": never returned\n";
  return readCuptiProcess(outcome, output, calls);
}

} // namespace fagen::lab
