#!/usr/bin/env python3
# fagen: ragged batches on a GPU: right, the same bits each time, and their time against that of dense batches.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ragged.py --output FILE.json [--kernels DIR] [--limit SECONDS]

Times are of CUDA graphs of several calls, the median of rounds in which all contestants take turns (interleaved), and of each alone
(steady). `ragged` is the program, `front` flash_attn_varlen_func, which in addition clears what no sequence uses of V. Dense is fagen.attention on a batch of equal lengths; for others its time at 8192 is scaled by the pairs of a query and a key
that are seen. DIR has the programs as a kernel set; else they are the package's."""
import argparse
import json
import math
import statistics
import time

import torch

import fagen
from fagen import flash_attn

GEOMETRIC = [round(8192 ** (i / 33)) for i in range(34)]
LINEAR = [1 + round(8191 * i / 33) for i in range(34)]


def offsets(lengths):
    return torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0).int().cuda()


def draw(total_q, total_k, heads, kv_heads, head_dim, dtype, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return [torch.randn(total, n, head_dim, device="cuda", generator=generator).to(dtype)
            for total, n in ((total_q, heads), (total_k, kv_heads), (total_k, kv_heads))]


class Ragged:
    """The program for a type, a head dim and a mask."""

    def __init__(self, kernels, dtype, head_dim, causal):
        name = f"ragged_{'f16' if dtype == torch.float16 else 'bf16'}_d{head_dim}_{'causal' if causal else 'none'}"
        self.program = fagen.program(kernels, name)

    def __call__(self, q, k, v, cu_q, cu_k, used_q=None, used_k=None, **out):
        scale = q.shape[-1] ** -0.5
        return self.program(q=q, k=k, v=v, cu_q=cu_q, cu_k=cu_k, used_q=cu_q[1:] if used_q is None else used_q,
                            used_k=cu_k[1:] if used_k is None else used_k, uses_q=int(used_q is not None), uses_k=int(used_k is not None),
                            scale=scale, scale_log2=scale / math.log(2.0), **out)


def wanted(q, k, v, lengths_q, lengths_k, used_q, used_k, causal):
    """O and LSE in f64: 0 and -inf in rows of nobody."""
    o = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    lse = torch.full((q.shape[1], q.shape[0]), -torch.inf, dtype=torch.float64, device=q.device)
    group = q.shape[1] // k.shape[1]
    first_q = first_k = 0
    for i, (rows, keys) in enumerate(zip(lengths_q, lengths_k)):
        n, m = (rows if used_q is None else min(used_q[i], rows)), (keys if used_k is None else min(used_k[i], keys))
        qs = q[first_q:first_q + n].double()
        ks, vs = (t[first_k:first_k + m].double().repeat_interleave(group, 1) for t in (k, v))
        if n and m:
            scores = torch.einsum("qhd,khd->hqk", qs, ks) * q.shape[-1] ** -0.5
            if causal:
                scores = scores.masked_fill(~torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n), -torch.inf)
            sums = torch.logsumexp(scores, -1)
            p = torch.exp(scores - sums.masked_fill(sums == -torch.inf, 0)[..., None])
            o[first_q:first_q + n] = torch.einsum("hqk,khd->qhd", p, vs)
            lse[:, first_q:first_q + n] = sums
        first_q, first_k = first_q + rows, first_k + keys
    return o, lse


CASES = [  # lengths of queries and keys, used ones, rows and keys beyond
    ([90, 0, 128, 1], [150, 40, 128, 300], None, None, 5, 5),
    ([130, 3], [260, 0], None, None, 0, 0),
    ([257, 1, 127, 129, 0], [257, 1, 127, 129, 4], None, None, 300, 7),
    ([200, 64, 500], [300, 900, 40], [150, 64, 0], [299, 100, 40], 1, 0),
    ([1] * 300, list(range(300)), None, None, 0, 0),
    ([1000, 2, 700], [1100, 30, 700], None, [0, 30, 650], 0, 0),
]


def check(kernels):
    """The largest errors of all programs, and how many cases are beyond tolerance."""
    found = []
    for dtype in (torch.float16, torch.bfloat16):
        for head_dim in (64, 128, 256):
            for causal in (False, True):
                run = Ragged(kernels, dtype, head_dim, causal)
                errors, bad = [0.0, 0.0], 0
                for number, (lengths_q, lengths_k, used_q, used_k, more_q, more_k) in enumerate(CASES):
                    q, k, v = draw(sum(lengths_q) + more_q, sum(lengths_k) + more_k, 4, 2, head_dim, dtype, number)
                    used = [None if u is None else torch.tensor(u, dtype=torch.int32, device="cuda") for u in (used_q, used_k)]
                    o, lse = run(q, k, v, offsets(lengths_q), offsets(lengths_k), *used)
                    want, sums = wanted(q, k, v, lengths_q, lengths_k, used_q, used_k, causal)
                    bound = (2e-3 if dtype == torch.float16 else 1.6e-2) * (1 + want.abs())
                    is_empty = sums == -torch.inf
                    off = (lse.double() - sums).masked_fill(is_empty, 0).abs()
                    error = (o.double() - want).abs()
                    bad += bool((error > bound).any() or not torch.isfinite(o).all() or (off > 1e-4 * (1 + sums.abs().nan_to_num(0, 0, 0))).any()
                                or (lse[is_empty] != -torch.inf).any())
                    errors = [max(errors[0], error.max().item()), max(errors[1], off.max().item())]
                found.append({"program": run.program.name, "cases": len(CASES), "wrong": bad, "o_error": errors[0], "lse_error": errors[1]})
    return found


def runs_alike(kernels, runs):
    """How many of so many runs gave other bits than the first."""
    lengths = [700, 3, 0, 1290, 128, 1, 4000]
    q, k, v = draw(sum(lengths), sum(lengths), 8, 2, 128, torch.bfloat16)
    run, cu = Ragged(kernels, torch.bfloat16, 128, True), offsets(lengths)
    first = run(q, k, v, cu, cu)
    others = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(runs):
        o, lse = run(q, k, v, cu, cu)
        others += (o.view(torch.int16) != first[0].view(torch.int16)).any() | (lse.view(torch.int32) != first[1].view(torch.int32)).any()
    return {"runs": runs, "others": others.item()}


def replayed_lengths(kernels):
    """Whether a captured graph sees lengths that change on the device."""
    q, k, v = draw(1000, 1000, 4, 4, 128, torch.float16)
    run, cu, out = Ragged(kernels, torch.float16, 128, True), offsets([1000, 0]), torch.empty_like(q)
    lse = torch.empty(4, 1000, device="cuda")
    run(q, k, v, cu, cu, o=out, lse=lse)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(q, k, v, cu, cu, o=out, lse=lse)
    worst = 0.0
    for lengths in ([1000, 0], [1, 999], [640, 360], [0, 0]):
        cu.copy_(offsets(lengths))
        graph.replay()
        want, _ = wanted(q, k, v, lengths, lengths, None, None, True)
        worst = max(worst, (out.double() - want).abs().max().item())
    return {"o_error": worst, "right": worst < 4e-3}


def graph_of(call, calls):
    call()
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def time_all(contestants, seconds):
    """Microseconds a call: {name: {"steady", "interleaved"}}."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def once(graph, calls):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / calls
    graphs = {}
    for name, call in contestants.items():
        first = graph_of(call, 1)
        calls = max(1, min(20, int(2000 / max(once(first, 1), 1))))
        graphs[name] = graph_of(call, calls), calls
    found = {name: {} for name in graphs}
    for name, (graph, calls) in graphs.items():
        stop, samples = time.monotonic() + seconds / 3 / len(graphs), []
        while time.monotonic() < stop or len(samples) < 12:
            samples.append(once(graph, calls))
        found[name]["steady"] = statistics.median(samples[len(samples) // 4:])
    stop, samples = time.monotonic() + seconds / 2, {name: [] for name in graphs}
    while time.monotonic() < stop or len(samples[name]) < 12:
        for name, (graph, calls) in graphs.items():
            samples[name].append(once(graph, calls))
    for name in graphs:
        found[name]["interleaved"] = statistics.median(samples[name])
    return found


def pairs(lengths, causal):
    return sum(n * (n + 1) // 2 if causal else n * n for n in lengths)


def torch_varlen(q, k, v, cu, most, causal):
    return lambda: torch.ops.aten._flash_attention_forward(q, k, v, cu, cu, most, most, 0.0, causal, False)


def time_case(kernels, lengths, heads, kv_heads, head_dim, dtype, causal, seconds, other=None):
    q, k, v = draw(sum(lengths), sum(lengths), heads, kv_heads, head_dim, dtype)
    cu, run = offsets(lengths), Ragged(kernels, dtype, head_dim, causal)
    o, lse = torch.empty_like(q), torch.empty(heads, len(q), device="cuda")
    contestants = {"ragged": lambda: run(q, k, v, cu, cu, o=o, lse=lse)}
    contestants["front"] = lambda: flash_attn.flash_attn_varlen_func(q, k, v, cu, cu, max(lengths), max(lengths), causal=causal)
    if other and any(name == run.program.name for name in other.names):
        run_other = Ragged(other, dtype, head_dim, causal)
        contestants["other"] = lambda: run_other(q, k, v, cu, cu, o=o, lse=lse)
    is_equal = len(set(lengths)) == 1
    length = lengths[0] if is_equal else max(lengths)
    batch = len(lengths) if is_equal else 1
    dense = [t[:batch * length].view(batch, length, *t.shape[1:]) for t in ((q, k, v) if is_equal else draw(length, length, heads, kv_heads, head_dim, dtype))]
    plan, out = fagen.plan(*dense, causal=causal), torch.empty_like(dense[0])
    contestants["dense"] = lambda: plan(*dense, out)
    if kv_heads == heads:
        contestants["torch"] = torch_varlen(q, k, v, cu, max(lengths), causal)
    times = time_all(contestants, seconds)
    share = pairs(lengths, causal) / (batch * pairs([length], causal))
    flops = 4 * head_dim * heads * pairs(lengths, causal)
    over = {state: times["ragged"][state] / (times["dense"][state] * share) for state in ("steady", "interleaved")}
    return {"lengths": f"{len(lengths)} x {length}" if is_equal else f"{len(lengths)}: {lengths[:3]}...{lengths[-1]}", "total": sum(lengths), "heads": heads,
            "kv_heads": kv_heads, "head_dim": head_dim, "dtype": str(dtype)[6:], "causal": causal, "us": times, "over_dense": over,
            "tflops": flops / times["ragged"]["interleaved"] / 1e6}


def launches(kernels, lengths):
    """Microseconds of each kernel by the profiler."""
    q, k, v = draw(sum(lengths), sum(lengths), 16, 16, 128, torch.float16)
    run, cu = Ragged(kernels, torch.float16, 128, True), offsets(lengths)
    run(q, k, v, cu, cu)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(20):
            run(q, k, v, cu, cu)
        torch.cuda.synchronize()
    return {event.key: event.device_time_total / event.count for event in profile.key_averages() if event.key.startswith("ragged")}


SHAPES = [  # lengths, heads, kv_heads, head_dim, causal
    ([4096] * 4, 16, 16, 128, True), (GEOMETRIC, 16, 16, 128, True), ([8192] * 2, 16, 16, 128, True), (LINEAR, 16, 16, 128, True), ([4096] * 4, 16, 16, 128, False),
    ([2048] * 8, 16, 16, 128, True), ([4096] * 2, 32, 8, 128, True), (GEOMETRIC, 32, 8, 128, True), ([4096] * 4, 16, 16, 64, True), (GEOMETRIC, 16, 16, 64, True),
    ([4096] * 4, 16, 16, 64, False), (GEOMETRIC, 16, 16, 128, False), ([512] * 32, 16, 16, 128, True), ([1024] * 16, 16, 16, 128, True), ([33] * 1024, 16, 16, 128, True),
    ([1] * 4096, 16, 16, 128, True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True)
    parser.add_argument("--kernels")
    parser.add_argument("--other", metavar="DIR", help="programs of the same names, timed in turn with these")
    parser.add_argument("--limit", type=float, default=110)
    parser.add_argument("--seconds", type=float, default=2.5, help="of a shape")
    options = parser.parse_args()
    start = time.monotonic()
    kernels = fagen.load(options.kernels) if options.kernels else fagen.ready()
    other = fagen.load(options.other) if options.other else None
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "right": [], "times": []}

    def keep():
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    for name, part in (("right", check), ("graph", replayed_lengths), ("alike", lambda k: runs_alike(k, 1000)),
                       ("launches", lambda k: {name: launches(k, lengths) for name, lengths in
                                               (("4 x 4096", [4096] * 4), ("34", GEOMETRIC), ("1024 x 33", [33] * 1024), ("8192 x 1", [1] * 8192))})):
        try:
            report[name] = part(kernels)
        except Exception as error:  # pylint: disable=broad-except # the rest is worth having
            report[name] = f"{type(error).__name__}: {error}"
        print(f"{time.monotonic() - start:.1f} s", name, report[name], flush=True)
        keep()
    for shape in SHAPES:
        if time.monotonic() - start > options.limit - options.seconds:
            report["left_out"] = report.get("left_out", 0) + 1
            continue
        lengths, heads, kv_heads, head_dim, causal = shape
        try:
            row = time_case(kernels, lengths, heads, kv_heads, head_dim, torch.bfloat16, causal, options.seconds, other)
        except Exception as error:  # pylint: disable=broad-except
            row = {"lengths": str(lengths[:3]), "error": f"{type(error).__name__}: {error}"}
        report["times"].append(row)
        print(f"{time.monotonic() - start:.1f} s", row, flush=True)
        keep()
    keep()


if __name__ == "__main__":
    main()
