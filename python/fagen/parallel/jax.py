# fagen: ring attention for JAX, in the body of jax.shard_map.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences that an axis of a mesh shares. XLA runs the transfers, under what is computed where its scheduler sees that it can. Gradients
are JAX's own operators' (_jax_gradients.py)."""
import functools

import jax
import jax.numpy as jnp
from jax import lax

from .. import errors
from .. import jax as front
from . import _jax_gradients


def zigzag(array, ranks, axis=1):
    """The array in an order of which each of `ranks` equal shares is the r-th and the r-th last of 2 * ranks ranges: causal work is even."""
    return _in_order(array, ranks, axis, [place for rank in range(ranks) for place in (rank, 2 * ranks - 1 - rank)])


def unzigzag(array, ranks, axis=1):
    """The order of the sequence again."""
    order = [place for rank in range(ranks) for place in (rank, 2 * ranks - 1 - rank)]
    return _in_order(array, ranks, axis, [order.index(place) for place in range(2 * ranks)])


def _in_order(array, ranks, axis, order):
    length = array.shape[axis]
    if length % (2 * ranks):
        raise errors.Error(f"parallel.jax.zigzag: {length} rows are not divided by 2 * {ranks}; JAX's shards are of one length: pad them")
    parts = jnp.split(array, 2 * ranks, axis)
    return jnp.concatenate([parts[place] for place in order], axis)


def ring_attention(query, key, value, axis_name, *, is_causal=False, scale=None, return_residual=False):
    """In jax.shard_map: attention of this device's rows with the keys of all devices of the axis.

    query, key, value: [batch, own rows, heads or kv_heads, columns], as many rows as keys. With is_causal the sequence is in the order of
    zigzag(). The residual is LSE, [batch, own rows, heads]. Gradients go through both.
    """
    if query.ndim != 4 or query.shape[1] != key.shape[1]:
        raise errors.Error(f"parallel.jax.ring_attention: query has shape {query.shape} and key {key.shape}; they are [batch, rows, heads, columns] "
                           "of as many rows")
    if is_causal and query.shape[1] % 2:
        raise errors.Error(f"parallel.jax.ring_attention: {query.shape[1]} rows a device; with is_causal they are even, in the order of zigzag()")
    o, lse = _ring(query, key, value, axis_name, is_causal, scale)
    return (o, lse) if return_residual else o


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5))
def _ring(query, key, value, axis_name, is_causal, scale):
    ranks, rank = lax.axis_size(axis_name), lax.axis_index(axis_name)
    following = [(i, (i + 1) % ranks) for i in range(ranks)]
    attend = lambda *inputs, causal=False: front.dot_product_attention(*inputs, scale=scale, is_causal=causal, return_residual=True)  # noqa: E731
    o, lse = attend(query, key, value, causal=is_causal)
    o, kind = o.astype(jnp.float32), o.dtype
    for step in range(1, ranks):
        key, value = lax.ppermute((key, value), axis_name, following)
        if is_causal:
            part = lax.cond(step <= rank, functools.partial(_of_earlier, attend), functools.partial(_of_later, attend), query, key, value)
        else:
            part = attend(query, key, value)
        o, lse = _merged(o, lse, *part)
    return o.astype(kind), lse


def _ring_forward(query, key, value, axis_name, is_causal, scale):
    o, lse = _ring(query, key, value, axis_name, is_causal, scale)
    return (o, lse), (query, key, value, o, lse)


def _ring_backward(axis_name, is_causal, scale, inputs, grads):
    return _jax_gradients.gradients(inputs, grads, axis_name, is_causal, scale)


_ring.defvjp(_ring_forward, _ring_backward)


def _of_earlier(attend, query, key, value):
    """A rank before this one: all rows see the first half of its keys, and none the other."""
    half = key.shape[1] // 2
    return attend(query, key[:, :half], value[:, :half])


def _of_later(attend, query, key, value):
    """A rank after this one: the second half of the rows sees all of its keys."""
    half = query.shape[1] // 2
    o, lse = attend(query[:, half:], key, value)
    nothing = jnp.zeros_like(o), jnp.full_like(lse, -jnp.inf)
    return jnp.concatenate([nothing[0], o], 1), jnp.concatenate([nothing[1], lse], 1)


def _merged(o, lse, part, part_lse):
    """Of parts over different keys, in float32."""
    top = jnp.maximum(lse, part_lse)
    shift = jnp.where(jnp.isneginf(top), 0.0, top)
    a, b = jnp.exp(lse - shift), jnp.exp(part_lse - shift)
    total = a + b
    divisor = jnp.where(total == 0, 1.0, total)
    o = o * (a / divisor)[..., None] + part.astype(jnp.float32) * (b / divisor)[..., None]
    return o, jnp.where(total == 0, -jnp.inf, shift + jnp.log(divisor))
