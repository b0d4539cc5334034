# fagen: attention for Hugging Face's transformers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`import fagen.transformers`, then AutoModel.from_pretrained(..., attn_implementation="fagen").

Kernels compute causal and bidirectional attention without padding, decoding, and prefill in chunks. What has a mask, dropout or
a window that binds goes to transformers' sdpa; softcap, sinks (s_aux) and position biases to the model's own eager function.
stats() counts those.
"""
import sys

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from . import _by_torch, _stats, errors
from . import torch as front


def _is_unpadded(attention_mask):
    """Whether all keys are known to be tokens; a graph cannot depend on values."""
    return attention_mask is None or (not torch.compiler.is_compiling() and bool(attention_mask.all()))


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None, local_size=None,
         allow_is_causal_skip=True, allow_is_bidirectional_skip=False, **rest):
    """The mask that transformers gives to attention(): None only for what kernels see without one.

    That is all keys, or a causal mask whose last row sees the last key (bottom-right), without padding and without a window
    that binds. SDPA's own function also gives None for the prefill of a static cache, whose last keys are not written yet.
    """
    binds = local_size is not None and kv_length >= local_size
    ends_together = not isinstance(q_offset, torch.Tensor) and q_offset + q_length == kv_offset + kv_length
    can_skip = allow_is_bidirectional_skip or (allow_is_causal_skip and ends_together)
    if can_skip and not binds and _is_unpadded(attention_mask):
        return None
    keywords = dict(rest) if mask_function is None else {**rest, "mask_function": mask_function}
    return sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
                     attention_mask=attention_mask, local_size=local_size, allow_is_causal_skip=False,
                     allow_is_bidirectional_skip=False, **keywords)


def _reason(key, attention_mask, dropout, options):
    """Why kernels do not compute this, and whether only the model's eager function does."""
    for name in ("softcap", "s_aux", "position_bias"):
        if options.get(name) is not None:
            return name, True
    if options.get("output_attentions"):
        return "output_attentions", True
    if attention_mask is not None:
        return "a mask", False
    if dropout:
        return "dropout", False
    window = options.get("sliding_window")
    if window is not None and key.shape[2] > window:
        return "a sliding window without a mask", True
    return None, False


def _causal(module, query, is_causal):
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    return bool(is_causal) and query.shape[2] > 1


def _by_transformers(module, query, key, value, attention_mask, dropout, scaling, is_causal, eagerly, options):
    """The sdpa function, or the model's eager one: masks that are not told are made, bottom-right."""
    if attention_mask is None and is_causal and (eagerly or query.shape[2] != key.shape[2]):
        attention_mask = _by_torch.visible(query.shape[2], key.shape[2], causal=True, device=query.device)[None, None]
    if not eagerly:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling,
                                      is_causal=is_causal, **options)
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None or (options.get("sliding_window") is not None and attention_mask is None):
        raise errors.Unsupported(f"transformers: {type(module).__name__}: no eager_attention_forward beside it")
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        least = torch.finfo(query.dtype).min
        attention_mask = torch.zeros((), dtype=query.dtype, device=query.device).masked_fill(~attention_mask, least)
    return eager(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options)


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **options):
    """O [batch, seq, heads, head_dim], and None; tensors are [batch, heads, seq, head_dim]."""
    causal = _causal(module, query, is_causal)
    reason, eagerly = _reason(key, attention_mask, dropout, options)
    if reason is None:
        try:
            o, _ = front.attend("transformers", query, key, value, scale=scaling, causal=causal, bshd=False)
            return o.transpose(1, 2).contiguous(), None
        except errors.Unsupported as refused:
            reason = refused.reason
    if not torch.compiler.is_compiling():
        _stats.refuse("transformers", reason, "torch")
    return _by_transformers(module, query, key, value, attention_mask, dropout, scaling, causal, eagerly, options)


AttentionInterface.register("fagen", attention)
AttentionMaskInterface.register("fagen", mask)
