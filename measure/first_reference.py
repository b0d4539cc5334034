#!/usr/bin/env python3
# fagen: what an online softmax in f16 loses where it begins with a larger reference than the first tile's maximum.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""first_reference.py --output FILE: no GPU is asked for.

Rescaling optimistically, a row keeps the maximum of its first key tile for as long as its terms fit f16. With a reference
that is larger by 2^n they fit for longer, and what is small next to it has fewer bits, or none. Terms are rounded to f16, all
else is f64. The error is that of O's rows in the root mean square, over their own size; rows are those of one head."""
import argparse
import json
import sys

try:
    import torch
except ImportError:
    sys.exit("first_reference.py needs PyTorch")

import inputs
from notes import machine, notes_of

ROWS, KEYS, HEAD_DIM, TILE = 256, 8192, 128, 128
BITS, LARGEST_SUM, LOWERED_BITS = (0, 2, 4, 6), 2.0 ** 15, 0  # as in ops/settle.h, of a row's sum
KINDS = ("normal", "hot4", "hot8", "rope12", "sink", "quiet sink")


def tensors(kind):
    """quiet sink: V of the sink is 0, as trained models have it."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, rows, HEAD_DIM).half() for rows in (ROWS, KEYS, KEYS))
    if kind != "normal":
        inputs.change(kind.split()[-1], q, k)
    if kind.startswith("quiet"):
        v[:, :, 0] = 0
    return (tensor[0, 0].double() for tensor in (q, k, v))


def attention(scores, v, bits):
    """By terms of f16, and how many times a tile's terms came down."""
    o, total, lowered = torch.zeros(ROWS, v.shape[1], dtype=torch.float64), torch.zeros(ROWS, dtype=torch.float64), 0
    m = scores[:, :TILE].amax(1) + bits
    for first in range(0, KEYS, TILE):
        terms = torch.exp2(scores[:, first:first + TILE] - m[:, None])
        sums = terms.sum(1)
        outgrown = sums > LARGEST_SUM
        growth = torch.where(outgrown, sums.log2() - LOWERED_BITS, 0)
        lowered += outgrown.sum().item()
        factor = torch.exp2(-growth)
        m, o, total, terms = m + growth, o * factor[:, None], total * factor, terms * factor[:, None]
        total += terms.sum(1)
        o += terms.half().double() @ v[first:first + TILE]
    return o / total[:, None], lowered


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="JSON file to write")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    options = parser.parse_args()
    rows = []
    for kind in KINDS:
        q, k, v = tensors(kind)
        scores = q @ k.T * (HEAD_DIM ** -0.5 / torch.log(torch.tensor(2.0)).item())
        exact = torch.softmax(scores * torch.log(torch.tensor(2.0, dtype=torch.float64)), 1) @ v
        for bits in BITS:
            o, lowered = attention(scores, v, bits)
            error = ((o - exact).norm(dim=1) / exact.norm(dim=1)).mean().item()
            rows.append(dict(inputs=kind, bits=bits, error=error, lowered=lowered / ROWS))
            print(f"{kind:10s} 2^{bits}  error {error:.1e}  lowered {lowered / ROWS:.1f} times a row")
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(dict(tool="first_reference.py", machine=dict(machine(), torch=torch.__version__), rows=ROWS, keys=KEYS,
                       head_dim=HEAD_DIM, tile=TILE, notes=notes_of(options.note), results=rows), file, indent=1)


if __name__ == "__main__":
    main()
