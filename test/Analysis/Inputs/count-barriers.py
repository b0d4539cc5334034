# fagen: of each kernel that is built with several policies, barriers of the first policy against those of the second.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: count-barriers.py FILE FEWER MORE   (FILE as --emit=barriers --json wrote it)
import json
import sys

counts = {}
for kernel in json.load(open(sys.argv[1]))["kernels"]:
    family = kernel["variant"].removesuffix("_" + kernel["policy"])
    counts.setdefault(family, {})[kernel["policy"]] = sum("barrier" in site["barrier"] for site in kernel["sites"])
for family, of in sorted(counts.items()):
    if sys.argv[2] in of and sys.argv[3] in of:
        few, many = of[sys.argv[2]], of[sys.argv[3]]
        print(family, few, many, "more" if few > many else "fewer" if few < many else "as many")
