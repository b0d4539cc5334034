# fagen: whether kernels with K and V of bytes give the bits of those of 16 bits that hold the same values.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: fp8-bits.py CHECK.json...
import json
import re
import sys

digests = {}
for path in sys.argv[1:]:
    for entry in json.load(open(path))["check"]["cases"]:
        values = re.search(r" kv(?:_values)?=(e4m3|e5m2)", entry["case"])[1]
        case = re.sub(r" kv(_values)?=\w+", "", entry["case"])
        family, memory = re.fullmatch(r"(.*)_kv_(\w+)", entry["variant"]).groups()
        digests.setdefault((family, case, values), {})[memory] = entry["digest"]
different = 0
for (family, case, values), of in sorted(digests.items()):
    if set(of) != {"same", values}:
        sys.exit(f"{family} {case} {values}: only {', '.join(of)}")
    if len(set(of.values())) > 1:
        different += 1
        print(family, f'"{case}" {values}:', *(f"{memory} {digest}" for memory, digest in of.items()))
print(f"{len(digests)} pairs compared, {different} different")
sys.exit(different != 0)
