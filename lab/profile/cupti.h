// fagen: the functions of CUPTI that counting needs, found at run time in libcupti.so.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Own declarations, so that no CUDA toolkit is needed to build. Each call takes a struct that says its own size: a
// later CUPTI takes these too. Members are those of cupti_profiler_host.h, cupti_range_profiler.h,
// cupti_profiler_target.h and cupti_target.h of CUDA 13.0; unittests/Lab/profile/CuptiTest.cpp compares sizes and
// offsets where those headers are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fagen::lab::cupti {

using HostObject = struct CUpti_Profiler_Host_Object;
using RangeProfiler = struct CUpti_RangeProfiler_Object;

enum Status { kSuccess = 0, kInsufficientPrivileges = 35 };
enum ProfilerType { kRangeProfilerType = 0 };
enum Range { kAutoRange = 1 };                          ///< a range a kernel
enum ReplayMode { kKernelReplay = 2, kUserReplay = 3 }; ///< who launches again for each pass: CUPTI or its caller
enum MetricType { kCounter, kRatio, kThroughput, kMetricTypes };

struct Initialize { // also the struct of DeInitialize
  size_t structSize;
  void *priv;
};
struct DeviceChipName {
  size_t structSize;
  void *priv;
  size_t deviceIndex;
  const char *chipName;
};
struct CounterAvailability {
  size_t structSize;
  void *priv;
  void *context;
  size_t imageSize;
  uint8_t *image;
};
struct HostInitialize {
  size_t structSize;
  void *priv;
  int profilerType;
  const char *chipName;
  const uint8_t *availabilityImage;
  HostObject *host;
};
struct HostDeinitialize {
  size_t structSize;
  void *priv;
  HostObject *host;
};
struct BaseMetrics {
  size_t structSize;
  void *priv;
  HostObject *host;
  int metricType;
  const char **names;
  size_t count;
};
struct MetricProperties {
  size_t structSize;
  void *priv;
  HostObject *host;
  const char *name;
  const char *description, *hardwareUnit, *dimension;
  int metricType;
};
struct AddMetrics {
  size_t structSize;
  void *priv;
  HostObject *host;
  const char **names;
  size_t count;
};
struct ConfigImageSize {
  size_t structSize;
  void *priv;
  HostObject *host;
  size_t size;
};
struct ConfigImage {
  size_t structSize;
  void *priv;
  HostObject *host;
  size_t size;
  uint8_t *image;
};
struct NumberOfPasses {
  size_t structSize;
  void *priv;
  size_t size;
  uint8_t *image;
  size_t passes;
};
struct Evaluate {
  size_t structSize;
  void *priv;
  HostObject *host;
  const uint8_t *counterData;
  size_t counterDataSize;
  size_t rangeIndex;
  const char **names;
  size_t count;
  double *values;
};
struct Enable {
  size_t structSize;
  void *priv;
  void *context;
  RangeProfiler *profiler;
};
struct ProfilerOnly { // the struct of Disable, Start
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
};
struct CounterDataSize {
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
  const char **names;
  size_t count;
  size_t maxRanges;
  uint32_t maxTreeNodes;
  size_t size;
};
struct CounterDataInitialize {
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
  size_t size;
  uint8_t *counterData;
};
struct SetConfig {
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
  size_t configSize;
  const uint8_t *config;
  size_t counterDataSize;
  uint8_t *counterData;
  int range;
  int replayMode;
  size_t maxRangesPerPass;
  uint16_t nestingLevels;
  uint16_t minNestingLevel;
  size_t passIndex;
  uint16_t targetNestingLevel;
};
struct Stop {
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
  size_t passIndex;
  size_t targetNestingLevel;
  uint8_t allPassesSubmitted;
};
struct Decode {
  size_t structSize;
  void *priv;
  RangeProfiler *profiler;
  size_t rangesDropped;
};
struct CounterDataInfo {
  size_t structSize;
  void *priv;
  const uint8_t *counterData;
  size_t counterDataSize;
  size_t ranges;
};

/// What CUPTI calls the size of a struct: up to the end of its last member.
template <typename Params> constexpr size_t kSizeOf = sizeof(Params);
template <> inline constexpr size_t kSizeOf<SetConfig> = offsetof(SetConfig, targetNestingLevel) + sizeof(uint16_t);
template <> inline constexpr size_t kSizeOf<Stop> = offsetof(Stop, allPassesSubmitted) + sizeof(uint8_t);
template <> inline constexpr size_t kSizeOf<MetricProperties> = offsetof(MetricProperties, metricType) + sizeof(int);

template <typename Params> using Function = int (*)(Params *);

struct Library {
  int (*getVersion)(uint32_t *version);
  int (*getResultString)(int result, const char **text);
  Function<DeviceChipName> deviceGetChipName;
  Function<Initialize> profilerInitialize, profilerDeInitialize;
  Function<CounterAvailability> profilerGetCounterAvailability;
  Function<HostInitialize> hostInitialize;
  Function<HostDeinitialize> hostDeinitialize;
  Function<BaseMetrics> hostGetBaseMetrics;
  Function<MetricProperties> hostGetMetricProperties;
  Function<AddMetrics> hostConfigAddMetrics;
  Function<ConfigImageSize> hostGetConfigImageSize;
  Function<ConfigImage> hostGetConfigImage;
  Function<NumberOfPasses> hostGetNumOfPasses;
  Function<Evaluate> hostEvaluateToGpuValues;
  Function<Enable> rangeEnable;
  Function<ProfilerOnly> rangeDisable, rangeStart;
  Function<CounterDataSize> rangeGetCounterDataSize;
  Function<CounterDataInitialize> rangeCounterDataImageInitialize;
  Function<SetConfig> rangeSetConfig;
  Function<Stop> rangeStop;
  Function<Decode> rangeDecodeData;
  Function<CounterDataInfo> rangeGetCounterDataInfo;
};

/// The library, looked for once: the file that FAGEN_CUPTI names, or libcupti.so.13 or .12 on the loader's path, in
/// CUDA_HOME, CUDA_PATH and /usr/local/cuda. Null, and why, when it is not found or too old for its range profiler.
const Library *library(std::string &reason);

} // namespace fagen::lab::cupti
