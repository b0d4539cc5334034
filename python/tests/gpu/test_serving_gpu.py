# fagen: packed queries over pages on a GPU: random batches against float64, graphs with other lengths, bits in any batch, varlen_attn.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import random
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import fagen
import fagen.flashinfer as fi
from fagen import serving
from paged_batches import MOST, assert_right, drawn, expected, of_one

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)


@pytest.mark.parametrize("seed", range(300))
def test_random_batches(seed):
    draw = random.Random(seed)
    page, dim, kv_heads = draw.choice([1, 5, 16, 64]), draw.choice([64, 96, 128, 128, 256]), draw.choice([1, 2, 8])
    kind, count = draw.choice(["mixed", "few", "uniform", "copies"]), draw.randint(1, 9)
    rows = [draw.choice([1, 1, 0, draw.randint(1, 16), draw.randint(1, 16 if kind == "few" else 300)]) for _ in range(count)]
    rows = [draw.choice([1, 1, 4, 16])] * count if kind == "uniform" else rows if sum(rows) else [1, *rows[1:]]
    lengths = [max(n, draw.choice([n, draw.randint(0, 40), draw.randint(0, 2000)])) for n in rows]
    if draw.random() < 0.2:  # fewer keys than rows
        lengths = [draw.randint(0, 50) for _ in rows]
    causal = draw.random() < 0.7
    left = draw.choice([-1, -1, 0, 33]) if causal and kind != "copies" else -1
    batch = drawn(rows, lengths, page, heads=kv_heads * draw.choice([1, 3, 4, 8]), kv_heads=kv_heads, dim=dim, heads_first=draw.random() < 0.5, device="cuda",
                  dtype=draw.choice([torch.float16, torch.bfloat16]), seed=seed)
    fagen.stats(reset=True)
    plan = serving.plan(None if kind == "uniform" else batch.starts, batch.lengths, batch.table, page_size=page, tokens=sum(rows), most_rows=max(rows),
                        most_keys=sum(lengths) + draw.choice([0, 7]) if kind == "copies" else None, causal=causal,
                        invariant=kind != "copies" and draw.random() < 0.3)
    assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache, return_lse=True, window_left=left), expected(batch, causal=causal, window_left=left))
    assert not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_that_tensors_hold_leads_outside(seed):
    """For compute-sanitizer, too; without it what was read outside would most likely not be finite."""
    draw = random.Random(seed)
    def hostile(*shape):
        return torch.tensor([draw.choice([-1, MOST, -MOST - 1, 0, 7, 51]) for _ in range(torch.Size(shape).numel())], device="cuda", dtype=torch.int32).reshape(shape)
    batch = drawn([20, 1, 30], [40, 33, 90], 16, dim=128, device="cuda", seed=seed)
    caches = [cache.nan_to_num() for cache in (batch.k_cache, batch.v_cache)]
    plan = serving.plan(hostile(4), hostile(3), hostile(3, 10), page_size=16, tokens=51, most_rows=51, most_keys=draw.choice([None, 200]), causal=draw.random() < 0.5)
    assert plan.run(batch.q, *caches).isfinite().all()
    serving.append(batch.q[:, :2], batch.q[:, :2], *caches, hostile(51))
    assert all(cache.isfinite().all() for cache in caches)


def test_a_graph_changes_lengths_and_tables_before_it_reads_them():
    lengths, count = [30, 70, 1, 9, 200, 31, 32, 33], 8
    batch = drawn([1] * count, lengths, 16, heads=8, kv_heads=2, dim=128, device="cuda", columns=20, spare=40)
    taken = torch.cat([row[:-(-n // 16)] for row, n in zip(batch.table, lengths)]).long()
    free = torch.ones(len(batch.k_cache), dtype=torch.bool, device="cuda").index_fill_(0, taken, False).nonzero().flatten().int()
    state = used, table, next_free = batch.lengths.clone(), batch.table.clone(), torch.zeros(1, dtype=torch.long, device="cuda")
    inputs = q, k_new, v_new = [torch.randn(count, heads, 128, dtype=torch.float16, device="cuda") for heads in (8, 2, 2)]
    row = torch.arange(count, device="cuda")
    def step():
        needs, column = used % 16 == 0, (used // 16).long()
        table[row, column] = torch.where(needs, free[(next_free + needs.long().cumsum(0) - 1).clamp(0, len(free) - 1)], table[row, column])
        next_free.add_(needs.sum())
        slots = table[row, column].long() * 16 + used % 16
        used.add_(1)
        serving.append(k_new, v_new, batch.k_cache, batch.v_cache, slots)
        return serving.plan(None, used, table, page_size=16, tokens=count, most_rows=1).run(q, batch.k_cache, batch.v_cache)
    saved = [t.clone() for t in state]
    step()
    for to, value in zip(state, saved):
        to.copy_(value)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = step()
    keys, values = list(batch.keys), list(batch.values)
    for _ in range(40):
        for one in inputs:
            one.normal_()
        graph.replay()
        keys, values = ([torch.cat([t, new[b:b + 1]]) for b, t in enumerate(held)] for held, new in ((keys, k_new), (values, v_new)))
        assert_right(o, (torch.cat([of_one(q[b:b + 1], keys[b], values[b])[0] for b in range(count)]), None))
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        graph.replay()
        torch.cuda.synchronize()
    assert not [event.name for event in seen.events() if "DtoH" in event.name]


def test_graphs_run_with_later_plans():
    batches = [drawn(*one, 16, heads=8, kv_heads=2, dim=128, device="cuda", columns=30, seed=i)
               for i, one in enumerate((([40, 1, 7], [60, 300, 7]), ([3, 44, 1], [100, 44, 257])))]
    def planned(batch):
        return serving.plan(batch.starts, batch.lengths, batch.table, page_size=16, tokens=48, most_rows=48)
    pools, q, plan = [torch.zeros(64, 16, 2, 128, dtype=torch.float16, device="cuda") for _ in "kv"], batches[0].q.clone(), planned(batches[0])
    plan.run(q, *pools)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = plan.run(q, *pools)
    for batch in (*batches, batches[0]):
        for pool, cache in zip(pools, batch[1:3]):
            pool.fill_(torch.nan)[:len(cache)] = cache
        q.copy_(batch.q)
        plan.rewrite(planned(batch))
        graph.replay()
        assert_right(o, (expected(batch)[0], None))


@pytest.mark.parametrize("dim, dtype", [(64, torch.float16), (128, torch.bfloat16), (256, torch.bfloat16)])
def test_bits_in_any_batch(dim, dtype):
    rows, keys = 700, 3000
    whole, others = (drawn(*one, 16, heads=8, kv_heads=2, dim=dim, dtype=dtype, device="cuda", seed=i, columns=260)
                     for i, one in enumerate((([rows], [keys]), ([1, 90, 5], [4000, 90, 33]))))
    o, lse = serving.plan(whole.starts, whole.lengths, whole.table, page_size=16, tokens=rows, most_rows=rows, invariant=True).run(*whole[:3], return_lse=True)
    assert_right((o, lse), expected(whole))
    pools = [torch.cat([a, b]) for a, b in zip(whole[1:3], others[1:3])]
    repaged = [torch.nn.functional.pad(one[0], (0, 0, 0, 0, 0, -keys % 64)).unflatten(0, (-1, 64)) for one in (whole.keys, whole.values)]
    own = torch.arange(len(repaged[0]), device="cuda", dtype=torch.int32)[None]
    for begin, end in ((0, 1), (0, 33), (33, 34), (100, 300), (300, 700), (699, 700), (650, 666)):
        lengths = torch.tensor([4000, 90, 33, keys - rows + end], device="cuda")
        many = serving.plan(torch.tensor([0, 1, 91, 96, 96 + end - begin], device="cuda"), lengths, torch.cat([others.table + len(whole.k_cache), whole.table]),
                            page_size=16, tokens=96 + end - begin, most_rows=max(90, end - begin), invariant=True)
        alone = serving.plan(torch.tensor([0, end - begin], device="cuda"), lengths[3:], own, page_size=64, tokens=end - begin, most_rows=end - begin, invariant=True)
        for got, at in ((many.run(torch.cat([others.q, whole.q[begin:end]]), *pools, return_lse=True), 96), (alone.run(whole.q[begin:end], *repaged, return_lse=True), 0)):
            assert torch.equal(got[0][at:], o[begin:end]) and torch.equal(got[1][at:], lse[begin:end])


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (60, 0)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_varlen_attn(window, dtype):
    """As PyTorch's own, gradients too."""
    from torch.nn.attention import activate_flash_attention_impl, restore_flash_attention_impl
    from torch.nn.attention.varlen import AuxRequest, varlen_attn
    starts = [torch.tensor(one, device="cuda", dtype=torch.int32) for one in ([0, 100, 100, 350, 512], [0, 150, 200, 450, 700])]
    def call():
        torch.manual_seed(0)
        q, k, v = (torch.randn(n, 8, 128, device="cuda", dtype=dtype).requires_grad_() for n in (512, 700, 700))
        o, lse = varlen_attn(q, k, v, *starts, 250, 250, return_aux=AuxRequest(lse=True), window_size=window)
        o.float().square().sum().backward()
        return [t.detach().float() for t in (o, lse, q.grad, k.grad, v.grad)]
    theirs = call()
    activate_flash_attention_impl("fagen")
    fagen.stats(reset=True)
    try:
        ours = call()
    finally:
        restore_flash_attention_impl()
    assert fagen.stats()["computed"] == {"varlen_attn": 1} and not fagen.stats()["fallbacks"]
    for one, wanted in zip(ours, theirs):
        torch.testing.assert_close(one, wanted, atol=2e-2 if dtype == torch.float16 else 8e-2, rtol=2e-2)


@pytest.mark.parametrize("page, layout", [(1, "NHD"), (16, "HND")])
def test_flashinfer_in_a_graph(page, layout):
    batches = [drawn([1] * 3, n, page, heads=8, kv_heads=2, dim=128, heads_first=layout == "HND", device="cuda", seed=i) for i, n in enumerate(([30, 70, 5], [300, 1, 17]))]
    wrapper = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(torch.empty(1, device="cuda"), *(torch.empty(n, dtype=torch.int32, device="cuda") for n in (4, 400, 3)), layout)
    def planned(batch):
        pages = [-(-n // page) for n in batch.lengths.tolist()]
        wrapper.plan(torch.tensor([0, *pages], device="cuda").cumsum(0).int(), torch.cat([row[:n] for row, n in zip(batch.table, pages)]),
                     (batch.lengths - 1) % page + 1, 8, 2, 128, page)
    pools = [torch.zeros((400, 2, page, 128) if layout == "HND" else (400, page, 2, 128), dtype=torch.float16, device="cuda") for _ in "kv"]
    q = batches[0].q.clone()
    planned(batches[0])
    wrapper.run(q, tuple(pools))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = wrapper.run(q, tuple(pools))
    for batch in (*batches, batches[0]):
        for pool, cache in zip(pools, batch[1:3]):
            pool.fill_(torch.nan)[:len(cache)] = cache.transpose(1, 2) if layout == "HND" else cache
        q.copy_(batch.q)
        planned(batch)
        graph.replay()
        assert_right(o, (expected(batch)[0], None))
