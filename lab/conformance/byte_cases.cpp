// fagen: conformance of floats of one byte: conversions, and products of warp groups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of products of bytes are no bound's matter: the emulator computes the tensor core's way to add, and both must
// give its bits.
#include "accumulation.h"
#include "cases.h"
#include "tiles.h"
#include "whole_products.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab {

namespace {

constexpr unsigned kPairs = 65536;

/// A format: e4m3 has no infinity and one NaN of either sign, e5m2 is the upper half of an f16.
struct ByteFormat {
  const char *name;
  int fractionBits, bias;
  uint32_t largest;
  bool hasInfinity;

  bool isNan(uint32_t byte) const { return (byte & 0x7f) > largest + (hasInfinity ? 1 : 0); }
  /// Of a byte that is not NaN.
  double value(uint32_t byte) const {
    const int field = static_cast<int>(byte & 0x7f) >> fractionBits, fraction = byte & ((1 << fractionBits) - 1);
    const double magnitude =
        std::ldexp(field == 0 ? fraction : fraction + (1 << fractionBits), std::max(field, 1) - bias - fractionBits);
    return byte & 0x80 ? -magnitude : magnitude;
  }
};
constexpr ByteFormat kE4M3 = {"e4m3", 3, 7, 0x7e, false}, kE5M2 = {"e5m2", 2, 15, 0x7b, true};

/// By search among all bytes: the nearest, of two the even one; beyond the largest it.
uint32_t roundedTo(const ByteFormat &format, float x) {
  if (std::isnan(x))
    return 0x7f;
  const double magnitude = std::abs(static_cast<double>(x));
  uint32_t best = 0;
  for (uint32_t byte = 1; byte <= format.largest; ++byte) {
    const double was = std::abs(format.value(best) - magnitude), is = std::abs(format.value(byte) - magnitude);
    if (is < was || (is == was && byte % 2 == 0))
      best = byte;
  }
  if (magnitude >= format.value(format.largest)) // distances from there may round to the same number
    best = format.largest;
  return best | (std::signbit(x) ? 0x80 : 0);
}

uint32_t widened(const ByteFormat &format, uint32_t byte) {
  if (format.isNan(byte))
    return 0x7fff;
  if (format.hasInfinity && (byte & 0x7f) == format.largest + 1)
    return byte & 0x80 ? 0xfc00 : 0x7c00;
  const uint16_t bits = f16OfFloat(static_cast<float>(format.value(byte)));
  return bits | (byte & 0x80) << 8;
}

ConformanceCase byteCase(std::string name, std::string function, std::string symbol) {
  ConformanceCase c;
  c.name = std::move(name);
  c.functions = {std::move(function)};
  c.symbol = "conformance_" + std::move(symbol);
  c.kernels = KernelText::Bytes;
  c.threads = kThreads;
  return c;
}

/// Every number, every tie, their neighbours; then floats of every kind.
float nearByte(const ByteFormat &format, Words &random) {
  const uint32_t byte = random.below(format.largest);
  const double low = format.value(byte), high = format.value(byte + 1), middle = (low + high) / 2;
  const auto value = static_cast<float>(random.oneIn(2) ? middle : low);
  const uint32_t bits = asWord(value) + (value == 0 ? random.below(2) : random.below(3) - 1);
  return asFloat(bits | (random.oneIn(2) ? 0x80000000u : 0));
}

ConformanceCase roundingCase(const ByteFormat &format) {
  ConformanceCase c =
      byteCase(fmt::format("round_bytes<{}>", format.name), "round_bytes", fmt::format("round_bytes_{}", format.name));
  c.inputs = "numbers, ties and their neighbours, and floats of every kind";
  c.grid = kPairs / kThreads;
  c.operands = 2;
  c.inWords = 2 * kPairs;
  c.outWords = kPairs;
  c.fill = [format](Words &random, unsigned, WordList &in) {
    for (uint32_t &word : in)
      word = random.oneIn(4) ? random.anyFloat() : asWord(nearByte(format, random));
  };
  c.expect = [format](const WordList &in, WordList &out) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = roundedTo(format, asFloat(in[2 * i])) | roundedTo(format, asFloat(in[2 * i + 1])) << 8;
  };
  return c;
}

ConformanceCase wideningCase(const ByteFormat &format) {
  ConformanceCase c =
      byteCase(fmt::format("widen_bytes<{}>", format.name), "widen_bytes", fmt::format("widen_bytes_{}", format.name));
  c.inputs = "all 65536 pairs";
  c.grid = kPairs / kThreads;
  c.inWords = c.outWords = kPairs;
  c.fill = [](Words &, unsigned, WordList &in) {
    for (uint32_t i = 0; i < kPairs; ++i)
      in[i] = i;
  };
  c.expect = [format](const WordList &in, WordList &out) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = widened(format, in[i] & 0xff) | widened(format, in[i] >> 8) << 16;
  };
  return c;
}

/// `name`: "shared_128"; N goes from 8 by `step` to `last`. Sums stay below 2^14, so 13 bits hold them.
ConformanceCase wholeProduct(const char *name, unsigned k, unsigned step, unsigned last) {
  ConformanceCase c =
      byteCase(fmt::format("wgmma e4m3_{}", name), "wgmma_f32_e4m3", fmt::format("wgmma_e4m3_{}", name));
  c.inputs = fmt::format("whole numbers; N from 8 to {} by {}, K {}", last, step, k);
  c.grid = (last - 8) / step + 1;
  c.sharedBytes = k * (64 + 256) + 2048;
  c.inWords = 1;
  for (unsigned n = 8; n <= last; n += step)
    c.outWords += size_t{kThreads} * n / 2;
  c.operands = c.outWords;
  c.fill = [](Words &random, unsigned, WordList &in) { in[0] = random.next(); };
  c.expect = [=](const WordList &in, WordList &out) {
    size_t before = 0;
    for (unsigned n = 8; n <= last; n += step) {
      expectProduct(in[0], k, n, &out[before]);
      before += size_t{kThreads} * n / 2;
    }
  };
  return c;
}

/// Word i of thread t's results: row, column, and the words where their factors stand (kernels/conformance_bytes.cu).
Dot byteDot(const WordList &in, size_t index) {
  const size_t thread = index / 4, group = thread / kThreads * kThreads, warp = thread / 32 * 32;
  const size_t row = thread % 32 / 4 + index % 4 / 2 * 8, column = thread % 4 * 2 + index % 2;
  Dot dot{.factor = Factor::E4M3, .half = false, .a = {}, .b = {}, .c = in[9 * thread + 4 + index % 4]};
  for (size_t k = 0; k < depthOf(Factor::E4M3); ++k) {
    const size_t lane = row % 8 * 4 + k % 16 / 4;
    dot.a[k] = in[9 * (warp + lane) + row / 8 + k / 16 * 2] >> 8 * (k % 4) & 0xff;
    dot.b[k] = in[9 * (group + column * 8 + k / 4) + 8] >> 8 * (k % 4) & 0xff;
  }
  return dot;
}

uint32_t fourOf(const uint8_t *bytes) {
  return bytes[0] | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

void fillProducts(Words &random, WordList &in) {
  ByteTile tile;
  for (unsigned warp = 0; warp < kGrid * kThreads / 32; ++warp) {
    fillBytes(random, warp / 4, tile); // the four warps of a group: one kind
    for (unsigned lane = 0; lane < 32; ++lane) {
      uint32_t *words = &in[9 * (warp * 32 + lane)];
      for (unsigned i = 0; i < 4; ++i) {
        words[i] = fourOf(&tile.a[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16]);
        words[4 + i] = tile.c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
      }
    }
    if (warp % 4 == 0)
      for (unsigned word = 0; word < 64; ++word)
        in[9 * (warp * 32 + word) + 8] = fourOf(&tile.b[word / 8][word % 8 * 4]);
  }
}

/// m64n8k32, B in shared memory: nine words of input and four of output a thread.
ConformanceCase anyProduct() {
  ConformanceCase c = byteCase("wgmma_f32_e4m3", "wgmma_f32_e4m3", "wgmma_f32_e4m3");
  c.inputs = kTileInputs;
  c.grid = kGrid;
  c.sharedBytes = 1024;
  c.operands = 9;
  c.results = 4;
  c.inWords = size_t{kGrid} * kThreads * c.operands;
  c.outWords = size_t{kGrid} * kThreads * c.results;
  c.dot = byteDot;
  c.fill = [](Words &random, unsigned, WordList &in) { fillProducts(random, in); };
  c.expect = [](const WordList &in, WordList &out) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = accumulate(byteAccumulation(), byteDot(in, i));
  };
  return c;
}

} // namespace

void addByteCases(std::vector<ConformanceCase> &cases) {
  for (const ByteFormat &format : {kE4M3, kE5M2}) {
    cases.push_back(roundingCase(format));
    cases.push_back(wideningCase(format));
  }
  cases.push_back(wholeProduct("shared_128", 128, 8, 256));
  cases.push_back(wholeProduct("registers_128", 128, 40, 248));
  cases.push_back(wholeProduct("shared_64", 64, 40, 248));
  cases.push_back(wholeProduct("registers_32", 32, 40, 248));
  cases.push_back(anyProduct());
}

} // namespace fagen::lab
