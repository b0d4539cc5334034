// fagen: our declarations of CUPTI's structs are those of its headers; compiled where they are, never linked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/cupti.h"

#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>

namespace cupti = fagen::lab::cupti;

// Later releases add members at the end, and take what is of an earlier size.
constexpr bool isSize(size_t ours, size_t theirs) {
  return CUPTI_API_VERSION / 100 == 1300 ? ours == theirs : CUPTI_API_VERSION < 130000 || ours <= theirs;
}

#define SAME_SIZE(ours, theirs)                                                                                        \
  static_assert(isSize(cupti::kSizeOf<cupti::ours>, CUpti_##theirs##_Params_STRUCT_SIZE), #theirs)
#define SAME_PLACE(ours, member, theirs, theirMember)                                                                  \
  static_assert(offsetof(cupti::ours, member) == offsetof(CUpti_##theirs##_Params, theirMember), #theirs)

SAME_SIZE(Initialize, Profiler_Initialize);
SAME_SIZE(DeviceChipName, Device_GetChipName);
SAME_SIZE(HostInitialize, Profiler_Host_Initialize);
SAME_SIZE(HostDeinitialize, Profiler_Host_Deinitialize);
SAME_SIZE(BaseMetrics, Profiler_Host_GetBaseMetrics);
SAME_SIZE(MetricProperties, Profiler_Host_GetMetricProperties);
SAME_SIZE(AddMetrics, Profiler_Host_ConfigAddMetrics);
SAME_SIZE(ConfigImageSize, Profiler_Host_GetConfigImageSize);
SAME_SIZE(ConfigImage, Profiler_Host_GetConfigImage);
SAME_SIZE(NumberOfPasses, Profiler_Host_GetNumOfPasses);
SAME_SIZE(Evaluate, Profiler_Host_EvaluateToGpuValues);
SAME_SIZE(Enable, RangeProfiler_Enable);
SAME_SIZE(ProfilerOnly, RangeProfiler_Start);
SAME_SIZE(ProfilerOnly, RangeProfiler_Disable);
SAME_SIZE(CounterDataSize, RangeProfiler_GetCounterDataSize);
SAME_SIZE(CounterDataInitialize, RangeProfiler_CounterDataImage_Initialize);
SAME_SIZE(SetConfig, RangeProfiler_SetConfig);
SAME_SIZE(Stop, RangeProfiler_Stop);
SAME_SIZE(Decode, RangeProfiler_DecodeData);
SAME_SIZE(CounterDataInfo, RangeProfiler_GetCounterDataInfo);
SAME_SIZE(CounterAvailability, Profiler_GetCounterAvailability);
SAME_PLACE(HostInitialize, availabilityImage, Profiler_Host_Initialize, pCounterAvailabilityImage);
SAME_PLACE(BaseMetrics, names, Profiler_Host_GetBaseMetrics, ppMetricNames);
SAME_PLACE(MetricProperties, dimension, Profiler_Host_GetMetricProperties, pDimUnit);
SAME_PLACE(Evaluate, rangeIndex, Profiler_Host_EvaluateToGpuValues, rangeIndex);
SAME_PLACE(CounterAvailability, image, Profiler_GetCounterAvailability, pCounterAvailabilityImage);
SAME_PLACE(CounterDataSize, maxTreeNodes, RangeProfiler_GetCounterDataSize, maxNumRangeTreeNodes);
SAME_PLACE(SetConfig, counterData, RangeProfiler_SetConfig, pCounterDataImage);
SAME_PLACE(SetConfig, replayMode, RangeProfiler_SetConfig, replayMode);
SAME_PLACE(SetConfig, minNestingLevel, RangeProfiler_SetConfig, minNestingLevel);
static_assert(int(cupti::kAutoRange) == CUPTI_AutoRange && int(cupti::kUserReplay) == CUPTI_UserReplay &&
              int(cupti::kKernelReplay) == CUPTI_KernelReplay);
static_assert(int(cupti::kInsufficientPrivileges) == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
static_assert(int(cupti::kRangeProfilerType) == CUPTI_PROFILER_TYPE_RANGE_PROFILER);
