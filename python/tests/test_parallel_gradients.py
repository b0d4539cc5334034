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
from test_parallel import MASKS, RAGGED, forms, four, group_of, inputs, mesh_of, reference, seeds, seen_by, seen_ragged, two  # noqa: F401


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


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_batches(four, case):
    """Sequences with rows and keys of their own lengths, some of them empty."""
    of_rows, of_keys = map(torch.tensor, RAGGED[case])
    problem = {"rows": int(of_rows[-1]), "keys": int(of_keys[-1])}
    for causal, (scheme, mesh) in ((False, ("ring", None)), (True, ("mixed", (2, 2)))):
        split, other = (parallel.zigzag(n, 2).divide(2) if mesh else parallel.contiguous(n, 4) for n in problem.values())
        compare(four, wanted_of(problem, seen=seen_ragged(of_rows, of_keys, causal, None)), problem=problem, split=split, keys=other,
                documents=(of_rows, of_keys), causal=causal, scheme=scheme, mesh=mesh)


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types(four, dtype):
    """16 bits: sums of parts are in float32, and rounded once."""
    problem = {"rows": 64, "dtype": dtype}
    unit = torch.finfo(dtype).eps
    wanted = wanted_of(problem, seen=seen_by(64, 64, causal=True))
    compare(four, wanted, problem=problem, split=parallel.zigzag(64, 4), causal=True, tolerance=4 * unit, repeat=True)


@pytest.mark.parametrize("scheme, mesh", WAYS)
def test_of_wide_outputs(four, scheme, mesh):
    """O in float32 of inputs in 16 bits."""
    problem = {"rows": 64, "dtype": torch.bfloat16}
    compare(four, wanted_of(problem, seen=seen_by(64, 64, causal=True)), problem=problem, split=split_of(64, scheme, mesh), scheme=scheme, mesh=mesh,
            causal=True, o_dtype=torch.float32, tolerance=4 * torch.finfo(torch.bfloat16).eps)


def checkpointed(rank, ranks, *, split, **problem):
    """Gradients where the forward is computed again for them."""
    from torch.utils.checkpoint import checkpoint
    held = [split.shard(t, rank).detach().requires_grad_() for t in inputs(**problem)]
    call = functools.partial(parallel.attention, split=split, causal=True)
    plain = torch.autograd.grad(call(*held).square().sum(), held)
    again = torch.autograd.grad(checkpoint(call, *held, use_reentrant=False).square().sum(), held)
    assert all(map(torch.equal, plain, again))


def test_checkpoints(two):
    two.call(checkpointed, split=parallel.zigzag(33, 2), rows=33)


# In the place of PyTorch's context_parallel.

class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        draw = torch.Generator().manual_seed(5)
        self.heads = heads
        self.q, self.k, self.v, self.o = (torch.nn.Parameter(torch.randn(width, width, generator=draw) / width ** 0.5) for _ in range(4))

    def forward(self, x, attend):
        q, k, v = ((x @ w).unflatten(2, (self.heads, -1)).transpose(1, 2) for w in (self.q, self.k, self.v))
        return attend(q, k, v, is_causal=True).transpose(1, 2).flatten(2) @ self.o


def trained(rank, ranks, *, rows, scheme, shape):
    """Gradients of weights, summed over ranks."""
    draw = torch.Generator().manual_seed(1)
    layer, x, weights = Layer(32, 4), torch.randn((1, rows, 32), generator=draw), torch.randn((1, rows, 32), generator=draw)
    with parallel.context_parallel(mesh_of(*shape), buffers=[x, weights], buffer_seq_dims=[1, 1], scheme=scheme):
        (layer(x, torch.nn.functional.scaled_dot_product_attention) * weights).sum().backward()
    for parameter in layer.parameters():
        torch.distributed.all_reduce(parameter.grad)
    alone = Layer(32, 4).double()
    (alone(x.double(), torch.nn.functional.scaled_dot_product_attention) * weights.double()).sum().backward()
    for got, wanted in zip(layer.parameters(), alone.parameters()):
        torch.testing.assert_close(got.grad.double(), wanted.grad, atol=2e-4, rtol=2e-4)
    with pytest.raises(fagen.Error, match="a buffer wants a gradient"):
        with parallel.context_parallel(mesh_of(*shape), buffers=[layer.q], buffer_seq_dims=[1], scheme=scheme):
            pass


@pytest.mark.parametrize("scheme, shape", [("ring", (4,)), ("ulysses", (4,)), (None, (2, 2))])
def test_context_parallel_trains(four, scheme, shape):
    four.call(trained, rows=51, scheme=scheme, shape=shape)


# What goes wrong.

def differentiate_wrongly(rank, ranks, *, wrong, scheme="ring", timeout=20.0, **problem):
    """The backward, with something wrong on rank 1."""
    q, k, v = inputs(**problem)
    split = parallel.zigzag(q.shape[1], ranks) if scheme == "ring" else parallel.contiguous(q.shape[1], ranks)
    held = [split.shard(t, rank).detach().requires_grad_() for t in (q, k, v)]
    form = {"form": "alibi", "slope": torch.ones(q.shape[2], requires_grad=rank == 1)} if wrong == "param" else {"causal": True}
    o, lse = parallel.attention(*held, split=split, timeout=timeout, scheme=scheme, return_lse=True, **form)
    loss = o.sum()
    if rank == 1:
        from fagen.parallel import _piece_gradients
        if wrong == "gone":
            os._exit(1)
        if wrong == "late":
            import time
            time.sleep(3)
        if wrong == "never":
            raise RuntimeError("this rank does not call backward")
        if wrong == "lse":
            loss = loss + lse.masked_fill(lse == -torch.inf, 0).sum()
        if wrong in ("memory", "kernel"):
            fails = torch.OutOfMemoryError("out of memory") if wrong == "memory" else RuntimeError("a kernel fails")
            kept, _piece_gradients.gradients = _piece_gradients.gradients, lambda *_: (_ for _ in ()).throw(fails)
            try:
                return loss.backward()
            finally:
                _piece_gradients.gradients = kept
    loss.backward()


SAID = {"memory": "OutOfMemoryError", "kernel": "a kernel fails", "lse": "gradient_of_lse is", "param": "slope of the form wants a gradient"}


@pytest.mark.parametrize("scheme", ["ring", "ulysses"])
@pytest.mark.parametrize("wrong", SAID)
def test_each_rank_says_what_is_wrong_with_one(four, wrong, scheme):
    """And all go on with the next call."""
    outcomes = four.outcomes(differentiate_wrongly, seconds=50, wrong=wrong, rows=41, scheme=scheme)
    for rank, (well, said) in enumerate(outcomes):
        assert not well and SAID[wrong] in said.splitlines()[0], (rank, said)
    assert sum("PeerError" in said.splitlines()[0] for _, said in outcomes) >= 3
    four.call(differentiate, problem={"rows": 41}, split=parallel.zigzag(41, 4), causal=True)


@pytest.mark.parametrize("wrong", ["late", "never"])
def test_a_rank_that_does_not_come(wrong):
    """The others say so after the timeout."""
    ranks = Ranks(2)
    ranks.call(differentiate, problem={"rows": 41}, split=parallel.zigzag(41, 2), causal=True)
    outcomes = ranks.outcomes(differentiate_wrongly, seconds=20, wrong=wrong, timeout=1.0, rows=41)
    ranks.close()
    assert not outcomes[0][0] and "rank 1 did not come to call 9 of this group within 1 s" in outcomes[0][1]
    assert not outcomes[1][0]


def test_a_rank_that_ends():
    ranks = Ranks(4)
    outcomes = ranks.outcomes(differentiate_wrongly, seconds=15, wrong="gone", timeout=3.0, rows=41)
    ranks.close()
    assert outcomes[1] == (False, "gone")
    for rank in (0, 2, 3):
        assert not outcomes[rank][0] and "PeerError: " in outcomes[rank][1] and "rank 1" in outcomes[rank][1]


@pytest.mark.parametrize("seed", seeds())
def test_random(four, seed):
    """Splits, sizes, masks, schemes and meshes together."""
    compare(four, **random_problem(random.Random(seed), seed))


def random_problem(draw, seed):
    rows, batch, kv_heads = draw.randint(1, 90), draw.randint(1, 3), draw.choice([1, 2, 4])
    scheme, mesh = draw.choice([*WAYS, ("mixed", (4, 1)), ("mixed", (1, 4))])
    problem = {"batch": batch, "rows": rows, "heads": kv_heads * draw.choice([n for n in (1, 2, 3, 4) if kv_heads * n >= 4]), "kv_heads": kv_heads,
               "head_dim": draw.choice([8, 20, 32]), "seed": seed}
    mask = {"causal": draw.random() < 0.5}
    if draw.random() < 0.5:
        mask["window"] = (draw.choice([-1, 0, 3, 17]), draw.choice([-1, 0, 5]))
    if draw.random() < 0.4:
        made = torch.Generator().manual_seed(seed)
        mask["documents"] = torch.randint(0, 6, (draw.choice([1, batch]), rows), generator=made).sort().values
    ring, exchange = mesh or ((4, 1) if scheme == "ring" else (1, 4))
    make = draw.choice([parallel.zigzag, parallel.contiguous, functools.partial(parallel.balanced, **mask, batch=batch, granule=7)])
    lse = draw.random() < 0.3
    return {"wanted": wanted_of(problem, lse, seen=seen_by(rows, rows, **mask)), "problem": problem, "split": make(rows, ring).divide(exchange),
            "scheme": scheme, "mesh": mesh, "lse": lse, "repeat": True, "chunks": draw.randint(1, 4), **mask}
