# fagen: kernel sets of one kernel whose text is made wrong, what fagen-run check says of them, and a file of results.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import hashlib
import json
import os
import re
import subprocess
import sys


def generate(fagen, spec, folder):
    """Kernel sets of a spec; those of a spec that is refused end the program."""
    run = subprocess.run([fagen, spec, "-o", folder], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: fagen ends with {run.returncode}: {run.stderr.strip()}")


def rows_of(folder):
    """Manifest, row and text of each kernel of a kernel set."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    for row in manifest["rows"]:
        with open(os.path.join(folder, row["source"]), encoding="utf-8") as file:
            yield manifest, row, file.read()


def write_set(folder, manifest, row, text):
    """A kernel set of this row alone, with this text."""
    source = os.path.join(folder, row["source"])
    os.makedirs(os.path.dirname(source), exist_ok=True)
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(dict(manifest, rows=[row]), file)


def check(fagen_run, folder, variant, arguments, seconds):
    """Criterion, case and message of the first failure of a check on the emulator; empty where it passes."""
    command = [fagen_run, "check", folder, "--device", "cpu", "--variant", variant, "--first-failure",
               *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                             env=dict(os.environ, FAGEN_CACHE_DIR=os.path.join(folder, "cache")))
    except subprocess.TimeoutExpired:
        return "no end", "", f"in {seconds} s"
    if run.returncode not in (0, 2):
        sys.exit(f"{os.path.basename(sys.argv[0])}: fagen-run check ends with {run.returncode}: {run.stderr.strip()}")
    if run.returncode == 0:
        return "", "", ""
    found = re.search(r'^\S+ on "(.*)"\n  (\w[\w-]*): (.*)$', run.stderr, re.M)
    if not found:
        sys.exit(f"{os.path.basename(sys.argv[0])}: no failure in what fagen-run says: {run.stderr.strip()}")
    message = re.sub(r"^\S*/", "", found[3])
    kind = re.match(r"[\w.-]+:\d+: ([\w-]+):", message)
    return kind[1] if kind else found[2], found[1], message


def default_check(fagen_run, folder, variant, seconds):
    """Of the suite that fagen-run check takes without a GPU."""
    return check(fagen_run, folder, variant, ["--suite", "smoke"], seconds)


def own_problems(fagen_run, folder, variant, seconds):
    """Problems of that suite whose results are the same bits where they are asked alone, cheap ones first."""
    def cases_of(*arguments):
        path = os.path.join(folder, "cases.json")
        subprocess.run([fagen_run, "check", folder, "--device", "cpu", "--variant", variant, "--output", path, *arguments],
                       capture_output=True, timeout=seconds, check=False)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return json.load(file)["check"]["cases"]
    of_suite = cases_of("--suite", "smoke")
    alone = cases_of("--runs", "1", *(word for case in of_suite for word in ("--case", case["case"]))) if of_suite else []
    same = [case for case, other in zip(of_suite, alone) if (case["case"], case["digest"]) == (other["case"], other["digest"])]
    return [case["case"] for case in sorted(same, key=lambda case: case["seconds"])]


def machine_code(fagen_run, folder, row):
    """What the emulator's compiler makes of a set of one kernel with -O2, where that is one that takes it; None where nothing is kept.
    Two kernels with the same are the same."""
    compiler, cache = os.path.join(folder, "compiler"), os.path.join(folder, "optimised")
    with open(compiler, "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/bash
for word; do [ "$word" = -Og ] && word=-O2; words+=("$word"); done
exec {os.environ.get("FAGEN_CXX", "c++")} "${{words[@]}}"
""")
    os.chmod(compiler, 0o700)
    case = ",".join(map(str, (1, 1, 1, 1, 1, row["head_dim_qk"], row["head_dim_v"])))
    subprocess.run([fagen_run, "check", folder, "--device", "cpu", "--variant", row["variant"], "--runs", "1", "--case", case],
                   capture_output=True, timeout=300, check=False, env=dict(os.environ, FAGEN_CXX=compiler, FAGEN_CACHE_DIR=cache))
    kept = [os.path.join(at, name) for at, _, names in os.walk(cache) for name in names if name.endswith(".bin")]
    if len(kept) != 1:
        return None
    with open(kept[0], "rb") as file:
        data = file.read()
    return hashlib.sha256(data[data.index(b"\x7fELF"):]).hexdigest()


class Results:
    """What is known already, by a key that JSON can hold, and a file to which each new result is added."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    entry = json.loads(line)
                    self.known[json.dumps(entry["key"])] = entry

    def of(self, key):
        return self.known.get(json.dumps(key))

    def add(self, entry):
        """Keeps a result, unless there is none."""
        if entry is None:
            return None
        self.known[json.dumps(entry["key"])] = entry
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        return entry
