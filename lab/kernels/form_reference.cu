// fagen: the reference of forms on a GPU: as reference.cu, after which NVRTC compiles it, and what f32 may make of a
// form.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs are interpreted, so that a form needs no compilation of its own.

namespace fagen::lab {

extern "C" __global__ void __launch_bounds__(kThreads) formF64(const ReferenceParams params) {
  attendInF64<true>(params);
}

extern "C" __global__ void __launch_bounds__(kThreads) formPlain(const ReferenceParams params) {
  attendPlainly<true>(params);
}

/// What one thread has of a row's errors: sums over its keys, and how far its columns of O may be moved.
struct RowErrors {
  double loss = 0, rounding = 0, tanh = 0;
  bool undecided = false;
  double moved[kMoves][kMaxColumns / kThreads] = {};
};

inline __device__ void clear(double (&weights)[kMoves]) {
  for (double &weight : weights)
    weight = 0;
}

/// A term of weight `p`; what it may move O by is left in `weights`.
inline __device__ void addTerm(RowErrors &errors, const FormValue &value, double p, double (&weights)[kMoves]) {
  clear(weights);
  if (isInfinite(value.rounding))
    errors.undecided = true;
  else if (p > 0) {
    errors.rounding += p * value.rounding;
    errors.tanh += p * value.tanh;
    movesOf(value, p, weights);
  }
}

/// `v` of a column is what the terms of `count` keys multiply, `weights` theirs; of a sink v is 0.
template <class ValueOfV>
__device__ void addMoved(RowErrors &errors, const ReferenceParams &params, long long count,
                         const double (&weights)[kMoves][kChunk], ValueOfV valueOf) {
  const double *o = params.o + blockIdx.x * static_cast<long long>(params.headDimV);
  for (int part = 0; part < kMaxColumns / kThreads; ++part) {
    const int column = part * kThreads + threadIdx.x;
    for (long long j = 0; j < count && column < params.headDimV; ++j) {
      const double distance = fabs(valueOf(j, column) - o[column]);
      for (int kind = 0; kind < kMoves; ++kind)
        errors.moved[kind][part] += weights[kind][j] * distance;
    }
  }
}

/// The key's part of the row's errors.
inline __device__ void addKey(RowErrors &errors, const RowState<double, true> &state, double lse, long long key,
                              double (&weights)[kMoves]) {
  const FormView &form = state.params.form;
  FormScratch<FormValue> scratch;
  FormRun<FormValue> run(form, scratch.lets, scratch.stack);
  FormElement element = state.at(key);
  const FormValue mask = run.mask(element);
  errors.undecided |= mask.rounding != 0;
  clear(weights);
  if (mask.value == 0)
    return;
  element.score = state.score(key);
  const FormValue value = scoreWithError(run, form, element, kFormRounding * state.sizeOf(key));
  const double p = exp(value.value - lse), weight = p * value.score;
  if (weight > 0)
    errors.loss += weight * state.loss(key);
  addTerm(errors, value, p, weights);
}

/// After formF64: what tensor cores and f32 may make of the row's form.
extern "C" __global__ void __launch_bounds__(kThreads) formLoss(const ReferenceParams params) {
  __shared__ double q[kMaxColumns];
  __shared__ double chunk[kChunk];
  __shared__ double weights[kMoves][kChunk];
  const auto state = loadRow<true>(params, q, chunk, false);
  const double lse = params.lse[blockIdx.x];
  RowErrors errors;
  double own[kMoves];
  for (long long first = 0; first < state.keys; first += kChunk) {
    const long long left = state.keys - first, count = left < kChunk ? left : kChunk;
    clear(own);
    if (threadIdx.x < count)
      addKey(errors, state, lse, first + threadIdx.x, own);
    __syncthreads();
    for (int kind = 0; kind < kMoves; ++kind)
      weights[kind][threadIdx.x] = own[kind];
    __syncthreads();
    addMoved(errors, params, count, weights, [&](long long j, int column) {
      return double(floatOfHalf(params.dtype, state.v[(first + j) * params.headDimV + column]));
    });
  }
  __syncthreads();
  if (threadIdx.x == 0 && params.form.sink.size != 0) {
    FormScratch<FormValue> scratch;
    const FormValue sink = FormRun<FormValue>(params.form, scratch.lets, scratch.stack).sink(state.place);
    addTerm(errors, sink, exp(sink.value - lse), own);
    for (int kind = 0; kind < kMoves; ++kind)
      weights[kind][0] = own[kind];
  }
  __syncthreads();
  if (params.form.sink.size != 0)
    addMoved(errors, params, 1, weights, [](long long, int) { return 0.0; });
  const double loss = reduce<false>(errors.loss, chunk), rounding = reduce<false>(errors.rounding, chunk);
  const double tanh = reduce<false>(errors.tanh, chunk);
  const double undecided = reduce<true>(double(errors.undecided), chunk);
  for (int kind = 0; kind < kMoves; ++kind) {
    double most = 0;
    for (double moved : errors.moved[kind])
      most = fmax(most, moved);
    most = reduce<true>(most, chunk);
    if (threadIdx.x == 0)
      params.moved[kMoves * static_cast<long long>(blockIdx.x) + kind] = undecided != 0 ? 0 : most;
  }
  if (threadIdx.x != 0)
    return;
  if (params.lseLoss != nullptr)
    params.lseLoss[blockIdx.x] = loss * fabs(params.scale);
  params.rounding[blockIdx.x] = rounding;
  params.tanh[blockIdx.x] = tanh;
  params.undecided[blockIdx.x] = undecided != 0;
}

} // namespace fagen::lab
