# fagen: stands in for measure/compare_sdpa.py: the same lines of JSON, without PyTorch or a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import sys

print("peer called with", *sys.argv[1:], file=open(os.environ["FAKE_PEER_LOG"], "w"))
if os.environ.get("FAKE_PEER_FAILS"):
    sys.exit("no GPU for the peer")
problems = [value for option, value in zip(sys.argv, sys.argv[1:]) if option == "--problem"]
measured = []
for i, problem in enumerate(problems):
    print(json.dumps(dict(progress=[i, len(problems), problem])), flush=True)
    sensors = dict(sm_clock_mhz=1980, watts=400.0, celsius=50)

    steady = sys.argv[sys.argv.index("--state") + 1] == "steady"
    energy = dict(joules=400.0, seconds=1.0, watts=400.0, error=0.002, launches=1000, load_s=1.25, joules_per_launch=0.5) if steady else None

    def result(name, kind, us, **more):
        return dict(name=name, kind=kind, launches_per_graph=200,
                    segments=[dict(before=sensors, after=sensors, energy=energy)] * 2,
                    samples_round_us=[[r, us + r / 100] for r in range(2)], **more)
    mask = "causal" if "causal" in problem else "none"
    measured.append(dict(refused=dict(flash="not in this build"), failed=[], results=[
        result("cudnn", "sdpa", 40.0),
        result(f"rows_f16_d16_{mask}", "fagen", 30.0, picked=True, registers=40, local_bytes=0, target="sm_80")]))
print(json.dumps(dict(result=dict(machine=dict(torch="2.11", cudnn=91002), problems=measured))), flush=True)
