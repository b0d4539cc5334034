# fagen: packed sequences by the programs `ragged` of the ready kernel sets: one launch finds tiles of rows, one works on them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""For Hopper. Offsets and lengths are read on the GPU, and held to what there is; so this may be captured into a graph."""
import math

import torch

from . import _arguments, _kernels, _stats, _torch_programs
from . import torch as front

_WORDS = {torch.float16: "f16", torch.bfloat16: "bf16"}
_MOST = {"sequences": 65536, "rows": 1 << 25, "keys": (1 << 29) - 1, "heads": 4096}  # as the programs declare their sizes
_CAPABILITY = 90


def _programs():
    kernels = _kernels.ready_set("ragged")
    return {name: _torch_programs.Program(kernels, name) for name in (kernels.names if kernels else ())}


_known = _programs()


def _name(q, causal):
    return f"ragged_{_WORDS.get(q.dtype)}_d{front.index(q.shape[2])}_{'causal' if causal else 'none'}"


def why_not(q, k, v, sequences, causal):
    """Why no program computes this; None where one does."""
    if _arguments.has_tangent(q, k, v):
        return "forward-mode differentiation, of which kernels have none"
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return "the kernel of packed sequences has no gradient"
    if _name(q, causal) not in _known or k.shape[2] != q.shape[2] or v.shape[2] != q.shape[2]:
        return "no kernel of packed sequences for this type and these head dims"
    is_there = _torch_programs.is_emulated() if not q.is_cuda else front._capability(q.device.index) == _CAPABILITY
    if not is_there or k.device != q.device or v.device != q.device:
        return "the kernel of packed sequences is for Hopper"
    sizes = {"sequences": sequences, "rows": q.shape[0], "keys": k.shape[0], "heads": max(q.shape[1], k.shape[1])}
    if any(not 1 <= size <= _MOST[name] for name, size in sizes.items()) or not k.shape[1] or q.shape[1] % k.shape[1]:
        return "no sequences, rows or keys, or more than the kernel counts"
    if k.shape[:2] != v.shape[:2] or k.dtype != q.dtype or v.dtype != q.dtype:
        return "k and v differ"
    return None


def attend(function, q, k, v, starts, used, *, scale, causal):
    """O [total, heads, head_dim] and LSE [heads, total]. starts: offsets of queries and of keys; used: lengths of both, each may be None."""
    totals = q.shape[0], k.shape[0]
    offsets = [_numbers(one, total) for one, total in zip(starts, totals)]
    lengths = [at[1:] if one is None else _numbers(one, total) for one, at, total in zip(used, offsets, totals)]
    scale = q.shape[2] ** -0.5 if scale is None else scale
    if scale < 0:
        q, scale = -q, -scale
    o, lse = _known[_name(q, causal)](
        q=_aligned(q), k=_aligned(k), v=_aligned(v), cu_q=offsets[0], cu_k=offsets[1], used_q=lengths[0], used_k=lengths[1],
        uses_q=int(used[0] is not None), uses_k=int(used[1] is not None), scale=float(scale), scale_log2=float(scale) / math.log(2.0))
    if not torch.compiler.is_compiling():
        _stats.computed(function)
    return o, lse


def _numbers(tensor, total):
    """As int32, side by side: those that do not fit are beyond the total, or below 0."""
    tensor = tensor if tensor.dtype == torch.int32 else tensor.clamp(0, total).int()
    return tensor.contiguous()


def _aligned(tensor):
    """With rows at multiples of 16 bytes, as the copy engine takes them."""
    of = 16 // tensor.element_size()
    is_aligned = tensor.stride(2) == 1 and tensor.stride(0) % of == 0 and tensor.stride(1) % of == 0 and tensor.stride(0) > 0 and tensor.stride(1) > 0
    if is_aligned and not torch.compiler.is_compiling():
        is_aligned = tensor.data_ptr() % 16 == 0
    return tensor if is_aligned else tensor.clone(memory_format=torch.contiguous_format)
