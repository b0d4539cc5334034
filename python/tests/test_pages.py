# fagen: caches in pages, read where they lie by programs of the package, against float64; by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os

import pytest
import torch

import fagen
import fagen.flash_attn as fa2
import fagen.flash_attn_interface as fa3
from fagen import _paged, _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)

MOST = 2 ** 31 - 1


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    _torch_programs.set_emulator(emulate(LIBRARY, 80))
    for module in (fa2, fa3):
        monkeypatch.setattr(module, "fallback", "error")  # nothing else may compute
    fagen.stats(reset=True)
    yield
    _torch_programs.set_emulator(None)


def drawn(lengths, page, *, rows=1, heads=4, kv_heads=2, dim=64, dtype=torch.float16, spare=2, heads_first=False, seed=3):
    """q, pools whose unused rows are NaN, a table whose unused entries are hostile, and caches by sequence."""
    draw = torch.Generator().manual_seed(seed)
    def normal(*shape):
        return torch.randn(*shape, generator=draw).to(dtype)
    q = normal(len(lengths), rows, heads, dim)
    columns = max(1, max(-(-n // page) for n in lengths)) + 1
    pages = sum(-(-n // page) for n in lengths) + spare
    order = torch.randperm(pages, generator=draw).tolist()
    hostile = torch.tensor([-1, pages, MOST, -MOST - 1])
    table = hostile[torch.randint(0, 4, (len(lengths), columns), generator=draw)].int()
    shape = (pages, kv_heads, page, dim) if heads_first else (pages, page, kv_heads, dim)
    pools = [torch.full(shape, math.nan, dtype=dtype) for _ in range(2)]
    if heads_first:
        pools = [pool.transpose(1, 2) for pool in pools]
    caches = [[normal(n, kv_heads, dim) for n in lengths] for _ in range(2)]
    for b, n in enumerate(lengths):
        for j in range(-(-n // page)):
            table[b, j] = order.pop()
            for pool, cache in zip(pools, caches):
                pool[table[b, j], :min(page, n - j * page)] = cache[b][j * page:(j + 1) * page]
    return q, pools, table, caches


def expected(q, caches, causal=False, window=(-1, -1), scale=None):
    """O and LSE in float64."""
    results = []
    for b, (k, v) in enumerate(zip(*caches)):
        one, k, v = (t.double().transpose(0, 1) for t in (q[b], k, v))
        k, v = (t.repeat_interleave(one.shape[0] // k.shape[0], 0) for t in (k, v))
        place, key = torch.arange(one.shape[1])[:, None] + k.shape[1] - one.shape[1], torch.arange(k.shape[1])[None]
        left, right = (side if side >= 0 else MOST for side in window)
        seen = (key >= place - left) & (key <= place + (0 if causal else right))
        scores = (one @ k.transpose(1, 2) * (one.shape[-1] ** -0.5 if scale is None else scale)).masked_fill(~seen, -math.inf)
        sums = torch.logsumexp(scores, -1) if k.shape[1] else torch.full(one.shape[:2], -math.inf).double()
        results.append(((torch.exp(scores - sums.masked_fill(sums == -math.inf, 0)[..., None]) @ v).transpose(0, 1), sums))
    return [torch.stack(parts) for parts in zip(*results)]


def assert_right(got, wanted):
    (o, lse), (o_wanted, lse_wanted) = got, wanted
    bound = 2e-3 if o.dtype == torch.float16 else 1.6e-2
    torch.testing.assert_close(o.double(), o_wanted, atol=bound, rtol=bound)
    if lse is not None:
        torch.testing.assert_close(lse.double(), lse_wanted, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("page", [1, 5, 16, 64, 256])
@pytest.mark.parametrize("rows, causal", [(1, True), (3, True), (2, False)])
def test_pages_of_any_size(page, rows, causal):
    q, pools, table, caches = drawn([70, 1, 0, 131], page, rows=rows)
    got = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([70, 1, 0, 131], dtype=torch.int32), block_table=table,
                                      causal=causal, return_softmax_lse=True)
    assert_right(got, expected(q, caches, causal))
    assert fagen.stats()["computed"] == {"flash_attn_with_kvcache": 1} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [64, 96, 128, 192, 256])
def test_types_head_dims_and_layouts(dtype, dim):
    q, pools, table, caches = drawn([90, 33], 16, rows=2, heads=6, kv_heads=2, dim=dim, dtype=dtype, heads_first=dim % 128 != 0)
    got = fa3.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([90, 33]), page_table=table.long(), causal=True,
                                      return_softmax_lse=True, softmax_scale=-0.2)
    assert_right(got, expected(q, caches, True, scale=-0.2))


@pytest.mark.parametrize("heads, kv_heads, rows", [(4, 4, 1), (8, 1, 1), (20, 1, 1), (4, 1, 16)])
def test_heads_that_share_keys(heads, kv_heads, rows):
    q, pools, table, caches = drawn([130], 7, rows=rows, heads=heads, kv_heads=kv_heads)
    got = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([130]), block_table=table, causal=True, return_softmax_lse=True)
    assert_right(got, expected(q, caches, True))


@pytest.mark.parametrize("window", [(20, 0), (3, 5), (-1, 2), (0, -1)])
def test_windows(window):
    q, pools, table, caches = drawn([150, 40], 16, rows=4)
    got = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([150, 40]), block_table=table, window_size=window,
                                      return_softmax_lse=True)
    assert_right(got, expected(q, caches, window=window))


def test_tiles_that_all_rows_see_begin_and_end_where_they_should():
    """Masks are left out there: lengths put the borders at those of tiles, and one key before and after."""
    lengths = [129, 130, 131, 65, 66, 67, 85, 86, 87]
    q, pools, table, caches = drawn(lengths, 16, rows=3, heads=2, kv_heads=2)
    for window in ((-1, 0), (20, 0), (1, 1), (65, 0)):
        got = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor(lengths), block_table=table, window_size=window,
                                          return_softmax_lse=True)
        assert_right(got, expected(q, caches, window=window))


@pytest.mark.parametrize("splits", [1, 3, 64])
def test_splits(monkeypatch, splits):
    monkeypatch.setattr(_paged, "_splits", lambda *_: splits)
    q, pools, table, caches = drawn([200, 5], 8, rows=2)
    got = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([200, 5]), block_table=table, causal=True, return_softmax_lse=True)
    assert_right(got, expected(q, caches, True))


def test_new_keys_and_batches_of_a_cache():
    q, pools, table, caches = drawn([30, 9], 8, rows=2)
    for b, n in ((0, 30), (1, 9)):  # room for the new ones
        table[b, n // 8 + (n % 8 == 0)] = table[b, n // 8] if n % 8 else len(pools[0]) - 1
    new = [torch.randn(2, 2, 2, 64).half() for _ in range(2)]
    got = fa2.flash_attn_with_kvcache(q, *pools, *new, cache_seqlens=torch.tensor([30, 9]), block_table=table, causal=True, return_softmax_lse=True)
    assert_right(got, expected(q, [[torch.cat(pair) for pair in zip(cache, rows)] for cache, rows in zip(caches, new)], True))
    q, k, v = torch.randn(3, 1, 4, 64).half(), torch.randn(3, 32, 2, 64).half(), torch.randn(3, 32, 2, 64).half()
    o = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=torch.tensor([9, 9, 9]), cache_batch_idx=torch.tensor([2, -1, 3]))
    assert_right((o[:1], None), expected(q[:1], ([k[2, :9]], [v[2, :9]])))
    assert not o[1:].any()


@pytest.mark.parametrize("length", [MOST, 200, -1, -MOST - 1])
def test_lengths_and_pages_that_are_not_there(length):
    """Nothing outside of the tensors is read: the emulator would say so. Pages are held to the first and the last one."""
    q, pools, table, _ = drawn([40], 8)
    for pool in pools:
        pool.nan_to_num_()
    hostile = torch.tensor([[-1, MOST, -MOST - 1, len(pools[0]), 0, 1]], dtype=torch.int32)
    o, lse = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=torch.tensor([length]), block_table=hostile, return_softmax_lse=True)
    held = [[pool[hostile[0].clamp(0, len(pool) - 1)].flatten(0, 1)[:max(0, min(length, 48))]] for pool in pools]
    assert_right((o, lse), expected(q, held))


@pytest.mark.parametrize("change, words", [
    (lambda q, pools: {"softcap": 30.0}, "no dropout, softcap or ALiBi"),
    (lambda q, pools: {"softmax_scale": 0}, "scale is 0, and programs take another"),
    (lambda q, pools: {"q": q.repeat(1, 17, 1, 1)}, "q has 17 rows for a sequence; programs take 1 to 16"),
    (lambda q, pools: {"k_cache": pools[0][..., 1:33], "v_cache": pools[1][..., 1:33], "q": q[..., :32]}, "head_dim is 32"),
    (lambda q, pools: {"q": torch.randn(2, 1, 4, 66).half()[..., :64]}, "multiples of 16 bytes"),
])
def test_what_programs_do_not_take(change, words):
    q, pools, table, _ = drawn([30, 9], 8)
    with pytest.raises(fagen.Unsupported, match=words):
        fa2.flash_attn_with_kvcache(**{"q": q, "k_cache": pools[0], "v_cache": pools[1], "cache_seqlens": torch.tensor([30, 9]), "block_table": table,
                                       **change(q, pools)})


def test_nothing_is_read_by_the_host(monkeypatch):
    q, pools, table, caches = drawn([70, 3], 16)
    lengths = torch.tensor([70, 3], dtype=torch.int32)
    def refuse(*_):
        raise AssertionError("a tensor is read by the host")
    with monkeypatch.context() as patched:
        for name in ("tolist", "item", "__bool__", "__int__", "__float__", "__index__"):
            patched.setattr(torch.Tensor, name, refuse)
        o = fa2.flash_attn_with_kvcache(q, *pools, cache_seqlens=lengths, block_table=table)
    assert_right((o, None), expected(q, caches))


def test_few_parts_of_small_caches(monkeypatch):
    """A part takes time to merge: of one sequence of 8192 keys each multiprocessor has one, of longer ones two."""
    monkeypatch.setattr(_paged, "_sms_of", lambda _: 132)
    of_key = 2 * 128 * 2
    splits = {(tiles, keys): _paged._splits(tiles, keys, None, of_key) for tiles, keys in ((8, 8192), (8, 32768), (8, 640), (32, 4096), (128, 8192), (1000, 8192))}
    assert splits == {(8, 8192): 16, (8, 32768): 33, (8, 640): 10, (32, 4096): 8, (128, 8192): 2, (1000, 8192): 1}


@pytest.mark.parametrize("change, words", [
    ({"cache_seqlens": [40, 33]}, None), ({"cache_seqlens": [40, 70]}, r"cache_seqlens\[1\] is 70; the cache, less new keys, has 48"),
    ({"cache_seqlens": [-1, 9]}, r"cache_seqlens\[0\] is -1"), ({"block_table": (1, 4, 99)}, r"the page table\[1, 4\] is 99; there are 12 pages"),
])
def test_a_checking_call_names_the_wrong_entry(monkeypatch, change, words):
    monkeypatch.setattr(fagen.torch, "_checks", True)
    q, pools, table, _ = drawn([40, 33], 8)
    given = {"cache_seqlens": torch.tensor(change.get("cache_seqlens", [40, 33])), "block_table": table}
    if "block_table" in change:
        table[change["block_table"][:2]] = change["block_table"][2]
    if words is None:
        fa2.flash_attn_with_kvcache(q, *pools, **given)
        return
    with pytest.raises(fagen.Error, match=words):
        fa2.flash_attn_with_kvcache(q, *pools, **given)


@pytest.mark.parametrize("offsets, used, words", [
    ([0, 9, 5], None, r"cu_seqlens_q\[2\] is 5, less than cu_seqlens_q\[1\], 9"), ([0, 9, 31], None, r"cu_seqlens_q\[2\] is 31; there are 20 rows"),
    ([0, 9, 20], [9, 12], r"seqused_q\[1\] is 12; the sequence has 11"),
])
def test_a_checking_call_names_the_wrong_offset(monkeypatch, offsets, used, words):
    monkeypatch.setattr(fagen.torch, "_checks", True)
    q, k = torch.randn(20, 4, 64).half(), torch.randn(20, 2, 64).half()
    with pytest.raises(fagen.Error, match=words):
        fa3.flash_attn_varlen_func(q, k, k, torch.tensor(offsets), torch.tensor([0, 9, 20]), 11, 11, seqused_q=None if used is None else torch.tensor(used))
