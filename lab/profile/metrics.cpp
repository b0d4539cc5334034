// fagen: names and meanings of the hardware counters of a profile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics.h"

namespace fagen::lab {

/// Chips that have both count with the second; its first is marked deprecated there.
static std::string tensorMetric(uint32_t computeCapability, const std::string &base, const char *rest) {
  return base + (computeCapability == 89 ? "_v2" : "") + rest;
}

std::vector<Quantity> quantities(uint32_t sm) {
  const std::string tensorCycles = "sm__pipe_tensor_cycles_active";
  return {
      {"duration", "duration", Unit::Nanoseconds, "gpu__time_duration.sum", false},
      {"sm_clock", "SM clock", Unit::Hertz, "sm__cycles_elapsed.avg.per_second", false},
      {"sm_busy", "SMs with work", Unit::Percent, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", false},
      {"tensor", "tensor pipe", Unit::Percent, tensorMetric(sm, tensorCycles, ".avg.pct_of_peak_sustained_elapsed"),
       false},
      {"tensor_active", "tensor pipe, of busy SMs", Unit::Percent,
       tensorMetric(sm, tensorCycles, ".avg.pct_of_peak_sustained_active"), true},
      {"tensor_instructions", "tensor instructions", Unit::Count,
       tensorMetric(sm, "sm__inst_executed_pipe_tensor", ".sum"), false},
      {"special", "special-function pipe", Unit::Percent, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
       false},
      {"issue", "issue slots, of busy SMs", Unit::Percent, "smsp__issue_active.avg.pct_of_peak_sustained_active",
       false},
      {"occupancy", "occupancy, of busy SMs", Unit::Percent, "sm__warps_active.avg.pct_of_peak_sustained_active", true},
      {"dram", "DRAM", Unit::Percent, "dram__throughput.avg.pct_of_peak_sustained_elapsed", false},
      {"dram_bytes", "DRAM traffic", Unit::Bytes, "dram__bytes.sum", false},
      {"l2", "L2", Unit::Percent, "lts__throughput.avg.pct_of_peak_sustained_elapsed", false},
      {"l2_sectors", "L2 sectors", Unit::Count, "lts__t_sectors.sum", false},
      // Of sectors, a chip counts hits and lookups in different launches, so that their ratio may be above 1.
      {"l2_hits", "L2 requests that hit", Unit::Percent, "lts__t_requests_lookup_hit.sum", false,
       "lts__t_requests_lookup_miss.sum"},
      {"shared_wavefronts", "shared-memory wavefronts", Unit::Count, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
       true},
      {"bank_conflicts", "bank conflicts", Unit::Count, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", false},
      {"dram_peak", "DRAM peak", Unit::BytesPerClock, "dram__bytes.sum.peak_sustained", false},
      {"dram_clock", "DRAM clock", Unit::Hertz, "dram__cycles_elapsed.avg.per_second", false},
  };
}

std::vector<StallReason> stallReasons(uint32_t sm) {
  std::vector<StallReason> reasons = {
      {"barrier", StallKind::Barrier, "other warps at a CTA barrier"},
      {"membar", StallKind::Barrier, "a memory fence"},
      {"long_scoreboard", StallKind::Latency, "a result from L1, L2 or DRAM"},
      {"short_scoreboard", StallKind::Latency, "a result from shared memory or the special-function unit"},
      {"wait", StallKind::Latency, "the fixed latency of its last instruction"},
      {"math_pipe_throttle", StallKind::Latency, "room in a busy math pipe"},
      {"mio_throttle", StallKind::Latency, "room in the queue of shared memory and special functions"},
      {"lg_throttle", StallKind::Latency, "room in the queue of global memory"},
      {"tex_throttle", StallKind::Latency, "room in the queue of L1"},
      {"dispatch_stall", StallKind::Latency, "the dispatcher"},
      {"no_instruction", StallKind::Latency, "an instruction: not in the instruction cache, or after a branch"},
      {"branch_resolving", StallKind::Latency, "the target of a branch"},
      {"drain", StallKind::Latency, "its stores, at its end"},
      {"sleeping", StallKind::Latency, "the end of its own sleep"},
      {"misc", StallKind::Latency, "something that has no counter"},
      {"not_selected", StallKind::Issue, "is ready while another one issues"},
      {"selected", StallKind::Issue, "issues"},
  };
  if (sm < 100)
    reasons.push_back({"imc_miss", StallKind::Latency, "a constant that is not in its cache"});
  if (sm == 90)
    reasons.push_back({"gmma", StallKind::Latency, "its warp group, before a product of wgmma"});
  return reasons;
}

std::string stallMetric(const StallReason &reason) {
  return std::string("smsp__average_warps_issue_stalled_") + reason.name + "_per_issue_active.ratio";
}

std::vector<std::string> profileMetrics(uint32_t computeCapability) {
  std::vector<std::string> metrics;
  for (const Quantity &quantity : quantities(computeCapability))
    for (const std::string &metric : {quantity.metric, quantity.rest})
      if (!metric.empty())
        metrics.push_back(metric);
  for (const StallReason &reason : stallReasons(computeCapability))
    metrics.push_back(stallMetric(reason));
  return metrics;
}

std::optional<double> valueOf(const Quantity &quantity, const Counters &counters) {
  const auto part = counters.find(quantity.metric);
  if (part == counters.end())
    return std::nullopt;
  if (quantity.rest.empty())
    return part->second;
  const auto rest = counters.find(quantity.rest);
  if (rest == counters.end() || part->second + rest->second <= 0)
    return std::nullopt;
  return 100 * part->second / (part->second + rest->second);
}

} // namespace fagen::lab
