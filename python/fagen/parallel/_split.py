# fagen: which rows or keys of a sequence each rank holds.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Split gives each rank ranges of the sequence, which it holds one after the other, in ascending order."""
import itertools
from operator import index

import torch

from .. import errors


class Split:
    """ranges[rank] = ((begin, end), ...): the places of a sequence of `length` that the rank holds. Each place has one rank.

    A rank may hold nothing, and ranks may hold different numbers.
    """

    def __init__(self, length, ranges):
        self.length = _size("length", length)
        self.ranges = tuple(_joined(one) for one in ranges)
        if not self.ranges:
            raise errors.Error("a split has no ranks; it has at least 1")
        _check_cover(self.length, self.ranges)

    @property
    def ranks(self):
        """How many ranks share the sequence."""
        return len(self.ranges)

    def size(self, rank):
        """How many places the rank holds."""
        return sum(end - begin for begin, end in self.ranges[rank])

    def places(self, rank):
        """Those places, int64 [size], ascending."""
        parts = [torch.arange(begin, end) for begin, end in self.ranges[rank]]
        return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)

    def shard(self, tensor, rank, dim=1):
        """What the rank holds of a tensor of the whole sequence: a copy, unless it is one range."""
        if not 0 <= rank < self.ranks:
            raise errors.Error(f"shard: rank is {rank}; the split has ranks 0 to {self.ranks - 1}")
        if tensor.shape[dim] != self.length:
            raise errors.Error(f"shard: dimension {dim} of the tensor is {tensor.shape[dim]}, and the split is of {self.length}")
        parts = [tensor.narrow(dim, begin, end - begin) for begin, end in self.ranges[rank]]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim) if parts else tensor.narrow(dim, 0, 0)

    def join(self, shards, dim=1):
        """The tensor of the whole sequence, from what each rank holds."""
        if len(shards) != self.ranks:
            raise errors.Error(f"join: {len(shards)} shards for the {self.ranks} ranks of the split")
        whole = torch.empty_like(shards[0], memory_format=torch.contiguous_format)
        whole = whole.new_empty([self.length if i == dim % whole.dim() else n for i, n in enumerate(whole.shape)])
        for shard, ranges in zip(shards, self.ranges):
            if shard.shape[dim] != sum(end - begin for begin, end in ranges):
                raise errors.Error(f"join: a shard holds {shard.shape[dim]} places, and the split gives its rank another number")
            at = 0
            for begin, end in ranges:
                whole.narrow(dim, begin, end - begin).copy_(shard.narrow(dim, at, end - begin))
                at += end - begin
        return whole

    def divide(self, parts):
        """The split over ranks * parts: what each rank holds, in `parts` pieces one after the other. Rank r of this one is ranks
        r * parts to r * parts + parts - 1 of that: a mesh whose last dimension has `parts` ranks."""
        return Split(self.length, [piece for ranges in self.ranges for piece in _divided(ranges, parts)])

    def merge(self, parts):
        """The split over ranks / parts that divide(parts) was made from; None where what `parts` neighbours hold does not ascend."""
        if self.ranks % parts:
            return None
        groups = [list(itertools.chain.from_iterable(self.ranges[i:i + parts])) for i in range(0, self.ranks, parts)]
        if any(a[1] > b[0] for group in groups for a, b in zip(group, group[1:])):
            return None
        return Split(self.length, groups)

    def __eq__(self, other):
        return isinstance(other, Split) and (self.length, self.ranges) == (other.length, other.ranges)

    def __hash__(self):
        return hash((self.length, self.ranges))

    def __repr__(self):
        return f"Split({self.length}, {[list(one) for one in self.ranges]})"


def contiguous(length, ranks):
    """Rank r holds the r-th of `ranks` ranges of nearly equal length."""
    length, ranks = _size("length", length), _size("ranks", ranks, 1)
    return Split(length, [((length * r // ranks, length * (r + 1) // ranks),) for r in range(ranks)])


def zigzag(length, ranks):
    """Rank r holds the r-th and the r-th last of 2 * ranks ranges of nearly equal length: causal work is even."""
    length, ranks = _size("length", length), _size("ranks", ranks, 1)
    edges = [length * i // (2 * ranks) for i in range(2 * ranks + 1)]
    return Split(length, [((edges[r], edges[r + 1]), (edges[-r - 2], edges[-r - 1])) for r in range(ranks)])


def _size(name, value, least=0):
    try:
        value = index(value)
    except TypeError:
        raise errors.Error(f"{name} is {value!r}; it is an integer") from None
    if value < least:
        raise errors.Error(f"{name} is {value}; it is at least {least}")
    return value


def _joined(ranges):
    """Without those that are empty, and neighbours as one."""
    kept = []
    for begin, end in ranges:
        if begin == end:
            continue
        if kept and kept[-1][1] == begin:
            kept[-1] = (kept[-1][0], end)
        else:
            kept.append((begin, end))
    return tuple(kept)


def _check_cover(length, ranges):
    for rank, one in enumerate(ranges):
        for begin, end in one:
            if not 0 <= begin <= end <= length:
                raise errors.Error(f"rank {rank} holds {begin} to {end}; ranges ascend within 0 and {length}")
        if any(a[1] > b[0] for a, b in zip(one, one[1:])):
            raise errors.Error(f"the ranges of rank {rank} do not ascend: {list(one)}")
    at = 0
    for begin, end in sorted(itertools.chain.from_iterable(ranges)):
        if begin != at:
            raise errors.Error(f"places {at} to {begin} have no rank" if begin > at else f"place {begin} has two ranks")
        at = end
    if at != length:
        raise errors.Error(f"places {at} to {length} have no rank")


def _divided(ranges, parts):
    total = sum(end - begin for begin, end in ranges)
    edges = [total * i // parts for i in range(parts + 1)]
    return [_cut(ranges, low, high) for low, high in zip(edges, edges[1:])]


def _cut(ranges, low, high):
    """The places of ranges from the low-th to before the high-th."""
    found, at = [], 0
    for begin, end in ranges:
        first, last = max(low, at), min(high, at + end - begin)
        if first < last:
            found.append((begin + first - at, begin + last - at))
        at += end - begin
    return found
