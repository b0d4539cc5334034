# fagen: what --emit=mutants wrote, a line a mutant.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: list-mutants.py FILE
import json
import sys

for kernel in json.load(open(sys.argv[1], encoding="utf-8"))["kernels"]:
    print(kernel["variant"], kernel["policy"], kernel["symbol"], kernel["file"])
    for m in kernel["mutants"]:
        action = m["action"]
        if "pending" in m:
            action += f" to {m['pending']}"
        if "over" in m:
            action += f" {'after' if m['later'] else 'before'} {m['over']} ({m['target']})"
        print(m["site"], m["line"], m["what"], m["op"], f"{action}: {m.get('why', m['verdict'])}")
