# fagen: fagen.parallel over gloo: rings, exchanges over heads and both, against one process in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import functools
import math

import pytest
import torch
import torch.distributed as dist

import fagen
from fagen import parallel
from ranks import Ranks


@pytest.fixture(scope="module")
def two():
    ranks = Ranks(2)
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.close()


# One process, in float64.

def inputs(batch=1, rows=64, keys=None, heads=4, kv_heads=2, head_dim=32, dtype=torch.float32, seed=0):
    draw = torch.Generator().manual_seed(seed)
    keys = rows if keys is None else keys
    shapes = [(batch, rows, heads, head_dim)] + 2 * [(batch, keys, kv_heads, head_dim)]
    return [torch.randn(shape, generator=draw).to(dtype) for shape in shapes]


def seen_by(rows, keys, *, causal=False, window=None, documents=None):
    """bool [batch or 1, 1, rows, keys]."""
    row, key = torch.arange(rows)[:, None], torch.arange(keys)[None]
    place = row + keys - rows
    seen = torch.ones(1, 1, rows, keys, dtype=torch.bool)
    if causal:
        seen = seen & (key <= place)
    if window is not None:
        left, right = window
        seen = seen & (True if left < 0 else key >= place - left) & (True if right < 0 else key <= place + right)
    if documents is not None:
        ids = documents
        if documents.dim() == 1:
            ids = torch.bucketize(torch.arange(keys), documents[1:], right=True)[None]
        own = ids[:, place.clamp(min=0)[:, 0]].masked_fill(place[:, 0] < 0, -1)
        seen = seen & (ids[:, None, None, :] == own[:, None, :, None])
    return seen


def reference(q, k, v, seen, scale=None, score=None, sink=None):
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = (scores if score is None else score(scores)).masked_fill(~seen, -math.inf)
    sums = torch.logsumexp(scores, -1)
    if sink is not None:
        sums = torch.logaddexp(sums, sink.double()[:, None].expand_as(sums))
    o = torch.exp(scores - sums.masked_fill(sums == -math.inf, 0)[..., None]) @ v
    return o.transpose(1, 2), sums


# What a rank runs.

@functools.lru_cache(maxsize=None)
def mesh_of(*shape):
    return dist.init_device_mesh("cpu", shape, mesh_dim_names=("ring", "heads")[:len(shape)])


def attend(rank, ranks, *, problem, split, keys=None, mesh=None, subset=None, repeat=False, **options):
    """O and LSE of the rank's rows."""
    q, k, v = inputs(**problem)
    if mesh is not None:
        options["mesh"] = mesh_of(*mesh)
    if subset is not None:
        options["group"] = group_of(tuple(subset))
        if rank not in subset:
            return None
        rank = subset.index(rank)
    held = [one.shard(t, rank) for t, one in ((q, split), (k, keys or split), (v, keys or split))]
    o, lse = parallel.attention(*held, split=split, keys=keys, return_lse=True, **options)
    if repeat:
        again = parallel.attention(*held, split=split, keys=keys, return_lse=True, **options)
        assert torch.equal(o, again[0]) and torch.equal(lse, again[1])
    return o.clone(), lse.clone()


@functools.lru_cache(maxsize=None)
def group_of(ranks):
    return dist.new_group(list(ranks))


def compare(ranks, wanted, *, split, tolerance=2e-5, **arguments):
    parts = [part for part in ranks.call(attend, split=split, **arguments) if part is not None]
    o, lse = split.join([o for o, _ in parts], 1), split.join([lse for _, lse in parts], 2)
    torch.testing.assert_close(o.double(), wanted[0], atol=tolerance, rtol=tolerance)
    torch.testing.assert_close(lse.double(), wanted[1], atol=max(tolerance, 1e-4), rtol=1e-4)


MASKS = {"none": {}, "causal": {"causal": True}, "window": {"causal": True, "window": (9, 0)}, "local": {"window": (5, 11)},
         "documents": {"causal": True, "documents": torch.tensor([0, 7, 8, 30, 61])},
         "documents_open": {"documents": torch.tensor([0, 7, 8, 30, 61])}}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scheme, mesh", [("ring", None), ("ulysses", None), ("mixed", (2, 2))])
def test_masks(four, mask, scheme, mesh):
    problem = {"rows": 61, "heads": 8, "kv_heads": 2}
    split = parallel.zigzag(61, 2).divide(2) if mesh else parallel.zigzag(61, 4) if scheme == "ring" else parallel.contiguous(61, 4)
    q, k, v = inputs(**problem)
    compare(four, reference(q, k, v, seen_by(61, 61, **MASKS[mask])), problem=problem, split=split, scheme=scheme, mesh=mesh, **MASKS[mask])
