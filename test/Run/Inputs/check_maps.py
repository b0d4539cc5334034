# fagen: the bank maps in a directory, against the sites in the JSON of the same run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import os
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
directory, results = sys.argv[1:]
with open(results, encoding="utf-8") as file:
    kernel = json.load(file)["conflicts"][0]
for site in kernel["sites"]:
    name = f"{kernel['symbol']}_line{site['line']}_{site['kind']}_{site['bytes']}B.svg"
    root = xml.parse(os.path.join(directory, name)).getroot()
    title = root.find(SVG + "title").text
    if kernel["variant"] not in title or site["op"] not in title:
        sys.exit(f"{name}: title '{title}'")
    legend = 5
    cells = sum(rect.get("class").startswith("m") for rect in root.iter(SVG + "rect")) - legend
    words = sum(max(1, site["bytes"] // 4) for address in site["worst"] if address is not None)
    if cells != words:
        sys.exit(f"{name}: {cells} cells for {words} words")
if len(os.listdir(directory)) != len(kernel["sites"]):
    sys.exit("maps without a site")
print(f"{len(kernel['sites'])} maps")
