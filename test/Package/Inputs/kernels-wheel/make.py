"""make.py PREFIX WHEEL: a wheel of an installed package, whose ready sets are packed and one program of each set of programs."""
import os
import sys
import zipfile

READY = "packed packed.fa\nragged ragged_f16_d64_none.fair\npaged paged_f16_d64.fair\nbackward backward_f16_d64.fair\nbackward_sync backward_sync_f16_d64.sm_80.fair\n"
prefix, wheel = sys.argv[1:]
with zipfile.ZipFile(wheel, "w") as archive:
    for folder, _, names in os.walk(prefix):
        for path in (os.path.join(folder, name) for name in names):
            if path.endswith("kernels/ready.txt"):
                archive.writestr(os.path.relpath(path, prefix), READY)
            else:
                archive.write(path, os.path.relpath(path, prefix))
