# fagen: lit configuration: tools on PATH, features of this machine.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import shutil
import stat
import subprocess
import tempfile

import lit.formats

config.name = "fagen"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".fa", ".fair", ".test", ".td"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fagen_build, "test")

path = [os.path.join(config.fagen_build, "bin"), config.llvm_tools, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
# Compiled kernels of the emulator and of NVRTC are cached inside the build tree, never in the user's home.
config.environment["FAGEN_CACHE_DIR"] = os.path.join(config.fagen_build, "test", "cache")
# What the tests of the package build is known to ccache from one run to the next, as what the build itself compiles.
if ccache := shutil.which("ccache"):
    config.environment["CMAKE_C_COMPILER_LAUNCHER"] = config.environment["CMAKE_CXX_COMPILER_LAUNCHER"] = ccache
# Debian has no make where it was not asked for; Ninja is what the build itself uses.
config.environment["CMAKE_GENERATOR"] = "Ninja"
for name in ("HOME", "CUDA_HOME", "CUDA_PATH", "FAGEN_CXX", "FAGEN_NVRTC", "LD_LIBRARY_PATH", "CCACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%source", config.fagen_source))
config.substitutions.append(("%build", config.fagen_build))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%nvcc", config.nvcc or "nvcc-not-found"))

# A test names what it needs by REQUIRES; what is missing here is printed with its reason.
if config.nvcc:
    config.available_features.add("nvcc")
else:
    lit_config.note("no nvcc: tests that compile to machine code are unsupported")
if shutil.which(os.environ.get("FAGEN_CXX", "c++")):
    config.available_features.add("cxx")
else:
    lit_config.note("no C++ compiler at run time: tests on the emulator are unsupported")
if shutil.which("pkg-config"):
    config.available_features.add("pkg-config")
else:
    lit_config.note("no pkg-config: fagen.pc is not tested")
if shutil.which("cpack") and shutil.which("dpkg-shlibdeps") and os.geteuid() == 0:
    config.available_features.add("dpkg")
else:
    lit_config.note("no cpack with dpkg-dev, or not root: Debian packages are neither made nor installed")
if shutil.which("node"):
    config.available_features.add("node")
else:
    lit_config.note("no node: the extension for VS Code is not run")
if shutil.which("lintian"):
    config.available_features.add("lintian")
else:
    lit_config.note("no lintian: Debian packages are not held to Debian's policy")
if shutil.which("conan"):
    config.available_features.add("conan")
else:
    lit_config.note("no conan on PATH (FAGEN_CONAN=wheels scripts/test installs it): conanfile.py is not tested")
# The Python package: PYTHONPATH has it as it is installed. FAGEN_TORCH_PYTHON names an interpreter that has PyTorch.
def imports(python, *modules):
    return subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0


torch_python = os.environ.get("FAGEN_TORCH_PYTHON", config.python)
config.substitutions.append(("%pytest", f"env PYTHONPATH={config.fagen_build}/python {config.python} -m pytest -q"))
config.substitutions.append(("%torch-pytest", f"env PYTHONPATH={config.fagen_build}/python {torch_python} -m pytest -q"))
config.substitutions.append(("%torch-python", f"env PYTHONPATH={config.fagen_build}/python {torch_python}"))
if not os.path.exists(os.path.join(config.fagen_build, "python", "fagen", "places.stamp")):
    lit_config.note("no build/*/python/fagen: the Python package is not tested; the target fagen_python builds it")
elif not imports(config.python, "pytest"):
    lit_config.note(f"{config.python} has no pytest: the Python package is not tested")
else:
    config.available_features.add("pytest")
    if imports(torch_python, "pytest", "torch"):
        config.available_features.add("pytorch")
        for name, modules in (("transformers", ["transformers"]), ("jax", ["jax", "jax_tvm_ffi"])):
            found = "import sys, importlib.util as u; sys.exit(None in [u.find_spec(m) for m in sys.argv[1:]])"
            if subprocess.run([torch_python, "-c", found, *modules], capture_output=True).returncode == 0:
                config.available_features.add(name)
            else:
                lit_config.note(f"{torch_python} has no {' with '.join(modules)}: fagen.{name} is not tested")
    else:
        lit_config.note(f"{torch_python} has no pytest with PyTorch (FAGEN_TORCH_PYTHON names another): fagen.torch is not tested")
# A sanitizer's library is not what users are given.
if "-fsanitize" not in config.cxx_flags:
    config.available_features.add("plain-build")
else:
    lit_config.note("built with a sanitizer: the shared library is not tested")
with open(os.path.join(config.fagen_build, "CMakeCache.txt"), encoding="utf-8") as cache:
    if "FAGEN_OLD_GLIBC:BOOL=ON" in cache.read():
        config.available_features.add("old-glibc")
    else:
        lit_config.note("FAGEN_OLD_GLIBC is off: that binaries run with glibc 2.28 is not tested")
# Its output differs from release to release: only the pinned one judges.
formatter = shutil.which("clang-format", path=os.pathsep.join(path))
if formatter and " 19." in subprocess.run([formatter, "--version"], capture_output=True, text=True).stdout:
    config.available_features.add("clang-format")
else:
    lit_config.note("no clang-format 19: tests of formatting are unsupported")
if os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/nvidia0"):
    config.available_features.add("gpu")
else:
    lit_config.note("no GPU: tests that launch on one are unsupported")
if "gpu" in config.available_features and shutil.which("nvidia-smi"):
    asked = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    is_hopper = "9.0" in subprocess.run(asked, capture_output=True, text=True).stdout
    if is_hopper and subprocess.run([config.python, "-c", "import torch"], capture_output=True).returncode == 0:
        config.available_features.add("hopper-pytorch")
    else:
        lit_config.note("no Hopper GPU with PyTorch: kernels are not launched on two streams")

# Tests of devices make copies of them: root may, unless files here cannot be devices.
with tempfile.TemporaryDirectory(dir=config.fagen_build) as directory:
    device = os.path.join(directory, "null")
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        open(device, "w").close()
        config.available_features.add("mknod")
    except OSError:
        lit_config.note("no device can be made: output to devices is not tested")

# The libFuzzer target, where somebody built it with clang (fuzz/fuzz-ir.cpp).
fuzz_ir = os.path.join(config.fagen_source, "build", "fuzz", "bin", "fuzz-ir")
config.substitutions.append(("%fuzz-ir", fuzz_ir))
if os.path.exists(fuzz_ir):
    config.available_features.add("fuzz-ir")
else:
    lit_config.note("no build/fuzz/bin/fuzz-ir: IR is fuzzed without guidance by coverage")

# What the scripts are held to: formatting by the pinned clang-format, shellcheck.
with open(os.path.join(config.fagen_source, "scripts", "requirements.txt"), encoding="utf-8") as pins:
    pinned = [line.split("==")[1].strip() for line in pins if line.startswith("clang-format==")][0]
clang_format = shutil.which("clang-format")
if clang_format and f"version {pinned}" in subprocess.run([clang_format, "--version"], capture_output=True, text=True).stdout:
    config.available_features.add("clang-format")
else:
    lit_config.note(f"no clang-format {pinned} on PATH: formatting is not tested")
if shutil.which("shellcheck"):
    config.available_features.add("shellcheck")
else:
    lit_config.note("no shellcheck: the shell scripts are not tested by it")
fagen_run = os.path.join(config.fagen_build, "bin", "fagen-run")
if os.path.exists(fagen_run) and subprocess.run([fagen_run, "tune", "--help"], capture_output=True).returncode == 0:
    config.available_features.add("tuner")
else:
    lit_config.note("no SQLite: the tuner is not built")
