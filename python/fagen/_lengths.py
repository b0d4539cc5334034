# fagen: lengths and offsets of sequences that stand on the GPU: what kernels are given of them, without waiting for it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every value is held to what there is: none leads outside of a tensor, whatever the caller's tensors hold. Nothing here waits
for the GPU, so that all of it may be captured into a graph."""
from typing import NamedTuple

import torch

from . import _arguments, errors

MOST = 1 << 29  # as the form `used` has it: a bound that binds nothing


def integers(function, name, value, shape, like):
    """A tensor of int32 or int64 on the device of `like`. shape: its sizes, None for any."""
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.int32, torch.int64):
        raise errors.Error(f"{function}: {name} is {_arguments.words(value)}; it is a tensor of int32 or int64")
    if value.dim() != len(shape) or any(size is not None and size != given for size, given in zip(shape, value.shape)):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise errors.Error(f"{function}: {name} has shape {list(value.shape)}; it is [{wanted}]")
    return value.to(like.device)


class Segments(NamedTuple):
    """Packed sequences of a tensor of `total` rows. Each operation here is a launch: there are few."""
    starts: torch.Tensor  # [sequences + 1]: where each begins, and the last ends; they ascend, within 0 and total
    edges: torch.Tensor  # where the used rows of each begin and end; `starts` where all are used
    total: int

    def spans(self):
        """Where the used rows of each sequence begin, and where they end."""
        return (self.edges[:-1], self.edges[1:]) if self.edges is self.starts else (self.edges[:-1:2], self.edges[1::2])

    def rows(self):
        """The tensor's rows by number."""
        return torch.arange(self.total, dtype=self.edges.dtype, device=self.edges.device)

    def unused(self):
        """bool [total]: whether no sequence uses the row."""
        row = self.rows()
        if self.edges is not self.starts:  # each second edge is an end
            return torch.searchsorted(self.edges[:-1], row, right=True) % 2 == 0
        return (row < self.edges[0]) | (row >= self.edges[-1])


def segments(offsets, used, totals):
    """Segments of queries and of keys, in tensors of `totals` rows. used: how many rows of each sequence, or None for all. Offsets that
    decrease count as the largest before them, and lengths end with their segment."""
    starts = [one.clamp(0, total).cummax(0).values for one, total in zip(offsets, totals)]
    edges = starts if all(one is None for one in used) else map(_edges, starts, used)
    return [Segments(*one) for one in zip(starts, edges, totals)]


def _edges(starts, used):
    begins, ends = starts[:-1], starts[1:]
    if used is not None:
        ends = begins + torch.minimum(used.clamp(min=0), ends - begins)
    return torch.cat([torch.stack([begins, ends], 1).flatten(), starts[-1:]])


def visible_keys(queries, keys, left, right):
    """(first, last) of the keys that each row sees, both int32 and ascending; a row that sees none has last < first.

    Masks are bottom-right in each sequence: its last row stands at its last key. left and right: how many keys before and after
    its place a row sees. Rows between sequences have no keys between those of both.
    """
    row = queries.rows()
    which = torch.searchsorted(queries.edges, row, right=True)
    end = torch.cat([keys.edges, keys.edges[-1:]])  # of the keys of rows before each edge, and of those after all
    begin = torch.cat([keys.edges[:1], keys.edges]) if keys.edges is keys.starts else keys.starts.repeat_interleave(2)
    begin, after = begin[which], end[which]
    if left >= MOST and right >= MOST:
        return begin.int(), (after - 1).int()
    place = row + (end - torch.cat([queries.edges, queries.edges[-1:]]))[which]
    first = begin if left >= MOST else torch.maximum(place - left, begin)
    last = after if right >= MOST else torch.maximum(torch.minimum(place + (right + 1), after), begin)
    return first.int(), (last - 1).int()


def put(caches, new, block, row, exists):
    """Puts new rows [n, heads, columns] of each into the caches, at block and row [n]. Those that do not exist are written nowhere: in their
    stead one that does is written again, and where none does, one row of the cache is put where it was."""
    source = torch.where(exists, torch.arange(len(block), device=block.device), exists.int().argmax())
    to, any_exists = (block[source], row[source]), exists.any()
    for cache, rows in zip(caches, new):
        cache.index_put_(to, torch.where(any_exists, rows.to(cache.dtype)[source], cache[to]))


class Cache(NamedTuple):
    """Where the rows of each sequence's cache lie in the tensors of keys and values, [blocks, rows, heads, columns]."""
    table: torch.Tensor  # [batch, blocks of a sequence]; None: sequence b has block b
    blocks: int
    rows: int  # of a block

    @property
    def capacity(self):
        """Rows that a sequence may have."""
        return self.rows if self.table is None else self.table.shape[1] * self.rows

    def find(self, place):
        """(block, row, whether there is such a one) of places [batch, n] in the sequences' caches, none below 0. Where there is none
        these are those of some other row."""
        exists = place < self.capacity
        if self.table is None:
            return torch.arange(len(place), device=place.device)[:, None].expand_as(place), place.clamp(max=self.rows - 1), exists
        block = self.table.gather(1, (place // self.rows).clamp(max=self.table.shape[1] - 1))
        return block.clamp(0, self.blocks - 1), place % self.rows, exists & (block >= 0) & (block < self.blocks)

    def append(self, caches, new, lengths):
        """Puts new rows [batch, n, heads, columns] of each into the caches, after `lengths` rows. Those for which there is no
        place are written nowhere: in their stead one that has one is written again."""
        count = new[0].shape[1]
        if not new[0].numel() or not caches[0].numel() or not self.capacity:  # nothing to put, or no place
            return
        place = lengths.clamp(0, self.capacity)[:, None] + torch.arange(count, device=lengths.device)
        block, row, exists = (t.flatten() for t in self.find(place))
        put(caches, [rows.flatten(0, 1) for rows in new], block, row, exists)

    def gather(self, caches, skipped, used):
        """Caches [batch, capacity, heads, columns] of their own: rows from `skipped` on. What is not among `used` is 0, and its block
        is not looked at."""
        shape = len(used), self.capacity
        if not caches[0].numel() or not self.capacity:
            return [cache.new_zeros((*shape, *cache.shape[2:])) for cache in caches]
        place = torch.arange(self.capacity, device=used.device)[None]
        is_used = place < used[:, None]
        block, row, exists = self.find((place + skipped[:, None]).masked_fill(~is_used, self.capacity))
        return [cache[block, row].masked_fill(~exists[:, :, None, None], 0) for cache in caches]
