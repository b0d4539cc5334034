// fagen: one attention on PyTorch's tensors: what is asked, whether it is sound, as the C ABI's problem.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "form_call.h"

#include <array>
#include <cstdint>

namespace fagen::torch {

/// What an operator was called with, as far as it is no tensor.
struct Options {
  std::optional<double> scale; ///< nothing: 1 / sqrt(head_dim)
  bool causal;
  bool bshd; ///< tensors are [batch, rows, heads, columns], else [batch, heads, rows, columns]
  int64_t kernels;
};

/// Tensors of four dimensions, and what is asked of them. LSE is packed, or null.
struct Call {
  View q, k, v, o;
  float *lse;
  Options options;
  FormCall form = {};
};

/// All that decides which kernel computes a call and how: calls of one key differ in pointers alone.
struct Key {
  std::array<int64_t, 27> inputs; ///< of q, k and v: sizes, strides, and type and device in one
  std::array<int64_t, 9> output;  ///< of o, likewise
  std::array<int64_t, 2> options;
  std::vector<int64_t> form; ///< empty without one
  bool operator==(const Key &) const = default;
};

std::array<int64_t, 3> sizesOfLse(const Call &call);

/// New tensors, packed, as outputs of a call of q and v.
Tensor makeOutput(Call &call);
Tensor makeLse(Call &call);

/// Whether calls from now on ask for programmatic dependent launches (FAGEN_FLAG_PDL).
void overlapLaunches(bool may);

Key keyOf(const Call &call);
size_t hashOf(const Key &key);

/// Fails for what is no tensor of four dimensions.
void checkRank(const char *name, const View &view);

/// Fails where O or LSE, which the caller gave, shares memory with anything that is read, or with the other.
void refuseOverlap(const Call &call);

/// The problem of a call, whose tensors are checked here; of a form its name, not yet its args.
fagen_problem describe(const Call &call);

/// The pointers of a call, but those of its form.
fagen_tensors pointersOf(const Call &call);

} // namespace fagen::torch
