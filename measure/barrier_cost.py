#!/usr/bin/env python3
# fagen: what the barriers of each policy cost, for the kernels of measure/barrier_cost.fa.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times every kernel of a generated set that has `_minimal`, `_light` and `_legacy` variants with fagen-run, and what
other policies it has, counts the barriers that a step of each has in its text, and writes both to one JSON:

    fagen measure/barrier_cost.fa -o /tmp/generated
    measure/barrier_cost.py /tmp/generated/barrier_cost --fagen-run build/release/bin/fagen-run --output cost.json
    measure/tables.py cost.json

The variants of a problem alternate in rounds; the ratio to `minimal` comes with a bootstrap interval."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

POLICIES = ["minimal", "light", "legacy"]
BARRIERS = ["cta_barrier", "named_barrier", "warp_barrier"]


def functions(text):
    """The bodies of the device functions of an emitted file, by name."""
    return {m[1]: m[2] for m in re.finditer(r"^__device__ [^\n]*?(\w+)\([^\n]*\{\n(.*?)^\}", text, re.M | re.S)}


def barriers_per_step(text):
    """Calls of each kind in the loop's body; of two loops the one without masks."""
    bodies = functions(text)
    step = bodies.get("interior_step") or bodies.get("tile_step") or bodies.get("edge_step")
    if step is None:
        sys.exit("no step function in the emitted text")
    return {kind: len(re.findall(rf"ptx::{kind}\b", step)) for kind in BARRIERS}


def keys_of(text):
    return int(re.search(r"constexpr int kTileKeys = (\d+);", text)[1])


def families(directory):
    """{variant without policy: {policy: variant}} of the set; only those that have all of POLICIES."""
    found = {}
    for file in sorted(directory.glob("*/*.cu")):
        if match := re.fullmatch(r"(.*_(?:none|causal))_(\w+)", file.stem):
            found.setdefault(match[1], {})[match[2]] = file
    return {family: files for family, files in found.items() if files.keys() >= set(POLICIES)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path, help="a generated kernel set")
    parser.add_argument("--fagen-run", default="fagen-run")
    parser.add_argument("--shape", action="append", help="as fagen-run time takes them (default: mission, mission2)")
    parser.add_argument("--state", default="burst", choices=["burst", "steady"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    found = families(arguments.directory)
    if not found:
        sys.exit(f"{arguments.directory}: no variant has all of {', '.join(POLICIES)}")
    command = [arguments.fagen_run, "time", str(arguments.directory), "--json", "--state", arguments.state,
               "--rounds", str(arguments.rounds)]
    for shape in arguments.shape or ["mission", "mission2"]:
        command += ["--shape", shape]
    for files in found.values():
        for file in files.values():
            command += ["--variant", file.stem]
    for note in arguments.note:
        command += ["--note", note]
    timed = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    timed["tool"] = "barrier_cost.py"
    timed["barriers"] = {file.stem: {"family": family, "policy": policy, "tile_keys": keys_of(file.read_text()),
                                     **barriers_per_step(file.read_text())}
                         for family, files in found.items() for policy, file in files.items()}
    with open(arguments.output, "w") as file:
        json.dump(timed, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
