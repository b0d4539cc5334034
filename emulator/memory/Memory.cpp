// fagen: global and shared memory, and what is known about each shared byte.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Uninitialised.h"
#include "emulator/engine/Cta.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

namespace {

constexpr unsigned char kPoison[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// memcpy of the sizes that accesses have, each one or two moves.
void copyBytes(void *to, const void *from, unsigned bytes) {
  switch (bytes) {
  case 1:
    std::memcpy(to, from, 1);
    break;
  case 2:
    std::memcpy(to, from, 2);
    break;
  case 4:
    std::memcpy(to, from, 4);
    break;
  case 8:
    std::memcpy(to, from, 8);
    break;
  default:
    std::memcpy(to, from, 16);
  }
}

template <class Word> bool equals(const unsigned char *from, Word pattern) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word == pattern;
}

/// Whether an access inside the buffer reaches bytes between the tensor's rows.
bool touchesGap(const Buffer &buffer, size_t offset, unsigned bytes) {
  if (!buffer.used) [[likely]]
    return false;
  for (size_t i = offset / buffer.elementBytes; i * buffer.elementBytes < offset + bytes; ++i)
    if (!(*buffer.used)[i])
      return true;
  return false;
}

/// What a refused atomic gives: beyond all tiles, also after CTAs are added to it, so that who draws tiles ends.
constexpr unsigned kDrawnAmiss = 1u << 30;

/// Whether `bytes` bytes from `state` on are all kWritten.
bool allWritten(const unsigned char *state, unsigned bytes) {
  constexpr uint64_t kPattern = 0x0101010101010101u * kWritten;
  switch (bytes) {
  case 2:
    return equals(state, static_cast<uint16_t>(kPattern));
  case 4:
    return equals(state, static_cast<uint32_t>(kPattern));
  case 8:
    return equals(state, kPattern);
  default:
    return equals(state, kPattern) && equals(state + 8, kPattern);
  }
}

} // namespace

bool Cta::checkShared(Access access, unsigned address, unsigned bytes, Site site) {
  const bool isInside = isShared(address, bytes);
  if ((address & (bytes - 1)) == 0 && isInside) {
    if (allWritten(&state[address], bytes))
      return true;
    return checkState(access, address, bytes, site);
  }
  const char *verb = access == Access::kRead ? "reads" : "writes";
  if (!isInside)
    report("out-of-bounds", site, [&] {
      return fmt::format("{} {} {} bytes at shared address {}; the CTA has {} bytes", describeThread(), verb, bytes,
                         inCta(address), sharedBytes);
    });
  else
    report("misaligned", site, [&] {
      return fmt::format("{} {} {} bytes at shared address {}, which is not a multiple of {}", describeThread(), verb,
                         bytes, inCta(address), bytes);
    });
  return false;
}

/// The access is in bounds and aligned, but not all its bytes are plainly written. Findings here do not stop it.
bool Cta::checkState(Access access, unsigned address, unsigned bytes, Site site) {
  bool pending = false, never = false, barrier = false;
  for (unsigned i = 0; i < bytes; ++i) {
    pending |= state[address + i] == kCopyPending;
    barrier |= state[address + i] == kBarrier;
    never |= state[address + i] == kNeverWritten;
  }
  if (pending) {
    const auto [thread, issued] = findPending(address, bytes);
    report(
        "unfinished-copy", site,
        [&] {
          return fmt::format(
              "{} {} shared bytes {} to {}, into which thread {} issued a copy at {} that was not waited for",
              describeThread(), access == Access::kRead ? "reads" : "writes", inCta(address),
              inCta(address) + bytes - 1, thread, place(issued));
        },
        issued.line, static_cast<int>(thread));
  }
  if (barrier) {
    report("mbarrier", site, [&] {
      return fmt::format("{} {} shared bytes {} to {}, where a barrier is", describeThread(),
                         access == Access::kRead ? "reads" : "writes", inCta(address), inCta(address) + bytes - 1);
    });
    return false;
  }
  if (never && access == Access::kRead)
    report("never-written", site, [&] {
      return fmt::format("{} reads shared bytes {} to {}, which nobody wrote in this CTA", describeThread(),
                         inCta(address), inCta(address) + bytes - 1);
    });
  return true;
}

/// Threads by name: "thread 5 (warp 0 lane 5)" or "warp 2"; in a cluster with their CTA, "warp 2 of CTA 0", unless
/// `isAlone`.
std::string Cta::nameOf(Agent agent, bool isAlone) const {
  if (agent.warp >= Clocks::kFirstQueue) {
    const unsigned queue = agent.warp - Clocks::kFirstQueue;
    if (queue < kFirstStoreQueue)
      return fmt::format("a product of warp group {}{}", queue * 4 % ctaWarps / 4, ofCta(queue * 4 / ctaWarps));
    for (const auto &[address, barrier] : barriers)
      if (barrier.queue == queue)
        return fmt::format("a bulk copy for {}", sharedName(address));
    return "a bulk store";
  }
  const std::string cta = isAlone ? "" : ofCta(agent.warp / ctaWarps);
  const unsigned warp = warpInCta(agent.warp);
  if (agent.lanes & (agent.lanes - 1))
    return fmt::format("warp {}", warp) + cta;
  const int lane = std::countr_zero(agent.lanes);
  return fmt::format("thread {} (warp {} lane {})", warp * kWarpLanes + lane, warp, lane) + cta;
}

int Cta::threadOf(Agent agent) const {
  if (agent.warp >= Clocks::kFirstQueue)
    return -1;
  return static_cast<int>(warpInCta(agent.warp) * kWarpLanes) + std::countr_zero(agent.lanes);
}

void Cta::checkRace(Access access, Agent agent, unsigned address, unsigned bytes, Site site) {
  if (!grid->options.races)
    return;
  const std::optional<Race> race = access == Access::kRead ? races.read(agent, address, bytes, site.line)
                                                           : races.write(agent, address, bytes, site.line);
  if (race) [[unlikely]]
    reportRace(access, *race, agent, "", site);
}

/// `what` stands before the verb: "", or "what it started " for those who only began the access.
void Cta::reportRace(Access access, const Race &race, Agent agent, const char *what, Site site) {
  const bool isUnfenced = race.kind == RaceKind::kUnfenced;
  found.add(isUnfenced ? "missing-fence" : "race", site,
            [&] {
              const char *verb = access == Access::kRead ? "reads" : "writes";
              const std::string other =
                  fmt::format("{} {} at {}", nameOf(race.other),
                              race.kind == RaceKind::kWriteAfterRead ? "read" : "wrote", place({site.file, race.line}));
              if (isUnfenced)
                return fmt::format("{} of CTA {}: {}{} shared byte {}, which {} without a fence_proxy_async after it",
                                   nameOf(agent, true), ctaOfWarp(agent.warp), what, verb, inCta(race.byte), other);
              return fmt::format("{}: {} of CTA {} {}{}{} shared byte {}, which {}, and nothing orders the two",
                                 raceName(race.kind), nameOf(agent, true), ctaOfWarp(agent.warp), *what ? "- " : "",
                                 what, verb, inCta(race.byte), other);
            },
            {race.line, threadOf(agent), threadOf(race.other)});
}

void Cta::checkGlobalRace(Access access, const Buffer &buffer, const void *address, unsigned bytes, Site site) {
  GlobalRaces *accesses = grid->races[static_cast<size_t>(&buffer - grid->launch.buffers.data())].get();
  if (!accesses)
    return;
  const auto race = accesses->access(access == Access::kWrite, {ctaIndex, running->thread, site.line}, races.clocks,
                                     heard, address, bytes);
  if (!race) [[likely]]
    return;
  found.add("race", site,
            [&] {
              return fmt::format(
                  "{}: {} {} byte {} of {}, which thread {} of CTA {} {} at {}, and nothing orders the two",
                  raceName(race->kind), describeThread(), access == Access::kRead ? "reads" : "writes", race->byte,
                  buffer.name, threadInCta(race->other.thread),
                  race->other.cta + race->other.thread / grid->launch.threads,
                  race->kind == RaceKind::kWriteAfterRead ? "read" : "wrote", place({site.file, race->other.line}));
            },
            {race->other.line, static_cast<int>(threadIndex()), static_cast<int>(threadInCta(race->other.thread))});
}

void Cta::loadShared(void *to, unsigned address, unsigned bytes, Site site) {
  count(site);
  if (!checkShared(Access::kRead, address, bytes, site)) {
    std::memset(to, 0xff, bytes);
    return;
  }
  checkRace(Access::kRead, self(), address, bytes, site);
  copyBytes(to, shared + address, bytes);
}

void Cta::storeShared(unsigned address, const void *from, unsigned bytes, Site site) {
  count(site);
  if (!checkShared(Access::kWrite, address, bytes, site))
    return;
  checkRace(Access::kWrite, self(), address, bytes, site);
  if (holdsUninitialised(from, bytes)) [[unlikely]] {
    reportUninitialised(*running, "stores to shared memory", site);
    from = kPoison; // what reads it is not to blame
  }
  copyBytes(shared + address, from, bytes);
  std::memset(&state[address], kWritten, bytes);
}

/// The 16 bytes of a row of ldmatrix; poison when the access is wrong.
const unsigned char *Cta::matrixRow(Lane &lane, unsigned address, Site site) {
  Lane *caller = running;
  running = &lane; // whom the finding names
  const bool usable = checkShared(Access::kRead, address, 16, site);
  if (usable) // every lane gets a part of the row
    checkRace(Access::kRead, {lane.thread / kWarpLanes, ~0u}, address, 16, site);
  running = caller;
  return usable ? shared + address : kPoison;
}

void Cta::reportUninitialised(Lane &lane, const char *what, Site site) {
  Lane *caller = running;
  running = &lane; // whom the finding names
  report("uninitialised", site,
         [&] { return fmt::format("{} {} what comes of registers that nobody wrote", describeThread(), what); });
  running = caller;
}

void Cta::checkWritten(Access access, const Buffer &buffer, size_t offset, unsigned bytes, Site site) {
  if (!buffer.written) [[likely]]
    return;
  unsigned char *const written = buffer.written->data() + offset;
  if (access == Access::kWrite) {
    std::memset(written, 1, bytes);
    return;
  }
  if (std::memchr(written, 0, bytes))
    report("never-written", site, [&] {
      return fmt::format("{} reads bytes {} to {} of {}, which no launch wrote", describeThread(), offset,
                         offset + bytes - 1, buffer.name);
    });
}

bool Cta::checkGlobal(Access access, const void *address, unsigned bytes, Site site) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const std::vector<Buffer> &buffers = grid->launch.buffers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[lastBuffer];
    const uintptr_t offset = begin - reinterpret_cast<uintptr_t>(buffer.begin);
    if (offset < buffer.bytes && buffer.bytes - offset >= bytes) {
      if ((begin & (bytes - 1)) == 0 && (access == Access::kRead || buffer.writable) &&
          !touchesGap(buffer, offset, bytes)) {
        if (access != Access::kAtomic) {
          checkGlobalRace(access, buffer, address, bytes, site);
          checkWritten(access, buffer, offset, bytes, site);
        }
        return true;
      }
      break;
    }
    lastBuffer = lastBuffer + 1 < buffers.size() ? lastBuffer + 1 : 0;
  }
  reportGlobal(access, address, bytes, site);
  return false;
}

/// An access inside a buffer that is refused.
void Cta::reportInside(Access access, const Buffer &buffer, size_t offset, unsigned bytes, Site site) {
  const bool isReadOnly = access != Access::kRead && !buffer.writable;
  const bool isMisaligned = (reinterpret_cast<uintptr_t>(buffer.begin) + offset) % bytes != 0;
  report(isReadOnly     ? "read-only"
         : isMisaligned ? "misaligned"
                        : "out-of-bounds",
         site, [&] {
           return fmt::format("{} {} {} bytes at byte {} of {}, {}", describeThread(),
                              access == Access::kRead ? "reads" : "writes", bytes, offset, buffer.name,
                              isReadOnly     ? "which is read-only"
                              : isMisaligned ? fmt::format("no multiple of {}", bytes)
                                             : "in a gap between its rows");
         });
}

void Cta::reportGlobal(Access access, const void *address, unsigned bytes, Site site) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const char *verb = access == Access::kRead ? "reads" : "writes";
  const Buffer *nearest = nullptr;
  uintptr_t distance = 0;
  bool before = false;
  for (const Buffer &buffer : grid->launch.buffers) {
    const auto first = reinterpret_cast<uintptr_t>(buffer.begin);
    const uintptr_t end = first + buffer.bytes;
    if (begin >= first && begin + bytes <= end)
      return reportInside(access, buffer, begin - first, bytes, site);
    const bool isBefore = begin < first;
    const uintptr_t gap = isBefore ? first - begin : begin - end;
    if (!nearest || gap < distance || (begin < end && !isBefore)) {
      nearest = &buffer;
      distance = begin < end && !isBefore ? 0 : gap;
      before = isBefore;
    }
  }
  report("out-of-bounds", site, [&] {
    if (!nearest)
      return fmt::format("{} {} {} bytes at {}, in no buffer", describeThread(), verb, bytes, address);
    const auto first = reinterpret_cast<uintptr_t>(nearest->begin);
    if (before)
      return fmt::format("{} {} {} bytes at {} bytes before {}", describeThread(), verb, bytes, first - begin,
                         nearest->name);
    return fmt::format("{} {} {} bytes at byte {} of {}, which has {} bytes", describeThread(), verb, bytes,
                       begin - first, nearest->name, nearest->bytes);
  });
}

void Cta::requireAwaited(Site site) {
  if (!grid->launch.mayBeginEarly || running->hasAwaited) [[likely]]
    return;
  report("launches-not-awaited", site, [&] {
    return fmt::format("{} touches global memory without await_launches, while the launch before may still write it",
                       describeThread());
  });
}

void Cta::awaitLaunches(Site site) {
  count(site);
  running->hasAwaited = true;
}

void Cta::loadGlobal(void *to, const void *from, unsigned bytes, Site site) {
  count(site);
  requireAwaited(site);
  if (checkGlobal(Access::kRead, from, bytes, site))
    copyBytes(to, from, bytes);
  else
    std::memset(to, 0xff, bytes);
}

/// The buffer that is meant is known, whatever lies where the index leads.
void Cta::loadElement(void *to, const void *tensor, long long index, unsigned bytes, Site site) {
  for (const Buffer &buffer : grid->launch.buffers)
    if (const auto count = static_cast<long long>(buffer.bytes / bytes);
        buffer.begin == tensor && (index < 0 || index >= count)) {
      report("out-of-bounds", site, [&] {
        return fmt::format("{} reads element {} of {}, which has {} elements", describeThread(), index, buffer.name,
                           count);
      });
      std::memset(to, 0xff, bytes);
      return;
    }
  loadGlobal(to, static_cast<const unsigned char *>(tensor) + index * bytes, bytes, site);
}

void Cta::storeGlobal(void *to, const void *from, unsigned bytes, Site site) {
  count(site);
  requireAwaited(site);
  if (!checkGlobal(Access::kWrite, to, bytes, site))
    return;
  if (holdsUninitialised(from, bytes)) [[unlikely]]
    reportUninitialised(*running, "stores to global memory", site);
  copyBytes(to, from, bytes);
}

/// Atomics of other CTAs race with none: their order is that of a launch's turns (AtomicOrder.h). What is counted
/// nobody reads, and launches leave zeros.
unsigned Cta::atomicInc(unsigned *word, unsigned last, Site site) {
  count(site);
  requireAwaited(site);
  grid->atomics.enter(ctaIndex);
  if (!checkGlobal(Access::kAtomic, word, sizeof(*word), site))
    return kDrawnAmiss;
  const unsigned before = *word;
  *word = before >= last ? 0 : before + 1;
  grid->counts.meet(word, running->fenced, running->heard);
  return before;
}

void Cta::fenceDevice(Site site) {
  count(site);
  refineClocks();
  const unsigned thread = running->thread;
  for (const TellsWho &told : running->heard)
    heard.add(told, thread, races.clocks.epoch(thread / kWarpLanes));
  running->heard.clear();
  auto told = std::make_shared<Told>(Told{ctaIndex, {}});
  races.clocks.arriveAlone(thread, told->known);
  running->fenced = std::move(told);
}

} // namespace fagen::emulator
