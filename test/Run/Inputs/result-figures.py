"""Figures that docs/Results.md says in sentences, made of evidence/: result-figures.py RESULTS EVIDENCE prints each phrase that
is not there, and ends with 1 where there is one."""
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(sys.argv[2], os.pardir, "measure"))
from evidence_files import object_of  # noqa: E402 (measure/evidence_files.py)


def load(name):
    return object_of(os.path.join(sys.argv[2], name))


def checks(*names):
    """Runs, failures and variants of these sets over the full suite."""
    parts = [load(f"h200/check_{name}.json")["check"] for name in names]
    return (sum(part["cases"] for part in parts),
            sum(variant["failed"] for part in parts for variant in part["variants"]),
            sum(len(part["variants"]) for part in parts))


def ratios(name, peer=None, ours=None):
    """Our time over the peer's, or the fastest one's, by problem; ours is what dispatch picks, or has this name."""
    for problem in load(name)["problems"]:
        time = min(r["median_us"] for r in problem["results"]
                   if r["kind"] == "fagen" and (r["name"].startswith(ours) if ours else r["picked"]))
        yield problem, time / min(r["median_us"] for r in problem["results"] if r["kind"] != "fagen" and peer in (None, r["name"]))


def conformance():
    entries = load("conformance/h200.json")["conformance"]["functions"]
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
    for gpu, layout, dtype in ((gpu, layout, dtype) for gpu in ("h200", "h100") for layout in ("bshd", "bhsd") for dtype in ("bf16", "f16")):
        found = [ratio for _, ratio in ratios(f"{gpu}/grid/{dtype}_{layout}.json")]
        mean, worst = f"{statistics.geometric_mean(found):.3f}", f"{max(found):.3f}"
        yield f"| {mean} | {worst} |" if len(found) >= 18 else f"| {len(found)} measured | {worst} |"
    first = [ratio for _, ratio in ratios("h200/hopper/contest_mission.json", "cudnn")]
    later = [ratio for _, ratio in ratios("h100/mission.json", "cudnn")]
    yield (f"which take {min(first):.2f} to {max(first):.2f} of cuDNN's time on an H200, and {min(later):.2f} to {max(later):.2f} on an H100")
    for gpu in "h200", "h100":
        short = [[ratio for _, ratio in ratios(f"{gpu}/short/steady_{dtype}.json")] for dtype in ("f16", "bf16")]
        yield f"{min(map(min, short)):.2f} to {max(map(max, short)):.2f}"
        yield " and ".join(f"{statistics.geometric_mean(found):.2f}" + (" in f16" if gpu == "h200" and found is short[0] else "") for found in short)
    slopes = {(dtype, problem["inputs"]): ratio for dtype in ("f16", "bf16")
              for problem, ratio in ratios(f"h200/last_first/{dtype}_d128.json", ours="kd_")}
    for slope in "rise", "fall":
        yield f"{slopes['f16', slope + '2']:.2f} and {slopes['f16', slope + '8']:.2f}"
    bf16 = [ratio for (dtype, inputs), ratio in slopes.items() if dtype == "bf16" and inputs != "normal"]
    yield f"bf16 {min(bf16):.2f} to {max(bf16):.2f}"
    hot = [ratio for name in ("bf16", "bf16_before") for problem, ratio in ratios(f"h200/inputs/{name}.json")
           if not (problem["mask"] == "none" and "rise" in problem["inputs"])]
    yield f"{min(hot):.2f} to {max(hot):.2f} of the best peer's time in bf16 on an H200"


with open(sys.argv[1], encoding="utf-8") as file:
    text = re.sub(r"\s+", " ", file.read())
wrong = [phrase for phrase in phrases() if phrase not in text]
print("\n".join(f"docs do not say '{phrase}'" for phrase in wrong) or "docs say what evidence says")
sys.exit(1 if wrong else 0)
