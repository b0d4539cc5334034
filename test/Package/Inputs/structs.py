# structs.py STRUCTS.PY OUT.C: prints the size of each struct and the offset of each member as ctypes has them, and writes a
# program that prints the same as C has them.
import ctypes
import importlib.util
import re
import sys

spec = importlib.util.spec_from_file_location("structs", sys.argv[1])
structs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(structs)
lines = []
for name, kind in vars(structs).items():
    if not isinstance(kind, type) or not issubclass(kind, ctypes.Structure) or not hasattr(kind, "_fields_"):
        continue
    c = "fagen_" + re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
    print(c, ctypes.sizeof(kind))
    lines.append(f'printf("{c} %zu\\n", sizeof({c}));')
    for member, *_ in kind._fields_:
        print(f"{c}.{member.rstrip('_')}", getattr(kind, member).offset)
        lines.append(f'printf("{c}.{member.rstrip("_")} %zu\\n", offsetof({c}, {member.rstrip("_")}));')
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write("#include <fagen/table.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
