// fagen: a problem, a row and a misfit in words, for errors and explanations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "words.h"

#include "error.h"
#include "maps.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace fagen {
namespace {

/// How unlike two problems are: the kind of problem weighs most, then the distance of the head dims.
uint64_t unlikeness(uint64_t a, uint64_t b) {
  auto field = [](uint64_t key, int shift, uint64_t mask) { return int64_t((key >> shift) & mask); };
  auto differs = [&](int shift, uint64_t mask) { return uint64_t(field(a, shift, mask) != field(b, shift, mask)); };
  auto distance = [&](int shift) { return uint64_t(std::abs(field(a, shift, 0xFFF) - field(b, shift, 0xFFF))); };
  return (differs(62, 3) << 30) + (differs(58, 15) << 20) + (differs(52, 63) << 19) + distance(40) + distance(28);
}

bool isNamed(const fagen_table &table, const char *variant) {
  for (uint32_t i = 0; i < table.row_count; ++i)
    if (strcmp(rowAt(table, i).variant, variant) == 0)
      return true;
  return false;
}

/// The misfit to report when no row fits: of the row that came nearest to fitting. Misfit's order says which that is.
Misfit leastMisfit(Tables tables, const Problem &problem, const fagen_device &device, const fagen_row *&which) {
  Misfit least = Misfit::None;
  for (const fagen_table *table : tables) {
    RowRange range = rowsOf(*table, problem.key);
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const fagen_row &row = rowAt(*table, i);
      bool considered = problem.variant ? strcmp(row.variant, problem.variant) == 0 : row.dispatch != FAGEN_ROW_BY_NAME;
      Misfit misfit = misfitOf(row, problem, device);
      bool nearer = misfit > least || (misfit == Misfit::Alignment && which && row.alignment < which->alignment);
      if (considered && nearer) {
        least = misfit;
        which = &row;
      }
    }
  }
  return least;
}

fagen_status statusOf(Misfit misfit) { return misfit == Misfit::Alignment ? FAGEN_MISALIGNED : FAGEN_UNSUPPORTED; }

} // namespace

Text::Text(char *buffer, size_t size) : buffer(buffer), size(size) {
  if (size)
    buffer[0] = '\0';
}

void Text::add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  bool fits = needed < size;
  int length = vsnprintf(fits ? buffer + needed : nullptr, fits ? size - needed : 0, format, arguments);
  va_end(arguments);
  needed += length > 0 ? size_t(length) : 0;
}

void addProblemKey(Text &text, uint32_t pass, uint32_t dtype, uint32_t mask, uint32_t headDimQK, uint32_t headDimV) {
  text.add("%s %s head_dim %u", passName(pass), dtypeName(dtype), headDimQK);
  if (headDimV != headDimQK)
    text.add(" : %u", headDimV);
  text.add(", mask %s", maskName(mask));
}

void addProblemKey(Text &text, uint64_t key) {
  addProblemKey(text, uint32_t(key >> 62), uint32_t(key >> 58) & 15, uint32_t(key >> 52) & 63,
                uint32_t(key >> 40) & 0xFFF, uint32_t(key >> 28) & 0xFFF);
}

void addMisfit(Text &text, Misfit misfit, const fagen_row &row, const Problem &problem, const fagen_device &device) {
  switch (misfit) {
  case Misfit::None:
    text.add("fits");
    break;
  case Misfit::Target:
    if (row.last_sm == row.first_sm)
      text.add("its text for %s runs on compute capability %u.%u only; the device has %u.%u", row.target,
               row.first_sm / 10, row.first_sm % 10, device.sm / 10, device.sm % 10);
    else
      text.add("its text for %s needs compute capability %u.%u or more; the device has %u.%u", row.target,
               row.first_sm / 10, row.first_sm % 10, device.sm / 10, device.sm % 10);
    break;
  case Misfit::Code:
    text.add("it was linked without source and without a binary for sm_%u", device.sm);
    break;
  case Misfit::Shared:
    text.add("needs %u B of shared memory; the device has %u B", sharedBytesOf(row), device.sharedPerBlock);
    break;
  case Misfit::Lse:
    text.add("cannot write LSE (lse = off)");
    break;
  case Misfit::Rows:
    text.add("packs heads, and cannot number so many rows: seq_q %d of each of the %d heads of a K/V head; it takes up "
             "to %lld",
             problem.params.seq_q, problem.params.heads_per_kv, (long long)kMaxCount);
    break;
  case Misfit::Grid: {
    const int32_t heads = tiledHeadsOf(row, problem);
    text.add("would need more than %lld CTAs: %lld tiles of %u rows for each of batch %d x %s %d", (long long)kMaxCount,
             (long long)((tiledRowsOf(row, problem) + row.tile_rows - 1) / row.tile_rows), row.tile_rows,
             problem.params.batch, heads == problem.params.heads ? "heads" : "kv_heads", heads);
    if (uint32_t splits = splitsOf(row, problem, device); splits > 1)
      text.add(" x %u splits", splits);
    break;
  }
  case Misfit::Turns:
    text.add("a CTA would compute %lld key tiles; its rings count up to %lld",
             (long long)keyTilesOfCta(row, problem, device), (long long)kMaxKeyTilesOfCta);
    break;
  case Misfit::Map: {
    const RefusedMap refused = findRefusedMap(row, problem.params);
    text.add("cannot have a tensor map of %s: %s", refused.tensor, refused.reason);
    break;
  }
  case Misfit::Alignment:
    text.add("needs %u-byte alignment; base pointers and strides share %u", row.alignment, problem.commonAlignment);
    break;
  }
}

void addNearest(Text &text, Tables tables, const Problem &problem, const fagen_device &device) {
  uint64_t shown[3];
  unsigned count = 0;
  while (count < 3) {
    const fagen_row *nearest = nullptr;
    uint64_t nearestKey = 0, least = UINT64_MAX;
    for (const fagen_table *table : tables)
      for (uint32_t i = 0; i < table->row_count; ++i) {
        uint64_t key = table->keys[i] >> FAGEN_KEY_PROBLEM_SHIFT << FAGEN_KEY_PROBLEM_SHIFT;
        uint64_t distance = unlikeness(key, problem.key);
        const fagen_row &row = rowAt(*table, i);
        if (distance < least && std::find(shown, shown + count, key) == shown + count &&
            misfitOf(row, problem, device) != Misfit::Target)
          nearest = &row, nearestKey = key, least = distance;
      }
    if (!nearest)
      break;
    text.add(count ? "; " : " nearest: ");
    addProblemKey(text, nearestKey);
    text.add(" (%s)", nearest->variant);
    shown[count++] = nearestKey;
  }
}

fagen_status failUnfit(Tables tables, const Problem &problem, const fagen_device &device) {
  char buffer[2048];
  Text text(buffer, sizeof(buffer));
  if (problem.variant &&
      std::none_of(tables.begin(), tables.end(), [&](auto *table) { return isNamed(*table, problem.variant); }))
    return fail(FAGEN_INVALID, "no row is named '%s'", problem.variant);
  const fagen_row *row = nullptr;
  Misfit misfit = leastMisfit(tables, problem, device, row);
  text.add("no %s", problem.variant ? problem.variant : "row");
  text.add(" for ");
  addProblemKey(text, problem.key);
  if (row) {
    text.add(" fits: %s ", row->variant);
    addMisfit(text, misfit, *row, problem, device);
  } else {
    text.add(";");
    addNearest(text, tables, problem, device);
  }
  return fail(row ? statusOf(misfit) : FAGEN_UNSUPPORTED, "%s", buffer);
}

} // namespace fagen
