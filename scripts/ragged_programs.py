#!/usr/bin/env python3
# fagen: the programs of ragged batches, each written from specs/ragged.fair.in.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ragged_programs.py DIR: writes a program for each element type, head dim and mask; --check says instead whether those in DIR are just these."""
import argparse
import itertools
import os
import sys

TEMPLATE = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "specs", "ragged.fair.in")
# What the dense kernels of these head dims have (specs/h200_fp16.fa): rows and keys of a tile, warps that multiply, constants, options.
TWO_QUERIES = {"constants": {"kQuerySlots": 2}, "options": "query_slots = kQuerySlots"}
SCHEDULES = {
    64: {"rows": 128, "keys": 128, "warps": 8, **TWO_QUERIES},
    128: {"rows": 128, "keys": 128, "warps": 8, **TWO_QUERIES, "constants": {"kQuerySlots": 2, "kSettleApart": 1}},
    256: {"rows": 128, "keys": 64, "warps": 8, "constants": {"kHeldSlices": 6, "kStagedColumns": 128}, "options": "staged_columns = kStagedColumns"},
}
REGISTERS = {8: (24, 240), 12: (32, 160)}  # of a thread that loads, and of one that multiplies
MASKS = {"none": "k < keys", "causal": "k < keys && k <= q + seen"}


def programs():
    """(name, text) of each."""
    with open(TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    for dtype, head_dim, mask in itertools.product(("f16", "bf16"), SCHEDULES, MASKS):
        name, schedule = f"ragged_{dtype}_d{head_dim}_{mask}", SCHEDULES[head_dim]
        load, math = REGISTERS[schedule["warps"]]
        constants = "".join(f"    const {constant} = {value}\n" for constant, value in schedule["constants"].items())
        words = {"@NAME@": name, "@TYPE@": dtype, "@D@": head_dim, "@ROWS@": schedule["rows"], "@KEYS@": schedule["keys"],
                 "@WARPS@": schedule["warps"], "@THREADS@": 32 * (4 + schedule["warps"]), "@LOAD_REGISTERS@": load,
                 "@MATH_REGISTERS@": math, "@CONSTANTS@": constants, "@OPTIONS@": schedule["options"], "@MASK@": mask,
                 "@SEES@": MASKS[mask], "@CAUSAL@": int(mask == "causal")}
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
