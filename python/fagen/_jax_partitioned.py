# fagen: XLA's custom call on arrays that are sharded over devices: batches and heads stay where they are.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Without a rule XLA gathers what a custom call reads. Ours says which dimensions are independent: batches, heads with the K/V heads that
they share, and rows where nothing compares them with keys. fagen.parallel.jax has sequences that are sharded."""
import functools

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import ArrayMapping, CompoundFactor, SdyShardingRule, custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec


def is_wanted():
    """Whether a call may meet arrays on several devices: not in shard_map, whose body has one device's."""
    return len(jax.devices()) > 1 and not jax.sharding.get_abstract_mesh().manual_axes


@functools.lru_cache(maxsize=None)
def call_of(local, rows_are_free, residual):
    """`local`(*given) -> (O, LSE), for arrays on several devices. given: query, key, value and what is read for each query and key, whose
    batches, heads and rows may be 1. LSE is [batch, heads, rows], or [1] unless residual."""
    @custom_vmap
    def call(*given):
        broadcast = tuple(tuple(n == 1 for n in array.shape[:3]) + (False,) for array in given[3:])
        group = given[0].shape[2] // max(1, given[1].shape[2])
        return _partitioned(local, rows_are_free, broadcast, group, residual)(*given)

    @call.def_vmap
    def _(size, batched, *given):
        """What vmap adds is folded into the batch."""
        batch, wide = given[0].shape[batched[0]], []
        for array, is_batched in zip(given, batched):
            array = array if is_batched else jnp.broadcast_to(array[None], (size, *array.shape))
            wide.append(jnp.broadcast_to(array, (size, batch, *array.shape[2:])).reshape(size * batch, *array.shape[2:]))
        o, lse = call(*wide)
        lse = lse.reshape(size, batch, *lse.shape[1:]) if residual else jnp.broadcast_to(lse, (size, 1))
        return (o.reshape(size, batch, *o.shape[1:]), lse), (True, True)
    return call


@functools.lru_cache(maxsize=None)
def _partitioned(local, rows_are_free, broadcast, group, residual):
    """Of arrays of which `broadcast` says by dimension whether it is 1; group: query heads that share a K/V head."""
    whole = custom_partitioning(local)

    def partition(mesh, shapes, results):
        batch, rows, heads, _ = _spec(shapes[0].sharding, 4)
        by_kv_heads = _spec(shapes[1].sharding, 4)[2]
        heads = by_kv_heads if heads == by_kv_heads or heads is None else None
        rows = rows if rows_are_free else None
        of = lambda *axes: NamedSharding(mesh, PartitionSpec(*axes))  # noqa: E731
        given = [of(batch, rows, heads, None)] + 2 * [of(batch, None, heads, None)]
        given += [of(*(None if is_one else axis for is_one, axis in zip(ones, (batch, heads, rows, None)))) for ones in broadcast]
        return mesh, local, (of(batch, rows, heads, None), of(batch, heads, rows) if residual else of(None)), tuple(given)

    def infer(mesh, shapes, results):
        return partition(mesh, shapes, results)[2]

    whole.def_partition(partition, infer_sharding_from_operands=infer, sharding_rule=_rule(rows_are_free, broadcast, group, residual))
    return whole


def _spec(sharding, rank):
    spec = tuple(sharding.spec) if isinstance(sharding, NamedSharding) else ()
    return spec + (None,) * (rank - len(spec))


def _rule(rows_are_free, broadcast, group, residual):
    """What the dimensions of operands and results have in common. What is 1 has a name of its own. Shardy wants the factors that are held
    whole in the order of their first place."""
    heads = "g" if group == 1 else CompoundFactor("g", "r")
    ones = [[f"one{i}{dim}" if is_one else name for dim, (is_one, name) in enumerate(zip(row, ("b", heads, "q", "k")))]
            for i, row in enumerate(broadcast)]
    operands = [("b", "q", heads, "d"), ("b", "k", "g", "d"), ("b", "k", "g", "e"), *ones]
    results = [("b", "q", heads, "e"), ("b", heads, "q") if residual else ("lse",)]
    whole = {"d", "e", "k", *(name for names in ones for name in names if isinstance(name, str) and name.startswith("one"))}
    whole |= (set() if rows_are_free else {"q"}) | (set() if group == 1 else {"r"}) | (set() if residual else {"lse"})
    order = dict.fromkeys(factor for names in operands + results for name in names for factor in ([name] if isinstance(name, str) else name))
    return SdyShardingRule(tuple(ArrayMapping(*names) for names in operands), tuple(ArrayMapping(*names) for names in results),
                           need_replication_factors=tuple(factor for factor in order if factor in whole), **({} if group == 1 else {"r": group}))
