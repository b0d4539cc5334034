// fagen: a GPU (or the description of one), its context, and the kernels prepared on it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "workspaces.h"

#include <fagen/table.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace fagen {

/// A row that is ready to launch. `module` is null on a described device.
struct PreparedRow {
  const fagen_row *row = nullptr;
  const char *origin = nullptr; ///< "cubin", "ptx", "nvrtc" or "cache"
  CuModule module = nullptr;
  CuFunction functions[FAGEN_MAX_LAUNCHES] = {};
  int registers = -1;
  int localBytes = -1;
};

/// Prepared rows by address. Lookups take no lock; insertions are made under the device's lock. A full table is
/// replaced by one of twice the size, and the old one stays until the end, for lookups that are still reading it.
class PreparedRows {
public:
  PreparedRows();
  const PreparedRow *find(const fagen_row *row) const;
  void insert(std::unique_ptr<PreparedRow> prepared);
  const std::vector<std::unique_ptr<PreparedRow>> &all() const { return owned; }

private:
  struct Slots {
    explicit Slots(size_t count) : mask(count - 1), entries(new std::atomic<const PreparedRow *>[count]()) {}
    size_t mask; // count - 1; the count is a power of two
    std::unique_ptr<std::atomic<const PreparedRow *>[]> entries;
  };
  static void place(Slots &slots, const PreparedRow *prepared);

  std::vector<std::unique_ptr<PreparedRow>> owned;
  std::vector<std::unique_ptr<Slots>> generations; // the last is current
  std::atomic<const Slots *> current;
};

} // namespace fagen

struct fagen_device {
  int ordinal = -1; ///< -1: a description only
  uint32_t sm = 0;
  uint32_t smCount = 0;
  uint32_t sharedPerBlock = 0;
  char name[128] = "";
  fagen::CuContext context = nullptr;
  bool primary = false; ///< whether the context was retained here
  std::mutex prepareLock;
  fagen::PreparedRows prepared;
  fagen::Workspaces workspaces;
};

namespace fagen {

/// INVALID unless the device's context is this thread's current one.
fagen_status checkCurrent(const Driver &d, const fagen_device &device);

} // namespace fagen
