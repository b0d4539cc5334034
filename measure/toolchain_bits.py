#!/usr/bin/env python3
# fagen: whether kernels compute the same bits whichever toolchain made their machine code.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""toolchain_bits.py pack SPEC... --cubins FOLDER --sm 90 --output DIR
toolchain_bits.py run DIR --output FILE

pack makes DIR/VERSION/SET for each VERSION of FOLDER, which measure/toolchains.py --cubins has filled: kernel sets as
`fagen --cubins` writes them, each with the machine code of that toolchain. They need no compiler where they run.

run lets `fagen-run check` run all of them on the GPU, on the same inputs, and compares O and LSE of each kernel and case to
the bit. Each run is also compared with the f64 reference. It makes sure that every toolchain ran the same kernels, by the
machine code of DIR: a toolchain whose machine code the driver refuses is left out, and said to be. Prints a table, which
measure/tables.py makes of FILE, too; exits with 2 where bits differ, a check fails or a toolchain is left out.
`--device cpu` tries the script on the emulator, which has no machine code."""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from notes import notes_of
from tables import markdown
from toolchain_tables import bits_table

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# Rows and keys that end within tiles, one row, and enough CTAs for more than one wave; heads that share keys.
SHAPES = ("1,2,1,200,140", "2,4,2,65,513", "1,2,2,1,300", "1,3,1,1024,1000", "1,16,16,2048,2048")
HEAD_DIMS = (64, 128, 256)


def default_cases():
    cases = []
    for dim in HEAD_DIMS:
        for words in (f"dtype={dtype} mask={mask}" for dtype in ("f16", "bf16") for mask in ("none", "causal")):
            cases += [f"{shape},{dim} {words}" for shape in SHAPES]
            cases.append(f"{SHAPES[0]},{dim} {words} inputs=large")
    return cases


def fail(message):
    print(f"toolchain_bits.py: error: {message}", file=sys.stderr)
    sys.exit(1)


def folders(path):
    if not os.path.isdir(path):
        fail(f"{path} is no folder")
    found = sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)))
    return found or fail(f"{path} has no folders, one a toolchain")


# Packing.

# Stands for nvcc while fagen writes a set: its machine code is put in its place after that.
STAND_IN = """#!/bin/sh
case "$*" in *--version*) echo "release, V{version}"; exit ;; esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo > "$2"; shift; done
"""


def write_sets(options, version, output):
    with tempfile.TemporaryDirectory() as folder:
        nvcc = os.path.join(folder, "nvcc")
        with open(nvcc, "w", encoding="utf-8") as file:
            file.write(STAND_IN.format(version=version))
        os.chmod(nvcc, 0o755)
        done = subprocess.run([options.fagen, *options.specs, f"--cubins={options.sm}", f"--nvcc={nvcc}", "-o", output],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{options.fagen}: {done.stderr.strip()[-2000:]}")


def put_code(directory, cubins):
    """Replaces the set's machine code; rows of which `cubins` has none lose it. Returns the names of the others."""
    path = os.path.join(directory, "manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    names = []
    for row in manifest["rows"]:
        code = os.path.join(cubins, row["variant"] + ".cubin")
        for binary in row.get("binaries", []):
            place = os.path.join(directory, binary["file"])
            os.remove(place)
            if os.path.exists(code):
                shutil.copy(code, place)
        if os.path.exists(code) and row.get("binaries"):
            names.append(row["variant"])
        else:
            row.pop("binaries", None)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    return names


def pack(options):
    variants = {}
    for version in folders(options.cubins):
        output = os.path.join(options.output, version)
        write_sets(options, version, output)
        variants[version] = sorted(name for one in folders(output)
                                   for name in put_code(os.path.join(output, one), os.path.join(options.cubins, version)))
    first = next(iter(variants))
    for version, names in variants.items():
        if names != variants[first] or not names:
            fail(f"{options.cubins} has {len(names)} kernels of these specs by {version}, {len(variants[first])} by {first}; "
                 "give both the same")
    with open(os.path.join(options.output, "variants.json"), "w", encoding="utf-8") as file:
        json.dump(variants[first], file)
    print(f"{len(variants[first])} kernels by {', '.join(variants)} in {options.output}")
    return 0


# Running.

def check(options, version, variants, folder):
    """What fagen-run check wrote of this toolchain's kernels, and which of them ran by other machine code."""
    output = os.path.join(folder, version + ".json")
    directory = os.path.join(options.directory, version)
    command = [options.fagen_run, "check", directory, "--device", options.device, "--output", output]
    command += [word for name in variants for word in ("--variant", name)]
    command += [word for case in options.case or default_cases() for word in ("--case", case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "FAGEN_VERBOSE": "1", "FAGEN_CACHE_DIR": os.path.join(folder, "cache")})
    if done.returncode not in (0, 2) or not os.path.exists(output):
        fail(f"fagen-run check of {directory} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    with open(output, encoding="utf-8") as file:
        result = json.load(file)
    if options.device == "cpu":
        return result, []
    ran = {case["variant"] for case in result["check"]["cases"]}
    others = ran - set(re.findall(r"fagen: (\S+): cubin for sm_\d+, made ahead of time", done.stderr))
    others |= set(re.findall(r"fagen: (\S+): its source is compiled", done.stderr))
    return result, sorted(others)


def compared(results):
    """Digests by variant and case: {(variant, case): {version: digest}}."""
    digests = collections.defaultdict(dict)
    for version, result in results.items():
        for case in result["check"]["cases"]:
            digests[case["variant"], case["case"]][version] = case["digest"]
    return digests


def summary(results):
    """Of each variant how many cases were compared, and how many of them differ or fail; then which."""
    counts, different, failed = {}, [], []
    for (variant, case), digests in sorted(compared(results).items()):
        count = counts.setdefault(variant, [0, 0, 0])
        count[0] += 1
        if len(digests) < len(results) or len(set(digests.values())) > 1:
            count[1] += 1
            different.append({"variant": variant, "case": case, "digests": digests})
    for version, result in results.items():
        for case in result["check"]["cases"]:
            if not case["passed"]:
                counts[case["variant"]][2] += 1
                failed.append({"toolchain": version, "variant": case["variant"], "case": case["case"]})
    return counts, different, failed


def run(options):
    try:
        with open(os.path.join(options.directory, "variants.json"), encoding="utf-8") as file:
            variants = json.load(file)
    except OSError as error:
        fail(f"{options.directory} is not what pack makes: {error}")
    with tempfile.TemporaryDirectory() as folder:
        checked = {version: check(options, version, variants, folder) for version in folders(options.directory)}
    refused = {version: others for version, (_, others) in checked.items() if others}
    results = {version: result for version, (result, _) in checked.items() if version not in refused}
    counts, different, failed = summary(results)
    first = next(iter(checked.values()))[0]
    data = {"tool": "toolchain_bits.py", "machine": first["machine"], "notes": notes_of(options.note),
            "device": options.device, "toolchains": list(results), "kernels": counts,
            "not_run": sorted(set(variants) - set(counts)), "different": different, "failed": failed,
            "refused": refused}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(data, file, separators=(",", ":"))
    print(bits_table(data, markdown))
    return 2 if different or failed or refused or not counts else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="kernel sets by each toolchain")
    packing.add_argument("specs", nargs="+", metavar="SPEC")
    packing.add_argument("--cubins", required=True, metavar="FOLDER", help="FOLDER/VERSION/KERNEL.cubin")
    packing.add_argument("--sm", required=True, help="compute capability that they are of")
    packing.add_argument("--output", required=True, metavar="DIR")
    packing.add_argument("--fagen", default=os.path.join(ROOT, "build/release/bin/fagen"))
    running = commands.add_parser("run", help="runs them and compares")
    running.add_argument("directory", metavar="DIR")
    running.add_argument("--output", required=True, metavar="FILE")
    running.add_argument("--case", action="append", help="as of fagen-run check; default: 72 of them")
    running.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    running.add_argument("--fagen-run", default=os.path.join(ROOT, "build/release/bin/fagen-run"))
    running.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    options = parser.parse_args()
    return pack(options) if options.command == "pack" else run(options)


if __name__ == "__main__":
    sys.exit(main())
