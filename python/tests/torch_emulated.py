# fagen: fagen.torch on CPU tensors, by the emulator, and what it is compared with.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib
import ctypes
import functools
import os

import pytest
import torch

import fagen
import fagen.torch
from fagen import _lib

LIBRARY = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
GPU = 89  # whose kernels the emulator runs


@functools.lru_cache(maxsize=None)
def use_emulator():
    """Makes the operators compute on the CPU. False where this build has no emulator."""
    return os.path.exists(LIBRARY) and open_kernels(_lib.path("kernels", "l4_fp16"))


def open_kernels(directory, gpu=GPU):
    """The kernel sets that the emulator takes from now on, and the GPU that it stands for."""
    emulated = ctypes.CDLL(LIBRARY)
    error = ctypes.create_string_buffer(2048)
    if emulated.fagen_torch_emulator_open(os.fsencode(directory), gpu, error, 2048):
        raise fagen.Error(error.value.decode())
    fagen.torch._ours.fagen_torch_set_emulator(ctypes.cast(emulated.fagen_torch_emulate, ctypes.c_void_p))
    return True


@contextlib.contextmanager
def emulating(directory, gpu=GPU):
    """The emulator takes the kernel sets of a directory."""
    open_kernels(directory, gpu)
    try:
        yield
    finally:
        open_kernels(_lib.path("kernels", "l4_fp16"))


@pytest.fixture
def shipped_forms():
    """The emulator takes the package's kernels of forms."""
    with emulating(_lib.path("kernels", "forms"), 90):
        yield


def tensors(batch=1, heads=4, kv_heads=2, seq_q=40, seq_kv=40, head_dim=64, *, layout="bshd", seed=0):
    """q, k and v of float16, in the layout."""
    draw = torch.Generator().manual_seed(seed)
    shapes = [(batch, seq_q, heads, head_dim)] + 2 * [(batch, seq_kv, kv_heads, head_dim)]
    if layout == "bhsd":
        shapes = [(b, h, s, d) for b, s, h, d in shapes]
    return [torch.randn(shape, generator=draw).half() for shape in shapes]


def reference(q, k, v, causal=False, scale=None, layout="bshd"):
    """O and LSE in float64; a row without keys gives 0 and -inf."""
    q, k, v = (t.double().transpose(1, 2) if layout == "bshd" else t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        rows, keys = scores.shape[-2:]
        seen = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)
        scores = scores.masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(scores, -1)
    o = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]) @ v
    return o.transpose(1, 2) if layout == "bshd" else o, lse


def assert_near(o, wanted):
    torch.testing.assert_close(o.double(), wanted, atol=2e-3, rtol=2e-3)
