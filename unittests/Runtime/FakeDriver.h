// fagen: a libcuda.so.1 for tests: it runs nothing, and remembers what it was asked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>

#include <array>
#include <dlfcn.h>
#include <set>
#include <string>
#include <vector>

namespace fagen::test {

/// What was asked of a tensor map.
struct FakeMap {
  void *map;
  int type, swizzle, promotion, fill;
  void *base;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> box;
};

struct FakeLaunch {
  std::string symbol;
  unsigned grid, threads, sharedBytes;
  void *stream;
  device::MappedAttentionParams params; ///< maps: as filled; garbage where the row has none
  std::array<uint64_t, 24> form;        ///< after them; garbage where the row has none
  bool beginsEarly = false;             ///< before the launch before it has ended
};

/// Memory of the fake GPU: the host's.
struct FakeMemory {
  unsigned char *begin;
  size_t bytes;

  bool holds(const void *pointer) const { return pointer >= begin && pointer < begin + bytes; }
};

/// What the driver saw, and how it shall fail.
struct FakeDriver {
  void *current = nullptr;             ///< context
  int retained = 0, modules = 0;       ///< primary contexts, modules: now
  std::vector<const void *> images;    ///< loaded so far
  std::vector<std::string> attributes; ///< "k: max dynamic shared 98304"
  std::vector<FakeLaunch> launches;
  std::vector<FakeMap> maps;
  std::vector<FakeMemory> memory; ///< allocated now
  std::vector<void *> zeroedOn;   ///< streams
  std::set<void *> capturing;     ///< streams
  int captureMode = 0;            ///< of the thread; an allocation while it is not relaxed (2) fails
  int streams = 0;                ///< made by the library: now
  int failLoad = 0, failLaunch = 0, failMap = 0, failAllocation = 0; ///< the result to give
  int loadsToFail = -1;                                              ///< with failLoad: how many still; -1: all
};

} // namespace fagen::test

extern "C" fagen::test::FakeDriver *fakeDriver();

namespace fagen::test {

/// The fake that the runtime will load, as new; null where the loader finds another driver.
inline FakeDriver *openFakeDriver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto access = library ? reinterpret_cast<FakeDriver *(*)()>(dlsym(library, "fakeDriver")) : nullptr;
  FakeDriver *fake = access ? access() : nullptr;
  if (fake)
    *fake = {};
  return fake;
}

} // namespace fagen::test
