# fagen: tables of what toolchains.py and toolchain_bits.py wrote, and what of it matters; for tables.py and tests.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import re

# What must not depend on the toolchain: memory that a kernel takes, and how it multiplies, copies and waits.
# The rest, instructions and registers, is scheduling as long as gates hold.
MEMORY = ("stack", "spill_stores", "spill_loads", "shared", "LDL", "STL")
DOING = ("barriers", "HGMMA", "HMMA", "UTMALDG", "UTMASTG", "LDGSTS", "SYNCS", "BAR", "WARPGROUP", "USETMAXREG", "FENCE",
         "MEMBAR")


class Toolchain:
    """One of the file's toolchains, its kernels next to those of the first."""

    def __init__(self, data, index):
        self.ptxas, self.nvcc = data["toolchains"][index]["ptxas"], data["toolchains"][index]["nvcc"]
        self.kernels, self.columns, self.index = data["kernels"], data["columns"], index
        self.warnings = {name: row["warnings"][self.ptxas] for name, row in self.kernels.items()
                         if self.ptxas in row["warnings"]}

    def figure(self, row, column):
        """As the first toolchain has it, and as this one."""
        at = self.columns.index(column)
        return row["figures"][0][at], row["figures"][self.index][at]

    def differing(self, columns):
        """Kernels in which any of the columns is another number: {kernel: {column: (first, this)}}."""
        found = {}
        for name, row in self.kernels.items():
            pairs = {column: self.figure(row, column) for column in columns}
            other = {column: pair for column, pair in pairs.items() if pair[0] != pair[1]}
            if other:
                found[name] = other
        return found

    def same_ptx(self):
        return sum(row["same_ptx"][self.index] for row in self.kernels.values())

    def local(self):
        """Kernels that keep anything in local memory."""
        return [name for name, row in self.kernels.items()
                if any(self.figure(row, column)[1] for column in MEMORY if column != "shared")]

    def matters(self):
        """Kernels whose difference is none of scheduling."""
        return sorted({*self.differing(MEMORY + DOING), *self.warnings})


def toolchains_of(data):
    return [Toolchain(data, index) for index in range(len(data["toolchains"]))]


def span(ratios):
    low, high = min(ratios), max(ratios)
    return "the same" if low == high == 0 else f"{low:+.1%} to {high:+.1%}"


def toolchain_row(one, first):
    """The cells of one toolchain."""
    registers = one.differing(["registers"])
    most = max((pair["registers"][1] - pair["registers"][0] for pair in registers.values()), default=0)
    counts = [one.figure(row, "instructions") for row in one.kernels.values()]
    return [one.ptxas, f"nvcc {one.nvcc}" if one.nvcc else f"nvcc {first.nvcc}, ptxas alone is {one.ptxas}", str(one.same_ptx()),
            str(len(one.local())), str(len(one.warnings)), str(len(one.differing(MEMORY + DOING))),
            f"{len(registers)}, at most {most} more" if registers else "0", span([b / a - 1 for a, b in counts])]


def toolchain_table(data, markdown):
    """A row a toolchain; then each kernel that differs in what matters, and in registers."""
    every = toolchains_of(data)
    head = ["ptxas", "PTX by", "the same PTX", "in local memory", "with warnings", "other memory, products, copies or waits",
            "other registers", "instructions"]
    text = [markdown(head, [toolchain_row(one, every[0]) for one in every])]
    for one in every[1:]:
        matters = one.matters()
        if matters:
            text.append(f"By {one.ptxas} differ in what matters: {', '.join(matters)}.")
        registers = one.differing(["registers"])
        if registers:
            words = (f"`{name}` {pair['registers'][0]} to {pair['registers'][1]}" for name, pair in registers.items())
            text.append(f"Registers from {every[0].ptxas} to {one.ptxas}: {', '.join(words)}.")
    notes = ", ".join(f"{key} {value}" for key, value in data["notes"].items())
    text.append(f"{len(data['kernels'])} kernels of generated/; numbers are kernels, compared with ptxas {every[0].ptxas}: {notes}.")
    return "\n\n".join(text)


def bits_table(data, markdown):
    """A row for each schedule: its kernels, and how many cases gave the same bits by all toolchains."""
    groups = {}
    for name, (cases, different, failed) in data["kernels"].items():
        schedule = re.sub(r"_(f16|bf16)_d\d+(x\d+)?_(none|causal).*", "", name)
        row = groups.setdefault(schedule, [0, 0, 0, 0])
        for at, number in enumerate((1, cases, different, failed)):
            row[at] += number
    rows = [[f"`{schedule}`", *map(str, row)] for schedule, row in sorted(groups.items())]
    head = ["schedule", "kernels", "cases", "with other bits", "failed runs"]
    text = [markdown(head, rows)]
    text += [f"Other bits: `{one['variant']}` on \"{one['case']}\": "
             + ", ".join(f"{version} {digest[:8]}" for version, digest in one["digests"].items()) + "."
             for one in data["different"]]
    text += [f"Failed: `{one['variant']}` on \"{one['case']}\" by {one['toolchain']}." for one in data["failed"]]
    text += [f"Not compared: of {version}, {len(names)} kernels ran by other machine code than its own."
             for version, names in data["refused"].items()]
    if data["not_run"]:
        text.append(f"No case was run of {', '.join(data['not_run'])}.")
    machine, notes = data["machine"], data["notes"]
    words = [f"{len(data['kernels'])} kernels by ptxas {', '.join(data['toolchains'])}", machine.get("gpu") or machine.get("cpu"),
             *(f"{key} {value}" for key, value in notes.items())]
    return "\n\n".join([*text, ", ".join(words) + "."])
