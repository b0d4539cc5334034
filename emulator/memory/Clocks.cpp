// fagen: what each warp, and where it matters each thread, has been told of the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Clocks.h"

#include <algorithm>
#include <bit>

namespace fagen::emulator {

constexpr unsigned kLanes = 32;

void Clocks::begin(unsigned warps) {
  firstEpoch = std::max(firstEpoch, lastQueueEpoch + 1);
  for (unsigned w = 0; w < kWarps; ++w)
    firstEpoch = std::max(firstEpoch, epochs[w] + 1);
  std::fill_n(epochs, kWarps, firstEpoch);
  std::fill_n(known, kWarps * std::max(1u, std::min(warps, kWarps)), firstEpoch - 1);
  rows.clear();
  waits.begin();
}

void Clocks::arrive(unsigned warp, Joined &joined) {
  for (unsigned v = 0; v < kWarps; ++v)
    joined.epochs[v] = std::max(joined.epochs[v], known[warp * kWarps + v]);
  const uint32_t epoch = epochs[warp]++;
  joined.epochs[warp] = epoch;
  if (!isFine())
    return;
  waits.tellWarp(warp, joined.waits);
  for (unsigned t = warp * kLanes; t < std::min<size_t>(rows.size(), (warp + 1) * kLanes); ++t) {
    rows[t][t] = epoch;
    raise(joined.fine, rows[t]);
  }
}

void Clocks::learn(unsigned warp, const Joined &joined) {
  for (unsigned v = 0; v < kWarps; ++v)
    known[warp * kWarps + v] = std::max(known[warp * kWarps + v], joined.epochs[v]);
  waits.learnWarp(warp, joined.waits);
  for (unsigned t = warp * kLanes; t < std::min<size_t>(rows.size(), (warp + 1) * kLanes); ++t)
    learnRow(t, joined);
}

void Clocks::warpBarrier(unsigned warp) {
  const uint32_t epoch = epochs[warp]++;
  known[warp * kWarps + warp] = epoch;
  if (!isFine())
    return;
  const size_t begin = warp * kLanes, end = std::min<size_t>(rows.size(), begin + kLanes);
  Row all;
  for (size_t t = begin; t < end; ++t) {
    rows[t][t] = epoch;
    raise(all, rows[t]);
  }
  for (size_t t = begin; t < end; ++t)
    rows[t] = all;
}

void Clocks::raise(Row &row, const Row &other) {
  if (row.size() < other.size())
    row.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    row[i] = std::max(row[i], other[i]);
}

void Clocks::refine(unsigned threads) {
  if (isFine())
    return;
  waits.refine(threads);
  rows.resize(threads);
  for (unsigned t = 0; t < threads; ++t) {
    rows[t].resize(threads);
    for (unsigned u = 0; u < threads; ++u)
      rows[t][u] = known[t / kLanes * kWarps + u / kLanes];
  }
}

/// What came before the clocks of threads is known of warps only.
void Clocks::learnRow(unsigned thread, const Joined &joined) {
  Row &row = rows[thread];
  for (size_t u = 0; u < rows.size(); ++u)
    row[u] = std::max(row[u], joined.epochs[u / kLanes]);
  raise(row, joined.fine);
}

void Clocks::arriveAlone(unsigned thread, Joined &joined) {
  rows[thread][thread] = epochs[thread / kLanes]++;
  raise(joined.fine, rows[thread]);
  waits.tell(thread, joined.waits);
}

void Clocks::learnAlone(unsigned thread, const Joined &joined) {
  learnRow(thread, joined);
  waits.learn(thread, joined.waits);
}

uint32_t Clocks::epochOf(uint32_t entry) {
  lastQueueEpoch = std::max(lastQueueEpoch, firstEpoch + entry);
  return firstEpoch + entry;
}

void Clocks::learnQueue(unsigned thread, unsigned queue, uint32_t entry) {
  Row &row = rows[thread];
  const size_t column = rows.size() + queue;
  if (row.size() <= column)
    row.resize(column + 1);
  row[column] = std::max(row[column], epochOf(entry));
}

void Clocks::joinQueue(Joined &joined, unsigned queue, uint32_t entry) {
  const size_t column = rows.size() + queue;
  if (joined.fine.size() <= column)
    joined.fine.resize(column + 1);
  joined.fine[column] = std::max(joined.fine[column], epochOf(entry));
}

bool Clocks::isAfterFine(Agent agent, Agent other, uint32_t epoch) const {
  const bool isQueue = other.warp >= kFirstQueue;
  const size_t first = isQueue ? rows.size() + (other.warp - kFirstQueue) : other.warp * kLanes;
  for (uint32_t lanes = agent.lanes; lanes; lanes &= lanes - 1) {
    const size_t t = agent.warp * kLanes + static_cast<size_t>(std::countr_zero(lanes));
    for (uint32_t others = other.lanes; others; others &= others - 1) {
      const size_t u = first + static_cast<size_t>(std::countr_zero(others));
      if (u != t && t < rows.size() && (isQueue || u < rows.size()) && at(rows[t], u) < epoch)
        return false;
    }
  }
  if (!isQueue && agent.lanes == ~0u && other.lanes == ~0u) // so it is for the warps as a whole
    known[agent.warp * kWarps + other.warp] = std::max(known[agent.warp * kWarps + other.warp], epoch);
  return true;
}

} // namespace fagen::emulator
