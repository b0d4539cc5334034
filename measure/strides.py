#!/usr/bin/env python3
# fagen: runs kernels on tensors whose strides are 0, or more than a tensor map takes, and compares with dense tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""strides.py DIR... --library FILE [--head-dim N]

Broadcast: Q, K and V repeat by strides of 0, over batches, heads or rows. Every variant that takes them must give the bits that
it gives for dense copies. Far: the two batches of K lie 2^40 bytes apart, which the driver refuses in a tensor map (docs/Runtime.md).
fagen_query must pick a row that can, and what it picks must give the bits of a dense copy. K is host memory that the GPU reads:
a terabyte of addresses, of which two ends have memory. Exits with 2 where something differs."""
import argparse
import ctypes
import sys

try:
    import torch
except ImportError:
    sys.exit("strides.py needs PyTorch")

import fagen_ctypes

BATCH, HEADS, KV_HEADS, ROWS, KEYS = 2, 4, 2, 130, 193
FAR = 1 << 40  # bytes
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, READ_WRITE = 0x02, 0x20, 0x4000, 3
HOST_REGISTER_MAPPED = 2


def draw(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def run(library, q, k, v, mask, variant):
    """O, LSE and the name of the variant that ran."""
    o = torch.full((BATCH, HEADS, ROWS, v.shape[3]), float("nan"), device="cuda", dtype=torch.float16)
    lse = torch.full((BATCH, HEADS, ROWS), float("nan"), device="cuda")
    attention = library.attention(q, k, v, o, lse, mask, variant)
    attention()
    torch.cuda.synchronize()
    return o, lse, attention.info().variant.decode()


def same(a, b):
    return torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def broadcasts(head_dim):
    """Names and tensors whose strides are 0 in one way or another."""
    q, kv = (BATCH, HEADS, ROWS, head_dim), (BATCH, KV_HEADS, KEYS, head_dim)
    for name, dimension in (("batches", 0), ("heads", 1), ("rows", 2)):
        one = lambda shape: draw(*(1 if i == dimension else n for i, n in enumerate(shape))).expand(shape)
        yield f"K and V, {name}", draw(*q), one(kv), one(kv)
        yield f"Q, {name}", one(q), draw(*kv), draw(*kv)
    yield "K, batches and heads", draw(*q), draw(1, 1, KEYS, head_dim).expand(kv), draw(*kv)


def check_broadcasts(library, head_dim):
    wrong = runs = 0
    for name, q, k, v in broadcasts(head_dim):
        for mask in fagen_ctypes.MASKS:
            for variant in library.variants():
                try:
                    given = run(library, q, k, v, mask, variant)
                except fagen_ctypes.Error as error:
                    if "fagen_query" in str(error):
                        continue  # of another problem, or not for these strides
                    print(f"{variant}: {name}, {mask}: {error}")
                    wrong += 1
                    continue
                runs += 1
                if not same(given, run(library, *(t.contiguous() for t in (q, k, v)), mask, variant)):
                    print(f"{variant}: {name}, {mask}: not the bits of dense copies")
                    wrong += 1
    print(f"broadcast: {runs} runs, {wrong} wrong")
    return wrong if runs else 1


class FarKeys:
    """K [2, KV_HEADS, KEYS, head_dim] in host memory, FAR bytes from batch to batch: what describe() asks of a tensor."""

    def __init__(self, dense):
        self.shape, self.dtype = dense.shape, dense.dtype
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        size = -(-dense[0].nbytes // 65536) * 65536
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        self.base = libc.mmap(None, FAR + size, READ_WRITE, flags, -1, 0)
        if self.base in (None, ctypes.c_void_p(-1).value):
            sys.exit(f"strides.py: no terabyte of addresses: errno {ctypes.get_errno()}")
        for batch in range(BATCH):
            host = dense[batch].contiguous().cpu()
            ctypes.memmove(self.base + batch * FAR, host.data_ptr(), host.nbytes)
            status = torch.cuda.cudart().cudaHostRegister(self.base + batch * FAR, size, HOST_REGISTER_MAPPED)
            if int(status) != 0:
                sys.exit(f"strides.py: cudaHostRegister: {status}")

    def stride(self):
        return (FAR // 2, self.shape[2] * self.shape[3], self.shape[3], 1)

    def data_ptr(self):
        return self.base


def check_far(library, head_dim):
    wrong = 0
    q, k, v = draw(BATCH, HEADS, ROWS, head_dim), draw(BATCH, KV_HEADS, KEYS, head_dim), draw(BATCH, KV_HEADS, KEYS, head_dim)
    far = FarKeys(k)
    for mask in fagen_ctypes.MASKS:
        given = run(library, q, far, v, mask, None)
        dense = run(library, q, k, v, mask, None)[2]
        is_same = same(given, run(library, q, k, v, mask, given[2]))
        print(f"far, {mask}: {given[2]} (dense keys: {dense}): {'the same bits' if is_same else 'WRONG'}")
        wrong += not is_same
    return wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--library", required=True)
    parser.add_argument("--head-dim", type=int, default=128)
    options = parser.parse_args()
    torch.manual_seed(1)
    library = fagen_ctypes.Library(options.library, options.directories)
    wrong = check_broadcasts(library, options.head_dim) + check_far(library, options.head_dim)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
