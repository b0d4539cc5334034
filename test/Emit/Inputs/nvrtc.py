# fagen: compiles CUDA text by NVRTC, as the runtime does: nvrtc.py NVCC INCLUDE ARCH TEXT.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# NVRTC is the library next to nvcc. Prints its log, and exits with 1, where the text does not compile.
import ctypes
import glob
import os
import sys

nvcc, include, arch, path = sys.argv[1:]
root = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
libraries = [p for d in ("lib64", "lib") for p in sorted(glob.glob(os.path.join(root, d, "libnvrtc.so*")))]
if not libraries:
    sys.exit(f"no libnvrtc.so next to {nvcc}")
nvrtc = ctypes.CDLL(libraries[0])
program = ctypes.c_void_p()
with open(path, "rb") as text:
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.read(), path.encode(), 0, None, None):
        sys.exit("nvrtcCreateProgram failed")
options = [f"-arch={arch}", "-std=c++17", "-default-device", f"-I{include}"]
failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
size = ctypes.c_size_t()
nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetProgramLog(program, log)
print(log.value.decode())
sys.exit(1 if failed else 0)
