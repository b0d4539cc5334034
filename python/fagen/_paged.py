# fagen: attention over pages by programs of the package: which calls have them, and how they are made.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specs/paged.fair.in is what decodes, specs/paged_rows.fair.in what takes packed rows. Nothing here waits for the GPU."""
import functools
import math

import torch

from . import _arguments, _groups, _kernels, _stats, _torch_programs
from . import torch as front

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIMS = (64, 96, 128, 192, 256)
_CAPABILITY = 80
_MOST_QUERIES = 16
_TILE_ROWS, _TILE_KEYS = 16, 64
_CTAS_OF_SM = 2  # that are resident at once
_MOST_SPLITS = 256
INVARIANT_KEYS = 512  # of a part, where parts begin at fixed places
_BYTES_FOR_PART = 6 << 20  # that an H200 reads while one part is merged, by what two CTAs a multiprocessor read faster than one
_MOST_KEYS = 1 << 24  # of a sequence
_MOST_PLACES, _MOST_TOKENS = 1 << 29, 1 << 25  # of all sequences together: keys that tables have columns for, rows
_ROWS_OF_TILE = 64  # of a group of heads, in the programs paged_rows
_MOST_HEADS, _MOST_GROUP, _MOST_BATCH, _MOST_PAGES = 4096, 256, 1 << 16, 1 << 20  # the program's sizes
_BYTES = 16  # that rows begin at multiples of


def _programs():
    """{(type, head_dim): program} of this package that decode, and that take packed rows; and the one that finds tiles of these."""
    kernels = _kernels.ready_set("paged")
    if kernels is None:
        return {}, {}, None
    decoding, by_rows = ({(dtype, dim): _torch_programs.Program(kernels, f"{name}_{word}_d{dim}") for dtype, word in _TYPES.items() for dim in _HEAD_DIMS}
                         for name in ("paged", "paged_rows"))
    return decoding, by_rows, _torch_programs.Program(kernels, "paged_plan")


_known, _by_rows, _plan = _programs()


def _sms_of(device):
    """Of a GPU; the emulator has few."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def _splits(tiles, capacity, device, key_bytes):
    """How many CTAs share the keys of a tile: as many as all fit at once, if each has a tile of keys; of a small cache as many as there are
    multiprocessors, since the merge of a part takes longer than what a second CTA reads next to the first. They find by a sequence's
    length which keys are theirs. key_bytes: of K and V, of a key of a tile."""
    sms = _sms_of(device)
    few, many = sms // max(tiles, 1), _CTAS_OF_SM * sms // max(tiles, 1)
    is_small = few > 0 and tiles * capacity * key_bytes < _BYTES_FOR_PART * (many - few)
    return max(1, min(few if is_small else many, -(-capacity // _TILE_KEYS), _MOST_SPLITS))


def _has_rows(tensor):
    """Whether elements of a row lie side by side, and rows begin at multiples of 16 bytes."""
    each = _BYTES // tensor.element_size()
    return (tensor.stride(-1) == 1 and tensor.storage_offset() % each == 0
            and all(stride % each == 0 for stride, extent in zip(tensor.stride()[:-1], tensor.shape) if extent > 1))


def why_not(q, k_cache, v_cache, place, *, scale, softcap=0.0, dropout=0.0, alibi_slopes=None, invariant=False, most_batch=_MOST_BATCH, **_):
    """Why attend() does not take a call, in words, or None. q: [batch, rows, heads, head_dim]; caches: [pages, rows of a page, KV heads,
    head_dim]; place: a _lengths.Cache."""
    if not _known:
        return "pages: this package has no programs for them"
    if not place.table.shape[1]:
        return "pages: the table has no column"
    if q.device.type == "cuda":
        if front._capability(q.device.index) < _CAPABILITY:
            return "pages: programs need compute capability 8.0 or later"
    elif not _torch_programs.is_emulated():
        return f"pages: q is on {q.device}, and programs run on GPUs"
    if q.dtype not in _TYPES or k_cache.dtype != q.dtype or v_cache.dtype != q.dtype:
        return f"pages: q is of {q.dtype}, K of {k_cache.dtype}, V of {v_cache.dtype}; programs take float16 or bfloat16 for all three"
    if q.shape[-1] not in _HEAD_DIMS or k_cache.shape[-1] != q.shape[-1] or v_cache.shape[-1] != q.shape[-1]:
        return f"pages: head_dim is {q.shape[-1]}, of V {v_cache.shape[-1]}; programs have {', '.join(map(str, _HEAD_DIMS))}, alike"
    if dropout or softcap or alibi_slopes is not None:
        return "pages: programs have no dropout, softcap or ALiBi"
    if _arguments.has_tangent(q, k_cache, v_cache):
        return "pages: forward-mode differentiation, of which kernels have none"
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k_cache, v_cache)):
        return "pages: programs have no gradient"
    if scale == 0:
        return "pages: scale is 0, and programs take another"
    batch, rows, heads, _ = q.shape
    pages, of_page, kv_heads, _ = k_cache.shape
    if not (0 < rows <= _MOST_QUERIES):
        return f"pages: q has {rows} rows for a sequence; programs take 1 to {_MOST_QUERIES}"
    if not (0 < batch <= most_batch and 0 < kv_heads <= _MOST_HEADS and heads % kv_heads == 0 and 0 < heads // kv_heads <= _MOST_GROUP
            and 0 < pages <= _MOST_PAGES and 0 < of_page <= _MOST_KEYS and v_cache.shape == k_cache.shape):
        return f"pages: q is {list(q.shape)} and K {list(k_cache.shape)}; programs do not have these sizes"
    if invariant and place.capacity > INVARIANT_KEYS * _MOST_SPLITS:
        return f"pages: a sequence may have {place.capacity} keys; with invariant=True programs take {INVARIANT_KEYS * _MOST_SPLITS}"
    if not all(map(_has_rows, (q, k_cache, v_cache))):
        return "pages: rows of q, K or V do not begin at multiples of 16 bytes, or their elements do not lie side by side"
    return None


def _narrow(integers):
    """As int32; those beyond it are the nearest."""
    return integers if integers.dtype == torch.int32 else integers.clamp(-1, (1 << 31) - 1).int()


def _runs_on(device):
    """Whether programs run there."""
    return front._capability(device.index) >= _CAPABILITY if device.type == "cuda" else _torch_programs.is_emulated()


def _key_offsets(batch, capacity, device):
    """Where the keys of each sequence would begin if all had as many as a table has room for."""
    if device.type != "cuda":
        return _offsets(batch, capacity, device, 0)
    if torch.cuda.is_current_stream_capturing():  # a graph fills its own when it runs
        return _offsets.__wrapped__(batch, capacity, device, 0)
    return _offsets(batch, capacity, device, torch.cuda.current_stream(device).cuda_stream)


@functools.lru_cache(maxsize=64)
def _offsets(batch, capacity, device, _):
    """Kept for each stream, which fills them before it reads them."""
    return torch.arange(0, (batch + 1) * capacity, capacity, dtype=torch.int32, device=device)


def tiles(starts, lengths, table, page_size, tokens):
    """_groups.Tiles of packed rows, by one launch; None where no program makes them. The table is copied: Plan.rewrite writes there."""
    batch, columns = table.shape
    capacity = min(columns * page_size, _MOST_KEYS)
    if _plan is None or not _runs_on(lengths.device) or not (batch <= _MOST_BATCH and 0 < tokens < _MOST_TOKENS and 0 < batch * capacity < _MOST_PLACES):
        return None
    rows, words, _, _ = _plan(starts=_narrow(starts).contiguous(), places=_key_offsets(batch, capacity, lengths.device), lengths=_narrow(lengths).contiguous(),
                              T=tokens, PLACES=batch * capacity)
    return _groups.Tiles(_narrow(table).clone(memory_format=torch.contiguous_format), rows, words)


def attend_rows(function, q, k_cache, v_cache, tiles_of, bounds, *, scale, lse, invariant=False):
    """O [tokens, heads, head_dim] and LSE [tokens, heads] of packed rows q, as tiles say. The rest as in attend()."""
    (tokens, heads, head_dim), (of_page, kv_heads) = q.shape, k_cache.shape[1:3]
    scale = head_dim ** -0.5 if scale is None else scale
    if scale < 0:
        q, scale = -q, -scale
    capacity = min(tiles_of.table.shape[1] * of_page, _MOST_KEYS)
    if invariant:
        splits, part = max(1, -(-capacity // INVARIANT_KEYS)), INVARIANT_KEYS // _tile_keys(head_dim)
    else:
        many = (tokens // _MOST_QUERIES + tiles_of.table.shape[0]) * kv_heads * -(-_MOST_QUERIES * (heads // kv_heads) // _ROWS_OF_TILE)
        splits, part = _splits(many, capacity, q.device, 2 * head_dim * k_cache.element_size()), 0
    o, sums = _by_rows[q.dtype, head_dim](
        q=q, k=k_cache, v=v_cache, table=tiles_of.table, rows=tiles_of.rows, words=tiles_of.words, G=heads // kv_heads, S=splits, part=part,
        capacity=capacity, left=bounds[0], right=bounds[1], scale=scale, scale_log2=scale * math.log2(math.e))
    if not torch.compiler.is_compiling():
        _stats.computed(function)
    return o, sums if lse else None


def _tile_keys(head_dim):
    return 32 if head_dim == 256 else _TILE_KEYS


def _shares(q, k_cache, capacity, invariant):
    """(how many CTAs share the keys of a tile, key tiles of a part): 0 where parts are equal shares of what a sequence uses. invariant: they
    begin at fixed places, so that a row's bits depend on nothing but its own keys."""
    batch, rows, heads, head_dim = q.shape
    kv_heads = k_cache.shape[2]
    if invariant:
        return max(1, -(-capacity // INVARIANT_KEYS)), INVARIANT_KEYS // _tile_keys(head_dim)
    tiles_of_all = batch * kv_heads * -(-rows * (heads // kv_heads) // _TILE_ROWS)
    return _splits(tiles_of_all, capacity, q.device, 2 * head_dim * k_cache.element_size()), 0


def attend(function, q, k_cache, v_cache, place, used, bounds, *, scale, lse, by_batch, invariant=False):
    """O [batch, rows, heads, head_dim] and LSE [batch, heads, rows]: sequence b has the first used[b] rows of the pages that the table names.
    bounds: how many keys before and after its place a row sees. by_batch: the table has one column, and an entry that is not there
    is a sequence without keys. invariant: as _shares() has it."""
    heads, head_dim = q.shape[2:]
    of_page, kv_heads = k_cache.shape[1:3]
    if by_batch:
        used = used * ((place.table[:, 0] >= 0) & (place.table[:, 0] < place.blocks))
    table, used = _narrow(place.table), _narrow(used).contiguous()
    scale = head_dim ** -0.5 if scale is None else scale
    if scale < 0:
        q, scale = -q, -scale
    capacity = min(table.shape[1] * of_page, _MOST_KEYS)
    splits, part = _shares(q, k_cache, capacity, invariant)
    o, sums = _known[q.dtype, head_dim](
        q=q, k=k_cache, v=v_cache, table=table if table.stride(-1) == 1 else table.contiguous(), used=used, G=heads // kv_heads,
        S=splits, part=part, capacity=capacity, left=bounds[0], right=bounds[1], scale=scale, scale_log2=scale * math.log2(math.e))
    if not torch.compiler.is_compiling():
        _stats.computed(function)
    return o, sums if lse else None
