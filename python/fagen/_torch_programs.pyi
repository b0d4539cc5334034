# fagen: types of programs on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
from typing import Callable, Optional, Tuple, Union

from torch import Tensor

from ._kernels import KernelSet

def set_emulator(function: Optional[Callable[..., None]]) -> None: ...

class Program:
    def __init__(self, kernels: KernelSet, name: Optional[str]) -> None: ...
    @property
    def name(self) -> str: ...
    def __call__(self, /, **arguments: Union[Tensor, int, float]) -> Union[Tensor, Tuple[Tensor, ...]]: ...

def program(kernels: Union[KernelSet, str, os.PathLike[str]], name: Optional[str] = None) -> Program: ...
