# fagen: attention kernels for Python: compiled from short specs, ready for PyTorch. Imports no framework.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
    o = fagen.attention(q, k, v, causal=True)          # PyTorch tensors [batch, seq, heads, head_dim] on a GPU
    ks = fagen.compile("target sm_90a; kernel mine { ... }")
    print(ks.explain(shape=(1, 16, 16, 4096, 4096, 128), gpu="sm_90"))
    fagen.stats()                                      # what ran, and what fell back, and why

fagen.flash_attn and fagen.flash_attn_interface have flash-attn 2's and 3's functions; fagen.transformers registers
"fagen" with transformers; fagen.jax has jax.nn's dot_product_attention. fagen.torch is imported with the first name that needs PyTorch.
"""
import importlib

from ._stats import stats
from .errors import ArgumentError, CompileError, CudaError, Diagnostic, Error, Misaligned, SpecError, Unsupported

TYPE_CHECKING = False  # as type checkers know it, without the cost of importing typing
if TYPE_CHECKING:
    from ._kernels import KernelSet, compile, load, ready
    from ._mla import mla_decode
    from ._quantize import quantize
    from ._torch_programs import program
    from .torch import attention, explain, plan, warmup

# What is imported when it is first asked for: the rest of Python's library has its price too.
_LATER = {"KernelSet": "_kernels", "compile": "_kernels", "load": "_kernels", "ready": "_kernels",
          "mla_decode": "_mla", "program": "_torch_programs", "quantize": "_quantize", "attention": "torch", "explain": "torch", "plan": "torch", "warmup": "torch"}

__all__ = ["__version__", "ArgumentError", "CompileError", "CudaError", "Diagnostic", "Error", "Misaligned", "SpecError", "Unsupported", "stats", *_LATER]


def __getattr__(name):
    if name == "__version__":
        return _version()
    if name not in _LATER:
        raise AttributeError(f"module 'fagen' has no attribute {name!r}{_meant(name)}")
    try:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Error(f"fagen.{name} needs PyTorch 2.10 or later, and it is not installed: pip install torch") from None
    globals()[name] = value
    return value


def _meant(name):
    """What an unknown name may have been meant for, to go after it."""
    import difflib
    import importlib.util
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return f"; import fagen.{name} brings it"
    near = difflib.get_close_matches(name, __all__, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _version():
    """Of the wheel; where there is none, as in a build folder, what the compiler says."""
    import importlib.metadata
    try:
        return importlib.metadata.version("fagen")
    except importlib.metadata.PackageNotFoundError:
        import subprocess
        from . import _lib
        return subprocess.run([_lib.path("bin", "fagen"), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


def __dir__():
    return sorted(__all__)
