"""site.py SOURCE PAGES: makes the site of the pages by build/site-tools, twice: as they are, and with a dead link and a missing heading."""
import os
import subprocess
import sys

source, pages = sys.argv[1:]
mkdocs = os.path.join(source, "build", "site-tools", "bin", "mkdocs")
if not os.path.exists(mkdocs):
    sys.exit(print("no MkDocs in build/site-tools"))


def make():
    return subprocess.run([mkdocs, "build", "--strict", "--clean", "--config-file", os.path.join(pages, "mkdocs.yml")], capture_output=True, text=True)


done = make()
if done.returncode:
    sys.exit(done.stderr)
with open(os.path.join(pages, "pages", "docs", "Versions.md"), "a", encoding="utf-8") as file:
    file.write("\nA [page](Nowhere.md) and a [heading](Python.md#nowhere).\n")
broken = make()
assert broken.returncode, broken.stderr
print(f"the site is made; a dead link and a missing heading are {broken.stderr.count('WARNING')} warnings")
