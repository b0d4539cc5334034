# Mistakes of new users: each case of mistakes.txt changes mistakes.fa, and `fagen check` must say what it says there.
#
# mistakes.py DIR: writes to DIR. A case begins with "== name", then "-text" and "+text" in pairs, the first place that
# has the text; then "> " before each message in order, as LINE:COLUMN: kind: text. "> sound": no message, and accepted.
# With --print: the cases with what is said now.
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))


def cases():
    found = []
    for line in open(os.path.join(here, "mistakes.txt"), encoding="utf-8").read().split("\n"):
        if line.startswith("== "):
            found.append((line[3:], [], []))
        elif line[:1] in ("-", "+"):
            found[-1][1].append((line[0], line[1:].encode().decode("unicode_escape").encode("latin-1")))
        elif line.startswith("> "):
            found[-1][2].append(line[2:])
    return found


def said(edits, path):
    with open(os.path.join(here, "mistakes.fa"), "rb") as base:
        text = base.read()
    for (_, old), (_, new) in zip(edits[::2], edits[1::2]):
        if old not in text:
            sys.exit(f"{path}: no {old!r}")
        text = text.replace(old, new, 1)
    with open(path, "wb") as out:
        out.write(text)
    run = subprocess.run(["fagen", "check", path], capture_output=True, text=True)
    lines = re.findall(r"^\S+?\.fa:(\d+:\d+: (?:error|warning|note): .*)$", run.stderr, re.M)
    if (run.returncode != 0) != any(": error: " in line for line in lines):
        lines.append(f"exit code {run.returncode}")
    return lines or ["sound"]


def main():
    printed, failed, count = "--print" in sys.argv, 0, 0
    for name, edits, expected in cases():
        found = said(edits, os.path.join(sys.argv[1], "mistake.fa"))
        count += 1
        if printed:
            print(f"== {name}")
            for sign, text in edits:
                print(sign + text.decode("latin-1").encode("unicode_escape").decode())
            print("\n".join("> " + line for line in found) + "\n")
        elif found != expected:
            failed += 1
            print(f"{name}:", *(f"\n  expected {line}" for line in expected), *(f"\n  said     {line}" for line in found))
    if not printed:
        print(f"{count} mistakes, {failed} with other words")


main()
