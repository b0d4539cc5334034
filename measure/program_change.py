# fagen: programs of two kernel sets, made before and after a change of the compiler, in turn on a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program_change.py LIBRARY BEFORE AFTER --case NAME:SIZE=N,... [--case ...] --output FILE [--note KEY=VALUE]

BEFORE and AFTER are directories of sets with programs of the same names. Tensors are made from what the manifest says of them, normal in
those of real numbers, 0 in others; scale and scale_log2 follow from the size D, of which 128 is assumed. Both run on the same tensors, in CUDA
graphs and in bursts that take turns. `host_us` is what a call of fagen_run_program takes on the host, in bursts that the driver's queue
holds, with what ctypes takes. Ends with 2 where results differ in a bit."""
import argparse
import json
import math
import os
import random
import statistics
import sys
import time

import torch

import compare_sdpa
import decode
import fagen_ctypes
import program_pair
from notes import notes_of

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32, "u32": torch.int32}
OPERATIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floor_div": lambda a, b: a // b,
              "ceil_div": lambda a, b: -(-a // b), "mod": lambda a, b: a % b, "min": min, "max": max}


def value_of(terms, sizes):
    stack = []
    for term in terms:
        if term in OPERATIONS:
            b = stack.pop()
            stack.append(OPERATIONS[term](stack.pop(), b))
        else:
            stack.append(sizes[term] if isinstance(term, str) else term)
    return stack[0]


def plan_of(directory, name):
    with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
        return next(row["program"] for row in json.load(file)["rows"] if row.get("variant") == name)


def tensors_of(plan, sizes):
    torch.manual_seed(0)
    found = {}
    for buffer in plan["buffers"]:
        if buffer.get("restored") or buffer.get("workspace"):
            continue
        shape, dtype = [value_of(extent, sizes) for extent in buffer["shape"]], TYPES[buffer["type"]]
        values = torch.randn(shape, device="cuda") * 0.5 if dtype.is_floating_point else torch.zeros(shape, device="cuda")
        found[buffer["name"]] = values.to(dtype)
    return found


def host_times(work, rounds, of_gpu_us):
    """Microseconds of a call, median of bursts that take turns; a burst is 20 ms of the GPU's time at most."""
    calls, samples = max(4, min(64, int(20000 / of_gpu_us))), {side: [] for side in work}
    for _ in range(rounds):
        for side, launches in work.items():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(calls):
                launches[0]()
            samples[side].append((time.perf_counter() - begun) / calls * 1e6)
    return {side: statistics.median(of) for side, of in samples.items()}


def measure(case, libraries, directories, rounds):
    name, _, said = case.partition(":")
    sizes = {key: int(value) for key, value in (word.split("=") for word in said.split(","))}
    plan = plan_of(directories["after"], name)
    scale = 1 / math.sqrt(sizes.pop("D", 128))
    known = {"scale": scale, "scale_log2": scale * math.log2(math.e), **sizes}
    inputs = tensors_of(plan, sizes)
    numbers = {number["name"]: known[number["name"]] for number in plan["numbers"]}
    written, work, results = [b["name"] for b in plan["buffers"] if b.get("written") and b["name"] in inputs], {}, {}
    for side, library in libraries.items():
        results[side] = {key: torch.full_like(inputs[key], 0) for key in written}
        work[side] = [program_pair.Program(library, name, {**inputs, **results[side]}, numbers)]
        work[side][0]()
    torch.cuda.synchronize()
    same = all(torch.equal(results["before"][key].view(torch.uint8), results["after"][key].view(torch.uint8)) for key in written)
    graphs = {side: decode.graph_of(launches) for side, launches in work.items()}
    samples, order, draw = {side: [] for side in graphs}, list(graphs.items()), random.Random(0)
    for _ in range(rounds):
        draw.shuffle(order)
        for side, graph in order:
            graph.time()
            samples[side].append([graph.time() for _ in range(decode.REPLAYS)])
    medians = {side: statistics.median(t for r in rounds_ for t in r) for side, rounds_ in samples.items()}
    host = host_times(work, 3 * rounds, medians["before"])
    found = dict(case=case, same_bits=same, us=medians, host_us=host, samples_us=samples, after_of_before=medians["after"] / medians["before"],
                 after_of_before_95=decode.interval(samples["after"], samples["before"]))
    low, high = found["after_of_before_95"]
    print(f"{case:56s} {medians['before']:9.2f} us, after {found['after_of_before']:.4f} [{low:.4f}, {high:.4f}], same bits {same}, "
          f"host {host['before']:.2f} to {host['after']:.2f} us", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE", help="for the result")
    arguments = parser.parse_args()
    directories = {"before": arguments.before, "after": arguments.after}
    libraries = {side: fagen_ctypes.Library(arguments.library, [directory]) for side, directory in directories.items()}
    results = [measure(case, libraries, directories, arguments.rounds) for case in arguments.case]
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(dict(tool="program_change.py", machine=compare_sdpa.machine_facts(), notes=notes_of(arguments.note), results=results), file, indent=1)
        file.write("\n")
    return 0 if all(result["same_bits"] for result in results) else 2


if __name__ == "__main__":
    sys.exit(main())
