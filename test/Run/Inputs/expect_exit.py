# fagen: runs a command and succeeds if it exits with the code that is expected.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: expect_exit.py CODE COMMAND...
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit(f"exit code {code}, not {sys.argv[1]}")
