// fagen: hardware counters from a file instead of a GPU, so that everything above a counter device is tested without
// one. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counter_device.h"
#include "cupti_process.h"
#include "lab/support/json_file.h"
#include "ncu.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fagen::lab {

using nlohmann::json;

namespace {

class RecordedCounters : public CounterDevice {
public:
  RecordedCounters(const json &file, const std::filesystem::path &logFile)
      : profiles(file.at("profile")), logFile(logFile) {
    const json &described = file.at("device");
    label = described.at("name");
    sm = described.at("compute_capability");
    smCount = described.at("sms");
    ncuRuns = file.value("ncu", "") == "process";
    cuptiRuns = file.value("cupti", "") == "process";
    for (const json &profile : profiles)
      requireProfile(profile);
    fagen_device *handle = nullptr;
    if (fagen_device_describe(sm, static_cast<uint32_t>(smCount), &handle) != FAGEN_OK)
      throw UserError(fagen_last_error());
    device.reset(handle);
  }

  std::string name() const override { return label; }
  uint32_t computeCapability() const override { return sm; }
  int sms() const override { return smCount; }
  fagen_device *queryDevice() override { return device.get(); }

  Reading count(CounterKind kind, const ProfiledRow &row, const std::vector<std::string> &metrics) override {
    if (kind == CounterKind::Ncu && ncuRuns)
      return countWithNcu(row, metrics);
    if (kind == CounterKind::Cupti && cuptiRuns)
      return countWithCuptiProcess(row, metrics, logFile);
    auto profile = std::find_if(profiles.begin(), profiles.end(), [&](const json &p) { return isAbout(p, row); });
    if (profile == profiles.end())
      throw CountersRefused(fmt::format("nothing is recorded of {} on {}", row.row->variant, formatCase(row.problem)));
    if (json refused = profile->value("refused", json::object()); refused.contains(nameOf(kind)))
      throw CountersRefused(refused.at(nameOf(kind)));
    for (const json &reading : profile->value("readings", json::array()))
      if (reading.at("source") == nameOf(kind))
        return {kind, reading.value("by", nameOf(kind)), reading.at("counters").get<Counters>()};
    throw CountersRefused(fmt::format("{} recorded nothing of {}", nameOf(kind), row.row->variant));
  }

  void launch(const ProfiledRow &, int) override {}

private:
  /// Everything that count() would read.
  static void requireProfile(const json &profile) {
    profile.at("variant").get<std::string>();
    parseShape(profile.at("shape").get<std::string>());
    parseMask(profile.value("mask", nameOf(Mask::None)));
    parseDType(profile.value("dtype", nameOf(DType::F16)));
    const json refused = profile.value("refused", json::object());
    for (const auto &[kind, why] : refused.items())
      why.get<std::string>();
    for (const json &reading : profile.value("readings", json::array())) {
      reading.at("counters").get<Counters>();
      reading.value("by", "");
      std::string source = reading.at("source");
      if (source != "cupti" && source != "ncu")
        throw UserError(fmt::format("unknown source '{}' of a reading; known: cupti, ncu", source));
    }
  }

  static bool isAbout(const json &profile, const ProfiledRow &row) {
    const Case &c = row.problem;
    return profile.at("variant") == row.row->variant && parseShape(profile.at("shape").get<std::string>()) == c.shape &&
           parseMask(profile.value("mask", nameOf(c.mask))) == c.mask &&
           parseDType(profile.value("dtype", nameOf(c.dtype))) == c.dtype;
  }

  struct Destroy {
    void operator()(fagen_device *handle) const { fagen_device_destroy(handle); }
  };
  json profiles;
  std::filesystem::path logFile;
  std::string label;
  uint32_t sm = 0;
  int smCount = 0;
  bool ncuRuns = false, cuptiRuns = false;
  std::unique_ptr<fagen_device, Destroy> device;
};

} // namespace

std::unique_ptr<CounterDevice> makeRecordedCounters(const std::filesystem::path &file,
                                                    const std::filesystem::path &logFile) {
  return readJsonFile<json>(file.string(), "a record of counters",
                            [&](const json &record) { return std::make_unique<RecordedCounters>(record, logFile); });
}

} // namespace fagen::lab
