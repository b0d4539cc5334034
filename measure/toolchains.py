#!/usr/bin/env python3
# fagen: what several toolchains make of the same kernel texts: resources, warnings, and what the machine code is made of.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""toolchains.py DIR... --toolchain NVCC --toolchain NVCC [--assembler PTXAS] --nvdisasm NVDISASM --output FILE

Compiles every kernel of each DIR (what fagen wrote, with its manifest.json) by every toolchain: the first is the one that
others are compared with. A toolchain is nvcc and the ptxas of its folder, and called by ptxas's version. An --assembler
is a ptxas alone, which takes the PTX of the first toolchain; where it is older than this PTX, the `.version` is lowered to
what it speaks. nvdisasm must know the newest of them.

A row of the result is a kernel; for each toolchain one list of numbers, in the order of `columns`: what ptxas -v says, and
how often the machine code has each opcode. Bytes are bytes a thread; of shared memory bytes a CTA, without what a launch
asks for. `same_ptx` is 1 where the PTX is that of the first toolchain. --cubins FOLDER keeps the machine code, as
FOLDER/VERSION/KERNEL.cubin; with --arch of another target than the kernel's. measure/tables.py makes a table of it."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

from notes import machine, notes_of

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
FLAGS = ["-std=c++17", "-O3", "--expt-relaxed-constexpr"]
RESOURCES = ("registers", "stack", "spill_stores", "spill_loads", "shared", "barriers")
# What a kernel multiplies, moves and waits with, and what it keeps in local memory.
OPCODES = ("HGMMA", "HMMA", "UTMALDG", "UTMASTG", "LDGSTS", "LDSM", "STSM", "LDS", "STS", "LDG", "STG", "LDL", "STL",
           "SYNCS", "BAR", "WARPGROUP", "USETMAXREG", "FENCE", "MEMBAR", "MUFU", "SHFL")
COLUMNS = (*RESOURCES, "instructions", *OPCODES)
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")


def fail(message):
    print(f"toolchains.py: error: {message}", file=sys.stderr)
    sys.exit(1)


def run(command):
    """What the command printed on both streams."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        fail(f"{command[0]} does not run: {error.strerror}")
    if done.returncode:
        fail(f"{' '.join(command)}: {done.stdout.strip()[-2000:]}")
    return done.stdout


def version_of(program):
    match = re.search(r"V(\d+\.\d+\.\d+)", run([program, "--version"]))
    if not match:
        fail(f"{program} --version names no version: is it nvcc or ptxas?")
    return match[1]


class Kernel:
    def __init__(self, directory, row, arch):
        self.name, self.source = row["variant"], os.path.join(directory, row["source"])
        self.target = arch or row["target"]


def kernels_of(directories, arch):
    kernels = []
    for directory in directories:
        try:
            with open(os.path.join(directory, "manifest.json"), encoding="utf-8") as file:
                kernels += [Kernel(directory, row, arch) for row in json.load(file)["rows"]]
        except OSError as error:
            fail(f"{directory} has no manifest.json, which fagen -o writes: {error.strerror}")
    return kernels


class Assembler:
    """A ptxas, and what turns a kernel's text into PTX for it."""

    def __init__(self, ptxas, nvcc):
        self.ptxas, self.nvcc, self.version = ptxas, nvcc, version_of(ptxas)

    def ptx(self, kernel, include, folder):
        path = os.path.join(folder, "kernel.ptx")
        run([self.nvcc, f"-arch={kernel.target}", *FLAGS, "-I", include, "-ptx", "-o", path, kernel.source])
        with open(path, encoding="utf-8") as file:
            return file.read()

    def lowered(self, ptx):
        """PTX ISA 9.0 came with 13.0, 8.8 with 12.9, and so on; an assembler takes its own and older ones."""
        major, minor = map(int, self.version.split(".")[:2])
        spoken = (9, minor) if major == 13 else (8, minor - 1) if major == 12 else None
        written = tuple(map(int, re.search(r"^\.version (\d+)\.(\d+)", ptx, re.M).groups()))
        if spoken is None or written <= spoken:
            return ptx
        return re.sub(r"^\.version .*", f".version {spoken[0]}.{spoken[1]}", ptx, count=1, flags=re.M)

    def assemble(self, ptx, target, folder):
        """The path of the machine code, and what ptxas said."""
        source, cubin = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w", encoding="utf-8") as file:
            file.write(self.lowered(ptx))
        return cubin, run([self.ptxas, "-O3", "-v", f"-arch={target}", source, "-o", cubin])


def figures(log):
    """What `ptxas -v` says of the one kernel."""
    def number(pattern):
        match = re.search(pattern, log)
        return int(match[1]) if match else 0
    return {"registers": number(r"Used (\d+) registers"), "stack": number(r"(\d+) bytes stack frame"),
            "spill_stores": number(r"(\d+) bytes spill stores"), "spill_loads": number(r"(\d+) bytes spill loads"),
            "shared": number(r"(\d+) bytes smem"), "barriers": number(r"used (\d+) barriers")}


def warnings(log):
    """Numbered notes of the compiler, "C7510", and lines that warn, with how often."""
    found = re.findall(r"\((C\d{4})\)", log)
    found += ["warning" for line in log.splitlines() if re.search(r"\bwarning\b", line, re.I) and not re.search(r"\(C\d{4}\)", line)]
    return dict(sorted(collections.Counter(found).items()))


def opcodes(sass):
    return collections.Counter(name for name in INSTRUCTION.findall(sass) if name != "NOP")


def plain(ptx):
    """PTX without what tells only who wrote it."""
    return re.sub(r"(?m)^(//.*|\.version .*)\n", "", ptx)


class Study:
    def __init__(self, assemblers, nvdisasm, include, cubins):
        self.assemblers, self.nvdisasm, self.include, self.cubins = assemblers, nvdisasm, include, cubins

    def measured(self, kernel, assembler, ptx, folder):
        cubin, log = assembler.assemble(ptx, kernel.target, folder)
        said = figures(log)
        counted = opcodes(run([self.nvdisasm, "-c", cubin]))
        if not said["registers"] or not counted:
            fail(f"nothing is known of {kernel.name} by ptxas {assembler.version}: {log.strip()}")
        if self.cubins:
            os.makedirs(os.path.join(self.cubins, assembler.version), exist_ok=True)
            os.replace(cubin, os.path.join(self.cubins, assembler.version, kernel.name + ".cubin"))
        numbers = {**said, "instructions": sum(counted.values()), **{name: counted[name] for name in OPCODES}}
        return [numbers[name] for name in COLUMNS], warnings(log)

    def row(self, kernel):
        row = {"target": kernel.target, "figures": [], "warnings": {}, "same_ptx": []}
        with tempfile.TemporaryDirectory() as folder:
            first = None
            for assembler in self.assemblers:
                ptx = assembler.ptx(kernel, self.include, folder) if assembler.nvcc else first
                first = first or ptx
                numbers, said = self.measured(kernel, assembler, ptx, folder)
                row["figures"].append(numbers)
                row["same_ptx"].append(int(plain(ptx) == plain(first)))
                if said:
                    row["warnings"][assembler.version] = said
        return row


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", metavar="DIR")
    parser.add_argument("--toolchain", action="append", required=True, metavar="NVCC")
    parser.add_argument("--assembler", action="append", default=[], metavar="PTXAS")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--include", default=os.path.join(ROOT, "runtime/include"), help="where fagen/device is")
    parser.add_argument("--kernels", default="", help="only those whose name matches this regular expression")
    parser.add_argument("--arch", help="instead of each kernel's target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", required=True)
    parser.add_argument("--cubins", metavar="FOLDER")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    return parser.parse_args()


def main():
    options = parse()
    assemblers = [Assembler(os.path.join(os.path.dirname(nvcc), "ptxas"), nvcc) for nvcc in options.toolchain]
    assemblers += [Assembler(ptxas, None) for ptxas in options.assembler]
    kernels = [kernel for kernel in kernels_of(options.directories, options.arch) if re.search(options.kernels, kernel.name)]
    if not kernels:
        fail(f"no kernel's name matches '{options.kernels}'")
    study = Study(assemblers, options.nvdisasm, options.include, options.cubins)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = dict(zip((kernel.name for kernel in kernels), pool.map(study.row, kernels)))
    toolchains = [{"ptxas": a.version, "nvcc": version_of(a.nvcc) if a.nvcc else None} for a in assemblers]
    head = {"tool": "toolchains.py", "machine": machine(), "notes": notes_of(options.note), "toolchains": toolchains,
            "columns": COLUMNS}
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}" for name, row in rows.items())
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(json.dumps(head, separators=(",", ":"))[:-1] + ',\n"kernels":{\n' + lines + "\n}}\n")
    print(f"{len(rows)} kernels by {', '.join(a.version for a in assemblers)}")


if __name__ == "__main__":
    main()
