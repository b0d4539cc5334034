# fagen: attention of q, k and v of float8 by programs of the package: which calls have them, and how they are made.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specs/fp8_products.fair.in is what runs. Nothing here waits for the GPU."""
import functools
import math

import torch

from . import _arguments, _by_torch, _kernels, _stats, _torch_programs, errors
from ._gradients import _for_boxes

E4M3 = torch.float8_e4m3fn
DESCALES = ("q_descale", "k_descale", "v_descale")
_RESULTS = {torch.bfloat16: "bf16", torch.float16: "f16"}
_HEAD_DIMS = (64, 128)
_GPU = (9, 0)
_MOST_BATCH, _MOST_HEADS, _MOST_ROWS = 1 << 20, 4096, 1 << 24  # the program's sizes


@functools.lru_cache(maxsize=None)
def _program(kind, head_dim, causal):
    return _torch_programs.program(_kernels.ready_set("fp8_products"), f"fp8_{_RESULTS[kind]}_d{head_dim}{'_causal' if causal else ''}")


_kept_ones = {}


def _ones(device):
    """What the program multiplies P by for sums of its rows. What a graph fills when it is replayed is not kept, nor what holds no memory."""
    if device in _kept_ones:
        return _kept_ones[device]
    made = torch.ones(16, 128, device=device).to(E4M3)
    is_cuda = device.type == "cuda"
    if type(made) is torch.Tensor and not (is_cuda and torch.cuda.is_current_stream_capturing()):
        if is_cuda:
            torch.cuda.current_stream(device).synchronize()  # once: other streams read it, too
        _kept_ones[device] = made
    return made


def _is_there(device):
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) == _GPU
    return _torch_programs.is_emulated()


def why_not(q, k, v, scale, bshd=True):
    """Why no program computes this; None where one does. q, k and v are of e4m3."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v)):
        return "a gradient, which there is none of with q, k and v of float8"
    if q.shape[-1] not in _HEAD_DIMS or v.shape[-1] != q.shape[-1]:
        return f"head_dim {q.shape[-1]}: products of float8 are of {' and '.join(map(str, _HEAD_DIMS))}"
    if scale is not None and scale <= 0:
        return f"a scale of {scale}: with products of float8 it is above 0"
    if not _is_there(q.device):
        return "products of float8 need a GPU of compute capability 9.0"
    head, row = (2, 1) if bshd else (1, 2)
    if 0 in (q.numel(), k.numel()) or max(q.shape[row], k.shape[row]) > _MOST_ROWS or q.shape[head] > _MOST_HEADS or q.shape[0] > _MOST_BATCH:
        return "no rows or keys, or more than the program counts"
    return None


def check_descales(function, q, k, descales, bshd=True):
    """{"q_descale", "k_descale", "v_descale"}: float32 numbers above 0 for each batch and K/V head, 1 where not given."""
    shape = (q.shape[0], k.shape[2 if bshd else 1])
    for name, value in descales.items():
        if value is not None and (not isinstance(value, torch.Tensor) or value.dtype != torch.float32 or value.device != q.device
                                  or tuple(value.shape) != shape):
            raise errors.ArgumentError(f"{function}: {name} is {_arguments.words(value)}; it is float32 on {q.device}, of shape {shape}: a "
                                       "number for each batch and K/V head")
    ones = None
    found = {}
    for name in DESCALES:
        value = descales.get(name)
        if value is None:
            ones = torch.ones(shape, dtype=torch.float32, device=q.device) if ones is None else ones
            value = ones
        found[name] = value if value.stride(-1) == 1 else value.contiguous()
    return found


def attend(function, q, k, v, descales, *, scale=None, causal=False, bshd=True, lse=False, out=None, fallback="error", reason=None):
    """O, of bfloat16 or as out is, and LSE [batch, heads, seq_q] or None. reason: why the caller knows that no program computes this."""
    _arguments.check(function, q, k, v, None, bshd)
    kind = torch.bfloat16 if out is None or out.dtype not in _RESULTS else out.dtype
    if out is not None:
        _arguments.check_output(function, q, k, v, out, kind)
    factors = check_descales(function, q, k, descales, bshd)
    reason = reason or why_not(q, k, v, scale, bshd)
    if reason is not None:
        if fallback == "error" or not torch.compiler.is_compiling():
            _stats.refuse(function, reason, fallback)
        return _instead(q, k, v, factors, scale, causal, bshd, lse, out, kind)
    heads_first = [t.transpose(1, 2) if bshd else t for t in (q, k, v)]
    result = torch.empty((*q.shape[:3], v.shape[3]), dtype=kind, device=q.device) if out is None or out.stride(-1) != 1 else out
    into = result.transpose(1, 2) if bshd else result
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    results = _program(kind, q.shape[-1], bool(causal))(**dict(zip("qkv", map(_for_boxes, heads_first))), **factors, ones=_ones(q.device), o=into, scale=float(scale),
                                                        scale_log2=float(scale) * math.log2(math.e))
    if not torch.compiler.is_compiling():
        _stats.computed(function)
    if out is not None and result is not out:
        out.copy_(result)
    sums = next(t for t in results if t.dtype == torch.float32)
    return (result if out is None else out), (sums if lse else None)


def _instead(q, k, v, factors, scale, causal, bshd, lse, out, kind):
    """By PyTorch, of dequantised tensors."""
    groups = q.shape[2 if bshd else 1] // max(1, k.shape[2 if bshd else 1])

    def widen(t, factor, repeats=1):
        factor = factor.repeat_interleave(repeats, 1)[:, :, None, None]
        return (t.float() * (factor.transpose(1, 2) if bshd else factor)).to(kind)
    o, sums = _by_torch.attention(widen(q, factors["q_descale"], groups), widen(k, factors["k_descale"]), widen(v, factors["v_descale"]),
                                  scale=q.shape[-1] ** -0.5 if scale is None else scale, causal=causal, bshd=bshd, lse=lse)
    return (o if out is None else out.copy_(o)), sums
