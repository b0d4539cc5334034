// fagen: the race detector against vector clocks of every lane and the list of all accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "emulator/memory/Races.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace fagen::emulator::clocksTest {
namespace {

constexpr unsigned kWarps = 3, kLanes = 3; // lanes 0 to 2 of each warp take part
constexpr unsigned kBytes = 64;

/// What the detector must find, slowly: nothing is forgotten, and each lane has a clock.
class Oracle {
public:
  using Clock = std::array<unsigned, kWarps * kLanes>;

  Oracle() {
    for (unsigned t = 0; t < clocks.size(); ++t)
      clocks[t][t] = 1;
  }

  bool access(Agent agent, unsigned address, unsigned bytes, bool isWrite) {
    bool race = false;
    for (unsigned t : threadsOf(agent))
      for (const Event &event : events)
        race |= event.thread != t && (isWrite || event.isWrite) && event.address < address + bytes &&
                address < event.address + event.bytes && clocks[t][event.thread] < event.time;
    for (unsigned t : threadsOf(agent))
      events.push_back({t, clocks[t][t], address, bytes, isWrite});
    return race;
  }
  void arrive(unsigned warp, Clock &joined) {
    for (unsigned t = kLanes * warp; t < kLanes * (warp + 1); ++t) {
      join(joined, clocks[t]);
      ++clocks[t][t];
    }
  }
  void learn(unsigned warp, const Clock &joined) {
    for (unsigned t = kLanes * warp; t < kLanes * (warp + 1); ++t)
      join(clocks[t], joined);
  }

private:
  struct Event {
    unsigned thread, time, address, bytes;
    bool isWrite;
  };
  static void join(Clock &clock, const Clock &other) {
    for (unsigned i = 0; i < clock.size(); ++i)
      clock[i] = std::max(clock[i], other[i]);
  }
  static std::vector<unsigned> threadsOf(Agent agent) {
    std::vector<unsigned> threads;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (agent.lanes >> lane & 1)
        threads.push_back(kLanes * agent.warp + lane);
    return threads;
  }

  std::array<Clock, kWarps * kLanes> clocks{};
  std::vector<Event> events;
};

/// A random history up to its first race. How many steps it had; `agrees` is false once detector and oracle differ.
class History {
public:
  explicit History(unsigned seed) : random(seed) {}

  int run(SharedRaces &races, bool &agrees) {
    races.begin(kWarps, kBytes);
    const unsigned barriers = 2 + random() % 5; // in eight
    for (int step = 0; step < 400; ++step) {
      if (random() % 8 < barriers) {
        synchronise(races);
        continue;
      }
      const unsigned bytes = 2u << random() % 4, address = random() % (kBytes / bytes) * bytes;
      const Agent agent{unsigned(random() % kWarps), random() % 6 ? uint32_t(1) << random() % kLanes : ~0u};
      const bool isWrite = random() % 3 == 0;
      const bool found =
          (isWrite ? races.write(agent, address, bytes, step) : races.read(agent, address, bytes, step)).has_value();
      const bool expected = oracle.access(agent, address, bytes, isWrite);
      agrees = found == expected;
      if (found || expected)
        return step;
    }
    return 400;
  }

private:
  void synchronise(SharedRaces &races) {
    Clocks::Joined joined;
    Oracle::Clock expected{};
    const unsigned warp = random() % kWarps, other = (warp + 1) % kWarps;
    const unsigned kind = random() % 4; // of a warp; of all warps; of two; of one that arrives and one that waits
    for (unsigned w = 0; w < kWarps; ++w)
      if (kind == 1 || w == warp || (kind > 1 && w == other)) {
        if (kind == 0)
          races.clocks.warpBarrier(w);
        else
          races.clocks.arrive(w, joined);
        oracle.arrive(w, expected);
      }
    for (unsigned w = 0; w < kWarps; ++w)
      if (kind == 1 || (w == warp && kind != 3) || (kind > 1 && w == other)) {
        if (kind != 0)
          races.clocks.learn(w, joined);
        oracle.learn(w, expected);
      }
  }

  std::mt19937 random;
  Oracle oracle;
};

TEST(Clocks, FindExactlyTheFirstRaceOfAnyHistory) {
  SharedRaces races; // one after the other: what a CTA did must not be seen in the next
  int steps = 0, longest = 0;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    bool agrees = true;
    const int length = History(seed).run(races, agrees);
    ASSERT_TRUE(agrees) << "seed " << seed << ", step " << length;
    steps += length;
    longest = std::max(longest, length);
  }
  EXPECT_GT(steps, 100000);
  EXPECT_GT(longest, 60);
}

} // namespace
} // namespace fagen::emulator::clocksTest
