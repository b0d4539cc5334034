# fagen: heads for rows and back: each rank of a group gets all rows of the group for some heads.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ulysses' two exchanges, of chunks of heads."""
from typing import List, NamedTuple, Tuple

import torch

from .. import errors
from ._transfers import Message


class Share(NamedTuple):
    """The heads of a rank in a chunk: (begin, end) of the query heads, and the K/V heads that they read, in order. Where those are
    fewer, each serves as many query heads; a head may be there more than once."""
    heads: Tuple[int, int]
    kv_heads: Tuple[int, ...]


def shares(heads, kv_heads, ranks, most_chunks=1) -> List[List[Share]]:
    """[chunk][rank]. Ranks with fewer K/V heads than ranks get copies of what they need."""
    if heads < ranks:
        raise errors.Error(f"{heads} heads for {ranks} ranks of the exchange over heads; each rank takes at least one head: use a mesh with "
                           "fewer ranks in this dimension, and more in the ring")
    edges = [heads * rank // ranks for rank in range(ranks + 1)]
    whole = [_share(begin, end, heads // kv_heads) for begin, end in zip(edges, edges[1:])]
    counts = {(end - begin, len(kv), len(set(kv))) for (begin, end), kv in whole}
    if len(counts) > 1 or len(whole[0].kv_heads) != len(set(whole[0].kv_heads)):
        return [whole]
    count = max(n for n in range(1, max(1, most_chunks) + 1) if len(whole[0].kv_heads) % n == 0)
    return [[_part(share, chunk, count) for share in whole] for chunk in range(count)]


def _share(begin, end, group):
    kv = tuple(range(begin // group, (end - 1) // group + 1))
    is_even = len(kv) == 1 or (begin % group == 0 and end % group == 0)
    return Share((begin, end), kv if is_even else tuple(head // group for head in range(begin, end)))


def _part(share, chunk, count):
    (begin, end), kv = share
    heads, kv_heads = (end - begin) // count, len(kv) // count
    return Share((begin + chunk * heads, begin + (chunk + 1) * heads), kv[chunk * kv_heads:(chunk + 1) * kv_heads])


def _taken(tensor, heads):
    """Some heads of [batch, rows, heads, columns]."""
    if heads == tuple(range(heads[0], heads[0] + len(heads))):
        return tensor[:, :, heads[0]:heads[0] + len(heads)]
    return torch.cat([tensor[:, :, head:head + 1] for head in heads], 2)


class Exchange:
    """Of one call. sizes: how many rows and keys each rank of the group holds."""

    def __init__(self, transfers, rows, keys):
        self.transfers, self.rank = transfers, transfers.group.rank
        self.rows, self.keys = rows, keys

    def begin(self, chunk, queries, others=()):
        """Starts the exchange of a chunk; finish() gives the chunk's heads of these, with all rows and keys of the group. queries
        [batch, own rows, heads, columns], others [batch, own keys, kv_heads, columns]."""
        sends, receives, whole, late = [], [], [], []
        for tensor, sizes, is_q in [(t, self.rows, True) for t in queries] + [(t, self.keys, False) for t in others]:
            heads = [tuple(range(*share.heads)) if is_q else share.kv_heads for share in chunk]
            made = tensor.new_empty((tensor.shape[0], sum(sizes), len(heads[self.rank]), tensor.shape[3]))
            whole.append(made)
            for rank, (place, theirs) in enumerate(zip(made.split(sizes, 1), heads)):
                if rank == self.rank:
                    place.copy_(_taken(tensor, theirs))
                    continue
                sends.append(Message(_taken(tensor, theirs).contiguous(), rank))
                receives.append(Message(_landing(place, late), rank))
        return self.transfers.start(sends, receives, self.transfers.now()), whole, late

    def finish(self, begun):
        started, whole, late = begun
        self.transfers.finish(started)
        for place, landed in late:
            place.copy_(landed)
        return whole

    def begin_back(self, chunk, whole, into):
        """Starts the way back: of tensors [batch, all rows, own heads, columns] each rank gets its rows, into [batch, own rows, heads, columns]."""
        sends, receives, late = [], [], []
        for tensor, target in zip(whole, into):
            for rank, part in enumerate(tensor.split(self.rows, 1)):
                place = target[:, :, slice(*chunk[rank].heads)]
                if rank == self.rank:
                    place.copy_(part)
                    continue
                sends.append(Message(part.contiguous(), rank))
                receives.append(Message(_landing(place, late), rank))
        return self.transfers.start(sends, receives, self.transfers.now()), None, late

    def begin_sums(self, chunk, whole, into):
        """As begin_back(), of tensors [batch, all keys, own K/V heads, columns], which finish_sums() adds to `into`: ranks that have copies of a
        head give each a part of its gradient."""
        sends, receives, parts = [], [], []
        for tensor, target in zip(whole, into):
            for rank, part in enumerate(tensor.split(self.keys, 1)):
                if rank != self.rank:
                    sends.append(Message(part.contiguous(), rank))
                    part = tensor.new_empty((tensor.shape[0], self.keys[self.rank], len(chunk[rank].kv_heads), tensor.shape[3]))
                    receives.append(Message(part, rank))
                parts.append((target, chunk[rank].kv_heads, part))
        return self.transfers.start(sends, receives, self.transfers.now()), parts

    def finish_sums(self, begun):
        """In the order of ranks, whatever came first."""
        started, parts = begun
        self.transfers.finish(started)
        for target, heads, part in parts:
            for number, head in enumerate(heads):
                target[:, :, head] += part[:, :, number]


def _landing(place, late):
    """Where a message for this place arrives: there, or in memory of its own that is copied from later."""
    if place.is_contiguous():
        return place
    landed = torch.empty(place.shape, dtype=place.dtype, device=place.device)
    late.append((place, landed))
    return landed
