#!/usr/bin/env python3
# fagen: the ladder: scalar, wmma and mma.sync kernels on the mission shapes, each with its breakdown.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two modes. `run` generates each step's kernels, plain and with timestamps, times the plain ones side by side and
breaks the others down, into DIR/time.json and a DIR/breakdown-SHAPE.json for each shape, as fagen-run writes them:

    measure/ladder.py run evidence/ladder --fagen build/release/bin/fagen --fagen-run build/release/bin/fagen-run

`table` makes Markdown of these files: `steps` (every step on every problem), `summary` (a row a problem) or
`breakdown`; --into FILE puts it between `<!-- begin ladder-NAME -->` and `<!-- end ladder-NAME -->` there, --verify only
tells by exit code 2 whether that would change anything:

    measure/ladder.py table evidence/ladder steps --into docs/notebooks/Ladder.md"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from samples import ratio_of_medians
from summary import microseconds_of
from tables import machine_line, markdown, replace

SPECS = pathlib.Path(__file__).resolve().parent.parent / "specs"
# Step, spec, its variant, in the order in which they were climbed.
STEPS = [("scalar", "l4_fp16_scalar", "l4_fp16_scalar_f16_d64_{mask}_minimal"),
         ("wmma", "l4_fp16_wmma", "l4_fp16_wmma_f16_d64_{mask}"),
         ("mma_sync", "l4_fp16", "l4_fp16_prefill_f16_d64_{mask}"),
         ("mma_sync, keys shared", "l4_fp16", "l4_fp16_short_f16_d64_{mask}")]
MASKS = ["none", "causal"]
SHAPES = ["mission", "mission2"]


def kernel_sets():
    return list(dict.fromkeys(spec for _, spec, _ in STEPS))


def all_variants():
    return [variant.format(mask=mask) for _, _, variant in STEPS for mask in MASKS]


def step_of(variant):
    """The step that a variant is; none for a baseline."""
    for step, _, pattern in STEPS:
        if variant in [pattern.format(mask=mask) for mask in MASKS]:
            return step
    return None


def shared_options(arguments):
    options = ["--device", arguments.device, "--state", arguments.state]
    for variant in all_variants():
        options += ["--variant", variant]
    for note in arguments.note:
        options += ["--note", note]
    return options


def run(arguments):
    """Exit code 2 when a stage sum is not its warp's span; the files are there all the same."""
    output, shapes = arguments.directory.resolve(), arguments.shape or SHAPES
    output.mkdir(parents=True, exist_ok=True)
    failed = False
    fagen, fagen_run = (str(pathlib.Path(tool).resolve()) if "/" in tool else tool
                        for tool in (arguments.fagen, arguments.fagen_run))
    with tempfile.TemporaryDirectory() as work:
        def call(*command, may_fail=False):
            """In `work`, so that paths in the JSON are relative; whether it found a failure."""
            code = subprocess.run(command, cwd=work, stdout=subprocess.DEVNULL).returncode
            if code and not (may_fail and code == 2):
                sys.exit(f"exit code {code} of {' '.join(command)}")
            return code != 0

        for directory, more in (("plain", []), ("instrumented", ["--instrument"])):
            call(fagen, *(str(SPECS / f"{name}.fa") for name in kernel_sets()), "-o", directory, *more)
        plain, instrumented = ([f"{directory}/{name}" for name in kernel_sets()] for directory in ("plain", "instrumented"))
        options = shared_options(arguments)
        baselines = [word for name in arguments.baseline for word in ("--baseline", name)]
        call(fagen_run, "time", *plain, *options, *(word for shape in shapes for word in ("--shape", shape)), *baselines,
             "--rounds", str(arguments.rounds), "--output", str(output / "time.json"))
        for shape in shapes:
            compared = ["--plain", *plain] if shape in (arguments.cost or shapes) else []
            failed |= call(fagen_run, "breakdown", *instrumented, *compared, *options, "--shape", shape, "--rounds",
                           str(arguments.cost_rounds), "--output",
                           str(output / f"breakdown-{shape.replace(',', '_')}.json"), may_fail=True)
    print(f"{output}: {', '.join(sorted(path.name for path in output.glob('*.json')))}")
    sys.exit(2 if failed else 0)


def load(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be read: {error}; measure/ladder.py run {path.parent} writes it")


def problem_cells(shape, mask):
    batch, heads, _, rows, _, dim = shape.split(",")[:6]
    return [batch, heads, rows, dim, mask]


def problems(results):
    """{(shape, mask): {step: result}} and the same for baselines by name, in the file's order, of what ran."""
    steps, baselines = {}, {}
    for r in results:
        key = (r["shape"], r["mask"])
        steps.setdefault(key, {}), baselines.setdefault(key, {})
        if "failure" not in r:
            step = step_of(r["variant"])
            (steps if step else baselines)[key][step or r["variant"]] = r
    return steps, baselines


def interval(ratio):
    return "{:.2f} ({:.2f}–{:.2f})".format(*ratio)


def footer(data):
    return f"Median of one run, {data['time']['state']}: {machine_line(data)}."


def steps_table(directory):
    """A row for each step on each problem, with how much faster than the step before it is."""
    data = load(directory / "time.json")
    steps, baselines = problems(data["time"]["results"])
    rows = []
    for (shape, mask), results in steps.items():
        before = None
        for step in (name for name, _, _ in STEPS if name in results):
            r = results[step]
            faster = interval(ratio_of_medians(microseconds_of(before), microseconds_of(r))) if before else ""
            rows.append([*problem_cells(shape, mask), step, f"{r['median_us']:.2f}", f"{r['tflops']:.1f}", faster])
            before = r
        rows += [[*problem_cells(shape, mask), name, f"{r['median_us']:.2f}", f"{r['tflops']:.1f}", ""]
                 for name, r in baselines[(shape, mask)].items()]
    head = ["B", "H", "S", "d", "mask", "step", "µs", "TFLOP/s", "times as fast as the step before (95 %)"]
    return f"{markdown(head, rows)}\n\n{footer(data)}"


def summary_table(directory):
    """A row for each problem: the time of each step, and how far up the ladder leads."""
    data = load(directory / "time.json")
    steps, baselines = problems(data["time"]["results"])
    names = [name for name, _, _ in STEPS if any(name in results for results in steps.values())]
    others = list(dict.fromkeys(name for results in baselines.values() for name in results))
    rows = []
    for (shape, mask), results in steps.items():
        if not results:
            continue
        best = min(results.values(), key=lambda r: r["median_us"])
        first = next(results[name] for name in names if name in results)
        cells = [f"{results[name]['median_us']:.1f}" if name in results else "–" for name in names]
        cells += [f"{baselines[(shape, mask)][name]['median_us']:.1f}" if name in baselines[(shape, mask)] else "–"
                  for name in others]
        rows.append([*problem_cells(shape, mask), *cells, interval(ratio_of_medians(microseconds_of(first), microseconds_of(best)))])
    head = ["B", "H", "S", "d", "mask", *(f"{name} µs" for name in names + others), f"{names[0]} / fastest (95 %)"]
    return f"{markdown(head, rows)}\n\n{footer(data)}"


def cost_cell(cost):
    if cost is None:
        return "–"
    low, high = cost["interval"]
    return f"{100 * (cost['ratio'] - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"


def breakdown_table(directory):
    """A row for each step on each problem: a warp's clocks, and the share of each component."""
    files = sorted(directory.glob("breakdown-*.json")) or [directory / "breakdown-mission.json"]
    parts = [load(path) for path in files]
    results = [r for part in parts for r in part["breakdown"] if step_of(r["variant"])]
    components = []
    for r in results:
        at = 0
        for name in (stage["name"] for stage in r["stages"]):
            if name not in components:
                components.insert(at, name)
            at = components.index(name) + 1
    order = {name: i for i, (name, _, _) in enumerate(STEPS)}
    problem_order = list(dict.fromkeys(r["case"] for r in results))
    rows = []
    for r in sorted(results, key=lambda r: (problem_order.index(r["case"]), order[step_of(r["variant"])])):
        if r["failures"]:
            sys.exit(f"{directory}: {r['variant']} failed: {r['failures'][0]}")
        shape, *rest = r["case"].split()
        shares = {stage["name"]: f"{100 * stage['share']['median']:.1f}" for stage in r["stages"]}
        rows.append([*problem_cells(shape, "causal" if "mask=causal" in rest else "none"), step_of(r["variant"]),
                     f"{r['span']['median']:.0f}", *(shares.get(name, "") for name in components),
                     f"{100 * r['sum_over_span']['median']:.1f}", cost_cell(r["cost"])])
    head = ["B", "H", "S", "d", "mask", "step", "clocks", *(f"{name} %" for name in components), "sum %", "timestamps cost"]
    return f"{markdown(head, rows)}\n\nMedians over the warps of a launch, in {parts[0]['clock']}: {machine_line(parts[0])}."


TABLES = {"steps": steps_table, "summary": summary_table, "breakdown": breakdown_table}


def table(arguments):
    text = TABLES[arguments.table](arguments.directory)
    if not arguments.into:
        print(text)
        return
    old, new = replace(arguments.into, f"ladder-{arguments.table}", text)
    if arguments.verify:
        sys.exit(0 if old == new else 2)
    with open(arguments.into, "w") as file:
        file.write(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(required=True)
    runs = modes.add_parser("run", help="measure")
    runs.add_argument("directory", type=pathlib.Path)
    runs.add_argument("--fagen", default="fagen")
    runs.add_argument("--fagen-run", default="fagen-run")
    runs.add_argument("--device", default="gpu", help="as fagen-run time takes it")
    runs.add_argument("--shape", action="append", help="as fagen-run time takes them (default: mission, mission2)")
    runs.add_argument("--state", default="burst", choices=["burst", "steady"])
    runs.add_argument("--rounds", type=int, default=3, help="of the times")
    runs.add_argument("--cost", action="append", metavar="SHAPE",
                      help="say only of these shapes what the timestamps cost (default: of all); it needs the GPU longest")
    runs.add_argument("--cost-rounds", type=int, default=1, help="of what the timestamps cost")
    runs.add_argument("--baseline", action="append", default=[], help="time this as well: sdpa, cublas-gemm, ...")
    runs.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    runs.set_defaults(mode=run)
    tables = modes.add_parser("table", help="Markdown of what was measured")
    tables.add_argument("directory", type=pathlib.Path)
    tables.add_argument("table", choices=TABLES)
    tables.add_argument("--into", help="a Markdown file with markers")
    tables.add_argument("--verify", action="store_true")
    tables.set_defaults(mode=table)
    arguments = parser.parse_args()
    arguments.mode(arguments)


if __name__ == "__main__":
    main()
