# fagen: `fagen doctor` and `fagen cache`: what they find, what they say to do, what they end with. No framework.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import math
import os
import subprocess
import sys
import time

import pytest

from fagen import _cache, _doctor, _launch, errors


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "fagen", *arguments], capture_output=True, text=True, env=dict(os.environ, **environment))


def by_part(findings):
    return {finding.part: finding for finding in findings}


def test_this_machine(tmp_path):
    began = time.monotonic()
    done = run("doctor", "--json", FAGEN_CACHE_DIR=str(tmp_path / "cache"))
    assert time.monotonic() - began < 60
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"] and not done.stderr
    found = {finding["part"]: finding for finding in said["findings"]}
    assert found["Python"]["state"] == found["fagen"]["state"] == "ok"
    launches = [finding for part, finding in found.items() if part.startswith(("launch", "call"))]
    assert launches and all(finding["state"] in ("ok", "missing") for finding in launches)
    assert done.returncode == (1 if any(f["state"] == "missing" for f in said["findings"]) else 0)
    assert all(finding["remedy"] for finding in said["findings"] if finding["state"] in ("missing", "wrong"))


def test_lines_have_states_and_remedies(tmp_path):
    (tmp_path / "file").write_text("")  # no directory can be made in a file
    done = run("doctor", FAGEN_CACHE_DIR=str(tmp_path / "file" / "cache"), PATH="/nowhere")
    assert done.stdout.startswith("ok      Python") and "fagen doctor: something is missing" in done.stdout.splitlines()[-1]
    assert done.returncode == 1 and "MISSING cache" in done.stdout and "do: FAGEN_CACHE_DIR names another directory" in done.stdout


@pytest.mark.parametrize("error, state, code", [(3e-4, "ok", 0), (0.1, "wrong", 2), (math.inf, "wrong", 2)])
def test_a_wrong_launch_is_told(monkeypatch, error, state, code):
    monkeypatch.setattr(_doctor, "version_of", lambda package: "2.11.0" if package == "torch" else None)
    monkeypatch.setattr(_doctor.shutil, "which", lambda program: None)
    monkeypatch.setattr(_doctor, "launch", lambda mode: dict(error=error))
    monkeypatch.delenv("FAGEN_CXX", raising=False)
    findings = list(_doctor.cpu())
    assert [finding.state for finding in findings] == [state] and _doctor.exit_code(findings) == code


def test_nothing_computes(monkeypatch):
    monkeypatch.setattr(_doctor, "version_of", lambda package: None)
    monkeypatch.setattr(_doctor.shutil, "which", lambda program: None)
    monkeypatch.delenv("FAGEN_CXX", raising=False)
    findings = list(_doctor.cpu())
    assert findings[0].state == "missing" and "g++" in findings[0].remedy and _doctor.exit_code(findings) == 1


@pytest.mark.parametrize("failures, state", [
    ([], "ok"), ([dict(criterion="compile", message="error: expected ';'")], "missing"), ([dict(criterion="error", message="0.2")], "wrong")])
def test_the_emulator(monkeypatch, tmp_path, failures, state):
    tool = tmp_path / "fagen-run"
    said = dict(check=dict(variants=[dict(max_error=1e-4)], cases=[dict(failures=failures) if failures else {}]))
    tool.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(said)}\nEOF\n")
    tool.chmod(0o755)
    assert _doctor.emulated(str(tool)).state == state
    tool.write_text("#!/bin/sh\necho 'fagen-run: error: no C++ compiler found' >&2\nexit 70\n")
    finding = _doctor.emulated(str(tool))
    assert finding.state == "missing" and "no C++ compiler" in finding.found and "FAGEN_CXX" in finding.remedy


def test_a_gpu(monkeypatch):
    said = dict(name="NVIDIA H200", capability=90, sms=132, kernel="h200_k", target="sm_90a", origin="nvrtc", prepared=1.0, error=1e-4,
                nvrtc="/lib/libnvrtc.so.13", nvrtc_version="13.0")
    monkeypatch.setattr(_doctor, "launch", lambda mode, ordinal: said)
    found = by_part(_doctor.gpu(0))
    assert found["GPU 0"].found == "NVIDIA H200, sm_90, 132 SMs" and "(sm_90a)" in found["kernels"].found
    assert found["NVRTC"].found == "13.0 at /lib/libnvrtc.so.13" and found["launch on GPU 0"].state == "ok"
    monkeypatch.setattr(_doctor, "launch", lambda mode, ordinal: dict(refused="no NVRTC: libnvrtc.so.13 cannot be loaded", kind="CompileError",
                                                              stage="prepare", log=""))
    assert by_part(_doctor.gpu(0))["GPU 0"].remedy == "pip install nvidia-cuda-nvrtc"


def test_versions(monkeypatch):
    monkeypatch.setattr(_doctor, "version_of", dict(torch="2.9.1+cu128", jax="0.10.2").get)
    found = by_part(_doctor.frameworks())
    assert found["PyTorch"].state == "missing" and "2.10" in found["PyTorch"].found
    assert found["JAX"].state == "none" and "jax-tvm-ffi" in found["JAX"].remedy


def test_a_launch_that_crashes_or_hangs(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho last words >&2\nkill -SEGV $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(_doctor.sys, "executable", str(python))
    assert _doctor.launch("gpu")["refused"] == "the process ended with -11: last words"
    python.write_text("#!/bin/sh\nexec sleep 9\n")
    monkeypatch.setattr(_doctor, "_TIMEOUT", 0.2)
    assert _doctor.launch("gpu")["refused"] == "it did not end in 0.2 s"


def test_a_part_that_fails_leaves_the_others():
    def failing():
        yield _doctor.Finding("a", "ok", "first")
        raise errors.Error("broken")
    assert [finding.state for finding in _doctor.guarded("a", failing())] == ["ok", "missing"]


def test_reference_is_attention():
    q, k, v = _launch.drawn()
    o = _launch.reference(q, k, [1.0] * len(v))
    assert len(o) == len(q) and all(abs(value - 1) < 1e-12 for value in o)  # weights of a row sum to 1
    far = [0.0] * len(v)
    far[-_launch.DIM:] = [1.0] * _launch.DIM
    o = _launch.reference(q, k, far)
    assert max(o[:_launch.DIM]) == 0 and min(o[-_launch.DIM:]) > 0  # only the last row sees the last key
    assert _launch.largest_error([math.nan, 0], [0, 0]) == math.inf


def test_cache_is_emptied_of_its_own_files(tmp_path):
    key = "0" * 32
    (tmp_path / "emulator").mkdir()
    ours = [f"k-{key}.bin", f"k-{key}.cu", f"k-{key}.bin.12.0", f"emulator/kernel-{key}.bin"]
    for name in ours + ["notes.txt", "k-1.bin", f"emulator/{key}.so"]:
        (tmp_path / name).write_text("x")
    assert "2 kernels" in run("cache", FAGEN_CACHE_DIR=str(tmp_path)).stdout
    done = run("cache", "--empty", FAGEN_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0 and "now: " in done.stdout and "0 kernels" in done.stdout.splitlines()[-1]
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted(["notes.txt", "k-1.bin", f"{key}.so"])
    assert run("cache", FAGEN_CACHE_DIR=str(tmp_path / "none")).stdout.endswith("0 kernels, 0.0 MiB\n")


def test_cache_is_where_the_library_has_it(monkeypatch):
    for name in ("FAGEN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert _cache.directory() is None
    for name, value, expected in (("HOME", "/h", "/h/.cache/fagen"), ("XDG_CACHE_HOME", "/x", "/x/fagen"), ("FAGEN_CACHE_DIR", "/c", "/c")):
        monkeypatch.setenv(name, value)
        assert _cache.directory() == expected


@pytest.mark.parametrize("command", ["doctor", "cache"])
def test_mistakes_of_the_command_line(command):
    done = run(command, "--everything")
    assert done.returncode == 1 and done.stderr.startswith(f"fagen {command}: error: ") and "--help" in done.stderr
