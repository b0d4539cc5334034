#!/usr/bin/env python3
# fagen: a language model of some 100 million parameters, trained with fagen's attention and with SDPA's backends from one state on one text.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""train.py [--steps N] [--output FILE]: runs of a Llama-like model (RMSNorm, rotary places, grouped heads, SwiGLU; float32 weights, bfloat16 by
autocast, AdamW) that differ in attention alone:

  fagen         twice: losses and weights have to be the same bits
  checkpointed  the first steps once more with activation checkpointing of each block: the same bits
  compiled      the first steps once more with torch.compile of each block
  flash, cudnn, efficient, math   SDPA's backends
  flash_compiled                  for the time of a step next to that of compiled

The text is synthetic: each token has four likely successors, and half of a sequence is a copy of an earlier part, so that long attention pays.
Runs are compared by the root mean square, over all steps, of the difference of their losses. Ends with 2 where fagen's distance to the mean of
SDPA's backends is more than the largest distance between two of these, where bits differ, or where a loss has not fallen."""
import argparse
import json
import math
import os
import sys
import time
from typing import NamedTuple

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # products of PyTorch give the same bits, too

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import fagen
from notes import machine, notes_of

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
SUCCESSORS = 4


class Sizes(NamedTuple):
    width: int = 768
    layers: int = 12
    heads: int = 12
    kv_heads: int = 4
    hidden: int = 2560
    words: int = 8192


class Block(nn.Module):
    def __init__(self, sizes, attend):
        super().__init__()
        self.head_dim, self.attend = sizes.width // sizes.heads, attend
        self.before, self.between = nn.RMSNorm(sizes.width), nn.RMSNorm(sizes.width)
        self.q = nn.Linear(sizes.width, sizes.width, bias=False)
        self.kv = nn.Linear(sizes.width, 2 * sizes.kv_heads * self.head_dim, bias=False)
        self.o = nn.Linear(sizes.width, sizes.width, bias=False)
        self.gate_up = nn.Linear(sizes.width, 2 * sizes.hidden, bias=False)
        self.down = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, x, cos, sin):
        normed = self.before(x)
        heads = lambda t: t.unflatten(-1, (-1, self.head_dim))  # noqa: E731
        k, v = heads(self.kv(normed)).chunk(2, 2)
        q, k = (rotated(t, cos, sin) for t in (heads(self.q(normed)), k))
        x = x + self.o(self.attend(q, k, v).flatten(2))
        gate, up = self.gate_up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    """Losses of [batch, rows + 1] tokens; a block may be called by `call`."""

    def __init__(self, sizes, attend):
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes, attend) for _ in range(sizes.layers))
        self.last = nn.RMSNorm(sizes.width)
        self.head_dim = sizes.width // sizes.heads
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)

    def forward(self, tokens, call=lambda block, *args: block(*args)):
        places = torch.arange(tokens.shape[1] - 1, device=tokens.device)
        angles = places[:, None] * 1e4 ** (-torch.arange(0, self.head_dim, 2, device=tokens.device) / self.head_dim)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        x = self.words(tokens[:, :-1])
        for block in self.blocks:
            x = call(block, x, cos, sin)
        scores = self.last(x) @ self.words.weight.T
        return F.cross_entropy(scores.flatten(0, 1).float(), tokens[:, 1:].flatten())


def rotated(x, cos, sin):
    even, odd = x.float().chunk(2, -1)
    return torch.cat([even * cos - odd * sin, even * sin + odd * cos], -1).to(x.dtype)


def by_fagen(q, k, v):
    return fagen.attention(q, k, v, causal=True)


def by_sdpa(backend):
    def attend(q, k, v):
        group = q.shape[2] // k.shape[2]
        q, k, v = (t.transpose(1, 2) for t in (q, *(t.repeat_interleave(group, 2) for t in (k, v))))
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    return attend


def text(steps, batch, rows, words, seed=0):
    """[steps, batch, rows + 1] tokens."""
    draw = torch.Generator().manual_seed(seed)
    successors = torch.randint(words, (words, SUCCESSORS), generator=draw)
    choices = torch.multinomial(torch.tensor([0.55, 0.25, 0.15, 0.05]), steps * batch * (rows + 1), True, generator=draw)
    choices = choices.view(rows + 1, steps * batch)
    tokens = torch.empty(rows + 1, steps * batch, dtype=torch.long)
    tokens[0] = torch.randint(words, (steps * batch,), generator=draw)
    for place in range(1, rows + 1):
        tokens[place] = successors[tokens[place - 1], choices[place]]
    half = (rows + 1) // 2
    tokens[half:2 * half] = tokens[:half]
    return tokens.T.reshape(steps, batch, rows + 1).contiguous()


class Run(NamedTuple):
    losses: list
    step_ms: float  # median, the first steps left out
    weights: list


def train(sizes, attend, tokens, *, call=None, rate=6e-4, device="cuda", prepare=lambda model: None):
    """From the same weights each time."""
    torch.manual_seed(0)
    model = Model(sizes, attend).to(device)
    prepare(model)
    steps = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), fused=device == "cuda")
    losses, marks = [], []
    for number, batch in enumerate(tokens.to(device)):
        for group in steps.param_groups:
            group["lr"] = rate * min(1.0, (number + 1) / 20)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(batch, call) if call else model(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        steps.zero_grad()
        losses.append(loss.detach())
        if device == "cuda":
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()
    losses = torch.stack(losses).double().tolist()
    spans = sorted(a.elapsed_time(b) for a, b in zip(marks[5:], marks[6:]))
    return Run(losses, round(spans[len(spans) // 2], 2) if spans else 0.0, [p.detach().cpu() for p in model.parameters()])


def same_bits(one, other):
    return one.losses == other.losses and all(map(torch.equal, one.weights, other.weights))


def distance(one, other):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(one, other)) / len(one))


def compile_blocks(model):
    for block in model.blocks:
        block.compile()


def checkpointed(block, *args):
    return checkpoint(block, *args, use_reentrant=False)


def judged(runs, first):
    """What is wrong, and the distances."""
    sdpa = {name: run.losses for name, run in runs.items() if name in BACKENDS}
    mean = [sum(losses) / len(sdpa) for losses in zip(*sdpa.values())]
    among = {f"{a} {b}": distance(sdpa[a], sdpa[b]) for a in sdpa for b in sdpa if a < b}
    ours = {name: distance(runs["fagen"].losses, losses) for name, losses in sdpa.items()}
    to_mean = {name: distance(losses, mean) for name, losses in {"fagen": runs["fagen"].losses, **sdpa}.items()}
    wrong = []
    if to_mean["fagen"] > max(among.values()):
        wrong.append(f"fagen's losses are {to_mean['fagen']:.2e} away from the mean of SDPA's backends, which are up to {max(among.values()):.2e} apart")
    if not same_bits(runs["fagen"], runs["again"]):
        wrong.append("two runs of fagen differ")
    if runs["checkpointed"].losses != runs["fagen"].losses[:first]:
        wrong.append("checkpointing changes losses")
    wrong += [f"{name}: the loss has not fallen" for name, run in runs.items() if len(run.losses) > first and run.losses[-1] > run.losses[0] - 1]
    return wrong, {"to_mean": to_mean, "fagen_to": ours, "among_sdpa": among}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--first", type=int, default=20, help="steps of the runs with checkpointing and torch.compile")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--head-dim", type=int, default=64, choices=(64, 128))
    parser.add_argument("--without", nargs="*", default=[], help="runs to leave out: compiled")
    parser.add_argument("--output")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    sizes = Sizes() if options.head_dim == 64 else Sizes(heads=6, kv_heads=2)
    tokens = text(options.steps, options.batch, options.rows, sizes.words)
    few = tokens[:options.first]
    plans = {"fagen": lambda: train(sizes, by_fagen, tokens), "again": lambda: train(sizes, by_fagen, tokens),
             "checkpointed": lambda: train(sizes, by_fagen, few, call=checkpointed),
             **{name: lambda backend=backend: train(sizes, by_sdpa(backend), tokens) for name, backend in BACKENDS.items()}}
    compiled = {"compiled": lambda: train(sizes, by_fagen, few, prepare=compile_blocks),
                "flash_compiled": lambda: train(sizes, by_sdpa(BACKENDS["flash"]), few, prepare=compile_blocks)}
    runs = {}
    train(sizes, by_fagen, tokens[:3])  # kernels are loaded
    run_all(plans, runs)
    wrong, distances = judged(runs, options.first)
    print(json.dumps(distances), *wrong, sep="\n", flush=True)
    result = {"tool": "train.py", "machine": {**machine(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}, "notes": notes_of(options.note),
              "sizes": sizes._asdict(), "parameters": sum(w.numel() for w in runs["fagen"].weights), "batch": options.batch, "rows": options.rows,
              "distances": distances, "wrong": wrong}
    write(options.output, result, runs)
    if "compiled" not in options.without:
        run_all(compiled, runs)
        print("compiled, to fagen and to flash_compiled:", distance(runs["compiled"].losses, runs["fagen"].losses),
              distance(runs["compiled"].losses, runs["flash_compiled"].losses), flush=True)
        write(options.output, result, runs)
    sys.exit(2 if wrong else 0)


def run_all(plans, runs):
    for name, plan in plans.items():
        start = time.time()
        runs[name] = plan()
        print(f"{name}: loss {runs[name].losses[0]:.4f} to {runs[name].losses[-1]:.4f} in {len(runs[name].losses)} steps of "
              f"{runs[name].step_ms} ms, {time.time() - start:.1f} s", flush=True)


def write(path, result, runs):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**result, "runs": {name: {"losses": run.losses, "step_ms": run.step_ms} for name, run in runs.items()}}, file, indent=1)


if __name__ == "__main__":
    main()
