# fagen: the program `fagen` of the wheel, and `python -m fagen`: the compiler, and what needs Python.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
    fagen SPEC... -o DIR           the compiler, and its check, fmt and init
    fagen bench --model FILE       a model's attention on this machine: ours beside PyTorch's
"""
import os
import sys

from . import _lib, errors

_USERS_MISTAKE, _INTERNAL = 1, 70


def main(arguments=None):
    """Runs a command; gives the exit code. The compiler takes this process's place."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["bench"]:
            from . import _bench
            return _bench.main(arguments[1:])
        compiler = _lib.path("bin", "fagen")
        if arguments in (["--help"], ["-h"]):
            print("fagen bench --help: a model's attention on this machine, by Python; all else is the compiler's:\n", flush=True)
        os.execv(compiler, [compiler, *arguments])
    except errors.Error as error:
        print(f"fagen: error: {error}", file=sys.stderr)
        return _USERS_MISTAKE
    except Exception:  # what none of ours is
        import traceback
        traceback.print_exc()
        print("fagen: this is a mistake of fagen's own; please report it with the lines above", file=sys.stderr)
        return _INTERNAL


if __name__ == "__main__":
    sys.exit(main())
