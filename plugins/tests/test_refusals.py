# fagen: what the vLLM plugin refuses, since it would compute something else.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from types import SimpleNamespace

import pytest

import fagen
import stubs


@pytest.mark.parametrize("options, words", [
    ({"kv_sharing_target_layer_name": "layers.3.attn"}, "kv_sharing_target_layer_name is 'layers.3.attn'"), ({"logits_soft_cap": 30.0}, "logits_soft_cap is 30.0")])
def test_layers(options, words):
    with pytest.raises(fagen.Unsupported, match=words):
        stubs.plugin("vllm").FagenImpl(8, 64, 0.125, **options)


def test_more_drafts_than_a_group_has_rows():
    made = lambda drafts: stubs.plugin("vllm").FagenMetadataBuilder(  # noqa: E731
        SimpleNamespace(block_size=16), ["layers.0"], SimpleNamespace(speculative_config=SimpleNamespace(num_speculative_tokens=drafts)), None)
    made(15)
    with pytest.raises(fagen.Unsupported, match="num_speculative_tokens is 16; graphs take up to 15 drafts"):
        made(16)
