# fagen: an attention program and the kernel that dispatch picks for the same problem, in turn on a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program_pair.py LIBRARY PROGRAMS NAME[,NAME...] KERNELS... --output FILE [--shape b,h,hkv,keys,d[,rows]]... [--mask none|causal]

NAME is a program of the kernel set in the directory PROGRAMS, with tensors q, k, v, o, lse, or several, all in turn; KERNELS are directories of sets that dispatch
picks from. Numbers that no extent tells are G = h / hkv, scale, scale_log2 and S, as many splits as dispatch takes. Both are judged against
PyTorch in f32 and compared with each other. Launches go round copies of K and V of --rotate MiB, in CUDA graphs, in bursts that take turns.
Ends with 2 when a result is wrong."""
import argparse
import ctypes
import json
import math
import os
import random
import statistics
import sys
from ctypes import c_size_t, c_void_p

import torch

import compare_sdpa
import decode
import fagen_ctypes
from fagen_ctypes import structs
from notes import notes_of

ROWS_OF_TILE = 16  # rows of a decoding tile, by which the shipped grid tells its splits
TYPES = {torch.float16: 1, torch.bfloat16: 2, torch.float32: 4}
I32, F32 = 1, 2


class Program:
    """A prepared launch of a program on PyTorch tensors."""

    def __init__(self, library, name, tensors, numbers):
        self.library, self.keep = library, tensors
        self.tensors = (structs.NamedTensor * len(tensors))()
        for place, (key, tensor) in zip(self.tensors, tensors.items()):
            place.name, place.data, place.dtype, place.rank = key.encode(), tensor.data_ptr(), TYPES[tensor.dtype], tensor.dim()
            place.extent[:tensor.dim()], place.stride[:tensor.dim()] = tensor.shape, tensor.stride()
        self.numbers = (structs.NamedNumber * len(numbers))()
        for place, (key, value) in zip(self.numbers, numbers.items()):
            place.name, place.kind = key.encode(), F32 if isinstance(value, float) else I32
            place.f32, place.i32 = (value, 0) if isinstance(value, float) else (0.0, value)
        self.call = structs.Call()
        self.call.program = name.encode()
        self.call.tensors, self.call.numbers = ctypes.addressof(self.tensors), ctypes.addressof(self.numbers)
        self.call.tensor_count, self.call.number_count = len(tensors), len(numbers)
        self.choice = structs.Choice()
        lib = library.lib
        library.check(lib.fagen_query_program(library.tables, c_size_t(len(library.tables)), ctypes.byref(self.call), library.device,
                                              ctypes.byref(self.choice)), "fagen_query_program")
        library.check(lib.fagen_prepare(ctypes.byref(self.choice), library.device), "fagen_prepare")
        self.workspace = torch.zeros(max(1, self.choice.workspace_bytes), dtype=torch.uint8, device="cuda")

    def __call__(self):
        stream = c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.check(self.library.lib.fagen_run_program(ctypes.byref(self.choice), ctypes.byref(self.call),
                                                              c_void_p(self.workspace.data_ptr()),
                                                              c_size_t(self.choice.workspace_bytes), stream), "fagen_run_program")


def numbers_of(directory, name, known):
    """Of those that the program has, what no extent tells."""
    with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
        plans = {row["variant"]: row["program"] for row in json.load(file)["rows"] if "program" in row}
    return {number["name"]: known[number["name"]] for number in plans[name]["numbers"] if number["name"] in known}


def measure(text, programs, kernels, arguments):
    shape = tuple(int(number) for number in text.split(","))
    shape += (1,) * (6 - len(shape))
    b, h, hkv, _, d, rows = shape
    torch.manual_seed(0)
    q, pairs, size = decode.make_copies(shape, torch.float16, arguments.rotate)
    names = arguments.name.split(",")
    results = {side: (torch.full_like(q, float("nan")), torch.full(q.shape[:3], float("nan"), dtype=torch.float32, device="cuda"))
               for side in ("shipped", *names)}
    work = {"shipped": [kernels.attention(q, k, v, *results["shipped"], arguments.mask) for k, v in pairs]}
    info = work["shipped"][0].info()
    splits = max(1, info.grid // (b * hkv * -(-rows * (h // hkv) // ROWS_OF_TILE)))
    scale = 1 / math.sqrt(d)
    known = {"G": h // hkv, "scale": scale, "scale_log2": scale * math.log2(math.e), "S": splits}
    numbers = numbers_of(arguments.programs, names[0], known)
    for name in names:
        o, lse = results[name]
        work[name] = [Program(programs, name, {"q": q, "k": k, "v": v, "o": o, "lse": lse}, numbers) for k, v in pairs]
    expected = compare_sdpa.expected_result(q, *pairs[0], arguments.mask)
    found = {"shape": text, "bytes": size, "copies": len(pairs), "shipped": info.variant.decode(), "grid": info.grid, "numbers": numbers}
    for side in work:
        for _ in range(3):  # the workspace must be zero again
            results[side][0].fill_(float("nan"))
            work[side][0]()
        found[f"error {side}"] = (results[side][0].float() - expected).abs().max().item()
    found["same bits"] = {name: all(torch.equal(a, b) for a, b in zip(results["shipped"], results[name])) for name in names}
    found["right"] = all(found[f"error {side}"] < compare_sdpa.SAME_RESULT[q.dtype] for side in results)
    graphs = {side: decode.graph_of(launches) for side, launches in work.items()}
    samples, order, draw = {side: [] for side in graphs}, list(graphs.items()), random.Random(0)
    for _ in range(arguments.rounds):
        draw.shuffle(order)
        for side, graph in order:
            graph.time()
            samples[side].append([graph.time() for _ in range(decode.REPLAYS)])
    medians = {side: statistics.median(t for r in rounds for t in r) for side, rounds in samples.items()}
    found.update(us=medians, samples_us=samples, of_shipped={name: medians[name] / medians["shipped"] for name in names},
                 of_shipped_95={name: decode.interval(samples[name], samples["shipped"]) for name in names})
    print(f"{text:24s} {found['shipped']:36s} {medians['shipped']:9.2f} us, right {found['right']}", flush=True)
    for name in names:
        low, high = found["of_shipped_95"][name]
        print(f"  {name:32s} {medians[name]:9.2f} us: {found['of_shipped'][name]:.4f} [{low:.4f}, {high:.4f}], "
              f"same bits {found['same bits'][name]}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("programs")
    parser.add_argument("name")
    parser.add_argument("kernels", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--shape", action="append", required=True)
    parser.add_argument("--mask", default="none", choices=("none", "causal"))
    parser.add_argument("--rotate", type=int, default=256, help="MiB of K and V that launches go round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE", help="for the result")
    arguments = parser.parse_args()
    kernels = fagen_ctypes.Library(arguments.library, arguments.kernels)
    programs = fagen_ctypes.Library(arguments.library, [arguments.programs])
    results = [measure(shape, programs, kernels, arguments) for shape in arguments.shape]
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(dict(tool="program_pair.py", machine=compare_sdpa.machine_facts(), notes=notes_of(arguments.note),
                       rotate_mib=arguments.rotate, results=results), file, indent=1)
        file.write("\n")
    return 0 if all(result["right"] for result in results) else 2


if __name__ == "__main__":
    sys.exit(main())
