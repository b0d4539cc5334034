# fagen: the gradients of ring attention for JAX.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""By JAX's operators, some rows at a time, from the LSE of all keys: right, and slow. Keys go round the ring with the sums of their gradients,
in float32, which each device adds to in its turn; after the last they are at home."""
import functools

import jax.numpy as jnp
from jax import lax

_ROWS = 256  # whose scores are held at once
_einsum = functools.partial(jnp.einsum, precision="highest")  # not in TF32


def gradients(inputs, grads, axis_name, is_causal, scale):
    """Of query, key and value, from those of O and LSE. inputs: query, key, value, O and LSE [batch, own rows, heads] as the forward has them."""
    query, key, value, o, lse = inputs
    grad = grads[0].astype(jnp.float32)
    delta = (grad * o.astype(jnp.float32)).sum(-1) - grads[1]
    lse = jnp.where(jnp.isneginf(lse), jnp.inf, lse)  # a row that sees no key has weights of 0
    rows = query, grad, lse, delta
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    ranks, rank = lax.axis_size(axis_name), lax.axis_index(axis_name)
    following = [(i, (i + 1) % ranks) for i in range(ranks)]
    of = functools.partial(_of_piece, scale=scale)
    dq, dk, dv = of(rows, key, value, causal=is_causal)
    for step in range(1, ranks):
        key, value, dk, dv = lax.ppermute((key, value, dk, dv), axis_name, following)
        if is_causal:
            part = lax.cond(step <= rank, functools.partial(_of_earlier, of), functools.partial(_of_later, of), rows, key, value)
        else:
            part = of(rows, key, value)
        dq, dk, dv = dq + part[0], dk + part[1], dv + part[2]
    dk, dv = lax.ppermute((dk, dv), axis_name, following)
    return tuple(t.astype(like.dtype) for t, like in zip((dq, dk, dv), inputs))


def _of_earlier(of, rows, key, value):
    """A rank before this one: all rows see the first half of its keys, and none the other."""
    half = key.shape[1] // 2
    dq, *found = of(rows, key[:, :half], value[:, :half])
    return dq, *(jnp.pad(t, ((0, 0), (0, half), (0, 0), (0, 0))) for t in found)


def _of_later(of, rows, key, value):
    """A rank after this one: the second half of the rows sees all of its keys."""
    half = rows[0].shape[1] // 2
    dq, *found = of(tuple(t[:, half:] for t in rows), key, value)
    return jnp.pad(dq, ((0, 0), (half, 0), (0, 0), (0, 0))), *found


def _of_piece(rows, key, value, *, scale, causal=False):
    """float32 dq, dk and dv of rows (query, grad, lse, delta) that see all keys, or those up to their number."""
    batch, count, heads, _ = rows[0].shape
    kv_heads, keys = key.shape[2], key.shape[1]
    size = min(_ROWS, count)
    blocks = -(-count // size)
    key, value = key.astype(jnp.float32), value.astype(jnp.float32)

    def cut(t, fill):  # [blocks, batch, rows, kv_heads, heads of each, ...]
        t = jnp.pad(t.astype(jnp.float32), ((0, 0), (0, blocks * size - count)) + ((0, 0),) * (t.ndim - 2), constant_values=fill)
        return t.reshape(batch, blocks, size, kv_heads, heads // kv_heads, *t.shape[3:]).swapaxes(0, 1)

    def add(sums, block):
        number, query, grad, lse, delta = block
        scores = _einsum("bqhgd,bkhd->bqhgk", query, key) * scale
        weights = jnp.exp(scores - lse[..., None])
        if causal:
            seen = jnp.arange(keys)[None] <= number * size + jnp.arange(size)[:, None]
            weights = jnp.where(seen[None, :, None, None], weights, 0)
        of_scores = weights * (_einsum("bqhgd,bkhd->bqhgk", grad, value) - delta[..., None]) * scale
        dk = sums[0] + _einsum("bqhgk,bqhgd->bkhd", of_scores, query)
        dv = sums[1] + _einsum("bqhgk,bqhgd->bkhd", weights, grad)
        return (dk, dv), _einsum("bqhgk,bkhd->bqhgd", of_scores, key)
    query, grad, lse, delta = (cut(t, fill) for t, fill in zip(rows, (0, 0, jnp.inf, 0)))
    (dk, dv), dq = lax.scan(add, (jnp.zeros_like(key), jnp.zeros_like(value)), (jnp.arange(blocks), query, grad, lse, delta))
    dq = dq.swapaxes(0, 1).reshape(batch, blocks * size, heads, -1)[:, :count]
    return dq, dk, dv
