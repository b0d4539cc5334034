# fagen: cases from public reports of defects in attention kernels, on whatever device there is.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CASES: each computes and compares, or expects to be refused. FAGEN_REPORTS_DEVICE is "cpu" (the emulator) or "cuda".

test_reports.py and gpu/test_reports_gpu.py run them. `gpu`: why a case cannot run on the CPU; `big`: GiB of a GPU's memory that it
takes. Sizes of cases that run on both are such that the emulator takes a second or less.
"""
import contextlib
import math
import os
import pickle
import subprocess
import sys
import threading
from typing import Callable, NamedTuple

import pytest
import torch
import torch.nn.functional as F

import fagen
import fagen.torch
from fagen import flash_attn as fa2

DEVICE = os.environ.get("FAGEN_REPORTS_DEVICE", "cpu")
GPU = DEVICE == "cuda"


class Case(NamedTuple):
    name: str
    run: Callable[[], None]
    gpu: str
    big: int


CASES = []


def case(name, gpu="", big=0):
    def add(run):
        CASES.append(Case(name, run, gpu or ("memory" if big else ""), big))
        return run
    return add


def draw(*shape, dtype=torch.float16, seed=None):
    generator = torch.Generator(DEVICE).manual_seed(len(shape) + sum(shape) if seed is None else seed)
    return torch.randn(shape, generator=generator, device=DEVICE).to(dtype)


def qkv(b=2, h=4, hk=2, sq=100, sk=150, d=64, dv=None, dtype=torch.float16):
    return draw(b, sq, h, d, dtype=dtype, seed=1), draw(b, sk, hk, d, dtype=dtype, seed=2), draw(b, sk, hk, dv or d, dtype=dtype, seed=3)


def exact(q, k, v, *, causal=False, seen=None, bias=None, scale=None, sink=None):
    """O [b, s, h, d] and LSE in float64."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + bias.double()
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril(scores.shape[-1] - scores.shape[-2])
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.double()[None, :, None, None].expand(scores.shape[0], -1, scores.shape[2], 1)], -1)
    lse = torch.logsumexp(scores, -1)
    p = torch.softmax(scores, -1).masked_fill((lse == -torch.inf)[..., None], 0.0)
    return ((p if sink is None else p[..., :-1]) @ v).transpose(1, 2), lse


def near(got, wanted, tolerance=None):
    """Within the tolerance of what is finite; the same where the wanted is not."""
    tolerance = tolerance or (6e-3 if got.dtype == torch.bfloat16 else 2e-3)
    torch.testing.assert_close(got.double(), wanted.double(), atol=tolerance, rtol=tolerance, equal_nan=True)


def refused(match, run, kind=fagen.Error):
    with pytest.raises(kind, match=match):
        run()


def places(rows, keys):
    """Row and key numbers, bottom-right."""
    return torch.arange(rows, device=DEVICE)[:, None] + keys - rows, torch.arange(keys, device=DEVICE)[None]


# ---- numbers ----

_LEAST = torch.finfo(torch.float32).min
for _dtype in (torch.float16, torch.bfloat16):
    for _value in (-1e4, -65504.0, -1e9, -1e10, torch.finfo(torch.bfloat16).min, 0.7 * _LEAST, _LEAST, -math.inf):
        @case(f"a causal mask as a bias of {_value:.3g}, {str(_dtype)[6:]}")
        def _(dtype=_dtype, value=_value):
            q, k, v = qkv(1, 2, 2, dtype=dtype)
            row, key = places(100, 150)
            bias = draw(1, 2, 100, 150, dtype=torch.float32).masked_fill(key > row, value)
            o, lse = fagen.attention(q, k, v, form="bias", bias=bias, return_lse=True)
            wanted, sums = exact(q, k, v, bias=bias)
            near(o, wanted)
            near(lse, sums, 1e-4)


@case("a bias that hides all keys of some rows, as transformers' masks do")
def _():
    q, k, v = qkv(1, 2, 2)
    bias = torch.zeros(1, 1, 100, 150, device=DEVICE)
    bias[:, :, 20:70] = _LEAST
    near(fagen.attention(q, k, v, form="bias", bias=bias), exact(q, k, v, bias=bias)[0])


@case("scores all below -5e4, as finite sentinels for -inf would have it")
def _():
    q, k = torch.full((1, 100, 2, 64), 200.0, device=DEVICE).half(), torch.full((1, 150, 2, 64), -200.0, device=DEVICE).half()
    v = qkv()[2][:1]
    o, lse = fagen.attention(q, k, v, return_lse=True)
    wanted, sums = exact(q, k, v)
    near(o, wanted)
    near(lse, sums, 1e-4)


@case("rows that see no key: causal, more rows than keys")
def _():
    q, k, v = qkv(sk=50)
    for got, wanted in zip(fagen.attention(q, k, v, causal=True, return_lse=True), exact(q, k, v, causal=True)):
        near(got, wanted)


@case("no keys at all, no rows, no batches")
def _():
    q, k, v = qkv(sk=0)
    o, lse = fagen.attention(q, k, v, return_lse=True)
    assert not o.any() and (lse == -math.inf).all()
    assert fagen.attention(*qkv(sq=0)).shape == (2, 0, 4, 64) and fagen.attention(*qkv(b=0)).shape == (0, 100, 4, 64)


@case("NaN in a row of q: in its row of O and no other")
def _():
    q, k, v = qkv()
    q[0, 5, 1, 3] = math.nan
    found = torch.isnan(fagen.attention(q, k, v)).all(-1).nonzero().tolist()
    assert found == [[0, 5, 1]]


@case("NaN in a key that the mask hides")
def _():
    q, k, v = qkv(sq=150, sk=150)
    k[0, 149] = math.nan
    assert not torch.isnan(fagen.attention(q, k, v, causal=True)[0, :149]).any()


@case("NaN next to slices, in rows and in columns")
def _():
    q, k, v = qkv(sq=150, sk=150)
    wide = [torch.full((2, 200, t.shape[2], 128), math.nan, device=DEVICE).half() for t in (q, k, v)]
    for to, t in zip(wide, (q, k, v)):
        to[:, :150, :, :64] = t
    near(fagen.attention(*(t[:, :147, :, :64] for t in wide), causal=True), exact(q[:, :147], k[:, :147], v[:, :147], causal=True)[0])


@case("a sink: rows without keys, -inf, and larger than all scores")
def _():
    q, k, v = qkv(1, 3, 3, sk=50)
    sinks = torch.tensor([0.5, -math.inf, 1e4], device=DEVICE)
    for got, wanted in zip(fagen.attention(q, k, v, form="sink", sinks=sinks, return_lse=True), exact(q, k, v, causal=True, sink=sinks)):
        near(got, wanted)


for _window in (1, 63, 64, 65, 500):
    @case(f"a window of {_window} keys, 300 rows, 900 keys")
    def _(window=_window):
        q, k, v = qkv(1, 2, 1, 300, 900)
        row, key = places(300, 900)
        wanted = exact(q, k, v, seen=(key <= row) & (row - key < window))[0]
        near(fagen.attention(q, k, v, form="window", window=window), wanted)
        near(fa2.flash_attn_func(q, k, v, causal=True, window_size=(window - 1, 0)), wanted)


for _heads in ((28, 4), (71, 1), (5, 5)):
    @case(f"{_heads[0]} heads of q, {_heads[1]} of k: decoding and prefill")
    def _(heads=_heads):
        for sq, sk in ((1, 3000), (3, 777), (130, 130)) if GPU else ((1, 200), (3, 77)):
            q, k, v = qkv(1, *heads, sq, sk, 128, dtype=torch.bfloat16)
            for got, wanted, tolerance in zip(fagen.attention(q, k, v, causal=True, return_lse=True), exact(q, k, v, causal=True), (6e-3, 1e-3)):
                near(got, wanted, tolerance)


for _d, _dv in ((8, 8), (7, 7), (40, 40), (72, 72), (80, 80), (112, 112), (160, 160), (192, 128), (128, 64), (96, 96), (257, 257), (512, 512), (64, 512), (576, 512)):
    @case(f"head dims {_d} and {_dv}: computed, or refused by their name; and by PyTorch")
    def _(d=_d, dv=_dv):
        q, k, v = qkv(1, 4, 2, 50, 50, d, dv)
        wanted = exact(q, k, v, causal=True)[0]
        near(fagen.attention(q, k, v, causal=True, fallback="torch"), wanted)
        try:
            near(fagen.attention(q, k, v, causal=True), wanted)
        except fagen.Unsupported as why:
            assert str(d) in str(why), why


# ---- tensors ----

@case("strides: packed QKV, every second row, odd rows, columns apart, expanded, junk of size 1")
def _():
    packed = draw(2, 100, 12, 64)
    q, k, v = packed[:, :, :4], packed[:, :, 4:8], packed[:, :, 8:]
    near(fagen.attention(q, k, v), exact(q, k, v)[0])
    q, k, v = qkv()
    for k, v in ((draw(2, 300, 2, 64)[:, ::2], v), (draw(2, 150, 2, 65)[..., 1:], draw(2, 150, 2, 67)[..., :64]),
                 (draw(2, 150, 64, 2).transpose(2, 3), v), (draw(1, 150, 1, 64).expand(2, 150, 2, 64), draw(1, 1, 1, 64).expand(2, 150, 2, 64))):
        near(fagen.attention(q, k, v), exact(q, k, v)[0])
    k, v = (torch.as_strided(t.clone(), (1, 1, 2, 64), (big, 5, 64, 1)) for t, big in ((k, 3), (v, 10 ** 9)))
    near(fagen.attention(q[:1], k, v), exact(q[:1], k, v)[0])


@case("K of no heads and V of no columns are not taken for absent")
def _():
    q, k, v = qkv()
    refused("k has 0 heads, which do not divide the 4 of q", lambda: fagen.attention(q, k[:, :, :0], v[:, :, :0]))
    try:  # where there is a wider kernel V is padded
        assert fagen.attention(q, k, v[..., :0]).shape == (2, 100, 4, 0)
    except fagen.Unsupported as why:
        assert "head_dim_v is 0" in str(why)


@case("out= is k")
def _():
    q, k, v = qkv(2, 4, 4, 100, 100)
    refused("out shares memory with k", lambda: fagen.attention(q, k, v, out=k))


@case("out= counts as a change for autograd, in plans too")
def _():
    q, k, v = qkv()
    out, p, moved = torch.empty_like(q), fagen.plan(q, k, v), []
    for compute in 2 * [lambda: fagen.attention(q, k, v, out=out), lambda: p(q, k, v, out)]:
        before = out._version
        compute()
        moved.append(out._version - before)
    assert moved == [1, 1, 1, 1]


@case("a tensor that a backward needs is written by out=")
def _():
    q, k, v = qkv()
    w = torch.ones_like(q).requires_grad_()
    o = fagen.attention(q, k, v)
    loss = (w * o).sum()
    fagen.attention(q, k, v, out=o)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- what PyTorch does around a call ----

@case("a scale that learns")
def _():
    q, k, v = qkv()
    scale = torch.nn.Parameter(torch.tensor(0.1, device=DEVICE))
    refused("scale is a tensor that wants a gradient", lambda: fagen.attention(q, k, v, scale=scale))
    with torch.no_grad():
        near(fagen.attention(q, k, v, scale=scale), exact(q, k, v, scale=0.1)[0])


@case("scales of 0, below 0, and of others' types")
def _():
    q, k, v = qkv()
    for scale in (0, 0.0, -0.2, torch.tensor(0.3), torch.tensor([0.3], device=DEVICE)):
        near(fagen.attention(q, k, v, scale=scale), exact(q, k, v, scale=float(scale))[0])
    for scale in (math.nan, math.inf, "0.1", True, torch.ones(2)):
        refused("scale is", lambda: fagen.attention(q, k, v, scale=scale))  # noqa: B023


@case("ids that do not ascend, where a form wants them to")
def _():
    q, k, v = qkv(1, 2, 2, 300, 300)
    ids = torch.tensor([0] * 120 + [1] * 100 + [-1] * 80, dtype=torch.int32, device=DEVICE)[None]
    fagen.torch.enable_checks()
    try:
        refused(r"document\[0, 220\] is -1, after 1", lambda: fagen.attention(q, k, v, form="same_document", document=ids))
        ids = ids.sort().values
        row, key = places(300, 300)
        wanted = exact(q, k, v, seen=(ids[0][key] == ids[0][row]) & (key <= row))[0]
        near(fagen.attention(q, k, v, form="same_document", document=ids), wanted)
    finally:
        fagen.torch.enable_checks(False)


@case("forward-mode differentiation: refused, or by PyTorch")
def _():
    q, k, v = qkv()
    tangent = torch.randn_like(q)
    jvp = lambda fallback: torch.func.jvp(lambda x: fagen.attention(x, k, v, fallback=fallback), (q,), (tangent,))[1]  # noqa: E731
    refused("forward-mode differentiation", lambda: jvp("error"), fagen.Unsupported)
    wanted = torch.func.jvp(lambda x: exact(x, k, v)[0], (q.double(),), (tangent.double(),))[1]
    near(jvp("torch"), wanted, 5e-3)


@case("autocast: inputs of float32 and of several types")
def _():
    q, k, v = qkv()
    with torch.autocast(DEVICE, dtype=torch.float16):
        for given in ((q.float(), k.float(), v.float()), (q.float(), k.float(), v), (q, k, v.bfloat16())):
            o = fagen.attention(*given)
            assert o.dtype == torch.float16
            near(o, exact(q, k, given[2])[0], 1e-2)


@case("a plan that is pickled and one that is copied")
def _():
    import copy
    q, k, v = qkv()
    p, out = fagen.plan(q, k, v, causal=True), torch.empty_like(q)
    for other in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert other._number != p._number
        near(other(q, k, v, out), exact(q, k, v, causal=True)[0])


@case("gradients under deterministic algorithms: the same bits")
def _():
    torch.use_deterministic_algorithms(True)
    try:
        found = []
        for _ in range(3):
            inputs = [t.requires_grad_() for t in (qkv(2, 8, 2, 1000, 1000, 128, dtype=torch.bfloat16) if GPU else qkv(sq=40, sk=40))]
            fagen.attention(*inputs, causal=True).float().pow(2).sum().backward()
            found.append([t.grad for t in inputs])
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


@case("packed sequences that end before the tokens do")
def _():
    q, k, v = draw(10, 4, 64), draw(10, 2, 64), draw(10, 2, 64)
    starts = torch.tensor([0, 3, 8], dtype=torch.int32, device=DEVICE)
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, starts, starts, 5, 5, return_attn_probs=True)
    assert o.shape == q.shape and lse.shape == (4, 10)


@case("packed sequences, some empty, the longest of one row")
def _():
    q, k, v = draw(2, 4, 64), draw(10, 2, 64), draw(10, 2, 64)
    rows, keys = (torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in ([0, 0, 1, 1, 2], [0, 3, 6, 8, 10]))
    o = fa2.flash_attn_varlen_func(q, k, v, rows, keys, 1, 3, causal=True)
    near(o, torch.cat([exact(q[None, i:i + 1], k[None, a:b], v[None, a:b])[0][0] for i, a, b in ((0, 3, 6), (1, 8, 10))]))


@case("the same bits from call to call: decoding and prefill")
def _():
    shapes = ((1, 32, 8, 1, 9000, 128), (2, 8, 2, 1000, 1000, 128), (4, 8, 8, 500, 500, 64)) if GPU else ((1, 8, 2, 1, 300, 64), (1, 4, 2, 60, 60, 64))
    for shape in shapes:
        q, k, v = qkv(*shape, dtype=torch.bfloat16)
        first = fagen.attention(q, k, v, causal=True)
        assert all(torch.equal(first, fagen.attention(q, k, v, causal=True)) for _ in range(20 if GPU else 3)), shape


@case("threads that set no device")
def _():
    q, k, v = qkv(sq=40, sk=40)
    found = []
    threads = [threading.Thread(target=lambda: found.append(fagen.attention(q, k, v))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for o in found:
        near(o, exact(q, k, v)[0])


# ---- in SDPA's place ----

@contextlib.contextmanager
def in_sdpas_place():
    torch.nn.attention.activate_flash_attention_impl("fagen")
    try:
        yield
    finally:
        torch.nn.attention.restore_flash_attention_impl()


def bhsd(*sizes, **options):
    return lambda: [t.transpose(1, 2) for t in qkv(*sizes, **options)]


def sdpa(name, make=bhsd(2, 4, 4), **options):
    @case(f"SDPA: {name}", gpu="what takes SDPA's place is on GPUs")
    def _():
        q, k, v = make()
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
            wanted = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), **options)
        with in_sdpas_place():
            near(F.scaled_dot_product_attention(q, k, v, **options), wanted)


sdpa("plain")
sdpa("causal, more keys than rows (top-left)", is_causal=True)
sdpa("causal, one row", bhsd(2, 4, 4, 1, 300), is_causal=True)
sdpa("causal, fewer keys than rows", bhsd(2, 4, 4, 300, 200), is_causal=True)
sdpa("enable_gqa", bhsd(2, 8, 2, 200, 200), enable_gqa=True)
sdpa("head dim 72", bhsd(2, 4, 4, 200, 200, 72))
sdpa("head dim 100, and 36 of V", bhsd(2, 4, 4, 200, 200, 100, 36))
sdpa("scale 0", scale=0.0)
sdpa("a scale below 0", scale=-0.2)
sdpa("three dimensions", lambda: [t[0].transpose(0, 1) for t in qkv(1, 4, 4, 200, 200)])
sdpa("five dimensions", lambda: [t.transpose(1, 2)[:, None].expand(2, 3, 4, 200, 64) for t in qkv(2, 4, 4, 200, 200)])
sdpa("expanded K and V", lambda: (draw(2, 4, 200, 64), draw(2, 1, 97, 64).expand(2, 4, 97, 64), draw(2, 1, 97, 64, seed=9).expand(2, 4, 97, 64)))


@case("SDPA: dropout is not dropped", gpu="what takes SDPA's place is on GPUs")
def _():
    q, k, v = bhsd(2, 4, 4)()
    with in_sdpas_place():
        a, b = (F.scaled_dot_product_attention(q, k, v, dropout_p=0.5) for _ in range(2))
    assert not torch.equal(a, b)


@case("SDPA: forward-mode differentiation is PyTorch's refusal, as without us", gpu="what takes SDPA's place is on GPUs")
def _():
    q, k, v = bhsd(2, 4, 4)()
    with in_sdpas_place(), pytest.raises(NotImplementedError):
        torch.func.jvp(lambda x: F.scaled_dot_product_attention(x, k, v), (q,), (torch.randn_like(q),))


@case("SDPA: gradients, causal, more keys than rows", gpu="what takes SDPA's place is on GPUs")
def _():
    inputs = [t.detach().requires_grad_() for t in bhsd(2, 4, 4, 200, 300)()]
    doubles = [t.detach().double().requires_grad_() for t in inputs]
    with in_sdpas_place():
        F.scaled_dot_product_attention(*inputs, is_causal=True).float().pow(2).sum().backward()
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
        F.scaled_dot_product_attention(*doubles, is_causal=True).pow(2).sum().backward()
    for got, wanted in zip(inputs, doubles):
        near(got.grad, wanted.grad, 1e-2)


# ---- streams, graphs, addresses ----

def own_process(text, limit=60):
    """For what may leave the CUDA context broken."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", "import torch, fagen, fagen.torch\n" + text], capture_output=True, text=True,
                          timeout=limit, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@case("page tables: garbage in entries that are not used", gpu="addresses")
def _():
    own_process("""
from fagen.flash_attn import flash_attn_with_kvcache
q, c = torch.randn(2, 1, 4, 64, device="cuda").half(), torch.randn(4, 256, 2, 64, device="cuda").half()
table = torch.tensor([[3, 1, -1], [0, 99999, -7]], dtype=torch.int32, device="cuda")
o = flash_attn_with_kvcache(q, c, c, cache_seqlens=torch.tensor([300, 100], dtype=torch.int32, device="cuda"), block_table=table)
for i, x in enumerate((torch.cat([c[3], c[1]])[:300].float(), c[0][:100].float())):
    x = x.repeat_interleave(2, 1)
    p = (torch.einsum("hd,khd->hk", q[i, 0].float(), x) / 8).softmax(-1)
    torch.testing.assert_close(o[i, 0].float(), torch.einsum("hk,khd->hd", p, x), atol=4e-3, rtol=4e-3)
""")


@case("a graph is captured of a kernel that never ran", gpu="graphs")
def _():
    own_process("""
q, graph = torch.randn(1, 300, 4, 96, device="cuda").half(), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    o = fagen.attention(q, q, q)
q.copy_(torch.randn_like(q))
graph.replay()
torch.cuda.synchronize()
assert torch.equal(o, fagen.attention(q, q, q))
""")


@case("a scale on the GPU while a graph is captured", gpu="graphs")
def _():
    own_process("""
q, scale, graph = torch.randn(1, 300, 4, 64, device="cuda").half(), torch.tensor(0.1, device="cuda"), torch.cuda.CUDAGraph()
fagen.attention(q, q, q, scale=scale)
with torch.cuda.graph(graph):
    try:
        fagen.attention(q, q, q, scale=scale)
        raise AssertionError("it was read")
    except fagen.Error as error:
        assert "while a graph is captured" in str(error)
    o = q + 1
""")


@case("a cache whose lengths are on the device, captured: right, or refused in words", gpu="graphs")
def _():
    own_process("""
from fagen.flash_attn import flash_attn_with_kvcache as attend
q, c = torch.randn(2, 1, 4, 64, device="cuda").half(), torch.randn(2, 256, 2, 64, device="cuda").half()
lengths, graph = torch.tensor([30, 100], dtype=torch.int32, device="cuda"), torch.cuda.CUDAGraph()
wanted = attend(q, c, c, cache_seqlens=lengths)
torch.cuda.synchronize()
try:
    with torch.cuda.graph(graph):
        o = attend(q, c, c, cache_seqlens=lengths)
except (fagen.Error, RuntimeError):
    raise SystemExit(0)
graph.replay()
torch.cuda.synchronize()
assert torch.equal(o, wanted)
""")


@case("a side stream after a long kernel", gpu="streams")
def _():
    q, k, v = qkv()
    wanted, stream, x = exact(q, k, v)[0], torch.cuda.Stream(), torch.zeros_like(q)
    fagen.attention(q, k, v)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.copy_(q)
        o = fagen.attention(x, k, v)
    stream.synchronize()
    near(o, wanted)


@case("torch.compile with CUDA graphs, inputs that change", gpu="graphs")
def _():
    compiled = torch.compile(lambda q, k, v: fagen.attention(q * 1, k, v, causal=True) + 0, backend="cudagraphs", fullgraph=True)
    for i in range(5):
        q, k, v = (draw(1, 256, 4, 64, seed=10 * i + j) for j in range(3))
        near(compiled(q, k, v).clone(), exact(q, k, v, causal=True)[0])


# ---- sizes ----

for _b, _h, _s, _form in ((70000, 1, 1, "none"), (1, 70000, 1, "none"), (80000, 1, 16, "causal"), (66000, 2, 3, "causal"), (70000, 1, 40, "window")):
    @case(f"{_b} batches of {_h} heads of {_s} rows, {_form}", gpu="time: 65536 of anything")
    def _(b=_b, h=_h, s=_s, form=_form):
        q, k, v = qkv(b, h, h, s, s + 8)
        o = fagen.attention(q, k, v, form="window", window=5) if form == "window" else fagen.attention(q, k, v, causal=form == "causal")
        row, key = places(s, s + 8)
        for part in (slice(0, 3), slice(65534, 65538), slice(-3, None)):
            i = (part, slice(None)) if b > 1 else (slice(None), slice(None), part)
            seen = (key <= row) & (row - key < 5) if form == "window" else None
            near(o[i], exact(q[i], k[i], v[i], causal=form == "causal", seen=seen)[0])


@case("more than 2^31 elements: 512 heads of 40000 rows", big=28)
def _():
    q = torch.randn(1, 40000, 512, 128, device=DEVICE, dtype=torch.bfloat16)
    k, v = torch.randn_like(q), torch.randn_like(q)
    o = fagen.attention(q, k, v, causal=True)
    for h in (0, 300, 511):
        one = [t[:, :, h:h + 1].contiguous() for t in (q, k, v)]
        near(o[:, :, h:h + 1], fagen.attention(*one, causal=True))
        near(o[:, -64:, h:h + 1], exact(one[0][:, -64:], *one[1:], causal=True)[0], 5e-4)  # O is near 0.01 there


@case("more than 2^31 elements between batches: caches of [rows, batch, columns]", big=28)
def _():
    k, v = (torch.randn(24000, 1400, 128, device=DEVICE, dtype=torch.bfloat16).transpose(0, 1).unsqueeze(2) for _ in range(2))
    for rows in (1, 200):
        q = draw(1400, rows, 1, 128, dtype=torch.bfloat16)
        o = fagen.attention(q, k, v)
        for i in (0, 700, 1399):
            near(o[i:i + 1], exact(q[i:i + 1], k[i:i + 1], v[i:i + 1])[0], 1e-3)


@case("decoding over 2.2 million keys of 8 heads", big=14)
def _():
    k, q = torch.randn(1, 2_200_000, 8, 128, device=DEVICE, dtype=torch.bfloat16), draw(1, 1, 8, 128, dtype=torch.bfloat16)
    o = fagen.attention(q, k, k)
    for h in (0, 7):
        x = k[0, :, h].float()
        near(o[0, 0, h], torch.softmax(x @ q[0, 0, h].float() * 128 ** -0.5, 0) @ x, 2e-3)


for _form, _make in (("visible", lambda n: torch.rand(n, n, device=DEVICE, dtype=torch.float16) < 0.5),
                     ("bias", lambda n: torch.randn(n, n, device=DEVICE))):
    @case(f"{_form} of 70000 x 70000 elements", big=30)
    def _(form=_form, make=_make):
        n = 70000
        q, k, v = qkv(1, 1, 1, n, n)
        given = make(n)
        o = fagen.attention(q, k, v, form=form, **{form: given})
        for rows in (slice(0, 40), slice(30675, 30700), slice(61350, 61370), slice(-40, None)):
            near(o[:, rows], exact(q[:, rows], k, v, **{"seen" if form == "visible" else "bias": given[rows]})[0], 5e-4)
