# fagen: decoding with latent keys in pages, by programs of the package, against float64; by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os

import pytest
import torch

import fagen
from fagen import _mla, _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)

MOST = 2 ** 31 - 1


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    fagen.stats(reset=True)
    yield
    _torch_programs.set_emulator(None)


def drawn(lengths, page, *, rows=1, heads=8, dtype=torch.bfloat16, spare=2, seed=3):
    """q, a pool whose unused rows are NaN, a table whose unused entries are hostile, and keys by sequence."""
    draw = torch.Generator().manual_seed(seed)
    def normal(*shape):
        return torch.randn(*shape, generator=draw).to(dtype)
    q = normal(len(lengths), rows, heads, 576)
    pages = sum(-(-n // page) for n in lengths) + spare
    order = torch.randperm(pages, generator=draw).tolist()
    hostile = torch.tensor([-1, pages, MOST, -MOST - 1])
    table = hostile[torch.randint(0, 4, (len(lengths), max(-(-n // page) for n in lengths) + 1), generator=draw)].int()
    pool = torch.full((pages, page, 1, 576), math.nan, dtype=dtype)
    keys = [normal(n, 576) for n in lengths]
    for b, n in enumerate(lengths):
        for j in range(-(-n // page)):
            table[b, j] = order.pop()
            pool[table[b, j], :min(page, n - j * page), 0] = keys[b][j * page:(j + 1) * page]
    return q, pool, table, keys


def expected(q, keys, causal=False, scale=None):
    """O and LSE in float64."""
    results = []
    for one, k in zip(q.double().transpose(1, 2), (k.double() for k in keys)):
        place, key = torch.arange(one.shape[1])[:, None] + len(k) - one.shape[1], torch.arange(len(k))[None]
        scores = (one @ k.T * (576 ** -0.5 if scale is None else scale)).masked_fill((key > place) & causal, -math.inf)
        sums = torch.logsumexp(scores, -1) if len(k) else torch.full(one.shape[:2], -math.inf).double()
        results.append(((torch.exp(scores - sums.masked_fill(sums == -math.inf, 0)[..., None]) @ k[:, :512]).transpose(0, 1), sums))
    return [torch.stack(parts) for parts in zip(*results)]


def assert_right(got, wanted):
    (o, lse), (o_wanted, lse_wanted) = got, wanted
    bound = 2e-3 if o.dtype == torch.float16 else 1.6e-2
    torch.testing.assert_close(o.double(), o_wanted, atol=bound, rtol=bound)
    torch.testing.assert_close(lse.double(), lse_wanted, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("page", [1, 7, 64])
@pytest.mark.parametrize("heads, rows, causal", [(8, 1, False), (16, 3, True), (128, 1, True)])
def test_pages_heads_and_rows(page, heads, rows, causal):
    lengths = [70, 1, 0, 129]
    q, pool, table, keys = drawn(lengths, page, rows=rows, heads=heads)
    assert_right(fagen.mla_decode(q, pool, table, torch.tensor(lengths, dtype=torch.int32), causal=causal), expected(q, keys, causal))
    assert fagen.stats()["computed"] == {"mla_decode": 1}


@pytest.mark.parametrize("splits", [1, 3, 64])
def test_splits(monkeypatch, splits):
    monkeypatch.setattr(_mla, "_splits", lambda *_: splits)
    q, pool, table, keys = drawn([300, 5], 16, rows=2, dtype=torch.float16)
    assert_right(fagen.mla_decode(q, pool, table, torch.tensor([300, 5]), softmax_scale=-0.05, causal=True), expected(q, keys, True, -0.05))


def test_borders_of_tiles():
    """Masks are left out of tiles that all rows see: lengths put the borders at those of tiles, and one key before and after."""
    lengths = [63, 64, 65, 66, 127, 128, 129, 130]
    q, pool, table, keys = drawn(lengths, 32, rows=3, heads=4)
    assert_right(fagen.mla_decode(q, pool, table, torch.tensor(lengths), causal=True), expected(q, keys, True))


def test_caches_without_a_table_and_strides():
    cache = torch.randn(2, 90, 1, 640).bfloat16()[..., :576]
    q = torch.randn(2, 8, 1, 576).bfloat16().transpose(1, 2)
    assert_right(fagen.mla_decode(q, cache, None, torch.tensor([90, 17])), expected(q, [cache[0, :, 0], cache[1, :17, 0]]))


@pytest.mark.parametrize("length", [MOST, 200, -1, -MOST - 1])
def test_lengths_and_pages_that_are_not_there(length):
    """Nothing outside of the tensors is read: the emulator would say so. Pages are held to the first and the last one."""
    q, pool, _, _ = drawn([40], 8)
    pool.nan_to_num_()
    hostile = torch.tensor([[-1, MOST, -MOST - 1, len(pool), 0, 1]], dtype=torch.int32)
    held = pool[hostile[0].clamp(0, len(pool) - 1)].flatten(0, 2)[:max(0, min(length, 48))]
    assert_right(fagen.mla_decode(q, pool, hostile, torch.tensor([length])), expected(q, [held]))


@pytest.mark.parametrize("error, change, words", [
    (fagen.Error, {"q": torch.zeros(2, 1, 8, 512)}, "q has 512 columns; it is .*: 512 latent ones and 64 rotated"),
    (fagen.Error, {"k_cache": torch.zeros(9, 8, 2, 576).bfloat16()}, "k_cache has 2 heads; all query heads share one"),
    (fagen.Error, {"head_dim_v": 576}, "head_dim_v is 576; V is the first 512 columns of 576"),
    (fagen.Error, {"k_cache": torch.zeros(9, 8, 1, 576)}, "k_cache is torch.float32 on cpu, q torch.bfloat16 on cpu; both are alike"),
    (fagen.Error, {"block_table": None}, "k_cache has 9 sequences, q has 2; without a block_table they are as many"),
    (fagen.Error, {"cache_seqlens": torch.tensor([3])}, r"cache_seqlens has shape \[1\]; it is \[2\]"),
    (fagen.Error, {"block_table": torch.zeros(2, 3)}, "block_table is .*; it is a tensor of int32 or int64"),
    (fagen.Unsupported, {"softmax_scale": 0}, "softmax_scale is 0, and the program takes another"),
    (fagen.Unsupported, {"q": torch.zeros(2, 1, 8, 577).bfloat16()[..., 1:]}, "multiples of 16 bytes"),
    (fagen.Unsupported, {"q": torch.zeros(2, 0, 8, 576).bfloat16()}, "rows is 0; programs take 1 to 1024"),
])
def test_what_it_does_not_take(error, change, words):
    call = {"q": torch.zeros(2, 1, 8, 576).bfloat16(), "k_cache": torch.zeros(9, 8, 1, 576).bfloat16(),
            "block_table": torch.zeros(2, 3, dtype=torch.int32), "cache_seqlens": torch.tensor([3, 4])}
    with pytest.raises(error, match=words):
        fagen.mla_decode(**{**call, **change})


def test_nothing_is_read_by_the_host(monkeypatch):
    q, pool, table, keys = drawn([70, 3], 16)
    lengths = torch.tensor([70, 3], dtype=torch.int32)
    def refuse(*_):
        raise AssertionError("a tensor is read by the host")
    with monkeypatch.context() as patched:
        for name in ("tolist", "item", "__bool__", "__int__", "__float__", "__index__"):
            patched.setattr(torch.Tensor, name, refuse)
        got = fagen.mla_decode(q, pool, table, lengths)
    assert_right(got, expected(q, keys))


def test_splits_fill_the_gpu(monkeypatch):
    monkeypatch.setattr(_mla, "_sms_of", lambda _: 132)
    assert [_mla._splits(tiles, 8192, None) for tiles in (1, 16, 64, 132, 1000)] == [45, 8, 2, 1, 1]
