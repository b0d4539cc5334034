# The ready kernel sets: sets.py SOURCE DIRECTORY compiles their specs into the directory and prints their names in their order.
import pathlib
import subprocess
import sys

specs = pathlib.Path(sys.argv[1]) / "specs"
ready = [line.split() for line in (specs / "ready.txt").read_text().splitlines() if not line.startswith("#")]
programs = {f"--set={name}" for name, spec in ready if spec.endswith(".fair")}
subprocess.run(["fagen", *(specs / spec for _, spec in ready), *programs, "-o", sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
print(*dict.fromkeys(name for name, _ in ready))
