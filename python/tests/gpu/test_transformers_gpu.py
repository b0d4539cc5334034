# fagen: transformers' models with random weights on a GPU: logits, greedy tokens, caches, padding.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

transformers = pytest.importorskip("transformers")

import fagen
import fagen.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
if torch.cuda.is_available():
    import fagen.transformers

SIZES = {"hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4, "vocab_size": 1000, "max_position_embeddings": 2048}
LANGUAGE = {
    "llama": lambda: transformers.LlamaConfig(**SIZES, num_attention_heads=8, num_key_value_heads=2),
    "gpt2": lambda: transformers.GPT2Config(n_embd=768, n_layer=4, n_head=12, vocab_size=1000, n_positions=2048),
    "gemma": lambda: transformers.GemmaConfig(**SIZES, num_attention_heads=4, num_key_value_heads=1, head_dim=256),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, num_attention_heads=8, num_key_value_heads=2, head_dim=128),
}
FALLS_BACK = {
    "gemma2": lambda: transformers.Gemma2Config(**SIZES, num_attention_heads=4, num_key_value_heads=1, head_dim=256,
                                                sliding_window=64),
    "gemma3": lambda: transformers.Gemma3TextConfig(**SIZES, num_attention_heads=4, num_key_value_heads=1, head_dim=256,
                                                    sliding_window=64),
}


def model(config, implementation, dtype=torch.bfloat16):
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(config(), attn_implementation=implementation)
    return made.to(dtype).cuda().eval()


def tokens(batch=2, length=300):
    return torch.randint(0, 1000, (batch, length), generator=torch.Generator().manual_seed(3)).cuda()


@pytest.mark.parametrize("name", [*LANGUAGE, *FALLS_BACK])
@torch.no_grad()
def test_logits(name):
    config, inputs = {**LANGUAGE, **FALLS_BACK}[name], tokens()
    wanted = model(config, "eager", torch.bfloat16).float()(inputs).logits
    sdpa = (model(config, "sdpa")(inputs).logits - wanted).abs().max()
    fagen.stats(reset=True)
    error = (model(config, "fagen")(inputs).logits - wanted).abs().max()
    print(f"{name}: {float(error):.4f}, SDPA {float(sdpa):.4f}, {fagen.stats()['computed']}, {fagen.stats()['fallbacks']}")
    assert error <= 2 * sdpa + 1e-3
    assert bool(fagen.stats()["fallbacks"]) == (name in FALLS_BACK)


@pytest.mark.parametrize("name", LANGUAGE)
@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("padding", [0, 7])
def test_greedy_tokens(name, cache, padding):
    """64 tokens; where bf16 lets them part, the logits of the first that differs are within SDPA's error of each other."""
    inputs, mask = tokens(2, 50), torch.ones((2, 50), dtype=torch.long, device="cuda")
    mask[0, :padding] = 0
    options = {"max_new_tokens": 64, "do_sample": False, "cache_implementation": cache, "disable_compile": True,
               "eos_token_id": None, "pad_token_id": 0, "attention_mask": mask}
    ours, theirs = (model(LANGUAGE[name], how, torch.float16).generate(inputs, **options) for how in ("fagen", "sdpa"))
    same = int((ours == theirs).all(0).int().cumprod(0).sum())
    print(f"{name}: {same - 50} of 64 tokens equal")
    if same < ours.shape[1]:
        with torch.no_grad():
            logits = model(LANGUAGE[name], "eager", torch.float16).float()(ours[:, :same], attention_mask=torch.cat(
                [mask, mask.new_ones(2, same - 50)], 1)).logits[:, -1]
        for row in range(2):
            first, second = logits[row, ours[row, same]], logits[row, theirs[row, same]]
            assert abs(first - second) < 2e-2


@torch.no_grad()
def test_vit():
    config = transformers.ViTConfig(num_hidden_layers=4)
    results = {}
    for how, dtype in (("eager", torch.float32), ("sdpa", torch.bfloat16), ("fagen", torch.bfloat16)):
        torch.manual_seed(0)
        made = transformers.ViTModel._from_config(config, attn_implementation=how).to(torch.bfloat16).to(dtype).cuda().eval()
        pixels = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1)).cuda()
        results[how] = made(pixels.to(torch.bfloat16).to(dtype)).last_hidden_state.float()
    error, sdpa = ((results[how] - results["eager"]).abs().max() for how in ("fagen", "sdpa"))
    assert error <= 2 * sdpa + 1e-3


@torch.no_grad()
def test_whisper():
    config = transformers.WhisperConfig(encoder_layers=2, decoder_layers=2, vocab_size=1000, pad_token_id=0, bos_token_id=1,
                                        eos_token_id=2, decoder_start_token_id=1)
    results = {}
    for how, dtype in (("eager", torch.float32), ("sdpa", torch.bfloat16), ("fagen", torch.bfloat16)):
        torch.manual_seed(0)
        made = transformers.WhisperModel._from_config(config, attn_implementation=how).to(torch.bfloat16).to(dtype).cuda().eval()
        sound = torch.randn(2, 80, 3000, generator=torch.Generator().manual_seed(1)).cuda().to(torch.bfloat16).to(dtype)
        results[how] = made(sound, decoder_input_ids=tokens(2, 20)).last_hidden_state.float()
    error, sdpa = ((results[how] - results["eager"]).abs().max() for how in ("fagen", "sdpa"))
    assert error <= 2 * sdpa + 1e-3
