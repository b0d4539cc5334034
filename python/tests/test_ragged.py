# fagen: packed sequences by the ready programs of ragged batches, on the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os

import pytest
import torch

import fagen
from fagen import _ragged, _torch_programs
from fagen import flash_attn as fa2
from fagen import flash_attn_interface as fa3
from emulated_programs import emulate
from torch_emulated import LIBRARY

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    fagen.stats(reset=True)
    yield
    _torch_programs.set_emulator(None)


def draw(rows, keys, heads=2, kv_heads=1, head_dim=64, dtype=torch.float16):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(n, of, head_dim, generator=generator).to(dtype) for n, of in ((rows, heads), (keys, kv_heads), (keys, kv_heads))]


def held(starts, total):
    """Offsets that decrease count as the largest before them, and none leads outside."""
    found = []
    for start in starts:
        found.append(max([min(max(start, 0), total), *found]))
    return found


def expected(q, k, v, starts_q, starts_k, used_q=None, used_k=None, causal=True):
    """O and LSE in float64: 0 and -inf in rows of nobody."""
    o, lse = torch.zeros(q.shape, dtype=torch.float64), torch.full((q.shape[1], q.shape[0]), -math.inf, dtype=torch.float64)
    begins_q, begins_k = held(starts_q, len(q)), held(starts_k, len(k))
    for i in range(len(starts_q) - 1):
        a, c = begins_q[i], begins_k[i]
        b, d = (at + min(max(length if used is None else used[i], 0), length)
                for at, length, used in ((a, begins_q[i + 1] - a, used_q), (c, begins_k[i + 1] - c, used_k)))
        keys, values = (t[c:d].double().repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q[a:b].double(), keys) * q.shape[2] ** -0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(b - a, d - c, dtype=torch.bool).tril((d - c) - (b - a)), -math.inf)
        lse[:, a:b] = torch.logsumexp(scores, -1)
        o[a:b] = torch.einsum("hqk,khd->qhd", torch.exp(scores - lse[:, a:b].nan_to_num(neginf=0)[..., None]), values)
    return o, lse


def assert_near(got, wanted, dtype=torch.float16):
    near = 2e-3 if dtype == torch.float16 else 1.6e-2
    torch.testing.assert_close(got[0].double(), wanted[0], atol=near, rtol=near)
    torch.testing.assert_close(got[1].double(), wanted[1], atol=1e-4, rtol=1e-4)


def computed(calls=1):
    return fagen.stats()["computed"] == {"flash_attn_varlen_func": calls} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_each_program(dtype, head_dim, causal):
    """Empty sequences, rows without a key, single rows, and more tokens than offsets cover."""
    starts_q, starts_k = [0, 90, 90, 218, 219], [0, 150, 190, 318, 350]
    q, k, v = draw(224, 360, head_dim=head_dim, dtype=dtype)
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, torch.tensor(starts_q).int(), torch.tensor(starts_k).int(), 128, 150, causal=causal,
                                           return_attn_probs=True)
    assert_near((o, lse), expected(q, k, v, starts_q, starts_k, causal=causal), dtype)
    assert not o[219:].any() and computed()


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_rows_that_nobody_uses(kind):
    """Before the first offset, after the last and after what a sequence uses; what lies there may be NaN."""
    starts_q, starts_k, used_q, used_k = [2, 5, 25, 25, 162], [1, 6, 26, 30, 251], [2, 20, 0, 130], [5, 11, 4, 200]
    q, k, v = draw(170, 260)
    wanted = expected(q, k, v, starts_q, starts_k, used_q, used_k)
    for tensor, starts, used in ((q, starts_q, used_q), (k, starts_k, used_k), (v, starts_k, used_k)):
        nobodys = torch.ones(len(tensor), dtype=torch.bool)
        for a, n in zip(starts, used):
            nobodys[a:a + n] = False
        tensor[nobodys] = math.nan
    starts_q, starts_k, used_q, used_k = (torch.tensor(t, dtype=kind) for t in (starts_q, starts_k, used_q, used_k))
    got = fa3.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 140, 240, seqused_q=used_q, seqused_k=used_k, causal=True, return_attn_probs=True)
    assert_near(got, wanted)
    assert computed()


@pytest.mark.parametrize("starts_q, starts_k", [([0, 10, 5, 20], [0, 10, 5, 20]), ([-7, 10, 99, 20], [5, 4, 3, 2]), ([20, 10, 5, 0], [-(2 ** 31), 2 ** 31 - 1, 7, 7])])
def test_offsets_that_decrease_or_lead_outside(starts_q, starts_k):
    q, k, v = draw(20, 40)
    got = fa2.flash_attn_varlen_func(q, k, v, torch.tensor(starts_q).int(), torch.tensor(starts_k).int(), 20, 40, causal=True, return_attn_probs=True)
    assert_near(got, expected(q, k, v, starts_q, starts_k))
    assert computed()


def test_many_sequences():
    """More than a warp looks at together, of which most are empty."""
    lengths = [0] * 300
    for i, n in ((0, 3), (31, 1), (127, 130), (128, 1), (129, 2), (255, 4), (256, 1), (299, 5)):
        lengths[i] = n
    starts = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    q, k, v = draw(starts[-1], starts[-1])
    at = torch.tensor(starts).int()
    assert_near(fa2.flash_attn_varlen_func(q, k, v, at, at, 130, 130, causal=True, return_attn_probs=True), expected(q, k, v, starts, starts))


def test_sequences_of_many_tiles():
    """Which are drawn by how many keys they visit; each is there once."""
    starts = [0, 1100, 1105, 1705, 1705]
    q, k, v = draw(1850, 1705, heads=1)
    at = torch.tensor(starts).int()
    assert_near(fa2.flash_attn_varlen_func(q, k, v, at, at, 1100, 1100, causal=True, return_attn_probs=True), expected(q, k, v, starts, starts))


def test_strides_scales_and_masks_that_are_none():
    q, k, v = draw(40, 40, heads=2, kv_heads=2)
    packed, starts = torch.stack([q, k, v], 1), [0, 10, 40]
    at = torch.tensor(starts).int()
    for window, causal in (((-1, 0), True), ((-1, -1), False)):
        got = fa2.flash_attn_varlen_func(*packed.unbind(1), at, at, 30, 30, window_size=window, return_attn_probs=True)
        assert_near(got, expected(q, k, v, starts, starts, causal=causal))
    odd = torch.randn(40, 2, 67).half()[..., :64]
    o = fa2.flash_attn_varlen_func(odd, k, v, at, at, 30, 30, softmax_scale=-0.25)
    assert_near((o, expected(-odd * 2, k, v, starts, starts, causal=False)[1]), expected(-odd * 2, k, v, starts, starts, causal=False))
    assert computed(3)


def test_compiled_graphs_have_it_whole():
    q, k, v = draw(40, 40)
    at = torch.tensor([0, 10, 40]).int()

    def double(q, k, v, at):
        return fa2.flash_attn_varlen_func(q, k, v, at, at, 30, 30, causal=True) * 2
    assert torch.equal(torch.compile(double, fullgraph=True, backend="aot_eager")(q, k, v, at), double(q, k, v, at))


@pytest.mark.parametrize("change, reason", [
    (dict(q=torch.zeros(4, 2, 96).half()), "these head dims"), (dict(q=torch.zeros(4, 2, 64).half().requires_grad_()), "no gradient"),
    (dict(q=torch.zeros(4, 3, 64).half(), k=torch.zeros(4, 2, 64).half()), "no sequences, rows or keys"),
    (dict(k=torch.zeros(0, 1, 64).half(), v=torch.zeros(0, 1, 64).half()), "no sequences, rows or keys"),
    (dict(v=torch.zeros(5, 1, 64).half()), "k and v differ")])
def test_what_the_programs_do_not_compute(change, reason):
    call = {**dict(zip("qkv", draw(4, 4))), **change}
    assert reason in _ragged.why_not(*(call[name] for name in "qkv"), 1, True)


def test_without_the_emulator_or_hopper():
    _torch_programs.set_emulator(None)
    assert "is for Hopper" in _ragged.why_not(*draw(4, 4), 1, True)
