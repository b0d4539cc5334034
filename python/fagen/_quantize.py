# fagen: tensors of float8 for attention, by PyTorch, or by programs of the package.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specs/fp8_quantize.fair.in is what runs; PyTorch's way gives the same bits. Nothing here waits for the GPU."""
import torch

from . import _arguments, _fp8, _kernels, _torch_programs, errors
from ._gradients import _for_boxes

_MOST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
_HEAD_DIMS = (64, 128)
_BLOCK = 128  # rows
_MOST_BATCH, _MOST_HEADS, _MOST_ROWS = 1 << 16, 4096, 1 << 24  # the programs' sizes


def _programs():
    """{(kind, type, head_dim): program} of this package."""
    kernels = _kernels.ready_set("fp8_products")
    return {} if kernels is None else {(kind, dtype, dim): _torch_programs.Program(kernels, f"{kind}_{word}_d{dim}")
                                       for kind in ("amax", "quantize") for dtype, word in _TYPES.items() for dim in _HEAD_DIMS}


_known = _programs()


def quantize(x, scales="head", *, kv_heads=None, layout="bshd", dtype=torch.float8_e4m3fn, amax=None, mean=None, programs=False):
    """x of 16 bits or float32 as float8, and what it is to be multiplied by again: (x8, descale), descale of float32 and [batch, heads].

    scales: "head", a number for each batch and head; "tensor", one for all, which stands at each place; or "block", one for each 128
        rows of a head, [batch, heads, blocks].
    kv_heads: heads of a group share a number; of q, as many as k has: descale is [batch, kv_heads] then, as q_descale is.
    amax: float32 of descale's shape or one number, in place of the largest magnitude, as calibration found it.
    mean: float32 of [batch, heads, head_dim], which is taken from each row first. Keys less their mean have smaller numbers, and attention
        has the same O by them, and a log-sum-exp that is lower by scale * q . mean.

    programs: True for the package's programs where they run, on GPUs of compute capability 9.0 with head dims 64 and 128 of e4m3: the same
        bits, but from Python they take as long as PyTorch's operators or longer.

    descale is amax / 448 (e5m2: 57344), 1 where amax is 0. (x - mean) / descale is rounded to nearest even; what is beyond the largest
    number, infinities too, becomes that number with its sign; NaN stays. Infinities and NaN count nothing for amax.
    """
    if not isinstance(x, torch.Tensor) or x.dim() != 4 or x.dtype not in _TYPES:
        raise errors.ArgumentError(f"quantize: x is {_arguments.words(x)}; it is a tensor of float16, bfloat16 or float32 with 4 dimensions")
    if dtype not in _MOST:
        raise errors.ArgumentError(f"quantize: dtype is {dtype}; it is {' or '.join(map(str, _MOST))}")
    if scales not in ("head", "tensor", "block"):
        raise errors.ArgumentError(f'quantize: scales is {scales!r}; it is "head", "tensor" or "block"')
    if layout not in ("bshd", "bhsd"):
        raise errors.ArgumentError(f'quantize: layout is {layout!r}; it is "bshd" or "bhsd"')
    rows = (x.transpose(1, 2) if layout == "bshd" else x).detach()
    batch, heads, count, head_dim = rows.shape
    kv_heads = heads if kv_heads is None else kv_heads
    if kv_heads < 1 or heads % kv_heads:
        raise errors.ArgumentError(f"quantize: kv_heads is {kv_heads}, which does not divide the {heads} heads of x")
    if mean is not None and (not isinstance(mean, torch.Tensor) or mean.dtype != torch.float32 or mean.device != x.device
                             or tuple(mean.shape) != (batch, heads, head_dim)):
        raise errors.ArgumentError(f"quantize: mean is {_arguments.words(mean)}; it is float32 on {x.device}, of shape {(batch, heads, head_dim)}")
    blocks = -(-count // _BLOCK)
    shape = (batch, kv_heads, blocks) if scales == "block" else (batch, kv_heads)
    by = _Programs(rows, mean) if programs and _has_programs(rows, dtype) else _Torch(rows, mean)
    if amax is None:
        amax = _largest(by, shape, scales)
    elif not isinstance(amax, torch.Tensor):
        amax = torch.full(shape, float(amax), dtype=torch.float32, device=x.device)
    elif amax.dtype != torch.float32 or amax.device != x.device or tuple(amax.shape) not in (shape, ()):
        raise errors.ArgumentError(f"quantize: amax is {_arguments.words(amax)} of shape {tuple(amax.shape)}; it is float32 on {x.device}, of "
                                   f"shape {shape}, or a number")
    # by a tensor, as GPUs multiply by the reciprocal of a number
    descale = (torch.where(amax > 0, amax / torch.full_like(amax, _MOST[dtype]), 1.0)).expand(shape).contiguous()
    of_blocks = descale.repeat_interleave(heads // kv_heads, 1)
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    by.round(of_blocks if scales == "block" else of_blocks[:, :, None].expand(batch, heads, blocks),
             result.transpose(1, 2) if layout == "bshd" else result)
    return result, descale


def _has_programs(rows, dtype):
    """Not under torch.compile, which fuses PyTorch's operators."""
    batch, heads, count, head_dim = rows.shape
    return (not torch.compiler.is_compiling() and dtype == torch.float8_e4m3fn and head_dim in _HEAD_DIMS and rows.numel() > 0 and batch <= _MOST_BATCH and heads <= _MOST_HEADS
            and count <= _MOST_ROWS and len(_known) > 0 and _fp8._is_there(rows.device))


def _largest(by, shape, scales):
    """Largest finite magnitudes, of `shape`; 0 where there is none."""
    if by.rows.numel() == 0:
        return torch.zeros(shape, dtype=torch.float32, device=by.rows.device)
    of_heads = by.largest(scales == "block")
    if scales == "tensor":
        return of_heads.amax().expand(shape)
    return of_heads.unflatten(1, (shape[1], -1)).amax(2)


class _Torch:
    """rows: [batch, heads, rows, head_dim]."""

    def __init__(self, rows, mean):
        self.rows, self.values = rows, rows.float() if mean is None else rows.float() - mean[:, :, None]

    def largest(self, by_block):
        """Of each head, or of each 128 rows of it."""
        magnitude = self.values.abs().nan_to_num(0.0, 0.0, 0.0)
        if not by_block:
            return magnitude.amax((2, 3))
        padded = torch.nn.functional.pad(magnitude.amax(3), (0, -magnitude.shape[2] % _BLOCK))
        return padded.unflatten(2, (-1, _BLOCK)).amax(3)

    def round(self, descale, result):
        """descale: [batch, heads, blocks]."""
        factor = descale.repeat_interleave(_BLOCK, 2)[:, :, :self.rows.shape[2], None]
        most = _MOST[result.dtype]
        result.copy_((self.values / factor).clamp(-most, most))


class _Programs:
    def __init__(self, rows, mean):
        self.rows = _for_boxes(rows)
        batch, heads, _, head_dim = rows.shape
        self.mean = (torch.zeros(batch, heads, head_dim, device=rows.device) if mean is None else mean.contiguous())[:, :, None]

    def largest(self, by_block):
        found = _known["amax", self.rows.dtype, self.rows.shape[-1]](x=self.rows, mean=self.mean)
        blocks = -(-self.rows.shape[2] // _BLOCK)
        return next(t for t in found if t.dim() == 3)[:, :, :blocks] if by_block else next(t for t in found if t.dim() == 2)

    def round(self, descale, result):
        _known["quantize", self.rows.dtype, self.rows.shape[-1]](x=self.rows, mean=self.mean, descale=descale.permute(2, 0, 1).contiguous(), y=result)
