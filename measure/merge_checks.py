#!/usr/bin/env python3
# fagen: one result of the parts that `fagen-run check --part K/N` wrote.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""merge_checks.py PART.json... --output FILE: joins all N parts of one check and prints its table. It refuses parts that
are missing, come twice, or are not of one check."""
import argparse
import json
import sys


def load(paths):
    """The parts in their order."""
    parts = []
    for path in paths:
        with open(path) as file:
            parts.append(json.load(file))
    return sorted(parts, key=lambda part: part["check"]["part"])


def identity(part):
    """What the parts of one check have in common."""
    check = part["check"]
    return (part["kernels"], part["machine"], part.get("notes"), check["parts"], check["suite"], check["seed"],
            check["seeds"], check["device"], check["tolerances"])


def strain(entry):
    return entry["max_error"] / entry["bound"] if entry["bound"] > 0 else 0


def merge_variant(into, entry):
    if strain(entry) > strain(into):
        into["max_error"], into["bound"] = entry["max_error"], entry["bound"]
    for key in ("cases", "failed"):
        into[key] += entry[key]
    for key in ("cosine", "lse_error", "lse_used"):
        into[key] = max(into[key], entry[key])
    into["passed"] = into["passed"] and entry["passed"]


def merge(parts):
    whole = json.loads(json.dumps(parts[0]))
    check = whole["check"]
    check["part"] = check["parts"] = 1
    check["merged_from"] = len(parts)
    variants = {entry["variant"]: entry for entry in check["variants"]}
    for part in (part["check"] for part in parts[1:]):
        check["passed"] = check["passed"] and part["passed"]
        check["skipped"] += part["skipped"]
        for key in ("too_large", "failures", "cases"):
            check[key] += part[key]
        for entry in part["variants"]:
            if entry["variant"] in variants:
                merge_variant(variants[entry["variant"]], entry)
            else:
                variants[entry["variant"]] = entry
    check["variants"] = list(variants.values())
    return whole


def table(check):
    head = ["variant", "target", "cases", "max |O - ref|", "allowed", "cosine", "LSE", "result"]
    rows = [[v["variant"], v["target"], str(v["cases"]), f"{v['max_error']:.2e}", f"{v['bound']:.2e}",
             f"{v['cosine']:.1e}", f"{v['lse_error']:.1e}", "PASS" if v["passed"] else f"FAIL ({v['failed']})"]
            for v in check["variants"]]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", metavar="PART.json")
    parser.add_argument("--output", required=True, help="where the whole goes")
    arguments = parser.parse_args()
    parts = load(arguments.parts)
    for path, part in zip(arguments.parts, parts):
        if identity(part) != identity(parts[0]):
            sys.exit(f"merge_checks.py: {path} or another file is of another check; give the parts of one")
    numbers, count = [part["check"]["part"] for part in parts], parts[0]["check"]["parts"]
    if numbers != list(range(1, count + 1)):
        sys.exit(f"merge_checks.py: parts {numbers} of {count} are given; each is needed once")
    whole = merge(parts)
    with open(arguments.output, "w") as file:
        json.dump(whole, file, indent=1)
        file.write("\n")
    check = whole["check"]
    print(table(check))
    print(f"{'PASS' if check['passed'] else 'FAIL'}: {len(check['cases'])} runs of a variant on a case on "
          f"{whole['machine'].get('gpu', 'emulator')}, {check['skipped']} pairs that do not fit skipped, "
          f"in {count} parts")


if __name__ == "__main__":
    main()
