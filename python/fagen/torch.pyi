# fagen: types of attention on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Dict, Iterable, Literal, Mapping, Optional, SupportsFloat, Tuple, Union, overload

import torch
from torch import Tensor

from ._kernels import KernelSet

_Layout = Literal["bshd", "bhsd"]
_Number = SupportsFloat  # of Python or NumPy, or a tensor of one
_Arg = Union[SupportsFloat, Tensor]
_Fallback = Literal["error", "warn", "torch"]

@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, form: Optional[str] = None,
              form_args: Optional[Mapping[str, _Arg]] = None, scale: Optional[_Number] = None, layout: _Layout = "bshd",
              return_lse: Literal[False] = False, out: Optional[Tensor] = None, fallback: _Fallback = "error",
              kernels: Optional[KernelSet] = None, invariant: bool = False, **params: _Arg) -> Tensor: ...
@overload
def attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, form: Optional[str] = None,
              form_args: Optional[Mapping[str, _Arg]] = None, scale: Optional[_Number] = None, layout: _Layout = "bshd",
              return_lse: Literal[True], out: Optional[Tensor] = None, fallback: _Fallback = "error",
              kernels: Optional[KernelSet] = None, invariant: bool = False, **params: _Arg) -> Tuple[Tensor, Tensor]: ...

class Plan:
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, out: Tensor) -> Tensor: ...

def plan(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: Optional[_Number] = None, layout: _Layout = "bshd",
         kernels: Optional[KernelSet] = None) -> Plan: ...
def explain(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, scale: Optional[_Number] = None, layout: _Layout = "bshd",
            lse: bool = False, form: Optional[str] = None, form_args: Optional[Mapping[str, _Arg]] = None, **params: _Arg) -> str: ...
def pack_bits(tensor: Tensor) -> Tensor: ...
def warmup(shapes: Iterable[Tuple[int, int, int, int, int, int]], *, dtype: torch.dtype = ..., causal: bool = True,
           device: str = "cuda") -> None: ...
def enable_pdl(on: bool = True) -> None: ...
def enable_checks(on: bool = True) -> None: ...
def launches() -> Dict[Tuple[str, str], int]: ...
