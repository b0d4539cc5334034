#!/usr/bin/env python3
# fagen: the programs of ragged batches, each written from specs/ragged.fair.in.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ragged_programs.py DIR: writes a program for each element type, head dim and mask; --check says instead whether those in DIR are just these."""
import argparse
import itertools
import os
import sys

TEMPLATE = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "specs", "ragged.fair.in")
# Rows and keys of a tile, and warps that multiply: what the dense kernels of these head dims have (specs/h200_fp16.fa).
SCHEDULES = {64: {"@ROWS@": 128, "@KEYS@": 128, "@WARPS@": 8}, 128: {"@ROWS@": 128, "@KEYS@": 128, "@WARPS@": 8}}
REGISTERS = {8: (24, 240), 12: (32, 160)}  # of a thread that loads, and of one that multiplies
MASKS = {"none": "k < keys", "causal": "k < keys && k <= q + seen"}


def programs():
    """(name, text) of each."""
    with open(TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    for dtype, head_dim, mask in itertools.product(("f16", "bf16"), SCHEDULES, MASKS):
        name, schedule = f"ragged_{dtype}_d{head_dim}_{mask}", SCHEDULES[head_dim]
        load, math = REGISTERS[schedule["@WARPS@"]]
        words = {**schedule, "@NAME@": name, "@TYPE@": dtype, "@D@": head_dim, "@SEES@": MASKS[mask], "@MASK@": mask,
                 "@THREADS@": 32 * (4 + schedule["@WARPS@"]), "@LOAD_REGISTERS@": load, "@MATH_REGISTERS@": math}
        text = template
        for word, value in words.items():
            text = text.replace(word, str(value))
        yield name, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    wanted = {name + ".fair": text for name, text in programs()}
    if not options.check:
        os.makedirs(options.directory, exist_ok=True)
        for name, text in wanted.items():
            with open(os.path.join(options.directory, name), "w", encoding="utf-8") as file:
                file.write(text)
        return 0
    found = {}
    for name in os.listdir(options.directory):
        if not (name.startswith("ragged_") and name.endswith(".fair")):
            continue
        with open(os.path.join(options.directory, name), encoding="utf-8") as file:
            found[name] = file.read()
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            print(f"{name} is not what specs/ragged.fair.in gives: run scripts/ragged_programs.py specs")
    return 0 if wanted == found else 2


if __name__ == "__main__":
    sys.exit(main())
