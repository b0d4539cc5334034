# fagen: packed queries over pages, as engines call them, against float64; by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import pytest
import torch

import fagen
import fagen.torch
from fagen import _paged, _torch_programs, serving
from emulated_programs import emulate
from paged_batches import MOST, assert_right, drawn, expected, of_one
from torch_emulated import LIBRARY

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    fagen.stats(reset=True)
    yield
    _torch_programs.set_emulator(None)


def planned(batch, rows, **options):
    return serving.plan(batch.starts, batch.lengths, batch.table, page_size=batch.k_cache.shape[1], tokens=len(batch.q), most_rows=max(rows), **options)


MIXED = ([1, 20, 0, 1, 37, 5], [70, 20, 9, 1, 90, 133])  # decodes, whole prompts, none, and a prompt's second chunk


@pytest.mark.parametrize("page, heads_first", [(1, False), (8, True), (16, False)])
@pytest.mark.parametrize("causal", [True, False])
def test_mixed_batches_in_one_launch(page, heads_first, causal):
    batch = drawn(*MIXED, page, heads_first=heads_first)
    got = planned(batch, MIXED[0], causal=causal).run(batch.q, batch.k_cache, batch.v_cache, return_lse=True)
    assert_right(got, expected(batch, causal=causal))
    assert fagen.stats()["computed"] == {"serving": 1} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("causal", [True, False])
def test_many_rows_over_copied_keys(causal):
    batch = drawn(*MIXED, dtype=torch.bfloat16, dim=128)
    for most in (sum(MIXED[1]), sum(MIXED[1]) + 50):
        plan = planned(batch, MIXED[0], causal=causal, most_keys=most)
        assert "over copies of the keys" in repr(plan)
        assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache, return_lse=True, scale=0.1), expected(batch, causal=causal, scale=0.1))


@pytest.mark.parametrize("rows", [[20, 3], [30, 1], [1, 1]])
@pytest.mark.parametrize("causal", [True, False])
def test_lengths_beyond_the_table_count_as_what_it_holds(rows, causal):
    """Over pages, over copies, and where each sequence has as many rows: the results of the lengths that the table has."""
    batch = drawn(rows, [40, 32], columns=5)
    table = torch.where((batch.table < 0) | (batch.table >= len(batch.k_cache)), 0, batch.table)  # all columns lead somewhere
    whole = [[cache[table[b].long()].flatten(0, 1).nan_to_num() for b in range(2)] for cache in batch[1:3]]
    wanted = expected(batch._replace(keys=whole[0], values=whole[1]), causal=causal)
    caches = [cache.nan_to_num() for cache in batch[1:3]]
    for lengths in ([40, 40], [41, 1000], [MOST, 47]):
        plans = [serving.plan(batch.starts, torch.tensor(lengths), table, page_size=8, tokens=len(batch.q), most_rows=max(rows), causal=causal, most_keys=most)
                 for most in (None, 80)]
        if max(rows) == 1:
            plans.append(serving.plan(None, torch.tensor(lengths), table, page_size=8, tokens=2, most_rows=1, causal=causal))
        for plan in plans:
            assert_right(plan.run(batch.q, *caches, return_lse=True), wanted)


def test_what_a_graph_alone_would_fill_is_not_kept(monkeypatch):
    """A plan made before, whose copies no kernel takes: groups of rows that are made in a graph hold nothing until it runs."""
    batch = drawn([20, 3], [40, 30], dim=96)
    plan = planned(batch, [20], most_keys=70)
    with monkeypatch.context() as patched:
        patched.setattr(serving, "_is_captured", lambda _: True)
        with pytest.raises(fagen.Unsupported, match="would be made in the graph that is being captured; run the layer once before, or make the plan without most_keys"):
            plan.run(batch.q, batch.k_cache, batch.v_cache)
        made_there = planned(batch, [20], most_keys=70)  # the graph fills all of it
        assert_right(made_there.run(batch.q, batch.k_cache, batch.v_cache), (expected(batch)[0], None))
    assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache), (expected(batch)[0], None))
    monkeypatch.setattr(serving, "_is_captured", lambda _: True)
    assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache), (expected(batch)[0], None))


def test_packed_keys_are_refused_before_anything_is_read(monkeypatch):
    """fallback="error" waits for nothing."""
    batch = drawn([20, 3], [40, 30])
    def refuse(*_):
        raise AssertionError("a tensor is read by the host")
    with monkeypatch.context() as patched:
        for name in ("tolist", "item", "__bool__", "__int__", "__float__", "__index__"):
            patched.setattr(torch.Tensor, name, refuse)
        with pytest.raises(fagen.Unsupported, match="softcap"):
            serving.packed(batch.q, torch.cat(batch.keys), torch.cat(batch.values), batch.starts, torch.tensor([0, 40, 70]), softcap=5.0, alibi_slopes=torch.ones(4))


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_as_many_rows_each(rows):
    batch = drawn([rows] * 3, [70, 16, 131])
    plan = serving.plan(None, batch.lengths, batch.table, page_size=8, tokens=3 * rows, most_rows=rows)
    out = torch.empty_like(batch.q)
    o, lse = plan.run(batch.q, batch.k_cache, batch.v_cache, out=out, return_lse=True)
    assert o is out
    assert_right((o, lse), expected(batch))


@pytest.mark.parametrize("rows, lengths", [([1, 9, 3], [150, 40, 3]), ([30, 2], [100, 60])])
def test_windows(rows, lengths):
    batch = drawn(rows, lengths)
    got = planned(batch, rows).run(batch.q, batch.k_cache, batch.v_cache, window_left=20, return_lse=True)
    assert_right(got, expected(batch, window_left=20))
    without = planned(batch, rows, causal=False)
    assert_right(without.run(batch.q, batch.k_cache, batch.v_cache, window_left=20, return_lse=True), expected(batch, causal=False, window_left=20))
    with pytest.raises(fagen.Unsupported, match="alibi_slopes are given, without a causal mask, and sequences have up to 30 rows"):
        planned(batch, [30], causal=False).run(batch.q, batch.k_cache, batch.v_cache, fallback="torch", alibi_slopes=torch.ones(batch.q.shape[1]))


def test_rows_that_no_sequence_has():
    batch = drawn([3, 18], [40, 30])
    q = torch.cat([torch.full_like(batch.q[:4], torch.nan), batch.q, torch.full_like(batch.q[:2], torch.nan)])
    plan = serving.plan(batch.starts + 4, batch.lengths, batch.table, page_size=8, tokens=len(q), most_rows=18)
    o, lse = plan.run(q, batch.k_cache, batch.v_cache, return_lse=True)
    assert_right((o[4:-2], lse[4:-2]), expected(batch))
    assert not o[:4].any() and not o[-2:].any() and (lse[:4] == -torch.inf).all() and (lse[-2:] == -torch.inf).all()


def test_softcap_is_computed_otherwise_where_it_may_be():
    batch = drawn([1, 5], [40, 30])
    with pytest.raises(fagen.Unsupported, match="softcap"):
        planned(batch, [5]).run(batch.q, batch.k_cache, batch.v_cache, softcap=5.0)
    assert_right(planned(batch, [5]).run(batch.q, batch.k_cache, batch.v_cache, softcap=5.0, fallback="torch"), expected(batch, softcap=5.0))


@pytest.mark.parametrize("most_keys", [None, 200])
@pytest.mark.parametrize("starts, lengths", [([0, 30, 10, 43], [40, -5, MOST]), ([-3, MOST, MOST, 5], [40, 9, 20]), ([MOST, 0, 0, 0], [1, 2, 3])])
def test_nothing_that_tensors_hold_leads_outside(starts, lengths, most_keys):
    """The emulator reports what is out of bounds. Offsets count as the largest before them."""
    batch = drawn([20, 20, 3], [40, 30, 20])
    caches = [cache.nan_to_num() for cache in (batch.k_cache, batch.v_cache)]
    hostile = torch.tensor([[-1, MOST, -MOST - 1, len(caches[0]), 0]] * 3, dtype=torch.int32)
    plan = serving.plan(torch.tensor(starts), torch.tensor(lengths), hostile, page_size=8, tokens=43, most_rows=20, most_keys=most_keys)
    o = plan.run(batch.q, *caches)
    held = torch.tensor(starts).clamp(0, 43).cummax(0).values.tolist()
    keys = [cache[hostile[0].clamp(0, len(cache) - 1).long()].flatten(0, 1) for cache in caches]
    for begin, end, n in zip(held, held[1:], lengths):
        n = max(0, min(n, 40))
        wanted, _ = of_one(batch.q[begin:end], keys[0][:n], keys[1][:n])
        if end - begin <= 20:  # more rows than most_rows are not promised
            assert_right(o[begin:end], (wanted, None))


def test_head_dims_without_a_kernel_of_packed_keys_go_over_pages():
    batch = drawn([20, 3], [40, 30], dim=96)
    plan = planned(batch, [20], most_keys=70)
    for _ in range(2):
        assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache, return_lse=True), expected(batch))
    assert fagen.stats()["computed"] == {"serving": 2} and not fagen.stats()["fallbacks"]


def test_packed_keys():
    batch = drawn([20, 3], [40, 30])
    got = serving.packed(batch.q, torch.cat(batch.keys), torch.cat(batch.values), batch.starts, torch.tensor([0, 40, 70]), return_lse=True)
    assert_right(got, expected(batch))


def test_new_keys():
    k_cache, v_cache = torch.zeros(4, 8, 2, 64).half(), torch.zeros(4, 2, 8, 64).half().transpose(1, 2)
    k, v = torch.randn(6, 2, 64).half(), torch.randn(6, 2, 64).half()
    slots = torch.tensor([9, -1, 31, 32, MOST])  # the last key has no slot
    serving.append(k, v, k_cache, v_cache, slots)
    wanted = torch.zeros(32, 2, 64).half()
    wanted[9], wanted[31] = k[0], k[2]
    assert torch.equal(k_cache.flatten(0, 1), wanted) and torch.equal(v_cache[1, 1], v[0])
    serving.append(k[:2], v[:2], k_cache, v_cache, torch.tensor([-1, 40]))
    assert torch.equal(k_cache.flatten(0, 1), wanted)
    for given, words in (((k[:4], v, k_cache, v_cache), "append: k is .4, 2, 64., its cache .4, 8, 2, 64., of 5 slots"),
                         ((k[:, :1], v, k_cache, v_cache), "append: k is .6, 1, 64."), ((k, v, k_cache, v_cache[:2]), "append: v is .6, 2, 64., its cache .2, 8")):
        with pytest.raises(fagen.Error, match=words):
            serving.append(*given, slots)


def test_results_over_parts_are_merged():
    batch = drawn([1, 1], [60, 8])
    lengths, table = torch.tensor([[16, 8], [44, 0]]), [batch.table, batch.table[:, 2:]]
    parts = [serving.plan(None, n.contiguous(), t, page_size=8, tokens=2, most_rows=1, causal=False).run(batch.q, batch.k_cache, batch.v_cache, return_lse=True)
             for n, t in zip(lengths, table)]
    assert_right(serving.merge(*(torch.stack(one) for one in zip(*parts))), expected(batch))
    o, lse = serving.merge(torch.full((2, 1, 4), torch.nan), torch.full((2, 1), -torch.inf))
    assert not o.any() and (lse == -torch.inf).all()


def bits(batch, rows, **options):
    o, lse = planned(batch, rows, invariant=True, **options).run(batch.q, batch.k_cache, batch.v_cache, return_lse=True)
    return o, lse


@pytest.mark.parametrize("dim", [64, 256])
def test_bits_depend_on_a_row_and_its_keys_alone(monkeypatch, dim):
    """Alone, in other batches, chunks, pages and tables: the same. The sequence has parts of 512, 512 and 76 keys. Without invariant=True
    as many CTAs share keys as fill 132 multiprocessors, and bits differ."""
    monkeypatch.setattr(_paged, "_sms_of", lambda _: 132)
    whole = drawn([40], [1100], 16, dim=dim, heads=2, kv_heads=1)
    o, lse = bits(whole, [40])
    assert_right((o, lse), expected(whole))
    for n in (1061, 1077, 1100):  # decoding: the row of each length, next to others
        at = n - 1061
        others = drawn([1, 7], [30, 600], 16, dim=dim, heads=2, kv_heads=1, seed=5)
        pools = [torch.cat([a, b]) for a, b in zip(whole[1:3], others[1:3])]
        table = torch.cat([torch.nn.functional.pad(others.table + len(whole.k_cache), (0, whole.table.shape[1] - others.table.shape[1] + 9)),
                           torch.nn.functional.pad(whole.table, (0, 9))])
        plan = serving.plan(torch.tensor([0, 1, 8, 9]), torch.tensor([30, 600, n]), table, page_size=16, tokens=9, most_rows=7, invariant=True)
        got = plan.run(torch.cat([others.q, whole.q[at:at + 1]]), *pools, return_lse=True)
        assert torch.equal(got[0][8], o[at]) and torch.equal(got[1][8], lse[at])
    chunks = drawn([40], [1100], 5, dim=dim, heads=2, kv_heads=1)  # pages of another size, and the same rows
    chunks = chunks._replace(q=whole.q)
    for pool, one in zip(chunks[1:3], (whole.keys, whole.values)):
        pool[chunks.table[0, :220].long()] = one[0].unflatten(0, (220, 5))
    for begin, end in ((0, 23), (23, 40)):
        plan = serving.plan(torch.tensor([0, end - begin]), torch.tensor([1060 + end]), chunks.table, page_size=5, tokens=end - begin,
                            most_rows=end - begin, invariant=True)
        got = plan.run(chunks.q[begin:end], *chunks[1:3], return_lse=True)
        assert torch.equal(got[0], o[begin:end]) and torch.equal(got[1], lse[begin:end])


def test_plans_that_graphs_captured_are_rewritten():
    one, other = drawn([3, 20], [40, 30], columns=8), drawn([3, 20], [9, 60], columns=8, seed=7)
    plan = planned(one, [20])
    held, = plan._ways.values()
    plan.rewrite(planned(other, [20]))
    assert list(plan._ways.values()) == [held]
    assert_right(plan.run(other.q, other.k_cache, other.v_cache), expected(other))
    with pytest.raises(fagen.Error, match="differs in its shapes"):
        plan.rewrite(planned(one, [3]))


@pytest.mark.parametrize("change, words", [
    ({"query_starts": [0, 9, 4, 43]}, r"query_starts\[2\] is 4, less than query_starts\[1\], 9"),
    ({"query_starts": [0, 9, 12, 44]}, r"query_starts\[3\] is 44; there are 43 rows"),
    ({"query_starts": [-1, 9, 12, 13]}, r"query_starts\[0\] is -1; there are 43 rows"),
    ({"lengths": [40, -1, 20]}, r"lengths\[1\] is -1; a row of the table, 6 pages of 8 keys, has 48"),
    ({"lengths": [40, 49, 20]}, r"lengths\[1\] is 49; a row of the table"),
    ({"table": (1, 3, 99)}, r"table\[1, 3\] is 99; there are 14 pages, and sequence 1 uses this entry: it has 30 keys, 8 a page"),
    ({"table": (1, 3, -1)}, r"table\[1, 3\] is -1"),
])
def test_a_checking_call_names_the_wrong_entry(change, words):
    batch = drawn([20, 20, 3], [40, 30, 20])
    given = {"query_starts": batch.starts, "lengths": batch.lengths, "table": batch.table}
    serving.check(**given, page_size=8, tokens=43, pages=14)
    for name, value in change.items():
        given[name] = torch.tensor(value) if name != "table" else given[name].clone()
        if name == "table":
            given[name][value[:2]] = value[2]
    with pytest.raises(fagen.Error, match=words):
        serving.check(**given, page_size=8, tokens=43, pages=14)


def test_checks_where_they_are_asked_for(monkeypatch):
    monkeypatch.setattr(fagen.torch, "_checks", True)
    batch = drawn([1], [40])
    with pytest.raises(fagen.Error, match=r"lengths\[0\] is 49"):
        serving.plan(None, torch.tensor([49]), batch.table, page_size=8, tokens=1, most_rows=1)
    with pytest.raises(fagen.Error, match=r"slots\[2\] and slots\[0\] are both 9"):
        serving.append(*batch.q.new_zeros(2, 3, 2, 64), batch.k_cache, batch.v_cache, torch.tensor([9, -1, 9]))
    with pytest.raises(fagen.Error, match=r"slots\[0\] is 999; the cache has 56 rows"):
        serving.append(*batch.q.new_zeros(2, 1, 2, 64), batch.k_cache, batch.v_cache, torch.tensor([999]))


def test_checks_of_what_a_plan_was_told(monkeypatch):
    batch = drawn([20, 3], [40, 30])
    given = {"query_starts": batch.starts, "lengths": batch.lengths, "table": batch.table, "page_size": 8}
    for told, words in (({"most_keys": 69}, "lengths are 70 keys together; most_keys is 69, and those beyond it would be left out"),
                        ({"most_rows": 19}, r"query_starts\[1\] - query_starts\[0\] is 20; most_rows is 19")):
        with pytest.raises(fagen.Error, match=words):
            serving.check(**given, tokens=23, **told)
    serving.check(**given, tokens=23, most_keys=70, most_rows=20)
    monkeypatch.setattr(fagen.torch, "_checks", True)
    serving.plan(**given, tokens=23, most_keys=70, most_rows=20)
    with pytest.raises(fagen.Error, match="lengths are 70 keys together; most_keys is 69"):
        serving.plan(**given, tokens=23, most_keys=69, most_rows=20)
    with pytest.raises(fagen.Error, match="is 20; most_rows is 17"):
        serving.plan(**given, tokens=23, most_rows=17)


@pytest.mark.parametrize("change, words", [
    ({"query_starts": None, "tokens": 3, "most_rows": 2}, "most_rows is 2; without query_starts each of 1 sequences has 3 rows of 3"),
    ({"page_size": 0}, "page_size is 0; it is a whole number, 1 or more"),
    ({"lengths": torch.tensor([1.0])}, "lengths is .*; it is a tensor of int32 or int64"),
    ({"query_starts": torch.tensor([0, 1, 2])}, r"query_starts has shape \[3\]; it is \[2\]"),
    ({"table": torch.tensor([1])}, r"table has shape \[1\]; it is \[1, any\]"),
    ({"query_starts": None, "tokens": 17}, "tokens is 17 of 1 sequences without query_starts"),
    ({"lengths": torch.tensor([], dtype=torch.int32)}, "lengths is empty"),
])
def test_mistakes(change, words):
    given = {"query_starts": torch.tensor([0, 1]), "lengths": torch.tensor([5]), "table": torch.tensor([[0]]), "page_size": 8, "tokens": 1, "most_rows": 1}
    with pytest.raises(fagen.Error, match=words):
        serving.plan(**{**given, **change})


def test_mistakes_of_a_run():
    batch = drawn([1, 5], [40, 30])
    plan = planned(batch, [5])
    for q, k, words in ((batch.q[:4], batch.k_cache, "q has 4 rows; the plan is of 6"), (batch.q[None], batch.k_cache, r"q is .*; it is a tensor \[tokens"),
                        (batch.q, batch.k_cache[:, :4], "k_cache has pages of 4 keys; the plan is of 8")):
        with pytest.raises(fagen.Error, match=words):
            plan.run(q, k, batch.v_cache)
    for options, words in (({"out": batch.q.float()}, "out is .*; it is torch.float16"), ({"out": batch.q[:5]}, "out is"), ({"window_left": None}, "window_left is None")):
        with pytest.raises(fagen.Error, match=words):
            plan.run(batch.q, batch.k_cache, batch.v_cache, **options)
    with pytest.raises(fagen.Error, match="v_cache has"):
        plan.run(batch.q, batch.k_cache, batch.v_cache[:2])


def test_pages_are_looked_at_where_that_is_asked_for(monkeypatch):
    batch = drawn([1, 5], [40, 30])
    plan = planned(batch, [5])
    monkeypatch.setattr(fagen.torch, "_checks", True)
    plan.run(batch.q, batch.k_cache, batch.v_cache)
    with pytest.raises(fagen.Error, match=r"run: table\[\d, \d\] is .*; there are 2 pages"):
        plan.run(batch.q, batch.k_cache[:2], batch.v_cache[:2])


@pytest.mark.parametrize("rows, keys, causal, layout", [(1, 700, True, "bshd"), (40, 600, True, "bhsd"), (17, 90, False, "bshd")])
def test_attention_whose_bits_depend_on_a_row_alone(rows, keys, causal, layout):
    batch = drawn([rows], [keys], heads=4, kv_heads=2)
    tensors = [torch.stack([t, t.flip(0)]) for t in (batch.q, batch.keys[0], batch.values[0])]
    given = [t.transpose(1, 2) for t in tensors] if layout == "bhsd" else tensors
    o, lse = fagen.attention(*given, causal=causal, layout=layout, return_lse=True, invariant=True)
    o = o.transpose(1, 2) if layout == "bhsd" else o
    for i in range(2):
        assert_right((o[i], lse[i].t()), of_one(*(t[i] for t in tensors), causal=causal))
    if causal:
        alone = fagen.attention(*(t[:1, -1:] if n == 0 else t[:1] for n, t in enumerate(tensors)), causal=True, invariant=True)
        assert torch.equal(alone[0, 0], o[0, -1])


@pytest.mark.parametrize("options, words", [
    ({"form": "window", "window": 5}, "form is given with invariant=True"), ({"kernels": 3}, "kernels is given with invariant=True"),
    ({"scale": 0.0}, "scale is 0, and programs take another; with invariant=True nothing else computes it"),
])
def test_what_no_kernel_computes_by_rows_alone(options, words):
    q = torch.randn(1, 3, 2, 64).half()
    with pytest.raises(fagen.Unsupported, match=words):
        fagen.attention(q, q, q, invariant=True, fallback="torch", **options)
    with pytest.raises(fagen.Unsupported, match="no gradient"):
        fagen.attention(q.clone().requires_grad_(), q, q, invariant=True)


def test_forward_mode_is_refused_or_right():
    """Kernels have no tangents: they are not dropped. Over pages, over copies, of packed keys, and by the programs themselves."""
    batch = drawn([20, 3], [40, 30])
    keys, values, ends = torch.cat(batch.keys), torch.cat(batch.values), torch.tensor([0, 40, 70])
    calls = [lambda q, plan=planned(batch, [20], **options), **how: plan.run(q, batch.k_cache, batch.v_cache, **how) for options in ({}, {"most_keys": 70})]
    calls.append(lambda q, **how: serving.packed(q, keys, values, batch.starts, ends, **how))
    for call in calls:
        for how in ({}, {"fallback": "error"}):
            with pytest.raises(fagen.Unsupported, match="forward-mode differentiation"):
                torch.func.jvp(lambda q: call(q, **how), (batch.q,), (batch.q,))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(fagen.Error, match="k has a tangent of forward-mode differentiation, and programs have none"):
        _paged._known[torch.float16, 64](k=torch.autograd.forward_ad.make_dual(batch.k_cache, batch.k_cache))


def test_numbers_of_numpy():
    import numpy as np
    batch = drawn([1, 5], [40, 30])
    plan = serving.plan(batch.starts, batch.lengths, batch.table, page_size=np.int64(8), tokens=np.int32(6), most_rows=np.int64(5))
    assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache, window_left=np.int64(20), scale=np.float32(0.125)), (expected(batch, window_left=20)[0], None))


def test_what_is_no_tensor():
    batch = drawn([1, 5], [40, 30])
    with pytest.raises(fagen.Error, match="append: k is None, its cache a tensor"):
        serving.append(None, batch.q, batch.k_cache, batch.v_cache, torch.tensor([0]))
    for given, words in (([1, 2], "merge: outputs is "), ((torch.ones(2, 3, 4), None), "merge: sums is None"), ((torch.ones(2, 3, 4), torch.ones(3, 3)), r"merge: sums is .* \[3, 3\]")):
        with pytest.raises(fagen.Error, match=words):
            serving.merge(*given)
    for options, words in (({"alibi_slopes": "x"}, "alibi_slopes is 'x'; it is a tensor"), ({"out": torch.zeros_like(batch.q).requires_grad_()}, "out wants a gradient")):
        with pytest.raises(fagen.Error, match=words):
            planned(batch, [5]).run(batch.q, batch.k_cache, batch.v_cache, **options)
