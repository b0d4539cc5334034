// fagen: fuzz target: any text as each kind of file that the compiler's tools and the laboratory read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fuzz-files-replay --runs=N FILE...
//
// Every reader gets every text: those that it is not for refuse it at once. Fails on a crash, and on an exception that
// is not a user's mistake, by which a tool would end as by a mistake of its own.

#include "lab/check/mutation.h"
#include "lab/conformance/recording.h"
#include "lab/kernel_set/listing.h"
#include "lab/profile/counter_device.h"
#include "lab/program/plan.h"
#include "lab/report/page.h"
#include "lab/support/write_file.h"
#include "lab/time/simulated_timing.h"
#include "lab/tune/replay.h"
#include "tools/fagen/TunedFile.h"

#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace fagen::lab;

namespace {

/// A directory for the text under the names that readers look for; removed at the end.
struct Place {
  Place() {
    std::string name = (fs::temp_directory_path() / "fagen-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data()))
      abort();
    directory = name;
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
  }
  void write(const std::string &name, std::string_view text) const {
    std::ofstream(directory / name, std::ios::binary) << text;
  }
  /// The sources that a manifest names lie next to it.
  void writeSources(std::string_view text) const {
    constexpr std::string_view kKey = "\"source\": \"";
    for (size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at + 1)) {
      const size_t begin = at + kKey.size(), end = std::min(text.find('"', begin), text.size());
      const fs::path name = text.substr(begin, end - begin);
      std::error_code error;
      if (name.is_absolute() || name.string().find("..") != std::string::npos || name.string().size() > 200 ||
          fs::exists(directory / name, error))
        continue;
      fs::create_directories((directory / name).parent_path(), error);
      std::ofstream(directory / name) << "// nothing\n";
    }
  }

  fs::path directory;
};

void readSet(const fs::path &directory) {
  const auto sets = loadKernelSets({directory.string()});
  listTable(sets);
  listJson(sets);
}

void readTunedFile(const std::string &file) {
  llvm::SourceMgr sources;
  fagen::Diagnostics diags(sources, llvm::nulls());
  if (fagen::readTuned(file, diags).has_value() == diags.hasErrors())
    throw std::logic_error("neither times nor an error, or both");
}

void replayLandscapes(const std::string &file) {
  tune::ReplayOptions options;
  options.seeds = 1;
  tune::replay(tune::readLandscapes(file), options);
}

/// A report with one input.
void report(std::vector<std::string> page::Inputs::*kind, const std::string &input) {
  page::Inputs inputs;
  (inputs.*kind).push_back(input);
  page::pageOf("fuzz", {}, page::sectionsOf(inputs));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Place place;
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const std::string file = (place.directory / "manifest.json").string();
  place.write("manifest.json", text);
  place.writeSources(text);
  for (const char *name : {"evo_log.csv", "evo_best.json", "elite.json", "micro_log.csv"})
    place.write(name, text);
  const std::pair<const char *, std::function<void()>> readers[] = {
      {"tuned file", [&] { readTunedFile(file); }},
      {"kernel set", [&] { readSet(place.directory); }},
      {"landscape", [&] { replayLandscapes(file); }},
      {"recording", [&] { Recording::load(file); }},
      {"record of times", [&] { makeSimulatedTiming(file); }},
      {"record of counters", [&] { makeRecordedCounters(file, {}); }},
      {"mutants", [&] { readMutants(file); }},
      {"plan", [&] { ProgramPlan::load(file).sizeNames(); }},
      {"times of a report", [&] { report(&page::Inputs::times, file); }},
      {"gates of a report", [&] { report(&page::Inputs::gates, file); }},
      {"breakdown of a report", [&] { report(&page::Inputs::breakdowns, file); }},
      {"profile of a report", [&] { report(&page::Inputs::profiles, file); }},
      {"resources of a report", [&] { report(&page::Inputs::resources, file); }},
      {"tuning of a report", [&] { report(&page::Inputs::tunings, place.directory.string()); }}};
  for (const auto &[what, read] : readers)
    try {
      read();
    } catch (const UserError &) { // what it should say of most
    } catch (const std::exception &error) {
      std::fprintf(stderr, "fuzz-files: read as a %s: %s\n", what, error.what());
      abort();
    }
  return 0;
}
