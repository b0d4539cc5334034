# fagen: the merge of two parts as one CUDA kernel, which reads and writes each number once.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled by NVRTC through PyTorch at first use. What it does not take, PyTorch's operators compute (_merge.py)."""
import functools

import torch

from .. import _stats

_THREADS = 256
_MOST = (1 << 31) - 1  # of an argument
# How 16 bits are read and written; without CUDA's headers, which are not everywhere.
_READ = {torch.float16: 'asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits))', torch.bfloat16: "x = __uint_as_float((unsigned)bits << 16)",
         torch.float32: "x = bits"}
_WRITE = {torch.float16: 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x))',
          torch.bfloat16: 'asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x))', torch.float32: "bits = x"}
_SOURCE = """
template <typename T> struct alignas(sizeof(T) * 4) Four { T at[4]; };
__device__ float ofInto(FROM bits) { float x; READ_FROM; return x; }
__device__ float ofPart(PART bits, int) { float x; READ_PART; return x; }
__device__ INTO written(float x) { INTO bits; WRITE; return bits; }

// Four columns a thread; the threads of a row of a head are of one block, and compute its two weights, each for itself.
// Strides of into, o and part count four columns. sums may be oSums: all threads have read it before one writes.
extern "C" __global__ void merge(INTO *into, float *sums, const FROM *o, const float *oSums, const PART *part, const float *partSums,
                                 int rows, int heads, int lanes, int intoBatch, int intoRow, int intoHead, int oBatch, int oRow, int oHead,
                                 int partBatch, int partRow, int partHead, int sumsBatch, int sumsHead, int oSumsBatch, int oSumsHead,
                                 int partSumsBatch, int partSumsHead, int batches) {
  long long number = (long long)blockIdx.x * blockDim.x + threadIdx.x, which = number / lanes;
  int lane = int(number % lanes), head = int(which % heads), row = int(which / heads % rows);
  long long batch = which / heads / rows;
  bool isOne = batch < batches;
  float infinity = __int_as_float(0x7f800000), x = -infinity, y = -infinity;
  if (isOne) {
    x = oSums[batch * oSumsBatch + (long long)head * oSumsHead + row];
    y = partSums[batch * partSumsBatch + (long long)head * partSumsHead + row];
  }
  float top = fmaxf(x, y), shift = top == -infinity ? 0.0f : top;
  float a = expf(x - shift), b = expf(y - shift), total = a + b, divisor = total == 0.0f ? 1.0f : total;
  a /= divisor;
  b /= divisor;
  if (isOne) {
    Four<FROM> from = ((const Four<FROM> *)o)[batch * oBatch + (long long)row * oRow + (long long)head * oHead + lane];
    Four<PART> with = ((const Four<PART> *)part)[batch * partBatch + (long long)row * partRow + (long long)head * partHead + lane];
    Four<INTO> made;
    for (int i = 0; i < 4; ++i)
      made.at[i] = written(ofInto(from.at[i]) * a + ofPart(with.at[i], 0) * b);
    ((Four<INTO> *)into)[batch * intoBatch + (long long)row * intoRow + (long long)head * intoHead + lane] = made;
  }
  __syncthreads();
  if (isOne && lane == 0)
    sums[batch * sumsBatch + (long long)head * sumsHead + row] = total == 0.0f ? -infinity : shift + logf(divisor);
}
"""


def source(into, o, part):
    """The kernel's text for tensors of these types."""
    bits = lambda kind: "float" if kind == torch.float32 else "unsigned short"  # noqa: E731
    defines = {"INTO": bits(into), "FROM": bits(o), "PART": bits(part), "READ_FROM": _READ[o], "READ_PART": _READ[part], "WRITE": _WRITE[into]}
    return "".join(f"#define {name} {value}\n" for name, value in defines.items()) + _SOURCE


@functools.lru_cache(maxsize=None)
def _kernel(into, o, part, ordinal):
    """The kernel for these types; None where this PyTorch does not compile one, or wants a CUDA toolkit to do so."""
    compile_kernel = getattr(torch.cuda, "_compile_kernel", None)
    if compile_kernel is None or any(kind not in _READ for kind in (into, o, part)):
        return None
    with torch.cuda.device(ordinal):
        try:
            return compile_kernel(source(into, o, part), "merge")
        except (OSError, RuntimeError) as error:
            _stats.refuse("parallel.merge", f"no kernel was compiled: {str(error).splitlines()[0]}", "torch")
            return None


def warm_up(dtype, device):
    """Compiles what merges of parts of this type take, so that no call waits for it."""
    for kinds in ((dtype, dtype, dtype), (torch.float32, dtype, dtype), (torch.float32, torch.float32, dtype), (dtype, torch.float32, dtype)):
        _kernel(*kinds, device.index if device.index is not None else torch.cuda.current_device())


def merge(into, sums, o, o_sums, part, part_sums):
    """As _merge.merge. False where tensors do not fit the kernel."""
    batch, rows, heads, columns = into.shape
    if 0 in into.shape:
        return True
    if columns % 4 or _THREADS % (columns // 4):
        return False
    for tensor in (into, o, part):
        if tensor.stride(3) != 1 or any(n % 4 for n in tensor.stride()[:3]) or tensor.data_ptr() % (4 * tensor.element_size()):
            return False
    if any(one.stride(2) != 1 and rows > 1 for one in (sums, o_sums, part_sums)):
        return False
    arguments = [rows, heads, columns // 4]
    arguments += [n for tensor in (into, o, part) for n in (tensor.stride(i) // 4 * (tensor.shape[i] > 1) for i in range(3))]
    arguments += [tensor.stride(i) * (tensor.shape[i] > 1) for tensor in (sums, o_sums, part_sums) for i in range(2)]
    kernel = _kernel(into.dtype, o.dtype, part.dtype, into.device.index)
    if kernel is None or max(arguments) > _MOST:
        return False
    blocks = (batch * rows * heads * (columns // 4) + _THREADS - 1) // _THREADS
    kernel((blocks, 1, 1), (_THREADS, 1, 1), (into, sums, o, o_sums, part, part_sums, *arguments, batch))
    return True
