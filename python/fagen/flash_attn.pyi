# fagen: types of flash-attn 2's functions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, Tuple, Union, overload

from torch import Tensor

from .torch import _Fallback

fallback: _Fallback

@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                    causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                    return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                    causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: Optional[Tensor] = None, deterministic: bool = False, *,
                    return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...

@overload
def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                             causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                             softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                             return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                             causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                             softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False, *,
                             return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...

@overload
def flash_attn_qkvpacked_func(qkv: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                              causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                              softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                              return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_qkvpacked_func(qkv: Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                              causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                              softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False, *,
                              return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor, None]: ...

@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                           max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                           causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                           return_attn_probs: Literal[False] = False, block_table: Optional[Tensor] = None) -> Tensor: ...
@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                           max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                           causal: bool = False, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, deterministic: bool = False, *,
                           return_attn_probs: Literal[True],
                           block_table: Optional[Tensor] = None) -> Tuple[Tensor, Tensor, None]: ...

@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = None,
                            v: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                            rotary_sin: Optional[Tensor] = None, cache_seqlens: Union[None, int, Tensor] = None,
                            cache_batch_idx: Optional[Tensor] = None, cache_leftpad: Optional[Tensor] = None,
                            block_table: Optional[Tensor] = None, softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), softcap: float = 0.0,
                            rotary_interleaved: bool = True, alibi_slopes: Optional[Tensor] = None, num_splits: int = 0,
                            return_softmax_lse: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = None,
                            v: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                            rotary_sin: Optional[Tensor] = None, cache_seqlens: Union[None, int, Tensor] = None,
                            cache_batch_idx: Optional[Tensor] = None, cache_leftpad: Optional[Tensor] = None,
                            block_table: Optional[Tensor] = None, softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), softcap: float = 0.0,
                            rotary_interleaved: bool = True, alibi_slopes: Optional[Tensor] = None, num_splits: int = 0, *,
                            return_softmax_lse: Literal[True]) -> Tuple[Tensor, Tensor]: ...
