# fagen: in SDPA's place: the kernels' functions on CPU tensors, and the registry.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import fagen
import fagen.torch
from fagen import _sdpa
from torch_emulated import assert_near, shipped_forms, tensors, use_emulator  # noqa: F401

emulated = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")


class Saved:
    """PyTorch's own kernel, which says that it was called."""

    def call_boxed(self, keyset, *arguments, **keywords):
        return "PyTorch", arguments, keywords


def sdpa(q, k, v, causal):
    return F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True)


@emulated
@pytest.mark.parametrize("lengths", [(24, 24), (24, 40), (1, 40)])
@pytest.mark.parametrize("causal", [False, True])
def test_flash_is_top_left(lengths, causal):
    q, k, v = tensors(seq_q=lengths[0], seq_kv=lengths[1], layout="bhsd")
    result = _sdpa.flash(Saved())(None, q, k, v, 0.0, causal)
    assert_near(result[0], sdpa(q, k, v, causal))
    assert len(result) == 9 and result[1].shape == q.shape[:3] and result[4:6] == lengths
    assert_near(_sdpa.cudnn(Saved())(None, q, k, v, None, False, 0.0, causal)[0], sdpa(q, k, v, causal))


@emulated
def test_the_output_lies_as_the_query_does():
    q, k, v = (t.transpose(1, 2) for t in tensors())
    assert _sdpa.flash(Saved())(None, q, k, v)[0].stride() == q.stride()


@emulated
@pytest.mark.parametrize("change", [
    {"dropout_p": 0.1}, {"return_debug_mask": True}, {"is_causal": True, "seq_q": 40, "seq_kv": 24}, {"head_dim": 80}])
def test_flash_that_stays_with_torch(change):
    sizes = {name: change.pop(name) for name in ("seq_q", "seq_kv", "head_dim") if name in change}
    fagen.stats(reset=True)
    result = _sdpa.flash(Saved())(None, *tensors(layout="bhsd", **sizes), scale=0.5, **change)
    assert result[0] == "PyTorch" and len(result[1]) == 6 and result[2] == {"scale": 0.5}
    assert sum(fagen.stats()["fallbacks"].values()) == 1


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_scales_that_are_no_numbers_stay_with_torch(scale):
    assert _sdpa.flash(Saved())(None, *tensors(layout="bhsd"), scale=scale)[0] == "PyTorch"


@emulated
def test_a_scale_below_0():
    q, k, v = tensors(layout="bhsd")
    wanted = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), scale=-0.2, enable_gqa=True)
    assert_near(_sdpa.flash(Saved())(None, q, k, v, scale=-0.2)[0], wanted)


def test_cudnn_keeps_what_wants_a_gradient_or_has_a_mask():
    q, k, v = tensors(layout="bhsd")
    assert _sdpa.cudnn(Saved())(None, q, k, v, None, True)[0] == "PyTorch"
    assert _sdpa.cudnn(Saved())(None, q, k, v, torch.zeros(40, 40), False)[0] == "PyTorch"


def packed(causal, window=(-1, -1), **options):
    q, k, v = (t[0] for t in tensors(seq_q=40, seq_kv=60))
    starts = torch.tensor([0, 3, 3, 40], dtype=torch.int32), torch.tensor([0, 5, 20, 60], dtype=torch.int32)
    got = _sdpa.packed(Saved())(None, q, k, v, *starts, 37, 40, 0.0, causal, False, window_size_left=window[0], window_size_right=window[1], **options)
    return (q, k, v, *starts), got


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (7, 0)])
def test_packed_sequences(shipped_forms, window):
    (q, k, v, starts_q, starts_k), got = packed(window == (-1, 0), window, scale=0.2)
    assert len(got) == 5 and got[1].shape == (4, 40)
    for (a, b), (c, d) in zip(zip(starts_q, starts_q[1:]), zip(starts_k, starts_k[1:])):
        place = torch.arange(b - a)[:, None] + (d - c) - (b - a)
        way = place - torch.arange(d - c)[None]
        seen = (way <= (window[0] if window[0] >= 0 else 99)) & (way >= (0 if window[1] == 0 else -99))
        wanted = F.scaled_dot_product_attention(*(t.double().transpose(0, 1) for t in (q[a:b], k[c:d], v[c:d])), attn_mask=seen, scale=0.2, enable_gqa=True)
        assert_near(got[0][a:b].transpose(0, 1), wanted)


def test_packed_rows_without_keys_are_as_pytorch_wants_them(shipped_forms):
    q, k, v = (t[0] for t in tensors(seq_q=9, seq_kv=3))
    starts = torch.tensor([0, 9], dtype=torch.int32), torch.tensor([0, 3], dtype=torch.int32)
    o, lse, *_ = _sdpa.packed(Saved())(None, q, k, v, *starts, 9, 3, 0.0, True, False)
    assert (lse[:, :6] == torch.inf).all() and lse[:, 6:].isfinite().all() and not o[:6].any()


@pytest.mark.parametrize("options", [{"alibi_slopes": torch.ones(4)}, {"dropout": 0.1}])
def test_packed_sequences_that_stay_with_torch(options):
    fagen.stats(reset=True)
    q, k, v = (t[0] for t in tensors())
    starts = torch.tensor([0, 40], dtype=torch.int32)
    result = _sdpa.packed(Saved())(None, q, k, v, starts, starts, 40, 40, options.pop("dropout", 0.0), True, False, **options)
    assert result[0] == "PyTorch" and len(result[1]) == 10 and set(result[2]) == {"scale", "window_size_left", "window_size_right", "seqused_k", "alibi_slopes"}
    assert _sdpa.packed(Saved())(None, q[None], k[None], v[None], None, None, 40, 40, 0.0, True, False)[0] == "PyTorch"
    assert sum(fagen.stats()["fallbacks"].values()) == 2


def test_the_registry_knows_us_and_gives_back():
    from torch.nn.attention import activate_flash_attention_impl, list_flash_attention_impls, restore_flash_attention_impl
    assert "fagen" in list_flash_attention_impls()
    for _ in range(2):
        activate_flash_attention_impl("fagen")
        restore_flash_attention_impl()


def test_activation_says_nothing():
    """PyTorch warns of kernels that are replaced, which is what is asked for."""
    code = "import fagen.torch, torch\ntorch.nn.attention.activate_flash_attention_impl('fagen')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Warning" not in done.stderr
