# fagen: one checked launch for `fagen doctor`, in a process of its own: it may crash or hang.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m fagen._launch gpu|torch|prepare [N]: prints one line of JSON.

gpu: a launch on GPU N, by libcuda alone. torch: the call that falls back to PyTorch, on CPU tensors. prepare: compiles for
compute capability N, without a GPU. O is compared with float64; no framework is needed but for torch.
"""
import ctypes
import json
import math
import os
import random
import struct
import sys
import time
from ctypes import POINTER, byref, c_int, c_int32, c_size_t, c_uint64, c_void_p

from . import _kernels, _lib, errors
from ._structs import ChoiceInfo, Choice, DeviceInfo, Tensors

BOUND = 2e-3  # of |O - O in float64|, f16, normal inputs
SHAPE = BATCH, HEADS, KV_HEADS, ROWS, KEYS, DIM = 1, 2, 1, 80, 130, 64  # a ragged tile of rows and of keys, causal


_stage = "open"  # what is being tried: open, prepare, launch


def stage(name):
    global _stage
    _stage = name


class Driver:
    """The functions of libcuda.so.1 that a launch needs."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._cuda.cuMemAlloc_v2.argtypes = [POINTER(c_uint64), c_size_t]
        self._cuda.cuMemFree_v2.argtypes = [c_uint64]
        self._cuda.cuMemcpyHtoD_v2.argtypes = [c_uint64, c_void_p, c_size_t]
        self._cuda.cuMemcpyDtoH_v2.argtypes = [c_void_p, c_uint64, c_size_t]

    def call(self, name, *arguments):
        status = getattr(self._cuda, name)(*arguments)
        if status:
            raise errors.CudaError(f"{name} returned {status}")

    def to_device(self, content):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), len(content))
        self.call("cuMemcpyHtoD_v2", address, content, len(content))
        return address.value

    def to_host(self, address, size):
        content = ctypes.create_string_buffer(size)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", content, address, size)
        return content.raw

    def version(self):
        number = c_int()
        self.call("cuDriverGetVersion", byref(number))
        return number.value


def halves(values):
    return struct.pack(f"{len(values)}e", *values)


def as_halves(content):
    return struct.unpack(f"{len(content) // 2}e", content)


def drawn():
    """Q, K and V [heads, rows, head_dim] of one batch, as f16 has them."""
    draw = random.Random(1)
    return [as_halves(halves([draw.gauss(0, 1) for _ in range(heads * rows * DIM)]))
            for heads, rows in ((HEADS, ROWS), (KV_HEADS, KEYS), (KV_HEADS, KEYS))]


def reference(q, k, v):
    """O [heads, rows, head_dim] in float64; causal, bottom-right."""
    o = []
    keys = [k[j * DIM:(j + 1) * DIM] for j in range(KEYS)]
    columns = [v[d::DIM] for d in range(DIM)]  # of the one K/V head
    for row in range(HEADS * ROWS):
        seen = row % ROWS + KEYS - ROWS + 1
        query = q[row * DIM:(row + 1) * DIM]
        scores = [sum(map(float.__mul__, query, key)) / math.sqrt(DIM) for key in keys[:seen]]
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        total = sum(weights)
        o += [sum(map(float.__mul__, weights, column)) / total for column in columns]
    return o


def largest_error(o, expected):
    """Of two lists; infinite where O has what is no number."""
    return max(abs(a - b) if math.isfinite(a) else math.inf for a, b in zip(o, expected))


def pick(device):
    """The choice of fagen.ready() for the problem of this file."""
    stage("prepare")
    choice, tables = Choice(), _lib.pointers(_kernels.ready()._tables)
    problem = _kernels.describe(SHAPE, "f16", causal=True)
    _lib.check(_lib.library().fagen_query(tables, len(tables), byref(problem), device, byref(choice)))
    began = time.monotonic()
    _lib.check(_lib.library().fagen_prepare(byref(choice), device))
    info = ChoiceInfo()
    _lib.check(_lib.library().fagen_choice_get_info(byref(choice), byref(info)))
    return choice, dict(kernel=info.variant.decode(), target=info.target.decode(), origin=(info.origin or b"").decode(),
                        prepared=time.monotonic() - began, **nvrtc())


def nvrtc():
    """The NVRTC that this process has loaded, and its version."""
    file = loaded("libnvrtc.so")
    major, minor = c_int32(), c_int32()
    if file:
        ctypes.CDLL(file).nvrtcVersion(byref(major), byref(minor))
    return dict(nvrtc=file, nvrtc_version=f"{major.value}.{minor.value}" if file else None)


def loaded(name):
    """The file of a library that this process has, or None."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split(None, 5)[-1].strip() for line in maps}
    return next((file for file in sorted(files) if os.path.basename(file).startswith(name)), None)


def on_gpu(ordinal):
    device, driver, library = _lib.device(ordinal), Driver(), _lib.library()
    library.fagen_run.argtypes = [POINTER(Choice), POINTER(Tensors), c_void_p, c_size_t, c_void_p]
    library.fagen_lend_workspace.argtypes = [POINTER(Choice), c_void_p, c_void_p, POINTER(c_void_p)]
    library.fagen_device_make_current.argtypes = [c_void_p]
    info = DeviceInfo()
    _lib.check(library.fagen_device_get_info(device, byref(info)))
    _lib.check(library.fagen_device_make_current(device))
    choice, said = pick(device)
    stage("launch")
    inputs = drawn()
    tensors, workspace = Tensors(), c_void_p()
    tensors.q, tensors.k, tensors.v = (driver.to_device(halves(values)) for values in inputs)
    tensors.o = driver.to_device(halves([math.nan] * (HEADS * ROWS * DIM)))
    _lib.check(library.fagen_lend_workspace(byref(choice), device, None, byref(workspace)))
    _lib.check(library.fagen_run(byref(choice), byref(tensors), workspace, choice.workspace_bytes, None))
    o = as_halves(driver.to_host(tensors.o, 2 * HEADS * ROWS * DIM))
    return dict(said, name=info.name.decode(), capability=info.compute_capability, sms=info.sm_count,
                driver=driver.version(), error=largest_error(o, reference(*inputs)))


def by_torch():
    import torch
    import fagen
    inputs = drawn()
    q, k, v = (torch.tensor(values, dtype=torch.float16).reshape(1, -1, rows, DIM)
               for values, rows in zip(inputs, (ROWS, KEYS, KEYS)))
    o = fagen.attention(q, k, v, causal=True, layout="bhsd", fallback="torch")
    return dict(version=torch.__version__, error=largest_error(o.flatten().tolist(), reference(*inputs)))


def prepare(capability):
    """What NVRTC makes of the kernel for a GPU that is not here."""
    return pick(_lib.described_device(capability, 132))[1]


def main(mode, number="0"):
    try:
        said = {"gpu": on_gpu, "prepare": prepare}[mode](int(number)) if mode != "torch" else by_torch()
    except errors.Error as error:
        said = dict(refused=str(error), kind=type(error).__name__, stage=_stage)
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
