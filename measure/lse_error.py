#!/usr/bin/env python3
# fagen: the LSE of rows that see one key, beside that of other libraries.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lse_error.py SET... --library FILE [--contestant NAME=LIBRARY.so]

The LSE of a row that sees one key is that key's score: one sum of head_dim products, so what is wrong with it is wrong with
sums of products on tensor cores and nothing else. Q is 30 times standard normal, as in the cases `inputs=large` of
fagen-run check; the reference is float64. Prints for each contestant how many of ROWS miss 1e-5 max(1, |ref|), and by how
much, and the same for PyTorch's product of f16 in f32 (a matrix of one column)."""
import argparse
import sys

try:
    import torch
except ImportError:
    sys.exit("lse_error.py needs PyTorch")

import contestants
import fagen_ctypes

BATCH, HEADS, LENGTH = 16, 8, 512
ROWS = BATCH * HEADS * LENGTH
SPREAD, BOUND = 30, 1e-5


def tell(name, lse, expected):
    excess = (lse.double() - expected).abs() / expected.abs().clamp(min=1)
    print(f"  {name:<32} {int((excess > BOUND).sum()):6d} of {ROWS} beyond {BOUND:g}, largest {excess.max().item():.2e}")


def backends(q, k, v):
    """PyTorch's backends that give LSE."""
    yield "flash", torch.ops.aten._scaled_dot_product_flash_attention(q, k, v)[1]
    yield "cudnn", torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True)[1]


def compare(library, others, head_dim, dtype):
    generator = torch.Generator("cuda").manual_seed(head_dim)
    shape = (BATCH, HEADS, LENGTH, head_dim)
    q = (torch.randn(shape, device="cuda", generator=generator) * SPREAD).to(dtype)
    k, v = (torch.randn((BATCH, HEADS, 1, head_dim), device="cuda", generator=generator).to(dtype) for _ in range(2))
    expected = (q.double() * k.double()).sum(-1) * head_dim ** -0.5
    print(f"head_dim {head_dim}, {str(dtype).removeprefix('torch.')}:")
    o, lse = torch.empty_like(q), torch.empty(shape[:3], device="cuda")
    launches = [(name, library.attention(q, k, v, o, lse, "none", name)) for name in library.variants()
                if f"_{'f16' if dtype == torch.float16 else 'bf16'}_d{head_dim}_none" in name]
    for name, launch in launches + [(other.name, other.attention(q, k, v, o, lse, "none")) for other in others]:
        lse.fill_(float("nan"))
        launch()
        torch.cuda.synchronize()
        tell(name, lse, expected)
    for name, theirs in backends(q, k, v):
        tell(name, theirs.reshape(shape[:3]), expected)
    tell("matrix product", torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT, out_dtype=torch.float32).reshape(shape[:3])
         * head_dim ** -0.5, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--library", required=True, help="libfagen_capi.so")
    parser.add_argument("--contestant", action="append", default=[], help="NAME=LIBRARY.so (measure/contestant.h)")
    options = parser.parse_args()
    torch.cuda.set_stream(torch.cuda.Stream())
    library = fagen_ctypes.Library(options.library, options.sets)
    others = [contestants.Contestant(named) for named in options.contestant]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for head_dim in (64, 128, 256):
        for dtype in (torch.float16, torch.bfloat16):
            compare(library, others, head_dim, dtype)
    return 0


if __name__ == "__main__":
    sys.exit(main())
