# The kernel sets of the Python package: sets.py SOURCE DIRECTORY compiles their specs into the directory and prints their names
# in the order that the package asks them in.
import ast
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1])
specs = re.search(r"set\(specs ([\w ]+)\)", (source / "python" / "CMakeLists.txt").read_text())[1].split()
files = [str(source / "specs" / f"{spec}.fa") for spec in specs]
subprocess.run(["fagen", *files, "-o", sys.argv[2]], check=True, stdout=subprocess.DEVNULL)
code = (source / "python" / "fagen" / "_kernels.py").read_text()
print(*ast.literal_eval(re.search(r"^_READY = (\(.*\))$", code, re.M)[1]))
