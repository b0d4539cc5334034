"""fagen: the programs of a spec as IR, by variant.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import re
import subprocess


def run(*command: str, text: str = "") -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def programs_of(spec: str) -> dict[str, str]:
    """One compilation of the spec gives the IR of all variants, and a program begins its line with its name."""
    texts = re.split(r"^(?=program @)", run("fagen", spec, "--emit=ir"), flags=re.M)
    return {text.split()[1].removeprefix("@"): text for text in texts if text}
