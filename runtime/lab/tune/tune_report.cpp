// fagen: what a search found: table, JSON, evidence files, a landscape to replay.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tune/model.h"
#include "tune/tune.h"

#include <fmt/format.h>
#include <fstream>

namespace fagen::lab::tune {

namespace fs = std::filesystem;

std::string tuneTable(const TuneReport &report) {
  TextTable table({{"shape"},
                   {"mask"},
                   {"shipped"},
                   {"us", true},
                   {"best"},
                   {"us", true},
                   {"best / shipped (95 %)", true},
                   {"space", true},
                   {"run", true},
                   {"known", true},
                   {"ended"}});
  for (const StudyResult &study : report.studies) {
    const Record *shipped = study.shipped();
    std::string ratio = "1";
    if (study.duel.contains("ratio"))
      ratio = fmt::format("{:.3f} ({:.3f} to {:.3f})", study.duel.at("ratio").get<double>(),
                          study.duel.at("low").get<double>(), study.duel.at("high").get<double>());
    else if (!study.duel.is_null())
      ratio = "-";
    bool any = !study.elites.empty();
    table.add({formatShape(study.problem.shape), std::string(nameOf(study.problem.mask)),
               nameOf(study.space, study.space.points.front()),
               shipped && shipped->timed() ? fmt::format("{:.2f}", shipped->median) : "-",
               any ? study.elites.front().record.candidate : "-",
               any ? fmt::format("{:.2f}", study.elites.front().record.median) : "-", any ? ratio : "-",
               std::to_string(study.ranked.size()), std::to_string(study.run), std::to_string(study.known),
               study.ended});
  }
  return table.text();
}

static Json recordJson(const Record &record) {
  Json json{{"candidate", record.candidate}, {"settings", Json::parse(record.settings)}, {"outcome", record.outcome}};
  if (!record.why.empty())
    json.update({{"stage", record.stage}, {"why", record.why}});
  if (record.timed())
    json["median_us"] = record.median;
  json.update({{"generation", record.generation}, {"seconds", record.seconds}, {"samples_us", record.samples}});
  return json;
}

static Json elitesJson(const StudyResult &study) {
  Json elites = Json::array();
  for (const Elite &elite : study.elites)
    elites.push_back(recordJson(elite.record));
  return elites;
}

Json tuneJson(const TuneReport &report, const TuneOptions &options) {
  Json json{{"strategy", options.search.strategy},
            {"seed", options.search.seed},
            {"budget_s", options.budgetSeconds},
            {"space", options.derived ? "derived" : "spec"},
            {"gated", options.gated},
            {"rounds", options.rounds},
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
               {"shipped", nameOf(study.space, study.space.points.front())},
               {"elites", elitesJson(study)},
               {"best_over_shipped", study.duel},
               {"log", Json::array()}};
    for (const Record &record : study.log)
      entry["log"].push_back(recordJson(record));
    json["studies"].push_back(entry);
  }
  return json;
}

//===-- Evidence --------------------------------------------------------------------------------------------------===//

static void write(const fs::path &file, const std::string &text) {
  std::ofstream stream(file);
  stream << text;
  if (!stream.flush())
    throw UserError(fmt::format("cannot write {}", file.string()));
}

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char letter : text)
    result += letter == '"' ? "\"\"" : std::string(1, letter == '\n' ? ' ' : letter);
  return result + '"';
}

void writeEvidence(const TuneReport &report, const fs::path &directory) {
  fs::create_directories(directory);
  std::string micro = "problem,rank,candidate,cost,registers,ctas_per_sm,shared_bytes\n";
  std::string evolution = "problem,number,generation,candidate,outcome,stage,why,median_us,best_us,seconds\n";
  Json microBest = Json::array(), evolutionBest = Json::array(), elites = Json::array();
  for (const StudyResult &study : report.studies) {
    std::string problem = quoted(formatCase(study.problem));
    for (size_t i = 0; i < study.ranked.size(); ++i) {
      const Point &point = study.ranked[i];
      const Estimate &estimate = study.space.estimates.at(point);
      micro += fmt::format(
          "{},{},{},{:.1f},{},{},{}\n", problem, i + 1, nameOf(study.space, point),
          modelCost(study.space, point, study.problem.shape, study.problem.mask, static_cast<int>(report.sms)),
          estimate.registers, estimate.ctasPerSm, estimate.sharedBytes);
    }
    microBest.push_back({{"problem", formatCase(study.problem)}, {"candidate", nameOf(study.space, study.ranked[0])}});
    double best = 0;
    for (size_t i = 0; i < study.log.size(); ++i) {
      const Record &record = study.log[i];
      if (record.outcome == "ok" && (best == 0 || record.median < best))
        best = record.median;
      evolution += fmt::format("{},{},{},{},{},{},{},{},{},{:.3f}\n", problem, i + 1, record.generation,
                               record.candidate, record.outcome, record.stage, quoted(record.why),
                               record.timed() ? fmt::format("{:.3f}", record.median) : "",
                               best > 0 ? fmt::format("{:.3f}", best) : "", record.seconds);
    }
    Json found = elitesJson(study);
    evolutionBest.push_back({{"problem", formatCase(study.problem)},
                             {"best", found.empty() ? Json() : found[0]},
                             {"best_over_shipped", study.duel}});
    elites.push_back({{"problem", formatCase(study.problem)}, {"elites", found}});
  }
  write(directory / "micro_log.csv", micro);
  write(directory / "micro_best.json", microBest.dump(1) + '\n');
  write(directory / "evo_log.csv", evolution);
  write(directory / "evo_best.json", evolutionBest.dump(1) + '\n');
  write(directory / "elite.json", elites.dump(1) + '\n');
}

/// "kernel_schedule_rest": the candidate's name stands for the schedule's.
static std::string variantOf(const StudyResult &study, const std::string &candidate) {
  return fmt::format("{}_{}{}", study.base.kernel, candidate, problemSuffix(study.base));
}

Json landscapeJson(const TuneReport &report) {
  Json entries = Json::array();
  for (const StudyResult &study : report.studies)
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
  return {{"device", {{"name", report.device}, {"compute_capability", report.sm}, {"sms", report.sms}}},
          {"entries", entries}};
}

} // namespace fagen::lab::tune
