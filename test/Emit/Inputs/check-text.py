#!/usr/bin/env python3
# fagen: what holds for the text of every generated kernel; prints each place where it does not.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib
import re
import sys

MAX_FILE_LINES = 400
MAX_FILE_LINES_WITH_ROLES = 450
MAX_FUNCTION_LINES = 60
# Everything else is reached through the device library: the same text runs on GPU, under NVRTC and in the emulator.
FORBIDDEN = re.compile(r"\basm\b|\b__shared__\b|\b__sync\w*|\b(threadIdx|blockIdx|blockDim|gridDim)\b|\b__\w+_sync\b")


def code_of(line):
    return line.split("//")[0]


def functions(lines):
    """(name, first line, lines of code) of each definition that begins at the left margin with __device__ or extern."""
    first = name = None
    for number, line in enumerate(lines, 1):
        if first is None and line.startswith(("__device__", 'extern "C"')):
            first, name = number, re.search(r"(\w+)\((?=const|\))", line).group(1)
        if first is not None and (line == "}" or (number == first and line.endswith("}"))):
            yield name, first, lines[first - 1 : number]
            first = None


def findings(lines):
    found = {name: (first, body) for name, first, body in functions(lines)}
    most = MAX_FILE_LINES_WITH_ROLES if "load" in found else MAX_FILE_LINES
    if len(lines) > most:
        yield 1, f"{len(lines)} lines, more than {most}"
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#") and not re.fullmatch(r"#include <fagen/device/[a-z_/]+\.h>", line):
            yield number, f"a preprocessor line that includes nothing of the device library: {line}"
        if word := FORBIDDEN.search(code_of(line)):
            yield number, f"'{word.group()}' outside the device library"
        if line.rstrip() != line or "\t" in line:
            yield number, "white space at the end, or a tab"
        if not line.isascii():
            yield number, "not ASCII"
    steps = [name for name in ("tile_step", "interior_steps") if name in found] or ["interior_step"]
    for name in ("prologue", *steps, "epilogue"):
        if name not in found:
            yield 1, f"no function {name}"
    if not found.keys() & {"tile_step", "edge_step", "first_step"}:
        yield 1, "no step masks"
    for name, (first, body) in found.items():
        if len(body) > MAX_FUNCTION_LINES:
            yield first, f"{name} has {len(body)} lines, more than {MAX_FUNCTION_LINES}"
        masks = any(re.search(r"\bmask(_from)?(<\w+>)?\(", code_of(line)) for line in body)
        mayMask = name == "first_step" # of rotated products, where the first key tile may be a whole one
        if not mayMask and masks != (name in ("edge_step", "half_step", "tile_step")):
            yield first, f"{name} {'masks' if masks else 'masks nothing'}"


def main():
    files = [path for root in sys.argv[1:] for path in sorted(pathlib.Path(root).rglob("*.cu"))]
    count = 0
    for path in files:
        for number, what in findings(path.read_text().splitlines()):
            print(f"{path.name}:{number}: {what}")
            count += 1
    print(f"{len(files)} kernels, {count} findings")
    sys.exit(count != 0 or not files)


main()
