# fagen: lengths and offsets of sequences that stand on the GPU: what kernels are given of them, without waiting for it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every value is held to what there is: none leads outside of a tensor, whatever the caller's tensors hold. Nothing here waits
for the GPU, so that all of it may be captured into a graph."""
from typing import NamedTuple

import torch

from . import _arguments, errors

MOST = 1 << 29  # as the form `used` has it: a bound that binds nothing


def integers(function, name, value, shape, like):
    """A tensor of int32 or int64 as int64 on the device of `like`. shape: its sizes, None for any."""
    if not isinstance(value, torch.Tensor) or value.dtype not in (torch.int32, torch.int64):
        raise errors.Error(f"{function}: {name} is {_arguments.words(value)}; it is a tensor of int32 or int64")
    if value.dim() != len(shape) or any(size is not None and size != given for size, given in zip(shape, value.shape)):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise errors.Error(f"{function}: {name} has shape {list(value.shape)}; it is [{wanted}]")
    return value.to(device=like.device, dtype=torch.int64)


class Segments(NamedTuple):
    """Where each sequence begins among packed rows, and how many of its rows are used."""
    starts: torch.Tensor  # int64 [sequences + 1]: they ascend, from 0 to total
    used: torch.Tensor  # int64 [sequences]
    total: int  # rows of the tensor

    def place(self):
        """For each row of the tensor: the sequence that it lies in, or their number behind the last one; its place there."""
        row = torch.arange(self.total, device=self.starts.device)
        which = torch.searchsorted(self.starts[1:].contiguous(), row, right=True)
        return which, row - self.starts[which]

    def rows_of(self, which):
        """The used rows of these sequences; 0 behind the last one."""
        return torch.nn.functional.pad(self.used, (0, 1))[which]

    def is_used(self):
        """bool [total]: whether some sequence uses the row."""
        which, place = self.place()
        return (place >= 0) & (place < self.rows_of(which))


def segments(offsets, used, total):
    """Segments of a tensor of `total` rows. Offsets that decrease count as the largest before them; lengths end with their segment."""
    starts = offsets.clamp(0, total).cummax(0).values
    lengths = starts[1:] - starts[:-1]
    return Segments(starts, lengths if used is None else torch.minimum(used.clamp(min=0), lengths), total)


def visible_keys(queries, keys, left, right):
    """(first, last) of the keys that each row sees, both int32 and ascending; a row that sees none has last = first - 1.

    Masks are bottom-right in each sequence; left and right: how many keys before and behind its place a row sees.
    """
    which, place = queries.place()
    begin, length, rows = keys.starts[which], keys.rows_of(which), queries.rows_of(which)
    place_of_key = place + length - rows
    first = begin + (place_of_key - left).clamp(min=0)
    last = begin + torch.minimum(length, place_of_key + right + 1).clamp(min=0) - 1
    behind = keys.starts[(which + 1).clamp(max=len(keys.used))]
    nothing = torch.where(place < 0, begin, behind)  # where a row that nobody uses has none: both still ascend
    is_used = (place >= 0) & (place < rows)
    return torch.where(is_used, first, nothing).int(), torch.where(is_used, last, nothing - 1).int()


class Cache(NamedTuple):
    """Where the rows of each sequence's cache lie in the tensors of keys and values, [blocks, rows, heads, columns]."""
    table: torch.Tensor  # int64 [batch, blocks of a sequence]
    blocks: int
    rows: int  # of a block

    @property
    def capacity(self):
        """Rows that a sequence may have."""
        return self.table.shape[1] * self.rows

    def find(self, place):
        """(block, row, whether there is such a one) of places [batch, n] in the sequences' caches."""
        column = (place // max(self.rows, 1)).clamp(0, max(self.table.shape[1] - 1, 0))
        block = self.table.gather(1, column)
        exists = (place >= 0) & (place < self.capacity) & (block >= 0) & (block < self.blocks)
        zero = torch.zeros((), dtype=torch.int64, device=place.device)
        return torch.where(exists, block, zero), torch.where(exists, place % max(self.rows, 1), zero), exists

    def append(self, caches, new, lengths):
        """Puts new rows [batch, n, heads, columns] of each into the caches, behind `lengths` rows. Those for which there is no
        place are written nowhere: in their stead the first that has one is written again."""
        if not new[0].numel() or not caches[0].numel() or not self.capacity:  # nothing to put, or no place
            return
        count = new[0].shape[1]
        block, row, exists = (t.flatten() for t in self.find(lengths[:, None] + torch.arange(count, device=lengths.device)))
        index = torch.arange(len(block), device=block.device)
        source = torch.where(exists, index, exists.int().argmax())
        to = block[source], row[source]
        for cache, rows in zip(caches, new):
            # where no row at all has a place each is the first row of the cache, which is put where it was
            values = torch.where(exists.any(), rows.to(cache.dtype).flatten(0, 1)[source], cache[to])
            cache.index_put_(to, values)

    def gather(self, caches, skipped, used):
        """Caches [batch, capacity, heads, columns] of their own: rows from `skipped` on. What is not among `used` is 0, and its block
        is not looked at."""
        place = torch.arange(self.capacity, device=used.device)[None]
        is_used = place < used[:, None]
        block, row, exists = self.find(torch.where(is_used, place + skipped[:, None], -1))
        return [cache[block, row].masked_fill(~exists[:, :, None, None], 0) for cache in caches]
