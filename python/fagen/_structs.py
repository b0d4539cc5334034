# fagen: the structs of fagen.h by ctypes; measure/ reads this file, too.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Members and their order are the header's (test/Package/ctypes.test)."""
import ctypes
from ctypes import c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

ABI = 1


class _Struct(ctypes.Structure):
    """A struct of the C ABI: knows its size and number; all else is absent."""

    def __init__(self):
        super().__init__()
        self.struct_size = ctypes.sizeof(self)
        self.abi = ABI


class Problem(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("pass_", c_uint32), ("dtype", c_uint32),
                ("mask", c_uint32), ("flags", c_uint32), ("batch", c_int64), ("heads", c_int64),
                ("kv_heads", c_int64), ("seq_q", c_int64), ("seq_kv", c_int64), ("head_dim_qk", c_int64),
                ("head_dim_v", c_int64), ("q_stride", c_int64 * 3), ("k_stride", c_int64 * 3),
                ("v_stride", c_int64 * 3), ("o_stride", c_int64 * 3), ("lse_stride", c_int64 * 2),
                ("scale", c_float), ("has_scale", c_uint32), ("alignment", c_uint32), ("variant", c_char_p)]


class Choice(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("table", c_void_p), ("row", c_void_p),
                ("device", c_void_p), ("workspace_bytes", c_size_t), ("workspace_alignment", c_uint32),
                ("reserved", c_uint32), ("state", c_uint64 * 64), ("scratch_bytes", c_uint64)]


class Tensors(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("q", c_void_p), ("k", c_void_p), ("v", c_void_p),
                ("o", c_void_p), ("lse", c_void_p)]


class DeviceInfo(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("ordinal", c_int32), ("compute_capability", c_uint32),
                ("sm_count", c_uint32), ("shared_bytes_per_block", c_uint32), ("name", ctypes.c_char * 128)]


class ChoiceInfo(_Struct):
    _fields_ = [("struct_size", c_uint32), ("abi", c_uint32), ("variant", c_char_p), ("target", c_char_p),
                ("symbol", c_char_p), ("origin", c_char_p), ("grid", c_uint64), ("threads", c_uint32),
                ("shared_bytes", c_uint32), ("registers", c_int32), ("local_bytes", c_int32)]
