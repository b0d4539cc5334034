# fagen: programs of kernel sets: what they take, as their manifests say, and calls of them by the C ABI.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nothing here knows a framework."""
import ctypes
import functools
import json
import os
from ctypes import byref, c_void_p

from . import _lib, errors
from ._structs import Call, Choice, NamedNumber, NamedTensor

_I32, _F32, _EXPLICIT = 1, 2, 4
_MOST_SHAPES = 256  # of a program that are remembered
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
        self.types = {tensor.name: tensor.type for tensor in self.tensors}
        self.written = [tensor.name for tensor in self.tensors if tensor.written]
        self._shapes = {}  # by extents and numbers

    def refuse_unnamed(self, values):
        """Error for arguments of a call that have no names."""
        if values:
            raise errors.ArgumentError(f"{self.name}: tensors and numbers are given by name: {self}")

    def __str__(self):
        tensors = ", ".join(f"{t.name}: {t.declared}" for t in self.tensors if not t.written)
        numbers = ", ".join(f"{name}: {kind}" for name, kind in self.numbers.items())
        results = ", ".join(f"{t.name}: {t.declared}" for t in self.tensors if t.written)
        return f"{self.name}({tensors}) -> {results}; numbers {numbers}"

    def shapes(self, extents, numbers):
        """{name: shape} of all tensors, as these extents and numbers tell; without those that they do not tell."""
        key = (*extents.items(), *((name, value) for name, value in numbers.items() if self.numbers.get(name) != "f32"))
        try:
            found = self._shapes.get(key)
        except TypeError:  # sizes that a graph does not know yet
            return self._told(extents, numbers)
        if found is None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            found = self._shapes[key] = self._told(extents, numbers)
        return found

    def _told(self, extents, numbers):
        known = dict(numbers)
        told = [(_tree(terms), extent) for tensor in self.tensors for terms, extent in zip(tensor.shape, extents.get(tensor.name, ()))]
        for tree, extent in told:
            if isinstance(tree, str):
                known.setdefault(tree, extent)
        while more := dict(filter(None, (_solve(tree, extent, known) for tree, extent in told))):
            known.update(more)
        found = {}
        for tensor in self.tensors:
            try:
                found[tensor.name] = tuple(_value(terms, known) for terms in tensor.shape)
            except KeyError:  # a number that is missing: the call says which
                pass
        return found


def _tree(terms):
    """(operation, a, b) of a postfix program, or its only term."""
    stack = []
    for term in terms:
        if term in _OPERATIONS:
            b, a = stack.pop(), stack.pop()
            term = (term, a, b)
        stack.append(term)
    return stack[0]


def _unknown(tree, known):
    if isinstance(tree, tuple):
        return _unknown(tree[1], known) + _unknown(tree[2], known)
    return [tree] if isinstance(tree, str) and tree not in known else []


def _terms(tree):
    return [*_terms(tree[1]), *_terms(tree[2]), tree[0]] if isinstance(tree, tuple) else [tree]


def _solve(tree, value, known):
    """The one number of an extent that is not known, and its value, as the C ABI takes sums, differences and products back; else None."""
    if len(_unknown(tree, known)) != 1:
        return None
    while isinstance(tree, tuple):
        operation, a, b = tree
        is_right = bool(_unknown(b, known))
        other = _value(_terms(a if is_right else b), known)
        if operation == "mul" and (other in (0, -1) or value % other):
            return None
        if operation not in ("add", "sub", "mul"):
            return None
        value = {"add": lambda: value - other, "sub": lambda: other - value if is_right else value + other,
                 "mul": lambda: value // other}[operation]()
        tree = b if is_right else a
    return tree, value


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
                    signature = Signature(row["variant"], row["program"])
                    known = found.setdefault(row["variant"], signature)
                    if str(known) != str(signature):
                        raise errors.Error(f"{path}: a program of another set has this name, and other tensors or numbers: "
                                           f"{signature} here, {known} there; load one of the two")
    return found


@functools.lru_cache(maxsize=_MOST_SHAPES)
def _layout(name, tensors):
    """A call's tensors but for their addresses. tensors: (name, type, shape, strides) each. A copy points at the names that this keeps."""
    listed = (NamedTensor * max(len(tensors), 1))()
    for place, (tensor, dtype, shape, strides) in zip(listed, tensors):
        place.name, place.dtype, place.rank = tensor.encode(), DTYPES[dtype], len(shape)
        if len(shape) > len(place.extent):
            raise errors.Error(f"{name}: tensor '{tensor}' has {len(shape)} dimensions; a program's has at most "
                               f"{len(place.extent)}")
        place.extent[:len(shape)] = shape
        place.stride[:len(shape)] = strides
    return listed


def make_call(name, tensors, numbers, kinds):
    """A Call that keeps what it points at. tensors: (name, address, type, shape, strides) each."""
    call = Call()
    layout = _layout(name, tuple((tensor, *rest) for tensor, _, *rest in tensors))
    listed = type(layout).from_buffer_copy(layout)
    for place, tensor in zip(listed, tensors):
        place.data = tensor[1]
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
    call.keep = layout, listed, given
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
    """Queries, prepares and runs a call on a device's stream; raises what goes wrong. The device's context becomes this thread's: a thread
    of autograd's has none before its first call of CUDA's runtime."""
    lib, choice, workspace = _lib.library(), Choice(), c_void_p()
    _lib.check(lib.fagen_device_make_current(device))
    _lib.check(lib.fagen_query_program(_lib.pointers(tables), len(tables), byref(call), device, byref(choice)))
    _lib.check(lib.fagen_prepare(byref(choice), device))
    if choice.workspace_bytes:
        _lib.check(lib.fagen_lend_workspace(byref(choice), device, stream, byref(workspace)))
    _lib.check(lib.fagen_run_program(byref(choice), byref(call), workspace, choice.workspace_bytes, stream))
