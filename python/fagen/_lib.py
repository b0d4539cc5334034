# fagen: libfagen.so.1 by ctypes: the functions of fagen.h and table.h.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C ABI. Nothing here knows a framework."""
import ctypes
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint32, c_void_p

from . import errors
from ._structs import ABI, Call, Choice, ChoiceInfo, DeviceInfo, Problem

PACKAGE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f16": 1, "bf16": 2, "e4m3": 3}
KV_DTYPES = {"e4m3": 3, "e5m2": 8}
MASK_NONE, MASK_CAUSAL = 1, 2
FLAG_LSE = 1

OK, INVALID, UNSUPPORTED, MISALIGNED, WORKSPACE, NOT_PREPARED, COMPILE, CUDA, ABI_MISMATCH, OUT_OF_MEMORY = range(10)
_EXCEPTIONS = {UNSUPPORTED: errors.Unsupported, MISALIGNED: errors.Misaligned, COMPILE: errors.CompileError,
               CUDA: errors.CudaError}


_SIGNATURES = {
    "fagen_device_create": (c_int32, [c_int32, POINTER(c_void_p)]),
    "fagen_device_describe": (c_int32, [c_uint32, c_uint32, POINTER(c_void_p)]),
    "fagen_device_make_current": (c_int32, [c_void_p]),
    "fagen_device_get_info": (c_int32, [c_void_p, POINTER(DeviceInfo)]),
    "fagen_query": (c_int32, [POINTER(c_void_p), c_size_t, POINTER(Problem), c_void_p, POINTER(Choice)]),
    "fagen_query_program": (c_int32, [POINTER(c_void_p), c_size_t, POINTER(Call), c_void_p, POINTER(Choice)]),
    "fagen_run_program": (c_int32, [POINTER(Choice), POINTER(Call), c_void_p, c_size_t, c_void_p]),
    "fagen_lend_workspace": (c_int32, [POINTER(Choice), c_void_p, c_void_p, POINTER(c_void_p)]),
    "fagen_prepare": (c_int32, [POINTER(Choice), c_void_p]),
    "fagen_choice_get_info": (c_int32, [POINTER(Choice), POINTER(ChoiceInfo)]),
    "fagen_explain": (c_size_t, [POINTER(c_void_p), c_size_t, POINTER(Problem), c_void_p, c_char_p, c_size_t]),
    "fagen_last_error": (c_char_p, []),
    "fagen_table_load": (c_int32, [c_char_p, POINTER(c_void_p)]),
}


def path(*parts):
    """A file of the package; Error where the package is incomplete."""
    name = os.path.join(PACKAGE, *parts)
    if not os.path.exists(name):
        raise errors.Error(f"{name} is missing: this is fagen's source, not its package; `pip install .` in the "
                           "repository builds one, and `ninja fagen_python` one under build/release/python")
    return name


@functools.lru_cache(maxsize=None)
def library():
    """libfagen.so.1, loaded once."""
    lib = ctypes.CDLL(path("lib", "libfagen.so.1"))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def check(status):
    """Raises what the status stands for, with the library's reason; nothing for OK."""
    if status != OK:
        raise _EXCEPTIONS.get(status, errors.Error)(library().fagen_last_error().decode())


def load_table(directory):
    """The table of a kernel set. It is kept for the life of the process: devices may hold its kernels."""
    table = c_void_p()
    check(library().fagen_table_load(os.fsencode(directory), byref(table)))
    return table.value


@functools.lru_cache(maxsize=None)
def device(ordinal):
    """The GPU of this CUDA ordinal."""
    handle = c_void_p()
    check(library().fagen_device_create(ordinal, byref(handle)))
    return handle


@functools.lru_cache(maxsize=None)
def described_device(capability, sms):
    """A GPU that need not exist."""
    handle = c_void_p()
    check(library().fagen_device_describe(capability, sms, byref(handle)))
    return handle


def pointers(tables):
    return (c_void_p * len(tables))(*tables)


def explain(tables, problem, on):
    """What fagen_explain says of the problem, with these tables on this device."""
    array = pointers(tables)
    size = library().fagen_explain(array, len(tables), byref(problem), on, None, 0)
    text = ctypes.create_string_buffer(size + 1)
    library().fagen_explain(array, len(tables), byref(problem), on, text, size + 1)
    return text.value.decode()
