// fagen: times from a file instead of a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simulated_timing.h"
#include "lab/cases/abi.h"
#include "lab/support/json_file.h"
#include "lab/support/random.h"
#include "lab/time/baselines/names.h"

#include <fagen/table.h>

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unistd.h>

namespace fagen::lab {

using nlohmann::json;

namespace {

/// What the file says of one contestant.
struct Entry {
  std::string name, shape, mask, dtype, l2;
  std::vector<double> microseconds;
  double median = 0, noise = 0.01;
  std::vector<double> clockMhz, watts, celsius;
  int registers = -1, localBytes = -1;
  std::string fails, refuses, library;
  bool hangs = false, crashes = false;

  bool isAbout(const std::string &contestant, const Case &c, L2State state) const {
    return name == contestant && (shape.empty() || parseShape(shape) == c.shape) &&
           (mask.empty() || mask == maskText(c)) && (dtype.empty() || parseDType(dtype) == c.dtype) &&
           (l2.empty() || (l2 == "cold") == (state == L2State::Cold));
  }
};

std::vector<double> numbers(const json &value) {
  return value.is_array() ? value.get<std::vector<double>>() : std::vector<double>{value.get<double>()};
}

/// Time goes on by what replays take: so that every measurement ends, none takes nothing, or ages.
void requireTimes(const Entry &entry) {
  constexpr double kLeast = 1e-3, kMost = 1e12, kMostNoise = 0.1; // microseconds; of normal deviates
  std::vector<double> times = entry.microseconds;
  if (entry.median != 0)
    times.push_back(entry.median);
  for (double us : times)
    if (!(us > 0))
      throw UserError(fmt::format("the entry of {} has a time that is not above 0", entry.name));
    else if (us < kLeast || us > kMost)
      throw UserError(fmt::format("the entry of {} has a time of {:g} us; {:g} to {:g} are possible", entry.name, us,
                                  kLeast, kMost));
  if (!(entry.noise >= 0 && entry.noise <= kMostNoise))
    throw UserError(
        fmt::format("the entry of {} has noise {:g}; 0 to {:g} are possible", entry.name, entry.noise, kMostNoise));
}

Entry readEntry(const json &value) {
  static const std::string kWords[] = {"name",      "shape", "mask",    "dtype",     "l2",          "us",
                                       "median_us", "noise", "fails",   "refuses",   "hangs",       "crashes",
                                       "clock_mhz", "watts", "celsius", "registers", "local_bytes", "library"};
  for (const auto &[key, ignored] : value.items())
    if (std::find(std::begin(kWords), std::end(kWords), key) == std::end(kWords))
      throw UserError(fmt::format("unknown key '{}' of an entry", key));
  Entry entry;
  entry.name = value.at("name");
  entry.shape = value.value("shape", "");
  entry.mask = value.value("mask", "");
  entry.dtype = value.value("dtype", "");
  entry.l2 = value.value("l2", "");
  auto list = [&](const char *key, std::vector<double> &place) {
    if (value.contains(key))
      place = numbers(value.at(key));
  };
  list("us", entry.microseconds);
  list("clock_mhz", entry.clockMhz);
  list("watts", entry.watts);
  list("celsius", entry.celsius);
  entry.median = value.value("median_us", 0.0);
  entry.noise = value.value("noise", 0.01);
  entry.registers = value.value("registers", -1);
  entry.localBytes = value.value("local_bytes", -1);
  entry.library = value.value("library", "");
  entry.fails = value.value("fails", "");
  entry.refuses = value.value("refuses", "");
  entry.hangs = value.value("hangs", false);
  entry.crashes = value.value("crashes", false);
  bool ends = !entry.fails.empty() || !entry.refuses.empty() || entry.hangs || entry.crashes;
  if (!ends && entry.microseconds.empty() && !(entry.median > 0))
    throw UserError(
        fmt::format("the entry of {} has neither us, median_us, fails, refuses, hangs nor crashes", entry.name));
  requireTimes(entry);
  if (!entry.shape.empty())
    parseShape(entry.shape);
  if (!entry.dtype.empty())
    parseDType(entry.dtype);
  return entry;
}

class SimulatedLaunchable;

/// What replays and sleeping change.
struct World {
  double seconds = 0;
  Telemetry sensors;
  double joules = 0;
  SimulatedLaunchable *running = nullptr; ///< the last to replay
  std::map<const fagen_row *, std::string> prepared;
};

class SimulatedLaunchable : public Launchable {
public:
  SimulatedLaunchable(const Entry &entry, uint64_t seed, World &world) : entry(entry), world(world), seed(seed) {
    registers = entry.registers;
    localBytes = entry.localBytes;
    library = entry.library;
  }
  ~SimulatedLaunchable() override {
    if (world.running == this)
      world.running = nullptr;
  }

  void build(int count) override { launches = count; }

  double replay() override {
    if (entry.crashes)
      std::abort();
    while (entry.hangs)
      pause();
    if (!entry.fails.empty())
      throw CannotRun(entry.fails);
    double time = entry.microseconds.empty() ? entry.median * (1 + entry.noise * NormalStream(seed, 0).at(replays))
                                             : entry.microseconds[replays % entry.microseconds.size()];
    ++replays;
    double elapsed = time * launches / 1e6;
    auto reading = [&](const std::vector<double> &values) {
      return values.empty() ? 0 : values[std::min(readings, values.size() - 1)];
    };
    world.seconds += elapsed;
    world.running = this;
    double watts = reading(entry.watts);
    world.sensors = {reading(entry.clockMhz), watts, reading(entry.celsius)};
    world.joules += watts * elapsed;
    return time;
  }

  void endReading() { ++readings; }

private:
  const Entry &entry;
  World &world;
  uint64_t seed;
  int launches = 1;
  uint64_t replays = 0;
  size_t readings = 0;
};

class SimulatedProblem : public TimedProblem {
public:
  SimulatedProblem(const std::vector<Entry> &entries, const Case &c, uint64_t seed, L2State l2, World &world)
      : entries(entries), problem(c), seed(seed), l2(l2), world(world) {}

  /// As the runtime, which finds code by its row: one that is freed gets its code mixed up with the next one there.
  std::unique_ptr<Launchable> prepare(const fagen_choice &choice) override {
    std::string variant = choice.row->variant;
    if (world.prepared.try_emplace(choice.row, variant).first->second != variant)
      throw std::logic_error(fmt::format("the row of {} lies where another's was", variant));
    return find(variant);
  }
  std::unique_ptr<Launchable> prepareBaseline(const std::string &name) override { return find(name); }

private:
  std::unique_ptr<Launchable> find(const std::string &name) const {
    auto entry = std::find_if(entries.begin(), entries.end(),
                              [&](const Entry &candidate) { return candidate.isAbout(name, problem, l2); });
    if (entry == entries.end())
      throw CannotRun(fmt::format("nothing is recorded of {} on {}", name, formatCase(problem)));
    if (!entry->refuses.empty())
      throw CannotRun(entry->refuses);
    // Each contestant and problem has noise of its own.
    return std::make_unique<SimulatedLaunchable>(*entry, seed ^ hash(name + formatCase(problem)), world);
  }

  /// FNV-1a: the same everywhere.
  static uint64_t hash(const std::string &text) {
    uint64_t value = 0xcbf29ce484222325;
    for (unsigned char letter : text)
      value = (value ^ letter) * 0x100000001b3;
    return value;
  }

  const std::vector<Entry> &entries;
  Case problem;
  uint64_t seed;
  L2State l2;
  World &world;
};

class SimulatedTiming : public TimingDevice {
public:
  explicit SimulatedTiming(const json &file) {
    const json &described = file.at("device");
    label = described.value("name", "simulated");
    sm = described.at("compute_capability");
    hasPeer = file.value("peer", false);
    for (const json &entry : file.at("entries"))
      entries.push_back(readEntry(entry));
    fagen_device *handle = nullptr;
    if (fagen_device_describe(sm, described.value("sms", 1u), &handle) != FAGEN_OK)
      throw UserError(fagen_last_error());
    device.reset(handle);
  }

  std::string name() const override { return label; }
  uint32_t computeCapability() const override { return sm; }
  fagen_device *queryDevice() override { return device.get(); }
  bool timesBaseline(const std::string &baseline) const override { return !hasPeer || !isSdpa(baseline); }
  double now() override { return world.seconds; }
  void sleep(double seconds) override { world.seconds += seconds; }

  std::unique_ptr<TimedProblem> open(const Case &c, uint64_t seed, L2State l2) override {
    turnsBegan = false;
    return std::make_unique<SimulatedProblem>(entries, c, seed, l2, world);
  }

  /// A reading ends the one entry of whoever replayed since the last; the replays of preparation have none.
  Telemetry telemetry() override {
    if (world.running && turnsBegan)
      world.running->endReading();
    world.running = nullptr;
    turnsBegan = true;
    return world.sensors;
  }

  void beginEnergy() override { begun = world; }
  /// By the watts of who runs: it has no steps, and no error.
  Energy endEnergy() override {
    if (world.joules == begun.joules)
      return {0, 0, 0, "the record has no watts"};
    return {world.joules - begun.joules, world.seconds - begun.seconds, 0, ""};
  }

private:
  struct Destroy {
    void operator()(fagen_device *handle) const { fagen_device_destroy(handle); }
  };
  std::string label;
  uint32_t sm = 0;
  bool hasPeer = false;
  std::vector<Entry> entries;
  std::unique_ptr<fagen_device, Destroy> device;
  World world, begun;
  bool turnsBegan = false;
};

} // namespace

std::unique_ptr<TimingDevice> makeSimulatedTiming(const std::filesystem::path &file) {
  return readJsonFile<json>(file.string(), "a record of times",
                            [](const json &record) { return std::make_unique<SimulatedTiming>(record); });
}

} // namespace fagen::lab
