# fagen: `python -m fagen.parallel`: which scheme and mesh to take, and how even documents lie on ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import argparse
import dataclasses
import json
import sys

from .. import errors
from . import _cost, _cost_back

_EXAMPLES = """examples:
  python -m fagen.parallel plan --seq 131072 --heads 32 --kv-heads 8 --ranks 2-64
  python -m fagen.parallel plan --seq 1048576 --heads 32 --kv-heads 8 --ranks 64 --all
  python -m fagen.parallel plan --seq 131072 --heads 32 --kv-heads 8 --gradients
  python -m fagen.parallel plan --seq 131072 --heads 16 --window 4096 --network 25 --json
  python -m fagen.parallel balance --documents 8192,300,55000,1200 --ranks 8
  wc -c *.txt | python -m fagen.parallel balance --documents - --ranks 64
  wc -c *.txt | head -n -1 | python -m fagen.parallel balance --documents - --tokens 4194304 --ranks 2-4096
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"fagen.parallel: error: {message}; --help has examples", file=sys.stderr)
        sys.exit(1)


def _parser():
    parser = _Parser(prog="python -m fagen.parallel", description="Attention of a sequence that ranks share.", epilog=_EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="how long each scheme and mesh takes, by a model", epilog=_EXAMPLES,
                               formatter_class=argparse.RawDescriptionHelpFormatter,
                               description="The scheme and mesh that take least, by a model of bytes and products (docs/Parallel.md).")
    plan.add_argument("--seq", type=_count, required=True, help="rows of the whole sequence, of which there are as many keys")
    plan.add_argument("--heads", type=_count, required=True)
    plan.add_argument("--kv-heads", type=_count, help="as many as heads where not given")
    plan.add_argument("--head-dim", type=_count, default=128)
    plan.add_argument("--batch", type=_count, default=1)
    plan.add_argument("--mask", choices=("causal", "none"), default="causal")
    plan.add_argument("--window", type=_count, help="keys that a row sees, its own the last")
    plan.add_argument("--ranks", type=_ranks, default=_ranks("2-4096"), help="8, 2,4,6 or 2-4096 (each twice the last)")
    plan.add_argument("--chunks", type=_count, default=2, help="of an exchange over heads")
    plan.add_argument("--gradients", action="store_true", help="of the forward and its gradients")
    plan.add_argument("--all", action="store_true", help="every mesh, not the best alone")
    plan.add_argument("--json", action="store_true")
    for field in dataclasses.fields(_cost.Machine):
        plan.add_argument(f"--{field.name.replace('_', '-')}", type=_count if field.type is int else _positive, default=field.default,
                          help=f"of the machine; {field.default:g} where not given")
    balance = commands.add_parser("balance", help="how even the work of packed documents is on ranks", epilog=_EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter,
                                  description="For each split the largest rank's work in relation to the mean, of a forward or its gradients, and the "
                                  "keys that a rank needs of others, at most, in relation to the mean that ranks hold.")
    balance.add_argument("--documents", required=True, help="lengths, one after the other; - reads the first number of each line")
    balance.add_argument("--tokens", type=_count, help="draw so many from documents of these lengths; else each is taken once")
    balance.add_argument("--seed", type=int, default=0, help="of what is drawn")
    balance.add_argument("--ranks", type=_ranks, default=_ranks("2-4096"))
    balance.add_argument("--mask", choices=("causal", "none"), default="causal")
    balance.add_argument("--json", action="store_true")
    return parser


def _count(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)


def _positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def _ranks(text):
    if "-" in text:
        first, last = map(_count, text.split("-"))
        return [first << i for i in range(64) if first << i <= last]
    return [_count(one) for one in text.split(",")]


def main(arguments=None):
    """Gives the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _plan(given) if given.command == "plan" else _balance(given)
    except errors.Error as error:
        print(f"fagen.parallel: error: {error}", file=sys.stderr)
        return 1


def _plan(given):
    kv_heads = given.heads if given.kv_heads is None else given.kv_heads
    if given.heads % kv_heads:
        raise errors.Error(f"{kv_heads} K/V heads do not divide {given.heads} heads")
    problem = _cost.Problem(given.seq, given.heads, kv_heads, given.head_dim, given.batch, given.mask == "causal", given.window)
    machine = _cost.Machine(**{field.name: getattr(given, field.name) for field in dataclasses.fields(_cost.Machine)})
    of = _cost_back.estimate if given.gradients else _cost.estimate
    found = [one for ranks in given.ranks for one in _cost.best(problem, machine, ranks, given.chunks, of)[:None if given.all else 1]]
    if given.json:
        print(json.dumps({"problem": dataclasses.asdict(problem), "machine": dataclasses.asdict(machine), "estimates": [
            {**dataclasses.asdict(one), "ranks": one.ranks, "scheme": one.scheme, "speedup": one.speedup, "efficiency": one.efficiency}
            for one in found]}, indent=1))
        return 0
    print(f"{'ranks':>6} {'scheme':>8} {'ring x heads':>13} {'compute':>9} {'travel':>9} {'exposed':>9} {'merge':>8} {'total ms':>9} "
          f"{'speedup':>8} {'of ideal':>8} {'MiB':>8}")
    for one in found:
        print(f"{one.ranks:6} {one.scheme:>8} {f'{one.ring} x {one.exchange}':>13} {one.compute_ms:9.3f} {one.travel_ms:9.3f} "
              f"{one.exposed_ms:9.3f} {one.merge_ms:8.3f} {one.total_ms:9.3f} {one.speedup:8.2f} {100 * one.efficiency:7.0f}% {one.mib:8.0f}")
    return 0


def _lengths(text):
    lines = sys.stdin.read().splitlines() if text == "-" else text.split(",")
    words = [line.split()[0] for line in lines if line.split()]
    if not words or any(not word.isdigit() for word in words):
        raise errors.Error(f"--documents has {next((w for w in words if not w.isdigit()), 'nothing')!r}; it has lengths, whole numbers of 0 or more")
    return [int(word) for word in words]


def _balance(given):
    import torch
    from . import _balance as balance
    from ._split import contiguous, zigzag
    lengths = _lengths(given.documents)
    if given.tokens is not None:
        lengths = balance.drawn([n for n in lengths if n] or [1], given.tokens, given.seed)
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    length, mask = int(offsets[-1]), {"documents": offsets, "causal": given.mask == "causal"}
    bounds = balance.bounds_of(length, **mask)
    work = bounds.pairs(length).sum(0)
    found = []
    for ranks in given.ranks:
        splits = {"contiguous": contiguous(length, ranks), "zigzag": zigzag(length, ranks), "balanced": balance.of_work(work, ranks)}
        found.append({"ranks": ranks, **{name: balance.share_of(work, split) for name, split in splits.items()}, "ranges": max(map(len, splits["balanced"].ranges)),
                      "keys": {name: balance.keys_of_others(bounds, split) for name, split in splits.items()}})
    if given.json:
        print(json.dumps({"documents": len(lengths), "length": length, "longest": max(lengths), "splits": found}, indent=1))
        return 0
    names = ("contiguous", "zigzag", "balanced")
    print(f"{len(lengths)} documents, {length} rows, the longest {max(lengths)}\n{'':6} {'work of the largest rank':^31} {'':7} {'keys of others':^31}\n{'ranks':>6}",
          *(f"{name:>10}" for name in names), f"{'ranges':>7}", *(f"{name:>10}" for name in names))
    for one in found:
        print(f"{one['ranks']:6}", *(f"{one[name]:10.3f}" for name in names), f"{one['ranges']:7}", *(f"{one['keys'][name]:10.3f}" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
