// fagen: counts one kernel with CUPTI's range profiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A chip counts a few things at a time, so that a kernel is launched once for each pass. Its range is made by CUPTI
// tightly around the kernel; the passes are launched from here, because nothing then is saved and restored between
// them, and the caches hold what the launch before left. Where CUPTI refuses that, it replays the kernel itself.
#pragma once

#include "cupti.h"
#include "metrics.h"

#include <functional>
#include <iosfwd>
#include <stdexcept>

namespace fagen::lab::cupti {

/// A call of CUPTI failed.
struct Failure : std::runtime_error {
  Failure(const std::string &call, int status, const std::string &text);
  int status;
};

struct Request {
  size_t deviceIndex = 0;
  void *context = nullptr; ///< a CUcontext, current
  std::vector<std::string> metrics;
  std::function<void()> launch; ///< one kernel; returns when it is done
  std::ostream *log = nullptr;  ///< gets each call and its status
};

struct Result {
  std::string chip;
  size_t passes = 0;
  bool userReplay = true;
  Counters counters;
  std::vector<std::string> unknown; ///< metrics that the chip does not have
};

Result count(const Library &library, const Request &request);

/// The log's file, open after what it has; without a name it is none. UserError when it cannot be written.
std::ofstream openLog(const std::string &file);

/// "CUPTI 13.0"
std::string versionOf(const Library &library);

struct MetricName {
  std::string name, unit, description;
};
/// Every counter, ratio and throughput of a chip ("GH100"), by name. No GPU is needed. `log` gets each call.
std::vector<MetricName> metricsOf(const Library &library, const std::string &chip, std::ostream *log = nullptr);
/// The chip of a GPU. `log` gets each call.
std::string chipOf(const Library &library, size_t deviceIndex, std::ostream *log = nullptr);
/// Those of `metrics` that the chip does not know.
std::vector<std::string> unknownMetrics(const Library &library, const std::string &chip,
                                        const std::vector<std::string> &metrics);
/// In how many launches the metrics are counted.
size_t passesOf(const Library &library, const std::string &chip, const std::vector<std::string> &metrics);

} // namespace fagen::lab::cupti
