# fagen: if-there.py FILE COMMAND...: runs the command if the file is there; else says that it is not.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import subprocess
import sys

if os.path.exists(sys.argv[1]):
    sys.exit(subprocess.run(sys.argv[2:]).returncode)
print(f"{sys.argv[1]} is not there; not run: {' '.join(sys.argv[2:])}")
