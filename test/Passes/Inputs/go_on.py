"""fagen: go_on.py FILE.fair|SPEC.fa:VARIANT...: stops after each pass, and goes on from that text with fagen-opt --lower.

Prints each pass after which the result is not the one without a stop, and how many texts gave the same.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import re
import subprocess
import sys


def run(command: list[str], text: str = "") -> str:
    """What it prints, or its errors."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else done.stdout


def lowering(source: str) -> list[str]:
    if source.endswith(".fair"):
        return ["fagen-opt", source, "--lower"]
    spec, variant = source.rsplit(":", 1)
    return ["fagen", spec, "--emit=ir", f"--variant={variant}"]


same = different = 0
for source in sys.argv[1:]:
    command = lowering(source)
    passes = re.findall(r"^// \S+ after (\S+)", run([*command, "--print-after-all"]), re.M)
    straight = run(command)
    for name in passes:
        if name == "resolve-options":  # the next one needs the spec
            continue
        text = run([*command, f"--stop-after={name}"])
        result = run(["fagen-opt", "-", "--lower"], text)
        if result == straight:
            same += 1
        else:
            different += 1
            print(f"{source}: after {name}: {result[:300]}")
print(f"{same} texts go on, {different} do not")
