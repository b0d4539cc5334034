# fagen: writes files and a folder that are over their budget, and a file that names a machine's path, for check-layout.test.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

HEAD = "// fagen: too long.\n// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"


def write(name, text):
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD + text)


def function(name, lines, reason=""):
    return f"void {name}(int a,\n    int b) {{{reason}\n" + "  f();\n" * (lines - 3) + "}\n"


write("lib/Emit/Long.cpp", function("emitLong", 41))
write("lib/Emit/Waived.cpp", function("emitWaived", 41, " // check-layout: function of 41 lines, because it is a test"))
write("lib/Emit/Short.cpp", function("emitShort", 40) + function("helper", 80))
write("include/fagen/Passes/Big.h", "int a;\n" * 59)
write("lib/Emit/Path.cpp", "/* " + os.sep + "root/x */\n")
write("lib/Emit/Outside.cpp", "// " + os.pardir + "/Nowhere/a.md\n// " + os.pardir + "/Emit/Outside.cpp\n")
for number in range(41):
    write(f"tools/full/part{number}.h", "")
    write(f"docs/full/part{number}.h", "")
for number in range(40):
    write(f"tools/fits/part{number}.h", "")
write("lib/Analysis/Schemas.cpp", "bool b = kernel.hasOwnParams();\n" * 30)
write("README.md", "\n" * 149)
