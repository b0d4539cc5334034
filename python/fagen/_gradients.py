# fagen: gradients of attention by programs of the package: the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls have them, and how these are taken apart. specs/backward.fair.in is what runs."""
import functools
import math
import os

import torch

from . import _kernels, _lib, _torch_programs

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIMS = (64, 128)
_GPU = (9, 0)
_ROWS = 128  # of a tile: dS has a multiple of them
_MOST_SCRATCH = 1 << 30  # bytes of dS at a time
_MOST_ROWS, _MOST_HEADS = 1 << 20, 4096  # the program's sizes
_BYTES = 16  # that rows begin at multiples of


@functools.lru_cache(maxsize=None)
def _kernel_set():
    machine_code, is_of_these = _kernels.with_machine_code()
    there = os.path.join(machine_code, "backward") if machine_code and is_of_these else None
    return _kernels.load(there if there and os.path.exists(there) else _lib.path("kernels", "backward"))


@functools.lru_cache(maxsize=None)
def _program(kind, head_dim, causal):
    return _torch_programs.program(_kernel_set(), f"backward_{kind}_d{head_dim}{'_causal' if causal else ''}")


def _runs_on(device):
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) == _GPU
    return _torch_programs.is_emulated()


def _scratch_of_head(q, k):
    """Bytes of dS of one head of one batch."""
    return 2 * k.shape[2] * -(-q.shape[2] // _ROWS) * _ROWS


def has_program(q, k, v, bshd):
    """Whether backward() takes these: float16 or bfloat16 of head dim 64 or 128 on a GPU of compute capability 9.0, and dS of the query heads
    of one K/V head within the scratch."""
    if q.dtype not in _TYPES or q.shape[-1] not in _HEAD_DIMS or v.shape[-1] != q.shape[-1] or not _runs_on(q.device):
        return False
    q, k = (_heads_first(t, bshd) for t in (q, k))
    if 0 in (q.numel(), k.numel()) or max(q.shape[2], k.shape[2]) > _MOST_ROWS or q.shape[1] > _MOST_HEADS or q.shape[0] > _MOST_ROWS:
        return False
    return q.shape[1] // k.shape[1] * _scratch_of_head(q, k) <= _MOST_SCRATCH


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


def _pieces(batch, kv_heads, scratch):
    """(batches, heads) of K/V that a launch takes, of `scratch` bytes for each head of a batch."""
    most = max(1, _MOST_SCRATCH // scratch)
    heads = min(kv_heads, most)
    return min(batch, max(1, most // heads)), heads


def backward(grad, q, k, v, o, lse, scale, causal, bshd):
    """Gradients of q, k and v, laid out as these are, from that of O. lse: [batch, heads, rows], natural logarithms."""
    program = _program(_TYPES[q.dtype], q.shape[-1], bool(causal))
    results = [_like(t) for t in (q, k, v)]
    grad, q, k, v, o = (_for_boxes(_heads_first(t, bshd)) for t in (grad.to(q.dtype), q, k, v, o))
    lse, (dq, dk, dv) = _for_boxes(lse), (_heads_first(t, bshd) for t in results)
    group = q.shape[1] // k.shape[1]
    batches, heads = _pieces(k.shape[0], k.shape[1], group * _scratch_of_head(q, k))
    for b in range(0, k.shape[0], batches):
        for h in range(0, k.shape[1], heads):
            kv = (slice(b, b + batches), slice(h, h + heads))
            of_q = (kv[0], slice(h * group, (h + heads) * group))
            program(o=o[of_q], dout=grad[of_q], lse=lse[of_q], q=q[of_q], k=k[kv], v=v[kv], dq=dq[of_q], dk=dk[kv], dv=dv[kv],
                    scale=scale, scale_log2=scale * math.log2(math.e))
    return tuple(results)
