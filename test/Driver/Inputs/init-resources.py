# fagen: specs as `fagen init` writes them pass their own gates on resources.
#
# init-resources.py GPU [DIM...]: of these head dims, or of all that it offers. Runs nvcc.
import re
import subprocess
import sys

gpu, dims = sys.argv[1], sys.argv[2:] or [*map(str, range(16, 257, 16)), "192:128", "64:256", "256:64"]
failed = 0
for dim in dims:
    name = f"{gpu}_{dim.replace(':', 'x')}.fa"
    written = subprocess.run(["fagen", "init", f"--gpu={gpu}", f"--head-dim={dim}", "--mask=causal"], capture_output=True,
                             text=True, check=True)
    with open(name, "w") as out:
        out.write(written.stdout)
    run = subprocess.run(["fagen", name, "-o", "out", "--check-resources"], capture_output=True, text=True)
    measured = re.findall(r"\d+ B spilled", run.stdout)
    if run.returncode != 0 or not measured or run.stderr:
        failed += 1
        print(f"{gpu} {dim}: exit code {run.returncode}, {len(measured)} kernels measured\n{run.stdout}{run.stderr}", flush=True)
print(f"{len(dims)} specs, {failed} that fail their gates")
sys.exit(2 if failed else 0)
