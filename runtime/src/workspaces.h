// fagen: memory of the library's own that launches of one device count and merge in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "driver.h"

#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fagen {

/// What a launch needs: bytes that are zero and are left zero, and after them bytes that hold and are left with
/// anything.
struct WorkspaceSize {
  size_t zeroed = 0, scratch = 0;
};

/// Memory, kept until release(). The device's context is current in each call.
class Workspaces {
public:
  /// The memory of a stream, for its launches one after the other; while it captures, a slot that is given once. Of a
  /// stream what one launch has as scratch is never what another one counts on to be zero.
  fagen_status lend(const Driver &d, CuStream stream, const WorkspaceSize &size, void *&workspace);

  /// Frees all. No launch uses it, and no graph.
  void release(const Driver &d);

private:
  struct Memory {
    CuPointer begin = 0;
    size_t bytes = 0;
  };
  /// Zeroed bytes end where scratch begins, whoever has them.
  struct MemoryOfStream {
    CuPointer middle = 0;
    WorkspaceSize size;
  };

  fagen_status allocate(const Driver &d, size_t bytes, Memory &memory);
  fagen_status lendToStream(const Driver &d, CuStream stream, const WorkspaceSize &size, CuPointer &given);
  fagen_status lendToGraph(const Driver &d, size_t bytes, CuPointer &given);

  std::mutex mutex;
  /// By handle; by thread, too, where one handle is a stream of each.
  std::map<std::pair<CuStream, std::thread::id>, MemoryOfStream> ofStreams;
  Memory page;                      ///< what the last page of slots has left
  std::vector<CuPointer> allocated; ///< all of it
  CuStream zeroing = nullptr;       ///< a stream that nobody captures
};

} // namespace fagen
