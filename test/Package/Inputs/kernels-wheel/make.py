"""make.py PREFIX WHEEL: a wheel of an installed package, whose only ready set is packed."""
import os
import sys
import zipfile

prefix, wheel = sys.argv[1:]
with zipfile.ZipFile(wheel, "w") as archive:
    for folder, _, names in os.walk(prefix):
        for path in (os.path.join(folder, name) for name in names):
            if path.endswith("kernels/ready.txt"):
                archive.writestr(os.path.relpath(path, prefix), "packed packed.fa\n")
            else:
                archive.write(path, os.path.relpath(path, prefix))
