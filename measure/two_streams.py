#!/usr/bin/env python3
# fagen: launches kernels on two streams at once, each with a workspace of its own, and compares with one after the other.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""two_streams.py DIR --library FILE --variant NAME [--rounds N]

A row's workspace is one launch's at a time (docs/Runtime.md). On two streams each launch has its own: results must be those of
launches alone, bit for bit, and counters 0 again. A small problem on one stream meets a large one on the other, so that CTAs
of both draw tiles at the same time. Exits with 2 where something differs."""
import argparse
import sys

try:
    import torch
except ImportError:
    sys.exit("two_streams.py needs PyTorch")

import fagen_ctypes

SHAPES = (1, 4, 640), (1, 8, 4096)  # batch, heads, length
LAUNCHES = 8  # of each stream, one after the other


def make_problem(library, shape, head_dim, mask, variant):
    batch, heads, length = shape
    q, k, v = (torch.randn(batch, heads, length, head_dim, device="cuda", dtype=torch.float16) for _ in range(3))
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, length, device="cuda")
    return library.attention(q, k, v, o, lse, mask, variant), o


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("directories", nargs="+")
    parser.add_argument("--library", required=True)
    parser.add_argument("--variant", required=True)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--mask", default="causal")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    torch.manual_seed(1)
    library = fagen_ctypes.Library(options.library, options.directories)
    problems = [make_problem(library, shape, options.head_dim, options.mask, options.variant) for shape in SHAPES]
    alone = []
    for attention, o in problems:
        attention()
        torch.cuda.synchronize()
        alone.append(o.clone())
    streams = [torch.cuda.Stream() for _ in problems]
    wrong = 0
    for _ in range(options.rounds):
        for _, o in problems:
            o.fill_(float("nan"))
        torch.cuda.synchronize()
        for _ in range(LAUNCHES):
            for stream, (attention, _) in zip(streams, problems):
                with torch.cuda.stream(stream):
                    attention()
        torch.cuda.synchronize()
        for (attention, o), expected in zip(problems, alone):
            wrong += not torch.equal(o, expected) or bool(attention.workspace.any())
    print(f"{options.variant}: {options.rounds} rounds of {LAUNCHES} launches on {len(streams)} streams, {wrong} differ")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
