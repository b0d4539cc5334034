#!/usr/bin/env python3
# fagen: the LSE of rows that see few keys, next to that of other libraries.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lse_error.py SET... --library FILE [--contestant NAME=LIBRARY.so] [--output FILE.json] [--note commit=HASH]

The LSE of a row that sees one key is that key's score: one sum of head_dim products. Q is 20 or 30 times standard normal, K
and V are standard normal, rows see one to three keys, scale is 1 or 4 times 1 / sqrt(head_dim). Each row is judged by
docs/Checking.md ("LSE and tensor cores"): the reference and what tensor cores may lose of it come from the library that
fagen-run check is made of, on the CPU in f64. Told of each contestant: how many rows miss 1e-5 max(1, |ref|), how many miss
the bound, and the largest share of it. Contestants are all variants of the sets without a mask, the libraries given, and
PyTorch's backends; their figures are the worst of each head dim and type, and of each problem in the JSON.

Exit code: 2 when a row of a variant of the sets misses the bound; else 0."""
import argparse
import concurrent.futures
import ctypes
import itertools
import json
import re
import subprocess
import sys

try:
    import torch
except ImportError:
    sys.exit("lse_error.py needs PyTorch")

import contestants
import fagen_ctypes
from notes import notes_of

BATCH, HEADS = 16, 8
SPREADS, KEYS, SCALES = (20, 30), (1, 2, 3), (1, 4)
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16"}


def dims_of(variant):
    """dtype, head_dim of Q and K, head_dim of V; None for a variant with a mask."""
    found = re.search(r"_(f16|bf16)_d(\d+)(?:x(\d+))?_none$", variant)
    return found and (found[1], int(found[2]), int(found[3] or found[2]))


class Problem:
    """Inputs, and what is right."""

    def __init__(self, library, dtype, dims, rows, spread, keys, scale):
        generator = torch.Generator("cuda").manual_seed(hash((dims, spread, keys, scale)) % 2**31)
        shape = (BATCH, HEADS, max(1, rows // (BATCH * HEADS)), dims[0])

        def normal(*sizes):
            return torch.randn(sizes, device="cuda", generator=generator)
        self.spread, self.keys, self.scales = spread, keys, scale
        self.q = (normal(*shape) * spread).to(dtype)
        self.k, self.v = (normal(BATCH, HEADS, keys, d).to(dtype) for d in dims)
        self.scale = scale * dims[0] ** -0.5
        self.o = torch.empty((*shape[:3], dims[1]), dtype=dtype, device="cuda")
        self.lse = torch.empty(shape[:3], device="cuda")
        self.expected, loss = reference_lse(library, self.q, self.k, self.scale)
        self.least = library.fagen_lse_tolerance() * self.expected.abs().clamp(min=1)
        self.bound = self.least + loss

    def judge(self, lse):
        """Rows beyond 1e-5, rows beyond the bound, the largest error over max(1, |ref|), the largest share of the bound."""
        error = (lse.double().cpu() - self.expected).abs()
        error = torch.where(error.isnan(), torch.inf, error)
        return {"spread": self.spread, "keys": self.keys, "scale": self.scale, "rows": error.numel(),
                "beyond_1e-5": int((error > self.least).sum()), "beyond_bound": int((error > self.bound).sum()),
                "largest": (error / self.expected.abs().clamp(min=1)).max().item(),
                "used": (error / self.bound).max().item()}


def reference_lse(library, q, k, scale):
    """LSE and what tensor cores may lose of it, both f64, on the CPU."""
    q, k = q.cpu().contiguous(), k.cpu().contiguous()
    batch, heads, length, head_dim = q.shape
    lse, loss = torch.empty(q.shape[:3], dtype=torch.float64), torch.empty(q.shape[:3], dtype=torch.float64)
    library.fagen_reference_lse(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in (q, k)),
                                *(ctypes.c_int64(size) for size in (batch * heads, length, k.shape[2], head_dim)),
                                ctypes.c_uint32(fagen_ctypes.DTYPES[q.dtype]), ctypes.c_double(scale),
                                *(ctypes.c_void_p(tensor.data_ptr()) for tensor in (lse, loss)))
    return lse, loss


def backends(p):
    """PyTorch's backends that give LSE, and its product of matrices in f32 for rows that see one key."""
    def flash():
        return torch.ops.aten._scaled_dot_product_flash_attention(p.q, p.k, p.v, scale=p.scale)[1]

    def cudnn():
        return torch.ops.aten._scaled_dot_product_cudnn_attention(p.q, p.k, p.v, None, True, scale=p.scale)[1]

    def product():
        if p.keys > 1:
            raise contestants.Refused("more than one key")
        return torch.bmm(p.q.flatten(0, 1), p.k.flatten(0, 1).mT, out_dtype=torch.float32) * p.scale
    yield from (("flash", flash), ("cudnn", cudnn), ("matrix product", product))


def written(p, launch):
    """Runs a launch that writes p.lse."""
    p.lse.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    return p.lse


def results(p, library, variants, others):
    """Pairs of a contestant's name and its LSE, or why there is none."""
    runs = [(name, lambda name=name: written(p, library.attention(p.q, p.k, p.v, p.o, p.lse, "none", name, p.scale)))
            for name in variants]
    runs += [(other.name, lambda other=other: written(p, other.attention(p.q, p.k, p.v, p.o, p.lse, "none", p.scale)))
             for other in others]
    for name, run in itertools.chain(runs, backends(p)):
        try:
            yield name, run().reshape(p.lse.shape), None
        except (contestants.Refused, RuntimeError, fagen_ctypes.Error) as reason:
            yield name, None, str(reason).splitlines()[0]


def prepare(library, variants):
    """Compiles all variants, several at once, before anything runs."""
    def one(name):
        library.lib.fagen_device_make_current(library.device)
        dtype, *dims = dims_of(name)
        q, k, v, o = (torch.empty((1, 1, 1, d), device="cuda", dtype=torch.float16 if dtype == "f16" else torch.bfloat16)
                      for d in (dims[0], dims[0], dims[1], dims[1]))
        library.attention(q, k, v, o, torch.empty((1, 1, 1), device="cuda"), "none", name)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(one, variants))


def compare(library, variants, others, dtype, dims, rows):
    """One entry a contestant of these head dims, with one result a problem."""
    mine = [name for name in variants if dims_of(name) == (NAMES[dtype], *dims)]
    entries = {}
    for spread, keys, scale in itertools.product(SPREADS, KEYS, SCALES):
        p = Problem(library.lib, dtype, dims, rows, spread, keys, scale)
        for name, lse, reason in results(p, library, mine, others):
            entry = entries.setdefault(name, {"contestant": name, "ours": name in mine, "dtype": NAMES[dtype],
                                              "head_dim_qk": dims[0], "head_dim_v": dims[1], "problems": [],
                                              "refused": []})
            if lse is not None:
                entry["problems"].append(p.judge(lse))
            elif reason not in entry["refused"]:
                entry["refused"].append(reason)
    return list(entries.values())


def tell(entry):
    problems = entry["problems"]
    if not problems:
        print(f"  {entry['contestant']:<40} {entry['refused'][0][:70]}")
        return
    rows, least, bound = (sum(p[key] for p in problems) for key in ("rows", "beyond_1e-5", "beyond_bound"))
    print(f"  {entry['contestant']:<40} {rows:8d} rows  {least:6d} beyond 1e-5, largest {max(p['largest'] for p in problems):.2e}"
          f"  {bound:6d} beyond the bound, at most {max(p['used'] for p in problems):.2f} of it")


def machine_facts():
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                            text=True, check=False).stdout.split("\n")[0]
    return {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__,
            "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--library", required=True, help="libfagen_capi.so")
    parser.add_argument("--contestant", action="append", default=[], help="NAME=LIBRARY.so (measure/contestant.h)")
    parser.add_argument("--rows", type=int, default=131072, help="of each problem")
    parser.add_argument("--output", help="write the JSON here")
    parser.add_argument("--note", action="append", default=[], help="key=value, kept in the JSON")
    options = parser.parse_args()
    torch.cuda.set_stream(torch.cuda.Stream())
    library = fagen_ctypes.Library(options.library, options.sets)
    library.lib.fagen_lse_tolerance.restype = ctypes.c_double
    others = [contestants.Contestant(named) for named in options.contestant]
    variants = [name for name in library.variants() if dims_of(name)]
    prepare(library, variants)
    data = {"tool": "measure/lse_error.py", "machine": machine_facts(), "notes": notes_of(options.note),
            "sets": options.sets, "contestants": {other.name: other.about for other in others}, "entries": []}
    print(", ".join(f"{key} {value}" for key, value in {**data["machine"], **data["notes"]}.items()))
    for dims in sorted({dims_of(name)[1:] for name in variants}):
        for dtype in (torch.float16, torch.bfloat16):
            print(f"head_dim {dims[0]}, of V {dims[1]}, {NAMES[dtype]}:")
            for entry in compare(library, variants, others, dtype, dims, options.rows):
                data["entries"].append(entry)
                tell(entry)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
    ours = [entry for entry in data["entries"] if entry["ours"]]
    failed = sum(p["beyond_bound"] for entry in ours for p in entry["problems"])
    refused = [entry["contestant"] for entry in ours if entry["refused"]]
    print(f"ours: {failed} rows beyond the bound" + (f"; refused: {', '.join(refused)}" if refused else ""))
    return 2 if failed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
