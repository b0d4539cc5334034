// fagen: a problem, a row and a misfit in words, for errors and explanations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "words.h"

#include "error.h"
#include "maps.h"
#include "programs/recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace fagen {
namespace {

/// How unlike two problems are: the kind of problem weighs most, then the distance of the head dims.
uint64_t unlikeness(uint64_t a, uint64_t b, bool hasSameMask) {
  auto field = [](uint64_t key, int shift, uint64_t mask) { return int64_t((key >> shift) & mask); };
  auto differs = [&](int shift, uint64_t mask) { return uint64_t(field(a, shift, mask) != field(b, shift, mask)); };
  auto distance = [&](int shift) { return uint64_t(std::abs(field(a, shift, 0xFFF) - field(b, shift, 0xFFF))); };
  return (differs(62, 3) << 30) + (differs(58, 15) << 20) + (uint64_t(!hasSameMask) << 19) + distance(40) +
         distance(28);
}

struct RowOfTable {
  const fagen_table *table = nullptr;
  const fagen_row *row = nullptr;
};

const fagen_form *formOf(const RowOfTable &one) { return fagen::formOf(*one.table, one.row->mask); }

bool isSamePoint(const RowOfTable &a, const RowOfTable &b) {
  const fagen_form *formA = formOf(a), *formB = formOf(b);
  const bool hasSameMask =
      formA && formB ? strcmp(formA->text, formB->text) == 0 : !formA && !formB && a.row->mask == b.row->mask;
  return hasSameMask && unlikeness(fagen_row_key(a.row), fagen_row_key(b.row), true) == 0;
}

/// Bound values apart.
bool hasMaskOf(const RowOfTable &one, const Problem &problem) {
  const fagen_form *form = formOf(one);
  return problem.form.name ? form && isOf(*form, problem)
                           : one.row->mask == uint32_t(problem.variables.values[FAGEN_VAR_MASK]);
}

bool isNamed(const fagen_table &table, const char *variant) {
  for (uint32_t i = 0; i < table.row_count; ++i)
    if (!isProgram(rowAt(table, i)) && strcmp(rowAt(table, i).variant, variant) == 0)
      return true;
  return false;
}

/// How far a device is from those that a row's text runs on, in compute capabilities.
uint32_t distanceOf(const fagen_row &row, const fagen_device &device) {
  if (device.sm < row.first_sm)
    return row.first_sm - device.sm;
  return row.last_sm != 0 && device.sm > row.last_sm ? device.sm - row.last_sm : 0;
}

/// Whether a row came nearer to fitting than another with the same misfit.
bool isNearer(Misfit misfit, const fagen_row &row, const fagen_row &other, const fagen_device &device) {
  if (misfit == Misfit::Target)
    return distanceOf(row, device) < distanceOf(other, device);
  return misfit == Misfit::Alignment && row.alignment < other.alignment;
}

/// The misfit to report when no row fits: of the row that came nearest to fitting. Misfit's order says which that is.
Misfit leastMisfit(Tables tables, const Problem &problem, const fagen_device &device, const fagen_row *&which) {
  Misfit least = Misfit::None;
  forEachRow(tables, problem, [&](const fagen_table &, const fagen_row &row) {
    bool considered = problem.variant ? strcmp(row.variant, problem.variant) == 0 : row.dispatch != FAGEN_ROW_BY_NAME;
    Misfit misfit = misfitOf(row, problem, device);
    const bool nearer = misfit > least || (misfit == least && which && isNearer(misfit, row, *which, device));
    if (considered && nearer) {
      least = misfit;
      which = &row;
    }
  });
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

/// All of a key but the mask.
static void addKey(Text &text, uint64_t key) {
  const uint32_t headDimQK = uint32_t(key >> 40) & 0xFFF, headDimV = uint32_t(key >> 28) & 0xFFF;
  text.add("%s %s head_dim %u", passName(uint32_t(key >> 62)), dtypeName(uint32_t(key >> 58) & 15), headDimQK);
  if (headDimV != headDimQK)
    text.add(" : %u", headDimV);
}

void addNumber(Text &text, double number) {
  const bool isWhole = std::abs(number) < 0x1p53 && number == std::trunc(number);
  text.add(isWhole ? "%.0f" : "%.9g", number);
}

void addArg(Text &text, const fagen_form_param &param, const FormArg &arg) {
  text.add("%s = ", param.name);
  if (param.rank || arg.data)
    text.add(param.rank ? "a tensor" : "on the device");
  else
    addNumber(text, arg.number);
}

void addProblemKey(Text &text, const Problem &problem) {
  addKey(text, problem.key);
  if (!problem.form.name) {
    text.add(", mask %s", maskName(uint32_t(problem.variables.values[FAGEN_VAR_MASK])));
    return;
  }
  text.add(", form %s", problem.form.name);
  for (uint32_t i = 0; i < problem.form.of->param_count; ++i) {
    text.add(i ? ", " : "(");
    addArg(text, paramAt(*problem.form.of, i), problem.form.args[i]);
  }
  text.add(problem.form.of->param_count ? ")" : "");
}

void addRowKey(Text &text, const fagen_table &table, const fagen_row &row) {
  addKey(text, fagen_row_key(&row));
  if (const fagen_form *form = formOf(table, row.mask))
    text.add(", form %s", form->text);
  else
    text.add(", mask %s", maskName(row.mask));
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
  RowOfTable shown[3];
  unsigned count = 0;
  while (count < 3) {
    RowOfTable nearest;
    uint64_t least = UINT64_MAX;
    for (const fagen_table *table : tables)
      for (uint32_t i = 0; i < table->row_count; ++i) {
        const RowOfTable current{table, &rowAt(*table, i)};
        uint64_t distance = unlikeness(table->keys[i], problem.key, hasMaskOf(current, problem));
        if (distance < least && !isProgram(*current.row) &&
            std::none_of(
                shown, shown + count, [&](auto &one) { return isSamePoint(one, current); }) &&
            misfitOf(*current.row, problem, device) != Misfit::Target)
          nearest = current, least = distance;
      }
    if (!nearest.row)
      break;
    text.add(count ? "; " : " nearest: ");
    addRowKey(text, *nearest.table, *nearest.row);
    text.add(" (%s)", nearest.row->variant);
    shown[count++] = nearest;
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
  addProblemKey(text, problem);
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
