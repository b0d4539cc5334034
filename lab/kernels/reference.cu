// fagen: the reference on a GPU: attention in f64, and the plain rule in f32. NVRTC compiles it after numeric.h,
// sum_loss.h, form_value.h and form_program.h.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simple on purpose: one CTA a query row, two passes over the keys (maximum; then sum and product with V), tensors
// dense as [batch, head, row, column]. A chunk of keys at a time: a thread scores one key of it, then owns columns.

namespace fagen::lab {

#ifdef FAGEN_REFERENCE_THREADS // a test runs this text on the CPU
constexpr int kThreads = FAGEN_REFERENCE_THREADS;
#else
constexpr int kThreads = 128;
#endif
constexpr int kChunk = kThreads;
constexpr int kMaxColumns = 512;
constexpr int kProductsOfStep = 16;             // kAccumulatedProducts in reference.h
constexpr int kMostLets = 32, kMostValues = 64; // of a form; as in gpu_reference.cpp

struct ReferenceParams {
  const unsigned short *q, *k, *v;
  double *o;             ///< written by referenceF64
  double *lse;           ///< written by referenceF64, read by referenceLoss
  double *lseLoss;       ///< written by referenceLoss and formLoss
  unsigned short *plain; ///< written by referencePlain
  float *plainLse;       ///< likewise, where not null: products accumulate in f16
  long long heads, kvHeads, seqQ, seqKv;
  int headDimQK, headDimV, causal;
  DType dtype;
  double scale;
  FormView form;            ///< of the kernels that are named form...
  double *rounding, *tanh;  ///< by formLoss: of each row, FormErrors in reference.h
  double *moved;            ///< kMoves of a row: how far any of its columns may be off
  unsigned char *undecided; ///< of each row
};

/// As an f16 accumulator holds it.
template <typename Real> __device__ Real asHalf(Real x) {
  return Real(floatOfHalf(DType::F16, halfOfFloat(DType::F16, float(x))));
}

template <class Value> struct FormScratch {
  Value lets[kMostLets], stack[kMostValues];
};

template <typename Real, bool HasForm = false> struct RowState {
  const ReferenceParams &params;
  const unsigned short *k, *v; ///< of this row's head
  long long keys;              ///< visible ones; with a form, all
  Real scale;
  Real *q;     ///< shared, headDimQK
  Real *chunk; ///< shared, kChunk
  bool halfAccum;
  FormElement place; ///< of the row

  __device__ Real score(long long key) const {
    const unsigned short *row = k + key * params.headDimQK;
    Real dot = 0, part = 0;
    for (int c = 0; c < params.headDimQK; ++c) {
      const Real product = q[c] * Real(floatOfHalf(params.dtype, row[c]));
      if (!halfAccum) {
        dot += product;
        continue;
      }
      part += product;
      if (c % kProductsOfStep == kProductsOfStep - 1 || c == params.headDimQK - 1) {
        dot = asHalf(dot + part);
        part = 0;
      }
    }
    return dot * scale;
  }

  __device__ FormElement at(long long key) const {
    FormElement element = place;
    element.key = key;
    return element;
  }

  /// What exp is taken of: -infinity where the form's mask hides the key.
  __device__ Real exponent(long long key) const {
    if constexpr (HasForm) {
      FormScratch<double> scratch;
      FormRun<double> run(params.form, scratch.lets, scratch.stack);
      FormElement element = at(key);
      if (run.mask(element) == 0)
        return Real(-infinity());
      element.score = double(score(key));
      return Real(run.score(element, element.score));
    } else {
      return score(key);
    }
  }

  __device__ Real sink() const {
    if constexpr (HasForm) {
      FormScratch<double> scratch;
      if (params.form.sink.size != 0)
        return Real(FormRun<double>(params.form, scratch.lets, scratch.stack).sink(place));
    }
    return Real(-infinity());
  }

  /// The sum of the magnitudes of a score's products, times scale.
  __device__ double sizeOf(long long key) const {
    const unsigned short *row = k + key * params.headDimQK;
    double sum = 0;
    for (int c = 0; c < params.headDimQK; ++c)
      sum += fabs(double(q[c]) * double(floatOfHalf(params.dtype, row[c])));
    return sum * fabs(double(scale));
  }

  /// The most that tensor cores may lose of q . k, in f64.
  __device__ double loss(long long key) const {
    const unsigned short *row = k + key * params.headDimQK;
    SumLoss sum(params.dtype);
    for (int first = 0; first < params.headDimQK; first += kTensorSum.products) {
      const int left = params.headDimQK - first;
      sum.addStep([&](int i) { return double(q[first + i]); },
                  [&](int i) { return double(floatOfHalf(params.dtype, row[first + i])); },
                  left < kTensorSum.products ? left : kTensorSum.products);
    }
    return sum.bound();
  }
};

/// Maximum (or sum) of one value a thread, known to all; both uses of `scratch` are fenced.
template <bool Max, typename Real> __device__ Real reduce(Real value, Real *scratch) {
  __syncthreads();
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      Real other = scratch[threadIdx.x + half], mine = scratch[threadIdx.x];
      scratch[threadIdx.x] = Max ? (other > mine ? other : mine) : other + mine;
    }
    __syncthreads();
  }
  return scratch[0];
}

template <typename Real, bool HasForm> __device__ Real rowMaximum(const RowState<Real, HasForm> &state) {
  Real best = state.sink();
  for (long long key = threadIdx.x; key < state.keys; key += kThreads) {
    Real score = state.exponent(key);
    best = score > best ? score : best;
  }
  return reduce<true>(best, state.chunk);
}

/// Adds this thread's columns of P V to `o` and returns this thread's part of the row sum.
template <typename Real, bool RoundP, bool HasForm>
__device__ Real accumulate(const RowState<Real, HasForm> &state, Real rowMax, Real (&o)[kMaxColumns / kThreads]) {
  const ReferenceParams &params = state.params;
  Real sum = threadIdx.x == 0 ? Real(exp(state.sink() - rowMax)) : Real(0);
  for (long long first = 0; first < state.keys; first += kChunk) {
    long long key = first + threadIdx.x;
    Real p = key < state.keys ? Real(exp(state.exponent(key) - rowMax)) : Real(0);
    sum += p;
    __syncthreads();
    state.chunk[threadIdx.x] = RoundP ? Real(floatOfHalf(params.dtype, halfOfFloat(params.dtype, float(p)))) : p;
    __syncthreads();
    long long count = state.keys - first < kChunk ? state.keys - first : kChunk;
    for (int part = 0; part < kMaxColumns / kThreads; ++part) {
      int column = part * kThreads + threadIdx.x;
      if (column >= params.headDimV)
        break;
      const unsigned short *values = state.v + first * params.headDimV + column;
      const long long step = state.halfAccum ? kProductsOfStep : count;
      for (long long begin = 0; begin < count; begin += step) {
        Real sum = state.halfAccum ? Real(0) : o[part];
        for (long long j = begin; j < count && j < begin + step; ++j)
          sum += state.chunk[j] * Real(floatOfHalf(params.dtype, values[j * params.headDimV]));
        o[part] = state.halfAccum ? o[part] + asHalf(sum) : sum;
      }
    }
  }
  return sum;
}

/// The CTA's query row, its q loaded; q and chunk are shared.
template <bool HasForm, typename Real>
__device__ RowState<Real, HasForm> loadRow(const ReferenceParams &params, Real (&q)[kMaxColumns], Real (&chunk)[kChunk],
                                           bool halfAccum) {
  long long index = blockIdx.x;
  long long row = index % params.seqQ, head = index / params.seqQ % params.heads,
            batch = index / params.seqQ / params.heads;
  long long kvHead = batch * params.kvHeads + head / (params.heads / params.kvHeads);
  long long keys = params.seqKv;
  if (params.causal) {
    long long end = row + params.seqKv - params.seqQ + 1;
    keys = end < 0 ? 0 : end < keys ? end : keys;
  }
  for (int c = threadIdx.x; c < params.headDimQK; c += kThreads)
    q[c] = Real(floatOfHalf(params.dtype, params.q[index * params.headDimQK + c]));
  __syncthreads();
  return {params,
          params.k + kvHead * params.seqKv * params.headDimQK,
          params.v + kvHead * params.seqKv * params.headDimV,
          keys,
          Real(params.scale),
          q,
          chunk,
          halfAccum,
          {0, batch, head, row, 0}};
}

/// One query row in precision Real; store(column, value) for this thread's columns, storeLse(value) on thread 0.
template <typename Real, bool RoundP, bool HasForm, typename Store, typename StoreLse>
__device__ void attendRow(const ReferenceParams &params, Store store, StoreLse storeLse) {
  __shared__ Real q[kMaxColumns];
  __shared__ Real chunk[kChunk];
  const long long index = blockIdx.x;
  const auto state = loadRow<HasForm>(params, q, chunk, RoundP && params.plainLse != nullptr);
  Real o[kMaxColumns / kThreads] = {};
  const Real rowMax = rowMaximum(state);
  const bool isEmpty = rowMax == Real(-infinity());
  const Real sum = isEmpty ? Real(1) : reduce<false>(accumulate<Real, RoundP>(state, rowMax, o), chunk);
  for (int part = 0; part < kMaxColumns / kThreads; ++part) {
    int column = part * kThreads + threadIdx.x;
    if (column < params.headDimV)
      store(index * params.headDimV + column, o[part] / sum);
  }
  if (threadIdx.x == 0)
    storeLse(index, isEmpty ? rowMax : rowMax + Real(log(sum)));
}

template <bool HasForm> __device__ void attendInF64(const ReferenceParams &params) {
  attendRow<double, false, HasForm>(
      params, [&](long long i, double value) { params.o[i] = value; },
      [&](long long i, double value) { params.lse[i] = value; });
}

template <bool HasForm> __device__ void attendPlainly(const ReferenceParams &params) {
  attendRow<float, true, HasForm>(
      params, [&](long long i, float value) { params.plain[i] = halfOfFloat(params.dtype, value); },
      [&](long long i, float value) {
        if (params.plainLse != nullptr)
          params.plainLse[i] = value;
      });
}

extern "C" __global__ void __launch_bounds__(kThreads) referenceF64(const ReferenceParams params) {
  attendInF64<false>(params);
}

extern "C" __global__ void __launch_bounds__(kThreads) referencePlain(const ReferenceParams params) {
  attendPlainly<false>(params);
}

/// After referenceF64: the sum of P_j e_j over the row's keys j, e_j the most that tensor cores may lose of a score.
extern "C" __global__ void __launch_bounds__(kThreads) referenceLoss(const ReferenceParams params) {
  __shared__ double q[kMaxColumns];
  __shared__ double chunk[kChunk];
  const auto state = loadRow<false>(params, q, chunk, false);
  double sum = 0;
  for (long long key = threadIdx.x; key < state.keys; key += kThreads)
    sum += exp(state.score(key) - params.lse[blockIdx.x]) * state.loss(key);
  sum = reduce<false>(sum, chunk);
  if (threadIdx.x == 0)
    params.lseLoss[blockIdx.x] = sum * fabs(params.scale);
}

} // namespace fagen::lab
