# fagen: whether --emit=barriers --json shows just the pairs of roles that print-hazards lists, at the ops that order them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: match-pairs.py FILE LISTING
import json
import re
import sys

PAIR = re.compile(r"  (\w+) (\S+): (\S+) -> (\S+)(?: distance (\d+))?, ordered by (\S+)(?: and (\S+))?$")

listed, symbol = {}, None
for line in open(sys.argv[2]):
    if heading := re.match(r"hazards of @(\w+), roles", line):
        symbol = heading[1]
    elif not line.startswith("  "):
        symbol = None
    elif symbol and (pair := PAIR.match(line)):
        kind, buffer, first, then, distance, *by = pair.groups()
        for op in filter(None, by):
            listed.setdefault(symbol, set()).add((op, kind, buffer, first, then, distance and int(distance)))

kernels = {kernel["symbol"]: kernel["sites"] for kernel in json.load(open(sys.argv[1]))["kernels"]}
pairs = 0
for symbol, wanted in listed.items():
    sites = {site["op"] for site in kernels[symbol]}
    shown = {(site["op"], hazard["kind"], hazard["buffer"], hazard["first"]["op"], hazard["then"]["op"],
              hazard.get("distance")) for site in kernels[symbol] for hazard in site["hazards"]}
    wanted = {pair for pair in wanted if pair[0] in sites}  # bulk copies are no sites
    for pair in sorted(wanted ^ shown, key=str):
        print(symbol, "lacks" if pair in wanted else "invents", *pair)
    pairs += len(shown)
print(len(listed), "kernels of several roles,", pairs, "pairs")
