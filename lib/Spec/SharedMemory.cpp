// fagen: the shared memory that a schedule needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/SharedMemory.h"

#include "fagen/device/tile/layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace fagen {

static constexpr uint64_t kBufferAlignment = 128; // where a swizzle pattern may begin
static constexpr uint64_t kFloatBytes = 4;
static constexpr uint64_t kLanes = 32;
static constexpr uint64_t kMbarrierBytes = 8;

unsigned elementBytes(DType type) {
  switch (type) {
  case DType::E4M3:
    return 1;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::F32:
    return 4;
  }
  return 0;
}

uint64_t SharedMemory::bytesOf(StringRef name) const {
  auto found = find_if(buffers, [&](const SharedBuffer &buffer) { return buffer.name == name; });
  return found == buffers.end() ? 0 : found->bytes;
}

bool SharedMemory::isOverRing(StringRef name) const {
  return any_of(buffers, [&](const SharedBuffer &buffer) { return buffer.name == name && buffer.overRing; });
}

/// A tile of operands or, with wmma, of results: the layout is the schedule's.
static uint64_t tileBytes(const Schedule &schedule, uint64_t rows, uint64_t columns, uint64_t element) {
  const bool isXor = schedule.swizzle == Swizzle::Xor || schedule.swizzle == Swizzle::B128;
  const device::Swizzle swizzle = isXor                              ? device::Swizzle::kXor
                                  : schedule.swizzle == Swizzle::Pad ? device::Swizzle::kPad
                                                                     : device::Swizzle::kNone;
  return device::tile_bytes(swizzle, rows, columns, element);
}

/// Tiles through which the results of wmma reach the softmax and O. With f16 accumulators S holds P at last.
static void addResults(SharedMemory &memory, const Problem &problem, const Schedule &schedule) {
  const uint64_t rows = schedule.tileRows, accum = elementBytes(problem.accum);
  memory.buffers.push_back({"s", tileBytes(schedule, rows, schedule.tileKeys, accum), false});
  const bool isHalf = problem.accum == DType::F16;
  if (!isHalf)
    memory.buffers.push_back({"p", tileBytes(schedule, rows, schedule.tileKeys, elementBytes(problem.dtype)), false});
  if (isHalf || schedule.tileKeys != problem.headDimV) // else P V takes the place of S
    memory.buffers.push_back({"pv", tileBytes(schedule, rows, problem.headDimV, accum), false});
}

/// With no more than this, two CTAs fit an SM of every target.
constexpr uint64_t kHalfOfAnSm = 48 * 1024;

/// What counts the arrivals of bulk copies, and of those who have left a slot of a ring.
static void addMbarriers(SharedMemory &memory, const Schedule &schedule, unsigned querySlots) {
  memory.buffers.push_back({"q_full", querySlots * kMbarrierBytes, false});
  if (schedule.grid != Grid::Tiles)
    memory.buffers.push_back({"q_empty", kMbarrierBytes, false});
  for (StringRef ring : {"k_full", "v_full", "k_empty", "v_empty"})
    memory.buffers.push_back({ring, schedule.stages * kMbarrierBytes, false});
  if (schedule.grid == Grid::LongestFirst)
    for (StringRef handed : {"next_tile", "tile_full", "tile_empty"})
      memory.buffers.push_back({handed, kMbarrierBytes, false}); // no more than one takes
}

/// Adds up what lies side by side, and what lies over the ring where it reaches farther.
static void addUp(SharedMemory &memory) {
  uint64_t ringBegin = 0;
  for (const SharedBuffer &buffer : memory.buffers) {
    if (buffer.overRing)
      continue;
    if (buffer.name == "q")
      ringBegin = alignTo(buffer.bytes, kBufferAlignment);
    memory.total += alignTo(buffer.bytes, kBufferAlignment);
  }
  for (const SharedBuffer &buffer : memory.buffers)
    if (buffer.overRing)
      memory.total = std::max(memory.total, ringBegin + alignTo(buffer.bytes, kBufferAlignment));
}

static SharedMemory layOut(const Problem &problem, const Schedule &schedule, bool isQOverRing, unsigned querySlots,
                           unsigned stagedColumns = 0) {
  const uint64_t element = elementBytes(problem.dtype);
  const uint64_t rows = schedule.tileRows, keys = schedule.tileKeys, stages = schedule.stages;
  SharedMemory memory;
  memory.buffers = {{"q", querySlots * tileBytes(schedule, rows, problem.headDimQK, element), isQOverRing},
                    {"k", stages * tileBytes(schedule, keys, problem.headDimQK, element), false},
                    {"v", stages * tileBytes(schedule, keys, problem.headDimV, element), false}};
  if (stagedColumns != 0)
    memory.buffers.push_back({"out", tileBytes(schedule, rows, stagedColumns, element), false});
  if (schedule.keyWarps > 1)
    memory.buffers.push_back(
        {"partial", schedule.keyWarps * rows * (problem.headDimV + device::kPartialExtra) * kFloatBytes, true});
  if (schedule.mma == Mma::Scalar && schedule.reduce == Reduce::Shared)
    memory.buffers.push_back({"scratch", rows * kLanes * kFloatBytes, false});
  if (schedule.mma == Mma::Scalar)
    memory.buffers.push_back({"s", rows * keys * kFloatBytes, false});
  if (schedule.mma == Mma::Wmma)
    addResults(memory, problem, schedule);
  if (schedule.mma == Mma::Wgmma && schedule.copy == Copy::Tma)
    addMbarriers(memory, schedule, querySlots);
  addUp(memory);
  return memory;
}

constexpr uint64_t kOfACta = 227 * 1024; // sm_90

static bool isPersistent(const Schedule &schedule) {
  return schedule.mma == Mma::Wgmma && schedule.grid != Grid::Tiles;
}

unsigned countQuerySlots(const Problem &problem, const Schedule &schedule) {
  const bool isResultNarrower = problem.headDimV <= problem.headDimQK;
  return isPersistent(schedule) && isResultNarrower && layOut(problem, schedule, false, 2).total <= kOfACta ? 2 : 1;
}

unsigned countStagedColumns(const Problem &problem, const Schedule &schedule) {
  constexpr unsigned kPanelColumns = 64; // of the swizzle's 128 B
  const unsigned half = problem.headDimV / 2;
  if (!isPersistent(schedule) || countQuerySlots(problem, schedule) > 1 || half % kPanelColumns != 0)
    return 0;
  return layOut(problem, schedule, false, 1, half).total <= kOfACta ? half : 0;
}

// Q on its way to registers may lie over the ring, but in bytes of its own the first K and V come at the same time.
SharedMemory computeSharedMemory(const Problem &problem, const Schedule &schedule) {
  const SharedMemory apart = layOut(problem, schedule, /*isQOverRing=*/false, countQuerySlots(problem, schedule),
                                    countStagedColumns(problem, schedule));
  const bool fitsRing = apart.bytesOf("q") <= apart.bytesOf("k") + apart.bytesOf("v");
  if (schedule.qIn != OperandPlace::Registers || !fitsRing || apart.total <= kHalfOfAnSm)
    return apart;
  return layOut(problem, schedule, /*isQOverRing=*/true, /*querySlots=*/1);
}

} // namespace fagen
