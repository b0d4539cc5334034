#!/usr/bin/env python3
# fagen: docs/Gpus.md's table: what ptxas and the time model say of the specs for sm_80, sm_86 and sm_89.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gpu_tables.py --resources FILE... --model FILE...

Resources: what `fagen SPEC --check-resources` printed. Model: of `fagen SPEC --emit=plan --shape ... --json`. Prints a
table of the prefill schedules without a mask; the causal kernels' registers stand after a slash.
"""
import argparse
import json
import re
import sys

LINE = re.compile(r"(\S+)\s+(sm_\d+)\s+(\d+) registers\s+(\d+) B spilled\s+(\d+) B shared\s+(\S+)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resources", nargs="+", required=True)
    parser.add_argument("--model", nargs="+", required=True)
    arguments = parser.parse_args()
    found = {}
    for path in arguments.resources:
        for match in LINE.finditer(open(path).read()):
            found[match[1], match[2]] = match
    models = [row for path in arguments.model for row in json.load(open(path))]
    rows = [row for row in models if (row["variant"], f"sm_{row['sm']}") in found and "us" in row]
    if not rows:
        print("no variant is in both", file=sys.stderr)
        return 2
    print("| spec, head dim | GPU | registers none / causal | spilled | shared KiB | CTAs an SM (model) | problem | model us |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        target = f"sm_{row['sm']}"
        plain, causal = (found.get((name, target)) for name in (row["variant"], row["variant"].removesuffix("none") + "causal"))
        kernel, head_dim = re.match(r"(.*)_prefill_.*_d(\d+)_none", row["variant"]).groups()
        spilled = int(plain[4]) + (int(causal[4]) if causal else 0)
        print(f"| {kernel}, {head_dim} | {row['gpu']} ({target}) | {plain[3]} / {causal[3] if causal else '-'} | {spilled} | "
              f"{int(plain[5]) / 1024:.0f} | {row['ctas_per_sm']} | {row['shape']} | {row['us']:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
