# fagen: the summary of a raw result: what docs, tables and tests read of it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A raw result holds every sample and every run. Its summary holds the same facts with three changes: a list of samples
becomes their number, median and range; a list of runs becomes their number, since what failed stands in `failures`; and the
ratios of two lists of samples, with their bootstrap intervals, are computed here, where the samples are.

A summary of a summary is that summary."""
import json
import statistics

from samples import ratio_by_rounds, ratio_of_medians

LEAST_SAMPLES = 9  # shorter lists are kept
SAMPLES = ("samples", "microseconds")  # how names of such lists begin, or of objects that hold them by contestant
DIGITS = 9
EXACT = ("over_best", "over_best_together", "over_minimal")  # ratios that are compared with 1


def microseconds_of(result):
    return [time for _, time in result["samples_round_us"]]


def fastest(results):
    return min(results, key=lambda result: result["median_us"], default=None)


def add_ratios_of_contest(data):
    """compare_sdpa.py: each of our results against the fastest peer of its problem: by rounds, in which contestants take
    turns; next to PyTorch's backends alone also of all samples together, as the older tables have it."""
    for problem in data["problems"]:
        best = fastest(r for r in problem["results"] if r["kind"] != "fagen")
        for ours in (r for r in problem["results"] if r["kind"] == "fagen" and best):
            if isinstance(ours.get("samples_round_us"), list):
                ours["over_best"] = ratio_by_rounds(ours["samples_round_us"], best["samples_round_us"])
                if not data.get("contestants"):
                    ours["over_best_together"] = ratio_of_medians(microseconds_of(ours), microseconds_of(best))


def add_ratios_of_barriers(data):
    """barrier_cost.py: each policy against `minimal` of the same kernel and problem."""
    least = {(r["shape"], data["barriers"][r["variant"]]["family"]): r for r in data["time"]["results"]
             if data["barriers"][r["variant"]]["policy"] == "minimal"}
    for result in data["time"]["results"]:
        base = least[result["shape"], data["barriers"][result["variant"]]["family"]]
        if isinstance(result.get("samples_round_us"), list):
            result["over_minimal"] = ratio_of_medians(microseconds_of(result), microseconds_of(base))


RATIOS = {"compare_sdpa.py": add_ratios_of_contest, "barrier_cost.py": add_ratios_of_barriers}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_samples(value):
    """Numbers, or (round, number), and enough of them."""
    return (isinstance(value, list) and len(value) >= LEAST_SAMPLES
            and (all(map(is_number, value))
                 or all(isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair)) for pair in value)))


def of_samples(values):
    numbers = [value[1] if isinstance(value, list) else value for value in values]
    return {"n": len(numbers), "median": statistics.median(numbers), "least": min(numbers), "most": max(numbers)}


def number_and_median(samples):
    """Of samples as a raw result or its summary has them."""
    of = samples if isinstance(samples, dict) else of_samples(samples)
    return of["n"], of["median"]


def is_runs(name, owner):
    """Runs of a check stand next to its variants, mutants of a kernel next to their number, segments next to a median."""
    return (name == "cases" and "variants" in owner) or (name == "results" and "mutants" in owner) or name == "segments"


def reduced(value, holds_samples=False):
    """holds_samples: under a name of samples."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if holds_samples and is_samples(value):
        return reduced(of_samples(value))
    if isinstance(value, (list, tuple)):
        return [reduced(each) for each in value]
    if isinstance(value, dict):
        return {name: each if name in EXACT else len(each) if isinstance(each, list) and is_runs(name, value)
                else reduced(each, holds_samples or name.startswith(SAMPLES)) for name, each in value.items()}
    return value


def summary(data):
    """The summary of a raw result, a JSON object; changes `data`."""
    RATIOS.get(data.get("tool"), lambda _: None)(data)
    return reduced(data)


def written(data):
    """As a summary stands in its file."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"
