# fagen: the attention layers of a model, from its transformers config.json.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No transformers needed: a config.json is read as it is."""
import json
from typing import List, NamedTuple, Optional

from . import errors


class Layer(NamedTuple):
    """Layers of one shape."""
    count: int
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    causal: bool
    window: Optional[int]  # keys that a row sees; None: all


# The names that models give to the same number.
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_ENCODERS = ("bert", "roberta", "distilbert", "albert", "electra", "vit", "clip", "wav2vec2", "modernbert", "siglip")


def _first(config, names, default=None):
    return next((config[name] for name in names if config.get(name) is not None), default)


def read_model(path: str) -> "List[Layer]":
    """The layers of a config.json, those of one shape as one. Error with what is missing."""
    with errors.reading(path, "the model"), open(path, encoding="utf-8") as file:
        config = json.load(file)
    if not isinstance(config, dict):
        raise errors.Error(f"'{path}' is no config.json of transformers: it holds no object")
    return layers_of(config, path)


def _number(config, names, path, default=None):
    value = _first(config, names, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise errors.Error(f"'{path}' has no {names[0]}, nor {', '.join(names[1:])}: it is no config.json of a model with attention"
                           if value is None else f"'{path}': {names[0]} is {value!r}; it is a positive number")
    return value


def layers_of(config, path="config.json"):
    """The layers of a config; of its text model where it has several."""
    if isinstance(config.get("text_config"), dict):
        config = {**config, **config["text_config"]}
    heads, count = _number(config, _HEADS, path), _number(config, _LAYERS, path)
    kv_heads = _number(config, _KV_HEADS, path, heads if not config.get("multi_query") else 1)
    if heads % kv_heads:
        raise errors.Error(f"'{path}': {kv_heads} heads of K and V do not divide {heads} heads")
    if config.get("qk_rope_head_dim") and config.get("v_head_dim"):  # latent attention, keys and values expanded
        dim, dim_v = config["qk_rope_head_dim"] + config.get("qk_nope_head_dim", 0), config["v_head_dim"]
        kv_heads = heads
    else:
        dim = dim_v = _first(config, ("head_dim", "d_kv")) or _number(config, _HIDDEN, path) // heads
    causal = config.get("model_type") not in _ENCODERS and not config.get("is_encoder_decoder", False)
    windows = [_window(config, kind) for kind in _kinds(config, count)]
    return [Layer(windows.count(window), heads, kv_heads, dim, dim_v, causal, window) for window in dict.fromkeys(windows)]


def _kinds(config, count):
    """What each layer is; Gemma's older configs say every how many layers one sees all keys."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return [kind for kind in kinds if kind.endswith("attention") and not kind.startswith("linear")]
    pattern = config.get("sliding_window_pattern")
    if isinstance(pattern, int) and pattern > 1:
        return ["sliding_attention" if (i + 1) % pattern else "full_attention" for i in range(count)]
    has_window = config.get("sliding_window") and config.get("use_sliding_window", True)
    return ["sliding_attention" if has_window else "full_attention"] * count


def _window(config, kind):
    return config.get("sliding_window") if kind in ("sliding_attention", "chunked_attention") else None
