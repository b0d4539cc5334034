// fagen: what a warp's lanes do together. The last lane to come does it for all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Multiply.h"
#include "emulator/engine/Cta.h"
#include "emulator/memory/Uninitialised.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace fagen::emulator {

const char *collectiveName(Collective collective) {
  switch (collective) {
  case Collective::kLoadMatrices:
    return "ldmatrix";
  case Collective::kLoadMatricesTransposed:
    return "ldmatrix.trans";
  case Collective::kMultiplyF16:
    return "mma f16";
  case Collective::kMultiplyBf16:
    return "mma bf16";
  case Collective::kWmmaLoad:
    return "wmma_load";
  case Collective::kWmmaMultiply:
    return "wmma_mma";
  case Collective::kWmmaStore:
    return "wmma_store";
  case Collective::kShuffleXor:
    return "shuffle_xor";
  case Collective::kVoteAny:
    return "any";
  case Collective::kWarpBarrier:
    return "warp_barrier";
  case Collective::kNamedBarrier:
    return "named_barrier";
  case Collective::kNamedBarrierArrive:
    return "named_barrier_arrive";
  case Collective::kStoreMatrices:
    return "stmatrix";
  case Collective::kStoreMatricesTransposed:
    return "stmatrix.trans";
  case Collective::kElectOne:
    return "elect_one";
  case Collective::kWgmma:
    return "wgmma";
  case Collective::kWgmmaFence:
    return "wgmma_fence";
  case Collective::kWgmmaCommit:
    return "wgmma_commit";
  case Collective::kWgmmaWait:
    return "wgmma_wait";
  case Collective::kSetMaxNReg:
    return "setmaxnreg";
  case Collective::kClusterArrive:
    return "cluster_arrive";
  case Collective::kClusterWait:
    return "cluster_wait";
  }
  return "";
}

/// The running lane comes to a collective and goes on when all 32 have come.
void Cta::meet(Collective collective, const Operands &operands, Site site) {
  count(site);
  Lane &lane = *running;
  Warp &warp = *lane.warp;
  if (warp.exited || warp.present != ~0u ||
      (warp.arrived && (warp.collective != collective || warp.site.line != site.line))) {
    reportMismatch(warp, collective, site);
    abandon();
  }
  warp.collective = collective;
  warp.site = site;
  warp.operands[lane.thread % kWarpLanes] = operands;
  warp.arrived |= lane.bit;
  if (warp.arrived != ~0u) {
    warp.ready &= ~lane.bit;
    block();
    return;
  }
  if (grid->options.landing == Options::Random)
    landSome(lane);
  races.clocks.waits.meet(warp.index);
  perform(warp);
  if (grid->options.banks)
    banks.meet(warp.index);
  warp.arrived = 0;
  warp.ready = warp.isHeld() ? 0 : ~0u;
  if (warp.isHeld())
    block();
  else
    perhapsYield();
}

/// The lanes cannot meet: some returned, or wait elsewhere.
void Cta::reportMismatch(Warp &warp, Collective collective, Site site) {
  const char *name = collectiveName(collective);
  if (warp.present != ~0u || warp.exited)
    report("exited-lane", site, [&] {
      return fmt::format("{} comes to {}, but {} lanes of its warp {}", describeThread(), name,
                         std::popcount(warp.exited | ~warp.present), warp.exited ? "have returned" : "do not exist");
    });
  else
    report(
        "lane-mismatch", site,
        [&] {
          return fmt::format("{} comes to {}, but other lanes of its warp wait in {} at {}", describeThread(), name,
                             collectiveName(warp.collective), place(warp.site));
        },
        warp.site.line, static_cast<int>(warp.index * kWarpLanes) + std::countr_zero(warp.arrived));
}

void Cta::shuffle(Warp &warp) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const Operands &own = warp.operands[lane];
    if (isUninitialised(own.b0)) [[unlikely]]
      reportUninitialised(lanes[warp.index * kWarpLanes + lane], "gives shuffle_xor", warp.site);
    std::memcpy(own.result, &warp.operands[(lane ^ own.b1) % kWarpLanes].b0, sizeof(float));
  }
}

void vote(Warp &warp) {
  unsigned any = 0;
  for (const Operands &own : warp.operands)
    any |= own.b0;
  for (const Operands &own : warp.operands)
    *static_cast<bool *>(own.result) = any != 0;
}

/// PTX ISA, matrix fragments for mma.m16n8k16: with g = lane / 4 and t = lane % 4, a[0] holds A (g, 2t) and (g, 2t +
/// 1), a[1] the same of row g + 8, a[2] and a[3] those of columns + 8; b0 holds B (2t, g) and (2t + 1, g), b1 those of
/// rows + 8; d[0], d[1] are D (g, 2t), (g, 2t + 1), and d[2], d[3] those of row g + 8.
void Cta::multiplyFragments(Warp &warp, device::ptx::ElementType type) {
  Product product;
  float accumulators[kWarpLanes][4];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const Operands &own = warp.operands[lane];
    const unsigned g = lane / 4, t = lane % 4 * 2;
    for (unsigned i = 0; i < 4; ++i)
      std::memcpy(&product.a[g + i % 2 * 8][t + i / 2 * 8], &own.a[i], sizeof(unsigned));
    product.b[t][g] = static_cast<uint16_t>(own.b0);
    product.b[t + 1][g] = static_cast<uint16_t>(own.b0 >> 16);
    product.b[t + 8][g] = static_cast<uint16_t>(own.b1);
    product.b[t + 9][g] = static_cast<uint16_t>(own.b1 >> 16);
    std::memcpy(accumulators[lane], own.result, sizeof(accumulators[lane]));
  }
  multiply(type, product);
  bool hasNan = false;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    float *d = static_cast<float *>(warp.operands[lane].result);
    const unsigned g = lane / 4, t = lane % 4 * 2;
    for (unsigned i = 0; i < 4; ++i) {
      d[i] = addProduct(d[i], product.d[g + i / 2 * 8][t + i % 2]);
      hasNan |= d[i] != d[i];
    }
  }
  if (!hasNan) [[likely]]
    return;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const Operands &own = warp.operands[lane];
    const unsigned b[] = {own.b0, own.b1};
    if (holdsUninitialised(accumulators[lane], sizeof(accumulators[lane])) ||
        holdsUninitialised(own.a, 4 * sizeof(unsigned)) || holdsUninitialised(b, sizeof(b)))
      reportUninitialised(lanes[warp.index * kWarpLanes + lane], "gives mma", warp.site);
  }
}

void Cta::loadMatrices(Warp &warp, bool transpose) {
  unsigned short matrix[4][8][8];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    std::memcpy(matrix[lane / 8][lane % 8],
                matrixRow(lanes[warp.index * kWarpLanes + lane], warp.operands[lane].b0, warp.site), 16);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    unsigned *words = static_cast<unsigned *>(warp.operands[lane].result);
    const unsigned g = lane / 4, t = lane % 4 * 2;
    for (unsigned i = 0; i < 4; ++i)
      words[i] = transpose ? matrix[i][t][g] | static_cast<unsigned>(matrix[i][t + 1][g]) << 16
                           : matrix[i][g][t] | static_cast<unsigned>(matrix[i][g][t + 1]) << 16;
  }
}

/// Of each matrix lane 8i + r names row r, and four lanes hold it: the warp writes it as a whole.
void Cta::storeMatrices(Warp &warp, bool transpose) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const unsigned i = lane / 8, row = lane % 8, address = warp.operands[lane].b0;
    uint16_t elements[8];
    for (unsigned column = 0; column < 8; ++column) {
      const unsigned g = transpose ? column : row, t = transpose ? row : column;
      elements[column] = static_cast<uint16_t>(warp.operands[4 * g + t / 2].a[i] >> 16 * (t % 2));
    }
    Lane &own = lanes[warp.index * kWarpLanes + lane];
    if (holdsUninitialised(warp.operands[lane].a, 4 * sizeof(unsigned))) [[unlikely]]
      reportUninitialised(own, "stores by stmatrix", warp.site);
    Lane *caller = running;
    running = &own; // whom findings name
    const bool usable = checkShared(Access::kWrite, address, sizeof(elements), warp.site);
    running = caller;
    if (!usable)
      continue;
    checkRace(Access::kWrite, {warp.index, ~0u}, address, sizeof(elements), warp.site);
    std::memcpy(shared + address, elements, sizeof(elements));
    std::memset(&state[address], kWritten, sizeof(elements));
  }
}

static void electFirst(Warp &warp) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    *static_cast<bool *>(warp.operands[lane].result) = lane == 0;
}

void Cta::perform(Warp &warp) {
  switch (warp.collective) {
  case Collective::kLoadMatrices:
    return loadMatrices(warp, false);
  case Collective::kLoadMatricesTransposed:
    return loadMatrices(warp, true);
  case Collective::kMultiplyF16:
    return multiplyFragments(warp, device::ptx::ElementType::kF16);
  case Collective::kMultiplyBf16:
    return multiplyFragments(warp, device::ptx::ElementType::kBf16);
  case Collective::kWmmaLoad:
    return loadMatrix(warp);
  case Collective::kWmmaMultiply:
    return multiplyMatrices(warp);
  case Collective::kWmmaStore:
    return storeMatrix(warp);
  case Collective::kShuffleXor:
    return shuffle(warp);
  case Collective::kVoteAny:
    return vote(warp);
  case Collective::kWarpBarrier:
    return races.clocks.warpBarrier(warp.index);
  case Collective::kNamedBarrier:
  case Collective::kNamedBarrierArrive:
    return comeToBarrier(warp);
  case Collective::kStoreMatrices:
    return storeMatrices(warp, false);
  case Collective::kStoreMatricesTransposed:
    return storeMatrices(warp, true);
  case Collective::kElectOne:
    return electFirst(warp);
  case Collective::kWgmma:
    return comeToProduct(warp);
  case Collective::kWgmmaFence:
    return fenceProducts(warp);
  case Collective::kWgmmaCommit:
    return commitProducts(warp);
  case Collective::kWgmmaWait:
    return waitForProducts(warp, warp.operands[0].b0);
  case Collective::kSetMaxNReg:
    return setRegisters(warp);
  case Collective::kClusterArrive:
    return arriveAtCluster(warp);
  case Collective::kClusterWait:
    return waitAtCluster(warp);
  }
}

} // namespace fagen::emulator
