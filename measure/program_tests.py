# fagen: runs on a GPU what the lit tests run of programs on the emulator, and again under the sanitizers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""program_tests.py --output FILE [--only WORD] [--sanitize TOOL,...] [--list]

Takes of test/Run/program*.test each call of `fagen-run program` on a file of test/Inputs/programs that is to pass with --device cpu, and
makes it --device gpu. --sanitize runs each under compute-sanitizer's tools in addition. The JSON has each command, what it says and how
long it took. Ends with 2 when one fails."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import time

from notes import machine, notes_of

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
REPORT = {"memcheck": "ERROR SUMMARY: 0 errors", "synccheck": "ERROR SUMMARY: 0 errors", "initcheck": "ERROR SUMMARY: 0 errors",
          "racecheck": "RACECHECK SUMMARY: 0 hazards"}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("FAGEN_BIN", os.path.join(ROOT, "build", "release", "bin")))
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only tests and programs with this in their names")
    parser.add_argument("--sanitize", default="", metavar="TOOL,...", help=", ".join(REPORT))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=120, help="what runs longer has failed (default 120)")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--list", action="store_true", help="only print the commands")
    return parser.parse_args()


def calls_of(path):
    """The words after `fagen-run program` of each RUN line that is to pass."""
    defined, text = {"%source": ROOT}, open(path, encoding="utf-8").read().replace("\\\n", " ")
    for kind, rest in re.findall(r"^(DEFINE|REDEFINE|RUN): (.*)$", text, re.M):
        if kind != "RUN":
            name, value = (rest + " ").split(" =", 1)
            defined[name.strip()] = value.strip()
            continue
        for _ in range(8):
            for name, value in defined.items():
                rest = rest.replace(name, value)
        words = rest.replace("%%", "%").split(" | ")[0].replace(" 2>&1", "")
        if words.startswith("fagen-run program ") and "--device cpu" in words and "%t" not in words:
            call = shlex.split(words.replace("--device cpu", "--device gpu"))[2:]
            if call[0].endswith(".fair") and os.path.exists(call[0]) and "-o" not in call and ">" not in call:
                yield call


def run(options, call, tool):
    command = [os.path.join(options.bin, "fagen-run"), "program", *call]
    if tool:
        command = ["compute-sanitizer", "--tool", tool, *command]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds, errors="replace")
        said, right = done.stdout + done.stderr, done.returncode == 0 and (not tool or REPORT[tool] in done.stdout)
    except subprocess.TimeoutExpired:
        said, right = "not done in time", False
    return {"program": os.path.basename(call[0]), "tool": tool or "none", "right": right, "seconds": round(time.monotonic() - begun, 1),
            "call": [word.replace(ROOT + "/", "") for word in call], "said": said.strip().splitlines()[-8:]}


def main():
    options = parsed()
    calls = {tuple(call): None for path in sorted(glob.glob(os.path.join(ROOT, "test", "Run", "program*.test"))) for call in calls_of(path)
             if re.search(options.only, path) or re.search(options.only, call[0])}
    if options.list:
        print(*map(shlex.join, calls), sep="\n")
        return
    tools = [""] + [tool for tool in options.sanitize.split(",") if tool]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda job: run(options, *job), [(call, tool) for tool in tools for call in calls]))
    failed = [one for one in found if not one["right"]]
    for one in failed:
        print(one["program"], one["tool"], *one["said"], sep="\n  ")
    print(f"{len(found) - len(failed)} of {len(found)} right")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"tool": "program_tests", "machine": machine(), "notes": notes_of(options.note), "results": found}, file, indent=1)
            file.write("\n")
    sys.exit(2 if failed or not found else 0)


if __name__ == "__main__":
    main()
