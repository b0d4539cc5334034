# fagen: the C ABI (runtime/include/fagen/fagen.h) by ctypes, on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads libfagen_capi.so and runs generated kernels on PyTorch tensors, in PyTorch's own context and stream."""
import ctypes
import importlib.util
import os
from ctypes import POINTER, c_char, c_char_p, c_int32, c_int64, c_size_t, c_void_p

import torch

OK = 0
DTYPES = {torch.float16: 1, torch.bfloat16: 2}
MASKS = {"none": 1, "causal": 2}
FLAG_LSE = 1
FLAG_PDL = 2


def _structs():
    """The Python package's, which is not needed otherwise: next to this file where it is installed."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, "_structs.py"), os.path.join(here, "..", "python", "fagen", "_structs.py")]
    spec = importlib.util.spec_from_file_location("fagen_structs", next(filter(os.path.exists, places)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


structs = _structs()


class Error(Exception):
    pass


class Library:
    """Kernel sets of some directories, ready to query on the current GPU."""

    def __init__(self, path, directories, overlaps_launches=False):
        """overlaps_launches: launches are programmatic dependent ones where kernels can (FAGEN_FLAG_PDL)."""
        self.lib = ctypes.CDLL(path)
        self.flags = FLAG_PDL if overlaps_launches else 0
        self.lib.fagen_last_error.restype = c_char_p
        self.lib.fagen_status_name.restype = c_char_p
        self.lib.fagen_tables_from_manifest.restype = c_void_p
        self.lib.fagen_tables_list.restype = POINTER(c_void_p)
        self.lib.fagen_tables_variant.restype = c_char_p
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes the primary context current
        self.device = c_void_p()
        self.check(self.lib.fagen_device_create(c_int32(0), ctypes.byref(self.device)), "fagen_device_create")
        self.handles, tables = [], []
        for directory in directories:
            error = (c_char * 1024)()
            handle = self.lib.fagen_tables_from_manifest(directory.encode(), error, c_size_t(1024))
            if not handle:
                raise Error(error.value.decode())
            count = c_size_t()
            listed = self.lib.fagen_tables_list(c_void_p(handle), ctypes.byref(count))
            tables += [listed[i] for i in range(count.value)]
            self.handles.append(handle)
        self.tables = (c_void_p * len(tables))(*tables)

    def check(self, status, what):
        if status != OK:
            name = self.lib.fagen_status_name(status).decode()
            raise Error(f"{what}: {name}: {self.lib.fagen_last_error().decode()}")

    def variants(self):
        names = []
        for handle in self.handles:
            index = 0
            while name := self.lib.fagen_tables_variant(c_void_p(handle), c_size_t(index)):
                names.append(name.decode())
                index += 1
        return names

    def attention(self, q, k, v, o, lse, mask, variant=None, scale=None):
        """A prepared launch; raises Error when no row (or not that variant) fits. scale: 1 / sqrt(head_dim) when None."""
        return Attention(self, q, k, v, o, lse, mask, variant, scale)

    def picked(self, q, k, v, o, lse, mask):
        """What dispatch picks from each kernel set: pairs of variant and target."""
        pairs = []
        for table in self.tables:
            choice = structs.Choice()
            problem = describe(q, k, v, o, lse, mask, None)
            one = (c_void_p * 1)(table)
            if self.lib.fagen_query(one, c_size_t(1), ctypes.byref(problem), self.device, ctypes.byref(choice)) == OK:
                info = choice_info(self, choice)
                pairs.append((info.variant.decode(), info.target.decode()))
        return pairs


def choice_info(library, choice):
    info = structs.ChoiceInfo()
    library.check(library.lib.fagen_choice_get_info(ctypes.byref(choice), ctypes.byref(info)), "fagen_choice_get_info")
    return info


def describe(q, k, v, o, lse, mask, variant, scale=None):
    """The C ABI's description of the problem that these tensors are of."""
    p = structs.Problem()
    p.dtype, p.mask, p.flags = DTYPES[q.dtype], MASKS[mask], FLAG_LSE if lse is not None else 0
    p.batch, p.heads, p.seq_q, p.head_dim_qk = q.shape
    p.kv_heads, p.seq_kv, p.head_dim_v = k.shape[1], k.shape[2], v.shape[3]
    for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
        setattr(p, f"{name}_stride", (c_int64 * 3)(*tensor.stride()[:3]))
    if lse is not None:
        p.lse_stride = (c_int64 * 2)(*lse.stride()[:2])
    p.variant = variant.encode() if variant else None
    if scale is not None:
        p.scale, p.has_scale = scale, 1
    return p


class Attention:
    def __init__(self, library, q, k, v, o, lse, mask, variant, scale):
        self.library, self.keep = library, (q, k, v, o, lse)
        p = describe(q, k, v, o, lse, mask, variant, scale)
        p.flags |= library.flags
        self.choice = structs.Choice()
        lib = library.lib
        library.check(lib.fagen_query(library.tables, c_size_t(len(library.tables)), ctypes.byref(p), library.device,
                                      ctypes.byref(self.choice)), "fagen_query")
        library.check(lib.fagen_prepare(ctypes.byref(self.choice), library.device), "fagen_prepare")
        self.workspace = torch.zeros(max(1, self.choice.workspace_bytes), dtype=torch.uint8, device="cuda")
        self.tensors = structs.Tensors()
        self.tensors.q, self.tensors.k, self.tensors.v = q.data_ptr(), k.data_ptr(), v.data_ptr()
        self.tensors.o = o.data_ptr()
        self.tensors.lse = lse.data_ptr() if lse is not None else None

    def info(self):
        return choice_info(self.library, self.choice)

    def __call__(self):
        stream = c_void_p(torch.cuda.current_stream().cuda_stream)
        self.library.check(self.library.lib.fagen_run(ctypes.byref(self.choice), ctypes.byref(self.tensors),
                                                      c_void_p(self.workspace.data_ptr()),
                                                      c_size_t(self.choice.workspace_bytes), stream), "fagen_run")
