# fagen: gradients of attention by programs of the package: the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls have them, and how these are taken apart. specs/backward.fair.in is what runs."""
import functools
import math

import torch
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from . import _kernels, _torch_programs

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIMS = (64, 128)
_GPU = (9, 0)
_ROWS = 128  # of a tile: dS has a multiple of them
_MOST_SCRATCH = 1 << 30  # bytes of dS at a time
_MOST_ROWS, _MOST_HEADS = 1 << 20, 4096  # the program's sizes
_BYTES = 16  # that rows begin at multiples of


@functools.lru_cache(maxsize=None)
def _program(kind, head_dim, causal):
    return _torch_programs.program(_kernels.ready_set("backward"), f"backward_{kind}_d{head_dim}{'_causal' if causal else ''}")


def _is_plain(tensor):
    """Whether it is memory, or stands for that in a graph. What others are made of, as DTensors, has gradients of its own."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) or isinstance(tensor, (FakeTensor, FunctionalTensor))


def _runs_on(device):
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) == _GPU
    return _torch_programs.is_emulated()


def _scratch_of_head(rows, keys):
    """Bytes of dS of one head of one batch."""
    return 2 * keys * -(-rows // _ROWS) * _ROWS


def has_program(q, k, v, bshd):
    """Whether backward() takes these: float16 or bfloat16 of head dim 64 or 128 on a GPU of compute capability 9.0."""
    if not all(_is_plain(t) for t in (q, k, v)):
        return False
    if q.dtype not in _TYPES or q.shape[-1] not in _HEAD_DIMS or v.shape[-1] != q.shape[-1] or not _runs_on(q.device):
        return False
    q, k = (_heads_first(t, bshd) for t in (q, k))
    return 0 not in (q.numel(), k.numel()) and max(q.shape[0], q.shape[2], k.shape[2]) <= _MOST_ROWS and q.shape[1] <= _MOST_HEADS


def _heads_first(tensor, bshd):
    return tensor.transpose(1, 2) if bshd else tensor


def _for_boxes(tensor):
    """As the copy engine takes it: elements of a row side by side, rows at multiples of 16 bytes."""
    each = _BYTES // tensor.element_size()
    fits = tensor.stride(-1) == 1 and tensor.storage_offset() % each == 0 and all(
        stride % each == 0 and stride > 0 for stride in tensor.stride()[:-1])
    if fits:
        return tensor
    if tensor.shape[-1] % each == 0:
        return tensor.contiguous(memory_format=torch.contiguous_format)
    padded = tensor.new_empty((*tensor.shape[:-1], -(-tensor.shape[-1] // each) * each))[..., :tensor.shape[-1]]
    return padded.copy_(tensor)


def _like(tensor):
    """Memory for its gradient: of its strides, where elements of a row lie side by side."""
    same = torch.empty_like(tensor)
    return same if same.stride(-1) == 1 else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _pieces(batch, kv_heads, group, scratch):
    """(batches, heads of K/V, query heads of each) that a launch takes, of `scratch` bytes for each query head of a batch."""
    most = max(1, _MOST_SCRATCH // scratch)
    if most < group:
        return 1, 1, max(part for part in range(1, most + 1) if group % part == 0)
    heads = min(kv_heads, most // group)
    return min(batch, max(1, most // group // heads)), heads, group


def backward(grad, q, k, v, o, lse, scale, causal, bshd):
    """Gradients of q, k and v, laid out as these are, from that of O. lse: [batch, heads, rows], natural logarithms."""
    results = [_like(t) for t in (q, k, v)]
    given = [_heads_first(t, bshd) for t in (grad.to(q.dtype), q, k, v, o)]
    into = [_heads_first(t, bshd) for t in results]
    rows, keys = q.shape[1 if bshd else 2], k.shape[1 if bshd else 2]
    if _scratch_of_head(rows, keys) <= _MOST_SCRATCH:
        _backward_of_block(*given, lse, scale, causal, *into)
        return tuple(results)
    sums = [torch.zeros(t.shape, dtype=torch.float32, device=t.device) for t in into]
    for of_rows, of_keys, is_causal in _blocks(rows, keys, causal):
        grad, q, k, v, o = (t[:, :, one] for t, one in zip(given, (of_rows, of_rows, of_keys, of_keys, of_rows)))
        parts = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v)]
        _backward_of_block(grad, q, k, v, o, lse[:, :, of_rows], scale, is_causal, *parts)
        for total, one, part in zip(sums, (of_rows, of_keys, of_keys), parts):
            total[:, :, one] += part
    for result, total in zip(into, sums):
        result.copy_(total)
    return tuple(results)


def _blocks(rows, keys, causal):
    """(rows, keys, causal) of blocks whose dS of a head is within the scratch: their gradients add up to the whole's, whose last row stands at
    the last key. Rows that see none of a block's keys are left out, and a block on the diagonal is causal itself."""
    side = max(1, math.isqrt(_MOST_SCRATCH // 2) // _ROWS) * _ROWS  # of a block, in rows and in keys
    before = keys - rows  # keys before the first row's place
    for first in range(0, keys, side):
        last = min(first + side, keys)
        begin = 0
        if causal:
            begin = max(0, last - before)
            if begin > max(0, first - before):
                yield slice(max(0, first - before), begin), slice(first, last), True
        for row in range(begin, rows, side):
            yield slice(row, min(row + side, rows)), slice(first, last), False


def _backward_of_block(grad, q, k, v, o, lse, scale, causal, dq, dk, dv):
    """Into dq, dk and dv. All are [batch, heads, rows, columns]."""
    grad, q, k, v, o = (_for_boxes(t) for t in (grad, q, k, v, o))
    group = q.shape[1] // k.shape[1]
    batches, heads, part = _pieces(k.shape[0], k.shape[1], group, _scratch_of_head(q.shape[2], k.shape[2]))
    parts = group // part
    # A group that is taken in parts has sums of each, which are added in order.
    sums = [t if parts == 1 else t.new_empty((parts, *t.shape)) for t in (dk, dv)]
    run = functools.partial(_program(_TYPES[q.dtype], q.shape[-1], bool(causal)), scale=scale, scale_log2=scale * math.log2(math.e))
    lse = _for_boxes(lse)
    for b in range(0, k.shape[0], batches):
        for h in range(0, k.shape[1], heads):
            kv = (slice(b, b + batches), slice(h, h + heads))
            for p in range(parts):
                first = h * group + p * part
                rows = (kv[0], slice(first, first + heads * part))
                of_k, of_v = (t if parts == 1 else t[p] for t in sums)
                run(o=o[rows], dout=grad[rows], lse=lse[rows], q=q[rows], k=k[kv], v=v[kv], dq=dq[rows], dk=of_k[kv], dv=of_v[kv])
    if parts > 1:
        for result, each in zip((dk, dv), sums):
            result.copy_(each.sum(0, dtype=torch.float32))
