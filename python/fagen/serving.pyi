# fagen: types of what serving engines call.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, SupportsFloat, Tuple, overload

from torch import Tensor, dtype as _dtype

from .torch import _Fallback

class Plan:
    @property
    def tokens(self) -> int: ...
    def rewrite(self, other: Plan) -> None: ...
    @overload
    def run(self, q: Tensor, k_cache: Tensor, v_cache: Tensor, *, scale: Optional[SupportsFloat] = None, window_left: int = -1, softcap: float = 0.0,
            alibi_slopes: Optional[Tensor] = None, out: Optional[Tensor] = None, return_lse: Literal[False] = False,
            fallback: _Fallback = "error") -> Tensor: ...
    @overload
    def run(self, q: Tensor, k_cache: Tensor, v_cache: Tensor, *, scale: Optional[SupportsFloat] = None, window_left: int = -1, softcap: float = 0.0,
            alibi_slopes: Optional[Tensor] = None, out: Optional[Tensor] = None, return_lse: Literal[True],
            fallback: _Fallback = "error") -> Tuple[Tensor, Tensor]: ...

def plan(query_starts: Optional[Tensor], lengths: Tensor, table: Tensor, *, page_size: int, tokens: int, most_rows: int, most_keys: Optional[int] = None,
         causal: bool = True, invariant: bool = False) -> Plan: ...
@overload
def packed(q: Tensor, k: Tensor, v: Tensor, query_starts: Tensor, key_starts: Tensor, *, scale: Optional[SupportsFloat] = None, causal: bool = True,
           window_left: int = -1, softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, return_lse: Literal[False] = False,
           fallback: _Fallback = "error") -> Tensor: ...
@overload
def packed(q: Tensor, k: Tensor, v: Tensor, query_starts: Tensor, key_starts: Tensor, *, scale: Optional[SupportsFloat] = None, causal: bool = True,
           window_left: int = -1, softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None, return_lse: Literal[True],
           fallback: _Fallback = "error") -> Tuple[Tensor, Tensor]: ...
def append(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None: ...
def merge(outputs: Tensor, sums: Tensor, dtype: Optional[_dtype] = None) -> Tuple[Tensor, Tensor]: ...
def check(query_starts: Optional[Tensor], lengths: Tensor, table: Tensor, *, page_size: int, tokens: Optional[int] = None,
          pages: Optional[int] = None, most_rows: Optional[int] = None, most_keys: Optional[int] = None) -> None: ...
