// fagen: calls: their checks, keys and problems.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.h"

#include "../../runtime/src/overlap.h"

#include <atomic>
#include <bit>
#include <cmath>

namespace fagen::torch {
namespace {

std::atomic<bool> launchesMayOverlap = false; ///< of calls from now on (overlapLaunches)

/// What all base pointers are a multiple of, as far as rows ask: up to 16.
uint32_t alignmentOf(const Call &call) {
  uintptr_t bits = 16;
  for (const void *pointer : {call.q.data, call.k.data, call.v.data, call.o.data})
    bits |= reinterpret_cast<uintptr_t>(pointer);
  return static_cast<uint32_t>(bits & -bits);
}

int64_t *writeView(int64_t *to, const View &view) {
  for (int i = 0; i < 4; ++i) {
    to[i] = view.sizes[i];
    to[4 + i] = view.strides[i];
  }
  to[8] = int64_t(view.dtype) << 32 | int64_t(view.deviceType) << 16 | (view.deviceIndex & 0xFFFF);
  return to + 9;
}

uint32_t dtypeOf(const View &q) {
  if (q.dtype == shim().aoti_torch_dtype_float16())
    return FAGEN_DTYPE_F16;
  if (q.dtype == shim().aoti_torch_dtype_bfloat16())
    return FAGEN_DTYPE_BF16;
  fail("fagen.Unsupported: q's dtype; kernels are of float16 and bfloat16");
}

/// Of K and V; 0 where it is q's, or none that they may have.
uint32_t kvDtypeOf(const View &view) {
  return view.dtype == shim().aoti_torch_dtype_float8_e4m3fn() ? FAGEN_DTYPE_E4M3
         : view.dtype == shim().aoti_torch_dtype_float8_e5m2() ? FAGEN_DTYPE_E5M2
                                                               : 0;
}

/// K and V may have float8 next to a q of another type, both the same.
void checkKeys(const Call &call) {
  if (call.k.dtype != call.q.dtype && !kvDtypeOf(call.k))
    fail("fagen.Error: k has another dtype than q");
  if (call.v.dtype != call.k.dtype)
    fail("fagen.Error: v has another dtype than %s", call.k.dtype == call.q.dtype ? "q" : "k");
}

/// Fails unless the tensor is of q's device, with strides that the C ABI can say.
void checkTensor(const char *name, const View &view, const View &q) {
  if (view.deviceType != q.deviceType || view.deviceIndex != q.deviceIndex)
    fail("fagen.Error: %s is on another device than q", name);
  const int64_t *sizes = view.sizes, *strides = view.strides;
  if (sizes[3] > 1 && strides[3] != 1)
    fail("fagen.Unsupported: %s's last stride is %lld; it is 1: take %s.contiguous()", name,
         static_cast<long long>(strides[3]), name);
  bool isRepeated = false;
  for (int i = 0; i < 3; ++i)
    isRepeated |= sizes[i] > 1;
  if (isRepeated && !strides[0] && !strides[1] && !strides[2]) // one row for all: no case for kernels
    fail("fagen.Unsupported: %s is expanded in every dimension; take %s.contiguous()", name, name);
}

/// Fails unless q, k, v and o fit each other.
void checkShapes(const Call &call) {
  const int head = call.options.bshd ? 2 : 1, row = call.options.bshd ? 1 : 2;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  const int64_t *q = call.q.sizes, *k = call.k.sizes, *v = call.v.sizes;
  if (k[0] != q[0] || v[0] != q[0])
    fail("fagen.Error: q, k and v have %lld, %lld and %lld batches", number(q[0]), number(k[0]), number(v[0]));
  if (k[head] != v[head] || k[row] != v[row])
    fail("fagen.Error: k has %lld heads and %lld rows, v %lld and %lld", number(k[head]), number(k[row]),
         number(v[head]), number(v[row]));
  if (k[3] != q[3])
    fail("fagen.Error: q has head_dim %lld, k %lld", number(q[3]), number(k[3]));
  for (int i = 0; i < 4; ++i)
    if (const int64_t wanted = i == 3 ? v[3] : q[i]; call.o.sizes[i] != wanted)
      fail("fagen.Error: out has size %lld in dimension %d; it is %lld", number(call.o.sizes[i]), i, number(wanted));
}

/// Batch, head and row of a tensor's strides.
void copyStrides(int64_t (&to)[3], const View &view, bool bshd) {
  to[0] = view.strides[0];
  to[1] = view.strides[bshd ? 2 : 1];
  to[2] = view.strides[bshd ? 1 : 2];
}

} // namespace

std::array<int64_t, 3> sizesOfLse(const Call &call) {
  const int64_t *q = call.q.sizes;
  return {q[0], q[call.options.bshd ? 2 : 1], q[call.options.bshd ? 1 : 2]};
}

Tensor makeOutput(Call &call) {
  const int64_t *q = call.q.sizes, sizes[] = {q[0], q[1], q[2], call.v.sizes[3]};
  Tensor o = emptyTensor(sizes, 4, call.q.dtype, call.q.deviceType, call.q.deviceIndex);
  call.o = o.view();
  return o;
}

Tensor makeLse(Call &call) {
  Tensor lse =
      emptyTensor(sizesOfLse(call).data(), 3, shim().aoti_torch_dtype_float32(), call.q.deviceType, call.q.deviceIndex);
  call.lse = static_cast<float *>(lse.data());
  return lse;
}

void overlapLaunches(bool may) { launchesMayOverlap = may; }

Key keyOf(const Call &call) {
  Key key;
  int64_t *inputs = key.inputs.data();
  for (const View *view : {&call.q, &call.k, &call.v})
    inputs = writeView(inputs, *view);
  writeView(key.output.data(), call.o);
  const Options &options = call.options;
  key.options[0] = std::bit_cast<int64_t>(options.scale.value_or(NAN)); // a scale is no NaN
  key.options[1] = options.kernels << 16 | int64_t(alignmentOf(call)) << 8 | (launchesMayOverlap ? 8 : 0) |
                   (call.lse ? 4 : 0) | (options.bshd ? 2 : 0) | (options.causal ? 1 : 0);
  addToKey(call.form, key.form);
  return key;
}

size_t hashOf(const Key &key) {
  uint64_t hash = 0;
  auto mix = [&](const auto &words) {
    for (int64_t word : words)
      hash = (std::rotl(hash, 5) ^ uint64_t(word)) * 0x9E3779B97F4A7C15u;
  };
  mix(key.inputs);
  mix(key.output);
  mix(key.options);
  mix(key.form);
  return hash >> 32;
}

void checkRank(const char *name, const View &view) {
  if (view.rank != 4)
    fail("fagen.Error: %s has %lld dimensions; it has 4", name, static_cast<long long>(view.rank));
}

Elements elementsOf(const View &view, int64_t bytes) { return {view.data, view.rank, view.sizes, view.strides, bytes}; }

void refuseOverlap(const Call &call) {
  struct Named {
    const char *name;
    View view;
    int64_t elementBytes;
  };
  auto check = [](const Named &written, const Named &other, const char *how) {
    if (mayOverlap(elementsOf(written.view, written.elementBytes), elementsOf(other.view, other.elementBytes)))
      fail("fagen.Error: %s shares memory with %s, which is %s while %s is written; give %s memory of its own",
           written.name, other.name, how, written.name, written.name);
  };
  const std::array<int64_t, 3> sizes = sizesOfLse(call);
  const int64_t strides[] = {sizes[1] * sizes[2], sizes[2], 1};
  const Named out = {"out", call.o, 2}, lse = {"lse", {3, sizes.data(), strides, 0, 0, 0, call.lse}, sizeof(float)};
  auto checkRead = [&](const Named &read) {
    check(out, read, "read");
    if (call.lse)
      check(lse, read, "read");
  };
  checkRead({"q", call.q, 2});
  const int64_t ofKeys = kvDtypeOf(call.k) ? 1 : 2;
  checkRead({"k", call.k, ofKeys});
  checkRead({"v", call.v, ofKeys});
  for (size_t i = 0; i < call.form.tensors.size(); ++i)
    checkRead({nameOfTensor(call.form, i), call.form.tensors[i], bytesOfElement(call.form.tensors[i])});
  if (call.lse)
    check(out, lse, "written");
}

fagen_problem describe(const Call &call) {
  checkKeys(call);
  if (call.o.dtype != call.q.dtype)
    fail("fagen.Error: out has another dtype than q");
  checkTensor("q", call.q, call.q);
  checkTensor("k", call.k, call.q);
  checkTensor("v", call.v, call.q);
  checkTensor("out", call.o, call.q);
  checkShapes(call);
  const Options &options = call.options;
  const int head = options.bshd ? 2 : 1, row = options.bshd ? 1 : 2;
  fagen_problem problem = fagen_problem_init();
  problem.dtype = dtypeOf(call.q);
  problem.kv_dtype = kvDtypeOf(call.k);
  if (call.form.signature)
    problem.form = call.form.signature->form.c_str();
  else
    problem.mask = options.causal ? FAGEN_MASK_CAUSAL : FAGEN_MASK_NONE;
  problem.flags = FAGEN_FLAG_EXPLICIT | (call.lse ? FAGEN_FLAG_LSE : 0) | (launchesMayOverlap ? FAGEN_FLAG_PDL : 0);
  problem.batch = call.q.sizes[0];
  problem.heads = call.q.sizes[head];
  problem.kv_heads = call.k.sizes[head];
  problem.seq_q = call.q.sizes[row];
  problem.seq_kv = call.k.sizes[row];
  problem.head_dim_qk = call.q.sizes[3];
  problem.head_dim_v = call.v.sizes[3];
  problem.has_scale = options.scale.has_value();
  problem.scale = static_cast<float>(options.scale.value_or(0));
  copyStrides(problem.q_stride, call.q, options.bshd);
  copyStrides(problem.k_stride, call.k, options.bshd);
  copyStrides(problem.v_stride, call.v, options.bshd);
  copyStrides(problem.o_stride, call.o, options.bshd);
  problem.lse_stride[0] = problem.heads * problem.seq_q;
  problem.lse_stride[1] = problem.seq_q;
  problem.alignment = alignmentOf(call);
  return problem;
}

fagen_tensors pointersOf(const Call &call) {
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = call.q.data;
  tensors.k = call.k.data;
  tensors.v = call.v.data;
  tensors.o = call.o.data;
  tensors.lse = call.lse;
  return tensors;
}

} // namespace fagen::torch
