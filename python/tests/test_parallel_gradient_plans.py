# fagen: gradients of fagen.parallel without processes: who computes which products, and what PyTorch's flash attention is asked for.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import random

import pytest
import torch

from fagen import _by_torch, parallel
from fagen.parallel import _compute, _piece_gradients, _pieces, _schedule_back
from test_parallel import inputs, reference
from test_parallel_plans import mask_of, random_bounds, random_split


def seen_of(bounds, keys):
    key = torch.arange(keys)
    return (key >= bounds.first[..., None]) & (key <= bounds.last[..., None])


def schedules(seed):
    """(bounds, split, keys held, schedule of each rank) of a random problem."""
    draw = random.Random(seed)
    rows, ranks = draw.choice([1, 7, 16, 33, 64, 100]), draw.choice([1, 2, 3, 4, 8])
    keys = draw.choice([rows, rows, 1, rows + 3, max(1, rows - 5)])
    bounds, split, held = random_bounds(draw, rows, keys), random_split(draw, rows, ranks), random_split(draw, keys, ranks)
    return bounds, split, held, [_schedule_back.schedule(bounds, split, held, rank, True) for rank in range(ranks)]


@pytest.mark.parametrize("seed", range(60))
def test_pieces_are_the_mask(seed):
    """Each product of a row and a key is computed once, by a kind that gradients have kernels for; what one rank sends its peer awaits."""
    bounds, split, held, made = schedules(seed)
    wanted = seen_of(bounds, held.length)
    computed = torch.zeros(wanted.shape, dtype=torch.int64)
    for rank, of_rank in enumerate(made):
        own = split.places(rank)
        assert sum(step.source == rank for step in of_rank.steps) <= 2 and of_rank.steps[0].source == rank
        for number, step in enumerate(of_rank.steps):
            if step.source != rank:
                sender = made[step.source].steps[number]
                assert sender.target == rank and sender.sends == step.receives
            theirs = held.places(step.source)
            for piece in step.pieces:
                assert step.source == rank or (step.receives[0] <= piece.keys[0] and piece.keys[1] <= step.receives[1])
                assert piece.kind in ("none", "causal", "local")
                for batch in range(len(wanted)) if piece.batch is None else [piece.batch]:
                    computed[batch][own[slice(*piece.rows)][:, None], theirs[slice(*piece.keys)][None]] += mask_of(piece).long()
    assert torch.equal(computed, wanted.long())


def test_own_keys_are_computed_first_and_last():
    """Of a ring whose keys travel, so that the first keys and the last gradients do so while something is computed."""
    split = parallel.zigzag(64, 4)
    bounds = random_bounds(random.Random(), 64, 64)._replace(first=torch.zeros(1, 64, dtype=torch.int64), last=torch.arange(64)[None])
    steps = _schedule_back.schedule(bounds, split, split, 1, True).steps
    assert [step.source for step in steps] == [1, 0, 3, 2, 1] and steps[0].pieces and steps[-1].pieces


def flash(grad, q, k, v, o, lse, *_, scale, window_size_left, window_size_right):
    """What PyTorch's flash attention computes: windows are bottom-right, -1 is open, and LSE is inf where a row has no term."""
    rows, keys = q.shape[1], k.shape[1]
    assert q.shape[2] == k.shape[2] and lse.is_contiguous() and grad.stride(-1) == 1 and not bool((lse == -torch.inf).any())
    key, place = torch.arange(keys), torch.arange(rows)[:, None] + keys - rows
    seen = ((window_size_left < 0) | (key >= place - window_size_left)) & ((window_size_right < 0) | (key <= place + window_size_right))
    q, k, v, o, grad = (t.transpose(1, 2).double() for t in (q, k, v, o, grad))
    weights = torch.exp(q @ k.transpose(-1, -2) * scale - lse[..., None].double()).masked_fill(~seen, 0.0)
    of_scores = weights * (grad @ v.transpose(-1, -2) - (grad * o).sum(-1, keepdim=True)) * scale
    found = of_scores @ k, of_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ grad
    return tuple(t.transpose(1, 2).float() for t in found)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("by_flash", [False, True])
def test_pieces_add_up(monkeypatch, seed, by_flash):
    """To the gradients of the whole, by PyTorch's flash attention, as on a GPU, and in steps of few rows."""
    bounds, split, held, made = schedules(seed)
    batch = len(bounds.first)
    q, k, v = inputs(batch, split.length, held.length, 4, 2, 16, seed=seed)
    given = [t.double().requires_grad_() for t in (q, k, v)]
    o, lse = reference(*given, seen_of(bounds, held.length)[:, None])
    grad = torch.randn(o.shape, generator=torch.Generator().manual_seed(seed))
    wanted = [t.nan_to_num() for t in torch.autograd.grad(o, given, grad.double())]
    if by_flash:
        monkeypatch.setattr(_by_torch, "has_backward_of_window", lambda *_: True)
        monkeypatch.setattr(torch.ops.aten, "_flash_attention_backward", flash)
    monkeypatch.setattr(_piece_gradients, "_MOST_SCORES", 500)
    found, problem = [torch.zeros_like(t) for t in (q, k, v)], _compute.Problem(q.shape[3] ** -0.5)
    for rank, of_rank in enumerate(made):
        own = split.places(rank)
        rows = _piece_gradients.Rows(grad[:, own], None, q[:, own], o.detach().float()[:, own], lse.detach().float()[:, :, own])
        for source, piece in ((step.source, piece) for step in of_rank.steps for piece in step.pieces):
            theirs = held.places(source)[slice(*piece.keys)]
            which = torch.arange(batch) if piece.batch is None else torch.tensor([piece.batch])
            parts = _piece_gradients.gradients(problem, piece, rows.of(piece), k[which][:, theirs], v[which][:, theirs])
            for into, part, places in zip(found, parts, (own[slice(*piece.rows)], theirs, theirs)):
                into[which[:, None], places] += part
    for got, want in zip(found, wanted):
        torch.testing.assert_close(got.double(), want, atol=2e-5, rtol=2e-5)


def test_many_documents_are_calls_of_their_own():
    """Gradients take no bounds for each row: a document after the other, up to as many calls as are few."""
    split = parallel.zigzag(4096, 2)
    bounds = random_bounds(random.Random(), 1, 1)._replace(first=(torch.arange(4096) // 8 * 8)[None], last=torch.arange(4096)[None])
    pieces = _pieces.plain_pieces(bounds, split.places(0), split.places(0))
    assert len(pieces) == 256 and {piece.kind for piece in pieces} == {"causal"}
    dense = bounds._replace(first=(torch.arange(4096) // 2 * 2)[None], last=(torch.arange(4096) // 2 * 2 + 1)[None])
    assert [piece.kind for piece in _pieces.plain_pieces(dense, split.places(0), split.places(0))] == ["none"] * 1024
    whole = torch.arange(4096)
    assert [piece.kind for piece in _pieces.plain_pieces(dense, whole, whole)] == ["rows"]
