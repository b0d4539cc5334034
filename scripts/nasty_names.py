# fagen: programs whose names are words of their own text, of the device library, of C++ and of CUDA.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program, in which a name of some kind, from a size to the kernel's symbol, is drawn from words that may mean something
else where the text has it."""
import glob
import os
import random
import re

PROGRAM = """program @drawn {
  kernel @SYMBOL target sm_80 backend mma_sync threads 128 phase split {
    const CONSTANT = 64
    const kKeys = 32
    options {refill = joint, barriers = minimal, swizzle = xor}
    size M, SIZE, K
    param NUMBER : f32
    param WINDOW : i32 in [1, 4096]
    grid tiles (INDEX in ceil_div(M, CONSTANT), n in 2) last_first
    global %ga : f16[M, K] param TENSOR strided
    global %gb : f16[SIZE, K] param b
    global %gc : f32[2, M, SIZE] param c
    global %ge : f32[2, M] param e
    global %gt : u32[M] param table
    view %a_of : f16[M, K] = (ROW, COLUMN) -> %ga[ROW + PLACE, COLUMN]
    view %c_of : f32[M, SIZE] = (ROW, COLUMN) -> %gc[n, ROW, COLUMN]
    view %e_of : f32[M] = (ROW) -> %ge[n, ROW]
    shared %SHARED : f16[64 x kKeys] stages 2
    shared %bs : f16[kKeys x kKeys] stages 2
    fragment %FRAGMENT : f32[16 x 32]
    fragment %m : f32[16 x 1]
    fragment %m_old : f32[16 x 1]
    fragment %l : f32[16 x 1]
    let LET = ceil_div(K, kKeys)
    let PLACE in [0, 0] = %gt[min(INDEX, 0)]
    let limit = max(floor_div(INDEX * CONSTANT + SIZE, 2), 1) % 4096
    role ROLE warps 0 to 4 {
      map %FRAGMENT {value = 0.0}
      map %m_old {value = -inf}
      loop LOOP = 0 to LET {
        copy_issue %SHARED[LOOP], %a_of {kind = "cp_async", row = INDEX * CONSTANT, column = LOOP * kKeys}
        copy_issue %bs[LOOP], %gb {kind = "cp_async", row = 0, column = LOOP * kKeys}
        mma %FRAGMENT, %SHARED[LOOP], %bs[LOOP] {form = "abt", accumulate = 1}
        if LOOP < limit {
          map %FRAGMENT {value = %FRAGMENT + tanh(f32(LOOP + INDEX)) * NUMBER}
        }
      }
      map %FRAGMENT {value = k < SIZE && k <= q + WINDOW - LET ? %FRAGMENT : -inf, row = INDEX * CONSTANT, key = 0}
      map %FRAGMENT {value = %FRAGMENT + NUMBER * f32(k - q + LET * 2), row = INDEX * CONSTANT, key = 0}
      reduce %m, %FRAGMENT, %m_old {op = "max", reach = "row"}
      map %l {value = f32(LET)}
      vote %m, %l {test = %m < %l * NUMBER} {
        map %FRAGMENT, %m {value = exp2(%FRAGMENT - %m) * abs(NUMBER) + f32(PLACE)}
      }
      store %c_of, %FRAGMENT {row = INDEX * CONSTANT}
      store_lse %e_of, %m, %l {row = INDEX * CONSTANT, factor = NUMBER}
    }
  }
}
"""

DEFAULTS = {"SYMBOL": "drawn", "CONSTANT": "kRows", "SIZE": "N", "NUMBER": "scale", "WINDOW": "window", "INDEX": "m",
            "TENSOR": "a", "ROW": "row", "COLUMN": "column", "SHARED": "as", "FRAGMENT": "acc", "LET": "steps",
            "PLACE": "first", "ROLE": "all", "LOOP": "j"}

WORDS = """NULL M_PI EOF INFINITY NAN linux unix errno assert stdin offsetof cudaError_t __half half _x a__b sms add mul max self
lambda None from global in is as def pass import a_map a_stride a_map2 b_map q_stride table_map tile_counter f16 bf16 float4
TensorMap threadIdx blockIdx warpSize printf exp2 exp pow index round j0 y1 gamma main memcpy std size_t uint32_t dim3 N m K c b
row column steps first limit window scale acc bs e table drawn drawn_kernel kKeys next_number drawn tile ticket first_key base
turn x y i n l auto int alignas char8_t co_await requires typeof restrict""".split()


def words(root, text):
    """What stands in the text, in the device library and in lists of keywords."""
    found = set(WORDS) | set(re.findall(r"[A-Za-z_]\w*", text))
    for path in glob.glob(os.path.join(root, "runtime/include/fagen/device/**/*.h"), recursive=True):
        with open(path) as file:
            found |= set(re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*", "", file.read())))
    with open(os.path.join(root, "lib/Support/CppKeywords.cpp")) as file:
        found |= set(re.findall(r'"(\w+)"', file.read()))
    return sorted(found)


def named(seed, pool):
    """(a program, the kind and the name that are not as ever)"""
    draw = random.Random(f"names {seed}")
    return with_name(draw.choice(sorted(DEFAULTS)), draw.choice(pool))


def with_name(kind=None, name=None):
    text = PROGRAM
    for each, default in DEFAULTS.items():
        text = re.sub(rf"\b{each}\b", name if each == kind else default, text)
    return text, f"{kind} '{name}'"
