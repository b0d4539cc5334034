#!/usr/bin/env python3
# fagen: how well the compiler's time model ranks what a tuner timed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ranking.py SEARCH... [--keys TEXT] [--costs FILE] [--gpu sm_90] [-o FILE] [--note commit=HASH]

SEARCH: of `fagen-run tune --output` or `--landscape`. FAGEN (default: fagen) predicts each schedule that has a time. For
each problem: Spearman's and Kendall's correlation of the predictions with the times, at which place the fastest schedule
is ranked, and how much slower than it the first of the ranking and the best of its first eight are. --costs takes what
another model says in place of the compiler's: {problem: {candidate: cost}}. -o writes all that as JSON, with --before
next to what another run wrote, of which tables.py makes a table.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from model_correlation import spearman
from notes import machine, notes_of

FIRST = 8
FAMILIES = {"tma": "mma = wgmma; roles = specialized;"}


def kendall(a, b):
    """Tau-b."""
    score = ties_a = ties_b = pairs = 0
    for i in range(len(a)):
        for j in range(i):
            x, y = (a[i] > a[j]) - (a[i] < a[j]), (b[i] > b[j]) - (b[i] < b[j])
            score += x * y
            ties_a += x == 0
            ties_b += y == 0
            pairs += 1
    return score / ((pairs - ties_a) * (pairs - ties_b)) ** 0.5


def studies_of(document):
    """(problem, {candidate: (settings, microseconds)}) of each study."""
    if "tune" in document:
        for study in document["tune"]["studies"]:
            yield study["problem"], {record["candidate"]: (record["settings"], record["median_us"])
                                     for record in study["log"] if "median_us" in record}
        return
    for study in document["studies"]:
        points = {}
        for point in study["points"]:
            settings = {axis["name"]: axis["values"][at] for axis, at in zip(study["axes"], point["at"])}
            settings["tile"] = f"{settings.pop('rows')} x {settings.pop('keys')}"
            if point.get("us"):
                points["_".join(settings.values()).replace(" ", "")] = (settings, point["us"])
        yield study["problem"], points


def predictions(problem, points, keys, gpu):
    """What the compiler tells a tuner of each, before barriers are placed: microseconds of those that it models."""
    shape, mask = re.match(r"([\d,]+)(?: mask=(\w+))?$", problem).groups()
    text = [f"target {gpu}a;" if any(s["copy"] == "tma" for s, _ in points.values()) else f"target {gpu};"]
    for number, (settings, _) in enumerate(points.values()):
        schedule = " ".join(f"{key} = {value};" for key, value in settings.items())
        text.append(f"kernel c{number} {{ problem {{ dtype = f16; head_dim = {shape.split(',')[-1]}; mask = {mask or 'none'}; }}"
                    f" schedule {{ {schedule} {FAMILIES.get(settings['copy'], 'mma = mma_sync;')} {keys} }} }}")
    with tempfile.TemporaryDirectory() as scratch:
        spec = pathlib.Path(scratch) / "points.fa"
        spec.write_text("\n".join(text))
        printed = subprocess.run([os.environ.get("FAGEN", "fagen"), spec, "--emit=plan", "--json",
                                  "--stop-after=allocate-shared", f"--shape={shape}", f"--gpu={gpu}"], check=True, stdout=subprocess.PIPE).stdout
    names = list(points)
    return {names[int(row["variant"][1:].split("_")[0])]: row["us"] for row in json.loads(printed)
            if "us" in row and "_unaligned_" not in row["variant"]}


def row_of(problem, points, costs):
    names = [name for name in points if name in costs]
    measured, predicted = [points[name][1] for name in names], [costs[name] for name in names]
    ranked = sorted(names, key=costs.get)
    fastest = min(names, key=lambda name: points[name][1])
    loss = [points[name][1] / points[fastest][1] - 1 for name in ranked]
    products = "wgmma" if any(settings.get("copy") == "tma" for settings, _ in points.values()) else "mma.sync"
    return {"problem": problem, "products": products, "timed": len(points), "ranked": len(names), "spearman": round(spearman(predicted, measured), 3),
            "kendall": round(kendall(predicted, measured), 3), "rank_of_fastest": ranked.index(fastest) + 1,
            "first_loses": round(loss[0], 3), f"first_{FIRST}_lose": round(min(loss[:FIRST]), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("search", nargs="+", type=pathlib.Path)
    parser.add_argument("--keys", default="", help="keys of every schedule that no axis names: \"rescale = lazy;\"")
    parser.add_argument("--costs", type=pathlib.Path)
    parser.add_argument("--gpu", default="sm_90")
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    given = json.loads(arguments.costs.read_text()) if arguments.costs else None
    rows = []
    for file in arguments.search:
        for problem, points in studies_of(json.loads(file.read_text())):
            costs = given[problem] if given else predictions(problem, points, arguments.keys, arguments.gpu)
            rows.append(row_of(problem, points, costs))
            print("{problem:<36} {ranked:>4} of {timed:>4} {spearman:>6.2f} {kendall:>6.2f} {rank_of_fastest:>4} "
                  "{first_loses:>7.1%} {first_8_lose:>7.1%}".format(**rows[-1]))
    if arguments.output:
        document = {"tool": "ranking.py", "machine": machine(), "notes": notes_of(arguments.note), "rows": rows}
        if arguments.before:
            document["before"] = json.loads(arguments.before.read_text())["rows"]
        arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
