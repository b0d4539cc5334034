# fagen: gradients of attention on JAX arrays by programs of the package: the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls have them, and how these are taken apart. specs/backward.fair.in is what runs; _gradients.py is the same for PyTorch."""
import functools
import math

import jax
import jax.numpy as jnp

from . import _jax_partitioned, _jax_programs, _kernels

_TYPES = {"float16": "f16", "bfloat16": "bf16"}
_HEAD_DIMS = (64, 96, 128, 192, 256)
_OF_WGMMA, _OLDEST = 90, 80  # compute capabilities: of the programs with wgmma; of those with mma.sync, and newer
_ROWS = 128  # of a tile: dS has a multiple of them
_MOST_SCRATCH = 1 << 30  # bytes of dS at a time
_MOST_ROWS, _MOST_HEADS = 1 << 20, 4096  # the program's sizes


@functools.lru_cache(maxsize=None)
def _program(name):
    return _jax_programs.program(_kernels.ready_set("backward_sync" if name.startswith("backward_sync_") else "backward"), name)


def _scratch_of_head(rows, keys):
    """Bytes of dS of one head of one batch."""
    return 2 * keys * -(-rows // _ROWS) * _ROWS


def has_program(query, key, value, sm):
    """Whether backward() takes these arrays of a GPU of compute capability sm, 80 or newer: [batch, rows, heads, columns], float16 or bfloat16, Q and V of
    one head dim. Not of arrays on several devices, whose shardings jax.nn's own gradient keeps."""
    batch, rows, heads, columns = query.shape
    keys = key.shape[1]
    if sm < _OLDEST or not _jax_programs.run_here() or _jax_partitioned.is_wanted() or 0 in (query.size, key.size):
        return False
    if str(query.dtype) not in _TYPES or columns not in _HEAD_DIMS or value.shape[3] != columns:
        return False
    return max(batch, rows, keys) <= _MOST_ROWS and heads <= _MOST_HEADS and _scratch_of_head(rows, keys) <= _MOST_SCRATCH


def _pieces(batch, kv_heads, group, scratch):
    """(batches, heads of K/V, query heads of each) that a launch takes, of `scratch` bytes for each query head of a batch."""
    most = max(1, _MOST_SCRATCH // scratch)
    if most < group:
        return 1, 1, max(part for part in range(1, most + 1) if group % part == 0)
    heads = min(kv_heads, most // group)
    return min(batch, max(1, most // group // heads)), heads, group


def _slice(shape, batches, heads, copies=0, copy=0):
    """Batches and heads, slices, of a dense array [copies, batch, rows, heads, columns], as [batch, heads, rows, columns]: where it begins, extents,
    strides."""
    batch, rows, all_heads, columns = shape
    offset = ((copy * batch + batches.start) * rows * all_heads + heads.start) * columns
    extents = (batches.stop - batches.start, rows, heads.stop - heads.start, columns)
    return offset, (extents[0], extents[2], rows, columns), (rows * all_heads * columns, columns, all_heads * columns, 1)


def _slice_of_rows(shape, rows, batches, heads):
    """The same of [batch, heads, rows], of which `rows` are there."""
    _, all_heads, wide = shape
    return ((batches.start * all_heads + heads.start) * wide, (batches.stop - batches.start, heads.stop - heads.start, rows),
            (all_heads * wide, wide, 1))


def _launches(query, key, rows_shape, numbers):
    """What the launches take, and how many parts of a group have sums of dK and dV of their own."""
    (batch, rows, heads, _), (_, keys, kv_heads, _) = query, key
    group = heads // kv_heads
    batches, some, part = _pieces(batch, kv_heads, group, _scratch_of_head(rows, keys))
    launches = []
    for b in range(0, batch, batches):
        for h in range(0, kv_heads, some):
            for p in range(group // part):
                kv = slice(b, min(b + batches, batch)), slice(h, min(h + some, kv_heads))
                first = h * group + p * part
                q = kv[0], slice(first, first + (kv[1].stop - h) * part)
                views = {**{name: _slice(query, *q) for name in ("q", "o", "dout", "dq")}, **{name: _slice(key, *kv) for name in ("k", "v")},
                         **{name: _slice(key, *kv, copy=p) for name in ("dk", "dv")},
                         **{name: _slice_of_rows(rows_shape, rows, *q) for name in ("lse", "dlse")}}
                launches.append((tuple(numbers.items()), tuple(views.items())))
    return tuple(launches), group // part


def _with_scratch(program, launches):
    """The launches with what they leave for each other, and that as results: one array for all, as large as the largest one needs."""
    types, most, made = program.signature.types, {}, []
    for numbers, views in launches:
        shapes = program.signature.shapes({name: extents for name, (_, extents, _) in views}, dict(numbers))
        more = {name: (0, shape, _jax_programs.dense(shape)) for name, shape in shapes.items() if name not in dict(views)}
        most.update({name: max(math.prod(shape), most.get(name, 0)) for name, (_, shape, _) in more.items()})
        made.append((numbers, (*views, *more.items())))
    return tuple(made), {name: jax.ShapeDtypeStruct((count,), _jax_programs.type_of(types[name])) for name, count in most.items()}


def backward(dout, query, key, value, o, lse, scale, is_causal, window, sm):
    """Gradients of query, key and value from that of O; that of LSE has no effect, as in jax.nn. lse: float32 [batch, heads, rows]; the others are
    [batch, rows, heads, columns]. Rows are as many as keys where is_causal or window, (left, right), says which are seen."""
    columns, rows, keys = query.shape[3], query.shape[1], key.shape[1]
    left, right = window or (keys, 0 if is_causal else rows)
    text = "" if sm == _OF_WGMMA else "_sync"
    name = f"backward{text}_{_TYPES[str(query.dtype)]}_d{columns}" + ("_window" if left < keys - 1 or right < rows - 1 else "")
    numbers = {"left": min(left, keys), "right": min(right, rows), "scale": scale, "scale_log2": scale * math.log2(math.e),
               "lse_gradient": 0.0}
    lse = jnp.pad(lse, ((0, 0), (0, 0), (0, -rows % 4)))  # rows of 16 bytes
    launches, parts = _launches(query.shape, key.shape, lse.shape, numbers)
    launches, scratch = _with_scratch(_program(name), launches)
    tensors = {"o": o, "dout": dout.astype(query.dtype), "lse": lse, "dlse": lse, "q": query, "k": key, "v": value}
    of_keys = jax.ShapeDtypeStruct((parts, *key.shape), key.dtype)
    dq, dk, dv = _jax_programs.compute(_program(name), tensors, {"dq": query, "dk": of_keys, "dv": of_keys, **scratch}, launches)[:3]
    dk, dv = (t[0] if parts == 1 else t.sum(0, dtype=jnp.float32).astype(t.dtype) for t in (dk, dv))
    return dq, dk, dv
