# fagen: whether kernels that differ only in what stands after their mask give the same bits, case by case.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: same-bits.py CHECK.json...
import json
import re
import sys

digests = {}
for path in sys.argv[1:]:
    for entry in json.load(open(path))["check"]["cases"]:
        family, policy = re.fullmatch(r"(.*?_(?:none|causal))_?(\w*)", entry["variant"]).groups()
        digests.setdefault((family, entry["case"]), {})[policy] = entry["digest"]
compared = different = 0
for (family, case), of in sorted(digests.items()):
    if len(of) < 2:
        continue
    compared += 1
    if len(set(of.values())) > 1:
        different += 1
        print(family, f'"{case}":', *(f"{policy} {digest}" for policy, digest in of.items()))
print(f"{compared} cases compared, {different} different")
sys.exit(different != 0)
