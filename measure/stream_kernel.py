# fagen: lab/kernels/stream.cu from Python: what it takes to read K and V, and nothing else.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the kernel by NVRTC, as fagen-run's baseline `stream` does, and launches it on PyTorch's stream."""
import ctypes
import glob
import os
import sys

import torch

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab", "kernels", "stream.cu")
CTAS_PER_SM, THREADS = 4, 512


def load_nvrtc():
    found = [os.environ.get("FAGEN_NVRTC", ""), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    for path in sys.path:
        found += glob.glob(os.path.join(path, "nvidia", "*", "lib", "libnvrtc.so.*"))
    for name in filter(None, found):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("no NVRTC library; FAGEN_NVRTC names one")


def compile_source():
    nvrtc, program, size = load_nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    with open(SOURCE, "rb") as source:
        text = source.read()
    major, minor = torch.cuda.get_device_capability()
    options = (ctypes.c_char_p * 3)(f"-arch=sm_{major}{minor}".encode(), b"-std=c++17", b"-default-device")

    def check(status, what):
        if status:
            raise RuntimeError(f"{what} gave {status}")
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"stream.cu", 0, None, None), "nvrtcCreateProgram")
    check(nvrtc.nvrtcCompileProgram(program, len(options), options), "nvrtcCompileProgram")
    check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    binary = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetCUBIN(program, binary), "nvrtcGetCUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return binary


class Stream:
    def __init__(self):
        self.cuda, self.binary = ctypes.CDLL("libcuda.so.1"), compile_source()
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.sink = torch.zeros(64, dtype=torch.int32, device="cuda")  # makes the context current
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), self.binary), "cuModuleLoadData")
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(self.function), module, b"streamBoth"),
                   "cuModuleGetFunction")
        self.ctas = CTAS_PER_SM * torch.cuda.get_device_properties(0).multi_processor_count

    @staticmethod
    def check(status, what):
        if status:
            raise RuntimeError(f"{what} gave {status}")

    def launch(self, k, v):
        values = [ctypes.c_void_p(k.data_ptr()), ctypes.c_void_p(v.data_ptr()), ctypes.c_longlong(k.nbytes // 16),
                  ctypes.c_longlong(v.nbytes // 16), ctypes.c_void_p(self.sink.data_ptr())]
        arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.cuda.cuLaunchKernel(self.function, self.ctas, 1, 1, THREADS, 1, 1, 0, stream, arguments, None),
                   "cuLaunchKernel")
