# fagen: attention from other libraries, by the C interface of measure/contestant.h, or from Python packages.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads a library that exports fagen_contestant_launch, or imports a package, and calls it on PyTorch tensors."""
import ctypes
import importlib
import importlib.metadata
from ctypes import c_char_p, c_float, c_int64, c_uint32, c_void_p

import torch

SCRATCH = 1 << 20
DTYPES = {torch.float16: 1, torch.bfloat16: 2}


class Problem(ctypes.Structure):
    """fagen_contestant_problem."""
    _fields_ = [("struct_size", c_uint32), ("dtype", c_uint32), ("causal", c_uint32), ("scale", c_float),
                *((name, c_int64) for name in ("batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim_qk",
                                               "head_dim_v")),
                *((name, c_int64 * 3) for name in ("q_stride", "k_stride", "v_stride", "o_stride")),
                *((name, c_void_p) for name in ("q", "k", "v", "o", "lse", "scratch", "stream"))]


class Refused(Exception):
    """The library does not take this problem."""


def _fa3(module, q, k, v, o, scale, is_causal):
    """By what its Python function calls: the function itself may not return the O that it was given."""
    new, lengths, descale = [None] * 3, [None] * 13, [None] * 3
    window, chunk, softcap, interleaved, metadata, splits, pack, margin = (-1, -1), 0, 0.0, True, None, 1, None, 0
    return lambda: module.fa3_fwd_cuda.fwd(q, k, v, *new, o, *lengths, *descale, scale, is_causal, *window, chunk, softcap,
                                           interleaved, metadata, splits, pack, margin)


def _fa4(module, q, k, v, o, scale, is_causal):
    return lambda: module._flash_attn_fwd(q, k, v, out=o, softmax_scale=scale, causal=is_causal, return_lse=True)


def _fa3_e4m3(module, q, k, v, o, scale, is_causal):
    """On Q, K and V rounded to e4m3 beforehand, with scales of 1; O is bf16."""
    q, k, v = (tensor.contiguous().to(torch.float8_e4m3fn) for tensor in (q, k, v))
    return _fa3(module, q, k, v, o, scale, is_causal)


# Name: package, module, types, how it is called, and whether its inputs are rounded to fewer bits.
PACKAGES = {"fa3": ("fa3-fwd", "fa3_fwd_interface", (torch.bfloat16,), _fa3, False),
            "fa3-e4m3": ("fa3-fwd", "fa3_fwd_interface", (torch.bfloat16,), _fa3_e4m3, True),
            "fa4": ("flash-attn-4", "flash_attn.cute.interface", (torch.float16, torch.bfloat16), _fa4, False)}


class Package:
    """A Python package that is installed, by the function of its forward pass that takes O."""

    def __init__(self, name):
        package, module, self.dtypes, self.call, self.rounds_inputs = PACKAGES[name]
        self.name = name
        try:
            self.module = importlib.import_module(module)
            self.about = f"{package} {importlib.metadata.version(package)}"
        except ImportError as error:
            raise ValueError(f"--contestant {name}: {error}; pip install {package} brings it") from None

    def attention(self, q, k, v, o, lse, mask, scale=None):
        """A launch on these tensors; it raises Refused. LSE goes to a tensor of its own."""
        if q.dtype not in self.dtypes:
            def refuse():
                raise Refused(f"takes {', '.join(str(dtype).split('.')[1] for dtype in self.dtypes)}")
            return refuse
        by_rows = [tensor.transpose(1, 2) for tensor in (q, k, v, o)]
        run = self.call(self.module, *by_rows, q.shape[3] ** -0.5 if scale is None else scale, mask == "causal")

        def launch():
            try:
                run()
            except (RuntimeError, ValueError, AssertionError) as error:
                raise Refused(str(error).splitlines()[0][:200]) from None
        return launch


def load(text):
    """What --contestant names."""
    return Package(text) if text in PACKAGES else Contestant(text)


class Contestant:
    rounds_inputs = False

    def __init__(self, named):
        self.name, _, path = named.partition("=")
        if not self.name or not path:
            raise ValueError(f"--contestant takes NAME=LIBRARY.so or {', '.join(PACKAGES)}, not '{named}'")
        try:
            library = ctypes.CDLL(path)
            self.run = library.fagen_contestant_launch
        except (OSError, AttributeError) as error:
            raise ValueError(f"--contestant {named}: {error}; it must be a library that exports "
                             "fagen_contestant_launch (measure/contestant.h)") from None
        self.run.restype = c_char_p
        self.about = None
        if hasattr(library, "fagen_contestant_about"):
            library.fagen_contestant_about.restype = c_char_p
            self.about = library.fagen_contestant_about().decode()

    def attention(self, q, k, v, o, lse, mask, scale=None):
        """A launch on these tensors; it raises Refused. scale: 1 / sqrt(head_dim) when None."""
        p = Problem(struct_size=ctypes.sizeof(Problem), dtype=DTYPES[q.dtype], causal=mask == "causal",
                    scale=q.shape[3] ** -0.5 if scale is None else scale)
        p.batch, p.heads, p.seq_q, p.head_dim_qk = q.shape
        p.kv_heads, p.seq_kv, p.head_dim_v = k.shape[1], k.shape[2], v.shape[3]
        scratch = torch.zeros(SCRATCH, dtype=torch.uint8, device="cuda")
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(p, f"{name}_stride", (c_int64 * 3)(*tensor.stride()[:3]))
            setattr(p, name, tensor.data_ptr())
        p.lse, p.scratch = lse.data_ptr(), scratch.data_ptr()

        def launch(_keep=(q, k, v, o, lse, scratch)):
            p.stream = torch.cuda.current_stream().cuda_stream
            reason = self.run(ctypes.byref(p))
            if reason is not None:
                raise Refused(reason.decode())
        return launch
