#!/usr/bin/env python3
# fagen: two kernel sets that differ in `rescale`, on scores that outgrow their maxima from tile to tile, and on others.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""rescale.py A B --library FILE --variant NAME...

The two sets have the same variants of f16, whose names end in _dD_MASK. Inputs: `rise12` and `rise4` have scores that rise
by so much, after the scale, from key tile to key tile in the order in which the kernel walks them; `row12` the same in one
query row of 16, `fall12` the other way round; `deviationN` are normal scores. Times are medians of bursts that take turns,
results are compared with float32 of the first and the last head. Exits with 2 where one is wrong."""
import argparse
import os
import random
import re
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("rescale.py needs PyTorch")

import compare_sdpa
import fagen_ctypes

INPUTS = ("rise12", "row12", "rise4", "fall12", *(f"deviation{n}" for n in (1, 2, 4, 6, 8, 12, 16, 24, 32)))
ROWS, LENGTH, WIDTH = 16384, 4096, 2048  # batch x length; heads x head_dim
BURSTS, LAUNCHES, IDLE_S = 3, 8, 0.03
LARGEST_ERROR, LARGEST_LSE_ERROR = 0.005, 1e-5  # of O; of LSE next to the larger of 1 and itself


class Walk:
    """How a kernel goes through the keys, by its text."""

    def __init__(self, directory, variant):
        path = next((os.path.join(folder, variant + ".cu") for folder, _, files in os.walk(directory)
                     if variant + ".cu" in files), None)
        if path is None:
            sys.exit(f"rescale.py: {directory} has no {variant}.cu")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.keys = int(re.search(r"kTileKeys = (\d+)", text)[1])
        self.is_from_the_end = "k_map, (cta.key_tiles - (j + 1)) * kTileKeys" in text

    def number_of(self, length):
        """The tile of each key, counted as the kernel comes to it."""
        tile = torch.arange(length, device="cuda") // self.keys
        return tile.max() - tile if self.is_from_the_end else tile


def fill(kind, walk, q, k, v):
    """Rising scores: Q is about 1 everywhere, a key a number that grows from tile to tile, and noise."""
    generator = torch.Generator("cuda").manual_seed(q.shape[3])
    for tensor in (q, k, v):
        tensor.copy_(torch.randn(tensor.shape, device="cuda", generator=generator))
    name, number = re.fullmatch(r"([a-z]+)(\d+)", kind).groups()
    if name == "deviation":
        q.mul_(int(number))
        return
    q.mul_(0.1)
    if name == "row":
        q[:, :, ::16].add_(1)
    else:
        q.add_(1)
    tile = walk.number_of(k.shape[2])
    tile = tile.max() - tile if name == "fall" else tile
    k.add_((tile * (int(number) / q.shape[3] ** 0.5))[:, None].to(k.dtype))


def expected(q, k, v, mask):
    scores = (q.float() @ k.float().T).double() * q.shape[1] ** -0.5
    if mask == "causal":
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1).float() @ v.float(), torch.logsumexp(scores, -1).float()


def errors(attention, q, k, v, o, lse, mask):
    """The largest ones of O and of LSE."""
    o.fill_(float("nan"))
    lse.fill_(float("nan"))
    attention()
    torch.cuda.synchronize()
    worst = [0.0, 0.0]
    for at in ((0, 0), (-1, -1)):
        want, want_lse = expected(q[at], k[at], v[at], mask)
        of_o = (o[at].float() - want).abs().nan_to_num(float("inf")).max().item()
        of_lse = ((lse[at] - want_lse).abs() / want_lse.abs().clamp(min=1)).nan_to_num(float("inf")).max().item()
        worst = [max(worst[0], of_o), max(worst[1], of_lse)]
    return worst


def medians(graphs):
    times = [[] for _ in graphs]
    for burst in range(BURSTS):
        for at in random.Random(burst).sample(range(len(graphs)), len(graphs)):
            time.sleep(IDLE_S)
            graphs[at].time()
            times[at] += [graphs[at].time() for _ in range(2)]
    return [sorted(of_one)[len(of_one) // 2] for of_one in times]


def compare(libraries, directory, variant):
    """Prints a line for each input; false where a result is wrong."""
    found = re.search(r"_f16_d(\d+)_(none|causal)$", variant)
    if not found:
        sys.exit(f"rescale.py: {variant} is no variant of f16 with one head_dim")
    head_dim, mask, walk = int(found[1]), found[2], Walk(directory, variant)
    q, k, v, o = (torch.zeros(ROWS // LENGTH, WIDTH // head_dim, LENGTH, head_dim, device="cuda", dtype=torch.float16)
                  for _ in range(4))
    lse = torch.empty(q.shape[:3], device="cuda")
    attentions = [library.attention(q, k, v, o, lse, mask, variant) for library in libraries]
    graphs = [compare_sdpa.WarmGraph(attention, LAUNCHES) for attention in attentions]
    is_right = True
    for kind in INPUTS:
        fill(kind, walk, q, k, v)
        worst = [errors(attention, q, k, v, o, lse, mask) for attention in attentions]
        wrong = any(not (of_o <= LARGEST_ERROR and of_lse <= LARGEST_LSE_ERROR) for of_o, of_lse in worst)
        a, b = medians(graphs)
        print(f"{variant:28s} {kind:12s} {a:8.1f} us {b:8.1f} us {a / b:6.3f}   O {worst[0][0]:.1e} {worst[1][0]:.1e}   "
              f"LSE {worst[0][1]:.1e} {worst[1][1]:.1e}{'   WRONG' if wrong else ''}", flush=True)
        is_right &= not wrong
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--library", required=True, help="libfagen_capi.so")
    parser.add_argument("--variant", nargs="+", required=True)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.cuda.set_stream(torch.cuda.Stream())
    libraries = [fagen_ctypes.Library(options.library, [directory]) for directory in (options.a, options.b)]
    print(f"{torch.cuda.get_device_name()}: batch {ROWS // LENGTH}, length {LENGTH}, {WIDTH} / head_dim heads; "
          f"A, B, A / B, and the largest errors of both")
    return 0 if all([compare(libraries, options.a, variant) for variant in options.variant]) else 2


if __name__ == "__main__":
    sys.exit(main())
