# fagen: gradients of fagen.parallel over gloo, against one process in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import functools
import os
import random

import pytest
import torch

import fagen
from fagen import parallel
from ranks import Ranks
from test_parallel import MASKS, attend_wrongly, forms, four, group_of, inputs, mesh_of, reference, seeds, seen_by, two  # noqa: F401


def weights_of(problem, lse):
    """By which a loss weighs O and LSE."""
    q, _, v = inputs(**problem)
    draw = torch.Generator().manual_seed(99)
    o = torch.randn((*q.shape[:3], v.shape[3]), generator=draw)
    return o, torch.randn((q.shape[0], q.shape[2], q.shape[1]), generator=draw) if lse else None


def wanted_of(problem, lse=False, **meaning):
    """Gradients of one process, in float64; a row that sees nothing gives none."""
    tensors = [t.double().requires_grad_() for t in inputs(**problem)]
    o, sums = reference(*tensors, **meaning)
    of_o, of_lse = weights_of(problem, lse)
    loss = (o * of_o).sum()
    if lse:
        loss = loss + (sums.masked_fill(sums == -torch.inf, 0) * of_lse).sum()
    return [t.nan_to_num() for t in torch.autograd.grad(loss, tensors)]


def differentiate(rank, ranks, *, problem, split, keys=None, mesh=None, subset=None, lse=False, repeat=False, layout="bshd", **options):
    """Gradients of what the rank holds."""
    if mesh is not None:
        options["mesh"] = mesh_of(*mesh)
    if subset is not None:
        options["group"] = group_of(tuple(subset))
        if rank not in subset:
            return None
        rank = torch.distributed.get_rank(options["group"])
    tensors, (of_o, of_lse) = inputs(**problem), weights_of(problem, lse)
    held = [one.shard(t, rank) for t, one in zip(tensors, (split, keys or split, keys or split))]

    def once():
        given = [t.detach().clone().requires_grad_() for t in held]
        ordered = given if layout == "bshd" else [t.transpose(1, 2) for t in given]
        o, sums = parallel.attention(*ordered, split=split, keys=keys, return_lse=True, layout=layout, **options)
        o = o if layout == "bshd" else o.transpose(1, 2)
        loss = (o * split.shard(of_o, rank).to(o.dtype)).sum()
        if lse:
            loss = loss + (sums.masked_fill(sums == -torch.inf, 0) * split.shard(of_lse, rank, 2)).sum()
        return torch.autograd.grad(loss, given)
    found = once()
    if repeat:
        assert all(map(torch.equal, found, once()))
    return found


def compare(ranks, wanted, *, split, keys=None, tolerance=5e-5, **arguments):
    parts = [part for part in ranks.call(differentiate, split=split, keys=keys, **arguments) if part is not None]
    for number, one in enumerate((split, keys or split, keys or split)):
        got = one.join([part[number] for part in parts], 1)
        torch.testing.assert_close(got.double(), wanted[number], atol=tolerance, rtol=tolerance, msg=lambda said, number=number: f"d{'qkv'[number]}: {said}")


WAYS = [("ring", None), ("ulysses", None), ("mixed", (2, 2))]


def split_of(length, scheme, mesh):
    return parallel.zigzag(length, 2).divide(2) if mesh else parallel.zigzag(length, 4) if scheme == "ring" else parallel.contiguous(length, 4)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scheme, mesh", WAYS)
def test_masks(four, mask, scheme, mesh):
    problem = {"rows": 61, "heads": 8, "kv_heads": 2}
    compare(four, wanted_of(problem, seen=seen_by(61, 61, **MASKS[mask])), problem=problem, split=split_of(61, scheme, mesh), scheme=scheme, mesh=mesh,
            repeat=True, **MASKS[mask])


@pytest.mark.parametrize("scheme, mesh", WAYS)
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_through_lse(four, scheme, mesh, layout):
    problem = {"rows": 37, "heads": 4, "batch": 2}
    compare(four, wanted_of(problem, True, seen=seen_by(37, 37, causal=True)), problem=problem, split=split_of(37, scheme, mesh), scheme=scheme, mesh=mesh,
            lse=True, layout=layout, causal=True)


@pytest.mark.parametrize("rows, keys, make", [(1, 50, "contiguous"), (33, 80, "zigzag"), (50, 20, "zigzag"), (2, 2, "contiguous")])
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(four, rows, keys, make, causal):
    """Other keys than rows, rows that see nothing, and ranks that hold nothing."""
    split, other = getattr(parallel, make)(rows, 4), parallel.contiguous(keys, 4)
    problem = {"rows": rows, "keys": keys}
    compare(four, wanted_of(problem, seen=seen_by(rows, keys, causal=causal)), problem=problem, split=split, keys=other, causal=causal)


def test_any_split(two):
    split = parallel.Split(70, [[(0, 3), (9, 20), (41, 70)], [(3, 9), (20, 41)]])
    for mask in MASKS.values():
        problem = {"rows": 70, "batch": 2}
        mask = {**mask, "documents": torch.tensor([0, 7, 8, 30, 70])} if "documents" in mask else mask
        compare(two, wanted_of(problem, seen=seen_by(70, 70, **mask)), problem=problem, split=split, **mask)


def test_documents_of_each_batch(two):
    ids = torch.stack([torch.arange(40) // 13, torch.arange(40) // 7, torch.zeros(40, dtype=torch.int64)])
    mask = {"documents": ids, "causal": True}
    problem = {"batch": 3, "rows": 40}
    compare(two, wanted_of(problem, seen=seen_by(40, 40, **mask)), problem=problem, split=parallel.zigzag(40, 2), **mask)


@pytest.mark.parametrize("heads, kv_heads, chunks", [(4, 4, 4), (8, 1, 1), (6, 2, 2), (5, 5, 1), (16, 8, 2), (9, 3, 1)])
def test_heads(four, heads, kv_heads, chunks):
    """More and fewer K/V heads than ranks, of which some get copies, and heads that ranks do not divide."""
    problem = {"rows": 37, "heads": heads, "kv_heads": kv_heads, "batch": 2}
    compare(four, wanted_of(problem, seen=seen_by(37, 37, causal=True)), problem=problem, split=parallel.contiguous(37, 4), scheme="ulysses",
            causal=True, chunks=chunks, repeat=True)


def test_subsets(four):
    problem = {"rows": 45}
    compare(four, wanted_of(problem, seen=seen_by(45, 45, causal=True)), problem=problem, split=parallel.zigzag(45, 3), subset=(0, 2, 3), causal=True)


@pytest.mark.parametrize("form", sorted(forms(8, 8, 1)))
def test_forms(four, form):
    """Bounds where they are the whole form, else the form's own programs, over a ring and mixed with an exchange over heads."""
    batch = 2
    for rows, keys, scheme, mesh in ((50, 50, "ring", None), (30, 45, "mixed", (2, 2))) if form != "used" else ((20, 50, "ring", None), ):
        args, meaning = forms(rows, keys, batch)[form]
        problem = {"batch": batch, "rows": rows, "keys": keys}
        split, other = (parallel.zigzag(n, 2).divide(2) if mesh else parallel.zigzag(n, 4) for n in (rows, keys))
        compare(four, wanted_of(problem, **meaning), problem=problem, split=split, keys=other, form=form, form_args=args, scheme=scheme, mesh=mesh)
