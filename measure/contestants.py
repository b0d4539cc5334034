# fagen: attention from other libraries, by the C interface of measure/contestant.h.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads a library that exports fagen_contestant_launch and calls it on PyTorch tensors."""
import ctypes
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


class Contestant:
    def __init__(self, named):
        self.name, _, path = named.partition("=")
        if not self.name or not path:
            raise ValueError(f"--contestant takes NAME=LIBRARY.so, not '{named}'")
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
