# fagen: runs a command, which should use at most so many MiB of memory; ends with the command's code, or 99.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import resource
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
if used > int(sys.argv[1]):
    print(f"{used} MiB were used; {sys.argv[1]} are allowed", file=sys.stderr)
    sys.exit(99)
sys.exit(code)
