# fagen: gradients of attention by the programs for GPUs without wgmma, on any GPU that runs them, one with wgmma among them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

from fagen import _gradients
from test_gradients_gpu import drawn, expected, gradients

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0),
                                reason="no GPU of compute capability 8.0 or newer")


@pytest.fixture(autouse=True)
def by_sync(monkeypatch):
    monkeypatch.setattr(_gradients, "_text_for", lambda device: "_sync")


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


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 96, 128, 192, 256])
def test_same_bits(head_dim, causal):
    inputs = drawn(torch.bfloat16, head_dim, 8, 2, 1000, 1000)
    first = gradients(*inputs, causal)
    for _ in range(200):
        assert all(torch.equal(a, b) for a, b in zip(first, gradients(*inputs, causal)))
