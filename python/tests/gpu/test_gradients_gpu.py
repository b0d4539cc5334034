# fagen: gradients of attention by the package's programs on a GPU: against autograd in float64, the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import threading

import pytest
import torch

import fagen
from fagen import _gradients

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
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("heads, kv_heads, rows, keys", [(4, 4, 512, 512), (6, 2, 300, 777), (4, 1, 900, 130), (2, 2, 1, 77), (2, 2, 64, 1)])
def test_against_autograd(dtype, head_dim, causal, heads, kv_heads, rows, keys):
    q, k, v, grad = drawn(dtype, head_dim, heads, kv_heads, rows, keys)
    assert _gradients.has_program(q, k, v, True)
    to = lambda t: t.to(dtype).double()
    exact, rough = expected(q, k, v, grad, causal), expected(q, k, v, grad, causal, to)
    for ours, wanted, near in zip(gradients(q, k, v, grad, causal), exact, rough):
        assert (ours.transpose(1, 2).double() - wanted).abs().max() <= 2 * (to(near) - wanted).abs().max() + 2.0 ** -13


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128])
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
    inputs = drawn(torch.bfloat16, 64, 2, 2, 130, 130)
    wanted, found = gradients(*inputs, True), []
    q, k, v, grad = inputs
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    o = fagen.attention(*leaves, causal=True)
    kept = torch.autograd.graph.get_gradient_edge(o).node
    thread = threading.Thread(target=lambda: found.extend(kept(grad)))
    thread.start()
    thread.join()
    assert sum(any(torch.equal(t, w) for t in found if t is not None) for w in wanted) == 3
