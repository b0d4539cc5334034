# fagen: fagen.parallel over gloo: rings, exchanges over heads and both, against one process in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import functools
import math
import os
import random

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
        rank = dist.get_rank(options["group"])
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


@pytest.mark.parametrize("rows, keys, make", [(1, 50, "contiguous"), (3, 50, "zigzag"), (33, 80, "zigzag"), (50, 20, "zigzag"), (2, 2, "contiguous")])
@pytest.mark.parametrize("causal", [False, True])
def test_lengths(four, rows, keys, make, causal):
    """Other keys than rows, rows that see nothing, and ranks that hold nothing."""
    split, other = getattr(parallel, make)(rows, 4), parallel.contiguous(keys, 4)
    q, k, v = inputs(rows=rows, keys=keys)
    compare(four, reference(q, k, v, seen_by(rows, keys, causal=causal)), problem={"rows": rows, "keys": keys}, split=split, keys=other, causal=causal)


def test_any_split(two):
    """Ranges of any lengths, many of them."""
    split = parallel.Split(70, [[(0, 3), (9, 20), (41, 70)], [(3, 9), (20, 41)]])
    for mask in MASKS.values():
        problem = {"rows": 70, "batch": 2}
        mask = {**mask, "documents": torch.tensor([0, 7, 8, 30, 70])} if "documents" in mask else mask
        compare(two, reference(*inputs(**problem), seen_by(70, 70, **mask)), problem=problem, split=split, **mask)


RAGGED = {"chunks of caches": ([0, 5, 6, 6, 23, 40], [0, 30, 31, 40, 57, 91]), "more rows than keys": ([0, 20, 33, 40], [0, 8, 21, 21]),
          "no keys": ([0, 3, 40], [0, 0, 0]), "empty ones": ([0, 0, 40, 40], [0, 0, 40, 40]), "fewer rows than ranks": ([0, 1, 2, 2], [0, 50, 60, 91])}


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_batches(four, case):
    """Sequences with rows and keys of their own lengths, some of them empty, packed; the rows of each are its last."""
    of_rows, of_keys = map(torch.tensor, RAGGED[case])
    problem = {"rows": int(of_rows[-1]), "keys": int(of_keys[-1])}
    for causal, window, (scheme, mesh) in ((False, None, ("ring", None)), (True, None, ("mixed", (2, 2))), (True, (4, 0), ("ulysses", None))):
        wanted = reference(*inputs(**problem), seen_ragged(of_rows, of_keys, causal, window))
        split, other = (parallel.zigzag(n, 2).divide(2) if mesh else parallel.contiguous(n, 4) for n in problem.values())
        compare(four, wanted, problem=problem, split=split, keys=other, documents=(of_rows, of_keys), causal=causal, window=window, scheme=scheme, mesh=mesh)


def seen_ragged(of_rows, of_keys, causal, window):
    seen = torch.zeros(1, 1, int(of_rows[-1]), int(of_keys[-1]), dtype=torch.bool)
    for (a, b), (c, d) in zip(zip(of_rows, of_rows[1:]), zip(of_keys, of_keys[1:])):
        seen[:, :, a:b, c:d] = seen_by(int(b - a), int(d - c), causal=causal, window=window)
    return seen


def test_documents_of_each_batch(two):
    ids = torch.stack([torch.arange(40) // 13, torch.arange(40) // 7, torch.zeros(40, dtype=torch.int64)])
    mask = {"documents": ids, "causal": True}
    compare(two, reference(*inputs(3, 40), seen_by(40, 40, **mask)), problem={"batch": 3, "rows": 40}, split=parallel.zigzag(40, 2), **mask)


@pytest.mark.parametrize("heads, kv_heads, chunks", [(4, 4, 4), (8, 1, 1), (6, 2, 2), (12, 4, 2), (5, 5, 1), (16, 8, 2), (9, 3, 1)])
def test_heads(four, heads, kv_heads, chunks):
    """More and fewer K/V heads than ranks, and heads that ranks do not divide."""
    problem = {"rows": 37, "heads": heads, "kv_heads": kv_heads, "batch": 2}
    compare(four, reference(*inputs(**problem), seen_by(37, 37, causal=True)), problem=problem, split=parallel.contiguous(37, 4), scheme="ulysses",
            causal=True, chunks=chunks)


def test_subsets(four):
    """Groups of some ranks; the others do nothing."""
    for subset in ((1, 3), (0, 2, 3)):
        split = parallel.zigzag(45, len(subset))
        parts = [part for part in four.call(attend, problem={"rows": 45}, split=split, subset=subset, causal=True) if part]
        o = split.join([parts[sorted(subset).index(rank)][0] for rank in subset])
        torch.testing.assert_close(o.double(), reference(*inputs(rows=45), seen_by(45, 45, causal=True))[0], atol=2e-5, rtol=2e-5)


def test_bits_are_the_same_each_time(four):
    four.call(attend, problem={"rows": 50, "dtype": torch.bfloat16}, split=parallel.zigzag(50, 4), causal=True, repeat=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_errors_of_parts_in_16_bits(four, dtype):
    """Parts are rounded to the type of q, and their merge is: docs/Parallel.md has the bound, one half unit for each."""
    problem = {"rows": 64, "dtype": dtype}
    q, k, v = inputs(**problem)
    wanted, _ = reference(q, k, v, seen_by(64, 64))
    parts = four.call(attend, problem=problem, split=parallel.zigzag(64, 4))
    o = parallel.zigzag(64, 4).join([o for o, _ in parts]).double()
    unit = torch.finfo(dtype).eps / 2
    largest = v.double().abs().amax()
    assert (o - wanted).abs().max() <= unit * (wanted.abs().max() + largest) * 1.01


def rounded_errors(four, dtype, scheme, mesh):
    """Root mean squares of the errors of O: of one rounding, of parts in 16 bits, of those merged but not rounded again, of parts in float32."""
    problem = {"rows": 256, "dtype": dtype}
    q, k, v = inputs(**problem)
    wanted, _ = reference(q, k, v, seen_by(256, 256))
    split = parallel.zigzag(256, 2).divide(2) if mesh else parallel.zigzag(256, 4)
    found = [wanted.to(dtype)]
    for o_dtype in (None, torch.float32):
        found.append(split.join([o for o, _ in four.call(attend, problem=problem, split=split, scheme=scheme, mesh=mesh, o_dtype=o_dtype)]))
    assert found[1].dtype == dtype and found[2].dtype == torch.float32
    found.append(split.join([o for o, _ in four.call(attend_wide, problem=problem, split=split)]).to(dtype))
    return [float((o.double() - wanted).square().mean().sqrt()) for o in found]


def attend_wide(rank, ranks, *, problem, split):
    """Parts in float32, of inputs in 16 bits."""
    return parallel.attention(*(split.shard(t.float(), rank) for t in inputs(**problem)), split=split, return_lse=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scheme, mesh", [("ring", None), ("mixed", (2, 2))])
def test_what_parts_in_16_bits_lose(four, dtype, scheme, mesh):
    """Half as much again as one rounding, of which o_dtype=torch.float32 leaves what the parts have lost; parts in float32 would lose nothing."""
    once, parts, unrounded, wide = rounded_errors(four, dtype, scheme, mesh)
    assert 1.25 < parts / once < 1.6 and 0.8 < unrounded / once < 1.2 and wide / once < 1.01


SLOPES, SINKS = torch.tensor([0.5, 0.1, 0.02, 0.9]), torch.tensor([0.5, -1.0, 3.0, 0.0])


def forms(rows, keys, batch):
    """Of the package: (form, its args, what it means as score, mask and sink)."""
    row, key = torch.arange(rows)[:, None], torch.arange(keys)[None]
    place = row + keys - rows
    causal = key <= place
    draw = torch.Generator().manual_seed(3)
    bias = torch.randn((batch, 4, rows, keys), generator=draw)
    visible = torch.randint(0, 2, (batch, 4, rows, keys), generator=draw, dtype=torch.uint8)
    ids = (torch.arange(keys, dtype=torch.int32)[None] + 5 * torch.arange(batch, dtype=torch.int32)[:, None]) // 11
    first = torch.searchsorted(ids, ids).int()
    own = ids[:, place.clamp(min=0)[:, 0]]
    same = (ids[:, None, None, :] == own[:, None, :, None]) & causal
    factor = torch.tensor([0.5, 1.0, 2.0, 3.0])
    prefix = torch.tensor([9, 3, 20][:batch], dtype=torch.int32)
    blocks = torch.randint(0, 2, (batch, 4, -(-rows // 8), -(-keys // 8)), generator=draw, dtype=torch.uint8)
    cap = lambda s: 5 * torch.tanh(s / 5)  # noqa: E731
    by_rows = {"first": (torch.arange(rows) // 3).int(), "last": (torch.arange(rows) // 2 + 4).int()}
    return {
        "window": ({"window": 9}, {"seen": causal & (place - key < 9)}),
        "local": ({"left": 4, "right": 6}, {"seen": (key >= place - 4) & (key <= place + 6)}),
        "softcap": ({"cap": 5.0}, {"seen": causal, "score": cap}),
        "gemma2": ({"cap": 5.0, "window": 9}, {"seen": causal & (place - key < 9), "score": cap}),
        "alibi": ({"slope": SLOPES}, {"seen": causal, "score": lambda s: s + SLOPES.double()[:, None, None] * (key - place)}),
        "sink": ({"sinks": SINKS}, {"seen": causal, "sink": SINKS}),
        "gpt_oss": ({"window": 9, "sinks": SINKS}, {"seen": causal & (place - key < 9), "sink": SINKS}),
        "bias": ({"bias": bias}, {"seen": torch.ones(rows, keys, dtype=torch.bool), "score": lambda s: s + bias.double()}),
        "prefix": ({"prefix": prefix}, {"seen": (key < prefix[:, None, None, None]) | causal}),
        "documents": ({"first": first}, {"seen": same}),
        "same_document": ({"document": ids}, {"seen": same}),
        "temperature": ({"factor": factor}, {"seen": causal, "score": lambda s: s * factor.double()[:, None, None]}),
        "streaming": ({"first": 3, "window": 9}, {"seen": causal & ((key < 3) | (place - key < 9))}),
        "dilated": ({"window": 5, "step": 3}, {"seen": causal & (place - key < 15) & ((place - key) % 3 == 0)}),
        "chunked": ({"chunk": 16}, {"seen": causal & (key // 16 == torch.div(place, 16, rounding_mode="floor"))}),
        "blocks": ({"size": 8, "rows": blocks.shape[2], "columns": blocks.shape[3], "map": blocks},
                   {"seen": blocks.bool().repeat_interleave(8, 2).repeat_interleave(8, 3)[:, :, :rows, :keys]}),
        "visible": ({"visible": visible}, {"seen": visible.bool()}),
        "bias_visible": ({"bias": bias, "visible": visible}, {"seen": visible.bool(), "score": lambda s: s + bias.double()}),
        "rows": (by_rows, {"seen": (key >= by_rows["first"][:, None]) & (key <= by_rows["last"][:, None])}),
        "used": ({"used": torch.tensor([40, 7, 33][:batch], dtype=torch.int32), "left": 12, "right": 0}, {"seen": used(row, key, rows, [40, 7, 33][:batch])}),
    }


def used(row, key, rows, lengths):
    length = torch.tensor(lengths)[:, None, None, None]
    place = row + length - rows
    return (key < length) & (key >= place - 12) & (key <= place)


def test_there_is_a_case_for_each_form_of_the_package():
    of_byte_caches = {"scaled", "scaled_causal", "scaled_used"}  # which ranks do not share
    assert set(forms(8, 8, 1)) == set(fagen.ready().forms) - of_byte_caches


@pytest.mark.parametrize("form", sorted(forms(8, 8, 1)))
def test_forms(four, form):
    """Over a ring with rows that see nothing, and mixed with an exchange over heads."""
    batch = 2
    for rows, keys, scheme, mesh in ((50, 50, "ring", None), (30, 45, "mixed", (2, 2))) if form != "used" else ((20, 50, "ring", None), ):
        args, meaning = forms(rows, keys, batch)[form]
        problem = {"batch": batch, "rows": rows, "keys": keys}
        split, other = (parallel.zigzag(n, 2).divide(2) if mesh else parallel.zigzag(n, 4) for n in (rows, keys))
        compare(four, reference(*inputs(**problem), **meaning), problem=problem, split=split, keys=other, form=form, form_args=args, scheme=scheme,
                mesh=mesh)


def test_sinks_of_rows_that_see_nothing(two):
    args, meaning = forms(50, 20, 1)["sink"]
    problem = {"rows": 50, "keys": 20}
    compare(two, reference(*inputs(**problem), **meaning), problem=problem, split=parallel.zigzag(50, 2), keys=parallel.zigzag(20, 2), form="sink",
            form_args=args)


# What goes wrong.

def attend_wrongly(rank, ranks, *, wrong, timeout=20.0, **problem):
    """As attend(), with something wrong on rank 1."""
    q, k, v = inputs(**problem)
    split = parallel.zigzag(q.shape[1], ranks)
    held, options = [split.shard(t, rank) for t in (q, k, v)], {"causal": True}
    if rank == 1:
        if wrong == "gone":
            os._exit(1)
        if wrong == "late":
            import time
            time.sleep(4)
        held, options = WRONG.get(wrong, lambda held, options: (held, options))(held, options)
    if wrong in ("memory", "kernel") and rank == 1:
        from fagen.parallel import _compute
        fails = torch.OutOfMemoryError("out of memory") if wrong == "memory" else RuntimeError("a kernel fails")
        kept, _compute.attend = _compute.attend, lambda *_, **__: (_ for _ in ()).throw(fails)
        try:
            return parallel.attention(*held, split=split, timeout=timeout, **options)
        finally:
            _compute.attend = kept
    return parallel.attention(*held, split=split, timeout=timeout, **options)


WRONG = {"rows": lambda held, options: ([t[:, :-1] for t in held], options),
         "heads": lambda held, options: ([t[:, :, :2] for t in held], options),
         "type": lambda held, options: ([t.half() for t in held], options),
         "mask": lambda held, options: (held, {"causal": False}),
         "scale": lambda held, options: (held, {**options, "scale": 0.5}),
         "form": lambda held, options: (held, {"form": "softcap", "cap": 3.0}),
         "no such form": lambda held, options: (held, {"form": "softcup", "cap": 3.0}),
         "gradient": lambda held, options: ([t.requires_grad_() for t in held], options)}
SAID = {"rows": "q is torch.float32", "heads": "heads is", "type": "dtype is", "mask": "mask is causal=", "scale": "scale is", "form": "mask is causal=",
        "no such form": "did you mean 'softcap'", "gradient": "gradient is", "memory": "OutOfMemoryError", "kernel": "a kernel fails"}


@pytest.mark.parametrize("wrong", SAID)
def test_each_rank_says_what_is_wrong_with_one(four, wrong):
    """And all go on with the next call."""
    outcomes = four.outcomes(attend_wrongly, seconds=50, wrong=wrong, rows=41)
    for rank, (well, said) in enumerate(outcomes):
        assert not well and SAID[wrong] in said.splitlines()[0], (rank, said)
    assert sum("PeerError" in said.splitlines()[0] for _, said in outcomes) >= 3
    four.call(attend, problem={"rows": 41}, split=parallel.zigzag(41, 4), causal=True)


def test_a_rank_that_is_late():
    """A timeout that is too short is said by those that waited; the late rank says so, too."""
    ranks = Ranks(2)
    ranks.call(attend, problem={"rows": 41}, split=parallel.zigzag(41, 2), causal=True)
    outcomes = ranks.outcomes(attend_wrongly, seconds=20, wrong="late", timeout=1.0, rows=41)
    ranks.close()
    assert not outcomes[0][0] and "rank 1 did not come to call 4 of this group within 1 s" in outcomes[0][1]
    assert not outcomes[1][0] and "PeerError" in outcomes[1][1]


def test_a_rank_that_ends():
    ranks = Ranks(4)
    ranks.call(attend, problem={"rows": 41}, split=parallel.zigzag(41, 4), causal=True)
    outcomes = ranks.outcomes(attend_wrongly, seconds=15, wrong="gone", timeout=3.0, rows=41)
    ranks.close()
    assert outcomes[1] == (False, "gone")
    for rank in (0, 2, 3):
        assert not outcomes[rank][0] and "PeerError: " in outcomes[rank][1] and "rank 1" in outcomes[rank][1]


# Caches divided over ranks.

def decode(rank, ranks, *, problem, keys, lengths=None, **options):
    q, k, v = inputs(**problem)
    held = [keys.shard(t, rank) for t in (k, v)]
    if lengths is not None:
        held_of = (torch.tensor(lengths)[:, None] > keys.places(rank)[None]).sum(1)
        return parallel.decode(q, *held, lengths=held_of.int(), return_lse=True, **options)
    return parallel.decode(q, *held, keys=keys, return_lse=True, **options)


def assert_decoded(ranks, wanted, **arguments):
    results = ranks.call(decode, **arguments)
    for o, lse in results:
        assert torch.equal(o, results[0][0]) and torch.equal(lse, results[0][1])
    torch.testing.assert_close(results[0][0].double(), wanted[0], atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(results[0][1].double(), wanted[1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("mask", ["none", "causal", "window", "documents"])
def test_decode(four, mask):
    problem = {"batch": 2, "rows": 3, "keys": 61}
    for keys in (parallel.contiguous(61, 4), parallel.zigzag(61, 4), parallel.Split(61, [[(0, 59)], [(59, 61)], [], []])):
        assert_decoded(four, reference(*inputs(**problem), seen_by(3, 61, **MASKS[mask])), problem=problem, keys=keys, **MASKS[mask])


def test_decode_of_lengths(four):
    problem, lengths = {"batch": 3, "rows": 1, "keys": 61}, [61, 7, 33]
    seen = (torch.arange(61) < torch.tensor(lengths)[:, None])[:, None, None]
    assert_decoded(four, reference(*inputs(**problem), seen), problem=problem, keys=parallel.contiguous(61, 4), lengths=lengths)


@pytest.mark.parametrize("keys, lengths", [(2, [2, 0, 1]), (61, [0, 61, 1]), (0, [0, 0, 0]), (5, [0, 0, 0])])
def test_decode_of_fewer_keys_than_ranks_and_of_none(four, keys, lengths):
    """Sequences that are empty, and ranks that hold no key, or none that is used."""
    problem = {"batch": 3, "rows": 1, "keys": keys}
    seen = (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None, None]
    assert_decoded(four, reference(*inputs(**problem), seen), problem=problem, keys=parallel.contiguous(keys, 4), lengths=lengths)
    assert_decoded(four, reference(*inputs(**problem), seen_by(1, keys, causal=True)), problem=problem, keys=parallel.contiguous(keys, 4), causal=True)


@pytest.mark.parametrize("form", ["gpt_oss", "alibi", "gemma2", "sink"])
def test_decode_of_forms(two, form):
    args, meaning = forms(2, 61, 2)[form]
    problem = {"batch": 2, "rows": 2, "keys": 61}
    assert_decoded(two, reference(*inputs(**problem), **meaning), problem=problem, keys=parallel.contiguous(61, 2), form=form, form_args=args)


# In the place of PyTorch's context_parallel.

def in_context(rank, ranks, *, rows, causal, scheme, shape):
    mesh = mesh_of(*shape)
    q, k, v = (t.transpose(1, 2).contiguous() for t in inputs(rows=rows))
    kept = v.clone()
    with parallel.context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2], no_restore_buffers={q}, scheme=scheme) as split:
        assert q.shape[2] == split.size(rank) and v.shape[2] == split.size(rank)
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        whole = parallel.unshard(o, split, dim=2)
        with pytest.raises(fagen.Unsupported, match="attn_mask"):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, torch.ones(1, 1, dtype=torch.bool), enable_gqa=True)
    assert torch.equal(v, kept) and q.shape[2] == split.size(rank)
    return whole.transpose(1, 2)


@pytest.mark.parametrize("scheme, shape", [("ring", (4,)), ("ulysses", (4,)), (None, (2, 2))])
def test_context_parallel(four, scheme, shape):
    for causal in (False, True):
        wanted, _ = reference(*inputs(rows=51), seen_by(51, 51, causal=causal))
        for o in four.call(in_context, rows=51, causal=causal, scheme=scheme, shape=shape):
            torch.testing.assert_close(o.double(), wanted, atol=2e-5, rtol=2e-5)


# Random problems: as many as take some seconds; FAGEN_PARALLEL_SEEDS=FIRST:FIRST+COUNT takes others (scripts/long parallel).

def seeds():
    first, _, count = os.environ.get("FAGEN_PARALLEL_SEEDS", "0:0+12").partition(":")
    return range(int(first), int(first) + int(count.rpartition("+")[2]))


@pytest.mark.parametrize("seed", seeds())
def test_random(four, seed):
    """Splits, sizes, masks, schemes and meshes together."""
    draw = random.Random(seed)
    rows, batch, kv_heads = draw.randint(1, 90), draw.randint(1, 3), draw.choice([1, 2, 4])
    scheme, mesh = draw.choice([("ring", None), ("ulysses", None), ("mixed", (2, 2)), ("mixed", (4, 1)), ("mixed", (1, 4))])
    problem = {"batch": batch, "rows": rows, "heads": kv_heads * draw.choice([n for n in (1, 2, 3, 4) if kv_heads * n >= 4]), "kv_heads": kv_heads,
               "head_dim": draw.choice([8, 20, 32]), "seed": seed}
    mask = {"causal": draw.random() < 0.5}
    if draw.random() < 0.5:
        mask["window"] = (draw.choice([-1, 0, 3, 17]), draw.choice([-1, 0, 5]))
    if draw.random() < 0.4:
        made = torch.Generator().manual_seed(seed)
        mask["documents"] = torch.randint(0, 6, (draw.choice([1, batch]), rows), generator=made).sort().values
    ring, exchange = mesh or ((4, 1) if scheme == "ring" else (1, 4))
    split = draw.choice([parallel.zigzag, parallel.contiguous, functools.partial(parallel.balanced, **mask, batch=batch, granule=7)])(rows, ring).divide(exchange)
    compare(four, reference(*inputs(**problem), seen_by(rows, rows, **mask)), problem=problem, split=split, scheme=scheme, mesh=mesh, repeat=True,
            chunks=draw.randint(1, 4), **mask)
