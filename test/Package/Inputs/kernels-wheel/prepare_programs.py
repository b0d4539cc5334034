"""prepare_programs.py CAPABILITY...: what the programs of fagen.ready_set() are made ready from on GPUs that are not here."""
import ctypes
import math
import sys

from fagen import _kernels, _lib, _programs, errors
from fagen._structs import Choice, ChoiceInfo

SOMEWHERE = 1 << 20  # nothing is launched there


def dense(shape):
    return tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def call_of(signature):
    """With 1 for each of its numbers."""
    numbers = {name: 1 for name in signature.numbers}
    shapes = {name: tuple(shape) for name, shape in signature.shapes({}, numbers).items()}
    tensors = [(t.name, SOMEWHERE, t.type, shapes[t.name], dense(shapes[t.name])) for t in signature.tensors]
    return _programs.make_call(signature.name, tensors, numbers, signature.numbers)


for name in ("ragged", "paged", "backward"):
    kernels = _kernels.ready_set(name)
    signature, = _programs.signatures_of(tuple(kernels._directories)).values()
    for capability in map(int, sys.argv[1:]):
        device, call, choice, info = _lib.described_device(capability, 100), call_of(signature), Choice(), ChoiceInfo()
        try:
            _lib.check(_lib.library().fagen_query_program(_lib.pointers(kernels._tables), 1, ctypes.byref(call), device, ctypes.byref(choice)))
            _lib.check(_lib.library().fagen_prepare(ctypes.byref(choice), device))
            _lib.check(_lib.library().fagen_choice_get_info(ctypes.byref(choice), ctypes.byref(info)))
            print(f"{name}, sm_{capability}: {info.origin.decode()}", flush=True)
        except errors.Error as error:
            print(f"{name}, sm_{capability}: {error}", flush=True)
