"""tutorial.py PAGE DIRECTORY: does in DIRECTORY what PAGE says, and compares what commands print with what it shows.

`<!-- file: NAME -->` stands before a file's text, `<!-- run -->` before commands and their output; `...` there stands for any
lines. Commands of other blocks are not run. Exits with 1 at the first difference."""
import os
import re
import subprocess
import sys

page, directory = sys.argv[1:]
BLOCK = re.compile(r"<!-- (file: (?P<file>\S+)|run) -->\n```\w*\n(?P<text>.*?)^```$", re.M | re.S)


def matches(shown, printed):
    """Whether the lines are those shown, with any others at '...'."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and shown[0].rstrip() == printed[0].rstrip() and matches(shown[1:], printed[1:])


def outputs(text):
    """Each command of a block with the lines shown below it."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


with open(page, encoding="utf-8") as file:
    blocks = list(BLOCK.finditer(file.read()))
commands = 0
for block in blocks:
    if block["file"]:
        with open(os.path.join(directory, block["file"]), "w", encoding="utf-8") as file:
            file.write(block["text"])
        continue
    for command, shown in outputs(block["text"]):
        done = subprocess.run(command, shell=True, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        printed = [line for line in done.stdout.splitlines() if not re.match(r"\[\d+/\d+\] |PASS: |FAIL: ", line)]
        if not matches(shown, printed):
            sys.exit(f"$ {command}\nshown:\n" + "\n".join(shown) + "\nprinted:\n" + "\n".join(printed))
        commands += 1
print(f"{commands} commands print what the page shows")
