// fagen: counts one kernel with CUPTI's range profiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cupti_session.h"
#include "lab/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>

namespace fagen::lab::cupti {

Failure::Failure(const std::string &call, int status, const std::string &text)
    : std::runtime_error(fmt::format("{}: {}", call, text)), status(status) {}

namespace {

/// CUPTI's calls: each one's struct is sized, it is logged before it is made, its status logged and looked at.
class Calls {
public:
  Calls(const Library &library, std::ostream *log) : library(library), log(log) {}

  /// The status.
  template <typename Params> int attempt(const char *name, Function<Params> function, Params &params) const {
    params.structSize = kSizeOf<Params>;
    if (log)
      *log << name << std::flush; // a call may crash: the log then ends with its name
    int status = function(&params);
    if (log)
      *log << ": " << textOf(status) << std::endl;
    return status;
  }

  template <typename Params> void operator()(const char *name, Function<Params> function, Params &params) const {
    if (int status = attempt(name, function, params))
      throw Failure(name, status, textOf(status));
  }

  void note(const std::string &text) const {
    if (log)
      *log << "  " << text << std::endl;
  }

  const Library &library;

private:
  std::string textOf(int status) const {
    const char *text = nullptr;
    if (library.getResultString(status, &text) != kSuccess || !text)
      text = "unknown status";
    return fmt::format("{} ({})", text, status);
  }

  std::ostream *log;
};

/// CUPTI's own library of what each chip counts, and how.
class Host {
public:
  Host(const Calls &call, std::string chipName, std::vector<uint8_t> available)
      : call(call), chip(std::move(chipName)), availability(std::move(available)) {
    HostInitialize params{};
    params.profilerType = kRangeProfilerType;
    params.chipName = chip.c_str();
    params.availabilityImage = availability.empty() ? nullptr : availability.data();
    call("cuptiProfilerHostInitialize", call.library.hostInitialize, params);
    object = params.host;
  }
  ~Host() {
    HostDeinitialize params{};
    params.host = object;
    call.attempt("cuptiProfilerHostDeinitialize", call.library.hostDeinitialize, params);
  }
  Host(const Host &) = delete;
  Host &operator=(const Host &) = delete;

  bool knows(const std::string &metric, MetricProperties *properties = nullptr) const {
    MetricProperties params{};
    params.host = object;
    params.name = metric.c_str();
    bool known =
        call.attempt("cuptiProfilerHostGetMetricProperties", call.library.hostGetMetricProperties, params) == kSuccess;
    if (properties)
      *properties = params;
    return known;
  }

  std::vector<std::string> baseMetrics(MetricType type) const {
    BaseMetrics params{};
    params.host = object;
    params.metricType = type;
    call("cuptiProfilerHostGetBaseMetrics", call.library.hostGetBaseMetrics, params);
    return {params.names, params.names + params.count};
  }

  /// How the hardware is set up for the metrics.
  std::vector<uint8_t> configure(std::vector<const char *> &names) const {
    AddMetrics add{};
    add.host = object;
    add.names = names.data();
    add.count = names.size();
    call("cuptiProfilerHostConfigAddMetrics", call.library.hostConfigAddMetrics, add);
    ConfigImageSize size{};
    size.host = object;
    call("cuptiProfilerHostGetConfigImageSize", call.library.hostGetConfigImageSize, size);
    std::vector<uint8_t> image(size.size);
    ConfigImage fill{};
    fill.host = object;
    fill.size = image.size();
    fill.image = image.data();
    call("cuptiProfilerHostGetConfigImage", call.library.hostGetConfigImage, fill);
    return image;
  }

  size_t passes(std::vector<uint8_t> &config) const {
    NumberOfPasses params{};
    params.size = config.size();
    params.image = config.data();
    call("cuptiProfilerHostGetNumOfPasses", call.library.hostGetNumOfPasses, params);
    return params.passes;
  }

  /// NaN: the metric cannot be told of this launch.
  double evaluate(const std::vector<uint8_t> &counterData, const char *metric) const {
    double value = std::nan("");
    Evaluate params{};
    params.host = object;
    params.counterData = counterData.data();
    params.counterDataSize = counterData.size();
    params.names = &metric;
    params.count = 1;
    params.values = &value;
    int status = call.attempt("cuptiProfilerHostEvaluateToGpuValues", call.library.hostEvaluateToGpuValues, params);
    call.note(fmt::format("{} = {}", metric, value));
    return status == kSuccess ? value : std::nan("");
  }

private:
  const Calls &call;
  std::string chip;
  std::vector<uint8_t> availability; // CUPTI reads it as long as the object lives
  HostObject *object = nullptr;
};

/// The profiler of this process, initialized; CUPTI's others and ncu may follow once it is gone.
class Profiling {
public:
  explicit Profiling(const Calls &call) : call(call) {
    Initialize params{};
    call("cuptiProfilerInitialize", call.library.profilerInitialize, params);
  }
  ~Profiling() {
    Initialize params{};
    call.attempt("cuptiProfilerDeInitialize", call.library.profilerDeInitialize, params);
  }
  Profiling(const Profiling &) = delete;
  Profiling &operator=(const Profiling &) = delete;

private:
  const Calls &call;
};

/// The range profiler of a context, while it is enabled.
class EnabledProfiler {
public:
  EnabledProfiler(const Calls &call, void *context) : call(call) {
    Enable params{};
    params.context = context;
    call("cuptiRangeProfilerEnable", call.library.rangeEnable, params);
    object = params.profiler;
  }
  ~EnabledProfiler() {
    ProfilerOnly params{};
    params.profiler = object;
    call.attempt("cuptiRangeProfilerDisable", call.library.rangeDisable, params);
  }
  EnabledProfiler(const EnabledProfiler &) = delete;
  EnabledProfiler &operator=(const EnabledProfiler &) = delete;

  /// Launches for each pass; what was counted.
  std::vector<uint8_t> run(std::vector<const char *> &names, const std::vector<uint8_t> &config, size_t passes,
                           ReplayMode mode, const std::function<void()> &launch) const {
    std::vector<uint8_t> data = makeCounterData(names);
    SetConfig set{};
    set.profiler = object;
    set.configSize = config.size();
    set.config = config.data();
    set.counterDataSize = data.size();
    set.counterData = data.data();
    set.range = kAutoRange;
    set.replayMode = mode;
    set.maxRangesPerPass = 1;
    set.nestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
    call("cuptiRangeProfilerSetConfig", call.library.rangeSetConfig, set);
    for (size_t turn = 0; !runPass(launch); ++turn)
      if (turn > passes)
        throw Failure("cuptiRangeProfilerStop", kSuccess, fmt::format("more passes than the {} announced", passes));
    Decode decode{};
    decode.profiler = object;
    call("cuptiRangeProfilerDecodeData", call.library.rangeDecodeData, decode);
    requireOneRange(data, decode.rangesDropped);
    return data;
  }

private:
  std::vector<uint8_t> makeCounterData(std::vector<const char *> &names) const {
    CounterDataSize size{};
    size.profiler = object;
    size.names = names.data();
    size.count = names.size();
    size.maxRanges = size.maxTreeNodes = 1;
    call("cuptiRangeProfilerGetCounterDataSize", call.library.rangeGetCounterDataSize, size);
    std::vector<uint8_t> data(size.size);
    CounterDataInitialize fill{};
    fill.profiler = object;
    fill.size = data.size();
    fill.counterData = data.data();
    call("cuptiRangeProfilerCounterDataImageInitialize", call.library.rangeCounterDataImageInitialize, fill);
    return data;
  }

  /// Whether that was the last one.
  bool runPass(const std::function<void()> &launch) const {
    ProfilerOnly start{};
    start.profiler = object;
    call("cuptiRangeProfilerStart", call.library.rangeStart, start);
    launch();
    Stop stop{};
    stop.profiler = object;
    call("cuptiRangeProfilerStop", call.library.rangeStop, stop);
    return stop.allPassesSubmitted != 0;
  }

  void requireOneRange(const std::vector<uint8_t> &data, size_t dropped) const {
    CounterDataInfo info{};
    info.counterData = data.data();
    info.counterDataSize = data.size();
    call("cuptiRangeProfilerGetCounterDataInfo", call.library.rangeGetCounterDataInfo, info);
    call.note(fmt::format("{} ranges, {} dropped", info.ranges, dropped));
    if (info.ranges != 1 || dropped != 0)
      throw Failure("cuptiRangeProfilerGetCounterDataInfo", kSuccess,
                    fmt::format("{} ranges of one kernel, {} dropped", info.ranges, dropped));
  }

  const Calls &call;
  RangeProfiler *object = nullptr;
};

std::string readChip(const Calls &call, size_t deviceIndex) {
  DeviceChipName chip{};
  chip.deviceIndex = deviceIndex;
  call("cuptiDeviceGetChipName", call.library.deviceGetChipName, chip);
  call.note(fmt::format("chip {}", chip.chipName));
  return chip.chipName;
}

/// What this GPU counts; empty when it does not tell, which leaves the chip's own list.
std::vector<uint8_t> readAvailability(const Calls &call, void *context) {
  CounterAvailability params{};
  params.context = context;
  auto function = call.library.profilerGetCounterAvailability;
  if (call.attempt("cuptiProfilerGetCounterAvailability", function, params) != kSuccess)
    return {};
  std::vector<uint8_t> image(params.imageSize);
  params.image = image.data();
  return call.attempt("cuptiProfilerGetCounterAvailability", function, params) == kSuccess ? image
                                                                                           : std::vector<uint8_t>();
}

Result countBy(const Calls &call, const Request &request, ReplayMode mode) {
  call.note(mode == kUserReplay ? "passes launched here" : "kernel replayed by CUPTI");
  Profiling profiling(call);
  Result result;
  result.userReplay = mode == kUserReplay;
  result.chip = readChip(call, request.deviceIndex);
  Host host(call, result.chip, readAvailability(call, request.context));
  std::vector<const char *> names;
  for (const std::string &metric : request.metrics)
    if (host.knows(metric)) {
      names.push_back(metric.c_str());
    } else {
      call.note(fmt::format("unknown here: {}", metric));
      result.unknown.push_back(metric);
    }
  std::vector<uint8_t> config = host.configure(names);
  result.passes = host.passes(config);
  call.note(fmt::format("{} metrics in {} passes", names.size(), result.passes));
  EnabledProfiler profiler(call, request.context);
  std::vector<uint8_t> data = profiler.run(names, config, result.passes, mode, request.launch);
  for (const char *name : names)
    if (double value = host.evaluate(data, name); std::isfinite(value))
      result.counters[name] = value;
  return result;
}

} // namespace

Result count(const Library &library, const Request &request) {
  Calls call(library, request.log);
  std::string first;
  try {
    return countBy(call, request, kUserReplay);
  } catch (const Failure &failure) {
    if (failure.status == kInsufficientPrivileges)
      throw;
    first = failure.what();
  }
  try {
    return countBy(call, request, kKernelReplay);
  } catch (const Failure &failure) {
    if (failure.what() == first)
      throw;
    throw Failure(first, failure.status, fmt::format("and with CUPTI's own replay {}", failure.what()));
  }
}

std::ofstream openLog(const std::string &file) {
  std::ofstream log;
  if (file.empty())
    return log;
  log.open(file, std::ios::app); // each kernel's process adds to it
  if (!log)
    throw UserError(fmt::format("cannot write {}", file));
  return log;
}

std::string versionOf(const Library &library) {
  uint32_t version = 0; // since CUDA 13, 130001 is 13.0 update 1; before, a running number
  if (library.getVersion(&version) != kSuccess)
    return "CUPTI";
  if (version < 130000)
    return fmt::format("CUPTI, API {}", version);
  return fmt::format("CUPTI {}.{}", version / 10000, version / 100 % 100);
}

std::vector<MetricName> metricsOf(const Library &library, const std::string &chip, std::ostream *log) {
  Calls call(library, log);
  Host host(call, chip, {});
  std::vector<MetricName> metrics;
  for (MetricType type : {kCounter, kRatio, kThroughput})
    for (const std::string &name : host.baseMetrics(type)) {
      MetricProperties properties{};
      bool known = host.knows(name, &properties);
      auto text = [&](const char *part) { return std::string(known && part ? part : ""); };
      metrics.push_back({name, text(properties.dimension), text(properties.description)});
    }
  std::sort(metrics.begin(), metrics.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  return metrics;
}

std::string chipOf(const Library &library, size_t deviceIndex, std::ostream *log) {
  const Calls call(library, log);
  const Profiling profiling(call);
  return readChip(call, deviceIndex);
}

std::vector<std::string> unknownMetrics(const Library &library, const std::string &chip,
                                        const std::vector<std::string> &metrics) {
  Calls call(library, nullptr);
  Host host(call, chip, {});
  std::vector<std::string> unknown;
  for (const std::string &metric : metrics)
    if (!host.knows(metric))
      unknown.push_back(metric);
  return unknown;
}

size_t passesOf(const Library &library, const std::string &chip, const std::vector<std::string> &metrics) {
  Calls call(library, nullptr);
  Host host(call, chip, {});
  std::vector<const char *> names;
  for (const std::string &metric : metrics)
    names.push_back(metric.c_str());
  std::vector<uint8_t> config = host.configure(names);
  return host.passes(config);
}

} // namespace fagen::lab::cupti
