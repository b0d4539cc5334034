# fagen: runs a command and fails unless its exit code is CODE: exit-code.py CODE COMMAND...
import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
sys.exit(0 if code == int(sys.argv[1]) else f"{sys.argv[2]} ended with {code}, not with {sys.argv[1]}")
