# fagen: types of programs on JAX arrays.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
from typing import Callable, Optional, Tuple, Union

from jax import Array
from numpy import ndarray

from ._kernels import KernelSet

def set_emulator(function: Optional[Callable[..., None]]) -> None: ...

class Program:
    def __init__(self, kernels: Union[KernelSet, str, os.PathLike[str]], name: Optional[str]) -> None: ...
    @property
    def name(self) -> str: ...
    def __call__(self, /, **arguments: Union[Array, ndarray, int, float]) -> Union[Array, Tuple[Array, ...]]: ...

def program(kernels: Union[KernelSet, str, os.PathLike[str]], name: Optional[str] = None) -> Program: ...
