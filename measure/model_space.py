#!/usr/bin/env python3
# fagen: many variants for the time model to be compared with: their specs, their times, their registers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""model_space.py specs DIR --fagen FAGEN [--seed 1]
model_space.py time DIR --fagen-run FAGEN_RUN --output FILE [--jobs 14] [--seconds 90] --shape SHAPE...

specs: writes DIR/d<head_dim>_<mask>.fa, a random sample of what the compiler takes (tile, warps, stages, refill, rescale, q_in,
swizzle; head_dim 64, 96, 128, 256; with and without a mask). time: DIR/generated holds what fagen made of them. All
kernels are compiled side by side into FAGEN_CACHE_DIR (its cubins tell registers and bytes of local memory), then each is timed on every shape of its head_dim, alone, by fagen-run's tune-worker:
10 ms of load, then replays of about 4 ms. One pass over all points comes before the next, in another order, and none
begins after --seconds.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import queue
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time

from notes import machine, notes_of

POINTS = [(64, "none", 88), (64, "causal", 40), (128, "none", 64), (128, "causal", 32), (96, "none", 24),
          (256, "none", 24)]  # head_dim, mask, schedules
SCHEDULES = 8  # of a kernel: what reads one reads all
FAMILIES = [(16, 1), (32, 2), (64, 4), (128, 8), (32, 1), (64, 2), (128, 4), (16, 4), (32, 4), (256, 8)]  # rows, warps
AXES = {
    "keys": [32, 48, 64, 96, 128], "stages": [1, 2, 3], "refill": ["split", "joint", "late"],
    "rescale": ["always", "lazy"], "q_in": ["shared", "registers"], "swizzle": ["xor", "xor", "xor", "pad"],
}


def candidates(rng):
    """Endless, every family as often as the others."""
    for rows, warps in itertools.cycle(FAMILIES):
        yield {"rows": rows, "warps": warps, **{axis: rng.choice(values) for axis, values in AXES.items()}}


def name_of(c):
    return (f"t{c['rows']}x{c['keys']}_w{c['warps']}_s{c['stages']}_{c['refill']}_{c['rescale']}_"
            f"q{c['q_in'][0]}_{c['swizzle']}")


def schedule_of(c):
    keys = "; ".join(f"{key} = {c[key]}" for key in ("warps", "stages", "refill", "rescale", "q_in", "swizzle"))
    return f"  schedule {name_of(c)} {{ tile = {c['rows']} x {c['keys']}; {keys}; mma = mma_sync; copy = cp_async; }}\n"


def kernel_of(kernel, head_dim, mask, chosen):
    """Dispatch never matters here: each variant is asked for by its name."""
    lines = "".join(f"    when seq_q == {i + 1} : {name_of(c)};\n" for i, c in enumerate(chosen[:-1]))
    return (f"kernel {kernel} {{\n  problem {{ dtype = f16; head_dim = {head_dim}; mask = {mask}; }}\n"
            + "".join(map(schedule_of, chosen)) + f"  select {{\n{lines}    otherwise : {name_of(chosen[-1])};\n  }}\n}}\n")


def is_taken(fagen, head_dim, mask, candidate, most_registers=255):
    """Whether the compiler takes it, and its fragments leave registers for all else."""
    with tempfile.NamedTemporaryFile("w", suffix=".fa") as file:
        file.write("target sm_80;\n" + kernel_of("k", head_dim, mask, [candidate]))
        file.flush()
        run = subprocess.run([fagen, file.name, "--emit=plan", "--json", "--shape", f"1,1,1,256,256,{head_dim}"],
                             capture_output=True, text=True)
    if run.returncode:
        return False
    rows = [row for row in json.loads(run.stdout) if "_unaligned_" not in row["variant"]]
    return all(row.get("registers", 256) < most_registers for row in rows)


def write_specs(arguments):
    for index, (head_dim, mask, count) in enumerate(POINTS):
        chosen = {}
        for c in candidates(random.Random(arguments.seed * 100 + index)):
            if len(chosen) == count:
                break
            if name_of(c) not in chosen and is_taken(arguments.fagen, head_dim, mask, c):
                chosen[name_of(c)] = c
        chosen = list(chosen.values())
        kernels = [kernel_of(f"d{head_dim}_{mask}_{begin // SCHEDULES}", head_dim, mask, chosen[begin:begin + SCHEDULES])
                   for begin in range(0, count, SCHEDULES)]
        pathlib.Path(arguments.directory, f"d{head_dim}_{mask}.fa").write_text("target sm_80;\n" + "".join(kernels))
        print(f"head_dim {head_dim}, mask {mask}: {len(chosen)} schedules")


class Worker:
    """fagen-run tune-worker: a JSON request a line, an answer a line. One that a launch broke is replaced."""

    def __init__(self, fagen_run, device):
        self.command = [fagen_run, "tune-worker", "--device", device]
        self.process = None

    def ask(self, problem, directory, variant, rounds):
        if self.process is None:
            self.process = subprocess.Popen(self.command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.process.stdout.readline()
        request = {"problem": problem, "rounds": rounds, "contestants": [{"directory": directory, "variant": variant}]}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or "{}")
        if "results" in answer:
            return answer["results"][0]
        code = self.end()
        return {"failure": answer.get("lost", f"worker ended with {code}")}

    def end(self):
        if self.process is not None:
            self.process.stdin.close()
            code, self.process = self.process.wait(), None
            return code


def variants_of(directory):
    """(variant, directory, head_dim, mask) of every generated row but the fallbacks."""
    found = []
    for manifest in sorted(pathlib.Path(directory, "generated").glob("*/manifest.json")):
        for row in json.loads(manifest.read_text())["rows"]:
            if "_unaligned_" not in row["variant"]:
                found.append((row["variant"], str(manifest.parent), row["head_dim_qk"], row["mask"]))
    return found


def compile_all(fagen_run, device, variants, jobs):
    """Launches each once on a tiny problem, so that its machine code is in the cache. Returns what failed."""
    tasks, failures, lock = queue.SimpleQueue(), {}, threading.Lock()
    for variant in variants:
        tasks.put(variant)

    def drain():
        worker = Worker(fagen_run, device)
        while True:
            try:
                name, directory, head_dim, mask = tasks.get_nowait()
            except queue.Empty:
                return worker.end()
            result = worker.ask(f"1,1,1,16,16,{head_dim} mask={mask}", directory, name, 0)
            if "failure" in result:
                with lock:
                    failures[name] = result["failure"]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(drain) for _ in range(jobs)]:
            future.result()
    return failures


def machine_code_facts(data):
    """kernel: (registers, bytes of local memory), from a cubin wherever it begins in these bytes."""
    elf = data[max(0, data.find(b"\x7fELF")):]
    if len(elf) < 64 or elf[:5] != b"\x7fELF\x02":
        return {}
    table, = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * entry) for i in range(count)]

    def text(section, offset):
        begin = headers[section][4] + offset
        return elf[begin:elf.index(b"\0", begin)].decode()

    registers, frame = 0x2F, 0x11  # attributes of .nv.info
    symbols, values = {}, collections.defaultdict(dict)
    for name, kind, _, _, at, size, link, _, _, unit in headers:
        if kind == 2:  # symbols
            for i in range(size // unit):
                symbols[i] = text(link, struct.unpack_from("<I", elf, at + i * unit)[0])
        elif text(names_at, name) == ".nv.info":  # format, attribute, size and value: a symbol and its number
            while size >= 4:
                form, attribute, length = struct.unpack_from("<BBH", elf, at)
                step = 4 + (length if form == 4 else 0)
                if form == 4 and attribute in (registers, frame):
                    symbol, values[attribute][symbol] = struct.unpack_from("<II", elf, at + 4)
                at, size = at + step, size - step
    return {symbols[symbol]: (count, values[frame].get(symbol, 0)) for symbol, count in values[registers].items()}


def facts_of_cache():
    facts = {}
    for path in pathlib.Path(os.environ["FAGEN_CACHE_DIR"]).glob("*.bin"):
        facts.update(machine_code_facts(path.read_bytes()))
    return facts


def time_all(fagen_run, device, variants, shapes, begin, seconds):
    """Passes over all points until the time is over."""
    points = [(shape, variant) for shape in shapes for variant in variants if int(shape.split(",")[5]) == variant[2]]
    results, worker, passes = {}, Worker(fagen_run, device), 0
    while time.monotonic() - begin < seconds:
        for shape, (name, directory, _, mask) in points if passes % 2 == 0 else reversed(points):
            if time.monotonic() - begin > seconds:
                break
            answer = worker.ask(f"{shape} mask={mask}", directory, name, 1)
            result = results.setdefault((name, shape), {"variant": name, "shape": shape, "mask": mask, "segments": []})
            if "failure" in answer:
                result["failure"] = answer["failure"]
            else:
                result["segments"] += answer["segments"]
        passes += 1
    worker.end()
    return list(results.values())


def write_times(arguments):
    begin = time.monotonic()
    variants = variants_of(arguments.directory)
    failures = compile_all(arguments.fagen_run, arguments.device, variants, arguments.jobs)
    compiled = time.monotonic() - begin
    print(f"{len(variants)} variants compiled in {compiled:.0f} s, {len(failures)} failed", flush=True)
    runnable = [variant for variant in variants if variant[0] not in failures]
    results = time_all(arguments.fagen_run, arguments.device, runnable, arguments.shape, begin, arguments.seconds)
    document = {"tool": "model_space.py", "machine": machine(), "notes": notes_of(arguments.note),
                "compile_seconds": compiled, "not_compiled": failures, "machine_code": facts_of_cache(), "results": results}
    pathlib.Path(arguments.output).write_text(json.dumps(document, indent=0) + "\n")
    print(f"{len(results)} points in {time.monotonic() - begin:.0f} s, "
          f"{sum('failure' in result for result in results)} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    specs = commands.add_parser("specs")
    specs.add_argument("directory")
    specs.add_argument("--fagen", default="fagen")
    specs.add_argument("--seed", type=int, default=1)
    specs.set_defaults(run=write_specs)
    timing = commands.add_parser("time")
    timing.add_argument("directory")
    timing.add_argument("--fagen-run", default="fagen-run")
    timing.add_argument("--device", default="gpu")
    timing.add_argument("--output", required=True)
    timing.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    timing.add_argument("--seconds", type=float, default=90)
    timing.add_argument("--shape", action="append", required=True)
    timing.add_argument("--note", action="append", default=[], help="key=value for the output")
    timing.set_defaults(run=write_times)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
