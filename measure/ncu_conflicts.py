#!/usr/bin/env python3
# fagen: compares the wavefronts that ncu counts on a GPU with those that the emulator counts.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bank conflicts: ncu on a GPU against the emulator, kernel by kernel and kind by kind.

Needs a GPU, ncu (Nsight Compute), the release build and, for the emulator, a C++ compiler; nvcc for --probe. One call:

  measure/ncu_conflicts.py generated/l4_fp16 generated/l4_fp16_scalar --probe --output evidence/conflicts

For each variant the problem is the one that `fagen-run conflicts` takes by itself, unless --case names another. One ncu
process profiles all kernels with the section SourceCounters, whose counts for each machine instruction say which
wavefronts its addresses cost (memory_l1_wavefronts_shared) and which would be needed without conflicts (.._ideal). The
hardware's own counters (l1tex__data_...) go into the results too, unjudged: they also count what was lost to other
clients. cp.async (LDGSTS) is shown, and not judged. Written to --output: emulator.json, ncu's reports of the kernels and of
the probe and their pages as CSV, result.json. Exit code 2: a count differs, or a kernel could not be profiled. --again
judges the CSV of an earlier run."""
import argparse
import collections
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from notes import machine, notes_of

ACTUAL = ("L1 Wavefronts Shared", "memory_l1_wavefronts_shared")
IDEAL = ("L1 Wavefronts Shared Ideal", "memory_l1_wavefronts_shared_ideal")
EXECUTED = ("Instructions Executed", "inst_executed", "smsp__inst_executed")
COUNTERS = [
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__inst_executed_op_shared_ld.sum",
    "smsp__inst_executed_op_shared_st.sum",
    "smsp__inst_executed_op_ldsm.sum",
    "smsp__inst_executed_op_ldgsts.sum",
]
OPCODE = re.compile(r"^\s*(?:@!?U?P[T\d]+\s+)?([A-Z][A-Z0-9_.]*)")
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
JUDGED = ("ldmatrix", "load", "store")


class NcuError(Exception):
    """What ncu did or printed that cannot be used."""


def access_of(sass):
    """Kind and bytes of a lane of an instruction on shared memory; None for others. 'other' is a kind that the emulator
    does not have."""
    match = OPCODE.match(sass)
    if not match:
        return None
    name, *modifiers = match.group(1).split(".")
    width = next((WIDTHS[part] for part in modifiers if part in WIDTHS), 4)
    if name == "LDSM":
        return "ldmatrix", 16
    if name == "LDGSTS":
        return "cp_async", width
    if name in ("LDS", "STS"):
        return "load" if name == "LDS" else "store", width
    return ("other", width) if name in ("ATOMS", "STSM", "LDSMT") else None


def column(header, names):
    """Index of the first column of one of these names."""
    for name in names:
        if name in header:
            return header.index(name)
    raise NcuError(f"ncu's source page has no column '{names[0]}': was the section SourceCounters collected?")


def number(text):
    text = text.replace(",", "").strip()
    return int(float(text)) if text not in ("", "-", "n/a") else 0


def parse_source_page(path):
    """Of `ncu --page source --print-source sass --csv`: kernel -> (kind, bytes) -> [requests, wavefronts, ideal].

    A kernel has a list for each of its launches, of a report of several kernels even two. Addresses do not depend on the
    launch: all its lists must say the same, and one counts."""
    lists, header = [], None
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.reader(file):
            if len(row) >= 2 and row[0] in ("Kernel Name", "Function Name"):
                lists.append((row[1].split("(")[0].strip().split()[-1], {}))
                header = None
            elif "Address" in row and "Source" in row:
                header = row
                source, executed = row.index("Source"), column(row, EXECUTED)
                actual, ideal = column(row, ACTUAL), column(row, IDEAL)
            elif header and lists and len(row) == len(header):
                access = access_of(row[source])
                if access:
                    counts = lists[-1][1].setdefault(access, [0, 0, 0])
                    for i, place in enumerate((executed, actual, ideal)):
                        counts[i] += number(row[place])
    if not lists:
        raise NcuError(f"{path} names no kernel: is it what ncu --page source --csv prints?")
    kernels = {}
    for name, counts in lists:
        if kernels.setdefault(name, counts) != counts:
            raise NcuError(f"{path} has different counts for launches of {name}")
    return kernels


def parse_raw_page(path):
    """Of `ncu --page raw --csv`: kernel -> counter -> value. The second line holds units."""
    kernels = {}
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) > 1]
    start = next((i for i, row in enumerate(rows) if "Kernel Name" in row), None)
    if start is None:
        raise NcuError(f"{path} has no column 'Kernel Name': is it what ncu --page raw --csv prints?")
    header = rows[start]
    for row in rows[start + 1:]:
        if len(row) == len(header) and row[header.index("ID")]:
            name = row[header.index("Kernel Name")].split("(")[0].strip().split()[-1]
            kernels[name] = {c: number(row[header.index(c)]) for c in COUNTERS if c in header}
    return kernels


def emulator_counts(kernel):
    """(kind, bytes) -> [requests, wavefronts, ideal]; wmma as ptxas makes it."""
    names = {"wmma_load": "ldmatrix", "wmma_store": "store"}
    counts = {}
    for site in kernel["sites"]:
        entry = counts.setdefault((names.get(site["kind"], site["kind"]), site["bytes"]), [0, 0, 0])
        for i, key in enumerate(("requests", "wavefronts", "ideal")):
            entry[i] += site[key]
    return counts


def compare(kernel, ours, ncus):
    """A row for each kind and width that either side has."""
    rows = []
    for access in sorted(set(ours) | set(ncus)):
        mine, theirs = ours.get(access, [0, 0, 0]), ncus.get(access, [0, 0, 0])
        excess = mine[1] - mine[2], theirs[1] - theirs[2]
        judged = access[0] != "cp_async"
        rows.append({"kernel": kernel, "kind": access[0], "bytes": access[1],
                     "emulator": dict(requests=mine[0], wavefronts=mine[1], ideal=mine[2], excess=excess[0]),
                     "ncu": dict(requests=theirs[0], wavefronts=theirs[1], ideal=theirs[2], excess=excess[1]),
                     "judged": judged, "agrees": excess[0] == excess[1], "same": mine == theirs})
    return rows


def failed(rows):
    """Whether a judged count of wavefronts beyond ideal differs."""
    return any(row["judged"] and not row["agrees"] for row in rows)


def print_table(rows):
    width = max([len(row["kernel"]) for row in rows] + [6])
    print(f"{'kernel':{width}s}  {'access':12s}  {'requests':>17s}  {'wavefronts':>17s}  {'ideal':>17s}  "
          f"{'beyond ideal':>17s}")
    print(f"{'':{width}s}  {'':12s}  " + "  ".join([f"{'emulator':>8s} {'ncu':>8s}"] * 4))
    for row in rows:
        cells = "  ".join(f"{row['emulator'][key]:8d} {row['ncu'][key]:8d}"
                          for key in ("requests", "wavefronts", "ideal", "excess"))
        verdict = ("" if row["same"] else "other counts differ") if row["agrees"] else "DIFFERS"
        access = f"{row['kind']} {row['bytes']}B"
        print(f"{row['kernel']:{width}s}  {access:12s}  {cells}  {verdict if row['judged'] else 'not judged'}".rstrip())


def run(command, log):
    """Runs a command, its output to the log; the exit status."""
    with open(log, "a", encoding="utf-8") as file:
        file.write("+ " + " ".join(command) + "\n")
        file.flush()
        return subprocess.call(command, stdout=file, stderr=subprocess.STDOUT)


def page(ncu, report, name, extra, path):
    with open(path, "w", encoding="utf-8") as file:
        command = [ncu, "--import", report, "--page", name, "--csv", *extra]
        if subprocess.call(command, stdout=file) != 0:
            raise NcuError(f"failed: {' '.join(command)}")


def profile(arguments, stem, target, filters):
    """ncu on a program; its report as CSV pages next to it."""
    log = stem + ".log"
    if os.path.exists(log):
        os.remove(log)
    status = run([arguments.ncu, "--force-overwrite", "--export", stem, "--section", "SourceCounters", "--metrics",
                  ",".join(COUNTERS), *filters, *target], log)
    report = stem + ".ncu-rep"
    if not os.path.exists(report):
        with open(log, encoding="utf-8") as file:
            raise NcuError(f"ncu wrote no report (exit {status}); its last lines:\n" + "".join(file.readlines()[-5:]))
    page(arguments.ncu, report, "source", ["--print-source", "sass"], stem + ".source.csv")
    page(arguments.ncu, report, "raw", [], stem + ".raw.csv")


def launches(arguments, kernels):
    """A shell's lines: a check for each problem, with the variants that have it."""
    variants = collections.defaultdict(list)
    for kernel in kernels:
        variants[kernel["case"]].append(kernel["variant"])
    check = [arguments.fagen_run, "check", *arguments.sets, "--device", "gpu"]
    return [shlex.join(check + ["--case", case, *(word for name in names for word in ("--variant", name))])
            for case, names in variants.items()]


def profile_kernels(arguments, kernels, stem):
    """All of them by one ncu process. Before, all are built side by side: what ncu runs finds their code made."""
    lines = launches(arguments, kernels)
    builds = [subprocess.Popen(["sh", "-c", line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for line in lines]
    for build in builds:
        build.wait()  # a check that fails fails again below
    ours = "|".join(kernel["symbol"] for kernel in kernels)  # and no kernel that computes what is compared with
    profile(arguments, stem, ["sh", "-c", "\n".join(lines)], ["--kernel-name", f"regex:^({ours})$"])


def check_kernels(arguments):
    """The rows of all kernels, and what went wrong."""
    emulator = os.path.join(arguments.output, "emulator.json")
    if arguments.emulator:
        shutil.copyfile(arguments.emulator, emulator)
    elif not arguments.again:
        command = [arguments.fagen_run, "conflicts", *arguments.sets, "--output", emulator]
        for option, value in (("--kernel", arguments.kernel), ("--case", arguments.case)):
            command += [option, value] if value else []
        if subprocess.call(command, stdout=subprocess.DEVNULL) != 0:
            sys.exit(f"failed: {' '.join(command)}")
    with open(emulator, encoding="utf-8") as file:
        kernels = json.load(file)["conflicts"]
    stem = os.path.join(arguments.output, "kernels")
    try:
        if not arguments.again:
            profile_kernels(arguments, kernels, stem)
        found, counted = parse_source_page(stem + ".source.csv"), parse_raw_page(stem + ".raw.csv")
    except (NcuError, OSError) as error:
        return [], [f"the kernels: {error}"], {}
    rows, problems, counters = [], [], {}
    for kernel in kernels:
        symbol, variant = kernel["symbol"], kernel["variant"]
        if symbol not in found:
            problems.append(f"{variant}: ncu profiled {', '.join(found)}, not {symbol}")
        elif not any(access[0] in JUDGED for access in found[symbol]):
            problems.append(f"{variant}: ncu saw no access to shared memory in {symbol}")
        else:
            rows += compare(variant, emulator_counts(kernel), found[symbol])
            counters[variant] = counted.get(symbol, {})
    return rows, problems, counters


def check_probe(arguments):
    """The rows of bank_probe.cu against bank_probe.txt."""
    here = os.path.dirname(os.path.abspath(__file__))
    stem = os.path.join(arguments.output, "bank_probe")
    if not arguments.again:
        program = stem + ".exe"
        command = [arguments.nvcc, "-std=c++17", "-O3", "--expt-relaxed-constexpr", f"-arch={arguments.arch}", "-I",
                   os.path.join(here, "..", "runtime", "include"), "-o", program, os.path.join(here, "bank_probe.cu")]
        if run(command, stem + ".nvcc.log") != 0:
            raise NcuError(f"nvcc failed: see {stem}.nvcc.log")
        profile(arguments, stem, [program], [])
    found = parse_source_page(stem + ".source.csv")
    rows = []
    with open(os.path.join(here, "bank_probe.txt"), encoding="utf-8") as file:
        for name, wavefronts, ideal in (line.split() for line in file if line.strip() and not line.startswith("#")):
            kind, width = name.split("_")[:2]
            access = kind, int(width[:-1])
            if name not in found:
                raise NcuError(f"ncu did not profile {name}")
            # A probe of loads writes its memory first; only the access that it is named for is judged.
            rows += compare(name, {access: [1, int(wavefronts), int(ideal)]},
                            {key: counts for key, counts in found[name].items() if key[0] == kind})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="DIR", help="generated kernel sets")
    parser.add_argument("--output", required=True, help="directory of the results")
    parser.add_argument("--kernel", help="only variants of this name; * stands for any characters")
    parser.add_argument("--case", help="instead of two tiles of rows and three of keys")
    parser.add_argument("--probe", action="store_true", help="also bank_probe.cu, one access a kernel")
    parser.add_argument("--again", action="store_true", help="judge the files of an earlier run in --output")
    parser.add_argument("--emulator", metavar="FILE", help="take the emulator's counts of the same sets from here")
    parser.add_argument("--fagen-run", default="build/release/bin/fagen-run")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="native", help="that nvcc compiles the probe for (default: native)")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in result.json")
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    rows, problems, counters = check_kernels(arguments)
    probe = []
    if arguments.probe:
        try:
            probe = check_probe(arguments)
        except (NcuError, OSError) as error:
            problems.append(f"bank_probe: {error}")
    for part in (rows, probe):
        if part:
            print_table(part)
            print()
    result = {"tool": "ncu_conflicts", "machine": machine(), "notes": notes_of(arguments.note),
              "agrees": not (failed(rows + probe) or problems), "rows": rows, "probe": probe, "counters": counters,
              "problems": problems}
    with open(os.path.join(arguments.output, "result.json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    for problem in problems:
        print(problem, file=sys.stderr)
    judged = [row for row in rows + probe if row["judged"]]
    print(f"{'AGREE' if result['agrees'] else 'DISAGREE'}: {len(judged)} counts of wavefronts beyond ideal, "
          f"{sum(not row['agrees'] for row in judged)} differ, {len(problems)} problems")
    return 0 if result["agrees"] else 2


if __name__ == "__main__":
    sys.exit(main())
