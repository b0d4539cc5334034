#!/usr/bin/env python3
# fagen: the model of train.py on several processes, by DDP and by FSDP: the same bits as in one process, and times of a step.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchrun --nproc-per-node 2 train_ranks.py [--steps N] [--output FILE]: each rank has its sequences of a batch; gradients are averaged.

Rank 0 also computes the parts of all ranks by itself, one after the other. With two ranks its weights are the same bits as those of DDP and FSDP:
a sum of two and its half have no order. With more they are held to 1e-5 of the way that training went. fagen and SDPA's flash attention are timed
in turn. Ends with 2 where weights differ, or where two runs of fagen do."""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import train
from notes import machine, notes_of


def shared_by(way, model, device):
    """The model, whose gradients all ranks have together: by "ddp" or "fsdp"; "alone" leaves it."""
    if way == "ddp":
        return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)
    if way == "fsdp":
        mesh = dist.init_device_mesh(device.type, (dist.get_world_size(),))
        for part in (*model.blocks, model):
            fully_shard(part, mesh=mesh)
    return model


def trained(way, sizes, attend, tokens, device, ranks, rank):
    """(weights on the CPU, milliseconds of each step) after a step for each of tokens, [steps, batch, rows + 1]. "alone" does the parts of all ranks,
    others that of `rank`."""
    torch.manual_seed(0)
    model = train.Model(sizes, attend).to(device)
    whole = shared_by(way, model, device)
    steps = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    times = []
    for batch in tokens.to(device):
        start = time.perf_counter()
        parts = batch.chunk(ranks)
        for part in parts if way == "alone" else [parts[rank]]:
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = whole(part)
            loss.backward()
        if way == "alone":
            for weight in model.parameters():
                weight.grad /= ranks
        steps.step()
        steps.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append((time.perf_counter() - start) * 1e3)
    return [(p.full_tensor() if isinstance(p, DTensor) else p).detach().cpu() for p in model.parameters()], times


def way_of(weights, others):
    return torch.cat([(a - b).flatten() for a, b in zip(weights, others)]).norm().item()


def wrong_with(found, alone, start, ranks):
    """What is wrong with weights of several ranks, next to those of one process, in words; "" where nothing is."""
    if ranks == 2:
        return "" if all(map(torch.equal, found, alone)) else f"not the bits of one process: {way_of(found, alone):.2e} away"
    far = way_of(found, alone) / way_of(alone, start)
    return "" if far < 1e-5 else f"{far:.2e} of the way away from one process"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=2, help="sequences of a rank")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--output")
    parser.add_argument("--note", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    sizes = train.Sizes()
    tokens = train.text(options.steps, options.batch * ranks, options.rows, sizes.words)
    flash = train.by_sdpa(train.BACKENDS["flash"])
    run = lambda way, attend, few=tokens: trained(way, sizes, attend, few, device, ranks, rank)  # noqa: E731
    alone = run("alone", train.by_fagen)[0]
    torch.manual_seed(0)
    start = list(train.Model(sizes, None).parameters())
    wrong, times = [], {}
    for way in ("ddp", "fsdp"):
        for attend in (train.by_fagen, flash):
            run(way, attend, tokens[:2])
        (ours, ours_ms), (_, flash_ms), (again, again_ms) = run(way, train.by_fagen), run(way, flash), run(way, train.by_fagen)
        said = wrong_with(ours, alone, start, ranks)
        wrong += [f"{way}: {said}"] if said else []
        wrong += [] if all(map(torch.equal, ours, again)) else [f"{way}: two runs differ"]
        times[way] = {"fagen_ms": statistics.median(ours_ms[2:] + again_ms[2:]), "flash_ms": statistics.median(flash_ms[2:])}
    if rank == 0:
        result = {"tool": "train_ranks.py", "machine": {**machine(), "torch": torch.__version__}, "notes": notes_of(options.note), "ranks": ranks,
                  "sizes": sizes._asdict(), "batch": options.batch, "rows": options.rows, "steps": options.steps, "times": times, "wrong": wrong}
        print(json.dumps(result, indent=1))
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
    dist.destroy_process_group()
    sys.exit(2 if wrong else 0)


if __name__ == "__main__":
    main()
