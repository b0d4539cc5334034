# fagen: transformers with random weights: the mask function, models against sdpa, what falls back.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import random

import pytest
import torch

import transformers
from transformers.masking_utils import causal_mask_function, sdpa_mask

import fagen
import fagen.torch
import fagen.transformers as ours
from fagen import _by_torch
from torch_emulated import shipped_forms, tensors, use_emulator  # noqa: F401

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
SMALL = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 97,
         "max_position_embeddings": 256}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SMALL, num_key_value_heads=1),
    "qwen3": lambda: transformers.Qwen3Config(**SMALL, num_key_value_heads=1, head_dim=64),
    "gpt2": lambda: transformers.GPT2Config(n_embd=128, n_layer=2, n_head=2, vocab_size=97, resid_pdrop=0, attn_pdrop=0),
}


def model(name, implementation):
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation=implementation)
    return made.half().eval()


def tokens(batch=2, length=24):
    return torch.randint(0, 97, (batch, length), generator=torch.Generator().manual_seed(3))


def test_the_mask_function_on_random_problems():
    """What it gives is what sdpa_mask gives without skipping; None is that mask where all is seen, bottom-right."""
    draw = random.Random(0)
    skipped = 0
    for _ in range(200):
        q_length, past, spare = draw.randint(1, 8), draw.choice([0, 0, 3]), draw.choice([0, 0, 4])
        kv_length = past + q_length + spare  # keys after the last row: a static cache
        padding = None
        if draw.random() < 0.5:
            padding = torch.ones(2, kv_length, dtype=torch.bool)
            if draw.random() < 0.5:
                padding[0, :draw.randint(0, 2)] = False
        local = draw.choice([None, None, 2, 50])
        options = {"batch_size": 2, "q_length": q_length, "kv_length": kv_length, "q_offset": past, "attention_mask": padding,
                   "local_size": local, "mask_function": causal_mask_function}
        wanted = sdpa_mask(**options, allow_is_causal_skip=False)
        got = ours.mask(**options, allow_is_causal_skip=True)
        if got is None:
            skipped += 1
            seen = _by_torch.visible(q_length, kv_length, causal=True)
            assert torch.equal(wanted, seen.expand_as(wanted)) and (local is None or local > kv_length)
        else:
            assert torch.equal(got, wanted)
    assert 20 < skipped < 180


def test_bidirectional_masks():
    options = {"batch_size": 1, "q_length": 4, "kv_length": 6, "mask_function": lambda b, h, q, k: k >= 0}
    assert ours.mask(**options, allow_is_causal_skip=False, allow_is_bidirectional_skip=True) is None
    assert ours.mask(**options, allow_is_causal_skip=False) is not None
    padding = torch.tensor([[True] * 5 + [False]])
    assert ours.mask(**options, allow_is_causal_skip=False, allow_is_bidirectional_skip=True, attention_mask=padding) is not None


@pytest.mark.parametrize("name", CONFIGS)
def test_logits(name):
    inputs = tokens()
    with torch.no_grad():
        exact = model(name, "eager").float()(inputs).logits
        sdpa = (model(name, "sdpa")(inputs).logits - exact).abs().max()
        fagen.stats(reset=True)
        error = (model(name, "fagen")(inputs).logits - exact).abs().max()
    assert error <= 2 * sdpa + 1e-3
    assert fagen.stats()["computed"] == {"transformers": 2} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("cache", [None, "static"])
def test_greedy_tokens(name, cache):
    inputs = tokens(1, 9)
    options = {"max_new_tokens": 6, "do_sample": False, "cache_implementation": cache, "disable_compile": True,
               "eos_token_id": None, "pad_token_id": 0, "attention_mask": torch.ones_like(inputs)}
    assert torch.equal(model(name, "fagen").generate(inputs, **options), model(name, "sdpa").generate(inputs, **options))


def test_left_padding_goes_to_sdpa():
    inputs, padding = tokens(), torch.ones(2, 24, dtype=torch.long)
    padding[0, :5] = 0
    fagen.stats(reset=True)
    with torch.no_grad():
        got, wanted = (model("llama", how)(inputs, attention_mask=padding).logits for how in ("fagen", "sdpa"))
    assert torch.equal(got[0, 5:], wanted[0, 5:]) and torch.equal(got[1], wanted[1])
    assert fagen.stats()["fallbacks"] == {("transformers", "a mask"): 2} and not fagen.stats()["computed"]


def test_prefill_in_chunks():
    inputs, one = tokens(1, 20), model("llama", "fagen")
    fagen.stats(reset=True)
    with torch.no_grad():
        cache = transformers.DynamicCache(config=one.config)
        one(inputs[:, :8], past_key_values=cache)
        got = one(inputs[:, 8:], past_key_values=cache).logits
        wanted = model("llama", "sdpa")(inputs).logits[:, 8:]
    torch.testing.assert_close(got, wanted, atol=5e-3, rtol=5e-3)
    assert fagen.stats()["computed"] == {"transformers": 4}


def test_a_fallback_without_a_mask_is_bottom_right():
    """SDPA's is_causal is top-left: a chunk whose head_dim no kernel has must not be given to it as it is."""
    q, k, v = tensors(seq_q=5, seq_kv=12, head_dim=80, kv_heads=4, layout="bhsd")
    module = torch.nn.Module()
    fagen.stats(reset=True)
    o, _ = ours.attention(module, q, k, v, None, is_causal=True)
    assert [reason.split(";")[0] for _, reason in fagen.stats()["fallbacks"]] == ["the emulator: no row for forward f16 head_dim 80, mask causal"]
    wanted, _ = _by_torch.attention(q, k, v, scale=80 ** -0.5, causal=True, bshd=False)
    torch.testing.assert_close(o, wanted.transpose(1, 2), atol=2e-3, rtol=2e-3)


def test_a_window_that_binds_and_softcap_are_not_dropped():
    config = transformers.Gemma2Config(**SMALL, num_key_value_heads=1, head_dim=64, sliding_window=8, query_pre_attn_scalar=64,
                                       attn_logit_softcapping=5.0)
    inputs = tokens()
    results = []
    for how in ("fagen", "eager"):
        torch.manual_seed(0)
        made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=how).half().eval()
        with torch.no_grad():
            results.append(made(inputs).logits)
    torch.testing.assert_close(*results, atol=2e-3, rtol=2e-3)
    assert any(front == "transformers" and why.startswith("softcap") for front, why in fagen.stats()["fallbacks"])


GEMMA2 = dict(SMALL, num_key_value_heads=1, head_dim=64, query_pre_attn_scalar=64, attn_logit_softcapping=5.0)
FORMED = {
    "gemma2": lambda: transformers.Gemma2Config(**GEMMA2, sliding_window=8),
    "mistral": lambda: transformers.MistralConfig(**SMALL, num_key_value_heads=1, head_dim=64, sliding_window=8),
    "gpt_oss": lambda: transformers.GptOssConfig(**SMALL, num_key_value_heads=1, head_dim=64, sliding_window=8,
                                                 num_local_experts=2, num_experts_per_tok=1),
}


@pytest.mark.parametrize("name", FORMED)
def test_windows_softcap_and_sinks_by_forms(shipped_forms, name):
    inputs, results = tokens(), []
    fagen.stats(reset=True)
    for how in ("fagen", "eager"):
        torch.manual_seed(0)
        made = transformers.AutoModelForCausalLM.from_config(FORMED[name](), attn_implementation=how).half().eval()
        with torch.no_grad():
            cache = transformers.DynamicCache(config=made.config)
            parts = [made(part, past_key_values=cache).logits for part in (inputs[:, :20], inputs[:, 20:23], inputs[:, 23:])]
        results.append(torch.cat(parts, 1))
    torch.testing.assert_close(*results, atol=2e-3, rtol=2e-3)
    assert fagen.stats()["computed"] == {"transformers": 6} and not fagen.stats()["fallbacks"]


def test_padding_keeps_a_window_from_the_form(shipped_forms):
    options = {"batch_size": 1, "q_length": 12, "kv_length": 12, "local_size": 4,
               "mask_function": transformers.masking_utils.sliding_window_causal_mask_function(4)}
    assert ours.mask(**options).fagen_local == {"window": 4}
    padding = torch.tensor([[False] + [True] * 11])
    assert ours.mask(**options, attention_mask=padding).fagen_local is None
    chunks = lambda size, left: {**options, "mask_function": transformers.masking_utils.chunked_causal_mask_function(  # noqa: E731
        size, torch.tensor([left], dtype=torch.int))}
    assert ours.mask(**chunks(4, 0)).fagen_local == {"chunk": 4}
    assert ours.mask(**chunks(3, 0)).fagen_local is None and ours.mask(**chunks(4, 1)).fagen_local is None


def test_chunks_by_a_form(shipped_forms):
    """A chunked mask of a prefill in parts and of one step: as sdpa has it."""
    inputs = [t.transpose(1, 2) for t in tensors(seq_q=20, seq_kv=20)]
    fagen.stats(reset=True)
    for begin, end in ((0, 20), (11, 20), (19, 20)):
        q, k, v = inputs[0][:, :, begin:end], *inputs[1:]
        mask = ours.mask(batch_size=1, q_length=end - begin, kv_length=20, q_offset=begin, local_size=8,
                         mask_function=transformers.masking_utils.chunked_causal_mask_function(8, torch.zeros(1, dtype=torch.int)))
        o, _ = ours.attention(torch.nn.Module(), q, k, v, mask, scaling=0.125)
        groups = q.shape[1] // k.shape[1]
        wanted = torch.nn.functional.scaled_dot_product_attention(
            q.float(), *(t.float().repeat_interleave(groups, 1) for t in (k, v)), attn_mask=mask, scale=0.125)
        torch.testing.assert_close(o.float(), wanted.transpose(1, 2), atol=2e-3, rtol=2e-3)
    assert fagen.stats()["computed"] == {"transformers": 3}


def test_compile():
    inputs = tokens()
    with torch.no_grad():
        wanted = model("llama", "fagen")(inputs).logits
        torch.testing.assert_close(torch.compile(model("llama", "fagen"), backend="aot_eager")(inputs).logits, wanted)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_autocast(name):
    """Weights of float32: rotary embeddings leave Q and K in it, V comes as autocast has it."""
    inputs = tokens()
    with torch.no_grad():
        exact = model(name, "eager").float()(inputs).logits
        with torch.autocast("cpu", dtype=torch.float16):
            sdpa = (model(name, "sdpa").float()(inputs).logits - exact).abs().max()
            fagen.stats(reset=True)
            error = (model(name, "fagen").float()(inputs).logits - exact).abs().max()
    assert error <= 2 * sdpa + 1e-3
    assert fagen.stats()["computed"] == {"transformers": 2} and not fagen.stats()["fallbacks"]


@pytest.mark.parametrize("window", [None, 8])
def test_continuous_batching(monkeypatch, window):
    """The same tokens as one request after the other with transformers' own attention; requests come in chunks and together."""
    config = transformers.MistralConfig(**SMALL, num_key_value_heads=1, sliding_window=window)
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float().eval()
    prompts = [tokens(1, n)[0].tolist() for n in (24, 5, 11)]
    options = transformers.GenerationConfig(max_new_tokens=6, do_sample=False, pad_token_id=0)
    wanted = [made.generate(torch.tensor([prompt]), generation_config=options)[0, len(prompt):].tolist() for prompt in prompts]
    made.set_attn_implementation("paged|fagen")
    fagen.stats(reset=True)
    from transformers.generation.continuous_batching.cache import PagedAttentionMemoryHandler
    monkeypatch.setattr(PagedAttentionMemoryHandler, "_check_footprint", lambda _, tokens, blocks: (tokens, blocks))  # asks psutil on a CPU
    batching = transformers.ContinuousBatchingConfig(block_size=16, num_blocks=12, max_batch_tokens=16, use_cuda_graph=False)
    found = made.generate_batch(prompts, generation_config=options, continuous_batching_config=batching, progress_bar=False)
    assert [one.generated_tokens for one in found.values()] == wanted
    assert fagen.stats()["fallbacks"]  # float32 has no kernels


def test_what_continuous_batching_does_not_have():
    with pytest.raises(fagen.Unsupported, match="s_aux with continuous batching"):
        ours.paged_attention(None, *[None] * 4, s_aux=torch.ones(2))
    with pytest.raises(fagen.Error, match="without a cache of pages"):
        ours.paged_attention(None, *[None] * 4)
