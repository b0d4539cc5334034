# fagen: types of flash-attn 3's functions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, Tuple, Union, overload

from torch import Tensor

from .torch import _Fallback

fallback: _Fallback

@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, softmax_scale: Optional[float] = None, causal: bool = False,
                    qv: Optional[Tensor] = None, q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                    v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                    attention_chunk: int = 0, softcap: float = 0.0, num_splits: int = 1, pack_gqa: Optional[bool] = None,
                    deterministic: bool = False, sm_margin: int = 0, return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, softmax_scale: Optional[float] = None, causal: bool = False,
                    qv: Optional[Tensor] = None, q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                    v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                    attention_chunk: int = 0, softcap: float = 0.0, num_splits: int = 1, pack_gqa: Optional[bool] = None,
                    deterministic: bool = False, sm_margin: int = 0, *,
                    return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor]: ...

@overload
def flash_attn_qkvpacked_func(qkv: Tensor, softmax_scale: Optional[float] = None, causal: bool = False,
                              q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                              v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                              attention_chunk: int = 0, softcap: float = 0.0, deterministic: bool = False,
                              num_heads_q: Optional[int] = None, sm_margin: int = 0,
                              return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_qkvpacked_func(qkv: Tensor, softmax_scale: Optional[float] = None, causal: bool = False,
                              q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                              v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                              attention_chunk: int = 0, softcap: float = 0.0, deterministic: bool = False,
                              num_heads_q: Optional[int] = None, sm_margin: int = 0, *,
                              return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor]: ...

@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                           max_seqlen_k: int, seqused_q: Optional[Tensor] = None, seqused_k: Optional[Tensor] = None,
                           softmax_scale: Optional[float] = None, causal: bool = False, qv: Optional[Tensor] = None,
                           q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                           v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                           attention_chunk: int = 0, softcap: float = 0.0, num_splits: int = 1,
                           pack_gqa: Optional[bool] = None, deterministic: bool = False, sm_margin: int = 0,
                           return_attn_probs: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                           max_seqlen_k: int, seqused_q: Optional[Tensor] = None, seqused_k: Optional[Tensor] = None,
                           softmax_scale: Optional[float] = None, causal: bool = False, qv: Optional[Tensor] = None,
                           q_descale: Optional[Tensor] = None, k_descale: Optional[Tensor] = None,
                           v_descale: Optional[Tensor] = None, window_size: Tuple[Optional[int], Optional[int]] = (-1, -1),
                           attention_chunk: int = 0, softcap: float = 0.0, num_splits: int = 1,
                           pack_gqa: Optional[bool] = None, deterministic: bool = False, sm_margin: int = 0, *,
                           return_attn_probs: Literal[True]) -> Tuple[Tensor, Tensor]: ...

@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = None,
                            v: Optional[Tensor] = None, qv: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                            rotary_sin: Optional[Tensor] = None, cache_seqlens: Union[None, int, Tensor] = None,
                            cache_batch_idx: Optional[Tensor] = None, cache_leftpad: Optional[Tensor] = None,
                            page_table: Optional[Tensor] = None, cu_seqlens_q: Optional[Tensor] = None,
                            cu_seqlens_k_new: Optional[Tensor] = None, max_seqlen_q: Optional[int] = None,
                            rotary_seqlens: Optional[Tensor] = None, q_descale: Optional[Tensor] = None,
                            k_descale: Optional[Tensor] = None, v_descale: Optional[Tensor] = None,
                            softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), attention_chunk: int = 0,
                            softcap: float = 0.0, rotary_interleaved: bool = True,
                            scheduler_metadata: Optional[Tensor] = None, num_splits: int = 0, pack_gqa: Optional[bool] = None,
                            sm_margin: int = 0, return_softmax_lse: Literal[False] = False) -> Tensor: ...
@overload
def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor, k: Optional[Tensor] = None,
                            v: Optional[Tensor] = None, qv: Optional[Tensor] = None, rotary_cos: Optional[Tensor] = None,
                            rotary_sin: Optional[Tensor] = None, cache_seqlens: Union[None, int, Tensor] = None,
                            cache_batch_idx: Optional[Tensor] = None, cache_leftpad: Optional[Tensor] = None,
                            page_table: Optional[Tensor] = None, cu_seqlens_q: Optional[Tensor] = None,
                            cu_seqlens_k_new: Optional[Tensor] = None, max_seqlen_q: Optional[int] = None,
                            rotary_seqlens: Optional[Tensor] = None, q_descale: Optional[Tensor] = None,
                            k_descale: Optional[Tensor] = None, v_descale: Optional[Tensor] = None,
                            softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Tuple[Optional[int], Optional[int]] = (-1, -1), attention_chunk: int = 0,
                            softcap: float = 0.0, rotary_interleaved: bool = True,
                            scheduler_metadata: Optional[Tensor] = None, num_splits: int = 0, pack_gqa: Optional[bool] = None,
                            sm_margin: int = 0, *, return_softmax_lse: Literal[True]) -> Tuple[Tensor, Tensor]: ...
