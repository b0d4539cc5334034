# Every library that a build looks for stands in THIRD-PARTY-LICENSES, or is not inside a binary: licences.py SOURCE
import pathlib
import re
import sys

INSIDE = {"fmt": "{fmt}", "LLVM": "LLVM", "SQLite3": "SQLite", "nlohmann_json": "JSON for Modern C++", "CLI11": "CLI11",
          "Boost": "Boost.Context"}
OUTSIDE = {"Threads", "GTest", "benchmark", "fagen"}
source = pathlib.Path(sys.argv[1])
listed = re.findall(r"={50,}\n(.*)\n={50,}\n", (source / "THIRD-PARTY-LICENSES").read_text())
for folder in ("cmake", "lib", "runtime", "emulator", "lab", "tools", "python"):
    for file in [source / "CMakeLists.txt", *(source / folder).rglob("CMakeLists.txt"), *(source / folder).rglob("*.cmake")]:
        for name in re.findall(r"find_package\((\w+)", file.read_text()):
            if name not in OUTSIDE and INSIDE.get(name) not in listed:
                sys.exit(f"{file.relative_to(source)}: {name} has no licence in THIRD-PARTY-LICENSES")
for header in ("xxhash.h",):  # without a package of CMake's
    assert "xxHash" in listed, header
print(f"{len(listed)} licences")
