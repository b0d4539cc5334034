# fagen: plants a mistake in a generated kernel, checks it on the emulator and prints what was found with the text of
# the lines that the findings name.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# planted.py SET COPY VARIANT CASE OLD NEW [LAST]: of the kernels in SET, copied to COPY, VARIANT's first OLD becomes NEW
# (its last one, if LAST is given).
import json
import pathlib
import shutil
import subprocess
import sys

source, copy, variant, case, old, new = sys.argv[1:7]
shutil.rmtree(copy, ignore_errors=True)
shutil.copytree(source, copy)
(kernel,) = pathlib.Path(copy).glob(f"*/{variant}.cu")
text = kernel.read_text()
before, found, after = text.rpartition(old) if len(sys.argv) > 7 else text.partition(old)
assert found and old.count("\n") == new.count("\n"), f"{kernel} has no '{old}', or its lines would move"
kernel.write_text(before + new + after)

command = ["fagen-run", "check", copy, "--device", "cpu", "--variant", variant, "--case", case, "--json"]
result = subprocess.run(command, stdout=subprocess.PIPE)
assert result.returncode == 2, f"exit code {result.returncode}"
lines = kernel.read_text().split("\n")


def side(access):
    thread = f"thread {access['thread']}" if "thread" in access else "no thread"
    return f"{thread}, {access.get('op', 'no op')} of {access.get('spec', 'no spec')}: {lines[access['line'] - 1].strip()}"


for case in json.loads(result.stdout)["check"]["cases"]:
    for failure in case.get("failures", []):
        if "kind" not in failure:
            print(f"{failure['criterion']}: {failure['message']}")
            continue
        assert failure["file"] == str(kernel), failure["file"]
        print(f"{failure['kind']} by {side(failure['access'])}")
        if "other" in failure:
            print(f"  and {side(failure['other'])}")
        print(f"  {failure['message']}")
