#!/usr/bin/env python3
# fagen: times forms (scores and masks as expressions) compared with FlexAttention, on the same tensors in one process.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each case is a form of specs/forms.fa and the same mask and score as FlexAttention's functions. The contestants take turns
in rounds, by the method of compare_sdpa.py (docs/Laboratory.md). Next to the times stand each contestant's largest
difference from a reference in f32, what a plain causal kernel takes, and the time of the visible tiles: our dense kernel's
on the same problem without a mask, times visible key tiles over all key tiles. The JSON is written anew after each case."""
import argparse
import importlib
import math
import os
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fagen
import fagen.torch  # noqa: F401
from compare_sdpa import Entrant, machine_facts, nvml_of_gpu, write_whole
from contestants import PACKAGES
from notes import notes_of

HEADS, DIM, TILE = 16, 128, 128
TOLERANCE = 2.0**-5  # absolute, of O that is rounded to bf16 and at most some units large
PEERS = ("fa3", "fa4")  # of PACKAGES
SPECS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "specs")


def documents(batch, lengths):
    """Where the document of each key begins, and its number."""
    first, number = [], []
    for index, length in enumerate(lengths):
        first += [sum(lengths[:index])] * length
        number += [index] * length
    return tuple(torch.tensor([values] * batch, dtype=torch.int32, device="cuda") for values in (first, number))


def mixed_lengths(total):
    lengths = []
    for length in (37, 1200, 512, 64, 2048, 300, 911, 128, 1500, 23):
        lengths.append(min(length, total - sum(lengths)))
    return [length for length in lengths + [total - sum(lengths)] if length]


def cases(wanted):
    """name, batch, length, form, its params, Flex's mask and score, visible keys (first, end) of query rows [q0, q1)."""
    causal = lambda b, h, q, k: q >= k  # noqa: E731
    slopes = torch.tensor([2 ** (-8 * (i + 1) / HEADS) for i in range(HEADS)], dtype=torch.float32, device="cuda")
    sinks = torch.randn(HEADS, dtype=torch.float32, device="cuda")
    below = lambda q0, q1: (0, q1)  # noqa: E731
    yield "softcap", 2, 8192, "softcap", dict(cap=30.0), causal, lambda s, b, h, q, k: 30 * torch.tanh(s / 30), below
    yield "alibi", 2, 8192, "alibi", dict(slope=slopes), causal, lambda s, b, h, q, k: s + slopes[h] * (k - q), below
    yield "sink", 2, 8192, "sink", dict(sinks=sinks), causal, None, below
    for window in (128, 1024, 4096):
        inside = lambda b, h, q, k, w=window: (q >= k) & (q - k < w)  # noqa: E731
        yield (f"window {window}", 1, 16384, "window", dict(window=window), inside, None,
               lambda q0, q1, w=window: (max(0, q0 - w + 1), q1))
    for name, lengths in (("documents", [512] * 16), ("mixed documents", mixed_lengths(8192))):
        first, number = documents(2, lengths)
        same = lambda b, h, q, k, n=number: (q >= k) & (n[b, q] == n[b, k])  # noqa: E731
        seen = lambda q0, q1, f=first[0].tolist(): (f[q0], q1)  # noqa: E731
        yield name, 2, 8192, "documents", dict(first=first), same, None, seen
        yield f"{name} by number", 2, 8192, "same_document", dict(document=number), same, None, seen


def visible_share(length, visible):
    """Key tiles that some row of a tile of rows sees, over all."""
    seen = 0
    for q0 in range(0, length, TILE):
        first, end = visible(q0, min(q0 + TILE, length))
        seen += math.ceil(end / TILE) - first // TILE
    return seen / math.ceil(length / TILE) ** 2


def reference(q, k, v, case):
    """O of some heads in f32 and in plain text, a head at a time: {(batch, head): [rows, DIM]}."""
    _, batch, length, _, params, mask, score, _ = case
    keys, found = torch.arange(length, device="cuda"), {}
    for b, h in {(0, 0), (batch - 1, HEADS - 1)}:
        parts = []
        for rows in torch.arange(length, device="cuda").split(2048):
            s = q[b, rows, h].float() @ k[b, :, h].float().T / math.sqrt(DIM)
            if score:
                s = score(s, b, h, rows[:, None], keys[None])
            s = s.masked_fill(~mask(b, h, rows[:, None], keys[None]), -math.inf)
            if "sinks" in params:
                s = torch.cat([s, params["sinks"][h].expand(len(rows), 1)], 1)
            parts.append(s.softmax(1)[:, :length] @ v[b, :, h].float())
        found[b, h] = torch.cat(parts)
    return found


def difference_of(o, expected):
    """The largest of the heads that the reference has; o is [B, S, H, D]."""
    return max((o[b, :, h].float() - head).abs().max().item() for (b, h), head in expected.items())


def options_of_peer(peer, case):
    """What FlashAttention's functions call the form; None where they do not have it."""
    name, _, _, form, params, *_ = case
    if form == "softcap":
        return dict(softcap=params["cap"])
    if form == "window":
        return dict(window_size=(params["window"] - 1, 0))
    return dict(learnable_sink=params["sinks"].bfloat16()) if form == "sink" and peer == "fa4" else None


def entrant_of_peer(peer, case, tensors, arguments):
    """The package's function on these tensors, and O as it gives it, or why it refuses; None where it lacks the form."""
    options = options_of_peer(peer, case)
    if options is None:
        return None
    function = importlib.import_module(PACKAGES[peer][1]).flash_attn_func
    run = lambda: function(*tensors, causal=True, **options)  # noqa: E731
    try:
        o = run()
    except (RuntimeError, ValueError) as error:
        return str(error).splitlines()[-1]
    return Entrant(peer, run, arguments, {}), o[0] if isinstance(o, tuple) else o


def measure(case, kernels, flex, arguments, nvml):
    name, batch, length, form, params, mask, score, visible = case
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, length, HEADS, DIM, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    ours = lambda: kernels(q, k, v, form=form, **params)  # noqa: E731
    entrants = [Entrant("fagen", ours, arguments, dict(form=form)),
                Entrant("fagen causal", lambda: fagen.attention(q, k, v, causal=True), arguments, {}),
                Entrant("fagen dense", lambda: fagen.attention(q, k, v), arguments, {})]
    expected, refused = reference(q, k, v, case), {}
    differences = dict(fagen=difference_of(ours(), expected))
    if form != "sink":
        torch._dynamo.reset()  # a function compiled for the mask before must not serve this one
        views = [tensor.transpose(1, 2).contiguous() for tensor in (q, k, v)]
        blocks = create_block_mask(mask, batch if "documents" in name else None, None, length, length, device="cuda")
        theirs = lambda: flex(*views, score_mod=score, block_mask=blocks)  # noqa: E731
        differences["FlexAttention"] = difference_of(theirs().transpose(1, 2), expected)
        entrants.append(Entrant("FlexAttention", theirs, arguments, {}))
    if name == "documents":
        many = [tensor.reshape(-1, 512, HEADS, DIM) for tensor in (q, k, v)]
        entrants.append(Entrant("fagen causal, a document a batch", lambda: fagen.attention(*many, causal=True),
                                arguments, {}))
    for peer in arguments.contestant:
        found = entrant_of_peer(peer, case, (q, k, v), arguments)
        if isinstance(found, str):
            refused[peer] = found
        elif found:
            entrants.append(found[0])
            differences[peer] = difference_of(found[1], expected)
    if differences["fagen"] > TOLERANCE:
        raise RuntimeError(f"differs from the reference by {differences['fagen']:.2e}")
    for round_number in range(arguments.rounds):
        for entrant in entrants:
            entrant.segment(round_number, nvml)
    results = [entrant.result(1) for entrant in entrants]
    times = {result["name"]: result["median_us"] for result in results}
    share = visible_share(length, visible)
    facts = dict(case=name, batch=batch, heads=HEADS, length=length, head_dim=DIM, dtype="bf16", differences=differences,
                 refused=refused, repeats=torch.equal(ours(), ours()), visible_share=share, of_visible_tiles=times["fagen"] / (times["fagen dense"] * share),
                 of_causal=times["fagen"] / times["fagen causal"], entrants=results)
    print(f"{name:16} {times['fagen']:8.1f} us  {facts['of_causal']:.3f} of causal  {facts['of_visible_tiles']:.3f} of its "
          f"visible tiles  " + "  ".join(f"{key} {value:.1f}" for key, value in times.items() if key != "fagen")
          + "  differs " + "  ".join(f"{key} {value:.1e}" for key, value in differences.items()), flush=True)
    return facts


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="where the JSON goes")
    parser.add_argument("--spec", default=os.path.join(SPECS, "forms.fa"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--load", type=float, default=0.4, help="seconds of the same load before a segment is timed")
    parser.add_argument("--only", action="append", default=[], help="a case; may be repeated")
    parser.add_argument("--contestant", action="append", default=[], choices=PEERS,
                        help="FlashAttention-3's or -4's package, too, where it has the form; may be repeated")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    arguments = parser.parse_args()
    arguments.state, arguments.idle, arguments.l2 = "steady", 0, "warm"
    return arguments


def main():
    arguments = parse_arguments()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    began = time.monotonic()
    kernels, flex, nvml = fagen.compile(arguments.spec), torch.compile(flex_attention), nvml_of_gpu()
    result = dict(tool="forms.py", state="steady", load_s=arguments.load, rounds=arguments.rounds, machine=machine_facts(),
                  notes=notes_of(arguments.note), layout="ours [B, S, H, D], FlexAttention [B, H, S, D]", cases=[], failed=[])
    for case in cases(arguments.only):
        if arguments.only and case[0] not in arguments.only:
            continue
        try:
            result["cases"].append(measure(case, kernels, flex, arguments, nvml))
        except Exception as error:  # the others go on; the file says so
            result["failed"].append(dict(case=case[0], error=str(error)[:2000]))
            print(f"{case[0]}: {error}", flush=True)
        write_whole(arguments.output, result)
    print(f"{time.monotonic() - began:.0f} s")
    sys.exit(2 if result["failed"] else 0)


if __name__ == "__main__":
    main()
