#!/usr/bin/env python3
# fagen: docs/Gpus.md's table of contracts: what evidence says of each ready kernel set on each GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""contracts.py --kernels DIR [--into PAGE [--verify]] [--root TREE]: DIR is what `fagen` wrote of the ready sets (kernels/ of the Python
package), TREE has evidence/; without it, this one.

For each set and GPU, from evidence/ alone:
  code        checked: rows that `fagen-run check` passed on this GPU; timed: rows that measure/compare_sdpa.py compared with float64 and
              timed; with the commits; assembled: rows that ptxas compiled for it without a spill (evidence/compile/gpus); else text only
  bits repeat rows whose runs gave the same bits: three by each check, 1000 by `fagen-run soak`
  by batch    whether a batch's bits depend on how many batches there are: by the rows' grids, for a tile's arithmetic knows no other
              tile, but splits are as many as fill the GPU
  error       the largest |O - O in float64| of a check, and the share of its bound (docs/Checking.md)
  inputs      by the rows' schedules: with a running maximum any finite scores; accum = f16 rounds them to half precision
Of sets of programs (contract_programs.py) a line for each GPU that runs them, "not recorded" where evidence has no such result.
"""
import argparse
import functools
import json
import os
import re
import sys

import contract_programs
from evidence_files import EvidenceFiles

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPUS = (("H200", 90, "NVIDIA H200"), ("H100", 90, "NVIDIA H100"), ("A100", 80, "A100"), ("A10, RTX 30", 86, "A10"), ("L4, RTX 40", 89, "L4"))
RESOURCES = re.compile(r"(\S+)\s+(sm_\d+)\s+\d+ registers\s+(\d+) B spilled")
SPLITS = ("splits", "packed_splits")
BEGIN, END = "<!-- begin contracts -->\n", "<!-- end contracts -->\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@functools.lru_cache(maxsize=1)
def files(kept):
    """(content, GPU, commit) of each JSON object of evidence."""
    contents = filter(None, (kept.object_of(name.removesuffix(".xz")) for name in kept.names))
    return [(content, (content.get("machine") or {}).get("gpu") or "", (content.get("notes") or {}).get("commit") or "no commit")
            for content in contents]


def rows_of(content, kind):
    """Rows of `fagen-run check` or `soak` on a GPU, of one run or of several."""
    for result in [content, *content.get("checks", [])] if isinstance(content.get("checks", []), list) else [content]:
        found = result.get(kind)
        if isinstance(found, dict) and found.get("device") == "gpu" and isinstance(found.get("variants"), list):
            yield from found["variants"]


def timed_rows(content):
    """Our kernels of measure/compare_sdpa.py, which compares O with float64 before it times."""
    for problem in content.get("problems", []) if isinstance(content.get("problems", []), list) else []:
        if isinstance(problem, dict) and problem.get("inputs") == "normal":
            yield from (row for row in problem.get("results", []) if row.get("kind") == "fagen" and "max_error" in row)


class Runs(dict):
    """{(variant, target): (error, share of the bound, commit)}, the worst of each."""

    def note(self, row, name, error, share, commit):
        key = row[name], row["target"]
        self[key] = max(self.get(key, (0.0, 0.0, "")), (error, share, commit))


def executed(kept, name):
    """What ran on a GPU of this name: passed checks, timed kernels, and {(variant, target)} of soaks whose runs were all alike."""
    checked, timed, soaked = Runs(), Runs(), set()
    for content, gpu, commit in files(kept):
        if name not in gpu:
            continue
        for row in rows_of(content, "check"):
            if row["passed"] and row["cases"]:
                checked.note(row, "variant", row["max_error"], row["max_error"] / row["bound"], commit)
        for row in timed_rows(content):
            timed.note(row, "name", row["max_error"], 0.0, commit)
        soaked |= {(row["variant"], row["target"]) for row in rows_of(content, "soak") if row["passed"] and row["runs"] >= 1000 and not row["other_bits"]}
    return checked, timed, soaked


def assembled(kept, sm):
    """{(variant, target): bytes spilled} of what ptxas compiled for this GPU."""
    programs = (kept.object_of("compile/gpus/programs.json") or {"programs": {}})["programs"].get(str(sm), [])
    found = {(variant, target): spilled for variant, target, _, spilled in programs}
    path = os.path.join(kept.folder, "compile", "gpus", f"sm_{sm}.txt")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found |= {(variant, target): int(spilled) for variant, target, spilled in RESOURCES.findall(file.read())}
    return found


def runs_on(row, sm):
    return sm == row["first_sm"] if row["exact"] else row["first_sm"] <= sm and (row["last_sm"] == 0 or sm <= row["last_sm"])


def nearest(rows, sm):
    """Of each variant the row that dispatch prefers: of the nearest target at or below the GPU's own, else above."""
    found = {}
    for row in rows:
        if runs_on(row, sm):
            distance = sm - row["sm"] if row["sm"] <= sm else 1000 + row["sm"] - sm
            if row["variant"] not in found or distance < found[row["variant"]][0]:
                found[row["variant"]] = distance, row
    return [row for _, row in found.values()]


def by_batch(rows):
    splits = sum(row["launches"][0]["grid"] in SPLITS for row in rows)
    return "no" if not splits else "yes" if splits == len(rows) else f"of {splits} rows"


def inputs(rows):
    half = sum(row["accum"] == "f16" for row in rows)
    unscaled = sum(row["plan"]["schedule"]["rescale"] == "none" for row in rows)
    limits = [f"scores within half precision ({half} rows)"] * bool(half) + [f"bounded scores ({unscaled} rows)"] * bool(unscaled)
    return "; ".join(limits) or "any finite"


def worst(runs):
    share = max(share for _, share, _ in runs)
    return f"{max(error for error, _, _ in runs):.1e}" + (f", {share:.2f} of the bound" if share else ", normal inputs")


def line(name, rows, gpu, compiled, checked, timed, soaked):
    keys = [(row["variant"], row["target"]) for row in rows]
    passed, ran = [checked[key] for key in keys if key in checked], [timed[key] for key in keys if key in timed]
    commits = ", ".join(sorted({commit for _, _, commit in passed or ran}))
    cells = [name, gpu, str(len(rows))]
    if passed:
        repeats = sum(key in soaked for key in keys)
        cells += [f"checked: {len(passed)} ({commits})", f"3 of 3 runs: {len(passed)}" + (f"; 1000 of 1000: {repeats}" if repeats else ""), by_batch(rows),
                  worst(passed)]
    elif ran:
        cells += [f"timed and compared: {len(ran)} ({commits})", "not recorded", by_batch(rows), worst(ran)]
    else:
        cells += [f"assembled: {compiled}" if compiled else "text only", "not tried", by_batch(rows), "emulator only"]
    return "| " + " | ".join(cells + [inputs(rows)]) + " |"


def sets_of(directory, kind):
    with open(os.path.join(directory, "ready.txt"), encoding="utf-8") as file:
        return list(dict.fromkeys(text.split()[0] for text in file if not text.startswith("#") and text.strip().endswith(kind)))


def table(directory, kept):
    lines = ["| set | GPU | rows | code | bits repeat | bits depend on the batch | largest error | inputs |", "|---|---|---|---|---|---|---|---|"]
    attention, programs = sets_of(directory, ".fa"), sets_of(directory, ".fair")
    manifest = {name: read(os.path.join(directory, name, "manifest.json"))["rows"] for name in attention + programs}
    of_programs = []
    for gpu, sm, machine in GPUS:
        runs, compiles = executed(kept, machine), assembled(kept, sm)
        for name, all_rows in manifest.items():
            rows = nearest(all_rows, sm)
            spills = [compiles.get((row["variant"], row["target"])) for row in rows]
            if rows and name in programs:
                cells = contract_programs.cells(rows, contract_programs.seen_of(kept, name, machine), spills)
                of_programs.append("| " + " | ".join([name, gpu, str(len(rows)), *cells]) + " |")
            elif rows and (rows[0]["sm"] == sm or any((row["variant"], row["target"]) in runs[0] for row in rows)):
                lines.append(line(name, rows, gpu, spills.count(0), *runs))
    return "\n".join(lines + of_programs) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--into")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--root", default=ROOT)
    options = parser.parse_args()
    made = table(options.kernels, EvidenceFiles(options.root))
    if not options.into:
        print(made, end="")
        return 0
    with open(options.into, encoding="utf-8") as file:
        text = file.read()
    if BEGIN not in text or END not in text:
        print(f"{options.into} has no place for the table: {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 1
    new = text[:text.index(BEGIN) + len(BEGIN)] + made + text[text.index(END):]
    if options.verify:
        if new != text:
            print(f"{options.into}: the table is not what evidence gives; measure/contracts.py --kernels DIR --into writes it", file=sys.stderr)
        return 2 * (new != text)
    with open(options.into, "w", encoding="utf-8") as file:
        file.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
