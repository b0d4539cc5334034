# fagen: keys and values of float8 next to queries of 16 bits: bits, descales, caches, and what is refused.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math

import pytest
import torch

import fagen
import fagen.flash_attn as fa2
import fagen.flash_attn_interface as fa3
from fagen import _lib
from torch_emulated import assert_near, emulating, reference, tensors, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
E4M3 = torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def kernels():
    fagen.stats(reset=True)
    with emulating(_lib.path("kernels", "fp8"), 89):
        yield


def bytes_of(q, k, v, kind=E4M3):
    return q, k.to(kind), v.to(kind)


def scales(batch, heads, seed):
    """Powers of two: products with them are exact."""
    draw = torch.Generator().manual_seed(seed)
    return torch.exp2(torch.randint(-3, 3, (batch, heads), generator=draw).float())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq_q", [1, 40])
def test_values(causal, seq_q):
    q, k, v = bytes_of(*tensors(2, 4, 2, seq_q, 70))
    o, lse = fagen.attention(q, k, v, causal=causal, return_lse=True)
    wanted, sums = reference(q, k.half(), v.half(), causal)
    assert o.dtype == torch.float16
    assert_near(o, wanted)
    torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)


def test_bits_of_16_bit_keys():
    """The kernel of 16 bits with the same schedule, on what the bytes hold; k_descale as scale, v_descale as a factor of O."""
    def compiled(kv):
        return fagen.compile(f"""target sm_89;
            form scaled {{ param k_descale: f32[batch, kv_heads] in [0.001, 1000]; param v_descale: f32[batch, kv_heads] in [0.001, 1000];
              score = s * k_descale[b, hk]; v_scale = v_descale[b, hk]; mask = k <= p; }}
            kernel twin {{
              problem {{ dtype = f16; {kv} head_dim = 64; form = [causal, scaled]; }}
              schedule {{ tile = 32 x 64; warps = 2; mma = mma_sync; copy = cp_async; stages = 2; }} }}""")
    q, k, v = bytes_of(*tensors(1, 2, 1, 33, 70))
    two = torch.full((1, 1), 2.0)
    results = []
    for kernels, keys, values in ((compiled("kv_dtype = e4m3;"), k, v), (compiled(""), k.half(), v.half())):
        with emulating(kernels._directories[0], 89):
            results.append(fagen.attention(q, keys, values, causal=True, scale=0.25, return_lse=True, kernels=kernels))
            scaled = fagen.attention(q, keys, values, form="scaled", k_descale=two, v_descale=4 * two, scale=0.125, kernels=kernels)
            assert torch.equal(scaled, 8 * results[-1][0])
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])


def test_descales():
    q, k, v = bytes_of(*tensors(2, 4, 2, 5, 70))
    q_descale, k_descale, v_descale = (scales(2, 2, seed) for seed in range(3))
    o, lse = fa3.flash_attn_func(q, k, v, causal=True, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale, return_attn_probs=True)
    wanted, sums = reference(q, k.double() * (q_descale * k_descale)[:, None, :, None], v.double() * v_descale[:, None, :, None], True)
    assert_near(o / 4, wanted / 4)
    torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)
    alone = fa3.flash_attn_func(q, k, v, v_descale=v_descale)
    assert_near(alone / 4, reference(q, k.double(), v.double() * v_descale[:, None, :, None])[0] / 4)
    assert not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("window", [(-1, -1), (10, 0), (7, 3)])
def test_cache_of_lengths(window, monkeypatch):
    monkeypatch.setattr(fa3, "fallback", "error")
    q, k, v = bytes_of(*tensors(3, 4, 2, 2, 80))
    used = torch.tensor([80, 0, 33], dtype=torch.int32)
    k_descale, v_descale = scales(3, 2, 4), scales(3, 2, 5)
    o, lse = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=used, causal=True, window_size=window, k_descale=k_descale, v_descale=v_descale,
                                         return_softmax_lse=True)
    for b, n in enumerate(used.tolist()):
        if n == 0:
            assert not o[b].any() and (lse[b] == -math.inf).all()
            continue
        keys, values = (t[b:b + 1, :n].double() * s[b:b + 1, None, :, None] for t, s in ((k, k_descale), (v, v_descale)))
        begin = [max(0, n - 2 + row - window[0]) if window[0] >= 0 else 0 for row in range(2)]
        for row in range(2):
            end = n - 1 + row
            wanted, sums = reference(q[b:b + 1, row:row + 1], keys[:, begin[row]:end], values[:, begin[row]:end])
            assert_near(o[b:b + 1, row:row + 1] / 8, wanted / 8)
            torch.testing.assert_close(lse[b:b + 1, :, row:row + 1].double(), sums, atol=1e-4, rtol=1e-4)


def test_rows_are_put_into_a_cache_of_pages(monkeypatch):
    monkeypatch.setattr(fa3, "fallback", "torch")
    q, k, v = bytes_of(*tensors(2, 2, 1, 1, 64))
    table = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32)
    pages = [torch.zeros(4, 32, 1, 64).to(E4M3) for _ in range(2)]
    for cache, rows in zip(pages, (k, v)):
        for b in range(2):
            for page in range(2):
                cache.view(torch.uint8)[table[b, page]] = rows.view(torch.uint8)[b, 32 * page:32 * page + 32]
    used = torch.tensor([40, 63], dtype=torch.int32)
    o = fa3.flash_attn_with_kvcache(q, *pages, k[:, :1], v[:, :1], cache_seqlens=used, page_table=table)
    for b, n in enumerate(used.tolist()):
        keys, values = (torch.cat([t[b:b + 1, :n].float(), t[b:b + 1, :1].float()], 1) for t in (k, v))
        assert_near(o[b:b + 1], reference(q[b:b + 1], keys, values)[0])


def test_what_no_kernel_computes_is_dequantised(monkeypatch):
    monkeypatch.setattr(fa3, "fallback", "torch")
    q, k, v = bytes_of(*tensors(1, 2, 1, 4, 20))
    k_descale, v_descale = scales(1, 1, 1), scales(1, 1, 2)
    with emulating(_lib.path("kernels", "l4_fp16")):
        o = fa3.flash_attn_func(q, k, v, k_descale=k_descale, v_descale=v_descale)
    assert_near(o / 4, reference(q, k.double() * k_descale[:, None, :, None], v.double() * v_descale[:, None, :, None])[0] / 4)


def test_refusals():
    q, k, v = bytes_of(*tensors(2, 4, 2, 5, 70))
    one = torch.ones(2, 2)
    with pytest.raises(fagen.Error, match="k and v of float8 are of one type"):
        fagen.attention(q, k, v.half())
    with pytest.raises(fagen.Unsupported, match="k_descale: it goes with k and v of float8; k is of torch.float16"):
        fa3.flash_attn_func(q, k.half(), v.half(), k_descale=one)
    with pytest.raises(fagen.ArgumentError, match=r"v_descale is a tensor of torch.float32 on cpu; it is float32 on cpu, of shape \(2, 2\)"):
        fa3.flash_attn_func(q, k, v, v_descale=one[:1])
    with pytest.raises(fagen.Unsupported, match="a gradient, which there is none of with keys of torch.float8_e4m3fn"):
        fagen.attention(q.requires_grad_(), k, v)
    with pytest.raises(fagen.ArgumentError, match="quantise what is put there"):
        fa3.flash_attn_with_kvcache(q.detach(), k, v, k.half()[:, :1], v.half()[:, :1], cache_seqlens=3)
    with pytest.raises(fagen.Unsupported, match="packed sequences are of float16 and bfloat16"):
        fa2.flash_attn_varlen_func(q[0].detach(), k[0], v[0], torch.tensor([0, 5]), torch.tensor([0, 70]), 5, 70)
    with pytest.raises(RuntimeError, match="dtype"):  # PyTorch's own words
        torch.nn.functional.scaled_dot_product_attention(q.detach().transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))


def test_plan():
    q, k, v = bytes_of(*tensors(1, 2, 1, 1, 64))
    out = torch.empty_like(q)
    fagen.plan(q, k, v)(q, k, v, out)
    assert_near(out, reference(q, k.half(), v.half())[0])
