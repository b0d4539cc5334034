// fagen: who touches each byte of a slot, and who meets there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Access.h"
#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <mutex>
#include <numeric>

using namespace fagen;
using namespace fagen::ir;

/// What one more access makes of a granule.
static void add(Footprint::Granule &granule, ThreadRange threads, uint32_t warps) {
  const bool wasFree = granule.warps == 0;
  const bool isAnother = !wasFree && (granule.several || granule.thread != threads.first);
  granule.meets |= isAnother || (threads.count > 1 && !threads.isUnknownOne);
  granule.several |= isAnother || threads.count > 1;
  if (wasFree)
    granule.thread = threads.first;
  granule.warps |= warps;
}

Footprint::Footprint(const Kernel &kernel, const Role &role, const Op &op, unsigned operand)
    : size(op.operands[operand].buffer->stageBytes()) {
  std::vector<Piece> pieces;
  unsigned granuleBytes = std::max(unsigned(size), 1u);
  forEachAccess(kernel, role, op, operand, [&](ThreadRange threads, unsigned byte, unsigned bytes) {
    pieces.push_back({threads, byte, bytes});
    if (byte % granuleBytes != 0 || bytes % granuleBytes != 0)
      granuleBytes = std::gcd(granuleBytes, std::gcd(byte, bytes));
    isOutside |= uint64_t(byte) + bytes > size;
  });
  std::vector<Granule> granules(size / granuleBytes);
  for (const auto &[threads, byte, bytes] : pieces) {
    uint32_t warps = 0;
    for (unsigned w = threads.first / kLanes; w <= (threads.first + threads.count - 1) / kLanes; ++w)
      warps |= uint32_t(1) << w;
    const uint64_t end = std::min<uint64_t>((uint64_t(byte) + bytes) / granuleBytes, granules.size());
    for (uint64_t g = byte / granuleBytes; g < end; ++g)
      add(granules[g], threads, warps);
  }
  addRuns(granules, granuleBytes);
}

void Footprint::addRuns(llvm::ArrayRef<Granule> granules, unsigned granuleBytes) {
  for (size_t g = 0; g < granules.size(); ++g) {
    if (g == 0 || !(granules[g] == granules[g - 1]))
      runs.push_back({g * granuleBytes, 0, 0, granules[g]});
    runs.back().end = (g + 1) * granuleBytes;
  }
  for (size_t r = runs.size(); r-- > 0;) {
    const bool isLast = r + 1 == runs.size() || runs[r + 1].granule.warps != runs[r].granule.warps;
    runs[r].endOfWarps = isLast ? runs[r].end : runs[r + 1].endOfWarps;
  }
}

bool Footprint::meetsItself() const {
  return llvm::any_of(runs, [](const Run &run) { return run.granule.meets; });
}

/// Whether each granule is of one thread, perhaps of the same one.
static bool mayBeOfOneThread(const Footprint::Granule &mine, const Footprint::Granule &its) {
  return !mine.several && !its.several && mine.warps == its.warps;
}

/// Adds who meets on a granule.
static void addTo(Conflict &conflict, const Footprint::Granule &mine, const Footprint::Granule &its) {
  if (!mine.warps || !its.warps)
    return;
  const uint32_t warps = mine.warps | its.warps;
  conflict.warps |= warps;
  if (mayBeOfOneThread(mine, its) && mine.thread == its.thread) {
    conflict.scope = std::max(conflict.scope, Scope::Thread);
    return;
  }
  conflict.scope = std::max(conflict.scope, llvm::isPowerOf2_32(warps) ? Scope::Warp : Scope::Cta);
  for (uint32_t left = mine.warps; left != 0; left &= left - 1)
    conflict.meets[llvm::countr_zero(left)] |= its.warps;
}

Conflict Footprint::conflictWith(uint64_t base, const Footprint &other, uint64_t otherBase) const {
  Conflict conflict;
  const uint64_t begin = std::max(base, otherBase), end = std::min(base + bytes(), otherBase + other.bytes());
  if (begin >= end)
    return conflict;
  // Bytes of which both have a run each, one piece after the other: as long as which threads of a warp they are may
  // matter, else of all runs of the same warps.
  const Run *mine = runAt(begin - base), *its = other.runAt(begin - otherBase);
  for (uint64_t at = begin;;) {
    addTo(conflict, mine->granule, its->granule);
    const bool isFine = mayBeOfOneThread(mine->granule, its->granule);
    const uint64_t myEnd = base + (isFine ? mine->end : mine->endOfWarps);
    const uint64_t itsEnd = otherBase + (isFine ? its->end : its->endOfWarps);
    at = std::min(myEnd, itsEnd);
    if (at >= end)
      return conflict;
    if (at >= base + mine->end)
      mine = at == base + mine->end ? mine + 1 : runAt(at - base);
    if (at >= otherBase + its->end)
      its = at == otherBase + its->end ? its + 1 : other.runAt(at - otherBase);
  }
}

const Footprint::Run *Footprint::runAt(uint64_t byte) const {
  return &*std::prev(llvm::upper_bound(runs, byte, [](uint64_t at, const Run &run) { return at < run.begin; }));
}

/// All that forEachAccess looks at.
static std::string keyOf(const Kernel &kernel, const Role &role, const Op &op, unsigned operand) {
  std::string key = kernel.backend;
  const Buffer &buffer = *op.operands[operand].buffer;
  const WarpGrid grid = warpGridOf(kernel, role);
  const bool isOfFragment = op.operands.front().buffer && op.operands.front().buffer->space == Space::Fragment;
  for (uint64_t number :
       {uint64_t(op.kind), uint64_t(operand), uint64_t(role.firstWarp), uint64_t(role.warps), uint64_t(buffer.rows),
        uint64_t(buffer.columns), uint64_t(sizeOf(buffer.type)), uint64_t(buffer.layout), buffer.stageBytes(),
        uint64_t(isOfFragment), uint64_t(grid.rows), uint64_t(grid.columns)})
    key += " " + std::to_string(number);
  key += " " + std::to_string(vectorBytesOf(kernel));
  for (Attr attribute : {Attr::Form, Attr::By, Attr::Kind, Attr::Reach})
    key += " " + (op.has(attribute) ? op.text(attribute).str() : "-");
  return key;
}

namespace {

/// What all kernels of this run of the compiler share. They are lowered side by side.
struct Memo {
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<const Footprint>> footprints;
  using Pair = std::pair<const Footprint *, const Footprint *>;
  llvm::DenseMap<std::pair<Pair, int64_t>, Conflict> conflicts; ///< and how many bytes the second lies after the first
};

Memo &memo() {
  static Memo instance;
  return instance;
}

} // namespace

const Footprint &fagen::footprintOf(const Kernel &kernel, const Role &role, const Op &op, unsigned operand) {
  const std::string key = keyOf(kernel, role, op, operand);
  {
    const std::lock_guard lock(memo().mutex);
    if (auto found = memo().footprints.find(key); found != memo().footprints.end())
      return *found->second;
  }
  auto footprint = std::make_unique<const Footprint>(kernel, role, op, operand);
  const std::lock_guard lock(memo().mutex);
  return *memo().footprints.try_emplace(key, std::move(footprint)).first->second;
}

Conflict fagen::conflictOf(const Footprint &first, uint64_t base, const Footprint &second, uint64_t otherBase) {
  if (base + first.bytes() <= otherBase || otherBase + second.bytes() <= base)
    return {};
  const std::pair<Memo::Pair, int64_t> key{{&first, &second}, int64_t(otherBase - base)};
  {
    const std::lock_guard lock(memo().mutex);
    if (auto found = memo().conflicts.find(key); found != memo().conflicts.end())
      return found->second;
  }
  const Conflict conflict = first.conflictWith(base, second, otherBase);
  const std::lock_guard lock(memo().mutex);
  return memo().conflicts.try_emplace(key, conflict).first->second;
}
