# fagen: lays out specs and mangled copies of them: format-all.py DIR SPEC...
import os
import subprocess
import sys

here, directory = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]


def same(a, b):
    subprocess.run([sys.executable, os.path.join(here, "same-tokens.py"), a, b], check=True)


def layOut(path):
    """The file laid out, as another file; the second time nothing changes."""
    out = os.path.join(directory, "out.fa")
    with open(out, "w", encoding="utf-8") as file:
        subprocess.run(["fagen", "fmt", path], stdout=file, check=True)
    subprocess.run(["fagen", "fmt", "--check", out], check=True)
    same(path, out)


count = 0
for number, spec in enumerate(sys.argv[2:]):
    layOut(spec)
    for seed in range(3):
        mangled = os.path.join(directory, "mangled.fa")
        with open(mangled, "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, os.path.join(here, "mangle.py"), spec, str(4 * number + seed)], stdout=file, check=True)
        layOut(mangled)
    count += 4
print(f"{count} specs are laid out and stay the same")
