# fagen: flash-attn 2's functions, with their argument order.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from fagen.flash_attn import flash_attn_func` in place of `from flash_attn import flash_attn_func`.

Kernels compute scale, causal (bottom-right), windows that are causal or bind nothing, grouped heads and LSE. The rest
PyTorch computes, once a reason with a warning: `fagen.flash_attn.fallback` is "warn", "torch" or "error".
"""
from . import _flash

fallback = "warn"


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """O, or (O, LSE, None) if return_attn_probs: the probabilities themselves are not kept."""
    o, lse = _flash.attend("flash_attn_func", q, k, v, scale=softmax_scale, causal=causal, window=window_size,
                           softcap=softcap, dropout=dropout_p, alibi_slopes=alibi_slopes, lse=return_attn_probs,
                           fallback=fallback)
    return (o, lse, None) if return_attn_probs else o


def flash_attn_kvpacked_func(q, kv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                             alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """kv is [batch, seq, 2, kv_heads, head_dim]."""
    return flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                           deterministic, return_attn_probs)


def flash_attn_qkvpacked_func(qkv, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                              alibi_slopes=None, deterministic=False, return_attn_probs=False):
    """qkv is [batch, seq, 3, heads, head_dim]."""
    return flash_attn_func(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], dropout_p, softmax_scale, causal, window_size, softcap,
                           alibi_slopes, deterministic, return_attn_probs)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
                           softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                           deterministic=False, return_attn_probs=False, block_table=None):
    """q is [total, heads, head_dim]. One launch, and no host reads the offsets (docs/Python.md, Lengths on the GPU)."""
    _flash.refuse_all("flash_attn_varlen_func", block_table=block_table)
    o, lse = _flash.varlen("flash_attn_varlen_func", q, k, v, cu_seqlens_q, cu_seqlens_k, scale=softmax_scale, causal=causal,
                           window=window_size, softcap=softcap, dropout=dropout_p, alibi_slopes=alibi_slopes,
                           lse=return_attn_probs, fallback=fallback)
    return (o, lse, None) if return_attn_probs else o


def flash_attn_with_kvcache(q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
                            cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
                            window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
                            return_softmax_lse=False):
    """One launch, whatever the lengths, with pages too; of pages with more than 16 rows of q the keys are copied together before (docs/PythonDetails.md, Pages)."""
    _flash.refuse_all("flash_attn_with_kvcache", rotary_cos=rotary_cos, rotary_sin=rotary_sin)
    o, lse = _flash.kvcache("flash_attn_with_kvcache", q, k_cache, v_cache, k, v, cache_seqlens, batch_idx=cache_batch_idx,
                            leftpad=cache_leftpad, table=block_table, scale=softmax_scale, causal=causal, window=window_size,
                            softcap=softcap, alibi_slopes=alibi_slopes, lse=return_softmax_lse, fallback=fallback)
    return (o, lse) if return_softmax_lse else o
