# fagen: programs of kernel sets on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program() and the operators torch.ops.fagen.program and program_out, which torch.compile and torch.export can trace."""
import ctypes
import numbers as _abstract

import torch

from . import _arguments, _kernels, _lib, _programs, errors

_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "f32": torch.float32,
          "u32": torch.uint32, "i32": torch.int32, "u8": torch.uint8}
_WORDS = {value: key for key, value in _TYPES.items()}

_made = []  # programs, by number
_of_calls = []  # by number: (Program, names of given inputs, of given results, of numbers)
_numbers_of_calls = {}
_emulator = None  # of tests; see set_emulator


def set_emulator(function):
    """For tests: function(kernels, call) computes calls on CPU tensors."""
    global _emulator
    _emulator = function


def is_emulated():
    """Whether calls on CPU tensors are computed."""
    return _emulator is not None


class Program:
    """A program of a kernel set, called with its tensors and numbers by name. Made by fagen.program."""

    def __init__(self, kernels, name):
        self.kernels, self.signature = _kernels.program_of(kernels, name)
        self._number = len(_made)
        _made.append(self)

    @property
    def name(self):
        return self.signature.name

    def __repr__(self):
        return f"<fagen program {self.signature}>"

    def __call__(self, /, *unnamed, **arguments):
        """The program's results: one tensor, or a tuple of them. A result that is given by its name is written, and returned;
        others are allocated."""
        self.signature.refuse_unnamed(unnamed)
        tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
        numbers = {name: value for name, value in arguments.items() if name not in tensors}
        if not torch.compiler.is_dynamo_compiling():  # in a graph the operator says what is wrong
            self._check(tensors, numbers)
        written = self.signature.written
        inputs = [name for name in tensors if name not in written]
        given = [name for name in written if name in tensors]
        key = _key_of(self._number, tuple(inputs), tuple(given), tuple(numbers))
        others = ([tensors[n] for n in inputs],
                  [int(v) for n, v in numbers.items() if self.signature.numbers.get(n) != "f32"],
                  [float(v) for n, v in numbers.items() if self.signature.numbers.get(n) == "f32"])
        if given:
            outputs = [tensors[n] for n in given]
            outputs += _allocate(key, *others, outputs)
            if _is_seen(tensors.values()):
                torch.ops.fagen.program_out(key, *others, outputs)
            else:
                _run_out(key, *others, outputs)
                torch.autograd.graph.increment_version(outputs)
            tensors.update(zip([*given, *(n for n in written if n not in given)], outputs))
        else:
            tensors.update(zip(written, torch.ops.fagen.program(key, *others)))
        results = tuple(tensors[name] for name in written)
        return results[0] if len(results) == 1 else results

    def _check(self, tensors, numbers):
        """What the C interface cannot see."""
        devices = {tensor.device for tensor in tensors.values()}
        if not tensors or len(devices) > 1:
            raise errors.Error(f"{self.name}: {'no tensor is given' if not tensors else f'tensors are on {sorted(map(str, devices))}; they are on one device'}: {self.signature}")
        for name, value in numbers.items():
            if not isinstance(value, (_abstract.Real, torch.SymInt, torch.SymFloat)) or isinstance(value, bool):
                raise errors.Error(f"{self.name}: {name} is a {type(value).__name__}; a program takes tensors and numbers")
            if self.signature.numbers.get(name) == "i32" and not isinstance(value, (_abstract.Integral, torch.SymInt)):
                raise errors.Error(f"{self.name}: {name} is {value}; it is a whole number")
        for name, tensor in tensors.items():
            if tensor.requires_grad and torch.is_grad_enabled():
                raise errors.Error(f"{self.name}: {name} wants a gradient, and programs have none; call it under "
                                   "torch.no_grad(), or give a detached tensor")
            if _arguments.has_tangent(tensor):
                raise errors.Error(f"{self.name}: {name} has a tangent of forward-mode differentiation, and programs have none; give a detached tensor")
            if tensor.dtype not in _WORDS:
                raise errors.Error(f"{self.name}: {name} has elements of {tensor.dtype}; programs take "
                                   f"{', '.join(str(t) for t in _WORDS)}")


def _is_seen(tensors):
    """Whether somebody could tell an operator's call from what it does: a graph or a trace, a mode of PyTorch, its profiler, a transform, a
    subclass of tensors."""
    return (torch.compiler.is_compiling() or torch.jit.is_tracing() or torch._C._len_torch_dispatch_stack() > 0
            or torch._C._len_torch_function_stack() > 0 or torch.autograd._profiler_enabled()
            or torch._C._functorch.peek_interpreter_stack() is not None
            or any(type(t) not in (torch.Tensor, torch.nn.Parameter) or t.is_neg() for t in tensors))


def _key_of(*names):
    """The number by which the operator knows the program and which of its tensors and numbers are given."""
    if names not in _numbers_of_calls:
        _numbers_of_calls[names] = len(_of_calls)
        _of_calls.append((_made[names[0]], *names[1:]))
    return _numbers_of_calls[names]


_key_of._dynamo_marked_constant = True  # what torch.compiler.assume_constant_result sets, without importing the compiler


def _split(key, integers, reals):
    program, inputs, given, names = _of_calls[key]
    rest = {"f32": iter(reals)}
    whole = iter(integers)
    return program, inputs, given, {n: next(rest.get(program.signature.numbers.get(n), whole)) for n in names}


def _allocate(key, tensors, integers, reals, outputs=()):
    """The results that are not given. Those of unknown shape are left out."""
    program, inputs, given, numbers = _split(key, integers, reals)
    extents = {name: tuple(tensor.shape) for name, tensor in zip((*inputs, *given), (*tensors, *outputs))}
    shapes = program.signature.shapes(extents, numbers)
    device = (*tensors, *outputs)[0].device
    return [(torch.zeros if t.zeroed else torch.empty)(shapes[t.name], dtype=_TYPES[t.type], device=device)
            for t in program.signature.tensors if t.written and t.name not in given and t.name in shapes]


def _address(program, name, tensor):
    word, wanted = _WORDS[tensor.dtype], program.signature.types.get(name)
    if word != wanted and {word, wanted} == {"i32", "u32"}:  # the same bits, and PyTorch has few operations for uint32
        word = wanted
    return name, tensor.data_ptr(), word, tuple(tensor.shape), tuple(tensor.stride())


def _run(key, tensors, integers, reals):
    outputs = _allocate(key, tensors, integers, reals)
    _run_out(key, tensors, integers, reals, outputs)
    return outputs


def _run_out(key, tensors, integers, reals, outputs):
    """outputs: the given ones, then the others."""
    program, inputs, given, numbers = _split(key, integers, reals)
    fresh = [name for name in program.signature.written if name not in given]
    named = [*zip(inputs, tensors), *zip((*given, *fresh), outputs)]
    call = _programs.make_call(program.name, [_address(program, n, t) for n, t in named], numbers,
                               program.signature.numbers)
    device = named[0][1].device
    if device.type == "cuda":
        with torch.cuda.device(device):
            _programs.launch(program.kernels._program_tables, call, _lib.device(device.index),
                             ctypes.c_void_p(torch.cuda.current_stream(device).cuda_stream))
    elif _emulator:
        _emulator(program.kernels, call)
    else:  # what no GPU would take comes first
        _programs.check(program.kernels._program_tables, program.kernels.capabilities_of(program.name), call)
        raise errors.Error(f"{program.name}: tensors are on {device}; programs run on GPUs (`fagen-run program` runs them "
                           "on the emulator)")


_library = torch.library.Library("fagen", "FRAGMENT")
_library.define("program(int key, Tensor[] inputs, SymInt[] integers, float[] reals) -> Tensor[]")
_library.define("program_out(int key, Tensor[] inputs, SymInt[] integers, float[] reals, Tensor(a!)[] outputs) -> ()")
for _device in ("CPU", "CUDA"):
    _library.impl("program", _run, _device)
    _library.impl("program_out", _run_out, _device)
torch.library.register_fake("fagen::program", _allocate, lib=_library)
torch.library.register_fake("fagen::program_out", lambda *_: None, lib=_library)


def program(kernels, name=None):
    """A program of a kernel set, to be called with its tensors and numbers by name.

    kernels: a KernelSet, the directory of one, or a file of textual IR (.fair), which is compiled. name may be left out where
    there is one program.

        gemm = fagen.program("gemm.fair")
        c = gemm(a=a, b=b)          # c is allocated: its shape follows from theirs
        gemm(a=a, b=b, c=c)
    """
    return Program(kernels, name)
