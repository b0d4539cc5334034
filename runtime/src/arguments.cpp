// fagen: the one argument of a row's kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.h"
#include "dispatch.h"

using namespace fagen;

device::MappedAttentionParams fagen::argumentsOf(const fagen_row &row, const device::AttentionParams &problem,
                                                 const fagen_tensors &tensors, void *workspace) {
  device::MappedAttentionParams params;
  static_cast<device::AttentionParams &>(params) = problem;
  params.q = tensors.q;
  params.k = tensors.k;
  params.v = tensors.v;
  params.o = tensors.o;
  params.lse = tensors.lse;
  params.workspace = workspace;
  params.by_tiles = device::make_divisor(int(tilesOfRows(row, uint32_t(problem.seq_q))));
  params.by_heads = device::make_divisor(problem.heads);
  return params;
}
