// fagen: a problem, a row and a misfit in words, for errors and explanations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dispatch.h"

#include <cstddef>

namespace fagen {

/// Appends formatted text to a caller's buffer, keeps it terminated, and counts what it would have taken.
class Text {
public:
  Text(char *buffer, size_t size);
  [[gnu::format(printf, 2, 3)]] void add(const char *format, ...);
  size_t length() const { return needed; }

private:
  char *buffer;
  size_t size;
  size_t needed = 0;
};

/// "forward f16 head_dim 64, mask causal"; "..., form gemma2(cap = 50, window = 1024)".
void addProblemKey(Text &text, const Problem &problem);
/// Of a row: "..., form local(window = 128)".
void addRowKey(Text &text, const fagen_table &table, const fagen_row &row);

/// Whole numbers with all their digits, others with nine.
void addNumber(Text &text, double number);
/// "cap = 50", "bias = a tensor": the problem's arg i of its form.
void addArg(Text &text, const fagen_form_param &param, const FormArg &arg);

/// Why a row does not fit, with its numbers: "needs 16-byte alignment; pointers and strides share 2".
void addMisfit(Text &text, Misfit misfit, const fagen_row &row, const Problem &problem, const fagen_device &device);

/// Up to three rows that could run on the device and are nearest to the problem, each once a problem point.
void addNearest(Text &text, Tables tables, const Problem &problem, const fagen_device &device);

/// Fails with the reason why no row of the tables fits.
[[gnu::cold]] fagen_status failUnfit(Tables tables, const Problem &problem, const fagen_device &device);

} // namespace fagen
