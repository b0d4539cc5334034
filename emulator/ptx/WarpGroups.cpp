// fagen: products of warp groups, which read shared memory and registers on their own, and the registers of groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product is computed as late as it can be: when the first warp waits for it (Options::landing: Earliest computes it
// at issue). From issue to the wait its accumulators hold the pattern of registers that nobody wrote: who uses them is
// found where the value leaves the registers, and who writes them when the wait comes. Registers have no accesses that
// could be seen, so a missing wgmma_fence is found by comparing what the fence saw with what the product was given.
#include "ByteSum.h"
#include "Multiply.h"
#include "emulator/engine/Cta.h"
#include "emulator/memory/Uninitialised.h"

#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

namespace {

constexpr unsigned kGroupWarps = 4;
constexpr unsigned kGroupThreads = kGroupWarps * kWarpLanes;
constexpr unsigned kAllWarps = (1u << kGroupWarps) - 1;
constexpr unsigned kRows = 64, kDepth = 16;
constexpr unsigned kSliceBytes = 32; ///< of what a product sums over, of each row
constexpr unsigned kChunk = 16;

using device::ptx::ElementType;

unsigned bytesOf(ElementType type) {
  switch (type) {
  case ElementType::kF16:
  case ElementType::kBf16:
    return 2;
  case ElementType::kE4m3:
    return 1;
  }
  return 0;
}

/// An operand's descriptor, decoded (PTX ISA, matrix descriptor).
struct Operand {
  unsigned start, leading, stride; ///< bytes
  unsigned rowBytes;               ///< of the swizzle; 0: none
  bool isMnMajor;
  unsigned bytes; ///< of an element

  /// `window` is where the shared memory of its CTA begins.
  Operand(uint64_t bits, bool isMnMajor, ElementType type, unsigned window)
      : start(window + (static_cast<unsigned>(bits & 0x3fff) << 4)),
        leading(static_cast<unsigned>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<unsigned>(bits >> 32 & 0x3fff) << 4), rowBytes(bits >> 62 == 1   ? 128
                                                                          : bits >> 62 == 2 ? 64
                                                                          : bits >> 62 == 3 ? 32
                                                                                            : 0),
        isMnMajor(isMnMajor), bytes(bytesOf(type)) {}

  /// Address of element (k, m or n): rows run along K, or along the other dimension; hardware permutes the bits of the
  /// sum.
  unsigned address(unsigned k, unsigned m) const {
    const unsigned across = isMnMajor ? k : m, along = bytes * (isMnMajor ? m : k);
    const unsigned linear =
        start + across / 8 * stride + across % 8 * rowBytes + along / rowBytes * leading + along % rowBytes;
    return linear ^ (linear >> 7 & (rowBytes / kChunk - 1)) << 4;
  }
};

/// In the order of their addresses' chunks: calls visit(chunk address) for what the rows [begin, end) of A or the
/// columns of B take.
template <class Visit> void forChunks(const Operand &operand, unsigned begin, unsigned end, Visit visit) {
  const unsigned depth = kSliceBytes / operand.bytes, elements = kChunk / operand.bytes;
  if (operand.isMnMajor) {
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned m = begin; m < end; m += elements)
        visit(operand.address(k, m));
  } else {
    for (unsigned m = begin; m < end; ++m)
      for (unsigned k = 0; k < depth; k += elements)
        visit(operand.address(k, m));
  }
}

bool isAllUninitialised(const uint32_t *words, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (words[i] != device::ptx::kUninitialised)
      return false;
  return true;
}

} // namespace

/// The warp's part of a product: it is held until the three others have come.
void Cta::comeToProduct(Warp &warp) {
  refineClocks();
  WarpGroup &group = warpGroups[warp.index / kGroupWarps];
  if (warp.index / kGroupWarps * kGroupWarps + kGroupWarps > warpCount) {
    report("lane-mismatch", warp.site, [&] {
      return fmt::format("warp {} of CTA {} is in no warp group of four", warpInCta(warp.index), ctaOfWarp(warp.index));
    });
    abandon();
  }
  group.come |= 1u << warp.index % kGroupWarps;
  warp.heldInGroup = true;
  if (group.come != kAllWarps)
    return;
  const unsigned first = warp.index / kGroupWarps * kGroupWarps;
  if (isSameProduct(first))
    issueProduct(group, first);
  group.come = 0;
  for (unsigned w = first; w < first + kGroupWarps; ++w) {
    races.clocks.waits.tellWarp(w, group.waits);
    warps[w].heldInGroup = false;
    warps[w].ready = ~0u;
  }
}

/// All lanes of the group give the same descriptors, at one place.
bool Cta::isSameProduct(unsigned first) {
  const Operands &one = warps[first].operands[0];
  for (unsigned t = 0; t < kGroupThreads; ++t) {
    const Warp &warp = warps[first + t / kWarpLanes];
    const Operands &own = warp.operands[t % kWarpLanes];
    if (warp.site.line == warps[first].site.line && own.descriptors == one.descriptors && own.form == one.form &&
        !own.a == !one.a)
      continue;
    report(
        "lane-mismatch", warp.site,
        [&] {
          return fmt::format(
              "thread {} of CTA {} gives this product another shape or descriptor than thread {} did at {}",
              threadInCta(first * kWarpLanes + t), ctaOfWarp(first), threadInCta(first * kWarpLanes),
              place(warps[first].site));
        },
        warps[first].site.line);
    return false;
  }
  if (one.descriptors[1] >> 62 && (one.a || one.descriptors[0] >> 62) && !(one.descriptors[1] >> 49 & 7))
    return true;
  report("wgmma-descriptor", warps[first].site,
         [&] { return fmt::format("descriptors without swizzle or with a base offset are not emulated"); });
  return false;
}

/// Where the thread's array is remembered; made when it is new.
KnownRegisters &Cta::knownRegisters(Lane &lane, const void *where, unsigned words) {
  for (KnownRegisters &known : lane.registers)
    if (known.where == where) {
      if (known.words != words)
        known = {where, words, lane.waitedAt};
      return known;
    }
  lane.registers.push_back({where, words, lane.waitedAt});
  return lane.registers.back();
}

/// PTX asks for a fence between any access to the registers and the product.
void Cta::checkFenced(Lane &lane, const void *where, unsigned words, const char *what, Site site) {
  const KnownRegisters &known = knownRegisters(lane, where, words);
  Lane *caller = running;
  running = &lane; // whom the finding names
  if (lane.fencedAt <= known.doneAt)
    report("missing-fence", site, [&] {
      return fmt::format("{} gives the product {} that it could touch, and called no wgmma_fence since",
                         describeThread(), what);
    });
  else if (!known.fenced.empty() && std::memcmp(known.fenced.data(), where, 4 * words) != 0 &&
           !isAllUninitialised(static_cast<const uint32_t *>(where), words))
    report("missing-fence", site,
           [&] { return fmt::format("{} wrote {} after its last wgmma_fence", describeThread(), what); });
  running = caller;
}

/// The accumulators' values as the product will find them.
Flight &Cta::flightOf(WarpGroup &group, unsigned first, unsigned registers, bool accumulate, Site site) {
  float *d0 = static_cast<float *>(warps[first].operands[0].result);
  Flight *flight = nullptr;
  for (Flight &open : group.flights)
    if (open.d[0] == d0 && open.registers == registers && open.open)
      flight = &open;
  if (!flight) {
    group.flights.push_back({.registers = registers});
    flight = &group.flights.back();
    flight->values.resize(size_t(kGroupThreads) * registers);
  }
  for (unsigned t = 0; t < kGroupThreads; ++t) {
    const unsigned w = t / kWarpLanes;
    if (flight->open >> w & 1)
      continue; // on its way already, from one product to the next
    Lane &lane = lanes[first * kWarpLanes + t];
    float *d = static_cast<float *>(warps[first + w].operands[t % kWarpLanes].result);
    flight->d[t] = d;
    checkFenced(lane, d, registers, "accumulators", site);
    if (accumulate && holdsUninitialised(d, 4 * registers))
      reportUninitialised(lane, "gives wgmma", site);
    std::memcpy(&flight->values[size_t(t) * registers], d, 4 * registers);
    if (grid->options.landing != Options::Earliest)
      std::fill_n(reinterpret_cast<uint32_t *>(d), registers, device::ptx::kUninitialised);
  }
  flight->open = kAllWarps;
  return *flight;
}

void Cta::issueProduct(WarpGroup &group, unsigned first) {
  const Operands &one = warps[first].operands[0];
  const Site site = warps[first].site;
  Product64 product = {one.form, one.descriptors[0], one.descriptors[1], {}, {}, nullptr, site};
  product.window = static_cast<unsigned>(first / ctaWarps * window);
  for (unsigned t = 0; one.a && t < kGroupThreads; ++t) {
    Lane &lane = lanes[first * kWarpLanes + t];
    const unsigned *a = warps[first + t / kWarpLanes].operands[t % kWarpLanes].a;
    checkFenced(lane, a, 4, "registers of A", site);
    if (holdsUninitialised(a, 16))
      reportUninitialised(lane, "gives wgmma", site);
    product.a[t] = a;
    product.given.push_back({a[0], a[1], a[2], a[3]});
  }
  checkOperands(group, product, first);
  product.flight = &flightOf(group, first, one.form.registers, one.form.accumulate, site);
  product.flight->lastProduct = group.next();
  group.products.push_back(std::move(product));
  if (grid->options.landing == Options::Earliest)
    computeProducts(group, group.next());
}

/// The reads of shared memory begin now, and may go on until the wait. Every warp reads all of B and its rows of A.
void Cta::checkOperands(WarpGroup &group, const Product64 &product, unsigned first) {
  const unsigned queue = static_cast<unsigned>(&group - warpGroups.data());
  const auto entry = static_cast<uint32_t>(group.next());
  const unsigned n = 2 * product.form.registers;
  const ElementType type = product.form.operand;
  for (unsigned w = first; w < first + kGroupWarps; ++w) {
    const SharedRaces::Asynchronous by = {{w, ~0u}, queue, entry, product.site.line};
    Lane *caller = running;
    running = &lanes[w * kWarpLanes]; // whom findings name
    const auto check = [&](unsigned address) {
      if (checkShared(Access::kRead, address, kChunk, product.site))
        checkAsynchronous(Access::kRead, by, address, product.site);
    };
    if (!product.a[0])
      forChunks(Operand(product.aDescriptor, product.form.is_mn_major_a, type, product.window), (w - first) * 16,
                (w - first) * 16 + 16, check);
    forChunks(Operand(product.bDescriptor, product.form.is_mn_major_b, type, product.window), 0, n, check);
    running = caller;
  }
}

uint8_t Cta::sharedByte(unsigned address) const { return isShared(address, 1) ? shared[address] : 0xff; }

uint16_t Cta::sharedElement(unsigned address) const {
  uint16_t bits = 0xffff;
  if (isShared(address, 2))
    std::memcpy(&bits, shared + address, 2);
  return bits;
}

/// The accumulator of an element of the product; its warp and register as mma.m16n8k16 has them.
static float &accumulatorOf(const Product64 &product, unsigned row, unsigned column) {
  const unsigned registers = product.form.registers;
  const size_t thread = row / 16 * kWarpLanes + row % 8 * 4 + column % 8 / 2;
  return product.flight->values[thread * registers + column / 8 * 4 + row / 8 % 2 * 2 + column % 2];
}

/// A byte of A in registers: register i has row g (+ 8 where i is odd), at 16 (i / 2) + 4t of what is summed over.
static uint8_t givenByte(const Product64 &product, unsigned row, unsigned k) {
  const unsigned lane = row / 16 * kWarpLanes + row % 8 * 4 + k % 16 / 4;
  return static_cast<uint8_t>(product.given[lane][row / 8 % 2 + k / 16 * 2] >> 8 * (k % 4));
}

void Cta::computeByteProduct(const Product64 &product) {
  const Operand a(product.aDescriptor, false, product.form.operand, product.window),
      b(product.bDescriptor, false, product.form.operand, product.window);
  const unsigned columns = 2 * product.form.registers;
  std::vector<std::array<uint8_t, kByteDepth>> right(columns);
  for (unsigned n = 0; n < columns; ++n)
    for (unsigned k = 0; k < kByteDepth; ++k)
      right[n][k] = sharedByte(b.address(k, n));
  for (unsigned row = 0; row < kRows; ++row) {
    std::array<uint8_t, kByteDepth> left;
    for (unsigned k = 0; k < kByteDepth; ++k)
      left[k] = product.a[0] ? givenByte(product, row, k) : sharedByte(a.address(k, row));
    for (unsigned n = 0; n < columns; ++n) {
      float &d = accumulatorOf(product, row, n);
      d = addByteProducts(left.data(), right[n].data(), product.form.accumulate ? d : 0.0f);
    }
  }
}

void Cta::computeProduct(const Product64 &product) {
  if (bytesOf(product.form.operand) == 1)
    return computeByteProduct(product);
  const Operand a(product.aDescriptor, product.form.is_mn_major_a, product.form.operand, product.window),
      b(product.bDescriptor, product.form.is_mn_major_b, product.form.operand, product.window);
  const unsigned registers = product.form.registers;
  std::vector<Product> tiles(kGroupWarps);
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned k = 0; k < kDepth; ++k) {
      uint16_t bits;
      if (product.a[0]) { // the fragments of mma.m16n8k16
        const unsigned lane = row / 16 * kWarpLanes + row % 8 * 4 + k % 8 / 2;
        bits = static_cast<uint16_t>(product.given[lane][row / 8 % 2 + k / 8 * 2] >> 16 * (k % 2));
      } else {
        bits = sharedElement(a.address(k, row));
      }
      tiles[row / 16].a[row % 16][k] = bits;
    }
  for (unsigned first = 0; first < 2 * registers; first += 8) {
    uint16_t columns[kDepth][8];
    for (unsigned k = 0; k < kDepth; ++k)
      for (unsigned n = 0; n < 8; ++n)
        columns[k][n] = sharedElement(b.address(k, first + n));
    for (unsigned w = 0; w < kGroupWarps; ++w) {
      Product &tile = tiles[w];
      std::memcpy(tile.b, columns, sizeof(columns));
      multiply(product.form.operand, tile);
      for (unsigned row = 0; row < 16; ++row)
        for (unsigned n = 0; n < 8; ++n) {
          float &d = accumulatorOf(product, 16 * w + row, first + n);
          d = addProduct(product.form.accumulate ? d : 0.0f, tile.d[row][n]);
        }
    }
  }
}

/// Computes products before number `end`, in order. Their registers of A must still be as they were given.
void Cta::computeProducts(WarpGroup &group, uint64_t end) {
  for (; group.firstProduct < end; ++group.firstProduct) {
    const Product64 product = std::move(group.products.front());
    group.products.pop_front();
    computeProduct(product);
    const unsigned first = static_cast<unsigned>(&group - warpGroups.data()) * kGroupThreads;
    for (unsigned t = 0; product.a[0] && t < kGroupThreads; ++t) {
      Lane &lane = lanes[first + t];
      if (std::memcmp(product.a[t], product.given[t].data(), 16) != 0)
        reportInFlight(lane, "registers of A", product.site);
    }
  }
}

void Cta::reportInFlight(Lane &lane, const char *what, Site site) {
  Lane *caller = running;
  running = &lane; // whom the finding names
  report("registers-in-flight", site,
         [&] { return fmt::format("{} wrote {} of this product before it waited for it", describeThread(), what); });
  running = caller;
}

void Cta::fenceProducts(Warp &warp) {
  ++registerTime;
  for (unsigned i = 0; i < kWarpLanes; ++i) {
    Lane &lane = lanes[warp.index * kWarpLanes + i];
    lane.fencedAt = registerTime;
    for (KnownRegisters &known : lane.registers) {
      const auto *words = static_cast<const uint32_t *>(known.where);
      known.fenced.assign(words, words + known.words);
    }
  }
}

void Cta::commitProducts(Warp &warp) {
  WarpProducts &own = warpProducts[warp.index];
  own.committed = warpGroups[warp.index / kGroupWarps].next();
  own.groups.push_back({own.committed, warpGroups[warp.index / kGroupWarps].waits});
}

/// The warp's accumulators of products that no later one has come back to it.
void Cta::waitForProducts(Warp &warp, unsigned pending) {
  WarpProducts &own = warpProducts[warp.index];
  if (own.groups.size() <= pending)
    return;
  WarpGroup &group = warpGroups[warp.index / kGroupWarps];
  const ProductGroup &last = own.groups[own.groups.size() - pending - 1];
  own.done = last.end;
  races.clocks.waits.learnWarp(warp.index, last.waits);
  own.groups.erase(own.groups.begin(), own.groups.end() - static_cast<ptrdiff_t>(pending));
  computeProducts(group, std::max(own.done, group.firstProduct));
  ++registerTime;
  const unsigned w = warp.index % kGroupWarps;
  for (Flight &flight : group.flights)
    if (flight.lastProduct < own.done && (flight.open >> w & 1))
      deliver(flight, warp);
  while (!group.flights.empty() && group.flights.front().open == 0)
    group.flights.pop_front();
  for (unsigned i = 0; i < kWarpLanes; ++i) {
    Lane &lane = lanes[warp.index * kWarpLanes + i];
    lane.waitedAt = registerTime;
    for (KnownRegisters &known : lane.registers)
      if (known.words == 4)
        known.doneAt = registerTime; // A of some product: one that is done, or will be
    if (own.done > 0)
      races.clocks.learnQueue(lane.thread, warp.index / kGroupWarps, static_cast<uint32_t>(own.done - 1));
  }
}

void Cta::deliver(Flight &flight, Warp &warp) {
  const unsigned w = warp.index % kGroupWarps;
  flight.open &= ~(1u << w);
  for (unsigned i = 0; i < kWarpLanes; ++i) {
    const unsigned t = w * kWarpLanes + i;
    Lane &lane = lanes[warp.index * kWarpLanes + i];
    float *d = flight.d[t];
    if (grid->options.landing != Options::Earliest &&
        !isAllUninitialised(reinterpret_cast<const uint32_t *>(d), flight.registers))
      reportInFlight(lane, "accumulators", warp.site);
    std::memcpy(d, &flight.values[size_t(t) * flight.registers], 4 * flight.registers);
    knownRegisters(lane, d, flight.registers).doneAt = registerTime;
  }
}

/// A whole group changes its registers, each warp as it comes. Who takes more than the CTA has left is held until
/// others give.
void Cta::setRegisters(Warp &warp) {
  const unsigned wanted = warp.operands[0].b0;
  const bool increases = warp.operands[0].b1 != 0;
  if (increases ? wanted < warp.registers : wanted > warp.registers) {
    report("setmaxnreg", warp.site, [&] {
      return fmt::format("warp {} of CTA {} has {} registers a thread and {} to {}", warpInCta(warp.index),
                         ctaOfWarp(warp.index), warp.registers, increases ? "takes more up" : "gives some back down",
                         wanted);
    });
    return;
  }
  if (!increases) {
    ctas[warp.index / ctaWarps].freeRegisters += (warp.registers - wanted) * kWarpLanes;
    warp.registers = wanted;
    grantRegisters();
    return;
  }
  warp.wantsRegisters = wanted;
  grantRegisters();
}

void Cta::grantRegisters() {
  for (unsigned w = 0; w < warpCount; ++w) {
    Warp &warp = warps[w];
    if (!warp.wantsRegisters)
      continue;
    unsigned &freeRegisters = ctas[w / ctaWarps].freeRegisters;
    const unsigned more = (warp.wantsRegisters - warp.registers) * kWarpLanes;
    if (more > freeRegisters)
      continue;
    freeRegisters -= more;
    warp.registers = warp.wantsRegisters;
    warp.wantsRegisters = 0;
    if (&warp != running->warp)
      warp.ready = ~0u;
  }
}

/// setmaxnreg is for whole groups: a warp that left it out keeps registers that the others count on.
void Cta::checkRegisters() {
  for (unsigned w = 0; w < warpCount; ++w) {
    const Warp &first = warps[w / kGroupWarps * kGroupWarps];
    if (warps[w].registers != first.registers)
      found.add("setmaxnreg", Site{"", 0}, [&] {
        return fmt::format("warps {} and {} of CTA {} are of one group and end with {} and {} registers a thread",
                           warpInCta(first.index), warpInCta(w), ctaOfWarp(w), first.registers, warps[w].registers);
      });
  }
}

} // namespace fagen::emulator
