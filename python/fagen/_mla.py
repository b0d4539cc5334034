# fagen: decoding of multi-head latent attention by programs of the package.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specs/mla.fair.in is what runs, on Hopper. Nothing here waits for the GPU, so calls may be captured into a graph."""
import functools
import math

import torch

from . import _arguments, _kernels, _lengths, _stats, _torch_programs, errors
from . import torch as front
from ._paged import _has_rows, _narrow, _sms_of

_WORDS = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIM, _HEAD_DIM_V = 576, 512  # of which 64 are rotated
_CAPABILITY = 90
_TILE_ROWS, _TILE_KEYS = 64, 64
_START, _PART = 192, 4  # keys whose time a CTA takes to begin and to leave its part, and a part to be merged
_MOST_SPLITS = 256
_MOST_KEYS = 1 << 24  # of a sequence
_MOST = {"batch": 1 << 16, "rows": 1024, "heads": 4096, "blocks": 1 << 20, "keys of a block": _MOST_KEYS}  # as the program declares its sizes
_NAME = "mla_decode"


@functools.lru_cache(maxsize=None)
def _program(dtype):
    return _torch_programs.program(_kernels.ready_set("mla"), f"mla_{_WORDS[dtype]}")


def _splits(tiles, capacity, device):
    """How many CTAs share the keys of a tile: by what all rounds of CTAs and the merge take, a CTA a multiprocessor at once, if sequences
    are as long as they may be. CTAs find by a sequence's length which keys are theirs."""
    sms = _sms_of(device)
    most = max(1, min(-(-capacity // _TILE_KEYS), _MOST_SPLITS, 2 * sms // tiles))
    return min(range(1, most + 1), key=lambda splits: -(-tiles * splits // sms) * (capacity / splits + _START) + _PART * splits)


def mla_decode(q, k_cache, block_table, cache_seqlens, head_dim_v=512, softmax_scale=None, causal=False):
    """Attention over latent keys in pages, of which V is the first columns: O [batch, rows, heads, 512], LSE [batch, heads, rows], f32.

    q: [batch, rows, heads, 576], f16 or bf16. k_cache: [blocks, keys of a block, 1, 576]; blocks have any number of keys, and keys any
    strides whose rows begin at multiples of 16 bytes. block_table: integers [batch, columns]. Of sequence b the first cache_seqlens[b] keys
    count, and no entry of the table is read for others. With block_table=None k_cache is [batch, keys, 1, 576], a sequence each. causal: the
    last row stands at the last key. softmax_scale: 576 ** -0.5 where it is None. Raises errors.Error for other arguments, and
    errors.Unsupported where no program computes the call.
    """
    _check(q, k_cache, head_dim_v)
    batch, rows, heads, _ = q.shape
    blocks, of_block = k_cache.shape[:2]
    if block_table is None:
        if blocks != batch:
            raise errors.Error(f"{_NAME}: k_cache has {blocks} sequences, q has {batch}; without a block_table they are as many")
        block_table = torch.arange(batch, device=q.device, dtype=torch.int32)[:, None]
    table = _narrow(_lengths.integers(_NAME, "block_table", block_table, (batch, None), q))
    used = _narrow(_lengths.integers(_NAME, "cache_seqlens", cache_seqlens, (batch,), q)).contiguous()
    why = _why_not(q, k_cache, table)
    if why:
        raise errors.Unsupported(f"{_NAME}: {why}")
    scale = _HEAD_DIM ** -0.5 if softmax_scale is None else float(softmax_scale)
    if scale == 0:
        raise errors.Unsupported(f"{_NAME}: softmax_scale is 0, and the program takes another")
    if scale < 0:
        q, scale = -q, -scale
    capacity = min(table.shape[1] * of_block, _MOST_KEYS)
    splits = _splits(batch * -(-rows * heads // _TILE_ROWS), capacity, q.device)
    _, _, o, lse = _program(q.dtype)(  # parts and their sums come first
        q=q, k=k_cache.squeeze(2), table=table if table.stride(-1) == 1 else table.contiguous(), used=used, S=splits, capacity=capacity,
        right=0 if causal else _lengths.MOST, scale=scale, scale_log2=scale * math.log2(math.e))
    if not torch.compiler.is_compiling():
        _stats.computed(_NAME)
    return o, lse


def _check(q, k_cache, head_dim_v):
    for name, tensor, what in (("q", q, "[batch, rows, heads, 576]"), ("k_cache", k_cache, "[blocks, keys of a block, 1, 576]")):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 4:
            raise errors.Error(f"{_NAME}: {name} is {_arguments.words(tensor)}; it is a tensor {what}")
        if tensor.shape[-1] != _HEAD_DIM:
            raise errors.Error(f"{_NAME}: {name} has {tensor.shape[-1]} columns; it is {what}: 512 latent ones and 64 rotated")
    if head_dim_v != _HEAD_DIM_V:
        raise errors.Error(f"{_NAME}: head_dim_v is {head_dim_v}; V is the first 512 columns of 576")
    if k_cache.shape[2] != 1:
        raise errors.Error(f"{_NAME}: k_cache has {k_cache.shape[2]} heads; all query heads share one: [blocks, keys of a block, 1, 576]")
    if k_cache.device != q.device or k_cache.dtype != q.dtype:
        raise errors.Error(f"{_NAME}: k_cache is {k_cache.dtype} on {k_cache.device}, q {q.dtype} on {q.device}; both are alike")


def _why_not(q, k_cache, table):
    """Why no program computes the call, in words, or None."""
    if q.dtype not in _WORDS:
        return f"q is of {q.dtype}; programs take float16 and bfloat16"
    if q.device.type == "cuda":
        if front._capability(q.device.index) != _CAPABILITY:
            return "programs need Hopper, compute capability 9.0"
    elif not _torch_programs.is_emulated():
        return f"q is on {q.device}, and programs run on GPUs"
    if torch.is_grad_enabled() and (q.requires_grad or k_cache.requires_grad):
        return "programs have no gradient"
    if _arguments.has_tangent(q, k_cache):
        return "forward-mode differentiation, of which programs have none"
    if not all(map(_has_rows, (q, k_cache))):
        return "rows of q or k_cache do not begin at multiples of 16 bytes, or their elements do not lie side by side"
    sizes = dict(zip(_MOST, (*q.shape[:3], *k_cache.shape[:2])))
    wrong = next((name for name, size in sizes.items() if not 1 <= size <= _MOST[name]), None)
    if wrong or not table.shape[1]:
        return f"{wrong} is {sizes[wrong]}; programs take 1 to {_MOST[wrong]}" if wrong else "block_table has no column"
    return None
