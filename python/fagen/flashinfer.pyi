# fagen: types of FlashInfer's wrappers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, Tuple, Union, overload

from torch import Tensor, device as _device

from .torch import _Fallback

_Caches = Union[Tensor, Tuple[Tensor, Tensor]]

fallback: _Fallback

class _Wrapper:
    max_sequence_kv: Optional[int]
    device: _device
    @property
    def is_cuda_graph_enabled(self) -> bool: ...
    def reset_workspace_buffer(self, float_workspace_buffer: Tensor, int_workspace_buffer: Tensor) -> None: ...
    def end_forward(self) -> None: ...

class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    def __init__(self, float_workspace_buffer: Tensor, kv_layout: str = "NHD", use_cuda_graph: bool = False, use_tensor_cores: bool = False,
                 paged_kv_indptr_buffer: Optional[Tensor] = None, paged_kv_indices_buffer: Optional[Tensor] = None,
                 paged_kv_last_page_len_buffer: Optional[Tensor] = None, backend: str = "auto", jit_args: object = None) -> None: ...
    @property
    def use_tensor_cores(self) -> bool: ...
    def plan(self, indptr: Tensor, indices: Tensor, last_page_len: Tensor, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, *,
             pos_encoding_mode: str = "NONE", window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: object = None,
             kv_data_type: object = None, o_data_type: object = None, data_type: object = None, sm_scale: Optional[float] = None,
             rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True,
             block_tables: Optional[Tensor] = None, seq_lens: Optional[Tensor] = None, fixed_split_size: Optional[int] = None,
             disable_split_kv: bool = False, q_len_per_req: int = 1) -> None: ...
    begin_forward = plan
    @overload
    def run(self, q: Tensor, paged_kv_cache: _Caches, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None, return_lse: Literal[False] = False,
            enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: object = None, q_len_per_req: Optional[int] = None,
            skip_softmax_threshold_scale_factor: object = None, kv_cache_sf: object = None) -> Tensor: ...
    @overload
    def run(self, q: Tensor, paged_kv_cache: _Caches, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None, return_lse: Literal[True],
            enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: object = None, q_len_per_req: Optional[int] = None,
            skip_softmax_threshold_scale_factor: object = None, kv_cache_sf: object = None) -> Tuple[Tensor, Tensor]: ...

class CUDAGraphBatchDecodeWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    def __init__(self, workspace_buffer: Tensor, indptr_buffer: Tensor, indices_buffer: Tensor, last_page_len_buffer: Tensor,
                 kv_layout: str = "NHD", use_tensor_cores: bool = False) -> None: ...

class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    def __init__(self, float_workspace_buffer: Tensor, kv_layout: str = "NHD", use_cuda_graph: bool = False,
                 qo_indptr_buf: Optional[Tensor] = None, paged_kv_indptr_buf: Optional[Tensor] = None,
                 paged_kv_indices_buf: Optional[Tensor] = None, paged_kv_last_page_len_buf: Optional[Tensor] = None,
                 custom_mask_buf: Optional[Tensor] = None, mask_indptr_buf: Optional[Tensor] = None, backend: str = "auto",
                 jit_args: object = None, jit_kwargs: object = None) -> None: ...
    def plan(self, qo_indptr: Tensor, paged_kv_indptr: Tensor, paged_kv_indices: Tensor, paged_kv_last_page_len: Tensor, num_qo_heads: int,
             num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: object = None,
             packed_custom_mask: object = None, causal: bool = False, pos_encoding_mode: str = "NONE", use_fp16_qk_reduction: bool = False,
             sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None,
             rope_theta: Optional[float] = None, q_data_type: object = "float16", kv_data_type: object = None, o_data_type: object = None,
             non_blocking: bool = True, prefix_len_ptr: object = None, token_pos_in_items_ptr: object = None, token_pos_in_items_len: int = 0,
             max_item_len_ptr: object = None, seq_lens: Optional[Tensor] = None, seq_lens_q: Optional[Tensor] = None,
             block_tables: Optional[Tensor] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None,
             fixed_split_size: Optional[int] = None, disable_split_kv: bool = False) -> None: ...
    begin_forward = plan
    @overload
    def run(self, q: Tensor, paged_kv_cache: _Caches, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None, return_lse: Literal[False] = False,
            enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: object = None, kv_cache_sf: object = None,
            skip_softmax_threshold_scale_factor: object = None, use_fp16_softmax: object = None, uses_spcompress: object = None) -> Tensor: ...
    @overload
    def run(self, q: Tensor, paged_kv_cache: _Caches, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None, return_lse: Literal[True],
            enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: object = None, kv_cache_sf: object = None,
            skip_softmax_threshold_scale_factor: object = None, use_fp16_softmax: object = None,
            uses_spcompress: object = None) -> Tuple[Tensor, Tensor]: ...

class BatchPrefillWithRaggedKVCacheWrapper(_Wrapper):
    def __init__(self, float_workspace_buffer: Tensor, kv_layout: str = "NHD", use_cuda_graph: bool = False,
                 qo_indptr_buf: Optional[Tensor] = None, kv_indptr_buf: Optional[Tensor] = None, custom_mask_buf: Optional[Tensor] = None,
                 mask_indptr_buf: Optional[Tensor] = None, backend: str = "auto", jit_args: object = None, jit_kwargs: object = None) -> None: ...
    def plan(self, qo_indptr: Tensor, kv_indptr: Tensor, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_vo: Optional[int] = None,
             custom_mask: object = None, packed_custom_mask: object = None, causal: bool = False, pos_encoding_mode: str = "NONE",
             use_fp16_qk_reduction: bool = False, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None,
             rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: object = "float16", kv_data_type: object = None,
             o_data_type: object = None, non_blocking: bool = True, prefix_len_ptr: object = None, token_pos_in_items_ptr: object = None,
             token_pos_in_items_len: int = 0, max_item_len_ptr: object = None, fixed_split_size: Optional[int] = None,
             disable_split_kv: bool = False, seq_lens: Optional[Tensor] = None, seq_lens_q: Optional[Tensor] = None,
             max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, v_indptr: object = None,
             o_indptr: object = None) -> None: ...
    begin_forward = plan
    @overload
    def run(self, q: Tensor, k: Tensor, v: Tensor, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, o_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None,
            return_lse: Literal[False] = False, enable_pdl: Optional[bool] = None, kv_cache_sf: object = None) -> Tensor: ...
    @overload
    def run(self, q: Tensor, k: Tensor, v: Tensor, *args: object, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
            v_scale: Optional[float] = None, o_scale: Optional[float] = None, out: Optional[Tensor] = None, lse: Optional[Tensor] = None,
            return_lse: Literal[True], enable_pdl: Optional[bool] = None, kv_cache_sf: object = None) -> Tuple[Tensor, Tensor]: ...

@overload
def single_decode_with_kv_cache(q: Tensor, k: Tensor, v: Tensor, kv_layout: str = "NHD", pos_encoding_mode: str = "NONE",
                                use_tensor_cores: bool = False, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
                                v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None,
                                sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None,
                                return_lse: Literal[False] = False) -> Tensor: ...
@overload
def single_decode_with_kv_cache(q: Tensor, k: Tensor, v: Tensor, kv_layout: str = "NHD", pos_encoding_mode: str = "NONE",
                                use_tensor_cores: bool = False, q_scale: Optional[float] = None, k_scale: Optional[float] = None,
                                v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None,
                                sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, *,
                                return_lse: Literal[True]) -> Tuple[Tensor, Tensor]: ...
@overload
def single_prefill_with_kv_cache(q: Tensor, k: Tensor, v: Tensor, scale_q: object = None, scale_k: object = None, scale_v: object = None,
                                 o_dtype: object = None, custom_mask: object = None, packed_custom_mask: object = None, causal: bool = False,
                                 kv_layout: str = "NHD", pos_encoding_mode: str = "NONE", use_fp16_qk_reduction: bool = False,
                                 sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None,
                                 rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, backend: str = "auto",
                                 return_lse: Literal[False] = False, kv_cache_sf: object = None, k_scale: Optional[float] = None,
                                 v_scale: Optional[float] = None) -> Tensor: ...
@overload
def single_prefill_with_kv_cache(q: Tensor, k: Tensor, v: Tensor, scale_q: object = None, scale_k: object = None, scale_v: object = None,
                                 o_dtype: object = None, custom_mask: object = None, packed_custom_mask: object = None, causal: bool = False,
                                 kv_layout: str = "NHD", pos_encoding_mode: str = "NONE", use_fp16_qk_reduction: bool = False,
                                 sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None,
                                 rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, backend: str = "auto", *,
                                 return_lse: Literal[True], kv_cache_sf: object = None, k_scale: Optional[float] = None,
                                 v_scale: Optional[float] = None) -> Tuple[Tensor, Tensor]: ...
def merge_state(v_a: Tensor, s_a: Tensor, v_b: Tensor, s_b: Tensor) -> Tuple[Tensor, Tensor]: ...
def merge_state_in_place(v: Tensor, s: Tensor, v_other: Tensor, s_other: Tensor, mask: Optional[Tensor] = None) -> None: ...
def merge_states(v: Tensor, s: Tensor) -> Tuple[Tensor, Tensor]: ...
def get_seq_lens(kv_indptr: Tensor, kv_last_page_len: Tensor, page_size: int) -> Tensor: ...
def get_batch_indices_positions(append_indptr: Tensor, seq_lens: Tensor, nnz: int, batch_indices: Optional[Tensor] = None,
                                positions: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]: ...
def append_paged_kv_cache(append_key: Tensor, append_value: Tensor, batch_indices: Tensor, positions: Tensor, paged_kv_cache: _Caches,
                          kv_indices: Tensor, kv_indptr: Tensor, kv_last_page_len: Tensor, kv_layout: str = "NHD") -> None: ...
