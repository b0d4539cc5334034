# fagen: how long the heads of kernels are.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""heads.py FAGEN_OPT FILE...: prints how many heads there are, the most lines that one has, and the most columns. A head is what
stands above a kernel's first declaration as comments: the map of shared memory, roles, and what orders what. Programs of textual IR
are lowered first."""
import re
import subprocess
import sys


def heads(text):
    """The lines of each head, by its first line on shared memory or a role."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        if re.match(r"//   (shared|warps) ", line) and not re.match(r"//   ", lines[number - 1]):
            end = next(i for i in range(number, len(lines)) if not lines[i].startswith("//   "))
            found.append(lines[number:end])
    return found


def main():
    found = []
    for path in sys.argv[2:]:
        if path.endswith(".fair"):
            text = subprocess.run([sys.argv[1], path, "--lower", "--emit=cuda"], check=True, capture_output=True, text=True).stdout
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        of_file = heads(text)
        assert of_file, path
        found += [(len(head), max(map(len, head)), path) for head in of_file]
    print(f"{len(found)} heads of at most {max(found)[0]} lines and {max(head[1] for head in found)} columns")
    print("longest:", max(found)[2])


main()
