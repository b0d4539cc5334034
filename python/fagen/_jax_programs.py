# fagen: programs of kernel sets on JAX arrays.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program(), and XLA's custom call that runs programs: a function of Python, which TVM's FFI calls with the tensors."""
import ctypes
import numbers as _abstract

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import tvm_ffi

from . import _kernels, _lib, _programs, errors

_TARGET = "fagen_program"
_TYPES = {"f16": jnp.float16, "bf16": jnp.bfloat16, "e4m3": jnp.float8_e4m3fn, "f32": jnp.float32, "u32": jnp.uint32,
          "i32": jnp.int32, "u8": jnp.uint8}
_WORDS = {str(jnp.dtype(value)): key for key, value in _TYPES.items()}
_CUDA = 2  # DLPack's

_calls, _number_of = [], {}  # (Program, names of tensors, launches), by number
_emulator = None  # of tests; see set_emulator


def set_emulator(function):
    """For tests: function(kernels, call) computes calls on arrays of the CPU."""
    global _emulator
    _emulator = function


def run_here():
    """Whether programs run on the arrays of JAX's backend."""
    return jax.default_backend() == "gpu" or _emulator is not None


class Program:
    """A program of a kernel set, called with its arrays and numbers by name. Made by fagen.jax.program."""

    def __init__(self, kernels, name):
        self.kernels, self.signature = _kernels.program_of(kernels, name)

    @property
    def name(self):
        return self.signature.name

    def __repr__(self):
        return f"<fagen program {self.signature}>"

    def __call__(self, /, *unnamed, **arguments):
        """The program's results: one array, or a tuple of them. Numbers are Python's: they belong to the trace."""
        self.signature.refuse_unnamed(unnamed)
        tensors = {name: value for name, value in arguments.items() if isinstance(value, jax.Array) or hasattr(value, "__array__")
                   and not isinstance(value, _abstract.Number)}
        tensors = {name: jnp.asarray(value) for name, value in tensors.items()}
        numbers = {name: value for name, value in arguments.items() if name not in tensors}
        self._check(tensors, numbers)
        shapes = self.signature.shapes({name: value.shape for name, value in tensors.items()}, numbers)
        results = [t for t in self.signature.tensors if t.written]
        self._query(tensors, numbers, {t.name: shapes.get(t.name) for t in results})
        found = compute(self, tensors, {t.name: jax.ShapeDtypeStruct(shapes[t.name], _TYPES[t.type]) for t in results},
                        ((tuple(sorted(numbers.items())), ()),))
        return found[0] if len(found) == 1 else found

    def _check(self, tensors, numbers):
        """What the C interface cannot see."""
        written = self.signature.written
        if not tensors:
            raise errors.Error(f"{self.name}: no array is given: {self.signature}")
        for name in tensors:
            if name in written:
                raise errors.Error(f"{self.name}: {name} is a result, which JAX allocates; leave it out")
            if str(tensors[name].dtype) not in _WORDS:
                raise errors.Error(f"{self.name}: {name} has elements of {tensors[name].dtype}; programs take {', '.join(_WORDS)}")
        for name, value in numbers.items():
            if not isinstance(value, _abstract.Real) or isinstance(value, bool):
                raise errors.Error(f"{self.name}: {name} is a {type(value).__name__}; a program takes arrays and numbers")
            if self.signature.numbers.get(name) == "i32" and not isinstance(value, _abstract.Integral):
                raise errors.Error(f"{self.name}: {name} is {value}; it is a whole number")

    def _query(self, tensors, numbers, results):
        """Raises what would be wrong on every GPU, when the call is traced."""
        given = [(name, None, self._word(name, value.dtype), value.shape, dense(value.shape)) for name, value in tensors.items()]
        types = self.signature.types
        given += [(name, None, types[name], shape or (), dense(shape or ())) for name, shape in results.items()]
        call = _programs.make_call(self.name, given, numbers, self.signature.numbers)
        _programs.check(self.kernels._program_tables, self.kernels.capabilities_of(self.name), call)

    def _word(self, name, dtype):
        """The type of an array's elements; integers of 32 bits are what the program says."""
        word = _WORDS[str(dtype)]
        types = self.signature.types
        return types[name] if {word, types.get(name)} == {"i32", "u32"} else word


def type_of(word):
    """JAX's type of elements that a program calls so."""
    return _TYPES[word]


def dense(shape):
    """Strides of an array without gaps."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(shape[i], 1)
    return tuple(strides)


def compute(program, tensors, results, launches):
    """Results, a tuple, of one or more launches. tensors: arrays by name; results: what has a shape and a dtype, by name. launches: (numbers, views)
    each, tuples of pairs: of a name and (first element, extents, strides), or nothing for a whole array. Checks nothing."""
    key = (program, (*tensors, *results), launches)
    if key not in _number_of:
        _number_of[key] = len(_calls)
        _calls.append(key)
    shapes = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results.values()]
    call = jax.ffi.ffi_call(_TARGET, shapes, vmap_method="sequential")
    return tuple(call(*tensors.values(), key=_number_of[key]))


def _run(key, *tensors):
    """The custom call: tensors are TVM's, the results last."""
    program, names, launches = _calls[key]
    types = program.signature.types
    for numbers, views in launches:
        views, given = dict(views), []
        for name, tensor in zip(names, tensors):
            first, extents, strides = views.get(name) or (0, tuple(tensor.shape), dense(tensor.shape))
            given.append((name, tensor.data_ptr() + first * jnp.dtype(_TYPES[types[name]]).itemsize, types[name], extents, strides))
        _launch(program, _programs.make_call(program.name, given, dict(numbers), program.signature.numbers), tensors[0].device)


def _launch(program, call, device):
    if device.dlpack_device_type() == _CUDA:
        stream = ctypes.c_void_p(tvm_ffi.get_raw_stream(device))
        _programs.launch(program.kernels._program_tables, call, _lib.device(device.index), stream)
    elif _emulator:
        _emulator(program.kernels, call)
    else:
        raise errors.Error(f"{program.name}: arrays are on the CPU; programs run on GPUs (`fagen-run program` runs them on the emulator)")


_function = tvm_ffi.convert(_run)
for _platform in ("gpu", "cpu"):
    jax_tvm_ffi.register_ffi_target(_TARGET, _function, ["attrs.key", "args", "rets"], platform=_platform, pass_owned_tensor=True)


def program(kernels, name=None):
    """A program of a kernel set, to be called with its arrays and numbers by name.

    kernels: a KernelSet, the directory of one, or a file of textual IR (.fair), which is compiled. name may be left out where there is
    one program.

        gemm = fagen.jax.program("gemm.fair")
        c = gemm(a=a, b=b)          # also under jax.jit, and jax.vmap, which calls it for one after the other; it has no gradient
    """
    return Program(kernels, name)
