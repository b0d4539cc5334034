// fagen: a case as the C ABI describes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "abi_problem.h"
#include "form_inputs.h"

#include <algorithm>

namespace fagen::lab {

/// Of bytes: what is off by an element, so that 4 bytes are not aligned, is off by two.
static Placement placeKeys(const Case &c, int64_t columns, Tensor which) {
  const std::array<int64_t, 4> sizes = {c.shape.batch, c.shape.kvHeads, c.shape.seqKv, columns};
  const bool isOff = c.layout == Layout::Odd || c.layout == Layout::Offset;
  if (c.kv == KvDType::Same || !isOff)
    return placeTensor(c.layout, sizes, which);
  Placement place = placeTensor(c.layout, {sizes[0], sizes[1], sizes[2], columns / 2}, which);
  place.sizes = sizes;
  place.baseOffset *= 2;
  for (int64_t &stride : place.strides)
    stride *= 2;
  return place;
}

Placements::Placements(const Case &c) {
  const Shape &s = c.shape;
  q = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimQK}, kQ);
  k = placeKeys(c, s.headDimQK, kK);
  v = placeKeys(c, s.headDimV, kV);
  o = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimV}, kO);
  lse = placeLse(c.layout, {s.batch, s.heads, s.seqQ});
}

fagen_problem describeProblem(const Case &c, const Placements &places) {
  fagen_problem problem = makeAbi<fagen_problem>();
  const Shape &s = c.shape;
  problem.pass = FAGEN_PASS_FORWARD;
  problem.dtype = c.dtype == DType::F16 ? FAGEN_DTYPE_F16 : FAGEN_DTYPE_BF16;
  problem.kv_dtype = c.kv == KvDType::E4M3 ? FAGEN_DTYPE_E4M3 : c.kv == KvDType::E5M2 ? FAGEN_DTYPE_E5M2 : 0;
  if (c.arguments) {
    problem.form = c.arguments->form->name.c_str();
    problem.args = c.arguments->args.data();
    problem.arg_count = static_cast<uint32_t>(c.arguments->args.size());
  } else {
    problem.mask = c.mask == Mask::None ? FAGEN_MASK_NONE : FAGEN_MASK_CAUSAL;
  }
  problem.flags = c.lse ? FAGEN_FLAG_LSE : 0;
  problem.batch = s.batch;
  problem.heads = s.heads;
  problem.kv_heads = s.kvHeads;
  problem.seq_q = s.seqQ;
  problem.seq_kv = s.seqKv;
  problem.head_dim_qk = s.headDimQK;
  problem.head_dim_v = s.headDimV;
  std::copy_n(places.q.strides.begin(), 3, problem.q_stride);
  std::copy_n(places.k.strides.begin(), 3, problem.k_stride);
  std::copy_n(places.v.strides.begin(), 3, problem.v_stride);
  std::copy_n(places.o.strides.begin(), 3, problem.o_stride);
  std::copy_n(places.lse.strides.begin(), 2, problem.lse_stride);
  if (c.scale) {
    problem.scale = static_cast<float>(*c.scale);
    problem.has_scale = 1;
  }
  problem.alignment = c.layout == Layout::Offset ? 2 : 16;
  return problem;
}

} // namespace fagen::lab
