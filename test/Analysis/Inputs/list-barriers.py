# fagen: what --emit=barriers --json wrote, a line a site.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: list-barriers.py FILE
import json
import sys

for kernel in json.load(open(sys.argv[1]))["kernels"]:
    print(kernel["variant"], kernel["policy"], kernel["symbol"], kernel["file"])
    for site in kernel["sites"]:
        first = site["hazards"][0]
        print(site["site"], site["barrier"], "needed," if site["needed"] else "redundant,", len(site["hazards"]),
              "hazards, first", first["kind"], first["buffer"], first["first"]["op"], "->", first["then"]["op"],
              first["threads"] + ",", "partners", *first["partners"])
