# fagen: gradients of attention by the package's programs on a GPU: against autograd in float64, the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import threading

import pytest
import torch

import fagen
from fagen import _forms_by_torch, _gradients, _kernels
from fagen.flash_attn import flash_attn_func, flash_attn_varlen_func

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
                                reason="no GPU of compute capability 9.0")


def drawn(dtype, head_dim, heads, kv_heads, rows, keys, batch=2):
    """q, k, v and the gradient of O."""
    draw = torch.Generator("cuda").manual_seed(rows + keys)
    return [torch.randn((batch, n, h, head_dim), generator=draw, device="cuda").to(dtype)
            for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads), (rows, heads))]


def gradients(q, k, v, grad, causal):
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    return torch.autograd.grad(fagen.attention(*inputs, causal=causal), inputs, grad)


def expected(q, k, v, grad, causal, rounded=lambda t: t):
    """In float64; `rounded` makes of O, P and dS what is kept of them."""
    q, k, v, grad = (t.double().transpose(1, 2) for t in (q, k, v, grad))
    group, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    keys, values = (t.repeat_interleave(group, 1) for t in (k, v))
    scores = q @ keys.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").tril(keys.shape[2] - q.shape[2]), -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0)
    o = rounded(weights @ values)
    of_scores = rounded(weights * (grad @ values.transpose(-1, -2) - (grad * o).sum(-1, keepdim=True)))
    found = (of_scores @ keys * scale, of_scores.transpose(-1, -2) @ q * scale, rounded(weights).transpose(-1, -2) @ grad)
    return [t if t.shape[1] == n else t.unflatten(1, (n, group)).sum(2) for t, n in zip(found, (q.shape[1], k.shape[1], k.shape[1]))]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("heads, kv_heads, rows, keys", [(4, 4, 512, 512), (6, 2, 300, 777), (4, 1, 900, 130), (2, 2, 1, 77), (2, 2, 64, 1)])
def test_against_autograd(dtype, head_dim, causal, heads, kv_heads, rows, keys):
    q, k, v, grad = drawn(dtype, head_dim, heads, kv_heads, rows, keys)
    assert _gradients.has_program(q, k, v, True)
    to = lambda t: t.to(dtype).double()
    exact, rough = expected(q, k, v, grad, causal), expected(q, k, v, grad, causal, to)
    for ours, wanted, near in zip(gradients(q, k, v, grad, causal), exact, rough):
        assert (ours.transpose(1, 2).double() - wanted).abs().max() <= 2 * (to(near) - wanted).abs().max() + 2.0 ** -13


@pytest.mark.parametrize("text", ["", "_sync"])
@pytest.mark.parametrize("head_dim, heads, kv_heads, rows, keys, shape", [
    (64, 4, 2, 300, 777, (2, 4, 300, 777)), (128, 4, 4, 512, 512, (1, 4, 512, 512)), (64, 6, 2, 130, 257, (6, 1, 257)),
    (128, 8, 2, 1024, 1024, (8, 1024, 1024)), (64, 2, 2, 1, 77, (2, 1, 1, 77)),
])
def test_biases(monkeypatch, text, head_dim, heads, kv_heads, rows, keys, shape):
    """Of q, k, v and the bias, by programs of both texts; the same bits each time. A mask leaves rows without keys."""
    monkeypatch.setattr(_gradients, "_text_for", lambda device: text)
    q, k, v, grad = drawn(torch.bfloat16, head_dim, heads, kv_heads, rows, keys)
    draw = torch.Generator("cuda").manual_seed(5)
    bias = torch.randn(shape, generator=draw, device="cuda")
    visible = torch.randint(0, 4, (2, 1, rows, keys), generator=draw, device="cuda", dtype=torch.uint8)
    visible[0, :, rows // 2] = 0
    inputs = [t.detach().requires_grad_() for t in (q, k, v, bias)]
    find = lambda: torch.autograd.grad(  # noqa: E731
        fagen.attention(*inputs[:3], form="bias_visible", bias=inputs[3], visible=visible), inputs, grad)
    asked = []
    backward = _gradients.backward
    monkeypatch.setattr(_gradients, "backward", lambda *args, **options: asked.append(1) or backward(*args, **options))
    found = find()
    assert asked and all(all(map(torch.equal, found, find())) for _ in range(20))
    wide = [t.detach().double().requires_grad_() for t in (q, k, v, bias)]
    of_heads = [t.transpose(1, 2) for t in wide[:3]]
    of_keys, of_values = (t.repeat_interleave(heads // kv_heads, 1) for t in of_heads[1:])
    scores = of_heads[0] @ of_keys.transpose(-1, -2) * head_dim ** -0.5 + wide[3]
    weights = torch.softmax(scores.masked_fill(visible == 0, -torch.inf), -1).nan_to_num(0)
    wanted = torch.autograd.grad((weights @ of_values).transpose(1, 2), wide, grad.double())
    for ours, exact in zip(found, wanted):
        exact = exact.nan_to_num(0)
        assert (ours.double() - exact).abs().max() <= 8 * torch.finfo(torch.bfloat16).eps * exact.abs().max().clamp_min(1e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
def test_same_bits(head_dim, causal):
    inputs = drawn(torch.bfloat16, head_dim, 8, 2, 2048, 2048)
    first = gradients(*inputs, causal)
    for _ in range(200):
        assert all(torch.equal(a, b) for a, b in zip(first, gradients(*inputs, causal)))


def test_scratch_is_bounded(monkeypatch):
    inputs = drawn(torch.bfloat16, 128, 4, 2, 1024, 1024)
    wanted = gradients(*inputs, True)
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", 2 * 2 * 1024 * 1024)
    assert all(torch.equal(a, b) for a, b in zip(gradients(*inputs, True), wanted))


def test_a_thread_without_a_context():
    """The first thing that a thread does is to launch a program."""
    q, k, v, grad = drawn(torch.bfloat16, 64, 2, 2, 130, 130)
    o, sums = fagen.attention(q, k, v, causal=True, return_lse=True)
    find = lambda: found.extend(_gradients.backward(grad, q, k, v, o, sums, 64 ** -0.5, True, True))  # noqa: E731
    wanted, found = gradients(q, k, v, grad, True), []
    thread = threading.Thread(target=find)
    thread.start()
    thread.join()
    assert len(found) == 3 and all(torch.equal(*pair) for pair in zip(found, wanted))


def wanted_of_form(q, k, v, grad, form, args, grad_lse=None):
    """Gradients of q, k, v and of what of args wants one, by the form's own programs in float32."""
    wide = [t.detach().float().requires_grad_() for t in (q, k, v)]
    attention = _forms_by_torch.Attention(_forms_by_torch.find(_kernels.ready()._directories, form, tuple(args)), args, *wide, None, True)
    o, lse = attention.step(0, q.shape[1], *wide, args)
    outputs, given = [o.transpose(1, 2)], [grad.float()]
    if grad_lse is not None:
        outputs, given = [*outputs, lse], [*given, grad_lse]
    return torch.autograd.grad(outputs, [*wide, *(t for t in args.values() if isinstance(t, torch.Tensor) and t.requires_grad)], given)


def assert_near(found, wanted, dtype):
    for ours, exact in zip(found, wanted):
        assert (ours.float() - exact.float()).abs().max() <= 6 * torch.finfo(dtype).eps * exact.abs().max()


def tensors(*values, dtype=torch.int32):
    return torch.tensor(values, device="cuda", dtype=dtype)


FORMS = {
    "window": lambda: {"window": 100}, "local": lambda: {"left": 30, "right": 70}, "softcap": lambda: {"cap": 2.0},
    "gemma2": lambda: {"cap": 2.0, "window": 90}, "alibi": lambda: {"slope": tensors(0.5, 0.25, 0.1, 0.0, dtype=torch.float32)},
    "sink": lambda: {"sinks": tensors(-1.0, 0.0, 1.0, 3.0, dtype=torch.float32).requires_grad_()},
    "prefix": lambda: {"prefix": tensors(100, 300)}, "chunked": lambda: {"chunk": 150},
    "documents": lambda: {"first": torch.cat([tensors([0] * 200, [0] * 200), tensors([200] * 300, [180] * 300).clamp(max=200)], 1)},
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("form", FORMS)
def test_forms(form, head_dim, dtype):
    """O and LSE by a kernel, gradients from both by programs."""
    q, k, v, grad = drawn(dtype, head_dim, 4, 2, 500, 500)
    args = FORMS[form]()
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    more = [t for t in args.values() if isinstance(t, torch.Tensor) and t.requires_grad]
    outputs = fagen.attention(*inputs, form=form, form_args=args, return_lse=True)
    grad_lse = torch.randn(outputs[1].shape, device="cuda")
    found = torch.autograd.grad(outputs, [*inputs, *more], (grad, grad_lse))
    assert_near(found, wanted_of_form(q, k, v, grad, form, args, grad_lse), dtype)


@pytest.mark.parametrize("options", [{"window_size": (60, 0)}, {"causal": True, "softcap": 3.0}, {"window_size": (60, 20)},
                                     {"causal": True, "window_size": (50, 0), "softcap": 3.0}])
def test_flash_attn_has_them(options, monkeypatch):
    monkeypatch.setattr("fagen.flash_attn.fallback", "error")
    q, k, v, grad = drawn(torch.bfloat16, 128, 4, 2, 300, 400)
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    found = torch.autograd.grad(flash_attn_func(*inputs, **options), inputs, grad)
    left, right = options.get("window_size", (-1, 0))
    cap = options.get("softcap")
    form, args = ("local", {"left": left, "right": right}) if not cap else ("gemma2", {"cap": cap, "window": left + 1}) if left >= 0 else ("softcap", {"cap": cap})
    assert_near(found, wanted_of_form(q, k, v, grad, form, args), q.dtype)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(causal, monkeypatch):
    """One launch for all, and the gradients of each sequence by itself."""
    monkeypatch.setattr("fagen.flash_attn.fallback", "error")
    lengths = [100, 1, 300, 64, 129]
    q, k, v, grad = (t[0] for t in drawn(torch.bfloat16, 128, 4, 2, sum(lengths), sum(lengths), batch=1))
    begins = torch.tensor([0, *lengths], device="cuda", dtype=torch.int32).cumsum(0, dtype=torch.int32)
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    o = flash_attn_varlen_func(*inputs, begins, begins, max(lengths), max(lengths), causal=causal)
    found = torch.autograd.grad(o, inputs, grad)
    ends = begins.tolist()
    for first, last in zip(ends, ends[1:]):
        exact = expected(*(t[None, first:last] for t in (q, k, v, grad)), causal)
        for ours, wanted in zip(found, exact):
            assert (ours[first:last].double() - wanted[0].transpose(0, 1)).abs().max() <= 6 * torch.finfo(q.dtype).eps * wanted.abs().max().clamp(min=1)
