# fagen: types of attention for JAX.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, Tuple, Union, overload

from jax import Array

from ._jax_programs import program as program
from .torch import _Fallback

fallback: _Fallback

@overload
def dot_product_attention(query: Array, key: Array, value: Array, bias: Optional[Array] = None, mask: Optional[Array] = None, *,
                          scale: Union[None, float, Array] = None, is_causal: bool = False, query_seq_lengths: Optional[Array] = None,
                          key_value_seq_lengths: Optional[Array] = None,
                          local_window_size: Union[None, int, Tuple[int, int]] = None,
                          implementation: Optional[Literal["xla", "cudnn"]] = None,
                          return_residual: Literal[False] = False) -> Array: ...
@overload
def dot_product_attention(query: Array, key: Array, value: Array, bias: Optional[Array] = None, mask: Optional[Array] = None, *,
                          scale: Union[None, float, Array] = None, is_causal: bool = False, query_seq_lengths: Optional[Array] = None,
                          key_value_seq_lengths: Optional[Array] = None,
                          local_window_size: Union[None, int, Tuple[int, int]] = None,
                          implementation: Optional[Literal["xla", "cudnn"]] = None,
                          return_residual: Literal[True]) -> Tuple[Array, Array]: ...
