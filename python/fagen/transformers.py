# fagen: attention for Hugging Face's transformers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`import fagen.transformers`, then AutoModel.from_pretrained(..., attn_implementation="fagen").

Kernels compute causal and bidirectional attention without padding, decoding, and prefill in chunks; with a causal mask also sliding
windows, chunked attention, softcap and sinks (s_aux), where a form of the package has them together, with gradients on GPUs of
compute capability 9.0; elsewhere those of windows alone. What has another mask or dropout goes to transformers' sdpa; position biases, and
softcap and sinks that no form takes, to the model's own eager function. stats() counts those.

Continuous batching (generate_batch) takes attn_implementation="paged|fagen": packed rows over the keys that transformers' cache reads together.
Its shortcut for decoding over pages is for flash-attn's packages alone, by their names.
"""
import sys

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from . import _arguments, _by_torch, _flash, _forms, _stats, errors
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
    made = sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset, kv_offset=kv_offset,
                     attention_mask=attention_mask, local_size=local_size, allow_is_causal_skip=False,
                     allow_is_bidirectional_skip=False, **keywords)
    if binds and ends_together and not torch.compiler.is_compiling():
        made.fagen_local = _local_of(made, q_length, kv_length, local_size)
    return made


def _local_of(made, q_length, kv_length, size):
    """{"window": size} or {"chunk": size}, whichever the mask is: neither padding nor anything else; None where it is another."""
    window = _by_torch.visible(q_length, kv_length, causal=True, window=(size - 1, 0), device=made.device)
    key, place = torch.arange(kv_length, device=made.device), torch.arange(q_length, device=made.device)[:, None] + kv_length - q_length
    chunk = (key <= place) & (key // size == place // size)
    for name, seen in (("window", window), ("chunk", chunk)):
        if made.dtype == torch.bool and bool((made == seen).all()):
            return {name: size}
    return None


def _form_of(query, key, attention_mask, dropout, is_causal, options):
    """(form, args) of the package's forms that compute this; None where none does, or none is needed."""
    local = getattr(attention_mask, "fagen_local", None)
    is_plain = attention_mask is None or (local is not None and attention_mask.shape[-1] == key.shape[2])
    if attention_mask is None and options.get("sliding_window") is not None and key.shape[2] > options["sliding_window"]:
        return None
    rest = dropout or options.get("position_bias") is not None or options.get("output_attentions")
    if not is_plain or rest or not (is_causal or local is not None):
        return None
    sinks = options.get("s_aux")
    return _forms.shipped(**(local or {}), softcap=options.get("softcap"), sinks=None if sinks is None else sinks.float())


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


def _is_causal(module, is_causal):
    return bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)


def _causal(module, query, is_causal):
    return _is_causal(module, is_causal) and query.shape[2] > 1


def _by_form(query, key, value, scaling, form, args):
    """(O, None), or (None, why not)."""
    why = front.why_not_form(query, key, value, form, args, bshd=False)
    if why is None:
        try:
            o, _ = front.attend_form("transformers", query, key, value, form, args, scale=scaling, bshd=False)
            return o.transpose(1, 2).contiguous(), None
        except errors.Unsupported as refused:
            why = refused.reason
    return None, why


def _by_transformers(module, query, key, value, attention_mask, dropout, scaling, is_causal, eagerly, options):
    """The sdpa function, or the model's eager one: masks that are not told are made, bottom-right."""
    if attention_mask is None and is_causal and (eagerly or query.shape[2] != key.shape[2]):
        attention_mask = _by_torch.visible(query.shape[2], key.shape[2], causal=True, device=query.device)[None, None]
    if not eagerly:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling,
                                      is_causal=is_causal, **options)
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None or (options.get("sliding_window") is not None and attention_mask is None):
        raise errors.Unsupported(f"transformers: {type(module).__name__}: no eager_attention_forward in its module")
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        least = torch.finfo(query.dtype).min
        attention_mask = torch.zeros((), dtype=query.dtype, device=query.device).masked_fill(~attention_mask, least)
    return eager(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options)


def attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **options):
    """O [batch, seq, heads, head_dim], and None; tensors are [batch, heads, seq, head_dim]."""
    causal = _causal(module, query, is_causal)
    form = _form_of(query, key, attention_mask, dropout, _is_causal(module, is_causal), options)
    reason, eagerly = _reason(key, attention_mask, dropout, options)
    cast = _arguments.cast(query, key, value)
    if form is not None:
        o, why = _by_form(*cast, scaling, *form)
        if o is not None:
            return o, None
        reason = f"{reason}: {why}"
    if reason is None:
        try:
            o, _ = front.attend("transformers", *cast, scale=scaling, causal=causal, bshd=False, has_other_way=True)
            return o.transpose(1, 2).contiguous(), None
        except errors.Unsupported as refused:
            reason = refused.reason
    if not torch.compiler.is_compiling():
        _stats.refuse("transformers", reason, "torch")
    return _by_transformers(module, query, key, value, attention_mask, dropout, scaling, causal, eagerly, options)


def paged_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, cache=None, cu_seq_lens_q=None, cu_seq_lens_k=None,
                    read_index=None, write_index=None, block_table=None, **options):
    """O [rows, heads, head_dim] of packed rows, and None; q, k and v are [1, heads, rows, head_dim], those of all requests. cache takes the new
    keys, and gives those of all requests one after the other, which begin at cu_seq_lens_k."""
    for name, given in (("dropout", dropout), ("softcap", options.get("softcap")), ("s_aux", options.get("s_aux")), ("block_table", block_table)):
        if given is not None and not (isinstance(given, (int, float)) and given == 0):
            raise errors.Unsupported(f"transformers: {name} with continuous batching: no kernel has it; paged|sdpa or paged|eager may")
    if cache is None:
        raise errors.Error("transformers: paged|fagen is called without a cache of pages; generate_batch makes one, and fagen is for other calls")
    window = options.get("sliding_window") or getattr(module, "sliding_window", None) or 0
    if isinstance(cu_seq_lens_k, dict):
        cu_seq_lens_k = cu_seq_lens_k["sliding_attention" if window else "full_attention"]
    key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, read_index=read_index, write_index=write_index)
    o, _ = _flash.varlen("transformers", query[0].transpose(0, 1), key, value, cu_seq_lens_q, cu_seq_lens_k, scale=scaling, causal=True,
                         window=(window - 1, 0), softcap=0.0, lse=False, fallback="torch")
    return o[None], None


AttentionInterface.register("fagen", attention)
AttentionInterface.register("paged|fagen", paged_attention)
AttentionMaskInterface.register("fagen", mask)
