# fagen: every op of a manifest stands on a line of the .cu that calls what this op becomes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: check-ops.py DIR...
import json
import re
import sys
from pathlib import Path

# What an op becomes; ops that are not listed here need no more than a call on their line.
CALLS = {"copy_issue": r"copy_(next_)?tile\w*<", "copy_commit": r"cp_async_commit\(", "copy_wait": r"cp_async_wait<",
         "barrier": r"\w+_barrier\(", "mma": r"(scores_abt|output_ab|mma_abt?)\b", "mask": r"mask(<\w+>)?\(",
         "max": r"(row_max|reduce_(partial|total)_max)(<\w+>)?\(", "store": r"store_rows<", "store_lse": r"store_lse\(", "store_merged": r"store_merged<",
         "store_partial": r"store_partial\(", "load_fragment": r"load_operand\("}


def check(launch, lines):
    ops = launch["ops"]
    assert ops and [op["line"] for op in ops] == sorted({op["line"] for op in ops}), launch["symbol"]
    numbers = [int(op["op"].split("@")[1]) for op in ops]
    assert numbers == sorted(numbers), launch["symbol"]
    listed = set()
    for op in ops:
        text = lines[op["line"] - 1]
        assert re.match(r" +(\w+::)?" + CALLS.get(op["op"].split("@")[0], r"\w+(<.*>)?\("), text), (op, text)
        assert "site" in op or not re.search(r"_barrier\(|cp_async_wait", text), op
        listed.add(op["line"])
    for number, text in enumerate(lines, 1):
        assert number in listed or not re.match(r" +(ptx::\w+_barrier|ptx::cp_async_\w+|copy_(next_)?tile|mma_|row_max)", text), text
    return len(ops)


for directory in map(Path, sys.argv[1:]):
    manifest = json.loads((directory / "manifest.json").read_text())
    total = sum(check(launch, (directory / row["source"]).read_text().splitlines())
                for row in manifest["rows"] for launch in row["launches"])
    print(f"{manifest['kernel']}: {len(manifest['rows'])} rows, {total} ops")
