#!/usr/bin/env python3
# fagen: how well the model of docs/Model.md ranks variants that were measured.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""model_correlation.py --predicted FILE... --measured FILE... [--prune-at 0.7] [--wanted 200]

Predicted: of `fagen SPEC --emit=plan --shape ... --json`. Measured: of `fagen-run time`. Prints Spearman's rank
correlation over the variants at each shape, over all points, and of times over the shape's fastest, each with and
without the unaligned fallbacks, which are so slow that any model ranks them last. Exits with 2 when no point is in both.
"""
import argparse
import collections
import json
import math
import sys


def ranks(values):
    """From 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            result[i] = (begin + end + 1) / 2
        begin = end
    return result


def spearman(a, b):
    """Pearson's correlation of the ranks; None for fewer than three points or where one side is constant."""
    if len(a) < 3:
        return None
    a, b = ranks(a), ranks(b)
    mean = (len(a) + 1) / 2
    covariance = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    spread = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    return covariance / spread if spread else None


def is_fallback(point):
    return "_unaligned_" in point["variant"]


def join(predicted, measured):
    """Points of both, in the order of the measurements."""
    times = {(row["variant"], row["shape"]): row["us"] for row in predicted if "us" in row}
    points = []
    for row in measured:
        if row.get("process") not in (None, "fagen-run"):
            continue
        us = times.get((row["variant"], row["shape"]))
        if us is not None:
            points.append({"variant": row["variant"], "shape": row["shape"], "measured": row["median_us"], "predicted": us})
    return points


def line(name, points):
    rho = spearman([p["predicted"] for p in points], [p["measured"] for p in points])
    ratios = sorted(p["predicted"] / p["measured"] for p in points)
    fastest = min(points, key=lambda p: p["measured"])
    chosen = min(points, key=lambda p: p["predicted"])
    loss = chosen["measured"] / fastest["measured"] - 1
    return (f"{name:<34} {len(points):>4} {'-' if rho is None else format(rho, '.2f'):>6} "
            f"{ratios[0]:>6.2f} {ratios[len(ratios) // 2]:>6.2f} {ratios[-1]:>6.2f} {100 * loss:>7.1f} %"), rho


def relative(points):
    """Times over the fastest of their shape, so that the size of the shapes ranks nothing."""
    best = collections.defaultdict(lambda: {"measured": math.inf, "predicted": math.inf})
    for p in points:
        for side in ("measured", "predicted"):
            best[p["shape"]][side] = min(best[p["shape"]][side], p[side])
    return [{**p, **{side: p[side] / best[p["shape"]][side] for side in ("measured", "predicted")}} for p in points]


def report(points, prune_at, wanted):
    tuned = [p for p in points if not is_fallback(p)]
    print(f"{'points':<34} {'n':>4} {'rho':>6} {'predicted/measured':>20} {'choice':>9}")
    print(f"{'':<34} {'':>4} {'':>6} {'least':>6} {'median':>6} {'most':>6} {'loses':>9}")
    shapes = list(dict.fromkeys(p["shape"] for p in tuned))
    within = []
    for shape in shapes:
        text, rho = line(shape, [p for p in tuned if p["shape"] == shape])
        print(text)
        if rho is not None:
            within.append(rho)
    for name, some in (("all", tuned), ("all, with fallbacks", points)):
        print(line(name, some)[0].rsplit(None, 2)[0])
    over_fastest = spearman(*[[p[side] for p in relative(tuned)] for side in ("predicted", "measured")])
    least = min(within, default=None)
    text = "-" if over_fastest is None else f"{over_fastest:.2f}"
    print(f"times over the fastest of their shape: rho {text}")
    if least is None or least < prune_at:
        print(f"may not prune: the least rho at a shape is {'unknown' if least is None else f'{least:.2f}'}, under {prune_at}")
    elif len(tuned) < wanted:
        print(f"may not prune: {len(tuned)} points, {wanted} are wanted")
    else:
        print("may prune")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predicted", nargs="+", required=True)
    parser.add_argument("--measured", nargs="+", required=True)
    parser.add_argument("--prune-at", type=float, default=0.7)
    parser.add_argument("--wanted", type=int, default=200)
    arguments = parser.parse_args()
    predicted = [row for path in arguments.predicted for row in json.load(open(path))]
    measured = [row for path in arguments.measured for row in json.load(open(path))["time"]["results"]]
    points = join(predicted, measured)
    if not [p for p in points if not is_fallback(p)]:
        print("no variant is both predicted and measured", file=sys.stderr)
        return 2
    report(points, arguments.prune_at, arguments.wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
