# fagen: N of the wgmma products of kernel sets in a directory, and whether conformance multiplies with each.
import json
import pathlib
import sys

sizes = set()
for manifest in pathlib.Path(sys.argv[1]).rglob("manifest.json"):
    for row in json.loads(manifest.read_text())["rows"]:
        if row["plan"]["schedule"]["mma"] == "wgmma":
            sizes |= {row["tile_keys"], row["head_dim_v"]}
print("smallest N", min(sizes))
print("all of 8 to 256 by 8:", sizes <= set(range(8, 257, 8)))
