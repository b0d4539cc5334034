#!/usr/bin/env python3
# fagen: how well the model of docs/internals/Model.md ranks variants that were measured.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""model_correlation.py --predicted FILE... --measured FILE... [--prune-at 0.7] [--wanted 200] [--recorded]

Predicted: of `fagen SPEC --emit=plan --shape ... --json`. Measured: of `fagen-run time`, or of model_space.py. Prints
Spearman's rank correlation over the variants at each shape, over all points, and of times over the shape's fastest;
unaligned fallbacks are so slow that any model ranks them last, and stand apart. Then, for each mask, whether the model
may prune: where the least correlation at a shape is at least --prune-at, over at least --wanted variants; and what it
would cost to leave out what is predicted to take more than 1.5 times the least. With --recorded the compiler's record
(include/fagen/td/Targets.td) must say no more than that. Exits with 2 when no point is in both, or a record does.
"""
import argparse
import collections
import json
import math
import statistics
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


def measurements(document):
    """(variant, shape, mask, median)."""
    if "time" in document:
        return [(row["variant"], row["shape"], row.get("mask", "none"), row["median_us"]) for row in document["time"]["results"]
                if row.get("process") in (None, "fagen-run")]
    return [(row["variant"], row["shape"], row["mask"], statistics.median(sum(row["segments"], [])))
            for row in document["results"] if row["segments"]]


def join(predicted, measured):
    """Points of both, in the order of the measurements."""
    rows = {(row["variant"], row["shape"]): row for row in predicted if "us" in row}
    return [{"variant": variant, "shape": shape, "mask": mask, "measured": us, "predicted": rows[variant, shape]["us"],
             "row": rows[variant, shape]} for variant, shape, mask, us in measured if (variant, shape) in rows]


def line(name, points):
    rho = spearman([p["predicted"] for p in points], [p["measured"] for p in points])
    ratios = sorted(p["predicted"] / p["measured"] for p in points)
    fastest = min(points, key=lambda p: p["measured"])
    chosen = min(points, key=lambda p: p["predicted"])
    loss = chosen["measured"] / fastest["measured"] - 1
    return (f"{name:<34} {len(points):>4} {'-' if rho is None else format(rho, '.2f'):>6} "
            f"{ratios[0]:>6.2f} {ratios[len(ratios) // 2]:>6.2f} {ratios[-1]:>6.2f} {100 * loss:>7.1f} %"), rho


def place(point):
    return point["shape"] + ("" if point["mask"] == "none" else " " + point["mask"])


def relative(points):
    """Times over the fastest of their shape, so that the size of the shapes ranks nothing."""
    best = collections.defaultdict(lambda: {"measured": math.inf, "predicted": math.inf})
    for p in points:
        for side in ("measured", "predicted"):
            best[place(p)][side] = min(best[place(p)][side], p[side])
    return [{**p, **{side: p[side] / best[place(p)][side] for side in ("measured", "predicted")}} for p in points]


def report(points, limits):
    tuned = [p for p in points if not is_fallback(p)]
    print(f"{'points':<34} {'n':>4} {'rho':>6} {'predicted/measured':>20} {'choice':>9}")
    print(f"{'':<34} {'':>4} {'':>6} {'least':>6} {'median':>6} {'most':>6} {'loses':>9}")
    least = {}
    for name in dict.fromkeys(map(place, tuned)):
        some = [p for p in tuned if place(p) == name]
        text, rho = line(name, some)
        print(text)
        if rho is not None:
            mask = some[0]["mask"]
            least[mask] = min(least.get(mask, 1), rho)
    for name, some in (("all", tuned), ("all, with fallbacks", points)):
        print(line(name, some)[0].rsplit(None, 2)[0])
    over_fastest = spearman(*[[p[side] for p in relative(tuned)] for side in ("predicted", "measured")])
    text = "-" if over_fastest is None else f"{over_fastest:.2f}"
    print(f"times over the fastest of their shape: rho {text}")
    return all([verdict(mask, least.get(mask), [p for p in tuned if p["mask"] == mask], limits)
                for mask in dict.fromkeys(p["mask"] for p in tuned)])


def verdict(mask, least, points, limits):
    """Of one mask; False where the compiler's record says more."""
    variants = len({p["variant"] for p in points})
    found = "unknown" if least is None else f"{least:.2f}"
    if least is None or least < limits.prune_at:
        print(f"mask {mask}: may not prune: the least rho at a shape is {found}, under {limits.prune_at}")
    elif variants < limits.wanted:
        print(f"mask {mask}: may not prune: {variants} variants, {limits.wanted} are wanted")
    else:
        print(f"mask {mask}: may prune: the least rho at a shape is {found}, over {variants} variants; {cost_of_cut(points)}")
    if not limits.recorded:
        return True
    rho, count = points[0]["row"]["rank_correlation"], points[0]["row"]["ranked_variants"]
    if least is not None and rho <= least + 0.005 and count <= variants:
        return True
    print(f"mask {mask}: the record says rho {rho} over {count} variants, found are {found} over {variants}: "
          "correct it in include/fagen/td/Targets.td", file=sys.stderr)
    return False


def cost_of_cut(points, factor=1.5):
    """What is lost, and saved, by leaving out what is predicted to take more than so many times the least."""
    kept, worst = 0, 0.0
    for name in dict.fromkeys(map(place, points)):
        some = [p for p in points if place(p) == name]
        limit = factor * min(p["predicted"] for p in some)
        within = [p["measured"] for p in some if p["predicted"] <= limit]
        kept += len(within)
        worst = max(worst, min(within) / min(p["measured"] for p in some) - 1)
    return f"a cut at {factor} keeps {100 * kept / len(points):.0f} % of the points and loses at most {100 * worst:.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predicted", nargs="+", required=True)
    parser.add_argument("--measured", nargs="+", required=True)
    parser.add_argument("--prune-at", type=float, default=0.7)
    parser.add_argument("--wanted", type=int, default=200)
    parser.add_argument("--recorded", action="store_true")
    arguments = parser.parse_args()
    predicted = [row for path in arguments.predicted for row in json.load(open(path))]
    measured = [row for path in arguments.measured for row in measurements(json.load(open(path)))]
    points = join(predicted, measured)
    if not [p for p in points if not is_fallback(p)]:
        print("no variant is both predicted and measured", file=sys.stderr)
        return 2
    return 0 if report(points, arguments) else 2


if __name__ == "__main__":
    sys.exit(main())
