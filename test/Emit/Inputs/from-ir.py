"""fagen: from-ir.py SPEC=SET...: compares each kernel's text in the folder SET with what fagen-opt makes of its IR.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import pathlib
import sys

from programs import programs_of, run


def main() -> None:
    kernels = differ = 0
    for asked in sys.argv[1:]:
        spec, folder = asked.split("=")
        programs = programs_of(spec)
        for file in sorted(pathlib.Path(folder).glob("sm_*/*.cu")):
            program = programs.pop(file.stem, "")
            is_same = program and run("fagen-opt", "-", "--emit=cuda", text=program) == file.read_text(encoding="utf-8")
            kernels, differ = kernels + 1, differ + (not is_same)
            if not is_same:
                print(f"{file.stem}: {'the text differs' if program else f'not of {spec}'}")
        for variant in programs:
            differ += 1
            print(f"{variant}: no text in {folder}")
    print(f"{kernels} kernels, {differ} differ")


main()
