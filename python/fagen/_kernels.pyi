# fagen: types of kernel sets.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
from typing import Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

from torch import Tensor

from .torch import _Arg, _Fallback, _Layout, _Number, Plan

_Path = Union[str, os.PathLike[str]]
_Dtype = Literal["f16", "bf16", "e4m3"]

class KernelSet:
    @overload
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = ..., form: Optional[str] = ...,
                 form_args: Optional[Mapping[str, _Arg]] = ..., scale: Optional[_Number] = ..., layout: _Layout = ...,
                 return_lse: Literal[False] = ..., out: Optional[Tensor] = ..., fallback: _Fallback = ..., **params: _Arg) -> Tensor: ...
    @overload
    def __call__(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = ..., form: Optional[str] = ...,
                 form_args: Optional[Mapping[str, _Arg]] = ..., scale: Optional[_Number] = ..., layout: _Layout = ...,
                 return_lse: Literal[True], out: Optional[Tensor] = ..., fallback: _Fallback = ...,
                 **params: _Arg) -> Tuple[Tensor, Tensor]: ...
    def plan(self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = ..., scale: Optional[_Number] = ...,
             layout: _Layout = ...) -> Plan: ...
    @property
    def forms(self) -> Dict[str, List[str]]: ...
    @property
    def programs(self) -> List[str]: ...
    @property
    def names(self) -> List[str]: ...
    def source(self, name: str, target: Optional[str] = None) -> str: ...
    def explain(self, q: Optional[Tensor] = None, k: Optional[Tensor] = None, v: Optional[Tensor] = None, *,
                shape: Optional[Sequence[int]] = None, dtype: _Dtype = "f16", causal: bool = False, lse: bool = False,
                scale: Optional[_Number] = None, layout: _Layout = "bshd", gpu: Optional[str] = None, sms: Optional[int] = None,
                variant: Optional[str] = None, form: Optional[str] = None,
                form_args: Optional[Mapping[str, _Arg]] = None, **params: object) -> str: ...

def compile(spec: _Path, *, targets: Optional[Sequence[str]] = None) -> KernelSet: ...
def load(directory: _Path) -> KernelSet: ...
def ready() -> KernelSet: ...
