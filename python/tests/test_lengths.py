# fagen: packed sequences and caches whose lengths stand in tensors: one launch, values, and what leads nowhere.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math

import pytest
import torch

import fagen
import fagen.flash_attn as fa2
import fagen.flash_attn_interface as fa3
from fagen import _lengths, _lib
from torch_emulated import assert_near, emulating, tensors, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(fa2, "fallback", "torch")
    monkeypatch.setattr(fa3, "fallback", "torch")
    fagen.stats(reset=True)


@pytest.fixture(params=[("packed", 80), ("forms", 90)], ids=["mma_sync", "wgmma"])
def packed(request):
    with emulating(_lib.path("kernels", request.param[0]), request.param[1]):
        yield


@pytest.fixture
def lengths_of_caches():
    with emulating(_lib.path("kernels", "lengths"), 80):
        yield


def without_host(monkeypatch):
    """What waits for a GPU fails from here on."""
    def refuse(*_):
        raise AssertionError("a tensor is read by the host")
    for name in ("tolist", "item", "__bool__", "__int__", "__float__", "__index__"):
        monkeypatch.setattr(torch.Tensor, name, refuse)


def one(q, k, v, causal=False, window=(-1, -1)):
    """O and LSE in float64 of one sequence: q [rows, heads, head_dim]."""
    q, k, v = (t.double().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[0] // k.shape[0], 0) for t in (k, v))
    place, key = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1], torch.arange(k.shape[1])[None]
    left, right = (side if side >= 0 else 1 << 40 for side in window)
    seen = (key >= place - left) & (key <= place + (0 if causal else right))
    scores = (q @ k.transpose(1, 2) * q.shape[-1] ** -0.5).masked_fill(~seen, -math.inf)
    sums = torch.logsumexp(scores, -1) if k.shape[1] else torch.full(q.shape[:2], -math.inf).double()
    return (torch.exp(scores - sums.masked_fill(sums == -math.inf, 0)[..., None]) @ v).transpose(0, 1), sums


def of_each(q, k, v, rows, keys, **mask):
    """O [total, ..] and LSE [heads, total]: rows and keys are (begin, end) of each sequence; other rows are 0 and -inf."""
    o = torch.zeros((*q.shape[:2], v.shape[2]), dtype=torch.float64)
    sums = torch.full((q.shape[1], q.shape[0]), -math.inf, dtype=torch.float64)
    for (a, b), (c, d) in zip(rows, keys):
        o[a:b], sums[:, a:b] = one(q[a:b], k[c:d], v[c:d], **mask)
    return o, sums


def ends(starts, used=None):
    used = [b - a for a, b in zip(starts, starts[1:])] if used is None else used
    return [(a, a + n) for a, n in zip(starts, used)]


def draw(rows, keys, head_dim=64):
    q, k, v = tensors(seq_q=rows, seq_kv=keys, head_dim=head_dim)
    return q[0], k[0], v[0]


def assert_alike(got, wanted):
    assert_near(got[0], wanted[0])
    torch.testing.assert_close(got[1].double(), wanted[1], atol=2e-3, rtol=1e-3)


MASKS = [{}, {"causal": True}, {"window_size": (3, 2)}, {"causal": True, "window_size": (5, 0)}]
Q_STARTS, K_STARTS = [0, 3, 23, 23, 60], [0, 5, 25, 29, 150]


@pytest.mark.parametrize("options", MASKS)
def test_packed_sequences_in_one_launch(packed, options):
    q, k, v = draw(60, 150)
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, torch.tensor(Q_STARTS).int(), torch.tensor(K_STARTS).int(), 37, 121,
                                           return_attn_probs=True, **options)
    mask = {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}
    assert_alike((o, lse), of_each(q, k, v, ends(Q_STARTS), ends(K_STARTS), **mask))
    assert fagen.stats()["computed"] == {"flash_attn_varlen_func": 1} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_rows_that_nobody_uses(packed, kind):
    """After the last offset, before the first, and after what a sequence uses; what lies there may be NaN."""
    q, k, v = draw(70, 160)
    starts_q, starts_k, used_q, used_k = [2, 5, 25, 25, 62], [1, 6, 26, 30, 151], [2, 20, 0, 30], [5, 11, 4, 100]
    rows, keys = ends(starts_q, used_q), ends(starts_k, used_k)
    wanted = of_each(q, k, v, rows, keys, causal=True)
    for tensor, places in ((q, rows), (k, keys), (v, keys)):
        nobodys = torch.ones(len(tensor), dtype=torch.bool)
        for a, b in places:
            nobodys[a:b] = False
        tensor[nobodys] = math.nan
    o, lse = fa3.flash_attn_varlen_func(q, k, v, *(torch.tensor(s, dtype=kind) for s in (starts_q, starts_k)), 40, 130, causal=True,
                                        seqused_q=torch.tensor(used_q, dtype=kind), seqused_k=torch.tensor(used_k, dtype=kind),
                                        return_attn_probs=True)
    assert o.shape == (70, 4, 64) and lse.shape == (4, 70)
    assert_alike((o, lse), wanted)


HOSTILE = [([0, 10, 5, 20], [0, 10, 5, 20]), ([-7, 10, 99, 20], [5, 4, 3, 2]), ([0, 0, 0, 0], [0, 40, 40, 2 ** 31 - 1]),
           ([20, 10, 5, 0], [-(2 ** 31), 2 ** 31 - 1, 7, 7])]


def held(starts, total):
    found = []
    for start in starts:
        found.append(max([min(max(start, 0), total), *found]))
    return found


@pytest.mark.parametrize("starts_q, starts_k", HOSTILE)
@pytest.mark.parametrize("window", [(-1, -1), (2, 0)])
def test_offsets_that_decrease_or_lead_outside(starts_q, starts_k, window):
    """They are held to the tensors, and what kernels are given ascends."""
    with emulating(_lib.path("kernels", "packed"), 80):
        q, k, v = draw(20, 40)
        o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, *(torch.tensor(s).int() for s in (starts_q, starts_k)), 20, 40,
                                               window_size=window, return_attn_probs=True)
    rows, keys = ends(held(starts_q, 20)), ends(held(starts_k, 40))
    assert_alike((o, lse), of_each(q, k, v, rows, keys, window=window))
    segments = _lengths.segments([torch.tensor(s) for s in (starts_q, starts_k)], (None, None), (20, 40))
    for bound in _lengths.visible_keys(*segments, 2, 0):
        assert bool((bound[1:] >= bound[:-1]).all())


def test_first_and_last_keys_ascend_whatever_is_used():
    """Over many random offsets and lengths: ascending, inside, and as the sequences say."""
    draw = torch.Generator().manual_seed(3)
    for _ in range(300):
        starts = [torch.randint(-5, 40, (6,), generator=draw) for _ in range(2)]
        used = [torch.randint(-3, 30, (5,), generator=draw) for _ in range(2)]
        given = [one if draw_one else None for one, draw_one in zip(used, torch.randint(0, 2, (2,), generator=draw))]
        left, right = (int(n) if n < 12 else _lengths.MOST for n in torch.randint(0, 16, (2,), generator=draw))
        segments = _lengths.segments(starts, given, (30, 35))
        first, last = _lengths.visible_keys(*segments, left, right)
        assert bool((first[1:] >= first[:-1]).all() and (last[1:] >= last[:-1]).all())
        assert bool((first >= 0).all() and (last < 35).all())
        begins, k_begins = held(starts[0].tolist(), 30), held(starts[1].tolist(), 35)
        wanted, used_keys = [set() for _ in range(30)], set()
        for i in range(5):
            n, m = (at[i + 1] - at[i] if one is None else min(max(int(one[i]), 0), at[i + 1] - at[i])
                    for one, at in zip(given, (begins, k_begins)))
            used_keys |= set(range(k_begins[i], k_begins[i] + m))
            for row in range(n):
                place = row + m - n
                wanted[begins[i] + row] = {k_begins[i] + j for j in range(m) if place - left <= j <= place + right}
        assert [set(range(int(a), int(b) + 1)) for a, b in zip(first, last)] == wanted
        assert segments[1].unused().tolist() == [i not in used_keys for i in range(35)]


def test_empty_tensors(packed):
    q, k, v = draw(5, 7)
    for starts_q, starts_k, rows, keys in (([0], [0], 5, 7), ([0, 0], [0, 7], 0, 7), ([0, 5], [0, 0], 5, 0), ([0, 0], [0, 0], 0, 0)):
        o, lse = fa3.flash_attn_varlen_func(q[:rows], k[:keys], v[:keys], torch.tensor(starts_q), torch.tensor(starts_k), 5, 7,
                                            return_attn_probs=True)
        assert o.shape == (rows, 4, 64) and not o.any() and bool((lse == -math.inf).all())


def test_the_host_reads_no_lengths(monkeypatch):
    """So that a launch may be captured, and does not wait."""
    q, k, v = draw(60, 150)
    starts = [torch.tensor(s).int() for s in (Q_STARTS, K_STARTS)]
    with emulating(_lib.path("kernels", "packed"), 80), monkeypatch.context() as patch:
        without_host(patch)
        fa2.flash_attn_varlen_func(q, k, v, *starts, 37, 121, causal=True)
    q, k, v = tensors(batch=2, seq_q=2, seq_kv=32)
    table = torch.tensor([[2, 0, 3, 1], [7, 6, 5, 4]], dtype=torch.int32)
    pages, new = [t.reshape(8, 8, 2, 64) for t in (k, v)], torch.zeros(2, 2, 2, 64).half()
    with emulating(_lib.path("kernels", "lengths"), 80), monkeypatch.context() as patch:
        without_host(patch)
        lengths = torch.tensor([5, 30])
        fa3.flash_attn_with_kvcache(q, k, v, new, new, cache_seqlens=lengths, causal=True)
        fa3.flash_attn_with_kvcache(q, *pages, new, new, cache_seqlens=lengths, page_table=table)
        fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, cache_leftpad=torch.tensor([2, 0]), cache_batch_idx=torch.tensor([1, 1]))
    assert fagen.stats()["computed"] == {"flash_attn_varlen_func": 1, "flash_attn_with_kvcache": 3}


@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}, {"alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625])}])
def test_what_is_computed_one_after_the_other_is_the_same(options):
    """No kernels of these forms, and options that they lack: the same rows, zeros and ends."""
    q, k, v = draw(24, 40)
    starts_q, starts_k, used = [0, 10, 5, 20], [2, 22, 30, 99], torch.tensor([99, -3, 4])
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, torch.tensor(starts_q), torch.tensor(starts_k), 10, 20, causal=True,
                                           return_attn_probs=True, **options)
    assert o.shape == q.shape and not o[20:].any() and bool((lse[:, 20:] == -math.inf).all()) and bool(o[:20].any(-1).all())
    if not options:
        assert_alike((o, lse), of_each(q, k, v, ends(held(starts_q, 24)), ends(held(starts_k, 40)), causal=True))
        o, lse = fa3.flash_attn_varlen_func(q, k, v, torch.tensor(starts_q), torch.tensor(starts_k), 10, 20, seqused_k=used,
                                            return_attn_probs=True)
        assert_alike((o, lse), of_each(q, k, v, ends(held(starts_q, 24)), [(2, 22), (22, 22), (30, 34)]))
    assert any("computed one after the other" in reason for _, reason in fagen.stats()["fallbacks"])


def test_gradients_of_packed_sequences():
    q, k, v = (t.requires_grad_() for t in draw(24, 24))
    starts = torch.tensor([0, 10, 20])
    fa2.flash_attn_varlen_func(q, k, v, starts, starts, 10, 10, causal=True).float().square().sum().backward()
    exact = [t.detach().double().requires_grad_() for t in (q, k, v)]
    sum(one(*(t[a:a + 10] for t in exact), causal=True)[0].square().sum() for a in (0, 10)).backward()
    for got, wanted in zip((q, k, v), exact):
        torch.testing.assert_close(got.grad.double(), wanted.grad, atol=2e-2, rtol=2e-2)
        assert not got.grad[20:].any()


@pytest.mark.parametrize("seq_q", [1, 3, 70])
@pytest.mark.parametrize("options", MASKS)
def test_lengths_of_caches_in_one_launch(lengths_of_caches, seq_q, options):
    q, k, v = tensors(batch=4, seq_q=seq_q, seq_kv=150)
    lengths = [0, 150, 2, 101]
    mask = {"causal": options.get("causal", False), "window": options.get("window_size", (-1, -1))}
    wanted = [one(q[i], k[i, :n], v[i, :n], **mask) for i, n in enumerate(lengths)]
    for i, n in enumerate(lengths):
        k[i, n:] = v[i, n:] = math.nan  # what a sequence does not use
    for kind in (torch.int32, torch.int64):
        got = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor(lengths, dtype=kind), return_softmax_lse=True, **options)
        assert_alike(got, [torch.stack(parts) for parts in zip(*wanted)])
    assert fagen.stats()["computed"] == {"flash_attn_with_kvcache": 2} and not fagen.stats()["fallbacks"]


def test_lengths_beyond_a_cache_end_with_it(lengths_of_caches):
    q, k, v = tensors(batch=3, seq_q=2, seq_kv=32)
    for lengths in (torch.tensor([-5, 33, 2 ** 31 - 1]).int(), torch.tensor([-(2 ** 62), 2 ** 40, 2 ** 62])):
        o, lse = fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, causal=True, return_softmax_lse=True)
        wanted = [one(q[i], k[i, :n], v[i, :n], causal=True) for i, n in enumerate((0, 32, 32))]
        assert_alike((o, lse), [torch.stack(parts) for parts in zip(*wanted)])
    for number, end in ((-4, 0), (99, 32)):
        o = fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=number)
        assert_near(o, torch.stack([one(q[i], k[i, :end], v[i, :end])[0] for i in range(3)]))


@pytest.mark.parametrize("paged", [False, True])
def test_new_keys_are_put_inside_the_cache_alone(lengths_of_caches, paged):
    """After 30 of 32 keys two of three have a place, after 32 and 99 none; -9 counts as 0."""
    q, k, v = tensors(batch=5, seq_q=1, seq_kv=32)
    _, new_k, new_v = tensors(batch=5, seq_q=1, seq_kv=3, seed=5)
    given = [30, 32, 99, -9, 7]
    wanted = [t.clone() for t in (k, v)]
    for i, n in enumerate(given):
        n = max(n, 0)
        for cache, rows in zip(wanted, (new_k, new_v)):
            cache[i, n:n + 3] = rows[i, :max(0, 32 - n)]
    used = [32, 32, 32, 3, 10]
    if paged:
        table = torch.randperm(20, generator=torch.Generator().manual_seed(1)).view(5, 4).int()
        around = [torch.full((24, 8, 2, 64), 3.5).half() for _ in range(2)]  # four pages of nobody
        for pages, cache in zip(around, (k, v)):
            pages[table.long()] = cache.unflatten(1, (4, 8))
        o = fa3.flash_attn_with_kvcache(q, *around, new_k, new_v, cache_seqlens=torch.tensor(given), page_table=table)
        k, v = (pages[table.long()].flatten(1, 2) for pages in around)
        assert all(bool((pages[20:] == 3.5).all()) for pages in around)
    else:
        o = fa3.flash_attn_with_kvcache(q, k, v, new_k, new_v, cache_seqlens=torch.tensor(given))
    assert torch.equal(k, wanted[0]) and torch.equal(v, wanted[1])
    assert_near(o, torch.stack([one(q[i], k[i, :n], v[i, :n])[0] for i, n in enumerate(used)]))


def test_where_no_new_key_has_a_place_nothing_changes(lengths_of_caches):
    q, k, v = tensors(batch=2, seq_q=1, seq_kv=32)
    before = k.clone()
    fa3.flash_attn_with_kvcache(q, k, v, torch.ones(2, 1, 2, 64).half(), torch.ones(2, 1, 2, 64).half(), cache_seqlens=torch.tensor([32, 40]))
    assert torch.equal(k, before)
    fa3.flash_attn_with_kvcache(q, k, v, torch.ones(2, 1, 2, 64).half(), torch.ones(2, 1, 2, 64).half(), cache_seqlens=0,
                                cache_batch_idx=torch.tensor([-1, 2]))
    assert torch.equal(k, before)


def test_entries_of_a_page_table_that_are_not_used(lengths_of_caches):
    """They may be anything, and so may what their pages hold."""
    q, k, v = tensors(batch=2, seq_q=1, seq_kv=32)
    lengths = torch.tensor([11, 0])
    table = torch.tensor([[2, 0, 2 ** 31 - 1, -1], [-7, 99, 5, 4]], dtype=torch.int32)
    pages = [torch.full((8, 8, 2, 64), math.nan).half() for _ in range(2)]
    for page, cache in zip(pages, (k, v)):
        page[[2, 0]] = cache[0, :16].unflatten(0, (2, 8))
        page[0, 3:] = math.nan
    o, lse = fa2.flash_attn_with_kvcache(q, *pages, cache_seqlens=lengths, block_table=table, return_softmax_lse=True)
    wanted = [one(q[i], k[i, :n], v[i, :n]) for i, n in enumerate((11, 0))]
    assert_alike((o, lse), [torch.stack(parts) for parts in zip(*wanted)])


def test_a_used_page_that_is_not_there_is_one_of_zeros(lengths_of_caches):
    q, k, v = tensors(seq_q=1, seq_kv=32)
    pages = [t.reshape(4, 8, 2, 64) for t in (k, v)]
    zeroed = [torch.cat([t[0, :8], torch.zeros_like(t[0, :8]), t[0, 16:24]]) for t in (k, v)]
    for missing in (-1, 4, 2 ** 31 - 1, -(2 ** 31)):
        table = torch.tensor([[0, missing, 2, 3]], dtype=torch.int32)
        o = fa2.flash_attn_with_kvcache(q, *pages, cache_seqlens=torch.tensor([24]), block_table=table)
        assert_near(o[0], one(q[0], *zeroed)[0])


def test_batches_that_are_not_there_have_no_keys(lengths_of_caches):
    q, k, v = tensors(batch=3, seq_q=1, seq_kv=32)
    o = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor([9, 9, 9]), cache_batch_idx=torch.tensor([2, -1, 3]))
    assert_near(o[0], one(q[0], k[2, :9], v[2, :9])[0])
    assert not o[1:].any()


@pytest.mark.parametrize("call, words", [
    (lambda q, k, v: fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor([1.0])),
     "cache_seqlens is a tensor of torch.float32 on cpu; it is a tensor of int32 or int64"),
    (lambda q, k, v: fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor([1, 2])), "cache_seqlens has shape [2]; it is [1]"),
    (lambda q, k, v: fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=2, block_table=torch.tensor([1, 2])),
     "the page table has shape [2]; it is [1, any]"),
    (lambda q, k, v: fa2.flash_attn_with_kvcache(q, k, v, k, v), "k is given and cache_seqlens is not"),
    (lambda q, k, v: fa2.flash_attn_varlen_func(q[0], k[0], v[0], torch.tensor([0, 1]), torch.tensor([0]), 1, 1),
     "cu_seqlens_k has shape [1]; it is [2]"),
    (lambda q, k, v: fa2.flash_attn_varlen_func(q[0], k[0], v[0], [0, 1], torch.tensor([0, 1]), 1, 1),
     "cu_seqlens_q is [0, 1]; it is a tensor of int32 or int64"),
    (lambda q, k, v: fa2.flash_attn_varlen_func(q, k, v, torch.tensor([0, 1]), torch.tensor([0, 1]), 1, 1), "q is a tensor of"),
])
def test_mistakes_are_named(call, words):
    with pytest.raises(fagen.Error) as caught:
        call(*tensors())
    assert words in str(caught.value)
