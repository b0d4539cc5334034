# Takes the remedy that `fagen check` names for tiles that do not fit, and measures with nvcc what the kernel then takes.
#
# remedies.py [COUNT]: of the first COUNT cases, or of all.
import re
import subprocess
import sys

SPEC = """target {target};
kernel k {{
  problem {{ dtype = f16; head_dim = {dim}; mask = causal; }}
  schedule {{ tile = {tile}; warps = {warps}; stages = {stages}; {rest} }}
}}
"""
SYNC, GROUP = "mma = mma_sync; q_in = registers;", "mma = wgmma; overlap = intra; rescale = optimistic;"
CASES = [("sm_89", 64, "256 x 128", 4, 3, SYNC), ("sm_89", 64, "256 x 128", 4, 2, SYNC),
         ("sm_80", 96, "128 x 64", 4, 2, SYNC), ("sm_80", 128, "256 x 256", 4, 2, SYNC),
         ("sm_90a", 128, "128 x 256", 8, 2, GROUP)]

chosen, wrong = CASES[:int(sys.argv[1]) if len(sys.argv) > 1 else None], 0
for target, dim, tile, warps, stages, rest in chosen:
    values = {"target": target, "dim": dim, "tile": tile, "warps": warps, "stages": stages, "rest": rest}

    def check(*arguments):
        with open("k.fa", "w") as out:
            out.write(SPEC.format(**values))
        return subprocess.run(["fagen", *arguments], capture_output=True, text=True)

    said = check("check", "k.fa").stderr
    found = re.search(r"(error|warning): tile[\s\S]*note: with (.*) it is \d+ B of shared memory and at least", said)
    if not found:
        wrong += 1
        print(target, dim, tile, "no remedy:", said)
        continue
    for setting in found[2].split(" and "):
        key, value = setting.split(" = ")
        values[key] = value
    again = check("check", "k.fa").stderr
    figures = check("k.fa", "-o", "out", "--check-resources").stdout
    spilled = max(map(int, re.findall(r"(\d+) B spilled", figures)), default=-1)
    wrong += spilled != 0 or again != ""
    print(f"{target} {dim} {tile} of {warps} warps, {stages} stages: {found[1]}, then {found[2]}: {spilled} B spilled",
          again, flush=True)
print(f"{len(chosen)} remedies, {wrong} that spill or are none")
sys.exit(2 if wrong else 0)
