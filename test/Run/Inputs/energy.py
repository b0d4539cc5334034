# fagen: what compare_sdpa.py's file says of the energy of each contestant, held to a GPU that draws 500 W.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import math
import sys

WATTS, ROUNDING = 500, 1e-4
data = json.load(open(sys.argv[1]))
for result in data["problems"][0]["results"]:
    energy = result["segments"][0]["energy"]
    if isinstance(energy, str):
        print(f"{result['name']}: {energy}")
        continue
    near = abs(energy["watts"] / WATTS - 1) <= energy["error"] + ROUNDING and 0 < energy["error"] < 0.1
    share = math.isclose(result["joules_per_launch"], result["average_watts"] * energy["load_s"] / energy["launches"])
    print(f"{result['name']}: {f'{WATTS} W within the error' if near else energy}, "
          f"a launch {'its share' if share else result['joules_per_launch']}")
print(f"energy is {'missing: ' + data['energy_missing'] if data['energy_missing'] else 'told'}")
