# fagen: runs a tool whose standard output has no room, and says what is not as it should be.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import subprocess
import sys

with open("/dev/full", "w") as full:
    result = subprocess.run(sys.argv[1:], stdout=full, stderr=subprocess.PIPE, text=True)
# The reason follows, where a library has not swallowed it.
expected = f"{os.path.basename(sys.argv[1])}: error: cannot write standard output"
if result.returncode != 1 or not result.stderr.splitlines()[-1].startswith(expected):
    sys.exit(f"{' '.join(sys.argv[1:])} ended with {result.returncode} and said:\n{result.stderr}")
