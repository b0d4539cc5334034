# fagen: types of attention for Hugging Face's transformers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Any, Callable, Optional, Tuple, Union

from torch import Tensor
from torch.nn import Module

def mask(batch_size: int, q_length: int, kv_length: int, q_offset: Union[int, Tensor] = 0, kv_offset: int = 0,
         mask_function: Optional[Callable[..., Any]] = None, attention_mask: Optional[Tensor] = None,
         local_size: Optional[int] = None, allow_is_causal_skip: bool = True, allow_is_bidirectional_skip: bool = False,
         **rest: Any) -> Optional[Tensor]: ...
def attention(module: Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor], dropout: float = 0.0,
              scaling: Optional[float] = None, is_causal: Optional[bool] = None, **options: Any) -> Tuple[Tensor, None]: ...
def paged_attention(module: Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Optional[Tensor], dropout: float = 0.0,
                    scaling: Optional[float] = None, cache: Any = None, cu_seq_lens_q: Optional[Tensor] = None, cu_seq_lens_k: Any = None,
                    read_index: Any = None, write_index: Any = None, block_table: Optional[Tensor] = None, **options: Any) -> Tuple[Tensor, None]: ...
