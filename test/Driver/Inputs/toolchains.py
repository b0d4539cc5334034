# fagen: whether the toolchains that a warning of fagen names are those of the evidence, and the evidence is as good as they say.
#
# usage: toolchains.py TOOLCHAINS.json FILE: a file with the warning. Also of requirements-cuda.txt: what set-up installs.
import json
import os
import re
import sys

source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(source, "measure"))
from toolchain_tables import toolchains_of

with open(sys.argv[1]) as file:
    every = toolchains_of(json.load(file))
with open(sys.argv[2]) as file:
    named = re.search(r"compared by, ([\d., ]+);", file.read())[1].split(", ")
with open(os.path.join(source, "scripts", "requirements-cuda.txt")) as file:
    installed = re.search(r"^nvidia-cuda-nvcc==([\d.]+)", file.read(), re.M)[1]
known = sorted(one.nvcc for one in every if one.nvcc)
if sorted(named) != known:
    sys.exit(f"fagen names {', '.join(named)}; the evidence has {', '.join(known)}")
if installed not in named:
    sys.exit(f"scripts/requirements-cuda.txt has {installed}, by which no kernels were compared")
for one in every:
    if one.matters() or one.local():
        sys.exit(f"by {one.ptxas} kernels differ in what matters, and fagen does not say so: {', '.join(one.matters() + one.local())}")
