# fagen: copies a kernel set and gives its manifest gates: require.py FROM TO NAME RELATION VALUE [BASELINE]
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import pathlib
import shutil
import sys

source, target, *gate = sys.argv[1:]
shutil.rmtree(target, ignore_errors=True)
shutil.copytree(source, target)
path = pathlib.Path(target, "manifest.json")
manifest = json.loads(path.read_text())
if gate:
    name, relation, value, *baseline = gate
    text = f"{name} {relation} {value}" + "".join(f" * {b}" for b in baseline)
    manifest["gates"] = [dict(name=name, relation=relation, value=float(value), baseline="".join(baseline), text=text)]
path.chmod(0o644)
path.write_text(json.dumps(manifest))
