# fagen: packed sequences and caches whose lengths stand on the GPU: values, no waiting, captured graphs whose lengths change, times.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math

import pytest
import torch

import fagen
import fagen.flash_attn as fa2
import fagen.flash_attn_interface as fa3

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0),
                                reason="no GPU of compute capability 8.0 or more")
HEADS, KV_HEADS = 8, 2
MASKS = [{}, {"causal": True}, {"window_size": (100, 30)}, {"causal": True, "window_size": (70, 0)}]


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """What kernels do not compute is an error; but that pages are copied is said and counted."""
    monkeypatch.setattr(fa2, "fallback", "error")
    monkeypatch.setattr(fa3, "fallback", "torch")
    fagen.stats(reset=True)


def draw(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda", dtype=dtype)


def one(q, k, v, causal=False, window_size=(-1, -1)):
    """O and LSE in float64 of one sequence: q [rows, heads, head_dim]."""
    q, k, v = (t.double().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[0] // k.shape[0], 0) for t in (k, v))
    place = torch.arange(q.shape[1], device="cuda")[:, None] + k.shape[1] - q.shape[1]
    key = torch.arange(k.shape[1], device="cuda")[None]
    left, right = (side if side >= 0 else 1 << 40 for side in window_size)
    seen = (key >= place - left) & (key <= place + (0 if causal else right))
    scores = (q @ k.transpose(1, 2) * q.shape[-1] ** -0.5).masked_fill(~seen, -math.inf)
    sums = torch.logsumexp(scores, -1) if k.shape[1] else q.new_full(q.shape[:2], -math.inf)
    return (torch.exp(scores - sums.masked_fill(sums == -math.inf, 0)[..., None]) @ v).transpose(0, 1), sums


def assert_near(got, wanted):
    torch.testing.assert_close(got[0].double(), wanted[0], atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(got[1].double(), wanted[1], atol=1e-3, rtol=1e-3)


def packed(q, k, v, starts_q, starts_k, **mask):
    o, sums = torch.zeros_like(q, dtype=torch.float64), q.new_full((q.shape[1], q.shape[0]), -math.inf, dtype=torch.float64)
    for a, b, c, d in zip(starts_q, starts_q[1:], starts_k, starts_k[1:]):
        o[a:b], sums[:, a:b] = one(q[a:b], k[c:d], v[c:d], **mask)
    return o, sums


def cached(q, k, v, lengths, **mask):
    return [torch.stack(parts) for parts in zip(*(one(q[i], k[i, :n], v[i, :n], **mask) for i, n in enumerate(lengths)))]


def numbers(*values, kind=torch.int32):
    return torch.tensor(values, dtype=kind, device="cuda")


STARTS = [0, 1, 300, 300, 557, 1500], [0, 700, 1000, 1020, 1020, 2500]


@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("options", MASKS)
def test_packed_sequences(columns, options):
    q, k, v = draw(1600, HEADS, columns), draw(2600, KV_HEADS, columns, seed=1), draw(2600, KV_HEADS, columns, seed=2)
    wanted = packed(q, k, v, *STARTS, **options)
    k[2500:] = v[2500:] = q[1500:] = math.nan  # more tokens than offsets cover
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, numbers(*STARTS[0]), numbers(*STARTS[1]), 943, 1480, return_attn_probs=True, **options)
    assert_near((o, lse), wanted)
    assert fagen.stats()["computed"] == {"flash_attn_varlen_func": 1}


@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("rows", [1, 4, 200])
@pytest.mark.parametrize("options", MASKS)
def test_lengths_of_caches(columns, rows, options):
    lengths = [0, 3000, 1, 129, 2047]
    q, k, v = draw(5, rows, HEADS, columns), draw(5, 3000, KV_HEADS, columns, seed=1), draw(5, 3000, KV_HEADS, columns, seed=2)
    wanted = cached(q, k, v, lengths, **options)
    for i, n in enumerate(lengths):
        k[i, n:] = v[i, n:] = math.nan
    for kind in (torch.int32, torch.int64):
        o, lse = fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=numbers(*lengths, kind=kind), return_softmax_lse=True, **options)
        assert_near((o, lse), wanted)
    assert fagen.stats()["computed"] == {"flash_attn_with_kvcache": 2}


def captured(function):
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        function()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        result = function()
    return graph, result


def test_a_captured_graph_sees_other_offsets():
    q, k, v = draw(600, HEADS, 128), draw(700, KV_HEADS, 128, seed=1), draw(700, KV_HEADS, 128, seed=2)
    starts_q, starts_k = numbers(0, 600, 600, 600), numbers(0, 700, 700, 700)
    graph, (o, lse, _) = captured(lambda: fa2.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 600, 700, causal=True, return_attn_probs=True))
    for to_q, to_k in (([0, 100, 350, 580], [0, 300, 310, 690]), ([0, 0, 1, 600], [5, 5, 5, 700]), ([0, 600, 600, 600], [0, 700, 700, 700])):
        starts_q.copy_(numbers(*to_q))
        starts_k.copy_(numbers(*to_k))
        graph.replay()
        assert_near((o, lse), packed(q, k, v, to_q, to_k, causal=True))


@pytest.mark.parametrize("paged", [False, True])
def test_a_captured_graph_sees_other_lengths_and_puts_new_keys(paged):
    q, k, v = draw(3, 1, HEADS, 128), draw(3, 1024, KV_HEADS, 128, seed=1), draw(3, 1024, KV_HEADS, 128, seed=2)
    new = draw(3, 1, KV_HEADS, 128, seed=3)
    lengths = numbers(10, 500, 1023)
    table = torch.randperm(3 * 64, generator=torch.Generator("cuda").manual_seed(1), device="cuda").view(3, 64).int()
    stored, place = (k, v), {}
    if paged:
        stored, place = tuple(torch.empty(192, 16, KV_HEADS, 128, device="cuda", dtype=k.dtype) for _ in (k, v)), {"page_table": table}
        for pages, cache in zip(stored, (k, v)):
            pages[table.long()] = cache.unflatten(1, (64, 16))
    graph, (o, lse) = captured(lambda: fa3.flash_attn_with_kvcache(q, *stored, new, new, cache_seqlens=lengths, causal=True,
                                                                   return_softmax_lse=True, **place))
    k[range(3), (10, 500, 1023)] = v[range(3), (10, 500, 1023)] = new[:, 0]  # by the call before capture
    for to in ([0, 777, 1022], [1023, 64, 65], [1, 2, 3]):
        lengths.copy_(numbers(*to))
        graph.replay()
        k[range(3), to] = v[range(3), to] = new[:, 0]
        assert_near((o, lse), cached(q, k, v, [n + 1 for n in to], causal=True))
    held = [pages[table.long()].flatten(1, 2) for pages in stored] if paged else stored
    assert torch.equal(held[0], k) and torch.equal(held[1], v)


def test_lengths_that_lead_outside_touch_nothing_else():
    """Caches that lie between rows of others, which stay as they are."""
    around = [draw(5, 256, KV_HEADS, 128, seed=s) for s in (1, 2)]
    before = [t.clone() for t in around]
    q, new = draw(3, 1, HEADS, 128), draw(3, 4, KV_HEADS, 128, seed=3)
    k, v = (t[1:4] for t in around)
    fa2.flash_attn_with_kvcache(q, k, v, new, new, cache_seqlens=numbers(254, 2 ** 31 - 1, 256))
    for tensor, was in zip(around, before):
        was[1, 254:] = new[0, :2]
        assert torch.equal(tensor, was)
    o = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=numbers(9, 9, 9), cache_batch_idx=numbers(2, -1, 2 ** 31 - 1))
    assert not o[1:].any() and bool(o[0].any())
    for starts in ([0, 2 ** 31 - 1, -5, 3], [90, 20, 10, 0], [-(2 ** 31), 50, 2 ** 31 - 1, 0]):
        fa2.flash_attn_varlen_func(q.expand(3, 40, HEADS, 128).flatten(0, 1), k[0], v[0], numbers(*starts), numbers(*starts[::-1]), 9, 9)
    torch.cuda.synchronize()


def test_nothing_waits_for_the_gpu():
    q, k, v = draw(600, HEADS, 128), draw(700, KV_HEADS, 128, seed=1), draw(700, KV_HEADS, 128, seed=2)
    starts_q, starts_k, lengths = numbers(0, 100, 600), numbers(0, 300, 700), numbers(100, 650)
    calls = [lambda: fa2.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 500, 400, causal=True),
             lambda: fa2.flash_attn_with_kvcache(q[:2, None], k.view(2, 350, KV_HEADS, 128), v.view(2, 350, KV_HEADS, 128),
                                                 cache_seqlens=lengths)]
    for call in calls:
        call()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for call in calls:
            call()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_what_reads_lengths_is_refused_while_a_graph_is_captured():
    q, k, v = draw(600, HEADS, 128), draw(700, KV_HEADS, 128, seed=1), draw(700, KV_HEADS, 128, seed=2)
    starts_q, starts_k = numbers(0, 100, 600), numbers(0, 300, 700)
    with pytest.raises(fagen.Unsupported, match="not computed while a graph is captured"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        fa3.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 500, 400, causal=True, softcap=5.0)


def time_of(call, runs=20):
    for _ in range(3):
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(runs):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / runs * 1000


@pytest.mark.parametrize("lengths", [[8192], [64] * 128, [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181]])
def test_times_of_packed_sequences(lengths, record_property):
    """Microseconds as printed with -s and in the JUnit file: one launch, each sequence by itself, and one sequence of all rows."""
    total = sum(lengths)
    q, k, v = draw(total, 32, 128), draw(total, 8, 128, seed=1), draw(total, 8, 128, seed=2)
    starts = numbers(0, *torch.tensor(lengths).cumsum(0).tolist())
    parts = [t.split(lengths) for t in (q, k, v)]
    times = {"packed": time_of(lambda: fa2.flash_attn_varlen_func(q, k, v, starts, starts, max(lengths), max(lengths), causal=True)),
             "each": time_of(lambda: [fa2.flash_attn_func(*(t[None] for t in part), causal=True) for part in zip(*parts)]),
             "one": time_of(lambda: fa2.flash_attn_func(q[None], k[None], v[None], causal=True))}
    print(len(lengths), "sequences,", total, "rows:", {name: round(us, 1) for name, us in times.items()})
    for name, us in times.items():
        record_property(name, round(us, 1))


@pytest.mark.parametrize("lengths", [[4096] * 16, [8192] + [128] * 15, [8192] * 2 + [1] * 14])
def test_times_of_caches(lengths, record_property):
    """As above: a cache of 8192 rows with these lengths, each sequence by itself, and all rows of the cache."""
    q, k, v = draw(len(lengths), 1, 32, 128), draw(len(lengths), 8192, 8, 128, seed=1), draw(len(lengths), 8192, 8, 128, seed=2)
    used = numbers(*lengths)
    times = {"lengths": time_of(lambda: fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=used, causal=True)),
             "each": time_of(lambda: [fa2.flash_attn_func(q[i:i + 1], k[i:i + 1, :n], v[i:i + 1, :n], causal=True)
                                      for i, n in enumerate(lengths)]),
             "all": time_of(lambda: fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=8192, causal=True))}
    print(lengths[:3], {name: round(us, 1) for name, us in times.items()})
    for name, us in times.items():
        record_property(name, round(us, 1))
