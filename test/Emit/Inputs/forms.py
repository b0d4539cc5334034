# forms.py MANIFEST: the forms of a manifest, a line a param, and the first row of each.
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    manifest = json.load(file)
for form in manifest["forms"]:
    print(form["name"], form["text"], form["bytes"], form["lets"])
    for key in ("score", "mask", "sink"):
        print(key, form.get(key))
    for param in form["params"]:
        print(dict(sorted(param.items())))
for row in manifest["rows"]:
    if "form" in row:
        print(row["variant"], row["mask"], row["form"])
