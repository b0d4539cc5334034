# How often each instruction stands in a kernel of a PTX file: opcodes.py PTX WORD..., the words being parts of its name.
import collections
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    entries = [e for e in re.split(r"\.entry\s+", file.read())[1:] if all(w in e.split("(")[0] for w in sys.argv[2:])]
assert len(entries) == 1, len(entries)
opcodes = re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.:]*)\s", entries[0], re.M)
for opcode, count in sorted(collections.Counter(opcodes).items()):
    print(count, opcode)
