#!/usr/bin/env python3
# fagen: docs/Tuning.md's tables from what a tuner measured.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tuning.py table DIRECTORY NAME [--into FILE [--verify]]

NAME:
  found       what was found for each problem, from tune.json (fagen-run tune --output)
  hopper      the same from tune_*.json, of several searches
  dispatch    what fagen --tuned makes of it next to the shipped set, from time.json (fagen-run time --output)
  lines       the thresholds that fagen --tuned writes, with their evidence, from FAGEN (default: fagen), l4_fp16.fa and
              tuned.json (fagen-run tune --export)
  strategies  how many evaluations strategies need, from replay-*.json (fagen-run tune-replay --output)

--into replaces what stands between `<!-- begin tuning-NAME -->` and `<!-- end tuning-NAME -->` in FILE; with --verify as
well it only tells, by exit code 2, whether that would change anything."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from samples import ratio_of_medians
from summary import microseconds_of
from tables import machine_line, markdown, replace


def read(file):
    return json.loads(file.read_text())


def values_of(name, study):
    """The settings of a candidate as a spec writes them, those that differ from the shipped ones."""
    settings = {record["candidate"]: record["settings"] for record in study["log"]}
    shipped = settings.get(study["shipped"], {})
    return ", ".join(f"{key} = {value}" for key, value in settings[name].items() if shipped.get(key) != value)


def found_table(directory, pattern="tune.json"):
    searches = [read(file) for file in sorted(directory.glob(pattern))]
    rows = []
    for study in (study for data in searches for study in data["tune"]["studies"]):
        contest = {entry["candidate"]: entry for entry in study["contest"]}
        log = {record["candidate"]: record for record in study["log"]}
        best = min(contest, key=lambda name: contest[name]["median_us"], default=study["elites"][0]["candidate"])
        shipped_us, best_us = ((contest.get(name) or log[name])["median_us"] for name in (study["shipped"], best))
        over = contest[best] if best != study["shipped"] else None
        rows.append([study["problem"], f"{shipped_us:.2f}", f"{best_us:.2f}",
                     "{ratio:.3f} ({low:.3f}–{high:.3f})".format(**over) if over else "the shipped one is the best",
                     values_of(best, study) if over else "", f"{len(study['log'])} of {study['candidates']}",
                     f"{sum(record['seconds'] for record in study['log']):.0f} s"])
    head = ["b,h,hkv,sq,sk,d", "shipped µs", "best µs", "best / shipped (95 %)", "what is other in the best", "evaluated",
            "of candidates' time"]
    budget = sum(data["tune"]["budget_s"] for data in searches)
    return (f"{markdown(head, rows)}\n\n{budget:.0f} s for all of them; contest of the elites, medians: "
            f"{machine_line(searches[0])}.")


def hopper_table(directory):
    return found_table(directory, "tune_*.json")


def dispatch_table(directory):
    """What dispatch picks in the shipped set, whose kernel is called `shipped` there, and in the tuned one."""
    data = read(directory / "time.json")
    picked = {}
    for result in data["time"]["results"]:
        side = "shipped" if result["variant"].startswith("shipped_") else "tuned"
        picked.setdefault((result["shape"], result["mask"]), {})[side] = result
    rows = []
    for (shape, mask), sides in picked.items():
        shipped, tuned = sides["shipped"], sides["tuned"]
        ratio = ratio_of_medians(microseconds_of(tuned), microseconds_of(shipped))
        rows.append([shape, mask, f"`{tuned['variant']}`", f"{shipped['median_us']:.2f}", f"{tuned['median_us']:.2f}",
                     "{:.3f} ({:.3f}–{:.3f})".format(*ratio)])
    head = ["b,h,hkv,sq,sk,d", "mask", "picked", "shipped µs", "tuned µs", "tuned / shipped (95 %)"]
    return f"{markdown(head, rows)}\n\nMedians, {data['time']['state']}: {machine_line(data)}."


def lines_table(directory):
    """What select and the tuned variants say in the manifest of the set that fagen makes."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([os.environ.get("FAGEN", "fagen"), directory / "l4_fp16.fa", f"--tuned={directory / 'tuned.json'}",
                        "-o", scratch], check=True, stdout=subprocess.DEVNULL)
        manifest = read(pathlib.Path(scratch) / "l4_fp16" / "manifest.json")
    lines = []
    for line in manifest["select"]:
        lines += [f"{line['text']} : {manifest['schedules'][line['schedule']]}", *(f"    {said}" for said in line.get("evidence", []))]
    for row in manifest["rows"]:
        if "evidence" in row and "_tuned" not in row["variant"]:
            lines += [row["variant"], *(f"    {said}" for said in row["evidence"])]
    machine = re.compile(r" on NVIDIA.*")
    return "```\n" + "\n".join(machine.sub("", line) for line in lines) + "\n```"


def strategies_table(directory):
    rows, goals = [], set()
    for file in sorted(directory.glob("replay-*.json")):
        data = read(file)["replay"]
        goals.add((data["goal"], data["seeds"]))
        for result in data["results"]:
            needed = sorted(result["evaluations"])
            rows.append([result["problem"], result["strategy"], str(result["points"]), f"{result['median']:.0f}",
                         f"{100 * result['median'] / result['points']:.1f} %", f"{needed[0]:.0f} to {needed[-1]:.0f}",
                         f"{100 * statistics.median(result['after_quarter']):.1f} %"])
    (goal, seeds), = goals
    head = ["landscape", "strategy", "points", f"evaluations to {100 * goal:.0f} % (median)", "of all", "range",
            "after a quarter (median)"]
    return f"{markdown(head, rows)}\n\n{seeds} seeds each."


TABLES = {"found": found_table, "hopper": hopper_table, "dispatch": dispatch_table, "lines": lines_table,
          "strategies": strategies_table}


def table(arguments):
    text = TABLES[arguments.table](arguments.directory)
    if not arguments.into:
        print(text)
        return
    old, new = replace(arguments.into, f"tuning-{arguments.table}", text)
    if arguments.verify:
        sys.exit(0 if old == new else 2)
    pathlib.Path(arguments.into).write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(required=True)
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
