#!/usr/bin/env python3
# fagen: tables in Markdown from measured results (evidence/*.json).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tables.py RESULT.json prints a table for what the file holds, a raw result or its summary (measure/summary.py).
With --into FILE --name NAME it replaces what stands between `<!-- begin NAME -->` and `<!-- end NAME -->` there;
with --verify as well it only tells, by exit code 2, whether that would change anything."""
import argparse
import json
import pathlib
import statistics
import sys

from evidence_files import summary_of
from samples import geometric_mean
from summary import number_and_median
from toolchain_tables import bits_table, toolchain_table


SHORT_DTYPES = {"float16": "f16", "bfloat16": "bf16"}


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def machine_line(data):
    machine, notes = data["machine"], data.get("notes") or {}
    words = [machine.get("gpu") or machine.get("cpu"), f"PyTorch {machine['torch']}" if "torch" in machine else "",
             f"cuDNN {machine['cudnn']}" if "cudnn" in machine else "",
             f"NVRTC {machine['nvrtc']}" if machine.get("nvrtc") else "",
             *(f"{key} {value}" for key, value in notes.items())]
    return ", ".join(word for word in words if word)


def inputs_line(data):
    """compare_sdpa.py has drawn its inputs so since its first run; it has written so later."""
    return f"Inputs are {data.get('inputs', 'standard normal')}."


def geometric_means(ratios):
    """One line for the ratios of each head dimension, and of all."""
    groups = {f"d {d}": ratios[d] for d in sorted(ratios)} | {"all": [r for d in ratios for r in ratios[d]]}
    return "; ".join(f"{name}: {statistics.geometric_mean(group):.3f} in the geometric mean of {len(group)}, least "
                     f"{min(group):.3f}" for name, group in groups.items())


def compare_table(data, dispatched):
    """A row for each of our variants on each problem, with PyTorch's backends next to it; then how many times as fast the
    dispatched ones are as the best backend."""
    backends = [name for name in ("flash", "cudnn", "efficient", "math")
                if any(r["name"] == name for p in data["problems"] for r in p["results"])]
    rows, ratios = [], {}
    for p in data["problems"]:
        times = {r["name"]: r["median_us"] for r in p["results"] if r["kind"] == "sdpa"}
        for r in (r for r in p["results"] if r["kind"] == "fagen" and (r["picked"] or not dispatched)):
            if r["picked"]:
                ratios.setdefault(p["d"], []).append(min(times.values()) / r["median_us"])
            rows.append([str(p["b"]), str(p["h"]), str(p["s"]), str(p["d"]), p["mask"],
                         *(f"{times[name]:.1f}" if name in times else "–" for name in backends),
                         f"`{r['name']}`", f"{r['median_us']:.1f}", f"{r['tflops']:.0f}",
                         "{:.2f} ({:.2f}–{:.2f})".format(*r["over_best_together"])])
    head = ["B", "H", "S", "d", "mask", *(f"{name} µs" for name in backends), "variant", "µs", "TFLOP/s",
            "time / best SDPA (95 %)"]
    return (f"{markdown(head, rows)}\n\nBest SDPA's time over ours, {geometric_means(ratios)}.\n"
            f"{inputs_line(data)} Median of one run, {data['state']}: {machine_line(data)}.")


def best_of(results):
    return min(results, key=lambda result: result["median_us"], default=None)


def sensors(result):
    """Power, joules a launch and clock, where NVML told them: the power is the average of the second before, the joules are
    those of its energy counter."""
    watts, joules, clock = result.get("watts"), result.get("joules_per_launch"), result.get("sm_clock_mhz")
    return ["–" if watts is None else f"{watts:.0f}", "–" if joules is None else f"{joules:.3g}",
            "–" if clock is None else f"{clock}"]


def energy_summary(pairs):
    """How much energy a launch takes next to the fastest peer's, by the counter; `pairs` are (problem, ours, best)."""
    ratios = [(p, ours["joules_per_launch"] / best["joules_per_launch"]) for p, ours, best in pairs
              if ours.get("joules_per_launch") and best.get("joules_per_launch")]
    if not ratios:
        return []
    more = [f"d {p['d']} {p['mask']} S {p['s']} {ratio:.3f}" for p, ratio in ratios if ratio > 1]
    return [f"Energy of a launch by NVML's counter, ours / best peer: {geometric_mean([ratio for _, ratio in ratios]):.3f} in "
            f"the geometric mean of {len(ratios)}; above 1 on {len(more)}{': ' if more else ''}{', '.join(more)}."]


def contest_summary(ratios, asked, measured):
    """How often ours is faster, whose interval says so, and the geometric mean of time ratios."""
    surely = sum(high <= 1 for _, _, high in ratios)
    lost = sum(low > 1 for _, low, _ in ratios)
    text = (f"Time of ours / best peer: {geometric_mean([middle for middle, _, _ in ratios]):.3f} in the geometric mean of "
            f"{len(ratios)} problems; the interval is below 1 on {surely}, above 1 on {lost}.")
    return text + (f" Only {measured} of {asked} problems were measured." if measured < asked else "")


def contest_groups(ratios):
    """The geometric mean of each head dim and mask, and the slowest problem of each."""
    groups = {}
    for p, ratio in ratios:
        groups.setdefault((p["d"], p["mask"]), []).append((ratio[0], p["s"]))
    words = [f"d {d} {mask} {geometric_mean([ratio for ratio, _ in members]):.3f} (most {max(members)[0]:.3f} at S {max(members)[1]})"
             for (d, mask), members in groups.items()]
    return f"By head dim and mask: {'; '.join(words)}."


def contest_inputs(data):
    """A row for each of our variants that dispatch picks, by problem; a column for each kind of inputs: time over the best
    peer's."""
    kinds = list(dict.fromkeys(p["inputs"] for p in data["problems"]))
    rows = {}
    for p in data["problems"]:
        best = best_of(r for r in p["results"] if r["kind"] != "fagen")
        for ours in (r for r in p["results"] if r["kind"] == "fagen" and r["picked"] and best):
            place = (str(p["s"]), str(p["d"]), p["mask"], SHORT_DTYPES[p["dtype"]], p["layout"], f"`{ours['name']}`")
            ratio = ours["over_best"][0]
            rows.setdefault(place, {})[p["inputs"]] = f"{ratio:.3f} ({best['name']})"
    table = markdown(["S", "d", "mask", "dtype", "layout", "variant", *kinds],
                     [[*place, *(cells.get(kind, "–") for kind in kinds)] for place, cells in rows.items()])
    return (f"{table}\n\nTime over that of the best peer, which stands after it. Median of one run of {data['rounds']} rounds, "
            f"{data['state']}: {machine_line(data)}.")


def product_rates(products):
    """The mean TFLOP/s of the matrix products of each dtype."""
    rates = {}
    for r in products:
        rates.setdefault(r["dtype"], []).append(r["tflops"])
    return {dtype: sum(values) / len(values) for dtype, values in rates.items()}


def contest_table(data, _):
    """A row for each problem: what dispatch picks next to the best of each peer, against the fastest of them."""
    peers = list(dict.fromkeys(r["name"] for p in data["problems"] for r in p["results"] if r["kind"] != "fagen"))
    steady = data["state"] == "steady"  # a burst is over before power and clock have settled
    rows, ratios, pairs, ceiling = [], [], [], product_rates(data["products"])
    for p in data["problems"]:
        others = [r for r in p["results"] if r["kind"] != "fagen"]
        times = {r["name"]: r["median_us"] for r in others}
        best = best_of(others)
        ours = best_of(r for r in p["results"] if r["kind"] == "fagen" and r["picked"])
        row = [str(p["b"]), str(p["h"]), str(p["s"]), str(p["d"]), p["mask"], SHORT_DTYPES[p["dtype"]],
               *(f"{times[name]:.1f}" if name in times else "–" for name in peers)]
        if ours is None or best is None:
            rows.append(row + ["no result"] + ["–"] * (7 if steady else 4))
            continue
        ratio = ours["over_best"]
        ratios.append((p, ratio))
        pairs.append((p, ours, best))
        theirs = sensors(best)
        rate = f"{ours['tflops'] / ceiling[p['dtype']]:.2f}" if p["dtype"] in ceiling else "–"
        rows.append(row + [f"`{ours['name']}`", f"{ours['median_us']:.1f}", f"{ours['tflops']:.0f}", rate,
                           *(f"{mine} / {other}" for mine, other in zip(sensors(ours), theirs) if steady),
                           "{:.3f} ({:.3f}–{:.3f})".format(*ratio)])
    head = ["B", "H", "S", "d", "mask", "dtype", *(f"{name} µs" for name in peers), "variant", "µs", "TFLOP/s",
            "of the product", *(["W, ours / best", "J a launch", "SM MHz"] if steady else []), "time / best peer (95 %)"]
    text = [markdown(head, rows)]
    if ratios:
        text += [contest_summary([ratio for _, ratio in ratios], data["asked"], len(data["problems"])), contest_groups(ratios)]
        text += energy_summary(pairs) if steady else []
    products = ", ".join(f"{r['tflops']:.0f} TFLOP/s in {r['dtype']} ({r['when']} in the run)" for r in data["products"])
    if products:
        text.append(f"Square matrix product of {data['products'][0]['size']} rows: {products}.")
    text += [f"{name}: {about}." for name, about in data["contestants"].items() if about]
    key, what = {"burst": ("idle_s", "idling"), "steady": ("load_s", "load")}.get(data["state"], ("", ""))
    before = f" after {data[key]:g} s of {what}" if key in data else ""
    text.append(f"{inputs_line(data)} Median of one run of {data['rounds']} rounds, {data['state']}{before}: "
                f"{machine_line(data)}.")
    return "\n\n".join(text)


def contest_overview(data):
    """Only the ratios: a row for each head dim, mask and dtype, a column for each length."""
    ratios = {}
    for p in data["problems"]:
        ours = best_of(r for r in p["results"] if r["kind"] == "fagen" and r["picked"])
        best = best_of(r for r in p["results"] if r["kind"] != "fagen")
        if ours and best:
            ratios[p["d"], p["mask"], p["dtype"], p["s"]] = ours["over_best"]
    lengths = sorted({key[3] for key in ratios})
    rows = []
    for group in dict.fromkeys(key[:3] for key in ratios):
        members = [ratios.get((*group, s)) for s in lengths]
        mean = geometric_mean([middle for middle, _, _ in filter(None, members)])
        rows.append([str(group[0]), group[1], SHORT_DTYPES[group[2]],
                     *("–" if ratio is None else f"{ratio[0]:.3f}" for ratio in members), f"{mean:.3f}"])
    head = ["d", "mask", "dtype", *(f"S {s}" for s in lengths), "mean"]
    return (f"{markdown(head, rows)}\n\n{contest_summary(list(ratios.values()), data['asked'], len(data['problems']))}\n\n"
            f"{inputs_line(data)} Median of one run of {data['rounds']} rounds, {data['state']}: {machine_line(data)}.")


def check_table(data, _):
    rows = [[f"`{v['variant']}`", v["target"], str(v["cases"]), f"{v['max_error']:.2e}", f"{v['bound']:.2e}",
             f"{v['cosine']:.1e}", f"{v['lse_error']:.1e}", "PASS" if v["passed"] else "FAIL"]
            for v in data["check"]["variants"]]
    head = ["variant", "target", "cases", "max \\|O − ref\\|", "allowed", "cosine", "LSE", "result"]
    return f"{markdown(head, rows)}\n\n{machine_line(data)}."


def time_table(data, dispatched):
    rows = [[r["shape"], r["dtype"], r["mask"], f"`{r['variant']}`", f"{r['median_us']:.2f}", f"{r['p90_us']:.2f}",
             f"{r['tflops']:.1f}", "yes" if r["picked"] else ""]
            for r in data["time"]["results"] if "failure" not in r and (r["picked"] or not dispatched)]
    head = ["b,h,hkv,sq,sk,d", "dtype", "mask", "variant", "median µs", "p90 µs", "TFLOP/s", "dispatched"]
    return f"{markdown(head, rows)}\n\nMedian of one run, {data['time']['state']}: {machine_line(data)}."


def compile_table(data, _):
    texts = [[f"text of {t['spec']}", f"{t['median_ms']:.0f} ms", "", f"median of {number_and_median(t['samples_ms'])[0]}"] for t in data["texts"]]
    kernels = data["kernels"]
    slowest = max(kernels, key=lambda kernel: kernel["seconds"])
    seconds, megabytes = (statistics.median(kernel[key] for kernel in kernels) for key in ("seconds", "megabytes"))
    rows = texts + [["a kernel to machine code", f"{seconds:.2f} s", f"{megabytes:.0f} MB", f"median of {len(kernels)}"],
                    [f"`{slowest['kernel']}` to {slowest['target']} machine code", f"{slowest['seconds']:.2f} s",
                     f"{slowest['megabytes']:.0f} MB", f"slowest of {len(kernels)}"]]
    machine, notes = data["machine"], data["notes"]
    words = [f"{machine.get('threads') or machine['cpus']} cores", data["nvcc"], *(f"{key} {value}" for key, value in notes.items())]
    return f"{markdown(['what', 'time', 'memory', ''], rows)}\n\n{', '.join(words)}."


def benchmark_table(data, _):
    """Google Benchmark's own format: the medians of the repetitions."""
    rows = []
    for b in data["benchmarks"]:
        if b.get("aggregate_name") != "median":
            continue
        if "overhead_ns" in b:
            rows.append([f"`{b['run_name']}`", f"{b['run_ns']:.0f} ns a launch, bare {b['bare_ns']:.0f} ns: "
                                               f"{b['overhead_ns']:.0f} ns over it"])
        else:
            rows.append([f"`{b['run_name']}`", f"{b['cpu_time']:.0f} {b['time_unit']}"])
    return markdown(["benchmark", "median"], rows)


def barrier_table(data, _):
    """A row for each kernel and problem: barriers of a step and time of each policy; steps are those of the longest CTA,
    which sees every key."""
    barriers, problems, others = data["barriers"], {}, []
    for r in data["time"]["results"]:
        known = barriers[r["variant"]]
        problems.setdefault((r["shape"], known["family"]), {})[known["policy"]] = r
    rows = []
    for (shape, family), results in problems.items():
        least = results["minimal"]
        base = barriers[least["variant"]]
        steps = -(-int(shape.split(",")[4]) // base["tile_keys"])
        row = [shape, f"`{family.removeprefix('barrier_cost_')}`", str(steps)]
        for policy in ("minimal", "light", "legacy"):
            r, count = results[policy], barriers[results[policy]["variant"]]
            row += [f"{count['cta_barrier']} + {count['warp_barrier']}", f"{r['median_us']:.2f}"]
            if r is not least:
                row.append("{:.3f} ({:.3f}–{:.3f})".format(*r["over_minimal"]))
        rows.append(row)
        others += [[shape, row[1], f"`{policy}`", f"{barriers[r['variant']]['cta_barrier']} + "
                    f"{barriers[r['variant']]['warp_barrier']}", f"{r['median_us']:.2f}",
                    "{:.3f} ({:.3f}–{:.3f})".format(*r["over_minimal"])]
                   for policy, r in results.items() if policy not in ("minimal", "light", "legacy")]
    head = ["b,h,hkv,sq,sk,d", "kernel", "steps", "minimal", "µs", "light", "µs", "/ minimal (95 %)", "legacy", "µs",
            "/ minimal (95 %)"]
    text = markdown(head, rows)
    if others:
        text += "\n\n" + markdown(["b,h,hkv,sq,sk,d", "kernel", "barriers", "a step", "µs", "/ minimal (95 %)"], others)
    return f"{text}\n\nMedian of one run, {data['time']['state']}: {machine_line(data)}."


def conformance_cell(entry, device):
    """What a device made of a function: exact, or its largest error; a GPU's bits may also be those of the emulator."""
    result = next((r for r in entry["results"] if r["device"] == device), None)
    if result is None:
        return ""
    if entry["bound"] == "exact":
        return f"{result['wrong']} wrong" if result["wrong"] else "exact"
    beyond = f", {result['wrong']} beyond" if result["wrong"] else ""
    absolute = f", {result['max_absolute']:.2e}" if entry["is_absolute"] else ""
    return f"{result['max_ulp']:.3f} ulp{absolute}, {result['max_of_bound']:.2f} of the bound{beyond}"


def conformance_table(data, _):
    """A row for each case; then how matrix instructions of the first device add."""
    c = data["conformance"]
    rows = [[", ".join(f"`{name}`" for name in entry["name"].split(", ")), entry["inputs"], str(entry["results"][0]["values"]),
             entry["bound"], *(conformance_cell(entry, device) for device in c["devices"])] for entry in c["functions"]]
    text = markdown(["function", "inputs", "values", "must be", *c["devices"]], rows)
    models = [[f"`{m['name']}`", best["model"], f"{best['different']} of {m['values']}",
               f"{other['model']}: {'at least ' if other['stopped'] else ''}{other['different']}"]
              for m in c["models"] for best, other in [m["best"][:2]]]
    if models:
        text += "\n\n" + markdown(["instruction", f"adds on {c['devices'][0]} like", "results that differ", "next best"], models)
    return f"{text}\n\nSeed {c['seed']}, {c['rounds']} rounds: {machine_line(data)}."


def decode_table(data, _):
    """A row for each of our variants on each shape, next to the plain reading of K and V and the fastest backend."""
    rows = []
    for result in data["results"]:
        batch, heads, kv_heads, keys, d, *queries = result["shape"].split(",")
        times = {entry["name"]: entry for entry in result["times"]}
        stream, best = times["stream"], times[result["best"]]
        for entry in result["times"]:
            if "grid" in entry:
                rows.append([batch, f"{heads}/{kv_heads}", d, "".join(queries) or "1", keys, f"{stream['median_us']:.1f}",
                             f"{best['name']} {best['median_us']:.1f}", f"{100 * best['share_of_stream']:.0f} %",
                             f"`{entry['name']}`", str(entry["grid"]), f"{entry['median_us']:.1f}",
                             f"{100 * entry['share_of_stream']:.0f} %",
                             "{:.2f} ({:.2f}–{:.2f})".format(entry["over_best"], *entry["over_best_95"])])
    head = ["B", "heads", "d", "query rows", "keys", "`stream` µs", "best backend µs", "of `stream`", "variant", "CTAs",
            "µs", "of `stream`", "time / best (95 %)"]
    return f"{markdown(head, rows)}\n\nMedians of one run, {data['dtype']}, bursts in turn: {machine_line(data)}."


def program_table(files):
    """A row for each file of `fagen-run program --time --cublas`: ours next to the product of the same sizes."""
    rows = []
    for path, data in files:
        program = data["program"]
        ours, product = program["times"]
        sizes = program["sizes"]
        flops = 2 * sizes["M"] * sizes["N"] * sizes["K"]
        (turns, median), (_, other) = (number_and_median(each["microseconds"]) for each in (ours, product))
        rows.append([f"`{path.name.split('.')[0]}.fair`", "{M} x {N} x {K}".format(**sizes), f"{median:.1f}",
                     f"{flops / median / 1e6:.0f}", f"{other:.1f}", f"{median / other:.3f}"])
    head = ["program", "M x N x K", "µs", "TFLOP/s", "cuBLAS µs", "time / cuBLAS"]
    data = dict(files[0][1])
    commits = sorted({each["notes"]["commit"] for _, each in files})
    data["notes"] = {"commit" if len(commits) == 1 else "commits": " and ".join(commits)}
    library = data["program"]["times"][1]["library"]
    return f"{markdown(head, rows)}\n\nMedians of {turns} turns: {library}, {machine_line(data)}."


def ranking_table(data, _):
    """A row for each problem: how a tuner ranked what it timed, and how it does."""
    head = ["b,h,hkv,sq,sk,d", "products", "schedules", "rho before", "now", "the fastest is ranked before", "now",
            "the best of the first 8 loses before", "now"]
    before = {(row["problem"], row["products"]): row for row in data["before"]}
    rows = []
    for row in data["rows"]:
        old = before.get((row["problem"], row["products"]), {})
        rows.append([row["problem"], row["products"], str(row["ranked"])]
                    + [format(side[key], form) if side else "-"
                       for key, form in (("spearman", ".2f"), ("rank_of_fastest", "d"), ("first_8_lose", ".1%"))
                       for side in (old, row)])
    return markdown(head, rows)


TABLES = {"barrier_cost.py": barrier_table, "compile_cost.py": compile_table, "Google Benchmark": benchmark_table,
          "compare_sdpa.py": compare_table, "fagen-run check": check_table, "fagen-run conformance": conformance_table, "decode.py": decode_table,
          "fagen-run program": program_table, "fagen-run time": time_table,
          "ranking.py": ranking_table, "toolchains.py": lambda data, _: toolchain_table(data, markdown),
          "toolchain_bits.py": lambda data, _: bits_table(data, markdown)}


def replace(path, name, text):
    """The file with the marked part replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    with open(path) as file:
        whole = file.read()
    if whole.count(begin) != 1 or whole.count(end) != 1:
        sys.exit(f"{path} must have '{begin}' and '{end}' once each")
    before, rest = whole.split(begin)
    return whole, before + begin + "\n" + text + "\n" + end + rest.split(end)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", nargs="+", type=pathlib.Path, help="JSON file, or the name of one that is compressed to NAME.xz; several of fagen-run program")
    parser.add_argument("--into", help="a Markdown file with markers")
    parser.add_argument("--name", help="of the markers")
    parser.add_argument("--dispatched", action="store_true", help="of timed variants only those that dispatch picks")
    parser.add_argument("--overview", action="store_true", help="of a contest only the ratios, by head dim, mask and length")
    parser.add_argument("--inputs", action="store_true", help="of a contest the ratios by kind of inputs")
    parser.add_argument("--verify", action="store_true")
    arguments = parser.parse_args()
    files = [(path, summary_of(path)) for path in arguments.result]
    data = files[0][1]
    if "benchmarks" in data:
        data["tool"] = "Google Benchmark"
    if data.get("tool") not in TABLES:
        sys.exit(f"{files[0][0]}: no table for tool '{data.get('tool')}'; known: {', '.join(TABLES)}")
    make = contest_table if data.get("contestants") else TABLES[data["tool"]]
    text = (contest_overview(data) if arguments.overview else contest_inputs(data) if arguments.inputs else program_table(files) if make is program_table
            else make(data, arguments.dispatched))
    if not arguments.into:
        print(text)
        return
    old, new = replace(arguments.into, arguments.name, text)
    if arguments.verify:
        sys.exit(0 if old == new else 2)
    with open(arguments.into, "w") as file:
        file.write(new)


if __name__ == "__main__":
    main()
