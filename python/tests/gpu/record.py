#!/usr/bin/env python3
# fagen: all that only a GPU can show of the Python package, in one run, as evidence.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""record.py --out DIR [--wheel FILE]... [--note commit=HASH] [--only NAME,...]: runs what stands here next to it and writes a
JSON file for each, with the machine and the versions.

What is timed runs first and alone: `host` (host_time.py) and `bench` (fagen bench). The tests then run side by side: `torch`, `fa2`,
`fa2_kvcache`, `sdpa`, `transformers`, `jax`, `forms`, `lengths`, `gradients`, `gradients_sync`, `mods`, `reports`. Wheels are unpacked into a directory of their own, which Python searches first: no network and no
pip are needed. Prints a line for each. Exits with 0 when all passed, 2 when something failed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as tree
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[2] / "measure"))
from notes import machine, notes_of  # noqa: E402

# Llama 3 8B's attention: what `fagen bench` measures.
MODEL = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
TIMED = ("host", "bench")
TESTS = {"torch": ["test_gpu.py", "-k", "not host_time"],  # the host is busy with the others
         "fa2": ["test_fa2_gpu.py", "-k", "not kvcache"], "fa2_kvcache": ["test_fa2_gpu.py", "-k", "kvcache"],
         "sdpa": ["test_sdpa_gpu.py"], "transformers": ["test_transformers_gpu.py"], "jax": ["test_jax_gpu.py"],
         "forms": ["test_forms_gpu.py"], "lengths": ["test_lengths_gpu.py"], "gradients": ["test_gradients_gpu.py"], "gradients_sync": ["test_gradients_sync_gpu.py"], "mods": ["test_mods_gpu.py"], "reports": ["test_reports_gpu.py"]}
VERSIONS = """import importlib.metadata as m, json
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
import torch
print(json.dumps({"python": __import__("platform").python_version(), "cuda": torch.version.cuda,
    **{n: version(n) for n in ("torch", "transformers", "jax", "flash-attn", "fa3-fwd", "flash-attn-4") if version(n)}}))"""


def unpack(wheels, folder):
    """The wheels' files in a folder, programs executable."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    for program in pathlib.Path(folder).glob("*/bin/*"):
        program.chmod(0o755)


def command_of(name, folder):
    if name == "host":
        return [sys.executable, str(HERE / "host_time.py")]
    if name == "bench":
        model = pathlib.Path(folder, "config.json")
        model.write_text(json.dumps(MODEL), encoding="utf-8")
        return [sys.executable, "-m", "fagen", "bench", "--model", str(model), "--seq", "1024,4096,16384", "--json"]
    file, *options = TESTS[name]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / file), *options,
            f"--junitxml={folder}/{name}.xml"]


def start(name, folder, environment):
    """A step that runs; its output goes to files."""
    with open(f"{folder}/{name}.log", "wb") as log, open(f"{folder}/{name}.err", "wb") as errors:
        process = subprocess.Popen(command_of(name, folder), stdout=log, stderr=errors, env=environment)
    return process, time.monotonic()


def finish(process, begun, seconds):
    """Its exit code and its seconds; it ends when they are over."""
    try:
        process.wait(max(1, seconds - (time.monotonic() - begun)))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return "time is over", time.monotonic() - begun
    return process.returncode, time.monotonic() - begun


def outcomes(file):
    """Of pytest's report: how many cases of each test had which outcome, what did not pass, with the reason, and what cases recorded."""
    tests, others, recorded = {}, [], {}
    for case in tree.parse(file).iter("testcase"):
        said = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        outcome = "passed" if said is None else said.tag
        test = tests.setdefault(case.get("name").split("[")[0], {})
        test[outcome] = test.get(outcome, 0) + 1
        properties = {p.get("name"): float(p.get("value")) for p in case.iter("property")}
        if properties:
            recorded[case.get("name")] = properties
        if said is not None:
            others.append({"case": case.get("name"), "outcome": outcome, "reason": (said.get("message") or "")[:400]})
    return {"tests": tests, "not passed": others, **({"recorded": recorded} if recorded else {})}


def result_of(name, code, folder):
    """What a step measured or found, and its last lines where it failed."""
    log, errors = (pathlib.Path(folder, f"{name}.{kind}").read_text(encoding="utf-8", errors="replace") for kind in ("log", "err"))
    output = {} if code == 0 else {"output": log[-4000:], "errors": errors[-4000:]}
    try:
        return {**({"result": json.loads(log)} if name in TIMED else outcomes(f"{folder}/{name}.xml")), **output}
    except (ValueError, OSError, tree.ParseError):
        return output


def without_folders(text, folder):
    for place in (str(folder), str(HERE.parents[2]), os.path.dirname(sys.executable)):
        text = text.replace(place + "/", "")
    return text


class Recorder:
    """Writes the steps' files."""

    def __init__(self, out, folder, environment, notes):
        self.out, self.folder, self.environment, self.failed = out, folder, environment, False
        pathlib.Path(out).mkdir(parents=True, exist_ok=True)
        versions = subprocess.run([sys.executable, "-c", VERSIONS], env=environment, check=True, stdout=subprocess.PIPE).stdout
        self.head = {"tool": "python/tests/gpu/record.py", "machine": {**machine(), **json.loads(versions)}, "notes": notes}

    def write(self, name, code, seconds):
        data = {**self.head, "command": without_folders(" ".join(command_of(name, self.folder)), self.folder), "exit": code,
                "seconds": round(seconds, 1), **result_of(name, code, self.folder)}
        text = without_folders(json.dumps(data, indent=1), self.folder)
        pathlib.Path(self.out, f"{name}.json").write_text(text + "\n", encoding="utf-8")
        self.failed |= code != 0
        print(f"{name}: exit {code}, {seconds:.0f} s: {json.dumps(data.get('tests', data.get('result', '')))[:300]}", flush=True)

    def run(self, names, seconds):
        """Steps side by side, each for so many seconds at most."""
        running = {name: start(name, self.folder, self.environment) for name in names}
        for name, (process, begun) in running.items():
            self.write(name, *finish(process, begun, seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--wheel", action="append", default=[], metavar="FILE", help="unpacked; found before what is installed")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--only", default=",".join((*TIMED, *TESTS)), metavar="NAME,...")
    parser.add_argument("--seconds", type=int, default=270, help="limit of each step (default: 270)")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - {*TIMED, *TESTS}:
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join((*TIMED, *TESTS))}")
    with tempfile.TemporaryDirectory() as folder:
        unpack(options.wheel, f"{folder}/site")
        path = os.pathsep.join(filter(None, [f"{folder}/site", os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        recorder = Recorder(options.out, folder, environment, notes_of(options.note))
        for name in TIMED:
            recorder.run([name] if name in names else [], options.seconds)
        recorder.run([name for name in TESTS if name in names], options.seconds)
    return 2 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())
