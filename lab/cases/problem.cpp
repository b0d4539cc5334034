// fagen: parsing and printing of problems.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "problem.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>

namespace fagen::lab {

std::string_view nameOf(DType dtype) { return dtype == DType::F16 ? "f16" : "bf16"; }
std::string_view nameOf(Mask mask) { return mask == Mask::None ? "none" : "causal"; }

DType parseDType(std::string_view text) {
  if (text == "f16")
    return DType::F16;
  if (text == "bf16")
    return DType::BF16;
  throw UserError(fmt::format("unknown dtype '{}'; f16 and bf16 are known", text));
}

std::string_view nameOf(KvDType dtype) {
  return dtype == KvDType::E4M3 ? "e4m3" : dtype == KvDType::E5M2 ? "e5m2" : "same";
}

KvDType parseKvDType(std::string_view text) {
  for (const KvDType dtype : {KvDType::Same, KvDType::E4M3, KvDType::E5M2})
    if (text == nameOf(dtype))
      return dtype;
  throw UserError(fmt::format("unknown kv '{}'; K and V are of e4m3, e5m2 or the same as Q", text));
}

Mask parseMask(std::string_view text) {
  if (text == "none")
    return Mask::None;
  if (text == "causal")
    return Mask::Causal;
  throw UserError(fmt::format("unknown mask '{}'; none and causal are known", text));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos)
      return parts;
    begin = end + 1;
  }
}

int64_t parseInteger(std::string_view text, std::string_view what) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UserError(fmt::format("{} is '{}', not a whole number from 0 up", what, text));
  return value;
}

struct NamedShape {
  const char *name;
  Shape shape;
};
static const std::array<NamedShape, 2> kNamedShapes = {{
    {"mission", {1, 8, 8, 512, 512, 64, 64}},
    {"mission2", {2, 8, 8, 512, 512, 64, 64}},
}};

std::vector<std::string> shapeNames() {
  std::vector<std::string> names;
  for (const NamedShape &named : kNamedShapes)
    names.emplace_back(named.name);
  return names;
}

/// Elements of the largest tensor. No machine has this memory, and up to here no product of sizes overflows.
static constexpr int64_t kMostElements = int64_t{1} << 48;

/// UserError for sizes that nothing here could count with.
static void requireCountable(const Shape &shape, std::string_view text) {
  for (int64_t size :
       {shape.batch, shape.heads, shape.kvHeads, shape.seqQ, shape.seqKv, shape.headDimQK, shape.headDimV})
    if (size > INT32_MAX)
      throw UserError(fmt::format("shape '{}': {} is too large; a size is at most {}", text, size, INT32_MAX));
  double elements = 1;
  for (int64_t size :
       {shape.batch, shape.heads, std::max(shape.seqQ, shape.seqKv), std::max(shape.headDimQK, shape.headDimV)})
    elements *= static_cast<double>(std::max<int64_t>(size, 1));
  if (elements > static_cast<double>(kMostElements))
    throw UserError(fmt::format("shape '{}' has a tensor of {:.3g} elements; at most {:.3g} are possible", text,
                                elements, static_cast<double>(kMostElements)));
}

Shape parseShape(std::string_view text) {
  for (const NamedShape &named : kNamedShapes)
    if (text == named.name)
      return named.shape;
  if (text.find('=') != std::string_view::npos)
    throw UserError(fmt::format("'{}' is no shape: words like mask=causal follow their shape after a blank, in quotes: "
                                "'1,16,16,512,512,64 mask=causal'",
                                text));
  std::vector<std::string> parts = split(text, ',');
  if (parts.size() == 1) {
    std::string near = nearest(text, shapeNames());
    throw UserError(fmt::format("unknown shape '{}'; {}shapes are b,h,hkv,sq,sk,d[,dv] or one of: {}", text,
                                near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                                fmt::join(shapeNames(), ", ")));
  }
  if (parts.size() != 6 && parts.size() != 7)
    throw UserError(fmt::format("shape '{}' has {} numbers; b,h,hkv,sq,sk,d[,dv] has 6 or 7", text, parts.size()));
  static constexpr std::array<const char *, 7> kFields = {"b", "h", "hkv", "sq", "sk", "d", "dv"};
  std::array<int64_t, 7> numbers;
  for (size_t i = 0; i < parts.size(); ++i)
    numbers[i] = parseInteger(parts[i], fmt::format("{} of shape '{}'", kFields[i], text));
  if (parts.size() == 6)
    numbers[6] = numbers[5];
  Shape shape{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6]};
  if (shape.heads == 0 || shape.kvHeads == 0 || shape.heads % shape.kvHeads != 0)
    throw UserError(fmt::format("shape '{}': hkv = {} must divide h = {}", text, shape.kvHeads, shape.heads));
  if (shape.headDimQK == 0 || shape.headDimV == 0)
    throw UserError(fmt::format("shape '{}': d must be at least 1", text));
  requireCountable(shape, text);
  return shape;
}

std::string formatShape(const Shape &s) {
  std::string text = fmt::format("{},{},{},{},{},{}", s.batch, s.heads, s.kvHeads, s.seqQ, s.seqKv, s.headDimQK);
  return s.headDimV == s.headDimQK ? text : fmt::format("{},{}", text, s.headDimV);
}

std::vector<Shape> gridShapes(const std::vector<int64_t> &headDims, const std::vector<int64_t> &lengths) {
  std::vector<Shape> shapes;
  for (int64_t d : headDims)
    for (int64_t s : lengths)
      shapes.push_back({std::max<int64_t>(1, 16384 / s), 2048 / d, 2048 / d, s, s, d, d});
  return shapes;
}

double flops(const Shape &s, Mask mask) {
  double pairs = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.seqQ) * static_cast<double>(s.seqKv);
  return 2 * pairs * static_cast<double>(s.headDimQK + s.headDimV) * (mask == Mask::Causal ? 0.5 : 1.0);
}

/// Insertions, removals, replacements and swaps of neighbours that make one word of the other.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string> &candidates) {
  std::string best;
  size_t bestDistance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    if (word.size() < 2 || candidate.size() < 2)
      continue; // every letter is one replacement away
    if (size_t distance = editDistance(word, candidate); distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

} // namespace fagen::lab
