# fagen: results of fagen.parallel whose bits do not depend on the number of ranks, over gloo.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch
import torch.distributed as dist

import fagen
from fagen import parallel
from ranks import Ranks
from test_parallel import MASKS, forms, group_of, inputs, mesh_of, reference, seen_by

SOME = (0,), (0, 2), (0, 1, 2, 3)


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.close()


def attend(rank, ranks, *, subset, make, **problem):
    """O, LSE and gradients of the whole, of some ranks."""
    group = group_of(tuple(subset))
    if rank not in subset:
        return None
    q, k, v = inputs(**problem)
    split, rank = make(q.shape[1], len(subset)), dist.get_rank(group)
    held = [split.shard(t, rank).detach().requires_grad_() for t in (q, k, v)]
    o, lse = parallel.attention(*held, split=split, causal=True, scheme="ulysses", group=group, invariant=True, return_lse=True)
    weights = split.shard(torch.randn(q.shape, generator=torch.Generator().manual_seed(7)), rank).to(o.dtype)
    parts = [o.detach(), lse.detach().transpose(1, 2), *torch.autograd.grad((o * weights).sum(), held)]
    return split, parts


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_exchanges_over_heads(four, dtype):
    whole = []
    for subset in SOME:
        found = [one for one in four.call(attend, subset=subset, make=parallel.contiguous, rows=53, heads=8, kv_heads=4, dtype=dtype) if one]
        whole.append([found[0][0].join([parts[i] for _, parts in found], 1) for i in range(5)])
    for other in whole[1:]:
        assert all(map(torch.equal, whole[0], other))


def blocks(length, block, ranks):
    """A split of whole blocks, the first of them on the last rank."""
    edges = [*range(0, length, block), length]
    held = [[] for _ in range(ranks)]
    for number, one in enumerate(zip(edges, edges[1:])):
        held[-1 - number % ranks].append(one)
    return parallel.Split(length, held)


def decode(rank, ranks, *, subset, block, mask, **problem):
    group = group_of(tuple(subset))
    if rank not in subset:
        return None
    q, k, v = inputs(**problem)
    keys = blocks(k.shape[1], block, len(subset))
    held = [keys.shard(t, dist.get_rank(group)) for t in (k, v)]
    return parallel.decode(q, *held, keys=keys, group=group, invariant=block, return_lse=True, **mask)


@pytest.mark.parametrize("case", ["none", "causal", "window", "documents", "gpt_oss", "sink", "alibi"])
@pytest.mark.parametrize("block", [16, 40])
def test_decode(four, case, block):
    """Parts of as many keys, wherever they are held; ranks without any among them."""
    problem, first = {"batch": 2, "rows": 3, "keys": 61}, None
    if case in MASKS:
        mask, meaning = MASKS[case], {"seen": seen_by(3, 61, **MASKS[case])}
    else:
        args, meaning = forms(3, 61, 2)[case]
        mask = {"form": case, "form_args": args}
    for subset in SOME:
        for o, lse in filter(None, four.call(decode, subset=subset, block=block, mask=mask, **problem)):
            first = first or (o, lse)
            assert torch.equal(o, first[0]) and torch.equal(lse, first[1])
    wanted = reference(*inputs(**problem), **meaning)
    torch.testing.assert_close(first[0].double(), wanted[0], atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(first[1].double(), wanted[1], atol=1e-4, rtol=1e-4)


def refused(rank, ranks):
    q, k, v = inputs(rows=64, heads=8, kv_heads=4)
    split, mesh = parallel.zigzag(64, 4), mesh_of(2, 2)
    held = [split.shard(t, rank) for t in (q, k, v)]
    with pytest.raises(fagen.Error, match='invariant=True with scheme="ring": a ring merges parts'):
        parallel.attention(*held, split=split, invariant=True)
    with pytest.raises(fagen.Error, match='invariant=True with scheme="mixed"'):
        parallel.attention(*held, split=split, mesh=mesh, scheme="mixed", invariant=True)
    with pytest.raises(fagen.Error, match="invariant=True with 2 K/V heads and 4 ranks"):
        parallel.attention(held[0], *(t[:, :, :2] for t in held[1:]), split=split, scheme="ulysses", invariant=True)
    with pytest.raises(fagen.Error, match="invariant=16 with a rank that holds keys 0 to 8"):
        parallel.decode(q[:, :1], *held[1:], keys=split, invariant=16)
    for wrong in (0, 1.5, True):
        with pytest.raises(fagen.Error, match="it is how many keys are a part, 1 or more"):
            parallel.decode(q[:, :1], *held[1:], keys=split, invariant=wrong)
    with pytest.raises(fagen.Error, match="invariant is 16 without keys"):
        parallel.decode(q[:, :1], *held[1:], invariant=16)


def test_refusals(four):
    four.call(refused)
