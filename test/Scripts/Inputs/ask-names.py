# fagen: puts each line of a list into a file of each part of the tree that asks structure: check-layout must find the
# lines of `asked`, and let those of `innocent` pass.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import re
import subprocess
import sys

lists, root, checker = sys.argv[1:]
HEAD = "// fagen: asks.\n// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
PARTS = ["lib/IR", "lib/Analysis", "lib/Passes", "lib/Emit", "include/fagen/IR", "include/fagen/Emit"]


def linesOf(name):
    with open(os.path.join(lists, name + ".txt"), encoding="utf-8") as file:
        return file.read().splitlines()


def linesFound(lines):
    """By file, those lines that check-layout says ask a name."""
    for part in PARTS:
        os.makedirs(os.path.join(root, "tree", part), exist_ok=True)
        with open(os.path.join(root, "tree", part, "Names.h"), "w", encoding="utf-8") as file:
            file.write(HEAD + "".join(line + ";\n" for line in lines))
    os.makedirs(os.path.join(root, "tree/include/fagen/td"), exist_ok=True)
    open(os.path.join(root, "tree/include/fagen/td/Passes.td"), "w", encoding="utf-8").close()
    said = subprocess.run([sys.executable, checker, os.path.join(root, "tree")], capture_output=True, text=True, check=False)
    asked = re.findall(r"^(\S+)/Names\.h:(\d+): '.*' is a name;", said.stdout, re.M)
    return {part: {int(number) - 3 for where, number in asked if where == part} for part in PARTS}


mistakes = []
for name, isAsked in (("asked", True), ("innocent", False)):
    lines = linesOf(name)
    for part, found in linesFound(lines).items():
        mistakes += [f"{part}: {line}: {'not ' if isAsked else ''}found" for i, line in enumerate(lines) if (i in found) != isAsked]
print("\n".join(mistakes))
sys.exit(1 if mistakes else 0)
