# fagen: in the place of PyTorch's flash attention, on a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch
import torch.nn.functional as F

import fagen
import fagen.torch
from torch.nn.attention import SDPBackend, activate_flash_attention_impl, restore_flash_attention_impl, sdpa_kernel

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")


@pytest.fixture(autouse=True)
def active():
    activate_flash_attention_impl("fagen")
    fagen.stats(reset=True)
    yield
    restore_flash_attention_impl()


def tensors(heads=8, kv_heads=8, seq_q=512, seq_kv=512, head_dim=128, dtype=torch.bfloat16):
    draw = torch.Generator(device="cuda").manual_seed(0)
    shapes = [(2, heads, seq_q, head_dim)] + 2 * [(2, kv_heads, seq_kv, head_dim)]
    return [torch.randn(s, generator=draw, device="cuda").to(dtype) for s in shapes]


def exact(q, k, v, **options):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q.double(), k.double(), v.double(), **options)


def computed():
    return sum(fagen.stats()["computed"].values())


@pytest.mark.parametrize("backend", [None, SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [8, 2])
def test_values(backend, causal, kv_heads):
    q, k, v = tensors(kv_heads=kv_heads)
    options = {"is_causal": causal, "enable_gqa": kv_heads != 8}
    if backend is None:
        o = F.scaled_dot_product_attention(q, k, v, **options)
    else:
        with sdpa_kernel(backend):
            o = F.scaled_dot_product_attention(q, k, v, **options)
    torch.testing.assert_close(o.double(), exact(q, k, v, **options), atol=1.6e-2, rtol=1.6e-2)
    assert computed() == 1


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal):
    inputs = [t.requires_grad_() for t in tensors()]
    doubles = [t.detach().double().requires_grad_() for t in inputs]
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        F.scaled_dot_product_attention(*inputs, is_causal=causal).sum().backward()
    exact(*doubles, is_causal=causal).sum().backward()
    assert computed() == 1
    for got, wanted in zip(inputs, doubles):
        torch.testing.assert_close(got.grad.double(), wanted.grad, atol=5e-2, rtol=5e-2)


def test_a_mask_and_dropout_stay_with_torch():
    q, k, v = tensors()
    mask = torch.ones(512, 512, dtype=torch.bool, device="cuda").tril(3)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).double(), exact(q, k, v, attn_mask=mask),
                               atol=1.6e-2, rtol=1.6e-2)
    F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert computed() == 0


def test_compiled():
    pytest.importorskip("triton")
    q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in tensors())
    compiled = torch.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True) + 1)
    torch.testing.assert_close(compiled(q, k, v).double(), exact(q, k, v, is_causal=True) + 1, atol=1.6e-2, rtol=1.6e-2)


def test_restored():
    restore_flash_attention_impl()
    F.scaled_dot_product_attention(*tensors())
    assert computed() == 0
    activate_flash_attention_impl("fagen")
