# fagen: what a result says of where it comes from, next to what was measured.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os
import platform
import shutil
import subprocess


def notes_of(said):
    """Of --note key=value ...; the commit also comes from FAGEN_COMMIT, as in fagen-run."""
    commit = os.environ.get("FAGEN_COMMIT")
    return {**({"commit": commit} if commit else {}), **dict(note.split("=", 1) for note in said)}


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def driver():
    """The GPU driver's version and the CUDA that it speaks, as fagen-run calls them; empty without a GPU."""
    if not shutil.which("nvidia-smi"):
        return {}
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False)
    version = ctypes.c_int()
    try:
        known = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) == 0
    except OSError:
        known = False
    if asked.returncode or not asked.stdout.strip() or not known:
        return {}
    gpu, number = (word.strip() for word in asked.stdout.splitlines()[0].split(","))
    return {"gpu": gpu, "driver": number, "driver_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}


def machine():
    """CPU and system, and GPU and driver where there are."""
    return {"cpu": cpu_name(), "threads": os.cpu_count(), "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            **driver()}
