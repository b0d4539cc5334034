# fagen: `fagen cache`: where compiled kernels are kept, how many, and how to be rid of them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The directory of docs/Runtime.md: kernels of NVRTC, and in emulator/ those that the emulator compiled."""
import os
import re
import stat

from . import errors
from ._command import Parser

_ENTRY = re.compile(r".+-[0-9a-f]{32}\.(bin|cu)(\.\d+\.\d+)?")  # also of a writer that was killed


def directory():
    """FAGEN_CACHE_DIR, else XDG_CACHE_HOME/fagen, else HOME/.cache/fagen; None where none of them is set."""
    for name, below in (("FAGEN_CACHE_DIR", ()), ("XDG_CACHE_HOME", ("fagen",)), ("HOME", (".cache", "fagen"))):
        if os.environ.get(name):
            return os.path.join(os.environ[name], *below)
    return None


def entries(where):
    """Paths of the cache's files, by their names; other files in the directory are not the cache's."""
    for folder in (where, os.path.join(where, "emulator")):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name)
            if _ENTRY.fullmatch(name) and stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def said_of(where):
    """In words: how many kernels lie there, and how large they are."""
    files = list(entries(where))
    size = sum(os.lstat(file).st_size for file in files)
    return f"{where}: {sum(file.endswith('.bin') for file in files)} kernels, {size / 2**20:.1f} MiB"


def main(arguments):
    parser = Parser("cache", "Where compiled kernels are kept. FAGEN_CACHE_DIR names another place.")
    parser.add_argument("--empty", action="store_true", help="remove them; they are compiled again when they are next needed")
    options = parser.parse_args(arguments)
    where = directory()
    if where is None:
        raise errors.Error("there is no cache: neither FAGEN_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set")
    print(said_of(where))
    if options.empty:
        for file in list(entries(where)):
            os.remove(file)
        print(f"now: {said_of(where)}")
    return 0
