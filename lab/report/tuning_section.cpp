// fagen: the report's tuning: how the search went, what it found, against what ships.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "csv.h"
#include "lab/cases/problem.h"
#include "landscape_chart.h"
#include "progress_chart.h"
#include "section.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace fagen::lab::page {

namespace fs = std::filesystem;

static constexpr const char *kTuningRemedy = "fagen-run tune SPEC --evidence DIR writes such a directory";
static constexpr size_t kMicroRows = 8;

namespace {

/// What the directory tells of one problem.
struct Study {
  std::string problem;
  std::vector<Evaluation> evaluations;
  std::vector<Found> found;
  std::map<std::string, size_t> outcomes;
  double seconds = 0;
};

/// "tile=128x64;warps=4" by axis.
std::map<std::string, std::string> readSettings(const std::string &text) {
  std::map<std::string, std::string> settings;
  for (const std::string &setting : split(text, ';'))
    if (const size_t equals = setting.find('='); equals != std::string::npos)
      settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  return settings;
}

std::vector<Study> readLog(const std::string &file) {
  const Csv log = Csv::read(file, kTuningRemedy);
  std::vector<Study> studies;
  for (size_t i = 0; i < log.size(); ++i) {
    const std::string &problem = log.text(i, "problem");
    auto study = std::find_if(studies.begin(), studies.end(), [&](const Study &s) { return s.problem == problem; });
    if (study == studies.end())
      study = studies.insert(studies.end(), {problem, {}, {}, {}, 0});
    const std::string &outcome = log.text(i, "outcome");
    std::optional<double> median = log.number(i, "median_us");
    if (median && *median <= 0)
      median.reset();
    study->evaluations.push_back({log.text(i, "candidate"), outcome, median, outcome == "ok"});
    ++study->outcomes[outcome];
    study->seconds += log.number(i, "seconds").value_or(0);
    if (median && log.hasColumn("settings"))
      study->found.push_back({readSettings(log.text(i, "settings")), *median});
  }
  return studies;
}

/// The entry of a list that is about the problem.
std::optional<Field> entryOf(const std::optional<Field> &list, const std::string &problem) {
  if (list)
    for (const Field &entry : list->items())
      if (entry["problem"].text() == problem)
        return entry;
  return std::nullopt;
}

std::optional<Field> readIfThere(const fs::path &file) {
  std::error_code error;
  if (!fs::exists(file, error))
    return std::nullopt;
  return Field::read(file.string(), kTuningRemedy);
}

/// What the problem's kernel takes as shipped: by the file, or by the log when that names it only.
std::optional<double> shippedOf(const std::optional<Field> &best, const Study &study) {
  if (!best)
    return std::nullopt;
  if (best->has("shipped_us"))
    return (*best)["shipped_us"].number();
  const std::string name = best->textOr("shipped", "");
  for (const Evaluation &evaluation : study.evaluations)
    if (evaluation.candidate == name)
      return evaluation.microseconds;
  return std::nullopt;
}

std::string outcomeText(const Study &study) {
  std::string text =
      fmt::format("{} in {} s:", counted(study.evaluations.size(), "evaluation"), numberText(study.seconds));
  for (const auto &[outcome, count] : study.outcomes)
    text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", count, outcome);
  return text;
}

std::string verdictText(const std::optional<Field> &best) {
  if (!best)
    return "";
  if (!best->has("best_over_shipped") || !(*best)["best_over_shipped"].has("ratio"))
    return "What ships is the best that was found, or nothing faster was compared with it.";
  const Field ratio = (*best)["best_over_shipped"];
  return fmt::format("The best takes {:.3f} ({:.3f} to {:.3f}) of the shipped one's time, side by side.",
                     ratio["ratio"].number(), ratio["low"].number(), ratio["high"].number());
}

/// A setting of an elite: text or a number.
std::string settingText(const Field &value) { return value.raw().is_string() ? value.text() : value.raw().dump(); }

std::string elitesTable(const std::optional<Field> &entry) {
  if (!entry)
    return "";
  HtmlTable table("Elites", {{"candidate"}, {"median us", true}, {"samples", true}, {"settings"}});
  for (const Field &elite : (*entry)["elites"].items()) {
    std::string settings;
    if (elite.has("settings"))
      for (const auto &[axis, value] : elite["settings"].members())
        settings += fmt::format("{}{} = {}", settings.empty() ? "" : ", ", axis, settingText(value));
    table.add({elite["candidate"].text(), numberText(elite["median_us"].number()),
               elite.has("samples_us") ? fmt::format("{}", elite["samples_us"].items().size()) : "-", settings});
  }
  return table.empty() ? paragraph("No candidate was timed to the end.") : table.markup();
}

/// The first ranks of generation 0.
std::string microTable(const fs::path &file, const std::string &problem) {
  std::error_code error;
  if (!fs::exists(file, error))
    return paragraph("micro_log.csv is not there: generation 0 is not shown.");
  const Csv log = Csv::read(file.string(), kTuningRemedy);
  HtmlTable table("Generation 0: the first of the ranking",
                  {{"rank", true}, {"candidate"}, {"us by the model", true}, {"us by its tile", true}});
  const auto told = [&](size_t row, const char *column) {
    const std::optional<double> figure = log.hasColumn(column) ? log.number(row, column) : std::nullopt;
    return figure ? numberText(*figure) : std::string("-");
  };
  size_t shown = 0;
  for (size_t i = 0; i < log.size() && shown < kMicroRows; ++i)
    if (log.text(i, "problem") == problem) {
      table.add({log.text(i, "rank"), log.text(i, "candidate"), told(i, "model_us"), told(i, "median_us")});
      ++shown;
    }
  return table.empty() ? "" : table.markup();
}

/// "1,8,8,512,512,64 mask=causal" with the shape in words.
std::string headingOf(const std::string &problem) {
  const size_t space = problem.find(' ');
  return problemText(problem.substr(0, space)) + (space == std::string::npos ? "" : problem.substr(space));
}

struct Evidence {
  fs::path directory;
  std::optional<Field> best, elites;
};

void addStudy(Section &section, const Evidence &evidence, const Study &study, size_t number) {
  const std::optional<Field> best = entryOf(evidence.best, study.problem);
  const Chart progress = progressChart(fmt::format("tuning-{}", number), "Search on " + headingOf(study.problem),
                                       study.evaluations, shippedOf(best, study));
  section.charts.push_back(progress);
  section.body += textElement("h3", {}, headingOf(study.problem)) + "\n" + paragraph(outcomeText(study));
  if (const std::string verdict = verdictText(best); !verdict.empty())
    section.body += paragraph(verdict);
  section.body += sideBySide(progress, elitesTable(entryOf(evidence.elites, study.problem)));
  const std::string micro = microTable(evidence.directory / "micro_log.csv", study.problem);
  const auto landscape =
      landscapeChart(fmt::format("landscape-{}", number),
                     "Least time by the two axes that explain most: " + headingOf(study.problem), study.found);
  if (landscape) {
    section.charts.push_back(*landscape);
    section.body += sideBySide(*landscape, micro);
  } else {
    section.body +=
        micro + paragraph(study.found.empty() ? "No landscape: evo_log.csv names no settings of a candidate "
                                                "that was timed."
                                              : "No landscape: all candidates have the same settings.");
  }
}

} // namespace

Section tuningSection(const std::vector<std::string> &directories) {
  if (directories.empty())
    return missingSection("tuning", "Tuning", "fagen-run tune SPEC --evidence DIR");
  Section section{"tuning", "Tuning", "", "", {}, false};
  section.body +=
      paragraph("Each evaluation of a search and the best so far; then the least time for each pair of values "
                "of the two axes that explain most of the differences.");
  size_t studies = 0, evaluations = 0;
  for (const std::string &directory : directories) {
    std::error_code error;
    if (!fs::is_directory(directory, error))
      throw UserError(fmt::format("{} is not a directory; {}", directory, kTuningRemedy));
    const Evidence evidence{directory, readIfThere(fs::path(directory) / "evo_best.json"),
                            readIfThere(fs::path(directory) / "elite.json")};
    section.body += paragraph(directory, "source");
    for (const Study &study : readLog((fs::path(directory) / "evo_log.csv").string())) {
      addStudy(section, evidence, study, ++studies);
      evaluations += study.evaluations.size();
    }
  }
  section.summary = counted(studies, "problem") + ", " + counted(evaluations, "evaluation");
  return section;
}

} // namespace fagen::lab::page
