// fagen: what a search found: table, JSON, evidence files, a landscape to replay.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/write_file.h"
#include "tune.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

std::string plainReason(const Record &record) {
  std::istringstream words(record.why);
  std::string plain = record.stage;
  for (std::string word; words >> word;)
    plain +=
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }) ? " .." : " " + word;
  return plain;
}

std::string StudyResult::whyTheyFailed() const {
  std::map<std::string, std::vector<const Record *>> failed;
  size_t count = 0;
  for (const Record &record : log)
    if (!record.timed()) {
      failed[plainReason(record)].push_back(&record);
      ++count;
    }
  if (failed.empty())
    return "";
  const auto commonest = std::max_element(
      failed.begin(), failed.end(), [](const auto &a, const auto &b) { return a.second.size() < b.second.size(); });
  const Record &first = *commonest->second.front();
  const std::string why = first.why.substr(0, first.why.find('\n'));
  return fmt::format("{} of {} candidates failed, {} of them like {} ({}): {}", count, log.size(),
                     commonest->second.size(), first.candidate, first.stage, why);
}

/// What the table's row does not say of how a search ended.
static std::string remarksOn(const StudyResult &study) {
  const std::string problem = fmt::format("{} {}: ", formatShape(study.problem.shape), nameOf(study.problem.mask));
  std::string text;
  if (const std::string why = study.whyTheyFailed(); !why.empty())
    text += problem + why + '\n';
  if (study.ended == "failed")
    text += problem + "a whole generation failed for one reason, so the search ended there\n";
  if (study.ended == "budget" && study.log.empty())
    text += problem + "the budget ended before the first candidate: give a longer --budget\n";
  return text;
}

std::string tuneTable(const TuneReport &report) {
  TextTable table({{"shape"},
                   {"mask"},
                   {"shipped"},
                   {unitOf(report.measure), true},
                   {"best"},
                   {unitOf(report.measure), true},
                   {"best / shipped (95 %)", true},
                   {"space", true},
                   {"run", true},
                   {"known", true},
                   {"ended"}});
  for (const StudyResult &study : report.studies) {
    const Record *shipped = study.shipped();
    Json over = study.bestOverShipped();
    std::string ratio = over.is_null() ? "1"
                                       : fmt::format("{:.3f} ({:.3f} to {:.3f})", over.at("ratio").get<double>(),
                                                     over.at("low").get<double>(), over.at("high").get<double>());
    bool any = !study.elites.empty();
    table.add({formatShape(study.problem.shape), std::string(nameOf(study.problem.mask)), study.shippedName(),
               shipped && shipped->timed() ? fmt::format("{:.2f}", shipped->median) : "-",
               any ? study.elites.front().record.candidate : "-",
               any ? fmt::format("{:.2f}", study.elites.front().record.median) : "-", any ? ratio : "-",
               std::to_string(study.ranked.size()), std::to_string(study.run), std::to_string(study.known),
               study.ended});
  }
  std::string text = table.text();
  for (const StudyResult &study : report.studies)
    text += remarksOn(study);
  for (const StudyResult &study : report.studies)
    if (study.slow)
      text +=
          fmt::format("{} {}: {} of {} candidates are left out, which the time model finds more than {:.3g} times as "
                      "slow as the fastest\n",
                      formatShape(study.problem.shape), nameOf(study.problem.mask), study.slow,
                      study.slow + study.ranked.size(), study.space.pruneOver);
  return text;
}

static Json recordJson(const Record &record, Measure measure = Measure::Time) {
  Json json{{"candidate", record.candidate}, {"settings", Json::parse(record.settings)}, {"outcome", record.outcome}};
  if (!record.why.empty())
    json.update({{"stage", record.stage}, {"why", record.why}});
  if (record.timed())
    json[medianKey(measure)] = record.median;
  json.update({{"generation", record.generation},
               {"seconds", record.seconds},
               {measure == Measure::Joules ? "samples_mj" : "samples_us", record.samples}});
  return json;
}

static Json elitesJson(const StudyResult &study, Measure measure = Measure::Time) {
  Json elites = Json::array();
  for (const Elite &elite : study.elites)
    elites.push_back(recordJson(elite.record, measure));
  return elites;
}

Json tuneJson(const TuneReport &report, const TuneOptions &options) {
  Json json{{"strategy", options.search.strategy},
            {"seed", options.search.seed},
            {"budget_s", options.budgetSeconds},
            {"space", options.derived ? "derived" : "spec"},
            {"gated", options.gated},
            {"rounds", options.rounds},
            {"measure", options.measure == Measure::Joules ? "joules" : "time"},
            {"studies", Json::array()}};
  for (const StudyResult &study : report.studies) {
    Json entry{{"problem", formatCase(study.problem)},
               {"mask", nameOf(study.problem.mask)},
               {"variant", study.base.variant},
               {"target", study.base.target},
               {"key",
                {{"gpu", study.key.gpu},
                 {"driver", study.key.driver},
                 {"compiler", study.key.compiler},
                 {"spec", study.key.specHash}}},
               {"candidates", study.ranked.size()},
               {"run", study.run},
               {"known", study.known},
               {"ended", study.ended},
               {"shipped", study.shippedName()},
               {"elites", elitesJson(study, report.measure)},
               {"pruned", study.space.pruned},
               {"pruned_by_model", study.slow},
               {"contest", study.contest},
               {"best_over_shipped", study.bestOverShipped()},
               {"log", Json::array()}};
    for (const Record &record : study.log)
      entry["log"].push_back(recordJson(record, report.measure));
    json["studies"].push_back(entry);
  }
  return json;
}

//===-- Evidence --------------------------------------------------------------------------------------------------===//

static std::string csvText(const std::string &text) {
  std::string result = "\"";
  for (char letter : text)
    result += letter == '"' ? "\"\"" : std::string(1, letter == '\n' ? ' ' : letter);
  return result + '"';
}

/// "tile=128x64;warps=4;..."
static std::string settingsText(const std::map<std::string, std::string> &settings) {
  std::string text;
  for (const auto &[key, value] : settings) {
    text += fmt::format("{}{}=", text.empty() ? "" : ";", key);
    std::copy_if(value.begin(), value.end(), std::back_inserter(text), [](char letter) { return letter != ' '; });
  }
  return csvText(text);
}

static constexpr size_t kLoggedRanks = 500;

static std::string microLog(const StudyResult &study) {
  std::string text;
  for (size_t i = 0; i < std::min(kLoggedRanks, study.ranked.size()); ++i) {
    const Point &point = study.ranked[i];
    const Estimate &estimate = study.space.estimates.at(point);
    const MicroTile *tile = i < study.micro.size() ? &study.micro[i] : nullptr;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csvText(formatCase(study.problem)), i + 1,
                        nameOf(study.space, point), settingsText(settingsOf(study.space, point)),
                        estimate.microseconds ? fmt::format("{:.3f}", estimate.microseconds) : "", estimate.registers,
                        estimate.ctasPerSm, estimate.sharedBytes,
                        tile ? fmt::format("{:.3f},{:.3f}", tile->shorter, tile->longer) : ",",
                        tile ? fmt::format("{:.3f}", tile->predicted) : "");
  }
  return text;
}

static std::string evolutionLog(const StudyResult &study) {
  std::string text;
  double best = 0;
  for (size_t i = 0; i < study.log.size(); ++i) {
    const Record &record = study.log[i];
    if (record.outcome == "ok" && (best == 0 || record.median < best))
      best = record.median;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{:.3f}\n", csvText(formatCase(study.problem)), i + 1, record.generation,
        record.candidate, settingsText(Json::parse(record.settings).get<std::map<std::string, std::string>>()),
        record.outcome, record.stage, csvText(record.why), record.timed() ? fmt::format("{:.3f}", record.median) : "",
        best > 0 ? fmt::format("{:.3f}", best) : "", record.seconds);
  }
  return text;
}

static Json microBest(const StudyResult &study) {
  Json best{{"problem", formatCase(study.problem)}, {"candidate", nameOf(study.space, study.ranked[0])}};
  if (study.micro.empty())
    best["by"] = "model";
  else
    best.update({{"by", "tiles"}, {"predicted_us", study.micro[0].predicted}});
  return best;
}

static Json evolutionBest(const StudyResult &study) {
  const Record *shipped = study.shipped();
  return {{"problem", formatCase(study.problem)},
          {"best", study.elites.empty() ? Json() : recordJson(study.elites[0].record)},
          {"shipped", study.shippedName()},
          {"shipped_us", shipped && shipped->timed() ? Json(shipped->median) : Json()},
          {"best_over_shipped", study.bestOverShipped()},
          {"contest", study.contest}};
}

void writeEvidence(const TuneReport &report, const fs::path &directory) {
  makeDirectory(directory.string());
  std::string micro =
      "problem,rank,candidate,settings,model_us,registers,ctas_per_sm,shared_bytes,shorter_us,longer_us,"
      "median_us\n";
  std::string evolution = "problem,number,generation,candidate,settings,outcome,stage,why,median_us,best_us,seconds\n";
  Json microBests = Json::array(), evolutionBests = Json::array(), elites = Json::array();
  for (const StudyResult &study : report.studies) {
    micro += microLog(study);
    evolution += evolutionLog(study);
    microBests.push_back(microBest(study));
    evolutionBests.push_back(evolutionBest(study));
    elites.push_back({{"problem", formatCase(study.problem)}, {"elites", elitesJson(study)}});
  }
  writeFile((directory / "micro_log.csv").string(), micro);
  writeFile((directory / "micro_best.json").string(), microBests.dump(1) + '\n');
  writeFile((directory / "evo_log.csv").string(), evolution);
  writeFile((directory / "evo_best.json").string(), evolutionBests.dump(1) + '\n');
  writeFile((directory / "elite.json").string(), elites.dump(1) + '\n');
}

//===-- Landscapes ------------------------------------------------------------------------------------------------===//

/// "kernel_schedule_rest": the candidate's name stands for the schedule's.
static std::string variantOf(const StudyResult &study, const std::string &candidate) {
  return fmt::format("{}_{}{}", study.base.kernel, candidate, problemSuffix(study.base));
}

/// What tune-replay reads: axes, and the points in the order in which the search would see them.
static Json studyLandscape(const StudyResult &study) {
  std::map<std::string, const Record *> records;
  for (const Record &record : study.log)
    records[record.candidate] = &record;
  Json axes = Json::array(), points = Json::array();
  for (const Axis &axis : study.space.axes)
    axes.push_back({{"name", axis.name}, {"values", axis.values}, {"structural", axis.structural}});
  for (const Point &point : study.ranked) {
    auto found = records.find(nameOf(study.space, point));
    if (found != records.end())
      points.push_back({{"at", point}, {"us", found->second->timed() ? Json(found->second->median) : Json()}});
  }
  return {{"problem", formatCase(study.problem)},
          {"shipped", study.space.points.front()},
          {"axes", axes},
          {"points", points}};
}

Json landscapeJson(const TuneReport &report) {
  Json entries = Json::array(), studies = Json::array();
  for (const StudyResult &study : report.studies) {
    studies.push_back(studyLandscape(study));
    for (const Record &record : study.log) {
      Json entry{{"name", variantOf(study, record.candidate)},
                 {"shape", formatShape(study.problem.shape)},
                 {"mask", nameOf(study.problem.mask)},
                 {"dtype", nameOf(study.problem.dtype)}};
      if (record.timed())
        entry["us"] = record.samples;
      else
        entry["refuses"] = record.outcome + ": " + record.why;
      entries.push_back(entry);
    }
  }
  return {{"device", {{"name", report.device}, {"compute_capability", report.sm}, {"sms", report.sms}}},
          {"machine", report.machine},
          {"studies", studies},
          {"entries", entries}};
}

//===-- For the compiler ------------------------------------------------------------------------------------------===//

Json exportJson(Store &store) {
  Json studies = Json::array();
  for (const Store::Evidence &evidence : store.evidence()) {
    Json study{{"gpu", evidence.key.gpu},
               {"driver", evidence.key.driver},
               {"compiler", evidence.key.compiler},
               {"spec_hash", evidence.key.specHash},
               {"about", Json::parse(evidence.description)},
               {"times", Json::array()}};
    const bool metered = study["about"].value("measure", "time") == "joules";
    for (const Record &record : evidence.records)
      study["times"].push_back({{"candidate", record.candidate},
                                {"settings", Json::parse(record.settings)},
                                {medianKey(metered ? Measure::Joules : Measure::Time), record.median},
                                {"replays", record.samples.size()}});
    studies.push_back(study);
  }
  return {{"fagen_tuned", 1}, {"studies", studies}};
}

} // namespace fagen::lab::tune
