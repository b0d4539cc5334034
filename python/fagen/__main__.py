# fagen: the program `fagen` of the wheel, and `python -m fagen`: the compiler, and what needs Python.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
    fagen SPEC... -o DIR           the compiler, and its check, fmt and init
    fagen doctor                   what is here, and one checked launch
    fagen bench --model FILE       a model's attention on this machine: ours compared with PyTorch's
    fagen cache --empty            without the kernels that were compiled
"""
import importlib
import os
import sys

from . import _lib, errors

_USERS_MISTAKE, _INTERNAL = 1, 70
_OURS = {"doctor": "what is here, and one checked launch", "bench": "a model's attention on this machine",
         "cache": "where compiled kernels are kept"}


def main(arguments=None):
    """Runs a command; gives the exit code. The compiler takes this process's place."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments and arguments[0] in _OURS:
            return importlib.import_module(f"._{arguments[0]}", __package__).main(arguments[1:])
        program = _lib.path("bin", "fagen")
        if arguments in (["--help"], ["-h"]):
            for name, what in _OURS.items():
                print(f"fagen {name} --help: {what}")
            print("\nall else is the compiler's:\n", flush=True)
        os.execv(program, [program, *arguments])
    except errors.Error as error:
        print(f"fagen: error: {error}", file=sys.stderr)
        return _USERS_MISTAKE
    except Exception:  # what none of ours is
        import traceback
        traceback.print_exc()
        print("fagen: this is a mistake of fagen's own; please report it with the lines above", file=sys.stderr)
        return _INTERNAL


def run():
    """The wheel's program `fagen-run`, which takes this process's place."""
    try:
        program = _lib.path("bin", "fagen-run")
    except errors.Error as error:
        print(f"fagen-run: error: {error}", file=sys.stderr)
        return _USERS_MISTAKE
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
