# fagen: tensors as float8 with the numbers that undo it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""By PyTorch's operators, which torch.compile fuses."""
import torch

from . import _arguments, errors

_MOST = {kind: torch.finfo(kind).max for kind in _arguments.BYTES}


def quantize(x, scales="head", *, kv_heads=None, layout="bshd", dtype=torch.float8_e4m3fn, amax=None):
    """x of 16 bits or float32 as float8, and what it is to be multiplied by again: (x8, descale), descale of float32 and [batch, heads].

    scales: "head", a number for each batch and head, or "tensor", one for all, which stands at each place.
    kv_heads: heads of a group share a number; of q, as many as k has: descale is [batch, kv_heads] then, as q_descale is.
    amax: float32 of [batch, heads] or one number, in place of the largest magnitude, as calibration found it.

    descale is amax / 448 (e5m2: 57344), 1 where amax is 0. x / descale is rounded to nearest even; what is beyond the largest number,
    infinities too, becomes that number with its sign; NaN stays. Infinities and NaN count nothing for amax.
    """
    if not isinstance(x, torch.Tensor) or x.dim() != 4 or x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise errors.ArgumentError(f"quantize: x is {_arguments.words(x)}; it is a tensor of float16, bfloat16 or float32 with 4 dimensions")
    if dtype not in _MOST:
        raise errors.ArgumentError(f"quantize: dtype is {dtype}; it is {' or '.join(map(str, _MOST))}")
    if scales not in ("head", "tensor"):
        raise errors.ArgumentError(f'quantize: scales is {scales!r}; it is "head" or "tensor"')
    if layout not in ("bshd", "bhsd"):
        raise errors.ArgumentError(f'quantize: layout is {layout!r}; it is "bshd" or "bhsd"')
    rows = x.transpose(1, 2) if layout == "bshd" else x
    heads = x.shape[2 if layout == "bshd" else 1]
    kv_heads = heads if kv_heads is None else kv_heads
    if kv_heads < 1 or heads % kv_heads:
        raise errors.ArgumentError(f"quantize: kv_heads is {kv_heads}, which does not divide the {heads} heads of x")
    shape = (x.shape[0], kv_heads)
    if amax is None:
        amax = _largest(rows, shape, scales)
    elif not isinstance(amax, torch.Tensor):
        amax = torch.full(shape, float(amax), dtype=torch.float32, device=x.device)
    elif amax.dtype != torch.float32 or amax.device != x.device or tuple(amax.shape) not in (shape, ()):
        raise errors.ArgumentError(f"quantize: amax is {_arguments.words(amax)} of shape {tuple(amax.shape)}; it is float32 on {x.device}, of "
                                   f"shape {shape}, or a number")
    most = _MOST[dtype]
    descale = (torch.where(amax > 0, amax / most, 1.0)).expand(shape).contiguous()
    of_rows = descale.repeat_interleave(heads // kv_heads, 1)[:, :, None, None]
    factor = of_rows.transpose(1, 2) if layout == "bshd" else of_rows
    return (x.float() / factor).clamp(-most, most).to(dtype), descale


def _largest(rows, shape, scales):
    """Largest finite magnitudes, [batch, kv_heads]; 0 where there is none."""
    if rows.numel() == 0:
        return torch.zeros(shape, dtype=torch.float32, device=rows.device)
    magnitude = rows.detach().float().abs().nan_to_num(0.0, 0.0, 0.0)
    if scales == "tensor":
        return magnitude.amax().expand(shape)
    return magnitude.amax((2, 3)).unflatten(1, (shape[1], -1)).amax(2)
