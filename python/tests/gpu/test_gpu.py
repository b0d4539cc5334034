# fagen: what only a GPU can show of fagen.torch: values, gradients, graphs, streams, devices, host time.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest python/tests/gpu/test_gpu.py -s, with the package on PYTHONPATH. Needs PyTorch 2.10 or later, a CUDA GPU and NVRTC."""
import json
import threading

import pytest
import torch

import fagen
import fagen.torch
import host_time

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")


def tensors(batch, heads, kv_heads, seq_q, seq_kv, head_dim, dtype=torch.float16, device="cuda"):
    draw = torch.Generator(device=device).manual_seed(0)
    shapes = [(batch, seq_q, heads, head_dim)] + 2 * [(batch, seq_kv, kv_heads, head_dim)]
    return [torch.randn(s, generator=draw, device=device, dtype=torch.float32).to(dtype) for s in shapes]


def exact(q, k, v, causal, dtype=torch.float64):
    q, k, v = (t.to(dtype).transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        rows, keys = scores.shape[-2:]
        scores.masked_fill_(~torch.ones(rows, keys, dtype=torch.bool, device=q.device).tril(keys - rows), -torch.inf)
    lse = torch.logsumexp(scores, -1)
    return (torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]) @ v).transpose(1, 2), lse


TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
@pytest.mark.parametrize("lengths", [(1, 777), (128, 128), (113, 203), (203, 113), (1024, 1024)])
def test_values(dtype, causal, head_dim, lengths):
    q, k, v = tensors(2, 6, 2, *lengths, head_dim, dtype)
    o, lse = fagen.attention(q, k, v, causal=causal, return_lse=True)
    wanted, sums = exact(q, k, v, causal)
    torch.testing.assert_close(o.double(), wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    torch.testing.assert_close(lse.double(), sums, atol=1e-3, rtol=1e-3)
    assert torch.equal(fagen.attention(q, k, v, causal=causal), fagen.attention(q, k, v, causal=causal))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim, kv_heads", [(64, 4), (128, 4), (128, 1), (256, 4)])
def test_borrowed_gradients(dtype, causal, head_dim, kv_heads):
    inputs = [t.requires_grad_() for t in tensors(2, 4, kv_heads, 300, 300, head_dim, dtype)]
    grad = torch.randn_like(inputs[0])
    fagen.attention(*inputs, causal=causal).backward(grad)
    doubles = [t.detach().double().requires_grad_() for t in inputs]
    exact(*doubles, causal)[0].backward(grad.double())
    theirs = [t.detach().transpose(1, 2).requires_grad_() for t in inputs]
    torch.nn.functional.scaled_dot_product_attention(*theirs, is_causal=causal, enable_gqa=True).backward(grad.transpose(1, 2))
    for ours, sdpa, wanted in zip(inputs, theirs, doubles):
        error = (ours.grad.double() - wanted.grad).abs().max()
        assert error <= 2 * (sdpa.grad.transpose(1, 2).double() - wanted.grad).abs().max() + 1e-3


def capture(q, k, v, causal):
    """A graph of one attention, and where it writes."""
    fagen.attention(q, k, v, causal=causal)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = fagen.attention(q, k, v, causal=causal)
    return graph, o


@pytest.mark.parametrize("causal", [False, True])
def test_a_thousand_replays(causal):
    q, k, v = tensors(2, 16, 16, 2048, 2048, 128)
    wanted = fagen.attention(q, k, v, causal=causal)
    graph, o = capture(q, k, v, causal)
    for _ in range(1000):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, wanted)


def test_two_graphs_on_two_streams():
    inputs = [tensors(2, 16, 16, 2048, 2048, 128), tensors(1, 32, 8, 4096, 4096, 64)]
    wanted = [fagen.attention(*t, causal=True) for t in inputs]
    graphs = [capture(*t, True) for t in inputs]
    streams = [torch.cuda.Stream() for _ in inputs]
    torch.cuda.synchronize()
    for _ in range(200):
        for (graph, _), stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    for (_, o), one in zip(graphs, wanted):
        assert torch.equal(o, one)


def test_two_streams_without_graphs():
    inputs = [tensors(2, 16, 16, 2048, 2048, 128), tensors(1, 32, 8, 4096, 4096, 64)]
    wanted = [fagen.attention(*t, causal=True) for t in inputs]
    streams = [torch.cuda.Stream() for _ in inputs]
    torch.cuda.synchronize()
    for _ in range(50):
        results = []
        for one, stream in zip(inputs, streams):
            with torch.cuda.stream(stream):
                results.append(fagen.attention(*one, causal=True))
        torch.cuda.synchronize()
        assert all(torch.equal(a, b) for a, b in zip(results, wanted))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compile(mode):
    pytest.importorskip("triton")
    q, k, v = tensors(2, 8, 8, 512, 512, 128)
    compiled = torch.compile(lambda q, k, v: fagen.attention(q * 1.5, k, v, causal=True) + 1, fullgraph=True, mode=mode)
    wanted = fagen.attention(q * 1.5, k, v, causal=True) + 1
    for _ in range(5):
        torch.testing.assert_close(compiled(q, k, v), wanted)


def test_opcheck():
    q, k, v = tensors(1, 4, 2, 64, 64, 64)
    torch.library.opcheck(torch.ops.fagen.attention.default, (q, k, v, 0.125, True, True, True, fagen.torch._READY),
                          test_utils=("test_schema", "test_faketensor"))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_a_second_gpu_that_is_not_the_current_one():
    q, k, v = tensors(1, 8, 8, 512, 512, 128)
    wanted = fagen.attention(q, k, v)
    assert torch.cuda.current_device() == 0
    assert torch.equal(fagen.attention(*(t.to("cuda:1") for t in (q, k, v))).to("cuda:0"), wanted)
    assert torch.cuda.current_device() == 0


def test_misaligned_tensors_take_a_kernel_that_can():
    q, k, v = tensors(1, 4, 4, 200, 200, 64)
    odd = torch.empty(q.numel() + 1, dtype=q.dtype, device="cuda")[1:].view(q.shape).copy_(q)
    torch.testing.assert_close(fagen.attention(odd, k, v), fagen.attention(q, k, v), atol=2e-3, rtol=2e-3)


@pytest.mark.skipif(torch.cuda.is_available() and torch.cuda.get_device_capability()[0] != 9, reason="forms are for sm_90a")
@pytest.mark.parametrize("options", [{"window_size": (64, 0)}, {"softcap": 5.0}, {"alibi_slopes": "slopes"}])
def test_graphs_have_forms(options):
    from fagen import flash_attn
    q, k, v = tensors(1, 4, 4, 300, 300, 64)
    if "alibi_slopes" in options:
        options = {"alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625], device="cuda")}
    function = lambda q, k, v: flash_attn.flash_attn_func(q, k, v, causal=True, **options)  # noqa: E731
    fagen.stats(reset=True)
    wanted = function(q, k, v)
    assert torch.equal(torch.compile(function, backend="aot_eager", fullgraph=True)(q, k, v), wanted)
    assert not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("head_dim, width", [(80, 96), (40, 64), (112, 128), (160, 192), (224, 256)])
def test_head_dims_that_no_kernel_has_are_padded(head_dim, width):
    q, k, v = tensors(2, 8, 2, 300, 300, head_dim)
    fagen.stats(reset=True)
    o, lse = fagen.attention(q, k, v, causal=True, return_lse=True)
    wanted, sums = exact(q, k, v, True)
    torch.testing.assert_close(o.double(), wanted, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(lse.double(), sums, atol=1e-3, rtol=1e-3)
    assert fagen.stats()["padded"] == {("attention", f"head_dim {head_dim} as {width}"): 1}


def test_host_time():
    """One call takes at most 5 us of the host more than a bare launch of its kernel."""
    figures = host_time.figures()
    print(json.dumps(figures, indent=1))
    assert figures["over a bare launch"]["plan"] <= 5
    assert figures["over a bare launch"]["fagen.attention"] <= 5


def test_plans_and_remembered_calls_on_other_streams_and_threads():
    q, k, v = tensors(2, 16, 16, 1024, 1024, 128)
    wanted, p = fagen.attention(q, k, v, causal=True), fagen.plan(q, k, v, causal=True)
    torch.cuda.synchronize()
    results = []

    def compute():
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                results.append(fagen.attention(q, k, v, causal=True))
                results.append(p(q, k, v, torch.empty_like(q)))
    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert len(results) == 160 and all(torch.equal(one, wanted) for one in results)


def test_outputs_between_what_is_read():
    """A slice of a packed tensor shares no element with the others, though they lie in one stretch of memory."""
    packed = tensors(2, 16, 16, 200, 200, 64)[0]
    q, k, v, out = packed.split(4, dim=2)
    wanted, p = exact(q.clone(), k.clone(), v.clone(), False)[0], fagen.plan(q, k, v)
    for _ in range(2):
        torch.testing.assert_close(fagen.attention(q, k, v, out=out.zero_()).double(), wanted, atol=2e-3, rtol=2e-3)
        torch.testing.assert_close(p(q, k, v, out.zero_()).double(), wanted, atol=2e-3, rtol=2e-3)
    with pytest.raises(fagen.Error, match="out shares memory with k"):
        fagen.attention(q, k, v, out=packed[:, :, 7:11])
