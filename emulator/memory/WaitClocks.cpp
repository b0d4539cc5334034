// fagen: which waits for phases each thread knows the others to have passed, and which phases to be complete.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "WaitClocks.h"

#include <algorithm>
#include <bit>

namespace fagen::emulator {

void WaitClocks::raise(Row &row, const Row &other) {
  if (row.size() < other.size())
    row.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    row[i] = std::max(row[i], other[i]);
}

void WaitClocks::refine(unsigned count) {
  if (isKept())
    return;
  columns = count;
  threads.assign(count, Row(count));
  warps.assign((count + kLanes - 1) / kLanes, Row(count));
  own.assign(warps.size(), 0);
}

uint32_t WaitClocks::pass(unsigned thread) {
  own[thread / kLanes] |= 1u << thread % kLanes;
  return ++threads[thread][thread];
}

void WaitClocks::meet(unsigned warp) {
  if (!isKept())
    return;
  for (uint32_t lanes = own[warp]; lanes; lanes &= lanes - 1)
    raise(warps[warp], threads[warp * kLanes + static_cast<unsigned>(std::countr_zero(lanes))]);
  own[warp] = 0;
}

void WaitClocks::tell(unsigned thread, Row &row) const {
  raise(row, warps[thread / kLanes]);
  if (own[thread / kLanes] >> thread % kLanes & 1)
    raise(row, threads[thread]);
}

void WaitClocks::learn(unsigned thread, const Row &row) {
  own[thread / kLanes] |= 1u << thread % kLanes;
  raise(threads[thread], row);
}

void WaitClocks::tellWarp(unsigned warp, Row &row) {
  if (!isKept())
    return;
  meet(warp);
  raise(row, warps[warp]);
}

void WaitClocks::learnWarp(unsigned warp, const Row &row) {
  if (isKept())
    raise(warps[warp], row);
}

uint32_t WaitClocks::phases(unsigned thread, unsigned barrier) const {
  const auto at = [&](const Row &row) { return barrier < row.size() ? row[barrier] : 0; };
  return std::max(at(warps[thread / kLanes]), at(threads[thread]));
}

void WaitClocks::complete(Row &row, unsigned barrier, uint32_t phases) {
  if (row.size() <= barrier)
    row.resize(barrier + 1);
  row[barrier] = phases;
}

} // namespace fagen::emulator
