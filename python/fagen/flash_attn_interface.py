# fagen: flash-attn 3's functions, with their argument order.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from fagen.flash_attn_interface import flash_attn_func` in place of flash_attn_interface's.

As fagen.flash_attn; its fourth argument is the scale, not dropout. num_splits, pack_gqa and sm_margin are hints, which
kernels do not need. k and v may be of float8 next to a q of 16 bits, with the descales (docs/Python.md). `fagen.flash_attn_interface.fallback` is "warn", "torch" or "error".
"""
from . import _flash

fallback = "warn"


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                    window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None, deterministic=False,
                    sm_margin=0, return_attn_probs=False):
    """O, or (O, LSE) if return_attn_probs."""
    _flash.refuse_all("flash_attn_func", qv=qv, attention_chunk=attention_chunk)
    descales = _flash.descales_of("flash_attn_func", q, k, q_descale, k_descale, v_descale)
    o, lse = _flash.attend("flash_attn_func", q, k, v, scale=softmax_scale, causal=causal, window=window_size,
                           softcap=softcap, lse=return_attn_probs, fallback=fallback, descales=descales)
    return (o, lse) if return_attn_probs else o


def flash_attn_qkvpacked_func(qkv, softmax_scale=None, causal=False, q_descale=None, k_descale=None, v_descale=None,
                              window_size=(-1, -1), attention_chunk=0, softcap=0.0, deterministic=False, num_heads_q=None,
                              sm_margin=0, return_attn_probs=False):
    """qkv is [batch, seq, 3, heads, head_dim], or [batch, seq, num_heads_q + 2 * kv_heads, head_dim]."""
    if qkv.dim() == 5:
        q, k, v = qkv.unbind(dim=-3)
    else:
        kv_heads = (qkv.shape[2] - num_heads_q) // 2
        q, k, v = qkv.split([num_heads_q, kv_heads, kv_heads], dim=-2)
    return flash_attn_func(q, k, v, softmax_scale, causal, None, q_descale, k_descale, v_descale, window_size, attention_chunk,
                           softcap, deterministic=deterministic, sm_margin=sm_margin, return_attn_probs=return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q=None, seqused_k=None,
                           softmax_scale=None, causal=False, qv=None, q_descale=None, k_descale=None, v_descale=None,
                           window_size=(-1, -1), attention_chunk=0, softcap=0.0, num_splits=1, pack_gqa=None,
                           deterministic=False, sm_margin=0, return_attn_probs=False):
    """q is [total, heads, head_dim]. One launch, and no host reads the offsets (docs/Python.md, Lengths on the GPU)."""
    _flash.refuse_all("flash_attn_varlen_func", qv=qv, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale,
                      attention_chunk=attention_chunk)
    o, lse = _flash.varlen("flash_attn_varlen_func", q, k, v, cu_seqlens_q, cu_seqlens_k, seqused_q=seqused_q,
                           seqused_k=seqused_k, scale=softmax_scale, causal=causal, window=window_size, softcap=softcap,
                           lse=return_attn_probs, fallback=fallback)
    return (o, lse) if return_attn_probs else o


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, qv=None, rotary_cos=None, rotary_sin=None,
                            cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, page_table=None,
                            cu_seqlens_q=None, cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None,
                            q_descale=None, k_descale=None, v_descale=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), attention_chunk=0, softcap=0.0, rotary_interleaved=True,
                            scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0, return_softmax_lse=False):
    """One launch, whatever the lengths, with pages too; of pages with more than 16 rows of q the keys are copied together before (docs/PythonDetails.md, Pages)."""
    _flash.refuse_all("flash_attn_with_kvcache", qv=qv, rotary_cos=rotary_cos, rotary_sin=rotary_sin,
                      cu_seqlens_q=cu_seqlens_q, cu_seqlens_k_new=cu_seqlens_k_new, rotary_seqlens=rotary_seqlens,
                      attention_chunk=attention_chunk)
    descales = _flash.descales_of("flash_attn_with_kvcache", q, k_cache, q_descale, k_descale, v_descale)
    o, lse = _flash.kvcache("flash_attn_with_kvcache", q, k_cache, v_cache, k, v, cache_seqlens, batch_idx=cache_batch_idx,
                            leftpad=cache_leftpad, table=page_table, scale=softmax_scale, causal=causal, window=window_size,
                            softcap=softcap, lse=return_softmax_lse, fallback=fallback, descales=descales)
    return (o, lse) if return_softmax_lse else o
