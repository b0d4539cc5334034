#!/usr/bin/env python3
# fagen: compiles device headers or kernels to machine code and says what ptxas said, two compilers at a time.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   compile.py headers NVCC INCLUDE OUT         every header below INCLUDE/fagen/device, by itself
#   compile.py kernels NVCC INCLUDE OUT FILE... these kernels; spills fail
import concurrent.futures
import pathlib
import re
import subprocess
import sys

mode, nvcc, include, out = sys.argv[1:5]
out = pathlib.Path(out)
out.mkdir(parents=True, exist_ok=True)


def compile_one(path):
    name = str(path.relative_to(include)) if mode == "headers" else path.name
    source = path
    if mode == "headers":
        source = out / (name.replace("/", "_") + ".cu")
        source.write_text(f"#include <{name}>\n#include <{name}>\n")
    command = [nvcc, "-std=c++17", "--expt-relaxed-constexpr", "-arch=sm_80", "-I", include, "-Xptxas=-v", "-cubin"]
    command += ["-Werror=all-warnings", "-o", str(out / (source.stem + ".cubin")), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode:
        return False, f"{name}: does not compile:\n{said}"
    if mode == "headers":
        return True, f"{name}: compiles"
    registers = re.search(r"Used (\d+) registers", said)
    spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", said))
    if not registers or "bytes spill" not in said:
        return False, f"{name}: ptxas said nothing of registers and spills:\n{said}"
    return spills == 0, f"{name}: {registers.group(1)} registers, {spills} B of spills"


if mode == "headers":
    paths = sorted((pathlib.Path(include) / "fagen" / "device").rglob("*.h"))
else:
    paths = [pathlib.Path(name) for name in sys.argv[5:]]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(compile_one, paths))
print("\n".join(text for _, text in results))
failed = sum(not ok for ok, _ in results)
print(f"{len(results)} {mode}, {failed} failed")
sys.exit(failed != 0)
