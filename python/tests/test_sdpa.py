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
from torch_emulated import assert_near, tensors, use_emulator

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
