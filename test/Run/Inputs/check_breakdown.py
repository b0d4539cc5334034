# fagen: checks what fagen-run breakdown wrote against what must hold of it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   check_breakdown.py counts FILE         on the emulator: stages of one step are entered equally often
#   check_breakdown.py sampled FILE ALL    on the emulator: sampled loops next to the same ones of which all steps tell
#   check_breakdown.py roles FILE TILES    on the emulator: what two CTAs that share so many tiles do, role by role
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


def check_sampled(path, all_path):
    sampled, told = breakdowns(path), breakdowns(all_path)
    assert [(r["variant"], r["case"]) for r in sampled] == [(r["variant"], r["case"]) for r in told]
    count = 0
    for ours, all_steps in zip(sampled, told):
        stages, exact = ({stage["name"]: stage["clocks"]["max"] for stage in r["stages"]} for r in (ours, all_steps))
        for name in ("prologue", "load wait", "barrier wait", "mask", "epilogue"):
            assert stages.get(name) == exact.get(name), (ours["variant"], name)
        # What is shared out keeps the ratios of a step: one end of QK, rescale and PV, two of softmax.
        for name, ends in (("rescale", 1), ("PV", 1), ("softmax", 2)):
            assert abs(stages[name] - ends * stages["QK"]) < 1e-6, (ours["variant"], name)
        assert all_steps["untold"]["max"] == 0
        if ours["untold"]["max"] > 0:
            assert ours["span"]["max"] < all_steps["span"]["max"], "fewer clocks are read"
            count += 1
        else:
            assert stages == exact, ours["variant"]
        assert ours["adds_up"] and ours["sum_over_span"]["min"] == ours["sum_over_span"]["max"] == 1
    print(count, "sampled kernels agree")


def check_roles(path, tiles):
    (result,) = breakdowns(path)
    load = result["load"]
    for role in (result, load):
        assert role["tiles"] == (result["tiles"] | {"median": role["tiles"]["median"]}), "roles work on the same tiles"
        assert role["sum_over_span"]["min"] == role["sum_over_span"]["max"] == 1
    assert result["tiles"]["min"] + result["tiles"]["max"] == int(tiles), result["tiles"]
    assert result["warps"] == 16 and load["warps"] == 2 and result["adds_up"] and not result["failures"]
    # Products are asked for and waited for; only the first scores and the last P V are one stage each.
    stages = {stage["name"]: stage for stage in result["stages"]}
    for name in ("PV", "rescale"):
        assert stages[name]["clocks"] == stages["QK"]["clocks"], name
    assert stages["QK"]["clocks_per_tile"] > 0
    # Each copy has a slot to wait for; the next tile is drawn between copies.
    clocks = {stage["name"]: stage["clocks"]["median"] for stage in load["stages"]}
    draws = load["tiles"]["median"] if result["variant"].startswith("drawn") else 0
    assert clocks["copy issue"] == clocks["load wait"] + draws
    print("roles agree")


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


COMMANDS = {"counts": check_counts, "sampled": check_sampled, "roles": check_roles, "trace": check_trace, "times": write_times}
COMMANDS[sys.argv[1]](*sys.argv[2:])
