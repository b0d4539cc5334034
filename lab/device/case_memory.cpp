// fagen: the tensors of a case on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "case_memory.h"

#include <algorithm>

namespace fagen::lab {

Placements::Placements(const Case &c) {
  const Shape &s = c.shape;
  q = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimQK}, kQ);
  k = placeTensor(c.layout, {s.batch, s.kvHeads, s.seqKv, s.headDimQK}, kK);
  v = placeTensor(c.layout, {s.batch, s.kvHeads, s.seqKv, s.headDimV}, kV);
  o = placeTensor(c.layout, {s.batch, s.heads, s.seqQ, s.headDimV}, kO);
  lse = placeLse(c.layout, {s.batch, s.heads, s.seqQ});
}

fagen_problem describeProblem(const Case &c, const Placements &places) {
  fagen_problem problem = makeAbi<fagen_problem>();
  const Shape &s = c.shape;
  problem.pass = FAGEN_PASS_FORWARD;
  problem.dtype = c.dtype == DType::F16 ? FAGEN_DTYPE_F16 : FAGEN_DTYPE_BF16;
  problem.mask = c.mask == Mask::None ? FAGEN_MASK_NONE : FAGEN_MASK_CAUSAL;
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

CaseMemory::CaseMemory(TestDevice &device, const Case &c, const DenseInputs &inputs)
    : testCase(c), places(c), q(device, places.q), k(device, places.k), v(device, places.v), o(device, places.o),
      lse(device, places.lse) {
  auto place = [](DeviceTensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
    tensor.image.poison();
    tensor.image.scatter(dense);
    tensor.upload();
  };
  place(q, inputs.q);
  place(k, inputs.k);
  place(v, inputs.v);
}

Launch CaseMemory::launchOf(const KernelSet &set, const fagen_row &row, int attempt) const {
  Launch launch;
  launch.set = &set;
  launch.row = &row;
  launch.attempt = attempt;
  launch.problem = describeProblem(testCase, places);
  launch.problem.variant = row.variant;
  // An absent K and V is legal when there is no key; the junk layout tries it.
  bool nullKv = testCase.layout == Layout::Junk && testCase.shape.seqKv == 0;
  launch.tensors.q = q.base();
  launch.tensors.k = nullKv ? nullptr : k.base();
  launch.tensors.v = nullKv ? nullptr : v.base();
  launch.tensors.o = o.base();
  launch.tensors.lse = testCase.lse ? static_cast<float *>(lse.base()) : nullptr;
  launch.memory = {q.view("Q", false), k.view("K", false), v.view("V", false), o.view("O", true)};
  if (testCase.lse)
    launch.memory.push_back(lse.view("LSE", true));
  return launch;
}

void CaseMemory::checkInputs(const DenseInputs &inputs, std::vector<Failure> &failures) {
  auto check = [&](const char *name, DeviceTensor<uint16_t> &tensor, const std::vector<uint16_t> &dense) {
    tensor.download();
    if (tensor.image.collect() != dense)
      failures.push_back({"input", fmt::format("{} was changed", name)});
    checkGuards(name, tensor, failures);
  };
  check("Q", q, inputs.q);
  check("K", k, inputs.k);
  check("V", v, inputs.v);
}

bool fitsRow(TestDevice &device, const KernelSet &set, const fagen_row &row, const fagen_problem &problem,
             std::vector<Failure> &failures) {
  fagen_problem named = problem;
  named.variant = row.variant;
  const fagen_table *table = set.table();
  fagen_choice choice = makeAbi<fagen_choice>();
  fagen_status status = fagen_query(&table, 1, &named, device.queryDevice(row), &choice);
  if (status == FAGEN_OK)
    return choice.row == &row; // else a row of the same name for a nearer target
  if (status != FAGEN_UNSUPPORTED && status != FAGEN_MISALIGNED)
    failures.push_back({"query", fmt::format("{}: {}", row.variant, fagen_last_error())});
  return false;
}

} // namespace fagen::lab
