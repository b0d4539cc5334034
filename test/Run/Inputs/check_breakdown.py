# fagen: checks what fagen-run breakdown wrote against what must hold of it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   check_breakdown.py counts FILE         on the emulator: stages of one step are entered equally often
#   check_breakdown.py trace FILE EVENTS   the events are a trace, and add up to the figures of FILE
#   check_breakdown.py times FILE          writes recorded times
import collections
import json
import sys


def breakdowns(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["breakdown"]


def check_counts(path):
    results = breakdowns(path)
    assert results
    for result in results:
        stages = {stage["name"]: stage["clocks"] for stage in result["stages"]}
        for which in ("min", "median", "max"):
            # One end of QK, rescale and PV in each step; softmax is cut in two by rescale.
            steps = stages["QK"][which]
            assert steps >= 1, result["variant"]
            assert stages["rescale"][which] == steps, result["variant"]
            assert stages["mask"][which] <= steps, result["variant"]
            assert stages["epilogue"][which] >= 1, result["variant"]
        assert result["adds_up"] and not result["failures"], result["variant"]
        assert result["sum_over_span"]["min"] == result["sum_over_span"]["max"] == 1, result["variant"]
        tiles = -(-int(result["case"].split(",")[4]) // 16)
        assert stages["QK"]["max"] <= tiles
    print("counts agree")


def check_trace(path, events_path):
    (result,) = breakdowns(path)
    with open(events_path, encoding="utf-8") as file:
        trace = json.load(file)
    assert trace["displayTimeUnit"] in ("ms", "ns") and trace["otherData"]["events_beyond_the_buffer"] == 0
    clocks = collections.defaultdict(collections.Counter)
    end = {}
    names = set()
    for event in trace["traceEvents"]:
        assert event["ph"] in ("M", "X"), event
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"], event
            names.add((event["pid"], event.get("tid")))
            continue
        warp = (event["pid"], event["tid"])
        assert warp in names and (event["pid"], None) in names, "events follow the names of their warp"
        assert event["dur"] >= 0 and event["ts"] >= 0, event
        # Stages follow one another without gap or overlap.
        assert abs(event["ts"] - end.get(warp, event["ts"])) < 1e-6, event
        end[warp] = event["ts"] + event["dur"]
        clocks[warp][event["name"]] += event["args"]["clocks"]
    assert len(clocks) == min(result["warps"], 8 * max(1 + warp[1] for warp in clocks))
    for stage in result["stages"]:
        of_warps = sorted(counter[stage["name"]] for counter in clocks.values())
        assert of_warps[0] >= stage["clocks"]["min"] and of_warps[-1] <= stage["clocks"]["max"], stage
        if len(clocks) == result["warps"]:
            assert (of_warps[0], of_warps[-1]) == (stage["clocks"]["min"], stage["clocks"]["max"]), stage
    print(sum(event["ph"] == "X" for event in trace["traceEvents"]), "events of", len(clocks), "warps agree")


def write_times(path):
    record = {
        "device": {"name": "recorded GPU", "compute_capability": 80, "sms": 4},
        "entries": [{"name": "heads_prefill_f16_d64_causal", "us": [10.0]}],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file)


{"counts": check_counts, "trace": check_trace, "times": write_times}[sys.argv[1]](*sys.argv[2:])
