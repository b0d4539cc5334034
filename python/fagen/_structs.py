# fagen: the structs of fagen.h by ctypes, and of table.h what forms are; measure/ reads this file, too.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Members and their order are the header's (test/Package/ctypes.test)."""
import ctypes
from ctypes import c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

ABI = 1


class _Struct(ctypes.Structure):
    """A struct of the C ABI: knows its size and number; all else is absent."""

    def __init__(self):
        super().__init__()
        self.struct_size = ctypes.sizeof(self)
        self.abi = ABI


class Arg(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_uint32), ("reserved", c_uint32), ("i32", c_int64), ("f32", c_double),
                ("data", c_void_p), ("stride", c_int64 * 4)]


class Problem(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("pass_", c_uint32), ("dtype", c_uint32),
                ("mask", c_uint32), ("flags", c_uint32), ("batch", c_int64), ("heads", c_int64),
                ("kv_heads", c_int64), ("seq_q", c_int64), ("seq_kv", c_int64), ("head_dim_qk", c_int64),
                ("head_dim_v", c_int64), ("q_stride", c_int64 * 3), ("k_stride", c_int64 * 3),
                ("v_stride", c_int64 * 3), ("o_stride", c_int64 * 3), ("lse_stride", c_int64 * 2),
                ("scale", c_float), ("has_scale", c_uint32), ("alignment", c_uint32), ("variant", c_char_p),
                ("form", c_char_p), ("args", c_void_p), ("arg_count", c_uint32), ("kv_dtype", c_uint32)]


class Choice(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("table", c_void_p), ("row", c_void_p),
                ("device", c_void_p), ("workspace_bytes", c_size_t), ("workspace_alignment", c_uint32),
                ("reserved", c_uint32), ("state", c_uint64 * 64), ("scratch_bytes", c_uint64)]


class Tensors(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("q", c_void_p), ("k", c_void_p), ("v", c_void_p),
                ("o", c_void_p), ("lse", c_void_p), ("args", c_void_p), ("arg_count", c_uint32), ("reserved", c_uint32)]


class DeviceInfo(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("ordinal", c_int32), ("compute_capability", c_uint32),
                ("sm_count", c_uint32), ("shared_bytes_per_block", c_uint32), ("name", ctypes.c_char * 128)]


class ChoiceInfo(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("variant", c_char_p), ("target", c_char_p),
                ("symbol", c_char_p), ("origin", c_char_p), ("grid", c_uint64), ("threads", c_uint32),
                ("shared_bytes", c_uint32), ("registers", c_int32), ("local_bytes", c_int32)]


class NamedTensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("dtype", c_uint32), ("rank", c_uint32), ("extent", c_int64 * 5),
                ("stride", c_int64 * 5)]


class NamedNumber(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("kind", c_uint32), ("reserved", c_uint32), ("i32", c_int64), ("f32", c_double)]


class Call(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("program", c_char_p), ("tensors", c_void_p),
                ("numbers", c_void_p), ("tensor_count", c_uint32), ("number_count", c_uint32), ("flags", c_uint32),
                ("reserved", c_uint32)]


class FormParam(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("element", c_uint32), ("rank", c_uint32), ("offset", c_uint32), ("flags", c_uint32),
                ("low", c_double), ("high", c_double), ("bound", c_double), ("extents", c_uint64 * 8)]


class Form(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("text", c_char_p), ("hash", c_uint64), ("params", c_void_p), ("param_count", c_uint32),
                ("param_size", c_uint32), ("bytes", c_uint32), ("reserved", c_uint32)]


class Table(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("kernel", c_char_p), ("spec", c_char_p), ("rows", c_void_p),
                ("keys", c_void_p), ("schedules", c_void_p), ("select", c_void_p), ("row_count", c_uint32), ("row_size", c_uint32),
                ("schedule_count", c_uint32), ("select_count", c_uint32), ("claim", c_void_p), ("claim_text", c_char_p),
                ("claim_size", c_uint32), ("reserved", c_uint32), ("forms", c_void_p), ("form_count", c_uint32),
                ("form_size", c_uint32)]
