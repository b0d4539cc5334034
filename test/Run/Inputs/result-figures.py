"""Figures that docs/Results.md says in sentences, made of the raw files: result-figures.py RESULTS EVIDENCE prints each phrase that
is not there, and ends with 1 where there is one."""
import json
import re
import statistics
import sys


def load(name):
    with open(f"{sys.argv[2]}/{name}", encoding="utf-8") as file:
        return json.load(file)


def checks(*names):
    """Runs, failures and variants of these sets over the full suite."""
    parts = [load(f"h200/check_{name}.json")["check"] for name in names]
    return (sum(len(part["cases"]) for part in parts),
            sum(variant["failed"] for part in parts for variant in part["variants"]),
            sum(len(part["variants"]) for part in parts))


def ratios(name, peer=None):
    """Our time over the peer's, or the fastest one's, by problem."""
    for problem in load(name)["problems"]:
        ours = min(r["median_us"] for r in problem["results"] if r["kind"] == "fagen" and r["picked"])
        yield problem, ours / min(r["median_us"] for r in problem["results"] if r["kind"] != "fagen" and peer in (None, r["name"]))


def conformance():
    entries = load("conformance/h100.json")["conformance"]["functions"]
    everywhere = {name for entry in entries for name in entry["functions"]}
    loose = {name for entry in entries if entry["bound"] != "exact" for name in entry["functions"]}
    assert not any(result["wrong"] for entry in entries for result in entry["results"])
    return f"{len(everywhere)} functions, {len(everywhere - loose)} of them bit by bit"


def phrases():
    runs, failed, _ = checks("l4_fp16", "l4_bf16", "l4_wide", "decode_fp16", "l4_fp16_scalar", "l4_fp16_wmma", "h200", "h200_wide")
    yield f"{runs} runs, of which {failed} fail"
    runs, failed, variants = checks("heads")
    yield f"{variants} variants, at commit ecd7166) {runs - failed} of {runs} runs pass"
    yield conformance()
    short = [ratio for problem, ratio in ratios("h200/hopper/ladder/contest_short_causal.json")
             if problem["dtype"] == "float16" and problem["s"] <= 1024]
    yield f"to {short[0]:.3f} and {short[1]:.3f} (`evidence"
    mission = [ratio for _, ratio in ratios("h200/hopper/contest_mission.json", "cudnn")]
    yield f"({min(mission):.2f} to {max(mission):.2f} of cuDNN's time)"
    grids = [[ratio for _, ratio in ratios(f"h100/grid/f16_{layout}.json")] for layout in ("bshd", "bhsd")]
    means = [statistics.geometric_mean(grid) for grid in grids]
    yield f"takes {means[0]:.3f} in the geometric mean of {len(grids[0])} problems, and {means[1]:.3f} with"
    yield f"d 64 causal at S 512, {max(max(grid) for grid in grids):.3f}"


with open(sys.argv[1], encoding="utf-8") as file:
    text = re.sub(r"\s+", " ", file.read())
wrong = [phrase for phrase in phrases() if phrase not in text]
print("\n".join(f"docs do not say '{phrase}'" for phrase in wrong) or "docs say what the raw files say")
sys.exit(1 if wrong else 0)
