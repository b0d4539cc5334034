# fagen: `fagen doctor`: what fagen finds on this machine, one checked launch, and what to do about what is missing.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks each part and judges nothing by the others: a finding has a state, words and, where something is to be done, a remedy."""
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple, Optional

from . import _cache, _kernels, _launch, _lib, errors
from ._command import Parser

_SOUND, _INCOMPLETE, _WRONG = 0, 1, 2
_TIMEOUT = 40  # seconds for a launch
_OLDEST_TORCH, _OLDEST_CAPABILITY = (2, 10), 80
_EMULATED_SET, _EMULATED_VARIANT = "l4_fp16", "l4_fp16_prefill_f16_d64_causal"
_TYPES, _HEAD_DIMS = ("f16", "bf16"), (64, 96, 128, 192, 256)
_NO_DRIVER = ("install NVIDIA's driver; a container is started with its GPUs (docker run --gpus all); on WSL 2 Windows' own driver "
              "brings /usr/lib/wsl/lib/libcuda.so.1")
_EXAMPLES = """exit codes: 0 kernels run here, on a GPU or without one, and a launch was right; 1 something is missing, with what to do;
2 a launch was wrong; 70 a mistake of fagen's own"""


class Finding(NamedTuple):
    """What was found of one part. state: ok; none, where it is absent and nothing needs it; missing; wrong."""
    part: str
    state: str
    found: str
    remedy: Optional[str] = None


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def system():
    libc = " ".join(platform.libc_ver())
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}; {platform.system()} {platform.machine()}, {libc}")
    try:
        ran = subprocess.run([_lib.path("bin", "fagen"), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
        _lib.library()
        yield Finding("fagen", "ok", f"{ran} at {_lib.PACKAGE}")
    except (errors.Error, OSError, subprocess.CalledProcessError) as error:
        yield Finding("fagen", "missing", f"its compiler or library does not start: {error}", "pip install --force-reinstall fagen")


def machine_code():
    """The wheel fagen_kernels, where it is installed."""
    directory, is_of_these = _kernels.with_machine_code()
    if directory and is_of_these:
        yield Finding("fagen-kernels", "ok", f"machine code at {directory}")
    elif directory:
        yield Finding("fagen-kernels", "missing", f"{directory} is of another build of fagen, and not used",
                      "install the two wheels that scripts/build-wheel --kernels made together, or pip uninstall fagen-kernels")


def frameworks():
    torch = version_of("torch")
    numbers = tuple(map(int, re.findall(r"\d+", torch)[:2])) if torch else ()
    if torch and numbers < _OLDEST_TORCH:
        yield Finding("PyTorch", "missing", f"{torch}; fagen.torch needs 2.10 or later", "pip install --upgrade torch")
    else:
        yield Finding("PyTorch", "ok" if torch else "none", torch or "not installed", None if torch else "fagen.attention needs it: pip install torch")
    jax, front = version_of("jax"), version_of("jax-tvm-ffi")
    if jax and not front:
        yield Finding("JAX", "none", f"{jax} without jax-tvm-ffi", "fagen.jax needs it: pip install jax-tvm-ffi")
    else:
        yield Finding("JAX", "ok" if jax else "none", f"{jax}, jax-tvm-ffi {front}" if jax else "not installed; only fagen.jax needs it")
    if version_of("transformers"):
        yield Finding("transformers", "ok", version_of("transformers"))


def launch(mode, number=0, cache=None):
    """What _launch prints, as a dictionary; where it crashes or hangs, {"refused": why}."""
    environment = dict(os.environ, FAGEN_VERBOSE="1", **({"FAGEN_CACHE_DIR": cache} if cache else {}))
    try:
        done = subprocess.run([sys.executable, "-m", "fagen._launch", mode, str(number)], capture_output=True, text=True,
                              timeout=_TIMEOUT, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return dict(refused=f"it did not end in {_TIMEOUT} s", log="")
    try:
        return dict(json.loads(done.stdout), log=done.stderr)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return dict(refused=f"the process ended with {done.returncode}: {last}", log=done.stderr)


def count_gpus():
    """(GPUs, version of CUDA that the driver is of, why there are none)."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return 0, None, str(error)
    count, version = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    status = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return count.value, driver, f"cuInit returned {status}" if status else "it shows no GPU"


def kernel_module():
    """The release of NVIDIA's kernel module, or None."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return re.search(r"\d+\.\d+(\.\d+)?", file.read()).group()
    except (OSError, AttributeError):
        return None


def driver(count, cuda, why):
    module = f", kernel module {kernel_module()}" if kernel_module() else ""
    if count:
        yield Finding("driver", "ok", f"of CUDA {cuda}{module}")
    elif cuda or module:
        yield Finding("driver", "missing", f"{why}{module}", f"nvidia-smi says whether the driver runs; {_NO_DRIVER}")
    else:
        yield Finding("driver", "none", f"no CUDA driver: {why}", f"for kernels on a GPU {_NO_DRIVER}")


def gpu(ordinal):
    """A checked launch on a GPU, and what it tells of the GPU and of NVRTC."""
    said = launch("gpu", ordinal)
    if "refused" in said:
        yield Finding(f"GPU {ordinal}", "wrong" if said.get("stage") == "launch" else "missing", said["refused"], remedy_of(said))
        return
    yield Finding(f"GPU {ordinal}", "ok", f"{said['name']}, sm_{said['capability']}, {said['sms']} SMs")
    yield Finding("kernels", "ok", f"for sm_{said['capability']}: {computes(said['capability'], said['sms'])}")
    yield from nvrtc(said)
    yield verdict(f"launch on GPU {ordinal}", said["error"], f"{said['kernel']} ({said['target']}, {origin(said)})")


def origin(said):
    made = {"cubin": "machine code of the package", "ptx": "PTX of the package", "nvrtc": "compiled by NVRTC", "cache": "from the cache"}
    return f"{made.get(said['origin'], said['origin'])}, ready in {said['prepared']:.2f} s"


def remedy_of(said):
    """By the kind of exception that refused."""
    kind, reason = said.get("kind"), said["refused"]
    if kind == "CompileError" and reason.startswith("no NVRTC"):
        return "pip install nvidia-cuda-nvrtc"
    if kind == "Unsupported":
        return f"kernels need compute capability {_OLDEST_CAPABILITY / 10} or later"
    if kind == "CudaError" and said.get("stage") != "launch":
        return "nvidia-smi says whether the driver runs; it must be of no older CUDA than NVRTC is (FAGEN_NVRTC names another NVRTC)"
    return "run it again; if it stays, report it with the output of fagen doctor --json"


def nvrtc(said):
    if said["nvrtc"]:
        yield Finding("NVRTC", "ok", f"{said['nvrtc_version']} at {said['nvrtc']}")


def nvrtc_alone():
    """NVRTC without a GPU: it compiles for an H100, into a cache that goes away."""
    with tempfile.TemporaryDirectory(prefix="fagen-") as cache:
        said = launch("prepare", 90, cache)
    if "refused" in said:
        yield Finding("NVRTC", "none", said["refused"].split(";")[0], "kernels on a GPU need it: pip install nvidia-cuda-nvrtc")
    elif said["nvrtc"]:
        yield from nvrtc(said)
    else:
        yield Finding("NVRTC", "none", f"not asked: {said['kernel']} is there as machine code")


def computes(capability, sms):
    """Types and head dims that ready kernels have on such a GPU, and of which target."""
    library, tables = _lib.library(), _lib.pointers(_kernels.ready()._tables)
    device, targets, dims = _lib.described_device(capability, sms), [], []
    for dtype in _TYPES:
        for dim in _HEAD_DIMS:
            problem = _kernels.describe((1, 16, 16, 4096, 4096, dim), dtype)
            choice, info = _launch.Choice(), _launch.ChoiceInfo()
            if library.fagen_query(tables, len(tables), ctypes.byref(problem), device, ctypes.byref(choice)) == _lib.OK:
                _lib.check(library.fagen_choice_get_info(ctypes.byref(choice), ctypes.byref(info)))
                targets.append(info.target.decode())
                dims.append((dtype, dim))
    if not targets:
        raise errors.Unsupported(f"no ready kernel runs on sm_{capability}")
    by_type = "; ".join(f"{dtype} head dims {', '.join(str(d) for t, d in dims if t == dtype)}" for dtype in _TYPES)
    return f"{by_type} ({', '.join(dict.fromkeys(targets))})"


def kernels_for_all():
    for capability, sms, name in ((80, 108, "A100"), (86, 72, "A10"), (89, 58, "L4"), (90, 132, "H100")):
        yield Finding("kernels", "ok", f"for sm_{capability}, as {name}: {computes(capability, sms)}")


def verdict(part, error, what):
    """error: the largest of O, or NaN-proof infinity."""
    if error <= _launch.BOUND:
        return Finding(part, "ok", f"{what}: largest error {error:.1e} against float64, at most {_launch.BOUND:.0e} is right")
    return Finding(part, "wrong", f"{what}: largest error {error:.1e} against float64, at most {_launch.BOUND:.0e} is right",
                   "results cannot be trusted here: run it again, then report it with the output of fagen doctor --json")


def cpu():
    """A checked launch without a GPU: on the emulator, else PyTorch's fallback."""
    tool = os.path.join(_lib.PACKAGE, "bin", "fagen-run")
    compiler = os.environ.get("FAGEN_CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if os.path.exists(tool) and compiler:
        yield emulated(tool)
    elif version_of("torch"):
        said = launch("torch")
        if "refused" in said:
            yield Finding("call on the CPU", "missing", said["refused"], "pip install --upgrade torch")
        else:
            yield verdict("call on the CPU", said["error"], 'fagen.attention(..., fallback="torch")')
    else:
        yield Finding("launch", "missing", "no GPU, no C++ compiler for the emulator, no PyTorch to fall back to: nothing here computes",
                      "a machine with a GPU; or `apt-get install g++` for the emulator; or `pip install torch`")


def emulated(tool):
    case = ",".join(map(str, _launch.SHAPE)) + " mask=causal"
    done = subprocess.run([tool, "check", _lib.path("kernels", _EMULATED_SET), "--device", "cpu", "--variant", _EMULATED_VARIANT, "--case", case,
                           "--json"], capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    part, remedy = "launch on the emulator", "FAGEN_CXX names GCC 8 or later, or clang 9 or later, FAGEN_CACHE_DIR a directory that can be written"
    try:
        said = json.loads(done.stdout)["check"]
        variant, failures = said["variants"][0], said["cases"][0].get("failures", [])
    except (ValueError, LookupError):
        return Finding(part, "missing", (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1], remedy)
    for failure in failures:
        if failure["criterion"] == "compile":
            return Finding(part, "missing", failure["message"], remedy)
    if failures:
        return Finding(part, "wrong", f"{_EMULATED_VARIANT}: {failures[0]['criterion']}: {failures[0]['message']}",
                       "report it with the output of fagen doctor --json")
    return verdict("launch on the emulator", variant["max_error"], f"{_EMULATED_VARIANT} (sm_89, as C++)")


def cache():
    where = _cache.directory()
    if where is None:
        yield Finding("cache", "missing", "neither FAGEN_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set: each process compiles anew",
                      "FAGEN_CACHE_DIR names a directory")
        return
    found = os.path.abspath(where)
    while not os.path.exists(found):
        found = os.path.dirname(found)
    if not os.path.isdir(found) or not os.access(found, os.W_OK | os.X_OK):
        yield Finding("cache", "missing", f"{where} cannot be written: each process compiles anew", "FAGEN_CACHE_DIR names another directory")
    else:
        yield Finding("cache", "ok", f"{_cache.said_of(where)}; fagen cache --empty removes them")


def guarded(part, findings):
    """A part that fails says so, and the others are still asked."""
    try:
        yield from findings
    except (errors.Error, OSError, subprocess.SubprocessError) as error:
        yield Finding(part, "missing", str(error), "pip install --force-reinstall fagen")


def examine():
    """All findings, one after the other."""
    yield from guarded("fagen", system())
    yield from guarded("fagen-kernels", machine_code())
    yield from guarded("frameworks", frameworks())
    count, cuda, why = count_gpus()
    yield from guarded("driver", driver(count, cuda, why))
    yield from guarded("cache", cache())
    for ordinal in range(count):
        yield from guarded(f"GPU {ordinal}", gpu(ordinal))
    if not count:
        yield from guarded("NVRTC", nvrtc_alone())
        yield from guarded("kernels", kernels_for_all())
        yield from guarded("launch", cpu())


def exit_code(findings):
    states = {finding.state for finding in findings}
    return _WRONG if "wrong" in states else _INCOMPLETE if "missing" in states else _SOUND


_COLUMN = len("launch on the emulator") + 2
_SHOWN = {"ok": "ok", "none": "-", "missing": "MISSING", "wrong": "WRONG"}


def main(arguments):
    parser = Parser("doctor", "What fagen finds here, and one checked launch on each GPU, or without one on the CPU.", _EXAMPLES)
    parser.add_argument("--json", action="store_true", help="JSON instead of lines")
    options = parser.parse_args(arguments)
    began, findings = time.monotonic(), []
    for finding in examine():
        findings.append(finding)
        if not options.json:
            print(f"{_SHOWN[finding.state]:8}{finding.part:{_COLUMN}}{finding.found}", flush=True)
            if finding.remedy:
                print(f"{'':8}{'':{_COLUMN}}do: {finding.remedy}", flush=True)
    code, seconds = exit_code(findings), time.monotonic() - began
    if options.json:
        print(json.dumps(dict(exit_code=code, seconds=round(seconds, 2), findings=[finding._asdict() for finding in findings]), indent=1))
    else:
        words = {_SOUND: "all is in order", _INCOMPLETE: "something is missing", _WRONG: "a result is wrong"}
        print(f"fagen doctor: {words[code]} ({seconds:.1f} s)")
    return code
