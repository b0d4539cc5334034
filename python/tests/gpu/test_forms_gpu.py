# fagen: forms of the package on a GPU: every one by hand, strides of args, numbers that stand on the device in captured graphs.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

import fagen
import fagen.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
                                reason="no GPU of compute capability 9.0")

BATCH, HEADS, KV_HEADS, ROWS, KEYS = 2, 8, 2, 300, 700


def tensors(dtype=torch.bfloat16, columns=128):
    draw = torch.Generator("cuda").manual_seed(0)
    return [torch.randn((BATCH, length, heads, columns), generator=draw, device="cuda", dtype=dtype)
            for length, heads in ((ROWS, HEADS), (KEYS, KV_HEADS), (KEYS, KV_HEADS))]


def expected(q, k, v, *, score=None, seen=None, sink=None):
    """O and LSE in float64."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    scores = scores if score is None else score(scores)
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    sums = torch.logsumexp(scores, -1)
    sums = sums if sink is None else torch.logaddexp(sums, sink.double()[:, None].expand_as(sums))
    return (torch.exp(scores - sums[..., None]).nan_to_num(0) @ v).transpose(1, 2), sums


def assert_near(got, wanted):
    (o, lse), (exact, sums) = got, wanted
    torch.testing.assert_close(o.double(), exact, atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(lse.double(), sums, atol=1e-3, rtol=1e-4)


def places():
    key, place = torch.arange(KEYS, device="cuda")[None], torch.arange(ROWS, device="cuda")[:, None] + KEYS - ROWS
    return key, place, key <= place


def shipped(learnt=False):
    """form: its args, and what they mean; whether args of floats want a gradient."""
    draw = torch.Generator("cuda").manual_seed(1)
    key, place, causal = places()
    heads = (torch.rand(HEADS, generator=draw, device="cuda") + 0.25).requires_grad_(learnt)
    bias = torch.randn((BATCH, HEADS, ROWS, KEYS), generator=draw, device="cuda").requires_grad_(learnt)
    visible = torch.rand((BATCH, HEADS, ROWS, KEYS), generator=draw, device="cuda") < 0.5
    blocks = torch.rand((BATCH, HEADS, 5, 11), generator=draw, device="cuda") < 0.5
    blocks[..., 0] = True  # each row sees something
    rows = torch.arange(ROWS, device="cuda") // 64
    first = torch.tensor([[0] * 123 + [123] * 577, [0] * 650 + [650] * 50], dtype=torch.int32, device="cuda")
    cap = lambda s: 5 * torch.tanh(s / 5)  # noqa: E731
    document = (first > 0).int() * 3 + (key >= first + 40).int()  # numbers that only ascend
    window = causal & (place - key < 100)
    prefix = torch.tensor([450, 20], dtype=torch.int32, device="cuda")
    of_head = heads[:, None, None].double()
    return {
        "window": (dict(window=100), dict(seen=window)),
        "local": (dict(left=70, right=33), dict(seen=(key >= place - 70) & (key <= place + 33))),
        "softcap": (dict(cap=5.0), dict(score=cap, seen=causal)),
        "gemma2": (dict(cap=5.0, window=100), dict(score=cap, seen=window)),
        "alibi": (dict(slope=heads), dict(score=lambda s: s + of_head * (key - place), seen=causal)),
        "sink": (dict(sinks=heads), dict(seen=causal, sink=heads)),
        "gpt_oss": (dict(sinks=heads, window=100), dict(seen=window, sink=heads)),
        "bias": (dict(bias=bias), dict(score=lambda s: s + bias.double())),
        "prefix": (dict(prefix=prefix), dict(seen=(causal | (key < prefix[:, None, None]))[:, None])),
        "same_document": (dict(document=document), dict(seen=causal & (document[:, KEYS - ROWS:, None] == document[:, None])[:, None])),
        "documents": (dict(first=first), dict(seen=(causal & (key >= first[:, KEYS - ROWS:, None]))[:, None])),
        "temperature": (dict(factor=heads), dict(score=lambda s: s * of_head, seen=causal)),
        "streaming": (dict(first=4, window=100), dict(seen=causal & ((key < 4) | (place - key < 100)))),
        "dilated": (dict(window=30, step=3), dict(seen=causal & (place - key < 90) & ((place - key) % 3 == 0))),
        "chunked": (dict(chunk=128), dict(seen=causal & (key // 128 == place // 128))),
        "blocks": (dict(size=64, rows=5, columns=11, map=blocks), dict(seen=blocks[:, :, rows][..., key[0] // 64])),
        "visible": (dict(visible=visible), dict(seen=visible)),
        "bias_visible": (dict(bias=bias, visible=visible), dict(score=lambda s: s + bias.double(), seen=visible)),
    }


def test_each_form_of_the_package_is_here():
    of_fronts = {"rows", "used", "scaled", "scaled_causal", "scaled_used"}  # lengths and fp8 caches: test_lengths_gpu.py, test_fp8.py
    assert set(shipped()) | of_fronts == set(fagen.ready().forms)


@pytest.mark.parametrize("dtype, columns", [(torch.bfloat16, 128), (torch.float16, 64)])
@pytest.mark.parametrize("form", sorted(shipped()) if torch.cuda.is_available() else [])
def test_values(form, dtype, columns):
    inputs, (args, meaning) = tensors(dtype, columns), shipped()[form]
    assert_near(fagen.attention(*inputs, form=form, form_args=args, return_lse=True), expected(*inputs, **meaning))


def test_strides_of_args():
    inputs, draw = tensors(), torch.Generator("cuda").manual_seed(2)
    bias = torch.randn((KEYS, ROWS, 1, 2 * HEADS), generator=draw, device="cuda")[..., ::2].permute(2, 3, 1, 0)
    assert_near(fagen.attention(*inputs, form="bias", bias=bias, return_lse=True),
                expected(*inputs, score=lambda s: s + bias.double()))


def test_captured_graphs_read_numbers_and_tensors_when_they_run():
    inputs, (key, place, causal) = tensors(), places()
    cap, window = torch.tensor(5.0, device="cuda"), torch.tensor(100, dtype=torch.int32, device="cuda")
    sinks = torch.zeros(HEADS, device="cuda")
    calls = (lambda: fagen.attention(*inputs, form="gemma2", cap=cap, window=window, return_lse=True),
             lambda: fagen.attention(*inputs, form="gpt_oss", window=window, sinks=sinks, return_lse=True))
    with torch.no_grad():
        for call in calls:
            call()  # compiles
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = [call() for call in calls]
    for new_cap, new_window in ((5.0, 100), (2.0, 17), (50.0, 1), (3.0, 100000)):
        cap.fill_(new_cap)
        window.fill_(new_window)
        sinks.fill_(new_cap - 4)
        graph.replay()
        torch.cuda.synchronize()
        seen = causal & (place - key < new_window)
        assert_near(results[0], expected(*inputs, score=lambda s: new_cap * torch.tanh(s / new_cap), seen=seen))
        assert_near(results[1], expected(*inputs, seen=seen, sink=sinks))


@pytest.mark.parametrize("form", sorted(shipped()) if torch.cuda.is_available() else [])
def test_gradients(form):
    """Of q, k, v and of f32 args, against those of the same by hand."""
    args, meaning = shipped(learnt=True)[form]
    leaves = [t.requires_grad_() for t in tensors()]
    leaves += [value for value in args.values() if isinstance(value, torch.Tensor) and value.requires_grad]
    o = fagen.attention(*leaves[:3], form=form, form_args=args)
    wanted, _ = expected(*leaves[:3], **meaning)
    given = torch.randn(o.shape, generator=torch.Generator("cuda").manual_seed(3), device="cuda")
    for one, other in zip(*(torch.autograd.grad((t * given).sum(), leaves) for t in (o, wanted))):
        assert one.isfinite().all()
        torch.testing.assert_close(one.double(), other.double(), atol=4e-2, rtol=4e-2)


@pytest.mark.parametrize("rows, keys, window", [(300, 300, (100, 0)), (500, 200, (17, 30)), (200, 500, (0, 64)), (256, 256, (-1, 3)), (500, 200, (17, 260)),
                                                (700, 512, (0, 1212))])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_windows_by_flash_attention(monkeypatch, dtype, rows, keys, window):
    """Of flash_attn_func, where no program computes them: rows that see no key among them. PyTorch's flash attention is asked, once."""
    from fagen import _by_torch, _gradients, flash_attn
    monkeypatch.setattr(_gradients, "has_program", lambda *_: False)
    monkeypatch.setattr(flash_attn, "fallback", "error")
    asked, backward = [], _by_torch.backward_of_window
    monkeypatch.setattr(_by_torch, "backward_of_window", lambda *call: asked.append(call) or backward(*call))
    draw = torch.Generator("cuda").manual_seed(5)
    leaves = [torch.randn((BATCH, length, heads, 64), generator=draw, device="cuda", dtype=dtype, requires_grad=True)
              for length, heads in ((rows, HEADS), (keys, KV_HEADS), (keys, KV_HEADS))]
    key, place = torch.arange(keys, device="cuda")[None], torch.arange(rows, device="cuda")[:, None] + keys - rows
    seen = (key >= place - window[0] if window[0] >= 0 else True) & (key <= place + window[1])
    nothing = ~seen.any(-1)
    with torch.no_grad():
        exact = expected(*leaves, seen=seen | nothing[:, None])[0].masked_fill(nothing[:, None, None], 0.0)
    o = flash_attn.flash_attn_func(*leaves, window_size=window)
    torch.testing.assert_close(o.double(), exact, atol=2e-2, rtol=2e-2)
    wanted = expected(*leaves, seen=seen | nothing[:, None])[0].masked_fill(nothing[:, None, None], 0.0)
    given = torch.randn(o.shape, generator=draw, device="cuda")
    for one, other in zip(*(torch.autograd.grad((t * given).sum(), leaves) for t in (o, wanted))):
        assert one.isfinite().all()
        torch.testing.assert_close(one.double(), other.double(), atol=4e-2, rtol=4e-2)
    assert len(asked) == 1
