# fagen: the wheel fagen_kernels: the ready kernels of a fagen wheel with their machine code.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kernels_wheel.py --wheel FAGEN_WHEEL --nvcc FILE --archs 80,86,89,90 --output DIR: prints the path of the wheel.

The compiler and the specs are those of FAGEN_WHEEL, so that the texts are its own; kernels/stamp.txt, which both have, says so.
"""
import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

AT_FIRST_USE = {"backward_sync"}  # gradients on GPUs without wgmma: a program of each shape for each GPU would be half of the wheel

_WHEEL = "Wheel-Version: 1.0\nGenerator: fagen\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_METADATA = """Metadata-Version: 2.1
Name: fagen-kernels
Version: {version}
Summary: Machine code of fagen's ready kernels for compute capabilities {archs}: without NVRTC from the first call on
License: Apache-2.0 WITH LLVM-exception
Requires-Dist: fagen=={version}
"""


def unpack(wheel, folder):
    """The fagen wheel's files, its programs as programs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    os.chmod(os.path.join(folder, "fagen", "bin", "fagen"), 0o755)
    return os.path.join(folder, "fagen")


def compile_sets(package, nvcc, archs, output):
    """Each set of ready.txt with its machine code; a line each, for it takes minutes."""
    with open(os.path.join(package, "kernels", "ready.txt"), encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    sets = {}
    for name, spec in lines:
        if name in AT_FIRST_USE:
            continue
        sets.setdefault(name, []).append(os.path.join(package, "specs", spec))
    for count, (name, specs) in enumerate(sets.items()):
        print(f"[{count + 1}/{len(sets)}] {name} for {archs}", file=sys.stderr, flush=True)
        programs = [f"--set={name}"] if specs[0].endswith(".fair") else []
        subprocess.run([os.path.join(package, "bin", "fagen"), *specs, *programs, "-o", output, f"--cubins={archs}", f"--nvcc={nvcc}"],
                       check=True, stdout=subprocess.DEVNULL)
    for name in ("ready.txt", "stamp.txt"):
        with open(os.path.join(package, "kernels", name), encoding="utf-8") as source:
            with open(os.path.join(output, name), "w", encoding="utf-8") as target:
                target.writelines(line for line in source if not AT_FIRST_USE.intersection(line.split()[:1]))


def without_plans(output):
    """Rows' plans, which tell how a kernel was compiled, are nine tenths of a manifest; no launch reads them."""
    for name in os.listdir(output):
        path = os.path.join(output, name, "manifest.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                manifest = json.load(file)
            for row in manifest["rows"]:
                row.pop("plan", None)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(manifest, file, separators=(",", ":"))


def contents(output, version, archs):
    """(name in the wheel, bytes) of all files but RECORD."""
    yield "fagen_kernels/__init__.py", b'"""Machine code of the ready kernels; fagen finds it here."""\n'
    for folder, _, names in sorted(os.walk(output)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                yield f"fagen_kernels/kernels/{os.path.relpath(path, output)}", file.read()
    yield f"fagen_kernels-{version}.dist-info/METADATA", _METADATA.format(version=version, archs=archs).encode()
    yield f"fagen_kernels-{version}.dist-info/WHEEL", _WHEEL.encode()


def write_wheel(path, files, version):
    record, name = "", f"fagen_kernels-{version}.dist-info/RECORD"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{file},sha256={digest},{len(content)}\n"
            archive.writestr(file, content)
        archive.writestr(name, record + f"{name},,\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--wheel", "--nvcc", "--archs", "--output"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    version = re.match(r"fagen-([^-]+)-", os.path.basename(options.wheel))[1]
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.join(folder, "kernels")
        compile_sets(unpack(options.wheel, folder), options.nvcc, options.archs, kernels)
        without_plans(kernels)
        path = os.path.join(options.output, f"fagen_kernels-{version}-py3-none-any.whl")
        write_wheel(path, contents(kernels, version, options.archs), version)
    print(path)


if __name__ == "__main__":
    main()
