"""prepare.py CAPABILITY...: what a kernel of fagen.ready() is made ready from on GPUs that are not here."""
import ctypes
import sys

import fagen
from fagen import _forms, _kernels, _lib
from fagen._structs import Choice, ChoiceInfo

for capability in map(int, sys.argv[1:]):
    device, tables, choice, info = _lib.described_device(capability, 100), _kernels.ready()._tables, Choice(), ChoiceInfo()
    problem = _kernels.describe((1, 2, 2, 64, 64, 64), "f16")
    _forms.describe(problem, tables, "rows", dict(first=..., last=...))
    _lib.check(_lib.library().fagen_query(_lib.pointers(tables), len(tables), ctypes.byref(problem), device, ctypes.byref(choice)))
    try:
        _lib.check(_lib.library().fagen_prepare(ctypes.byref(choice), device))
        _lib.check(_lib.library().fagen_choice_get_info(ctypes.byref(choice), ctypes.byref(info)))
        print(f"sm_{capability}: {info.origin.decode()}", flush=True)
    except fagen.CompileError as error:
        print(f"sm_{capability}: {error}", flush=True)
