# fagen: whether two texts are the same word for word, but for names: a word of the second that differs stands for one
# word of the first throughout. Prints how many names differ.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import re
import sys


def words(path):
    with open(path, encoding="utf-8") as file:
        return re.findall(r"\w+|[^\w\s]", file.read())


first, second = words(sys.argv[1]), words(sys.argv[2])
if len(first) != len(second):
    sys.exit(f"{len(first)} words, and {len(second)}")
originals = {}
for place, (word, other) in enumerate(zip(first, second)):
    if word != other and originals.setdefault(other, word) != word:
        sys.exit(f"'{other}' stands for '{originals[other]}' and for '{word}': {' '.join(first[place - 8:place + 8])}")
print(f"same but for {len(originals)} names")
