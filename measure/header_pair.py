#!/usr/bin/env python3
# fagen: times kernels of forms by two versions of the device headers, in turn in one process.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""header_pair.py prepare SETS --before INCLUDE [--form NAME ...]   where nvcc is: kernels of specs/forms.fa (bf16 and f16, d 64 and 128)
header_pair.py time SETS --output FILE [--note commit=...]          on a GPU: fagen-run check, then times of `now` and `before` in turn

INCLUDE has fagen/device of the other version: git show COMMIT:runtime/include, as `git archive` unpacks it. Sets are machine code, so a
GPU machine needs neither nvcc nor the headers. The table has the time over that of `before`; the JSON is what fagen-run time says."""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SHAPES = ("2,32,32,4096,4096,64", "2,16,16,4096,4096,128", "4,32,32,1024,1024,64", "4,16,16,1024,1024,128")


def prepare(options):
    with open(os.path.join(ROOT, "specs", "forms.fa"), encoding="utf-8") as file:
        text = file.read()
    for name, include in (("before", options.before), ("now", os.path.join(ROOT, "runtime", "include"))):
        spec = os.path.join(options.sets, name + ".fa")
        os.makedirs(options.sets, exist_ok=True)
        with open(spec, "w", encoding="utf-8") as file:
            file.write(re.sub(r"form     = \[[^]]*\]", f"form     = [{', '.join(options.form)}]", text).replace("kernel forms", "kernel " + name))
        subprocess.run([os.path.join(options.bin, "fagen"), spec, "-o", options.sets, "--cubins=90", "--device-include=" + include], check=True)


def timed(options):
    run, sets = os.path.join(options.bin, "fagen-run"), [os.path.join(options.sets, name) for name in ("before", "now")]
    subprocess.run([run, "check", sets[1], "--device", "gpu", "--suite", "smoke"], check=True)
    results = {}
    for dtype in ("bf16", "f16"):
        output = f"{options.output}.{dtype}"
        subprocess.run([run, "time", *sets, "--state", "steady", "--rounds", str(options.rounds), "--dtype", dtype, "--output", output,
                        *(word for shape in SHAPES for word in ("--shape", shape)), *(word for note in options.note for word in ("--note", note))],
                       check=True)
        with open(output, encoding="utf-8") as file:
            results[dtype] = json.load(file)
        os.remove(output)
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    for dtype, result in results.items():
        times = {(row["shape"], row["variant"]): row["median_us"] for row in rows_of(result)}
        for (shape, variant), time in sorted(times.items()):
            if variant.startswith("now_") and (shape, variant.replace("now_", "before_")) in times:
                print(f"{shape:<24} {variant:<40} {time / times[shape, variant.replace('now_', 'before_')]:.4f}")


def rows_of(value):
    """Each object with a median, wherever it is."""
    if isinstance(value, dict):
        if "median_us" in value and "variant" in value and "shape" in value:
            yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else []:
        yield from rows_of(part)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "time"))
    parser.add_argument("sets", metavar="SETS", help="a folder for the kernel sets")
    parser.add_argument("--before", metavar="INCLUDE")
    parser.add_argument("--form", nargs="+", default=["bias", "bias_visible"])
    parser.add_argument("--bin", metavar="DIR", default=os.environ.get("FAGEN_BIN", os.path.join(ROOT, "build", "release", "bin")))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--output", metavar="FILE")
    options = parser.parse_args()
    if options.what == "prepare" and not options.before or options.what == "time" and not options.output:
        parser.error("prepare takes --before, time takes --output")
    prepare(options) if options.what == "prepare" else timed(options)


if __name__ == "__main__":
    sys.exit(main())
