# fagen: fagen.parallel without processes: splits, bounds, schedules, forms with places, balance, the cost model and its command.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import random
import subprocess
import sys

import pytest
import torch

import fagen
from fagen import _forms, _forms_by_torch, parallel
from fagen.parallel import _balance, _bounds, _cost, _cost_back, _heads, _mask, _merge, _merge_gpu, _pieces, _placed, _plan, _schedule
from test_parallel import forms, inputs, reference
from torch_emulated import emulating, use_emulator


def random_split(draw, length, ranks):
    if draw.random() < 0.4:
        return draw.choice([parallel.zigzag, parallel.contiguous])(length, ranks)
    edges = sorted([0, length, *(draw.randint(0, length) for _ in range(3 * ranks))])
    held = [[] for _ in range(ranks)]
    for a, b in zip(edges, edges[1:]):
        if a < b:
            draw.choice(held).append((a, b))
    return parallel.Split(length, held)


def random_bounds(draw, rows, keys):
    if rows <= keys and draw.random() < 0.4:
        made = torch.Generator().manual_seed(draw.randint(0, 1 << 30))
        ids = torch.randint(0, 5, (draw.randint(1, 2), keys), generator=made).sort().values
        return _bounds.of_documents(ids, rows, draw.random() < 0.5)
    left, right = (draw.choice([None, draw.randint(0, 9)]) for _ in range(2))
    return _bounds.of_window(rows, keys, left, right)


def mask_of(piece):
    """bool [rows, keys] that the kernel's mask leaves."""
    rows, keys = piece.rows[1] - piece.rows[0], piece.keys[1] - piece.keys[0]
    key, place = torch.arange(keys)[None], torch.arange(rows)[:, None] + keys - rows
    if piece.kind == "rows":
        return (key >= piece.first[:, None]) & (key <= piece.last[:, None])
    left, right = {"none": (keys + rows, keys + rows), "causal": (keys + rows, 0)}.get(piece.kind, (piece.left, piece.right))
    return (key >= place - left) & (key <= place + right)


@pytest.mark.parametrize("seed", range(60))
def test_pieces_are_the_mask(seed):
    """Each product of a row and a key is computed once, by one rank, whose keys come from where they are held; rows that are merged are
    counted right."""
    draw = random.Random(seed)
    rows, ranks = draw.choice([1, 7, 16, 33, 64, 100]), draw.choice([1, 2, 3, 4, 8])
    keys = draw.choice([rows, rows, 1, rows + 3, max(1, rows - 5)])
    bounds, split, held = random_bounds(draw, rows, keys), random_split(draw, rows, ranks), random_split(draw, keys, ranks)
    assert bounds.exact
    key = torch.arange(keys)
    wanted = (key >= bounds.first[..., None]) & (key <= bounds.last[..., None])
    computed = torch.zeros(len(wanted), rows, keys, dtype=torch.int64)
    made = [_schedule.schedule(bounds, split, held, rank, True) for rank in range(ranks)]
    for rank, of_rank in enumerate(made):
        own, parts = split.places(rank), {}
        for number, step in enumerate(of_rank.steps):
            sender = made[step.source].steps[number]
            assert number == 0 or (sender.target == rank and sender.sends == step.receives)
            theirs = held.places(step.source)
            for part in step.parts:
                piece = part.piece
                assert number == 0 or (step.receives[0] <= piece.keys[0] and piece.keys[1] <= step.receives[1])
                mask = mask_of(piece)
                assert piece.pairs() == int(mask.sum())
                batches = range(len(wanted)) if piece.batch is None else [piece.batch]
                for batch in batches:
                    computed[batch][own[slice(*piece.rows)][:, None], theirs[slice(*piece.keys)][None]] += mask.long()
                    for run in part.runs:
                        for row in range(*run.rows):
                            had = parts.setdefault((batch, row), [])
                            assert run.source == ("new", "out", "sums")[min(2, len(had))] and not any(had)
                            had.append(run.is_last)
        assert all(had[-1] for had in parts.values())
        without = {(batch, row) for batch, begin, end in of_rank.empty for row in range(begin, end)}
        every = {(batch, row) for batch in range(len(wanted)) for row in range(len(own))}
        seen = set(parts)
        assert every - seen == {(b, row) for batch, row in without for b in (range(len(wanted)) if batch is None else [batch])}
    assert torch.equal(computed, wanted.long())


@pytest.mark.parametrize("form", sorted(forms(8, 8, 1)))
@pytest.mark.parametrize("rows, keys", [(30, 45), (50, 50), (50, 20)])
def test_bounds_of_forms(form, rows, keys):
    """No row sees a key outside; where bounds are exact, a row sees all inside."""
    if form in ("documents", "same_document", "used") and rows > keys:
        pytest.skip("a document for each place of a row")
    args, meaning = forms(rows, keys, 2)[form]
    program = _forms_by_torch.find(fagen.ready()._directories, form, tuple(args))
    bounds = _bounds.of_form(program, args, {"batch": 2, "heads": 4, "kv_heads": 2, "seq_q": rows, "seq_kv": keys})
    key = torch.arange(keys)
    inside = ((key >= bounds.first[..., None]) & (key <= bounds.last[..., None]))[:, None]
    seen = meaning["seen"].expand(2, 4, rows, keys)
    assert not bool((seen & ~inside).any())
    assert not bounds.exact or torch.equal(seen, inside.expand_as(seen))
    if form in ("window", "local", "gemma2", "prefix", "rows", "documents", "same_document", "chunked", "used"):
        assert bounds.exact


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_texts_of_forms_with_places_compile(target):
    """All of the package, with and without their sinks, but those whose numbers leave 32 bits (they are bounds alone), and those that scale V: its
    number is one for all of a K/V head, and heads begin anywhere. Kernels of these are Unsupported."""
    ready = fagen.ready()
    for name, params in _forms.forms_of(tuple(ready._tables)):
        if name in ("local", "used"):
            continue
        for with_sink in (False, True):
            form = _placed.placed(tuple(ready._directories), tuple(ready._tables), name, tuple(p.name for p in params), with_sink)
            if form.form.v_scale:
                with pytest.raises(fagen.Unsupported):
                    _placed.kernels(form, "bf16", 128, 90 if target == "sm_90a" else 80)
                continue
            fagen.compile(_placed.spec_of(form, "bf16", 128, target))


@pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
@pytest.mark.parametrize("form", ["alibi", "gpt_oss", "same_document", "bias", "dilated"])
def test_kernels_of_forms_with_places(form):
    """A kernel computes some rows, keys and heads of the whole as the form says of the whole."""
    ready, rows, keys = fagen.ready(), 50, 60
    args, meaning = forms(rows, keys, 1)[form]
    placed = _placed.placed(tuple(ready._directories), tuple(ready._tables), form, tuple(args), False)
    q, k, v = inputs(1, rows, keys, 4, 2, 64, torch.float16)
    piece = _pieces.Piece((0, 30), (0, 40), "placed", row0=15, key0=8)
    given = placed.args(args, piece, {"batch": 1, "heads": 4, "kv_heads": 2, "seq_q": rows, "seq_kv": keys}, 2)
    kernels = fagen.compile(_placed.spec_of(placed, "f16", 64, "sm_80"))
    with emulating(kernels._directories[0]):
        o, lse = kernels(q[:, 15:45, 2:], k[:, 8:48, 1:], v[:, 8:48, 1:], form="placed", form_args=given, return_lse=True)
    outside = torch.ones(rows, keys, dtype=torch.bool)
    outside[:, 8:48] = False
    wanted = reference(q, k, v, meaning["seen"] & ~outside, score=meaning.get("score"))
    torch.testing.assert_close(o.double(), wanted[0][:, 15:45, 2:], atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(lse.double(), wanted[1][:, 2:, 15:45], atol=2e-3, rtol=2e-3)


def test_merges():
    """Of parts with keys, without, and with scores beyond what exp() takes."""
    draw = torch.Generator().manual_seed(0)
    o, part = (torch.randn((2, 5, 3, 8), generator=draw) for _ in range(2))
    sums, part_sums = (torch.randn((2, 3, 5), generator=draw) * 300 for _ in range(2))
    sums[0, 0, 0] = part_sums[0, 0, 0] = part_sums[0, 1, 1] = sums[1, 1, 1] = -torch.inf
    o[0, 0, 0] = part[0, 0, 0] = 0
    into, into_sums = torch.empty_like(o), torch.empty_like(sums)
    _merge.merge(into, into_sums, o, sums, part, part_sums)
    wanted = torch.logaddexp(sums.double(), part_sums.double())
    weights = [torch.exp(s.double() - wanted.masked_fill(wanted == -torch.inf, 0)).transpose(1, 2)[..., None] for s in (sums, part_sums)]
    torch.testing.assert_close(into.double(), o.double() * weights[0] + part.double() * weights[1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(into_sums.double(), wanted, atol=1e-4, rtol=1e-6)


def test_text_of_the_merge_has_its_types():
    text = _merge_gpu.source(torch.bfloat16, torch.float32, torch.float16)
    assert "#define INTO unsigned short" in text and "#define FROM float" in text and "cvt.rn.bf16.f32" in text and "cvt.f32.f16" in text


@pytest.mark.parametrize("wrong, said", [
    (lambda: parallel.Split(10, [[(0, 4)], [(5, 10)]]), "places 4 to 5 have no rank"),
    (lambda: parallel.Split(10, [[(0, 6)], [(5, 10)]]), "place 5 has two ranks"),
    (lambda: parallel.Split(10, [[(5, 10), (0, 5)]]), "do not ascend"),
    (lambda: parallel.Split(10, [[(0, 11)]]), "within 0 and 10"),
    (lambda: parallel.zigzag(10, 0), "ranks is 0; it is at least 1"),
    (lambda: parallel.zigzag(10.5, 2), "length is 10.5; it is an integer"),
    (lambda: parallel.zigzag(10, 2).shard(torch.zeros(1, 9), 0), "dimension 1 of the tensor is 9, and the split is of 10"),
    (lambda: _heads.shares(2, 2, 4), "2 heads for 4 ranks"),
    (lambda: parallel.attention(*inputs(), split=parallel.zigzag(64, 1)), "init_process_group")])
def test_refusals(wrong, said):
    with pytest.raises(fagen.Error, match=said):
        wrong()


def test_splits_go_there_and_back():
    for ranks in (1, 2, 3, 8):
        for length in (0, 1, 5, 64, 101):
            for split in (parallel.zigzag(length, ranks), parallel.contiguous(length, ranks), random_split(random.Random(length), length, ranks)):
                x = torch.arange(2 * length).view(2, length)
                assert torch.equal(split.join([split.shard(x, rank) for rank in range(ranks)]), x)
                assert split.divide(2).merge(2) == split


def test_balanced():
    """Documents of unequal lengths: within 3 % of even, and as many rows on each rank."""
    draw = random.Random(1)
    lengths = [int(draw.lognormvariate(7, 1.5)) + 1 for _ in range(100)]
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    length, ranks = int(offsets[-1]), 8
    mask = {"documents": offsets, "causal": True}
    work = _balance.work_of_rows(length, **mask)
    split = parallel.balanced(length, ranks, **mask)
    assert _balance.share_of(work, split) < 1.03 < _balance.share_of(work, parallel.zigzag(length, ranks))
    rows = [split.size(rank) for rank in range(ranks)]
    assert max(rows) - min(rows) <= 2 * max(128, length // (16 * ranks))
    assert parallel.balanced(4096, 4, causal=True) == parallel.zigzag(4096, 4)
    assert parallel.balanced(4096, 4) == parallel.contiguous(4096, 4)


def test_cost_model():
    """What it must say whatever its numbers are."""
    machine, problem = _cost.Machine(), _cost.Problem(131072, 32, 8)
    one = _cost.best(problem, machine, 1)[0]
    assert one.scheme == "one GPU" and one.speedup == pytest.approx(1, abs=0.01)
    for ranks in (2, 8, 64, 4096):
        each = _cost.best(problem, machine, ranks)
        assert all(e.ranks == ranks and e.speedup <= ranks for e in each) and each == sorted(each, key=lambda e: e.total_ms)
    slow = _cost.Machine(network=1.0)
    assert _cost.best(problem, slow, 64)[0].total_ms > _cost.best(problem, machine, 64)[0].total_ms
    assert _cost.estimate(problem, machine, 8, 1).travel_ms > _cost.estimate(_cost.Problem(131072, 32, 8, window=1024), machine, 8, 1).travel_ms
    for ranks in (2, 8, 64, 4096):
        each = _cost.best(problem, machine, ranks, of=_cost_back.estimate)
        assert all(e.speedup <= ranks and e.mib > _cost.estimate(problem, machine, e.ring, e.exchange).mib for e in each)
        assert all(e.total_ms > 2.5 * _cost.estimate(problem, machine, e.ring, e.exchange).compute_ms for e in each)
    assert _cost_back.estimate(problem, slow, 8, 8).exposed_ms > _cost_back.estimate(problem, machine, 8, 8).exposed_ms
    pairs = sum(min(i + 1, 7) for i in range(20))
    assert _cost.Problem(20, 1, 1, window=7).pairs() == pairs and _cost.Problem(20, 1, 1).pairs() == 210


def test_keys_of_others():
    """Of documents that lie on one rank none come; of one document, all that are before a rank's last row."""
    of = lambda lengths: _balance.bounds_of(sum(lengths), documents=torch.tensor([0, *lengths]).cumsum(0), causal=True)  # noqa: E731
    assert _balance.keys_of_others(of([16, 16, 16, 16]), parallel.contiguous(64, 4)) == 0
    assert _balance.keys_of_others(of([64]), parallel.contiguous(64, 4)) == 3
    assert _balance.keys_of_others(of([64]), parallel.zigzag(64, 4)) == 3
    assert _balance.keys_of_others(of([32, 32]), parallel.zigzag(64, 4)) == pytest.approx((8 + 8 + 8) / 16)
    assert _balance.keys_of_others(of([1, 0, 2]), parallel.contiguous(3, 8)) > 0


def test_drawn_documents():
    found = _balance.drawn([5, 7, 100], 1000, 0)
    assert sum(found) == 1000 and set(found[:-1]) <= {5, 7, 100} and found == _balance.drawn([5, 7, 100], 1000, 0) != _balance.drawn([5, 7, 100], 1000, 1)


def command(*arguments, text=None):
    return subprocess.run([sys.executable, "-m", "fagen.parallel", *arguments], capture_output=True, text=True, input=text)


def test_command():
    done = command("plan", "--seq", "131072", "--heads", "32", "--kv-heads", "8", "--ranks", "2-16", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["ranks"] for one in json.loads(done.stdout)["estimates"]] == [2, 4, 8, 16]
    table = command("plan", "--seq", "131072", "--heads", "32", "--ranks", "8", "--all").stdout.splitlines()
    assert table[0].split()[:2] == ["ranks", "scheme"] and len(table) == 5
    found = json.loads(command("balance", "--documents", "-", "--ranks", "4", "--json", text="900 a.txt\n4000 b.txt\n70 c.txt\n").stdout)
    assert found["length"] == 4970 and found["splits"][0]["balanced"] <= found["splits"][0]["contiguous"]
    many = json.loads(command("balance", "--documents", "900,4000,70", "--tokens", "65536", "--ranks", "2-4096", "--json").stdout)
    assert many["length"] == 65536 and [one["ranks"] for one in many["splits"]] == [2 << i for i in range(12)]


@pytest.mark.parametrize("arguments, code, said", [
    (("plan", "--seq", "0", "--heads", "4"), 1, "'0' is no whole number of 1 or more"), (("plan", "--heads", "4"), 1, "--seq"),
    (("plan", "--seq", "9", "--heads", "4", "--kv-heads", "3"), 1, "3 K/V heads do not divide 4 heads"),
    (("plan", "--seq", "9", "--heads", "4", "--network", "nan"), 1, "'nan' is no number above 0"),
    (("balance", "--documents", "7,x"), 1, "'x'"), (("frobnicate",), 1, "invalid choice")])
def test_command_refuses(arguments, code, said):
    done = command(*arguments)
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr


def test_the_plan_command_needs_no_framework():
    code = "import sys; sys.modules['torch'] = None; import runpy; sys.argv = ['x', 'plan', '--seq', '4096', '--heads', '4']; runpy.run_module('fagen.parallel', run_name='__main__')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).returncode == 0


@pytest.mark.parametrize("documents, said", [
    ((torch.tensor([0, 4]),), "offsets of rows and offsets of keys"), ((torch.tensor([0, 4]), [0, 4]), "offsets of rows and offsets of keys"),
    ((torch.tensor([0, 4]), torch.tensor([0, 5])), r"documents\[1\] are offsets that do not ascend from 0 to the 6 keys"),
    ((torch.tensor([0, 3, 2, 4]), torch.tensor([0, 6])), r"documents\[0\] are offsets that do not ascend from 0 to the 4 rows"),
    ((torch.tensor([0, 2, 4]), torch.tensor([0, 6])), "2 sequences of rows and 1 of keys"), (torch.tensor([0.0, 6.0]), "a tensor of integers")])
def test_documents_are_offsets(documents, said):
    with pytest.raises(fagen.Error, match=said):
        _mask.Mask(4, 6, {"batch": 1}, False, None, documents, None, {}, None)


def test_o_is_float32_or_as_q():
    assert _plan._o_dtype_of(None, torch.half) == torch.half and _plan._o_dtype_of(torch.float32, torch.half) == torch.float32
    with pytest.raises(fagen.Error, match="o_dtype is torch.bfloat16; it is torch.float32, or the type of q, which is torch.float16"):
        _plan._o_dtype_of(torch.bfloat16, torch.half)


@pytest.mark.parametrize("window", [3, (1, 2, 3), (-5, 3), (1.5, 3), (True, 3), "all"])
def test_windows_are_two_whole_numbers(window):
    with pytest.raises(fagen.Error, match="window is .*; it is \\(left, right\\)"):
        _mask._window_of(window, False)


def test_ranks_of_a_split():
    with pytest.raises(fagen.Error, match="rank is 2; the split has ranks 0 to 1"):
        parallel.zigzag(8, 2).shard(torch.zeros(1, 8), 2)
