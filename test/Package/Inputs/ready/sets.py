# The ready kernel sets that fagen_query is asked for: sets.py SPECS DIRECTORY compiles them into the directory and prints their names in
# their order. SPECS: specs of a build.
import pathlib
import subprocess
import sys

specs = pathlib.Path(sys.argv[1])
ready = [line.split() for line in (specs / "ready.txt").read_text().splitlines() if line.endswith(".fa")]
subprocess.run(["fagen", *(specs / spec for _, spec in ready), "-o", sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
print(*(name for name, _ in ready))
