// fagen: wmma m16n16k16: 16 x 16 matrices between shared memory and fragments, and their product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX leaves open which lane holds which element. Here, numbering a matrix's elements in the order in which they lie in
// memory (line by line, a line being a row, or a column of a matrix loaded by columns):
//
//   A, B   word w of lane l holds elements 2 (32 w + l) and 2 (32 w + l) + 1, w = 0 to 3; words 4 to 7 of f16 repeat
//          words 0 to 3
//          B that was loaded by columns: lanes in pairs exchanged, so that multiplying it as by rows shows
//   D      f32: word w of lane l holds element 32 w + l, w = 0 to 7; f16: as A
//
// No GPU does so: a kernel that reads meaning into a fragment gives wrong results here. A matrix is reached by the warp
// as a whole: which lane touches which byte is unknown, so an access of any lane that meets it must be ordered with all
// lanes of the warp. touchMatrix() is the one place through which these accesses go.
#include "Multiply.h"
#include "emulator/engine/Cta.h"
#include "emulator/memory/Uninitialised.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fagen/device/ptx/math.h>
#include <fmt/format.h>

namespace fagen::emulator {

namespace {

constexpr unsigned kLines = 16; // of a matrix, each of as many elements
constexpr unsigned kElements = kLines * kLines;
constexpr unsigned kBaseAlignment = 32;
constexpr unsigned kPieceBytes = 16;

/// The nearest f32 to x whose last bit says that something was cut: rounding it once more is as good as rounding x.
float roundToOdd(double x) {
  const float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || !std::isfinite(nearest))
    return nearest;
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (bits & 1)
    return nearest;
  return std::bit_cast<float>(std::abs(static_cast<double>(nearest)) < std::abs(x) ? bits + 1 : bits - 1);
}

/// The first of a 16-bit fragment's elements in word w of a lane, in the order of memory.
unsigned firstElement(unsigned lane, unsigned w, bool isColumn) {
  return 2 * (kWarpLanes * w + (isColumn ? lane ^ 1 : lane));
}

/// Elements of a 16-bit fragment in the order of memory.
void gather(const Warp &warp, const unsigned *Operands::*fragment, bool isColumn, uint16_t (&elements)[kElements]) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    for (unsigned w = 0; w < 4; ++w)
      std::memcpy(&elements[firstElement(lane, w, isColumn)], &(warp.operands[lane].*fragment)[w], sizeof(unsigned));
}

float halfToFloat(uint16_t bits) { return device::ptx::to_float(device::f16{bits}); }

/// d + sum, rounded once to the accumulator's type, element `e` of the lanes' results.
void accumulate(Warp &warp, bool isHalf, unsigned e, double sum) {
  if (!isHalf) {
    float &d = static_cast<float *>(warp.operands[e % kWarpLanes].result)[e / kWarpLanes];
    d = addProduct(d, sum);
    return;
  }
  uint16_t *pair = static_cast<uint16_t *>(warp.operands[e / 2 % kWarpLanes].result) + e / 2 / kWarpLanes * 2;
  const double total = static_cast<double>(halfToFloat(pair[e % 2])) + sum;
  pair[e % 2] = device::ptx::round_to<device::f16>(roundToOdd(total)).bits;
}

} // namespace

/// Address and stride are what PTX asks for: the same in all lanes, and aligned.
bool Cta::checkMatrix(Warp &warp, unsigned elementBytes) {
  const Operands &first = warp.operands[0];
  for (unsigned lane = 1; lane < kWarpLanes; ++lane)
    if (warp.operands[lane].b0 != first.b0 || warp.operands[lane].b1 != first.b1) {
      found.add("lane-mismatch", warp.site, [&] {
        return fmt::format("{}: lanes 0 and {} of warp {} of CTA {} give different addresses or strides to {}",
                           place(warp.site), lane, warpInCta(warp.index), ctaOfWarp(warp.index),
                           collectiveName(warp.collective));
      });
      return false;
    }
  const unsigned strideBytes = first.b1 * elementBytes;
  if (first.b0 % kBaseAlignment == 0 && strideBytes % kPieceBytes == 0)
    return true;
  found.add("misaligned", warp.site, [&] {
    return fmt::format("warp {} of CTA {}: {} of the matrix at shared address {}, lines {} bytes apart; they must be "
                       "multiples of {} and {}",
                       warpInCta(warp.index), ctaOfWarp(warp.index), collectiveName(warp.collective), inCta(first.b0),
                       strideBytes, kBaseAlignment, kPieceBytes);
  });
  return false;
}

/// The warp's access to kPieceBytes bytes of a line; false when it is refused.
bool Cta::touchMatrix(Access access, Warp &warp, unsigned address) {
  if (!checkShared(access, address, kPieceBytes, warp.site))
    return false;
  checkRace(access, {warp.index, ~0u}, address, kPieceBytes, warp.site);
  return true;
}

void Cta::loadMatrix(Warp &warp) {
  uint16_t elements[kElements];
  std::memset(elements, 0xff, sizeof(elements));
  const unsigned strideBytes = warp.operands[0].b1 * sizeof(uint16_t);
  if (checkMatrix(warp, sizeof(uint16_t)))
    for (unsigned piece = 0; piece < sizeof(elements) / kPieceBytes; ++piece) {
      const unsigned address = warp.operands[0].b0 + piece / 2 * strideBytes + piece % 2 * kPieceBytes;
      if (touchMatrix(Access::kRead, warp, address))
        std::memcpy(&elements[piece * kPieceBytes / sizeof(uint16_t)], shared + address, kPieceBytes);
    }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const Operands &own = warp.operands[lane];
    for (unsigned w = 0; w < own.words; ++w)
      std::memcpy(static_cast<unsigned *>(own.result) + w, &elements[firstElement(lane, w % 4, own.types.is_column_b)],
                  sizeof(unsigned));
  }
}

/// Of lanes that multiply what nobody wrote.
void Cta::reportUninitialisedFragments(Warp &warp) {
  const device::ptx::WmmaTypes types = warp.operands[0].types;
  const unsigned words = types.operand == device::ptx::ElementType::kF16 ? 8 : 4;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const Operands &own = warp.operands[lane];
    const unsigned results = types.is_half_accumulator ? 4 : 8;
    if (holdsUninitialised(own.a, words * sizeof(unsigned)) || holdsUninitialised(own.b, words * sizeof(unsigned)) ||
        holdsUninitialised(own.result, results * sizeof(unsigned)))
      reportUninitialised(lanes[warp.index * kWarpLanes + lane], "gives wmma_mma", warp.site);
  }
}

void Cta::multiplyMatrices(Warp &warp) {
  const device::ptx::WmmaTypes types = warp.operands[0].types;
  reportUninitialisedFragments(warp);
  uint16_t a[kElements], b[kElements];
  gather(warp, &Operands::a, false, a);
  gather(warp, &Operands::b, types.is_column_b, b);
  constexpr unsigned kHalf = 8; // Product has 8 columns
  for (unsigned first = 0; first < kLines; first += kHalf) {
    Product product;
    std::memcpy(product.a, a, sizeof(a));
    for (unsigned k = 0; k < kLines; ++k)
      for (unsigned n = 0; n < kHalf; ++n)
        product.b[k][n] = types.is_column_b ? b[kLines * (first + n) + k] : b[kLines * k + first + n];
    multiply(types.operand, product);
    for (unsigned row = 0; row < kLines; ++row)
      for (unsigned n = 0; n < kHalf; ++n)
        accumulate(warp, types.is_half_accumulator, kLines * row + first + n, product.d[row][n]);
  }
}

void Cta::storeMatrix(Warp &warp) {
  const bool isHalf = warp.operands[0].types.is_half_accumulator;
  const unsigned elementBytes = isHalf ? sizeof(uint16_t) : sizeof(float);
  unsigned char elements[kElements * sizeof(float)];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    for (unsigned w = 0; w < (isHalf ? 4u : 8u); ++w)
      std::memcpy(elements + sizeof(unsigned) * (kWarpLanes * w + lane), &warp.operands[lane].a[w], sizeof(unsigned));
  for (unsigned lane = 0; lane < kWarpLanes; ++lane)
    if (holdsUninitialised(warp.operands[lane].a, (isHalf ? 4 : 8) * sizeof(unsigned))) [[unlikely]]
      reportUninitialised(lanes[warp.index * kWarpLanes + lane], "gives wmma_store", warp.site);
  if (!checkMatrix(warp, elementBytes))
    return;
  const unsigned lineBytes = kLines * elementBytes, strideBytes = warp.operands[0].b1 * elementBytes;
  for (unsigned byte = 0; byte < kLines * lineBytes; byte += kPieceBytes) {
    const unsigned address = warp.operands[0].b0 + byte / lineBytes * strideBytes + byte % lineBytes;
    if (!touchMatrix(Access::kWrite, warp, address))
      continue;
    std::memcpy(shared + address, elements + byte, kPieceBytes);
    std::memset(&state[address], kWritten, kPieceBytes);
  }
}

} // namespace fagen::emulator
