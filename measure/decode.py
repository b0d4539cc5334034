# fagen: one query row against a long cache: our kernels, PyTorch's backends and the plain reading of K and V, in turn.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 measure/decode.py LIBRARY DIRECTORY... --output FILE [--shape b,h,hkv,keys,d[,rows]]... [--variant NAME]...

A decoding step meets K and V that the layers between have pushed out of the L2. So each shape has as many copies of K
and V as take `--rotate` MiB, and launches go round them. Times are of CUDA graphs of launches one after the other, in
bursts that take turns; intervals of ratios are by a bootstrap over the rounds, both sides of a ratio from one round."""
import argparse
import itertools
import json
import random
import statistics
import sys

import torch

import compare_sdpa
import fagen_ctypes
from notes import notes_of
from stream_kernel import Stream

SHAPES = [f"{b},32,8,{keys},128" for b in (1, 16) for keys in (1024, 4096, 8192, 16384, 32768, 65536)]
GRAPH_US, REPLAYS, RESAMPLES = 4000.0, 3, 2000


def make_copies(shape, dtype, megabytes):
    b, h, hkv, keys, d, rows = shape
    of_one = 2 * 2 * b * hkv * keys * d
    count = max(1, min(64, -(-megabytes * 2**20 // of_one)))
    q = torch.randn(b, h, rows, d, device="cuda", dtype=dtype)
    pairs = [[torch.randn(b, hkv, keys, d, device="cuda", dtype=dtype) for _ in range(2)] for _ in range(count)]
    return q, pairs, of_one


def sdpa_launches(q, pairs):
    """A launch for each copy, by each backend that takes the shape; why not, for the others."""
    launches, refused = {}, {}
    for name, backend in compare_sdpa.BACKENDS.items():
        if name == "math":  # repeats K and V in memory
            continue
        for how, repeat in ((name, 1), (name + ", heads repeated", q.shape[1] // pairs[0][0].shape[1])):
            if repeat == 1 and how != name:
                continue
            try:
                given = [[t.repeat_interleave(repeat, dim=1) if repeat > 1 else t for t in pair] for pair in pairs]
                work = [lambda k=k, v=v, backend=backend: compare_sdpa.attention_by(backend, q, k, v, "none")
                        for k, v in given]
                work[0]()
                launches[how] = work
                break
            except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
                refused[how] = str(error).splitlines()[0][:160]
    return launches, refused


def fagen_launches(library, q, pairs, wanted):
    launches, facts, failed = {}, {}, {}
    o = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device="cuda")
    expected = compare_sdpa.expected_result(q, *pairs[0], "none")
    picked = [variant for variant, _ in library.picked(q, *pairs[0], o, lse, "none")]
    for variant in wanted or picked:
        try:
            work = [library.attention(q, k, v, o, lse, "none", variant) for k, v in pairs]
        except fagen_ctypes.Error as error:
            failed[variant] = str(error)[:160]
            continue
        o.fill_(float("nan"))
        work[0]()
        difference = (o.float() - expected).abs().max().item()
        if not difference < compare_sdpa.SAME_RESULT[q.dtype]:
            failed[variant] = f"differs from PyTorch by {difference}"
            continue
        info = work[0].info()
        launches[variant] = work
        facts[variant] = dict(grid=info.grid, registers=info.registers, local_bytes=info.local_bytes,
                              shared_bytes=info.shared_bytes, workspace_bytes=work[0].choice.workspace_bytes,
                              max_difference=difference)
    return launches, facts, failed


def graph_of(work):
    turns = itertools.cycle(work)
    graph = compare_sdpa.WarmGraph(lambda: next(turns)(), len(work))
    graph.time()
    rounds = max(1, min(400 // len(work), int(GRAPH_US / max(graph.time(), 0.5) / len(work))))
    graph = compare_sdpa.WarmGraph(lambda: next(turns)(), rounds * len(work))
    graph.time()
    return graph


def interval(ours, theirs):
    """95 % of the ratio of medians; samples of a round belong together."""
    draw = random.Random(1)
    ratios = []
    for _ in range(RESAMPLES):
        rounds = [draw.randrange(len(ours)) for _ in ours]
        ratios.append(statistics.median(t for r in rounds for t in ours[r]) /
                      statistics.median(t for r in rounds for t in theirs[r]))
    ratios.sort()
    return [ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]]


def measure(text, library, stream, arguments):
    shape = tuple(int(number) for number in text.split(","))
    shape += (1,) * (6 - len(shape))
    torch.manual_seed(0)
    q, pairs, size = make_copies(shape, compare_sdpa.DTYPES[arguments.dtype], arguments.rotate)
    launches, refused = sdpa_launches(q, pairs)
    ours, facts, failed = fagen_launches(library, q, pairs, arguments.variant)
    launches.update(ours)
    launches["stream"] = [lambda k=k, v=v: stream.launch(k, v) for k, v in pairs]
    graphs = {name: graph_of(work) for name, work in launches.items()}
    samples = {name: [] for name in graphs}
    order, draw = list(graphs.items()), random.Random(0)
    for _ in range(arguments.rounds):
        draw.shuffle(order)  # whom a graph follows is not always the same
        for name, graph in order:
            graph.time()
            samples[name].append([graph.time() for _ in range(REPLAYS)])
    medians = {name: statistics.median(t for r in rounds for t in r) for name, rounds in samples.items()}
    best = min((name for name in medians if name not in ours and name != "stream"), key=medians.get, default=None)
    result = dict(shape=text, bytes=size, copies=len(pairs), refused=refused, failed=failed, best=best, times=[])
    for name in sorted(medians, key=medians.get):
        entry = dict(name=name, median_us=medians[name], gb_per_s=size / medians[name] / 1e3,
                     share_of_stream=medians["stream"] / medians[name], samples_us=samples[name], **facts.get(name, {}))
        if best and name in ours:
            entry["over_best"] = medians[name] / medians[best]
            entry["over_best_95"] = interval(samples[name], samples[best])
        result["times"].append(entry)
        print(f"{text:20s} {name:44s} {medians[name]:9.2f} us {entry['gb_per_s']:7.0f} GB/s "
              f"{100 * entry['share_of_stream']:5.1f} % of stream  {entry.get('over_best', 0):.3f} of {best}", flush=True)
    for name, why in {**refused, **failed}.items():
        print(f"{text:20s} {name}: {why}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--shape", action="append")
    parser.add_argument("--variant", action="append", help="by name; without it what dispatch picks")
    parser.add_argument("--dtype", default="f16", choices=("f16", "bf16"))
    parser.add_argument("--rotate", type=int, default=256, help="MiB of K and V that launches go round")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE", help="for the result")
    arguments = parser.parse_args()
    library, stream = fagen_ctypes.Library(arguments.library, arguments.directory), Stream()
    results = [measure(shape, library, stream, arguments) for shape in arguments.shape or SHAPES]
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(dict(tool="decode.py", machine=compare_sdpa.machine_facts(), notes=notes_of(arguments.note),
                       dtype=arguments.dtype, rotate_mib=arguments.rotate, results=results), file, indent=1)
    return 1 if any(result["failed"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
