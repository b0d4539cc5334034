// fagen: lends workspaces to streams and to launches that are captured.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workspaces.h"

#include "device.h"
#include "error.h"

#include <algorithm>
#include <new>

namespace fagen {
namespace {

constexpr size_t kPageBytes = 64 * 1024;
constexpr size_t kSlotAlignment = 256;                          // what cuMemAlloc gives; rows ask for less
const CuStream kStreamOfThread = reinterpret_cast<CuStream>(2); // CU_STREAM_PER_THREAD

size_t alignedSlot(size_t bytes) { return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

/// While it lives this thread may allocate although another one captures a graph.
class AllocationAllowed {
public:
  explicit AllocationAllowed(const Driver &driver) : driver(driver) { driver.cuThreadExchangeStreamCaptureMode(&mode); }
  ~AllocationAllowed() { driver.cuThreadExchangeStreamCaptureMode(&mode); }
  AllocationAllowed(const AllocationAllowed &) = delete;
  AllocationAllowed &operator=(const AllocationAllowed &) = delete;

private:
  const Driver &driver;
  int mode = kCaptureRelaxed;
};

} // namespace

/// By a stream of its own: on the caller's the zeroing would become a node of the graph that it captures.
fagen_status Workspaces::allocate(const Driver &d, size_t bytes, Memory &memory) {
  AllocationAllowed allowed(d);
  CuResult status = zeroing ? kCudaSuccess : d.cuStreamCreate(&zeroing, kStreamNonBlocking);
  if (status)
    return failCuda(status, "create a stream that zeroes workspaces");
  allocated.reserve(allocated.size() + 1);
  CuPointer begin = 0;
  if ((status = d.cuMemAlloc(&begin, bytes)))
    return failCuda(status, "allocate a workspace");
  allocated.push_back(begin);
  status = d.cuMemsetD8Async(begin, 0, bytes, zeroing);
  status = status ? status : d.cuStreamSynchronize(zeroing);
  if (status)
    return failCuda(status, "zero a workspace");
  memory = {begin, bytes};
  return FAGEN_OK;
}

/// What a stream had stays: another thread may be about to launch with it. As each is at least twice as large as the
/// one before, all together are at most twice the last.
fagen_status Workspaces::lendToStream(const Driver &d, CuStream stream, const WorkspaceSize &size, CuPointer &given) {
  const std::thread::id thread = stream == kStreamOfThread ? std::this_thread::get_id() : std::thread::id();
  MemoryOfStream &kept = ofStreams[{stream, thread}];
  const auto grown = [](size_t needed, size_t had) { return needed <= had ? had : std::max(needed, 2 * had); };
  if (kept.size.zeroed < size.zeroed || kept.size.scratch < size.scratch) {
    const WorkspaceSize made = {grown(size.zeroed, kept.size.zeroed), grown(size.scratch, kept.size.scratch)};
    Memory memory;
    if (fagen_status status = allocate(d, made.zeroed + made.scratch, memory))
      return status;
    kept = {memory.begin + made.zeroed, made};
  }
  given = kept.middle - size.zeroed;
  return FAGEN_OK;
}

/// A slot of the page, of a new page where that is full, or memory of its own where a page would be too small.
fagen_status Workspaces::lendToGraph(const Driver &d, size_t bytes, CuPointer &given) {
  bytes = alignedSlot(bytes);
  Memory whole;
  Memory &from = bytes > kPageBytes ? whole : page;
  if (from.bytes < bytes)
    if (fagen_status status = allocate(d, std::max(bytes, kPageBytes), from))
      return status;
  given = from.begin;
  from.begin += bytes;
  from.bytes -= bytes;
  return FAGEN_OK;
}

fagen_status Workspaces::lend(const Driver &d, CuStream stream, const WorkspaceSize &size, void *&workspace) {
  int capture = 0;
  if (CuResult status = d.cuStreamIsCapturing(stream, &capture))
    return failCuda(status, "ask whether the stream is capturing");
  std::lock_guard lock(mutex);
  CuPointer given = 0;
  const WorkspaceSize aligned = {alignedSlot(size.zeroed), size.scratch};
  fagen_status status =
      capture ? lendToGraph(d, aligned.zeroed + aligned.scratch, given) : lendToStream(d, stream, aligned, given);
  workspace = reinterpret_cast<void *>(given);
  return status;
}

void Workspaces::release(const Driver &d) {
  for (CuPointer memory : allocated)
    d.cuMemFree(memory);
  if (zeroing)
    d.cuStreamDestroy(zeroing);
}

} // namespace fagen

using namespace fagen;

static WorkspaceSize sizeOf(const fagen_choice &choice) {
  const bool saysScratch = choice.struct_size >= sizeof(fagen_choice); // an older caller's ends before that
  const size_t zeroed = saysScratch ? fagen_choice_zero_bytes(&choice) : choice.workspace_bytes;
  return {zeroed, choice.workspace_bytes - zeroed};
}

fagen_status fagen_lend_workspace(const fagen_choice *choice, fagen_device *device, struct CUstream_st *stream,
                                  void **workspace) {
  if (!workspace)
    return fail(FAGEN_INVALID, "workspace is NULL");
  *workspace = nullptr;
  if (fagen_status status = checkStruct(choice, "fagen_choice"))
    return status;
  if (!choice->row)
    return fail(FAGEN_INVALID, "the choice was not filled by fagen_query");
  if (choice->device != device)
    return fail(FAGEN_INVALID, "the choice was made for another device");
  if (choice->workspace_bytes == 0)
    return FAGEN_OK;
  if (!device->context)
    return fail(FAGEN_CUDA, "the device is a description (%s), not a GPU", device->name);
  const Driver &d = *driver();
  if (fagen_status status = checkCurrent(d, *device))
    return status;
  try {
    return device->workspaces.lend(d, stream, sizeOf(*choice), *workspace);
  } catch (const std::bad_alloc &) {
    return fail(FAGEN_OUT_OF_MEMORY, "no host memory for the list of workspaces");
  }
}
