# fagen: runs the script that FAKE_SCRIPT names, measure/compare_sdpa.py, with a torch and a fagen_ctypes that compute nothing.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import functools
import importlib.metadata
import itertools
import os
import runpy
import sys
import time
import types


class Tensor:
    def __init__(self, *shape, dtype="torch.float16", **_):
        self.shape, self.dtype = shape, dtype
        self.strides = [1]
        for size in reversed(shape[1:]):
            self.strides.insert(0, self.strides[0] * size)

    def same(self, *_, **__):
        return self
    float = __sub__ = abs = max = repeat_interleave = fill_ = zero_ = same

    def mul_(self, factor):
        print("multiplied by", factor)

    def transpose(self, a, b):
        order = list(range(len(self.shape)))
        order[a], order[b] = b, a
        other = Tensor(*(self.shape[i] for i in order), dtype=self.dtype)
        other.strides = [self.strides[i] for i in order]
        return other

    def stride(self):
        return tuple(self.strides)

    def data_ptr(self):
        return 4096

    def item(self):
        return float(os.environ.get("FAKE_DIFFERENCE", "0.001"))


class Anything:
    """A stream, graph, event or context manager."""
    cuda_stream = 0
    times = itertools.cycle([0.30, 0.31, 0.32])

    def __init__(self, *_, **__):
        pass

    def nothing(self, *_, **__):
        pass
    record = synchronize = replay = wait_stream = __enter__ = __exit__ = nothing

    def elapsed_time(self, _):
        return next(self.times)


class Backend(Anything):
    """Flash attention refuses."""

    def __init__(self, backend):
        self.backend = backend

    def __enter__(self):
        if self.backend == "flash":
            raise RuntimeError("No available kernel.\nAnd more.")


class Library:
    def __init__(self, *_):
        pass

    def variants(self):
        return ["rows_f16_d16_none", "rows_f16_d16_causal", "slower_none"]

    def picked(self, *arguments):
        return [(f"rows_f16_d16_{arguments[-1]}", "sm_80")]

    def attention(self, *arguments):
        *_, mask, variant = arguments
        if not variant.endswith(mask):
            raise ValueError("another problem")
        launch = lambda: None
        launch.info = lambda: types.SimpleNamespace(target=b"sm_80", registers=40, local_bytes=0)
        return launch


def module(name, **members):
    sys.modules[name] = types.SimpleNamespace(**members)
    return sys.modules[name]


gpu = types.SimpleNamespace(name="fake GPU", multi_processor_count=1, L2_cache_size=64)
cuda = module("torch.cuda", Event=Anything, CUDAGraph=Anything, graph=Anything, Stream=Anything, stream=Anything,
              current_stream=Anything, is_available=lambda: True, synchronize=lambda: None, current_device=lambda: 0,
              get_device_properties=lambda _: gpu)
functional = module("torch.nn.functional", scaled_dot_product_attention=lambda q, k, v, **_: q)
attention = module("torch.nn.attention", sdpa_kernel=Backend, SDPBackend=types.SimpleNamespace(
    FLASH_ATTENTION="flash", CUDNN_ATTENTION="cudnn", EFFICIENT_ATTENTION="efficient", MATH="math"))
nn = module("torch.nn", functional=functional, attention=attention)
module("torch", cuda=cuda, nn=nn, Tensor=Tensor, randn=Tensor, manual_seed=lambda _: None, float16="torch.float16",
       bfloat16="torch.bfloat16", float32="torch.float32", uint8="torch.uint8", __version__="9.9",
       empty=Tensor, zeros=Tensor, matmul=lambda *_, **__: None, version=types.SimpleNamespace(cuda="13.0"),
       backends=types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002)))

@functools.cache
def tell(*what):
    print(*what)


module("fa3_fwd_interface", fa3_fwd_cuda=types.SimpleNamespace(
    fwd=lambda *a: tell("fa3:", len(a), a[0].shape, a[6].stride(), a[23:25])))
importlib.metadata.version = lambda package: "1.2.3"
module("fagen_ctypes", Library=Library, Error=ValueError)
time.sleep = lambda _: None  # a burst idles before each segment
sys.path.insert(0, os.path.dirname(os.environ["FAKE_SCRIPT"]))
runpy.run_path(os.environ["FAKE_SCRIPT"], run_name="__main__")
