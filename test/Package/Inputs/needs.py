# fagen: what a shared library or program asks of the system: glibc's versions and other libraries.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""needs.py FILE --glibc 2.34 --libraries libc.so.6,...: exits with 1 where FILE asks for more, and says what."""
import argparse
import os
import re
import subprocess
import sys


def objdump(option, file):
    return subprocess.run(["objdump", option, file], check=True, capture_output=True, text=True).stdout


def version(text):
    return tuple(int(part) for part in text.split("."))


parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("--glibc", required=True)
parser.add_argument("--libraries", required=True)
arguments = parser.parse_args()

wanted = re.findall(r"\*UND\*.*GLIBC_([0-9.]+)\)?\s+(\w+)", objdump("-T", arguments.file))
dynamic = objdump("-p", arguments.file)
problems = [
    f"needs {symbol}@GLIBC_{since}, later than {arguments.glibc}"
    for since, symbol in wanted
    if version(since) > version(arguments.glibc)
]
allowed = arguments.libraries.split(",")
problems += [f"needs {name}" for name in re.findall(r"NEEDED\s+(\S+)", dynamic) if name not in allowed]
for problem in problems:
    print(f"{arguments.file}: {problem}", file=sys.stderr)
newest = max((since for since, _ in wanted), key=version)
soname = re.search(r"SONAME\s+(\S+)", dynamic)
print(f"{os.path.basename(arguments.file)}: GLIBC_{newest}, SONAME {soname[1] if soname else 'none'}")
sys.exit(bool(problems))
