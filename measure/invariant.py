# fagen: whether a batch's bits depend on how many batches there are, on this GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 measure/invariant.py LIBRARY DIRECTORY... [--shape heads,kv_heads,seq_q,seq_kv,d]... [--runs N]

Each variant computes 16 batches at once, then the first few of them alone, several times each: O and LSE must have the
same bits every time for one number of batches, and for kernels with invariant = on for all of them. Prints a line a
variant and shape; says of every kernel whether it was invariant, and fails where a repetition differed."""
import argparse
import sys

import torch

import fagen_ctypes

BATCHES = (16, 1, 2, 5)


def results(library, tensors, batches, mask, variant, runs):
    q, k, v = (tensor[:batches].contiguous() for tensor in tensors)
    found = []
    for _ in range(runs):
        o = torch.full((*q.shape[:3], v.shape[3]), float("nan"), dtype=q.dtype, device="cuda")
        lse = torch.full(q.shape[:3], float("nan"), dtype=torch.float32, device="cuda")
        attention = library.attention(q, k, v, o, lse, mask, variant)
        attention()
        torch.cuda.synchronize()
        found.append((o, lse))
    repeats = all(torch.equal(o, found[0][0]) and torch.equal(lse, found[0][1]) for o, lse in found)
    return found[0], repeats


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--shape", action="append")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    library = fagen_ctypes.Library(arguments.library, arguments.directory)
    failed = False
    for text in arguments.shape or ["32,8,1,3000,128", "32,8,7,5000,128"]:
        heads, kv_heads, seq_q, seq_kv, d = (int(number) for number in text.split(","))
        torch.manual_seed(0)
        tensors = [torch.randn(BATCHES[0], h, s, d, device="cuda", dtype=torch.float16)
                   for h, s in ((heads, seq_q), (kv_heads, seq_kv), (kv_heads, seq_kv))]
        for variant in library.variants():
            mask = "causal" if "_causal" in variant else "none"
            try:
                whole, repeats = results(library, tensors, BATCHES[0], mask, variant, arguments.runs)
            except fagen_ctypes.Error:
                continue  # another problem's variant
            same = True
            for batches in BATCHES[1:]:
                part, again = results(library, tensors, batches, mask, variant, arguments.runs)
                repeats &= again
                same &= all(torch.equal(of_part, of_whole[:batches]) for of_part, of_whole in zip(part, whole))
            failed |= not repeats
            print(f"{text:20s} {variant:44s} {'same' if same else 'other'} bits in batches of {BATCHES}; "
                  f"{arguments.runs} runs of each {'alike' if repeats else 'DIFFER'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
