# fagen: FlashInfer's wrappers over our kernels, against float64; by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os

import pytest
import torch

import fagen
import fagen.flashinfer as fi
from fagen import _torch_programs
from emulated_programs import emulate
from paged_batches import assert_right, drawn, expected, of_one
from torch_emulated import LIBRARY, use_emulator

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)
use_emulator()
WORKSPACE = torch.empty(1)


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    monkeypatch.setattr(fi, "fallback", "error")
    yield
    _torch_programs.set_emulator(None)


def tables(batch):
    """(indptr, indices, last_page_len) of a batch."""
    page = batch.k_cache.shape[1]
    pages = [-(-n // page) for n in batch.lengths.tolist()]
    indices = torch.cat([row[:n] for row, n in zip(batch.table, pages)])
    last = torch.tensor([n - (p - 1) * page if p else 0 for n, p in zip(batch.lengths.tolist(), pages)], dtype=torch.int32)
    return torch.tensor([0, *torch.tensor(pages).cumsum(0)], dtype=torch.int32), indices, last


def natural(got):
    """O and LSE, which FlashInfer has of base 2."""
    return got[0], got[1] * math.log(2.0)


def caches(batch, layout, is_one):
    pair = [cache.transpose(1, 2) if layout == "HND" else cache for cache in batch[1:3]]
    return torch.stack(pair, 1) if is_one else tuple(pair)


@pytest.mark.parametrize("layout, is_one, page", [("NHD", False, 8), ("HND", True, 16), ("NHD", True, 1)])
def test_decode(layout, is_one, page):
    batch = drawn([1, 1, 1], [70, 1, 33], page, heads_first=layout == "HND")
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, layout)
    wrapper.plan(*tables(batch), 4, 2, 64, page, q_data_type=torch.float16, window_left=-1)
    assert_right(natural(wrapper.run(batch.q, caches(batch, layout, is_one), return_lse=True)), expected(batch))
    assert_right(wrapper.run(batch.q, caches(batch, layout, is_one), k_scale=2.0, v_scale=0.5, window_left=20),
                 (expected(batch, scale=0.25, window_left=20)[0] * 0.5, None))


def test_decode_of_drafts_and_of_fixed_splits():
    batch = drawn([3, 3], [70, 9])
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(*tables(batch), 4, 2, 64, 8, sm_scale=0.2, q_len_per_req=3, fixed_split_size=4)
    assert "invariant" in repr(wrapper._plan)
    assert_right(wrapper.run(batch.q, batch[1:3]), (expected(batch, scale=0.2)[0], None))


@pytest.mark.parametrize("causal, layout", [(True, "NHD"), (False, "HND")])
@pytest.mark.parametrize("rows", [[5, 1, 0], [30, 1, 7]])
def test_prefill_over_pages(rows, causal, layout):
    batch = drawn(rows, [40, 33, 7], heads_first=layout == "HND")
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, layout)
    wrapper.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=causal)
    assert_right(natural(wrapper.run(batch.q, caches(batch, layout, True), return_lse=True)), expected(batch, causal=causal))


@pytest.mark.parametrize("causal", [True, False])
def test_prefill_of_packed_keys(causal):
    batch = drawn([30, 1, 7], [40, 33, 7])
    kv_indptr = torch.tensor([0, 40, 73, 80], dtype=torch.int32)
    wrapper = fi.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE)
    wrapper.plan(batch.starts, kv_indptr, 4, 2, 64, causal=causal)
    out = torch.empty_like(batch.q)
    got = wrapper.run(batch.q, torch.cat(batch.keys), torch.cat(batch.values), out=out, return_lse=True)
    assert got[0] is out
    assert_right(natural(got), expected(batch, causal=causal))


def test_single_requests():
    batch = drawn([5], [40])
    q, k, v = batch.q, batch.keys[0], batch.values[0]
    assert_right(natural(fi.single_prefill_with_kv_cache(q, k, v, causal=True, return_lse=True)), of_one(q, k, v))
    assert_right(fi.single_prefill_with_kv_cache(q, k.transpose(0, 1), v.transpose(0, 1), kv_layout="HND", v_scale=2.0), (of_one(q, k, v, causal=False)[0] * 2, None))
    o, lse = fi.single_decode_with_kv_cache(q[0], k, v, sm_scale=0.1, return_lse=True)
    wanted, sums = of_one(q[:1], k, v, scale=0.1)
    assert_right(natural((o, lse)), (wanted[0], sums[0]))


def test_results_over_parts_are_merged():
    batch = drawn([5], [40])
    q, k, v = batch.q, batch.keys[0], batch.values[0]
    parts = [fi.single_prefill_with_kv_cache(q, k[a:b], v[a:b], return_lse=True) for a, b in ((0, 8), (8, 30), (30, 40))]
    wanted = of_one(q, k, v, causal=False)
    assert_right(natural(fi.merge_states(*(torch.stack(one, 1) for one in zip(*parts)))), wanted)
    both = fi.merge_state(*parts[0], *parts[1])
    fi.merge_state_in_place(*both, *parts[2], mask=torch.tensor([1, 1, 1, 1, 0]))
    assert_right(natural((both[0][:4], both[1][:4])), (wanted[0][:4], wanted[1][:4]))
    assert_right(natural((both[0][4:], both[1][4:])), [t[4:] for t in of_one(q, k[:30], v[:30], causal=False)])


def test_new_keys():
    batch = drawn([2, 3], [9, 20])
    cleared = [torch.zeros_like(cache) for cache in batch[1:3]]
    indptr, indices, last = tables(batch)
    assert fi.get_seq_lens(indptr, last, 8).tolist() == [9, 20]
    which, places = fi.get_batch_indices_positions(batch.starts, batch.lengths, 5)
    assert which.tolist() == [0, 0, 1, 1, 1] and places.tolist() == [7, 8, 17, 18, 19]
    new = [torch.cat([one[0][7:], one[1][17:]]) for one in (batch.keys, batch.values)]
    fi.append_paged_kv_cache(*new, which, places, tuple(cleared), indices, indptr, last)
    for cache, one in zip(cleared, (batch.keys, batch.values)):
        held = [cache[batch.table[b, :n].long()].flatten(0, 1) for b, n in ((0, 2), (1, 3))]
        assert torch.equal(held[0][7:9], one[0][7:]) and torch.equal(held[1][17:20], one[1][17:]) and cache.any(-1).sum() == 10
    before = cleared[0].clone()
    fi.append_paged_kv_cache(*(one[:4] for one in new), torch.tensor([-1, 2, 0, 1]), torch.tensor([0, 0, 16, -1]), tuple(cleared), indices, indptr, last)
    assert torch.equal(cleared[0], before)


def test_graphs_see_later_plans(monkeypatch):
    """As a graph is: what run() reads of the first plan holds the second one afterwards, and the host reads nothing."""
    one, other = drawn([1, 1], [40, 30], seed=1), drawn([1, 1], [9, 60], seed=2, spare=3)
    buffers = [torch.empty(3, dtype=torch.int32), torch.empty(20, dtype=torch.int32), torch.empty(2, dtype=torch.int32)]
    wrapper = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *buffers)
    assert wrapper.is_cuda_graph_enabled
    given = tables(one), tables(other)
    def refuse(*_):
        raise AssertionError("a tensor is read by the host")
    with monkeypatch.context() as patched:
        for name in ("tolist", "item", "__bool__", "__int__", "__float__", "__index__"):
            patched.setattr(torch.Tensor, name, refuse)
        wrapper.plan(*given[0], 4, 2, 64, 8)
        held = wrapper._plan
        wrapper.plan(*given[1], 4, 2, 64, 8)
        o = wrapper.run(other.q, other[1:3])
    assert wrapper._plan is held
    for buffer, table in zip(buffers, given[1]):  # what a captured append reads
        assert torch.equal(buffer[:len(table)].long(), table.long())
    assert_right(o, (expected(other)[0], None))
    prefill = fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, *[torch.empty(20, dtype=torch.int32)] * 4)
    for rows, lengths in (([3, 20], [40, 30]), ([22, 1], [22, 50])):
        batch = drawn(rows, lengths)
        prefill.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=True)
        assert_right(prefill.run(batch.q, batch[1:3]), (expected(batch)[0], None))


def test_tables_of_graphs_are_as_wide_as_is_said():
    batch = drawn([1, 1], [40, 30])
    buffers = [torch.zeros(3, dtype=torch.int32), torch.zeros(400, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)]
    wrapper = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *buffers)
    wrapper.plan(*tables(batch), 4, 2, 64, 8)
    assert wrapper._plan._tensors[2].shape == (2, 400)
    wrapper = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *buffers)
    wrapper.max_sequence_kv = 41
    wrapper.plan(*tables(batch), 4, 2, 64, 8)
    assert wrapper._plan._tensors[2].shape == (2, 6)
    assert_right(wrapper.run(batch.q, batch[1:3]), (expected(batch)[0], None))
    with pytest.raises(fagen.Error, match="a sequence has 7 pages of 8 keys; max_sequence_kv is 41, which 6 pages hold"):
        wrapper.plan(*tables(drawn([1, 1], [50, 30])), 4, 2, 64, 8)
    prefill = fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, buffers[0], *buffers)
    batch = drawn([3, 20], [40, 30])
    prefill.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=True, max_sequence_kv=48)
    assert prefill._plan._tensors[2].shape == (2, 6)
    assert_right(prefill.run(batch.q, batch[1:3]), (expected(batch)[0], None))


def test_later_plans_of_a_graph_may_have_fewer_rows():
    """A graph runs with the q that it captured: rows that the later plan has not are 0."""
    prefill = fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE, "NHD", True, *[torch.empty(20, dtype=torch.int32)] * 4)
    for rows in ([3, 20], [2, 9], [0, 1]):
        batch = drawn(rows, [40, 30])
        prefill.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=True)
        o, lse = prefill.run(torch.cat([batch.q, torch.full((23 - len(batch.q), 4, 64), torch.nan).half()]), batch[1:3], return_lse=True)
        assert_right(natural((o[:len(batch.q)], lse[:len(batch.q)])), expected(batch))
        assert not o[len(batch.q):].any() and (lse[len(batch.q):] == -torch.inf).all()
        assert_right(natural(prefill.run(batch.q, batch[1:3], return_lse=True)), expected(batch))  # without a graph
    batch = drawn([4, 20], [40, 30])
    with pytest.raises(fagen.Error, match="qo_indptr ends at 24; the first plan with use_cuda_graph=True was of 23 rows, and later ones have as many or fewer"):
        prefill.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=True)


def test_arguments_by_position_as_flashinfer_takes_them():
    batch = drawn([1, 1], [40, 30])
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(*tables(batch), 4, 2, 64, 8, "NONE", 20, None, torch.float16, sm_scale=0.2)
    assert_right(wrapper.run(batch.q, batch[1:3]), (expected(batch, window_left=20, scale=0.2)[0], None))
    wrapper.begin_forward(*tables(batch), 4, 2, 64, 8, "NONE", 10)
    assert_right(wrapper.run(batch.q, batch[1:3]), (expected(batch, window_left=10)[0], None))
    with pytest.raises(fagen.Error, match="plan: window_left is given by position and by name"):
        wrapper.plan(*tables(batch), 4, 2, 64, 8, "NONE", 10, window_left=3)
    with pytest.raises(fagen.Error, match="plan: 24 arguments are given; it takes 23"):
        wrapper.plan(*tables(batch), 4, 2, 64, 8, *["NONE"] * 17)


def test_rotation_counts_only_where_it_is_asked_for():
    batch = drawn([1], [40])
    q, k, v = batch.q, batch.keys[0], batch.values[0]
    rotation = {"rope_scale": 1.0, "rope_theta": 1e4}
    decode, prefill, packed = (kind(WORKSPACE) for kind in (
        fi.BatchDecodeWithPagedKVCacheWrapper, fi.BatchPrefillWithPagedKVCacheWrapper, fi.BatchPrefillWithRaggedKVCacheWrapper))
    decode.plan(*tables(batch), 4, 2, 64, 8, **rotation)
    prefill.plan(batch.starts, *tables(batch), 4, 2, 64, 8, causal=True, **rotation)
    packed.plan(batch.starts, torch.tensor([0, 40]), 4, 2, 64, causal=True, **rotation)
    wanted = expected(batch)[0]
    for o in (decode.run(q, batch[1:3]), prefill.run(q, batch[1:3]), packed.run(q, k, v), fi.single_decode_with_kv_cache(q[0], k, v, **rotation)[None],
              fi.single_prefill_with_kv_cache(q, k, v, causal=True, **rotation)):
        assert_right(o, (wanted, None))
    for wrapper, given in ((decode, (*tables(batch), 4, 2, 64, 8)), (prefill, (batch.starts, *tables(batch), 4, 2, 64, 8)), (packed, (batch.starts, batch.starts, 4, 2, 64))):
        with pytest.raises(fagen.Unsupported, match="pos_encoding_mode is 'ALIBI'"):
            wrapper.plan(*given, pos_encoding_mode="ALIBI", **rotation)


def test_index_arrays_may_be_longer_than_what_is_used():
    """Keys that are copied together are those of the pages that indptr names."""
    batch = drawn([30, 7], [40, 33])
    indptr, indices, last = tables(batch)
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE)
    wrapper.plan(batch.starts, indptr, torch.cat([indices, indices.new_full((100000,), -1)]), last, 4, 2, 64, 8, causal=True)
    assert wrapper._plan._most_keys == 10 * 8
    assert_right(wrapper.run(batch.q, batch[1:3]), (expected(batch)[0], None))


@pytest.mark.parametrize("change, words", [
    ({"pos_encoding_mode": "ROPE_LLAMA"}, "BatchPrefillWithPagedKVCacheWrapper: pos_encoding_mode is 'ROPE_LLAMA': neither"),
    ({"custom_mask": torch.ones(3)}, "custom_mask is a .*: neither fagen nor its fallback computes it"),
    ({"head_dim_vo": 128}, "head_dim_vo is 128, head_dim_qk 64"),
])
def test_what_nobody_computes(change, words):
    batch = drawn([2], [9])
    with pytest.raises(fagen.Unsupported, match=words):
        fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE).plan(batch.starts, *tables(batch), 4, 2, 64, 8, **change)


def test_mistakes():
    batch = drawn([1], [9])
    with pytest.raises(fagen.Error, match="indices has 2 pages; the buffer that use_cuda_graph=True was given has 1"):
        fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *[torch.empty(1)] * 3).plan(*tables(batch), 4, 2, 64, 8)
    with pytest.raises(fagen.Error, match="kv_layout is 'NDH'; it is \"NHD\" or \"HND\""):
        fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, "NDH")
    with pytest.raises(fagen.Error, match="backend is 'cudnn'; it is auto, fa2, fa3"):
        fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, backend="cudnn")
    with pytest.raises(fagen.Error, match="paged_kv_indptr_buffer is None; with use_cuda_graph=True it is a tensor"):
        fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE, use_cuda_graph=True)
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(WORKSPACE)
    for given in ([0, 1], torch.tensor([0.0, 1.0]), torch.tensor([0]), None):
        words = r"is .*; it is a tensor \[sequences \+ 1\] of a sequence or more, int32 or int64"
        with pytest.raises(fagen.Error, match="PagedKVCacheWrapper: qo_indptr " + words):
            fi.BatchPrefillWithPagedKVCacheWrapper(WORKSPACE).plan(given, *tables(batch), 4, 2, 64, 8)
        for name, both in (("qo_indptr", (given, batch.starts)), ("kv_indptr", (batch.starts, given))):
            with pytest.raises(fagen.Error, match=f"RaggedKVCacheWrapper: {name} " + words):
                fi.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE).plan(*both, 4, 2, 64)
        with pytest.raises(fagen.Error, match="get_seq_lens: kv_indptr " + words):
            fi.get_seq_lens(given, tables(batch)[2], 8)
        with pytest.raises(fagen.Error, match="get_batch_indices_positions: append_indptr " + words):
            fi.get_batch_indices_positions(given, batch.lengths, 1)
    with pytest.raises(fagen.Error, match=r"run\(\) is called before plan\(\)"):
        wrapper.run(batch.q, batch[1:3])
    indptr, indices, last = tables(batch)
    with pytest.raises(fagen.Error, match=r"last_page_len has shape \[1\]; it is \[2\]"):
        wrapper.plan(torch.tensor([0, 1, 2]), indices, last, 4, 2, 64, 8)
    wrapper.plan(indptr, indices, last, 4, 2, 64, 8)
    with pytest.raises(fagen.Error, match=r"q has \[1, 4, 32\]; the plan is of 4 heads of 64 columns"):
        wrapper.run(batch.q[..., :32], batch[1:3])
    with pytest.raises(fagen.Unsupported, match="sinks is a"):
        wrapper.run(batch.q, batch[1:3], sinks=torch.zeros(4))
    with pytest.raises(fagen.Unsupported, match="a scale is a"):
        wrapper.run(batch.q, batch[1:3], k_scale=torch.ones(1))
    for given, words in (((batch.q, batch.k_cache), "paged_kv_cache is a"), ((batch.q, None), "paged_kv_cache is None"), ((None, batch[1:3]), "q is None")):
        with pytest.raises(fagen.Error, match=words):
            wrapper.run(*given)
    for options, words in (({"out": torch.zeros(2, 4, 64).half()}, r"out is .*; it is a tensor \[1, 4, 64\]"), ({"lse": torch.zeros(3), "return_lse": True}, r"lse is .*; it is a tensor \[1, 4\]")):
        with pytest.raises(fagen.Error, match=words):
            wrapper.run(batch.q, batch[1:3], **options)
    wrapper = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(WORKSPACE, *[torch.empty(20, dtype=torch.int32)] * 3)
    for wrapper.max_sequence_kv in (0, "a", 2.5):
        with pytest.raises(fagen.Error, match="max_sequence_kv is .*; it is a whole number, 1 or more, or None"):
            wrapper.plan(indptr, indices, last, 4, 2, 64, 8)
