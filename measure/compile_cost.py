#!/usr/bin/env python3
# fagen: what compiling costs: a spec's text, and one kernel from .cu to machine code.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times `fagen SPEC -o DIR` (median of 20 runs) and nvcc on every kernel of the specs for sm_89 (one run each, with the
largest resident set of the process tree). Raw samples go to the JSON."""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from notes import machine, notes_of


def timed(command):
    """Seconds, and the largest resident set in MB of what the command started."""
    start = time.perf_counter()
    process = subprocess.Popen(["/usr/bin/env", sys.executable, "-c",
                                "import resource, subprocess, sys\n"
                                "code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
                                "sys.exit(code)"] + command, stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"failed: {' '.join(command)}")
    return time.perf_counter() - start, int(output) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--fagen", default="build/release/bin/fagen")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--include", default="runtime/include")
    parser.add_argument("--output", required=True)
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    arguments = parser.parse_args()
    texts, kernels = [], []
    with tempfile.TemporaryDirectory() as directory:
        for spec in arguments.specs:
            samples = []
            for _ in range(20):
                start = time.perf_counter()
                subprocess.run([arguments.fagen, spec, "-o", directory], check=True, stdout=subprocess.DEVNULL)
                samples.append((time.perf_counter() - start) * 1e3)
            texts.append(dict(spec=os.path.basename(spec), median_ms=statistics.median(samples), samples_ms=samples))
            print(f"{texts[-1]['spec']:24s} text {texts[-1]['median_ms']:7.1f} ms")
        for source in sorted(glob.glob(directory + "/*/*/*.cu")):
            target = os.path.basename(os.path.dirname(source))
            seconds, megabytes = timed([arguments.nvcc, "-std=c++17", "-O3", "--expt-relaxed-constexpr", f"-arch={target}",
                                        "-I", arguments.include, "-cubin", "-o", directory + "/x.cubin", source])
            kernels.append(dict(kernel=os.path.basename(source), target=target, seconds=seconds, megabytes=megabytes))
            print(f"{kernels[-1]['kernel']:48s} {seconds:6.2f} s {megabytes:6.0f} MB")
    version = subprocess.run([arguments.nvcc, "--version"], capture_output=True, text=True).stdout.splitlines()[-1]
    slowest = max(kernels, key=lambda kernel: kernel["seconds"])
    print(f"slowest kernel {slowest['seconds']:.2f} s, median {statistics.median(k['seconds'] for k in kernels):.2f} s")
    with open(arguments.output, "w") as file:
        json.dump(dict(tool="compile_cost.py", machine=machine(),
                       nvcc=version, notes=notes_of(arguments.note), texts=texts, kernels=kernels),
                  file, indent=1)


if __name__ == "__main__":
    main()
