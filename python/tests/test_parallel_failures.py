# fagen: what ranks say where one of them decodes wrongly, or has no memory for what travels, over gloo.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import time

import pytest
import torch

from fagen import parallel
from ranks import Ranks
from test_parallel import decode, inputs


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.close()


def decode_wrongly(rank, ranks, *, wrong, by, timeout=20.0, **problem):
    """With something wrong on rank 1. by: "lengths" or "keys"."""
    q, k, v = inputs(**problem)
    keys = parallel.contiguous(k.shape[1], ranks)
    held, options = [keys.shard(t, rank) for t in (k, v)], {"keys": keys} if by == "keys" else {"lengths": torch.full((q.shape[0],), 2, dtype=torch.int32)}
    if rank == 1:
        q, held, options = WRONG.get(wrong, lambda *given: given)(q, held, options)
        if wrong == "gone":
            os._exit(1)
        if wrong == "late":
            time.sleep(3)
        if wrong == "memory":
            from fagen import torch as front
            kept, front.attention = front.attention, lambda *_, **__: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory"))
            try:
                return parallel.decode(q, *held, timeout=timeout, **options)
            finally:
                front.attention = kept
    return parallel.decode(q, *held, timeout=timeout, **options)


WRONG = {"rows": lambda q, held, options: (q[:, 1:], held, options), "heads": lambda q, held, options: (q[:, :, :2], held, options),
         "type": lambda q, held, options: (q.half(), [t.half() for t in held], options),
         "k alone": lambda q, held, options: (q, [held[0].half(), held[1]], options),
         "scale": lambda q, held, options: (q, held, {**options, "scale": 0.5}), "lengths": lambda q, held, options: (q, held, {}),
         "mask": lambda q, held, options: (q, held, {**options, "causal": True} if "keys" in options else options), "fewer keys": lambda q, held, options: (q, [t[:, 1:] for t in held], options)}
SAID = {"rows": "q is torch.float32", "heads": "q is torch.float32", "type": "q is torch.float", "k alone": "k is of torch.float16", "scale": "scale is",
        "lengths": "lengths is", "fewer keys": "keys, a Split, gives", "mask": "causal=", "memory": "OutOfMemoryError"}


@pytest.mark.parametrize("wrong, by", [(wrong, by) for wrong in SAID for by in ("lengths", "keys")
                                       if (wrong, by) not in (("lengths", "keys"), ("mask", "lengths"), ("fewer keys", "lengths"))])
def test_each_rank_says_what_is_wrong_with_one(four, wrong, by):
    """And all go on with the next call."""
    outcomes = four.outcomes(decode_wrongly, seconds=50, wrong=wrong, by=by, rows=2, keys=41)
    for rank, (well, said) in enumerate(outcomes):
        assert not well and SAID[wrong] in said.splitlines()[0], (rank, said)
    assert sum("PeerError" in said.splitlines()[0] for _, said in outcomes) >= 3
    four.call(decode, problem={"rows": 2, "keys": 41}, keys=parallel.contiguous(41, 4))


@pytest.mark.parametrize("wrong", ["late", "gone"])
def test_a_rank_that_does_not_come(wrong):
    ranks = Ranks(2)
    ranks.call(decode, problem={"rows": 2, "keys": 41}, keys=parallel.contiguous(41, 2))
    outcomes = ranks.outcomes(decode_wrongly, seconds=20, wrong=wrong, by="lengths", timeout=1.0, rows=2, keys=41)
    ranks.close()
    assert not outcomes[0][0] and "PeerError" in outcomes[0][1] and "rank 1" in outcomes[0][1]
    assert not outcomes[1][0]


def without_memory(rank, ranks, *, what, scheme, split, timeout, **problem):
    """Rank 1 has no memory for what travels: for no tensor of the module that takes it."""
    from fagen.parallel import _over_heads, _ring, _ring_back
    held = [split.shard(t, rank).detach().requires_grad_() for t in inputs(**problem)]
    options = {"split": split, "timeout": timeout, "causal": True, "scheme": scheme}
    o = parallel.attention(*held, **options)
    of = _over_heads if scheme == "ulysses" else _ring if what == "forward" else _ring_back
    if rank == 1:
        of.torch = NoMemory()
    try:
        if what == "forward":
            parallel.attention(*held, **options)
        else:
            o.sum().backward()
    finally:
        of.torch = torch


class NoMemory:
    """torch without memory for new tensors."""

    def __getattr__(self, name):
        if name in ("empty", "zeros"):
            raise torch.OutOfMemoryError("out of memory")
        return getattr(torch, name)


@pytest.mark.parametrize("what", ["forward", "gradients"])
@pytest.mark.parametrize("scheme", ["ring", "ulysses"])
def test_no_memory_for_what_travels(what, scheme):
    """All say so, and who it was, before they wait for anything that travels."""
    ranks = Ranks(4)
    began = time.monotonic()
    outcomes = ranks.outcomes(without_memory, seconds=70, what=what, scheme=scheme, split=(parallel.zigzag if scheme == "ring" else parallel.contiguous)(41, 4), timeout=60, rows=41)
    took = time.monotonic() - began
    ranks.close()
    for rank, (well, said) in enumerate(outcomes):
        assert not well and "OutOfMemoryError" in said.splitlines()[0], (rank, said)
    assert took < 40
