#!/usr/bin/env python3
# fagen: registers and spills of the package's programs, by ptxas for each GPU that runs them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program_resources.py --kernels DIR --nvcc NVCC --include DIR [--gpu 80 ...] [--only TEXT] [--note key=value ...]: compiles the text that
dispatch prefers on each GPU, with the options of `fagen --check-resources`, and prints JSON: by compute capability
[program, target of its text, most registers of a launch, bytes spilled: stores and loads of all launches]. An architecture's own target, as
sm_90a, stays."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import contracts
from notes import machine, notes_of

CAPABILITIES = sorted({sm for _, sm, _ in contracts.GPUS})
REGISTERS = re.compile(r"Used (\d+) registers")
SPILLED = re.compile(r"(\d+) bytes spill (?:stores|loads)")


def resources(said):
    """(most registers, bytes spilled) of what ptxas says of a source's kernels."""
    return max(map(int, REGISTERS.findall(said))), sum(map(int, SPILLED.findall(said)))


def compiled(options, directory, row, sm):
    arch = row["target"] if row["exact"] else f"sm_{sm}"
    with tempfile.TemporaryDirectory() as kept:
        done = subprocess.run([options.nvcc, "-std=c++17", "--expt-relaxed-constexpr", "-O3", f"-arch={arch}", "-I", options.include, "-Xptxas", "-v",
                               "-cubin", "-o", os.path.join(kept, "out"), os.path.join(directory, row["source"])],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"program_resources.py: {row['variant']} for {arch}: nvcc says\n{done.stderr}")
    return [row["variant"], row["target"], *resources(done.stderr)]


def programs(directory, only):
    """(directory of the set, row) of each program."""
    for name in contracts.sets_of(directory, ".fair"):
        folder = os.path.join(directory, name)
        yield from ((folder, row) for row in contracts.read(os.path.join(folder, "manifest.json"))["rows"] if only in row["variant"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--include", required=True, help="where fagen/device is")
    parser.add_argument("--gpu", type=int, action="append", choices=CAPABILITIES)
    parser.add_argument("--only", default="", help="a part of the program's name")
    parser.add_argument("--note", action="append", default=[])
    options = parser.parse_args()
    version = re.search(r"V([\d.]+)", subprocess.run([options.nvcc, "--version"], capture_output=True, text=True, check=True).stdout)[1]
    found = list(programs(options.kernels, options.only))
    folder_of = {(row["variant"], row["target"]): folder for folder, row in found}
    says = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for sm in options.gpu or CAPABILITIES:
            rows = contracts.nearest([row for _, row in found], sm)
            says[str(sm)] = list(pool.map(lambda row, sm=sm: compiled(options, folder_of[row["variant"], row["target"]], row, sm), rows))
            print(f"sm_{sm}: {len(rows)} programs", file=sys.stderr)
    print(json.dumps({"tool": "measure/program_resources.py", "machine": {**machine(), "nvcc": version}, "notes": notes_of(options.note),
                      "programs": says}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
