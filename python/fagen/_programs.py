# fagen: programs of kernel sets: what they take, as their manifests say, and calls of them by the C ABI.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nothing here knows a framework."""
import ctypes
import functools
import json
import os
from ctypes import byref, c_int64, c_uint32, c_void_p

from . import _lib, errors
from ._structs import Call, Choice, NamedNumber, NamedTensor

_I32, _F32, _EXPLICIT = 1, 2, 4
_SMS = 132  # an H100's
DTYPES = {"f16": 1, "bf16": 2, "e4m3": 3, "f32": 4, "u32": 5, "i32": 6, "u8": 7}  # fagen.h's

_OPERATIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
               "floor_div": lambda a, b: a // b, "ceil_div": lambda a, b: -(-a // b), "mod": lambda a, b: a % b,
               "min": lambda a, b: a if a < b else b, "max": lambda a, b: b if a < b else a}


class Tensor:
    """A tensor of a program: `type` is an element's, `shape` a list of postfix programs over its numbers."""

    def __init__(self, buffer):
        self.name, self.type, self.shape, self.declared = (buffer[key] for key in ("name", "type", "shape", "declared"))
        self.written, self.zeroed = bool(buffer.get("written")), bool(buffer.get("zeroed"))


class Signature:
    """What a program takes: its tensors and numbers, in order."""

    def __init__(self, name, plan):
        self.name = name
        self.tensors = [Tensor(b) for b in plan["buffers"] if not b.get("restored") and not b.get("workspace")]
        self.numbers = {number["name"]: number["kind"] for number in plan["numbers"]}

    def __str__(self):
        tensors = ", ".join(f"{t.name}: {t.declared}" for t in self.tensors if not t.written)
        numbers = ", ".join(f"{name}: {kind}" for name, kind in self.numbers.items())
        results = ", ".join(f"{t.name}: {t.declared}" for t in self.tensors if t.written)
        return f"{self.name}({tensors}) -> {results}; numbers {numbers}"

    def shapes(self, extents, numbers):
        """{name: shape} of all tensors, as these extents and numbers tell; without those that they do not tell."""
        known = dict(numbers)
        for tensor in self.tensors:
            for terms, extent in zip(tensor.shape, extents.get(tensor.name, ())):
                if len(terms) == 1 and isinstance(terms[0], str):
                    known.setdefault(terms[0], extent)
        found = {}
        for tensor in self.tensors:
            try:
                found[tensor.name] = tuple(_value(terms, known) for terms in tensor.shape)
            except KeyError:  # a number that is missing: the call says which
                pass
        return found


def _value(terms, known):
    stack = []
    for term in terms:
        if isinstance(term, int):
            stack.append(term)
        elif term in known:
            stack.append(known[term])
        elif term in _OPERATIONS and len(stack) > 1:
            b, a = stack.pop(), stack.pop()
            stack.append(_OPERATIONS[term](a, b))
        else:
            raise KeyError(term)
    return stack[0]


@functools.lru_cache(maxsize=None)
def signatures_of(directories):
    """{name: Signature} of the sets' programs."""
    found = {}
    for directory in directories:
        path = os.path.join(directory, "manifest.json")
        with errors.reading(path, "manifest"), open(path, encoding="utf-8") as file:
            for row in json.load(file)["rows"]:
                if "program" in row:
                    found.setdefault(row["variant"], Signature(row["variant"], row["program"]))
    return found


def make_call(name, tensors, numbers, kinds):
    """A Call that keeps what it points at. tensors: (name, address, type, shape, strides) each."""
    call = Call()
    listed = (NamedTensor * max(len(tensors), 1))()
    for place, (tensor, address, dtype, shape, strides) in zip(listed, tensors):
        place.name, place.data, place.dtype, place.rank = tensor.encode(), address, DTYPES[dtype], len(shape)
        if len(shape) > len(place.extent):
            raise errors.Error(f"{name}: tensor '{tensor}' has {len(shape)} dimensions; a program's has at most "
                               f"{len(place.extent)}")
        place.extent[:len(shape)] = shape
        place.stride[:len(shape)] = strides
    given = (NamedNumber * max(len(numbers), 1))()
    for place, (number, value) in zip(given, numbers.items()):
        place.name, place.kind = number.encode(), _F32 if kinds.get(number) == "f32" else _I32
        if place.kind == _F32:
            place.f32 = value
        else:
            place.i32 = value
    call.program, call.tensors, call.numbers = name.encode(), ctypes.addressof(listed), ctypes.addressof(given)
    call.tensor_count, call.number_count = len(tensors), len(numbers)
    call.flags = _EXPLICIT
    call.keep = listed, given
    return call


def check(tables, capabilities, call):
    """Raises what is wrong with a call on every GPU. capabilities: of GPUs that the program has kernels for."""
    for capability in capabilities:
        try:
            _lib.check(_lib.library().fagen_query_program(_lib.pointers(tables), len(tables), byref(call),
                                                          _lib.described_device(capability, _SMS), byref(Choice())))
            return
        except errors.Unsupported:  # another GPU may
            continue


def launch(tables, call, device, stream):
    """Queries, prepares and runs a call on a device's stream; raises what goes wrong."""
    lib, choice, workspace = _lib.library(), Choice(), c_void_p()
    _lib.check(lib.fagen_query_program(_lib.pointers(tables), len(tables), byref(call), device, byref(choice)))
    _lib.check(lib.fagen_prepare(byref(choice), device))
    if choice.workspace_bytes:
        _lib.check(lib.fagen_lend_workspace(byref(choice), device, stream, byref(workspace)))
    _lib.check(lib.fagen_run_program(byref(choice), byref(call), workspace, choice.workspace_bytes, stream))
