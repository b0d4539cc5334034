# fagen: what pip builds the wheel with: scikit-build-core, and a line on the terminal of what it does meanwhile.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pip shows nothing of a build but that it runs, and this one takes minutes. So the terminal is written to, where there is one; FAGEN_QUIET=1: it is not.
"""
import contextlib
import os
import re
import shutil
import threading

from scikit_build_core.build import (build_editable, build_sdist, get_requires_for_build_editable,  # noqa: F401
                                     get_requires_for_build_sdist, get_requires_for_build_wheel,
                                     prepare_metadata_for_build_editable, prepare_metadata_for_build_wheel)
from scikit_build_core import build as _build

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BEGIN = """fagen: building the wheel from source: the compiler, the runtime, fagen-run with its emulator, and the ready kernels' text.
fagen: this takes some five minutes on two cores{ccache}; it needs what docs/Building.md lists, LLVM 19.1 first. Output: pip install -v .
fagen: it is kept in {tree}, where a second build goes on.
"""


def _terminal():
    try:
        return open("/dev/tty", "w", encoding="utf-8")
    except OSError:
        return None


def _count(path, pattern):
    """Lines of a file that have the pattern; 0 where it is not there yet."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return sum(bool(re.search(pattern, line)) for line in file)
    except OSError:
        return 0


def progress(tree):
    """In words, from what Ninja writes there."""
    total = _count(os.path.join(tree, "build.ninja"), r"^build \S+\.o: ")
    compiled = _count(os.path.join(tree, ".ninja_log"), r"\.o\t")
    return f"{compiled} of about {total} files compiled" if total else "configuring"


@contextlib.contextmanager
def _telling(tree, every=10):
    terminal = None if os.environ.get("FAGEN_QUIET") else _terminal()
    if not terminal:
        yield
        return
    done = threading.Event()

    def tell():
        while not done.wait(every):
            print(f"\r\033[Kfagen: {progress(tree)}", end="", file=terminal, flush=True)

    with terminal:
        print("\n" + _BEGIN.format(tree=tree, ccache="" if shutil.which("ccache") else ", less where ccache is installed"), end="", file=terminal, flush=True)
        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()
            print(f"\r\033[Kfagen: {progress(tree)}", file=terminal, flush=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    settings.setdefault("build-dir", os.path.join(_ROOT, "build", "pip"))
    with _telling(settings["build-dir"]):
        return _build.build_wheel(wheel_directory, settings, metadata_directory)
