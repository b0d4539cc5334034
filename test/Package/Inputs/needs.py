# fagen: what a shared library or program asks of the system: glibc's versions and other libraries.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""needs.py FILE --glibc 2.34 --libraries libc.so.6,...: exits with 1 where FILE asks for more, and says what."""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))
from wheel_tag import asked_of, numbers, symbols_of  # noqa: E402 (scripts/wheel_tag.py)

parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("--glibc", required=True, type=numbers)
parser.add_argument("--libraries", required=True)
arguments = parser.parse_args()


def text(version):
    return ".".join(map(str, version))


versions, libraries = asked_of(arguments.file)
glibc = sorted(version for name, version in versions if name == "GLIBC")
problems = [f"needs {symbol}@GLIBC_{text(version)}, later than {text(arguments.glibc)}"
            for version in glibc if version > arguments.glibc for symbol in symbols_of(arguments.file, version) or ["something"]]
allowed = arguments.libraries.split(",")
problems += [f"needs {name}" for name in libraries if name not in allowed]
for problem in problems:
    print(f"{arguments.file}: {problem}", file=sys.stderr)
soname = re.search(r"SONAME\s+(\S+)", subprocess.run(["objdump", "-p", arguments.file], check=True, capture_output=True, text=True).stdout)
print(f"{os.path.basename(arguments.file)}: GLIBC_{text(glibc[-1])}, SONAME {soname[1] if soname else 'none'}")
sys.exit(bool(problems))
