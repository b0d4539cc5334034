// fagen: results of a GPU, kept in a file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recording.h"
#include "accumulation.h"

#include <fmt/format.h>
#include <fstream>

namespace fagen::lab {

Recording Recording::load(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw UserError(fmt::format("cannot read {}", path));
  Recording recording;
  Json whole = Json::parse(file, nullptr, false);
  if (whole.is_discarded() || !whole.contains("conformance"))
    throw UserError(fmt::format("{} is not a result of fagen-run conformance", path));
  recording.result = whole["conformance"];
  for (const Json &device : recording.result["devices"])
    if (device != "emulator")
      recording.gpu = device;
  if (recording.gpu.empty())
    throw UserError(fmt::format("{} has no results of a GPU; make it on one by --record", path));
  return recording;
}

const Json *Recording::resultOf(const std::string &name) const {
  for (const Json &entry : result["functions"])
    if (entry["name"] == name)
      for (const Json &measured : entry["results"])
        if (measured["device"] == gpu)
          return &measured;
  return nullptr;
}

/// The way to add that gave the GPU's bits everywhere; empty when none did.
std::string Recording::modelOf(const std::string &name) const {
  for (const Json &model : result["models"])
    if (model["name"] == name && !model["best"].empty() && model["best"][0]["different"] == 0)
      return model["best"][0]["model"];
  return "";
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
  const Json *recorded = resultOf(c.name);
  if (!recorded)
    return fmt::format("not in the recording of {}; record again", gpu);
  if (uint64_t wrong = (*recorded)["wrong"])
    return fmt::format("{} words of {} are wrong", wrong, gpu);
  const std::string hash = (*recorded)["hash"];
  if (c.exact() && hash != fmt::format("{:016x}", m.hash))
    return fmt::format("the bits differ from those of {}", gpu);
  if (!c.exact() && !((*recorded)["max_of_bound"] <= 1.0))
    return fmt::format("{} was beyond the bound", gpu);
  if (!c.dot)
    return "";
  const std::string model = modelOf(c.name);
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
