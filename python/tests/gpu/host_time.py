#!/usr/bin/env python3
# fagen: the host's time of one attention, beside a bare launch of its kernel, PyTorch's and flash-attn's.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""host_time.py [--times N]: prints JSON: microseconds of the host for each call, the median of 15 rounds of N small launches.

The bare launch is fagen_run of the same kernel on the same tensors: the time of its call through ctypes is taken off. Needs PyTorch
2.10 or later, a CUDA GPU and NVRTC. flash-attn is measured where it is installed.
"""
import argparse
import ctypes
import json
import statistics
import time

import torch

import fagen
import fagen.torch
from fagen import _kernels, _lib, _structs, flash_attn

ROUNDS = 15


def host_time(call, times):
    """Microseconds of the host for one call; the GPU keeps up with launches as small as these."""
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - start) / times * 1e6)
    return statistics.median(rounds)


def bare_run(q, k, v, out, empty=False):
    """A call of fagen_run on these tensors; `empty`: with a batch of none, which launches nothing."""
    library, device = _lib.library(), _lib.device(q.device.index)
    tables = _kernels.ready()._tables
    problem, choice, tensors = fagen.torch.describe(q, k, v), _lib.Choice(), _structs.Tensors()
    if empty:
        problem.batch = 0
    _lib.check(library.fagen_query(_lib.pointers(tables), len(tables), ctypes.byref(problem), device, ctypes.byref(choice)))
    _lib.check(library.fagen_prepare(ctypes.byref(choice), device))
    if choice.workspace_bytes and not empty:
        raise fagen.Error("the kernel of these tensors needs a workspace: measure another shape")
    tensors.q, tensors.k, tensors.v, tensors.o = (t.data_ptr() for t in (q, k, v, out))
    run = ctypes.CDLL(_lib.path("lib", "libfagen.so.1")).fagen_run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    stream, at = torch.cuda.current_stream().cuda_stream, (ctypes.addressof(choice), ctypes.addressof(tensors))

    def call(kept=(choice, tensors)):
        run(*at, None, 0, stream)
    _lib.check(run(*at, None, 0, stream))
    return call


def calls(q, k, v):
    """What is measured, by name."""
    out, no_lse = torch.empty_like(q), torch.empty(0, device=q.device)
    plan, across = fagen.plan(q, k, v), [t.transpose(1, 2) for t in (q, k, v)]
    sdpa = torch.nn.functional.scaled_dot_product_attention
    ready = fagen.torch._READY
    found = {
        "fagen.attention": lambda: fagen.attention(q, k, v),
        "fagen.attention, causal": lambda: fagen.attention(q, k, v, causal=True),
        "fagen.attention, out=": lambda: fagen.attention(q, k, v, out=out),
        "fagen.attention, return_lse": lambda: fagen.attention(q, k, v, return_lse=True),
        "fagen.flash_attn.flash_attn_func": lambda: flash_attn.flash_attn_func(q, k, v),
        "plan": lambda: plan(q, k, v, out),
        "operator _forward": lambda: torch.ops.fagen._forward.default(q, k, v, 0.125, False, True, ready, True),
        "operator attention_out": lambda: torch.ops.fagen.attention_out.default(q, k, v, out, no_lse, 0.125, False, True, ready),
        "SDPA": lambda: sdpa(*across),
        "torch.empty_like": lambda: torch.empty_like(q),
    }
    try:
        from flash_attn import flash_attn_func as theirs
        found["flash-attn's flash_attn_func"] = lambda: theirs(q, k, v)
    except ImportError:
        pass
    return found


def figures(times=2000):
    """Microseconds by name. `over a bare launch` has what the operators and the front add."""
    q, k, v = (torch.randn(1, 64, 1, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    with torch.no_grad():
        measured = {name: host_time(call, times) for name, call in calls(q, k, v).items()}
        through_ctypes = host_time(bare_run(q, k, v, out, empty=True), times)
        measured["bare launch"] = host_time(bare_run(q, k, v, out), times) - through_ctypes
    measured["fagen.attention, gradients on"] = host_time(lambda: fagen.attention(q, k, v), times)
    over = {name: microseconds - measured["bare launch"] for name, microseconds in measured.items()
            if name not in ("bare launch", "torch.empty_like")}
    rounded = {name: round(microseconds, 2) for name, microseconds in measured.items()}
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "microseconds": rounded,
            "over a bare launch": {name: round(microseconds, 2) for name, microseconds in over.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000, help="calls a round")
    print(json.dumps(figures(parser.parse_args().times), indent=1))


if __name__ == "__main__":
    main()
