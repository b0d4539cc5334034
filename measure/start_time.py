# fagen: from the start of a process to its first result on a GPU: a C++ program, and Python beyond importing torch.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""start_time.py [--runs 5] [--limit 0.3] [--output FILE] [--note commit=HASH]: on a machine with a GPU, where the wheels fagen and fagen-kernels are installed for
this Python, and PyTorch; a C++ compiler for the program. The cache is empty and NVRTC is kept away, unless --cache warm.

C++: from exec to O on the host, less cuInit and the making of the context, for the sets that a GPU of this kind needs and for all. Python: from the end of
`import torch` and its first CUDA tensor to O: import of fagen, its kernel sets, the first call, a synchronisation.
Prints medians. Exits with 2 where one is over --limit, or a result is wrong.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from notes import machine, notes_of

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = """
import json, time, torch
q = torch.zeros(1, 4096, 16, 64, dtype=torch.float16, device="cuda"); v = torch.ones_like(q)
torch.cuda.synchronize()
began = time.perf_counter()
import fagen.torch
imported = time.perf_counter()
o = fagen.attention(q, q, v, causal=True)
torch.cuda.synchronize()
done = time.perf_counter()
print(json.dumps(dict(right=bool((o == 1).all()), imported=imported - began, call=done - imported, without_cuda=done - began,
                      launches=[name for name, _ in fagen.stats()["launches"]])))
"""


def package():
    """The installed package's folder, and that of its kernels with machine code, or of its text."""
    import fagen
    from fagen import _kernels
    machine_code, is_of_these = _kernels.with_machine_code()
    folder = os.path.dirname(fagen.__file__)
    return folder, machine_code if machine_code and is_of_these else os.path.join(folder, "kernels")


def ready_sets(kernels):
    with open(os.path.join(kernels, "ready.txt"), encoding="utf-8") as file:
        names = dict.fromkeys(line.split()[0] for line in file if not line.startswith("#"))  # programs have a line each
    return [os.path.join(kernels, name) for name in names]


def compile_program(folder, directory):
    program = os.path.join(directory, "start_time")
    library = os.path.join(folder, "lib", "libfagen.so.1")
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O2", os.path.join(HERE, "start_time.cpp"), "-I", os.path.join(folder, "include"), library,
                    "-ldl", "-o", program, f"-Wl,-rpath,{os.path.dirname(library)}"], check=True)
    return program


def measured(runs, command):
    """The runs' JSON lines; command is a function of the time of the start."""
    found = []
    for _ in range(runs + 1):
        done = subprocess.run(command(time.clock_gettime(time.CLOCK_MONOTONIC)), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"start_time.py: {done.stderr.strip()}")
        found.append(json.loads(done.stdout))
    return found[1:]  # the first brings files into the system's memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=0.3)
    parser.add_argument("--cache", choices=["empty", "warm"], default="empty")
    parser.add_argument("--output")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    folder, kernels = package()
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        if options.cache == "empty":
            os.environ.update(FAGEN_CACHE_DIR=directory, FAGEN_NVRTC="/nowhere")
        program, sets = compile_program(folder, directory), ready_sets(kernels)
        results["C++, one set"] = measured(options.runs, lambda since: [program, str(since), sets[0]])
        results["C++, all ready sets"] = measured(options.runs, lambda since: [program, str(since), *sets])
        results["Python"] = measured(options.runs, lambda since: [sys.executable, "-c", PYTHON])
    medians = {name: statistics.median(run["without_cuda"] for run in runs) for name, runs in results.items()}
    is_right = all(run["right"] for runs in results.values() for run in runs)
    for name, seconds in medians.items():
        print(f"{name}: {seconds:.3f} s, at most {options.limit} s")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(dict(tool="measure/start_time.py", machine=machine(), notes=notes_of(options.note), cache=options.cache, limit=options.limit, medians=medians, runs=results), file, indent=1)
    if not is_right:
        print("a result is wrong", file=sys.stderr)
    return 0 if is_right and max(medians.values()) <= options.limit else 2


if __name__ == "__main__":
    sys.exit(main())
