// fagen: results of a GPU, kept in a file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recording.h"
#include "accumulation.h"
#include "lab/support/json_file.h"

#include <fmt/format.h>

namespace fagen::lab {

static constexpr unsigned kMostRounds = 100000; ///< as the command takes

Recording Recording::read(const Json &result) {
  Recording recording;
  recording.firstSeed = result.at("seed");
  recording.roundCount = result.at("rounds");
  for (const Json &device : result.at("devices"))
    if (device != "emulator")
      recording.gpu = device;
  if (recording.gpu.empty())
    throw UserError("it has no results of a GPU; make it on one by --record");
  if (recording.roundCount == 0 || recording.roundCount > kMostRounds)
    throw UserError(fmt::format("rounds is {}; 1 to {} are possible", recording.roundCount, kMostRounds));
  for (const Json &entry : result.at("functions"))
    for (const Json &measured : entry.at("results"))
      if (measured.at("device") == recording.gpu)
        recording.results[entry.at("name")] = {measured.at("wrong"), measured.at("hash"),
                                               measured.contains("max_of_bound") && measured["max_of_bound"] <= 1.0};
  if (result.contains("models"))
    for (const Json &model : result["models"])
      if (const Json &best = model.at("best"); !best.empty() && best.at(0).at("different") == 0)
        recording.models[model.at("name")] = best.at(0).at("model");
  return recording;
}

Recording Recording::load(const std::string &path) {
  return readJsonFile(path, "a result of fagen-run conformance",
                      [](const Json &file) { return read(file.at("conformance")); });
}

/// The hash of what the model gives for all rounds.
static uint64_t modelHash(const Accumulation &way, const ConformanceCase &c, uint64_t seed, unsigned rounds) {
  Hash hash;
  for (unsigned round = 0; round < rounds; ++round) {
    const WordList in = conformanceInput(c, seed, round);
    for (size_t i = 0; i < c.outWords; ++i)
      hash.add(accumulate(way, c.dot(in, i)));
  }
  return hash.value;
}

std::string Recording::disagreement(const ConformanceCase &c, const Measurement &m) const {
  const auto found = results.find(c.name);
  if (found == results.end())
    return fmt::format("not in the recording of {}; record again", gpu);
  const Result &recorded = found->second;
  if (recorded.wrong)
    return fmt::format("{} words of {} are wrong", recorded.wrong, gpu);
  const std::string &hash = recorded.hash;
  if (c.exact() && hash != fmt::format("{:016x}", m.hash))
    return fmt::format("the bits differ from those of {}", gpu);
  if (!c.exact() && !recorded.isWithinBound)
    return fmt::format("{} was beyond the bound", gpu);
  if (!c.dot)
    return "";
  const auto known = models.find(c.name);
  const std::string model = known == models.end() ? "" : known->second;
  const Accumulation *way = findAccumulation(model);
  if (!way)
    return fmt::format("no model gives the bits of {}", gpu);
  if (hash != fmt::format("{:016x}", modelHash(*way, c, seed(), rounds())))
    return fmt::format("the model '{}' no longer gives the bits of {}", model, gpu);
  return "";
}

std::vector<std::string> Recording::disagreements(const ConformanceReport &report) const {
  std::vector<std::string> all;
  for (const CaseReport &c : report.cases)
    if (std::string text = disagreement(*c.testCase, c.devices.front()); !text.empty())
      all.push_back(fmt::format("{}: {}", c.testCase->name, text));
  return all;
}

} // namespace fagen::lab
