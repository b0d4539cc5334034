# fagen: attention of q, k and v of float8, and what makes such tensors, on the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math

import pytest
import torch

import fagen
import fagen.flash_attn_interface as fa3
from fagen import _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
E4M3 = torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def emulator():
    fagen.stats(reset=True)
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    yield
    _torch_programs.set_emulator(None)


def drawn(heads, kv_heads, rows, keys, head_dim, batch=1, mean=0.0):
    """q, k and v of e4m3 and their descales, [batch, rows, heads, head_dim]; V has a mean."""
    draw = torch.Generator().manual_seed(rows + keys)
    shapes = [(batch, n, h, head_dim) for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads))]
    tensors = [(torch.randn(shape, generator=draw) + m).to(E4M3) for shape, m in zip(shapes, (0.0, 0.0, mean))]
    return tensors, [torch.rand(batch, kv_heads, generator=draw) + 0.5 for _ in range(3)]


def exact(tensors, descales, causal, scale=None):
    """O and log-sum-exp in float64 of what the bytes hold, and O with P rounded as the kernel rounds it."""
    groups = tensors[0].shape[2] // tensors[1].shape[2]
    q, k, v = (t.double().transpose(1, 2) * d.double().repeat_interleave(t.shape[2] // d.shape[1], 1)[:, :, None, None]
               for t, d in zip(tensors, descales))
    k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        rows, keys = s.shape[-2:]
        s = s.masked_fill(torch.ones(rows, keys, dtype=torch.bool).triu(keys - rows + 1), -math.inf)
    top = s.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    p = (s - top).exp()
    sums = p.sum(-1, keepdim=True)
    o, rounded = (torch.where(sums > 0, each @ v / sums, 0.0).transpose(1, 2) for each in (p, (256 * p).float().to(E4M3).double() / 256))
    return o, (sums.log() + top)[..., 0], rounded


def assert_right(o, lse, tensors, descales, causal, scale=None):
    """Within twice the error that rounding P alone makes, and O's own rounding; without a bias."""
    wanted, sums, rounded = exact(tensors, descales, causal, scale)
    unit = 2.0 ** (-8 if o.dtype == torch.bfloat16 else -11)
    most = 2 * (rounded - wanted).abs().max() + 2 * unit * wanted.abs().max()
    assert (o.double() - wanted).abs().max() <= most
    bias, plain = ((each.double() * wanted).sum() / (wanted * wanted).sum() - 1 for each in (o, rounded))
    assert abs(bias) <= abs(plain) + 2 ** -8
    torch.testing.assert_close(lse.double(), sums, atol=2 ** -12 * 30, rtol=1e-4)


@pytest.mark.parametrize("head_dim, causal, rows, keys", [(64, True, 70, 200), (128, False, 20, 150), (64, True, 200, 72)])
def test_descales(head_dim, causal, rows, keys):
    tensors, descales = drawn(2, 1, rows, keys, head_dim, mean=1.0)
    o, lse = fa3.flash_attn_func(*tensors, causal=causal, q_descale=descales[0], k_descale=descales[1], v_descale=descales[2],
                                 return_attn_probs=True)
    assert o.dtype == torch.bfloat16 and o.shape == tensors[0].shape
    assert_right(o, lse, tensors, descales, causal)
    assert not fagen.stats()["fallbacks"]


def test_attention():
    tensors, descales = drawn(2, 2, 33, 130, 64, batch=2)
    ones = [torch.ones(2, 2)] * 3
    o, lse = fagen.attention(*tensors, return_lse=True, scale=0.2)
    assert_right(o, lse, tensors, ones, False, 0.2)
    heads_first = [t.transpose(1, 2).contiguous() for t in tensors]
    into = torch.empty(heads_first[0].shape, dtype=torch.float16)
    names = dict(zip(("q_descale", "k_descale", "v_descale"), descales))
    given, lse = fagen.attention(*heads_first, causal=True, layout="bhsd", return_lse=True, out=into, **names)
    assert given is into
    assert_right(into.transpose(1, 2), lse, tensors, descales, True)


def test_what_no_program_computes_is_dequantised(monkeypatch):
    monkeypatch.setattr(fa3, "fallback", "torch")
    tensors, descales = drawn(2, 1, 5, 40, 96)
    names = dict(zip(("q_descale", "k_descale", "v_descale"), descales))
    assert_right(*fa3.flash_attn_func(*tensors, return_attn_probs=True, **names), tensors, descales, False)
    assert any("head_dim 96" in reason for _, reason in fagen.stats()["fallbacks"])
    tensors, descales = drawn(2, 1, 5, 40, 64)
    o = fa3.flash_attn_func(*tensors, window_size=(3, 0))
    assert o.dtype == torch.bfloat16 and not o.isnan().any()


def test_refusals():
    tensors, descales = drawn(2, 1, 5, 40, 64)
    with pytest.raises(fagen.Unsupported, match="a scale of -1.0: with products of float8 it is above 0"):
        fagen.attention(*tensors, scale=-1.0)
    with pytest.raises(fagen.Unsupported, match="head_dim 32: products of float8 are of 64 and 128"):
        fagen.attention(*(t[..., :32] for t in tensors))
    with pytest.raises(fagen.Error, match="out is torch.float32 of .* it is torch.bfloat16"):
        fagen.attention(*tensors, out=torch.empty(tensors[0].shape))
    with pytest.raises(fagen.ArgumentError, match=r"k_descale is a tensor of torch.float32 on cpu; it is float32 on cpu, of shape \(1, 1\)"):
        fagen.attention(*tensors, k_descale=descales[1][0])
    with pytest.raises(fagen.Error, match="k is of torch.bfloat16, and q of torch.float8_e4m3fn"):
        fagen.attention(tensors[0], tensors[1].bfloat16(), tensors[2])
    _torch_programs.set_emulator(None)
    with pytest.raises(fagen.Unsupported, match="products of float8 need a GPU of compute capability 9.0"):
        fagen.attention(*tensors)


def test_quantize():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2, 7, 4, 64, generator=draw) * torch.tensor([1.0, 30.0, 1e-3, 0.0])[:, None]
    bytes_, descale = fagen.quantize(x)
    assert bytes_.dtype == E4M3 and descale.shape == (2, 4)
    torch.testing.assert_close(descale[:, :3], x.abs().amax((1, 3))[:, :3] / 448)
    assert (descale[:, 3] == 1).all()
    back = bytes_.float() * descale[:, None, :, None]
    assert ((back - x).abs() <= x.abs() / 16 + descale[:, None, :, None] * 2 ** -10).all()
    of_groups, shared = fagen.quantize(x, kv_heads=2)
    assert torch.equal(shared, x.abs().amax((1, 3)).view(2, 2, 2).amax(2) / 448)
    one, same = fagen.quantize(x.transpose(1, 2), "tensor", layout="bhsd")
    assert (same == x.abs().max() / 448).all() and one.shape == (2, 4, 7, 64)


@pytest.mark.parametrize("dtype", [E4M3, torch.float8_e5m2])
def test_quantize_what_is_not_finite(dtype):
    most = torch.finfo(dtype).max
    x = torch.tensor([math.nan, math.inf, -math.inf, 2.0, -8.0, 0.0, 8.0, 1e-9]).view(1, 1, 1, 8)
    bytes_, descale = fagen.quantize(x, dtype=dtype)
    assert descale.item() == pytest.approx(8 / most)
    values = bytes_.float().flatten()
    assert values[0].isnan() and values[1:3].tolist() == [most, -most] and values[6] == most and values[5] == 0 and values[4] == -most
    clipped, _ = fagen.quantize(x, dtype=dtype, amax=4.0)
    assert clipped.float().flatten()[4] == -most
    with pytest.raises(fagen.ArgumentError, match='scales is .row.; it is "head", "tensor" or "block"'):
        fagen.quantize(x, "row")
    with pytest.raises(fagen.ArgumentError, match="kv_heads is 3, which does not divide the 1 heads"):
        fagen.quantize(x, kv_heads=3)
    with pytest.raises(fagen.ArgumentError, match="x is a tensor of torch.int32"):
        fagen.quantize(x.nan_to_num().int())


def test_quantize_in_a_graph():
    x = torch.randn(1, 5, 2, 64, generator=torch.Generator().manual_seed(1)).bfloat16()
    for wanted, found in zip(fagen.quantize(x), torch.compile(fagen.quantize, fullgraph=True, backend="aot_eager")(x)):
        assert torch.equal(wanted.float(), found.float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("head_dim,shape,layout", [(64, (2, 150, 4), "bshd"), (128, (1, 3, 260), "bhsd"), (64, (1, 1, 2), "bshd")])
def test_programs_quantize_as_torch(dtype, head_dim, shape, layout):
    draw = torch.Generator().manual_seed(head_dim + shape[1])
    x = (torch.randn(*shape, head_dim, generator=draw) * torch.randn(*shape, 1, generator=draw).exp() ** 2).to(dtype)
    x.view(-1)[:7] = torch.tensor([math.nan, math.inf, -math.inf, 6e4, -0.0, 1e-7, -2e-5]).to(dtype)
    heads = shape[2 if layout == "bshd" else 1]
    mean = torch.randn(shape[0], heads, head_dim, generator=draw)
    calls = [{"scales": scales, "kv_heads": kv, "mean": m} for scales in ("head", "tensor", "block") for kv in {heads, 1} for m in (None, mean)]
    calls += [{"amax": 3.0}, {"amax": torch.tensor(0.5)}, {"scales": "block", "amax": 2e-3}]
    for call in calls:
        bytes_, descale = fagen.quantize(x, layout=layout, programs=True, **call)
        _torch_programs.set_emulator(None)
        wanted, factor = fagen.quantize(x, layout=layout, **call)
        _torch_programs.set_emulator(emulate(LIBRARY, 90))
        assert torch.equal(descale, factor), call
        is_nan = wanted.float().isnan()
        assert is_nan.any() and torch.equal(bytes_.float().isnan(), is_nan), call
        assert torch.equal(bytes_.view(torch.uint8)[~is_nan], wanted.view(torch.uint8)[~is_nan]), call


def test_programs_are_what_quantizes():
    launched = []
    emulator = emulate(LIBRARY, 90)
    _torch_programs.set_emulator(lambda kernels, call: (launched.append(call.program), emulator(kernels, call)))
    x = torch.randn(1, 5, 2, 64)
    fagen.quantize(x, programs=True)
    fagen.quantize(x, amax=2.0, programs=True)
    fagen.quantize(x, dtype=torch.float8_e5m2, programs=True)
    fagen.quantize(x[..., :32], programs=True)
    fagen.quantize(x)
    assert len(launched) == 3


def test_quantize_refuses_means():
    x = torch.randn(1, 5, 2, 64)
    with pytest.raises(fagen.ArgumentError, match=r"mean is .*; it is float32 on cpu, of shape \(1, 2, 64\)"):
        fagen.quantize(x, mean=torch.zeros(2, 64))
