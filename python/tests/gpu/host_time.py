#!/usr/bin/env python3
# fagen: the host's time of one attention, next to a bare launch of its kernel, PyTorch's and flash-attn's.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""host_time.py [--times N]: prints JSON: microseconds of the host for each call, the median of 15 rounds of N small launches.

The bare launch is fagen_run of the same kernel on the same tensors: the time of its call through ctypes is taken off. Needs PyTorch
2.10 or later, a CUDA GPU and NVRTC. flash-attn's packages are measured where they are installed: `flash_attn` (2), `fa3_fwd_interface`
(3), `flash_attn.cute` (4). What is measured is compared with SDPA's result first.
"""
import argparse
import ctypes
import importlib
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


def sdpa_by(backend, across):
    """A call of SDPA by one backend."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    sdpa, kernel = torch.nn.functional.scaled_dot_product_attention, getattr(SDPBackend, backend)

    def call():
        return sdpa(*across).transpose(1, 2)

    def entered(call, times):  # the choice of a backend is no part of a call
        with sdpa_kernel(kernel):
            return call() if times is None else host_time(call, times)
    return call, entered


PACKAGES = {"flash-attn 2": "flash_attn", "flash-attn 3": "fa3_fwd_interface", "flash-attn 4": "flash_attn.cute"}


def peers(q, k, v):
    """Functions of flash-attn's packages, as far as they are installed, in bfloat16 where a build has no float16; and why the others are
    not here."""
    found, missing = {}, {}
    for name, module in PACKAGES.items():
        try:
            function = importlib.import_module(module).flash_attn_func
        except (ImportError, AttributeError) as error:
            missing[name] = f"{type(error).__name__}: {error}"
            continue
        for dtype in (torch.float16, torch.bfloat16):
            inputs = [t.to(dtype) for t in (q, k, v)]
            try:
                function(*inputs)
            except Exception as error:  # pylint: disable=broad-except  # theirs may fail in any way
                missing[f"{name}, {dtype}"] = f"{type(error).__name__}: {error}"[:200]
                continue
            found[f"{name}, {dtype}"] = lambda function=function, inputs=inputs: function(*inputs)
            break
    return found, missing


def calls(q, k, v):
    """What is measured of ours, by name."""
    out, no_lse = torch.empty_like(q), torch.empty(0, device=q.device)
    plan, ready, ops = fagen.plan(q, k, v), fagen.torch._READY, torch.ops.fagen
    at_once = fagen.torch._at_once
    return {
        "fagen.attention": lambda: fagen.attention(q, k, v),
        "fagen.attention, causal": lambda: fagen.attention(q, k, v, causal=True),
        "fagen.attention, out=": lambda: fagen.attention(q, k, v, out=out),
        "fagen.attention, return_lse": lambda: fagen.attention(q, k, v, return_lse=True)[0],
        "fagen.flash_attn.flash_attn_func": lambda: flash_attn.flash_attn_func(q, k, v),
        "plan": lambda: plan(q, k, v, out),
        "at_once": lambda: at_once("host_time", q, k, v, None, None, False, True, False, ready)[0],
        "at_once, out=": lambda: at_once("host_time", q, k, v, out, None, False, True, False, ready)[0],
        "operator attention": lambda: ops.attention.default(q, k, v, 0.125, False, True, False, ready)[0],
        "operator _forward": lambda: ops._forward.default(q, k, v, 0.125, False, True, ready, True),
        "operator attention_out": lambda: (ops.attention_out.default(q, k, v, out, no_lse, 0.125, False, True, ready), out)[1],
    }


def measure_all(q, k, v, times):
    """Microseconds by name, of what gives SDPA's result; and what is missing, with the reason."""
    ours, (theirs, missing) = calls(q, k, v), peers(q, k, v)
    across = [t.transpose(1, 2) for t in (q, k, v)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*across).transpose(1, 2)
    causal = torch.nn.functional.scaled_dot_product_attention(*across, is_causal=True).transpose(1, 2)
    measured = {}
    for name, call in {**ours, **theirs}.items():
        o = call()
        o = o[0] if isinstance(o, tuple) else o
        tolerance = 4e-3 if o.dtype == torch.float16 else 3e-2
        torch.testing.assert_close(o.half(), causal if "causal" in name else wanted, atol=tolerance, rtol=tolerance)
        measured[name] = host_time(call, times)
    for backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
        call, entered = sdpa_by(backend, across)
        try:
            torch.testing.assert_close(entered(call, None), wanted, atol=4e-3, rtol=4e-3)
            measured[f"SDPA {backend}"] = entered(call, times)
        except RuntimeError as error:
            missing[f"SDPA {backend}"] = str(error)[:200]
    measured["SDPA"] = host_time(lambda: torch.nn.functional.scaled_dot_product_attention(*across), times)
    measured["torch.empty_like"] = host_time(lambda: torch.empty_like(q), times)
    return measured, missing


def figures(times=2000):
    """Microseconds by name. `over a bare launch` has what the operators and the front add."""
    q, k, v = (torch.randn(1, 64, 1, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    with torch.no_grad():
        measured, missing = measure_all(q, k, v, times)
        through_ctypes = host_time(bare_run(q, k, v, out, empty=True), times)
        measured["bare launch"] = host_time(bare_run(q, k, v, out), times) - through_ctypes
    measured["fagen.attention, gradients on"] = host_time(lambda: fagen.attention(q, k, v), times)
    with torch.inference_mode():
        measured["fagen.attention, inference mode"] = host_time(lambda: fagen.attention(q, k, v), times)
    over = {name: microseconds - measured["bare launch"] for name, microseconds in measured.items()
            if name not in ("bare launch", "torch.empty_like")}
    rounded = {name: round(microseconds, 2) for name, microseconds in measured.items()}
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "microseconds": rounded,
            "over a bare launch": {name: round(microseconds, 2) for name, microseconds in over.items()}, "missing": missing}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000, help="calls a round")
    print(json.dumps(figures(parser.parse_args().times), indent=1))


if __name__ == "__main__":
    main()
