// fagen: a libcuda.so.1 for tests: it runs nothing, and remembers what it was asked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>

#include <string>
#include <vector>

namespace fagen::test {

struct FakeLaunch {
  std::string symbol;
  unsigned grid, threads, sharedBytes;
  void *stream;
  device::AttentionParams params;
};

/// What the driver saw, and how it shall fail.
struct FakeDriver {
  void *current = nullptr;             ///< context
  int retained = 0, modules = 0;       ///< primary contexts, modules: now
  std::vector<const void *> images;    ///< loaded so far
  std::vector<std::string> attributes; ///< "k: max dynamic shared 98304"
  std::vector<FakeLaunch> launches;
  int failLoad = 0, failLaunch = 0; ///< the result to give
};

} // namespace fagen::test

extern "C" fagen::test::FakeDriver *fakeDriver();
