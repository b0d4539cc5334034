// fagen: one schedule of a kernel set, where the whole set takes too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sample.h"

#include "lab/support/random.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fagen::lab {

/// A kernel with one schedule need not name it.
static std::string nameOf(const KernelSet &set, uint32_t schedule) {
  const std::string name = set.table()->schedules[schedule];
  return name.empty() ? "without a name" : name;
}

ScheduleSample drawSchedule(const KernelSet &set, uint64_t seed) {
  std::vector<uint32_t> free;
  for (const fagen_row *row : set.rows())
    if (row->dispatch != FAGEN_ROW_FALLBACK && std::find(free.begin(), free.end(), row->schedule) == free.end())
      free.push_back(row->schedule);
  uint32_t words = 0;
  for (const char letter : std::string_view(set.table()->kernel))
    words = words * 31 + static_cast<unsigned char>(letter);
  const uint32_t drawn = free.at(philox({words, 0, 0, 4}, seed)[0] % free.size());
  ScheduleSample sample{set.table()->kernel, nameOf(set, drawn), {}, {}};
  for (const fagen_row *row : set.rows())
    if (row->schedule == drawn)
      sample.variants.emplace_back(row->variant);
  for (uint32_t schedule = 0; schedule < set.table()->schedule_count; ++schedule)
    if (schedule != drawn)
      sample.leftOut.push_back(nameOf(set, schedule));
  return sample;
}

std::string describe(const ScheduleSample &sample) {
  return fmt::format("{}: schedule {}, {} variants; left out: {}", sample.kernel, sample.schedule,
                     sample.variants.size(),
                     sample.leftOut.empty() ? "none" : fmt::format("{}", fmt::join(sample.leftOut, ", ")));
}

} // namespace fagen::lab
