# fagen: types of the package.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Dict, List, Tuple, TypedDict

from ._kernels import KernelSet as KernelSet
from ._kernels import compile as compile
from ._kernels import load as load
from ._kernels import ready as ready
from ._mla import mla_decode as mla_decode
from .errors import ArgumentError as ArgumentError
from .errors import CompileError as CompileError
from .errors import CudaError as CudaError
from .errors import Diagnostic as Diagnostic
from .errors import Error as Error
from .errors import Misaligned as Misaligned
from .errors import SpecError as SpecError
from .errors import Unsupported as Unsupported
from ._quantize import quantize as quantize
from ._torch_programs import program as program
from .torch import attention as attention
from .torch import explain as explain
from .torch import plan as plan
from .torch import warmup as warmup

__version__: str
__all__: List[str]

class _Stats(TypedDict):
    computed: Dict[str, int]
    padded: Dict[Tuple[str, str], int]
    fallbacks: Dict[Tuple[str, str], int]
    launches: Dict[Tuple[str, str], int]

def stats(reset: bool = False) -> _Stats: ...
