#!/usr/bin/env python3
# fagen: changes barriers and waits in the text of kernels, runs them on a GPU under compute-sanitizer's racecheck, and
# compares what it says with the emulator's race detector and with the compiler's analysis.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""usage: racecheck_mutants.py SET... --report MUTATION.json... --output RESULT.json [--variant NAME...]

SET is a directory of a generated kernel set (generated/l4_fp16_scalar); MUTATION.json what `fagen-run mutate` said of
its mutants (scripts/mutation writes it), made from the same kernels. Each mutant becomes a copy of the set in which
one line is gone, weaker or elsewhere; `fagen-run check` compiles it with NVRTC and runs it on the problems of the
mutation test, under `compute-sanitizer --tool racecheck`.

With --device cpu the changed text runs in the emulator instead, without a sanitizer: the same script then shows that a
change of the text and the same change at run time are noticed alike.

Variants whose copies are not asynchronous are the default: racecheck sees plain accesses to shared memory.
Exit code 2 when two of the three disagree on a mutant, or on the kernel as it is.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from notes import machine, notes_of

SUMMARY = re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)")


class Mistake(Exception):
    """Something that the user can mend."""


def end_of_statement(lines, first):
    """The last line of the statement that begins on line `first`, counted from 0."""
    depth = 0
    for number in range(first, len(lines)):
        code = lines[number].split("//")[0]
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        if depth == 0 and code.rstrip().endswith(";"):
            return number
    raise Mistake(f"no statement ends after line {first + 1}")


def change(text, mutant):
    """The kernel's text with one barrier or wait changed."""
    lines = text.splitlines()
    at = mutant["line"] - 1
    call = lines[at].strip() if at < len(lines) else "not there"
    if not re.fullmatch(r"ptx::(cta_barrier|warp_barrier)\(\);|ptx::cp_async_wait<\d+>\(\);", call):
        raise Mistake(f"line {at + 1} is '{call}', no barrier or wait: text and report are not of the same kernels")
    if mutant["action"] == "weaken":
        wait = f"ptx::cp_async_wait<{mutant.get('pending')}>();"
        lines[at] = lines[at].replace(call, wait if "wait<" in call else "ptx::warp_barrier();")
        return "\n".join(lines) + "\n"
    moved, lines[at] = lines[at], ""
    if mutant["action"] == "move":
        over = mutant["target"] - 1
        if mutant["later"]:
            to = end_of_statement(lines, over) + 1
        else: # a copy under a condition is passed together with that
            to = over - bool(re.fullmatch(r"\s*if \(.*\)", lines[over - 1]))
        lines.insert(to, moved)
    return "\n".join(lines) + "\n"


class Runner:
    def __init__(self, arguments):
        self.arguments = arguments
        self.options = []
        if arguments.device == "gpu":
            known = subprocess.run([arguments.sanitizer, "--help"], capture_output=True, text=True, check=False).stdout
            wanted = {"--racecheck-detect-level": "info", "--print-level": "info", "--print-limit": "20"}
            for option, value in wanted.items():
                if option in known:
                    self.options += [option, value]

    def command(self, directory, variant, cases):
        check = [str(self.arguments.bin / "fagen-run"), "check", str(directory), "--device", self.arguments.device,
                 "--variant", variant]
        for case in cases:
            check += ["--case", case]
        if self.arguments.device == "cpu":
            return check
        return [self.arguments.sanitizer, "--tool", "racecheck", *self.options, *check]

    def run(self, source_set, source, text, variant, cases):
        """Whether a race was reported, and what was said."""
        with tempfile.TemporaryDirectory(prefix="fagen-racecheck-") as work:
            directory = Path(work) / source_set.name
            shutil.copytree(source_set, directory)
            (directory / source).write_text(text, encoding="utf-8")
            environment = dict(os.environ)
            environment["FAGEN_CACHE_DIR"] = str(Path(work) / "cache")
            try:
                done = subprocess.run(self.command(directory, variant, cases), capture_output=True, text=True,
                                      env=environment, timeout=self.arguments.timeout, check=False)
            except subprocess.TimeoutExpired:
                return {"race": None, "error": f"stopped after {self.arguments.timeout} s"}
        output = done.stdout + done.stderr
        result = {"right_results": done.returncode == 0}
        if self.arguments.device == "cpu":
            result["race"] = "emulator: " in output
            if done.returncode not in (0, 2):
                result.update(race=None, error=output[-1000:])
            return result
        found = SUMMARY.search(output)
        if not found:
            return {"race": None, "error": output[-1000:]}
        result["hazards"], result["errors"], result["warnings"] = map(int, found.groups())
        result["race"] = result["hazards"] > 0
        first = re.search(r"=========\s+(?:Error|Warning|Info|Potential)[^\n]*(?:\n=========\s+[^\n]*){0,3}", output)
        if result["race"] and first:
            result["first"] = re.sub(r"\n?=========\s+", " ", first.group()).strip()
        result["summary"] = found.group()
        return result


def kernels_of(arguments):
    """(set, kernel of the report) for each variant that is asked for."""
    sets = {path.name: path for path in arguments.sets}
    rows = {}
    for path in arguments.sets:
        for row in json.loads((path / "manifest.json").read_text(encoding="utf-8"))["rows"]:
            rows[row["variant"], row["target"]] = (path, row)
    chosen = []
    for report in arguments.report:
        for kernel in json.loads(report.read_text(encoding="utf-8"))["results"]:
            path, row = rows.get((kernel["variant"], kernel["target"]), (None, None))
            if not row:
                continue
            is_plain = row["plan"]["schedule"]["copy"] == "ld_st"
            if kernel["variant"] in arguments.variant or (not arguments.variant and is_plain):
                chosen.append((path, kernel))
    missing = set(arguments.variant) - {kernel["variant"] for _, kernel in chosen}
    if missing:
        raise Mistake(f"no set with a report has {', '.join(sorted(missing))}")
    if not chosen:
        raise Mistake(f"the reports have no kernel of {', '.join(sets)} with plain copies")
    return chosen


def judge(mutant, result):
    """'agree', or who disagrees."""
    if result["race"] is None:
        return "not run"
    says = {"analysis": mutant["verdict"] == "needed", "emulator": "finding" in mutant, "racecheck": result["race"]}
    if len(set(says.values())) == 1:
        return "agree"
    return "; ".join(f"{who}: {'race' if says[who] else 'none'}" for who in says)


def run_all(arguments):
    runner = Runner(arguments)
    jobs = []
    for path, kernel in kernels_of(arguments):
        text = (path / kernel["source"]).read_text(encoding="utf-8")
        cases = kernel["cases"][: arguments.cases] if arguments.cases else kernel["cases"]
        same = {"action": "none", "change": "unchanged", "verdict": "redundant"}
        for mutant in [same, *kernel["results"]]:
            changed = text if mutant is same else change(text, mutant)
            jobs.append((path, kernel, mutant, changed, cases))
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(runner.run, path, kernel["source"], changed, kernel["variant"], cases)
                   for path, kernel, _, changed, cases in jobs]
        for number, (future, (_, kernel, mutant, _, _)) in enumerate(zip(futures, jobs), 1):
            result = future.result()
            outcome = judge(mutant, result)
            results.append({"variant": kernel["variant"], "policy": kernel["policy"], "change": mutant["change"],
                            "analysis": mutant["verdict"], "emulator": mutant.get("finding", ""),
                            "racecheck": result, "outcome": outcome})
            print(f"[{number}/{len(jobs)}] {kernel['variant']}: {mutant['change']}: {outcome}", file=sys.stderr)
    return results


def print_table(results):
    print(f"{'kernel':<44}{'mutants':>8}{'analysis':>10}{'emulator':>10}{'text':>11}{'agree':>7}")
    for variant in dict.fromkeys(result["variant"] for result in results):
        own = [result for result in results if result["variant"] == variant and result["change"] != "unchanged"]
        print(f"{variant:<44}{len(own):>8}{sum(r['analysis'] == 'needed' for r in own):>10}"
              f"{sum(bool(r['emulator']) for r in own):>10}{sum(bool(r['racecheck']['race']) for r in own):>11}"
              f"{sum(r['outcome'] == 'agree' for r in own):>7}")
    for result in results:
        if result["outcome"] != "agree":
            print(f"{result['variant']}: {result['change']}: {result['outcome']} {result['racecheck'].get('error', '')}")


def version_of(command):
    try:
        return subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        raise Mistake(f"cannot run {command}: {error.strerror}; --sanitizer says where it is") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", metavar="SET", type=Path, nargs="+")
    parser.add_argument("--report", type=Path, nargs="+", required=True, help="what fagen-run mutate wrote")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--variant", nargs="*", default=[], help="instead of all with plain copies")
    parser.add_argument("--bin", type=Path, default=Path(__file__).resolve().parent.parent / "build/release/bin")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--cases", type=int, default=0, help="only so many problems a mutant (default: all)")
    parser.add_argument("--jobs", type=int, default=4, help="mutants at once")
    parser.add_argument("--timeout", type=int, default=300, help="seconds a mutant")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the result")
    arguments = parser.parse_args()
    try:
        sanitizer = version_of(arguments.sanitizer) if arguments.device == "gpu" else "none: the emulator"
        results = run_all(arguments)
    except (Mistake, OSError, json.JSONDecodeError) as error:
        print(f"racecheck_mutants.py: error: {error}", file=sys.stderr)
        return 1
    disagree = sum(result["outcome"] != "agree" for result in results)
    document = {"tool": "measure/racecheck_mutants.py", "sanitizer": sanitizer, "device": arguments.device,
                "machine": machine(), "notes": notes_of(arguments.note), "runs": len(results),
                "disagree": disagree, "results": results}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print_table(results)
    print(f"{'FAIL' if disagree else 'PASS'}: {len(results)} runs, {disagree} without agreement", file=sys.stderr)
    return 2 if disagree else 0


if __name__ == "__main__":
    sys.exit(main())
