# each_shipped.py FORMS.fa DIR: each form that FORMS.fa declares is asked for by a spec in DIR that does not declare it.
import os
import re
import subprocess
import sys

names = re.findall(r"^form (\w+)", open(sys.argv[1], encoding="utf-8").read(), re.M)
path, wrong = os.path.join(sys.argv[2], "other.fa"), 0
for name in names:
    with open(path, "w", encoding="utf-8") as file:
        file.write("target sm_80; kernel k { problem { dtype = f16; head_dim = 64; form = %s; }\n"
                   "  schedule { tile = 64 x 64; warps = 4; mma = mma_sync; } }\n" % name)
    said = subprocess.run(["fagen", "check", path], capture_output=True, text=True, check=False).stderr
    if f"unknown mask '{name}'; this file does not declare it; specs/forms.fa has a form of this name" not in said:
        wrong += 1
        print(f"{name}: said {said.splitlines()[:1]}")
print(f"{len(names)} forms, {wrong} with other words")
