# fagen: packed queries over pages: rows of q, in groups that kernels take as sequences of their own, or keys copied together.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All of it is made on the device, with shapes that follow from numbers of the host: nothing waits, and it may be captured into a graph.
Offsets are held to the rows there are, lengths to what the table has columns for."""
from typing import NamedTuple, Optional

import torch

MOST_ROWS = 16  # of a group: what the kernels of pages take


class Groups(NamedTuple):
    """Rows of q in groups, each with one row of a table and a length: its last row stands at its last key."""
    table: torch.Tensor  # [groups, columns]
    used: torch.Tensor  # [groups]
    token: Optional[torch.Tensor]  # [groups, rows]: which row of q each row of a group is; None: they lie side by side, in order
    place: Optional[torch.Tensor]  # [tokens]: which row of the groups, one after the other, each row of q is
    unused: Optional[torch.Tensor]  # bool [tokens]: no sequence has the row
    rows: int  # of a group


class Tiles(NamedTuple):
    """Rows of q in tiles of up to 16, of one sequence each, as the programs paged_rows take them: made by one launch."""
    table: torch.Tensor  # [sequences, columns]
    rows: torch.Tensor  # [tiles + 1]: where each begins in q, and the last ends
    words: torch.Tensor  # [tiles, 4]: of each, a key offset, how many keys, the place of its first row, and which sequence


class Keys(NamedTuple):
    """Keys of all sequences, copied together from pages: where those of each begin, and where each lies."""
    starts_q: torch.Tensor  # [sequences + 1]
    starts: torch.Tensor  # [sequences + 1]
    page: torch.Tensor  # [keys], int64
    row: torch.Tensor  # [keys]: in the page


def held(offsets, total):
    """Offsets within 0 and total; one less than those before it counts as the largest of them."""
    return offsets.clamp(0, total).cummax(0).values


def uniform(lengths, table, tokens):
    """Groups where each sequence has the same number of rows."""
    return Groups(table, lengths, None, None, None, tokens // max(1, lengths.shape[0]))


def of_rows(offsets, lengths, table, tokens, most_rows, causal):
    """Groups of sequences with any number of rows, up to most_rows. Where causal, a group's keys end where its last row sees the last."""
    rows = max(1, min(most_rows, MOST_ROWS))
    batch, device = lengths.shape[0], lengths.device
    starts = held(offsets, tokens).long()
    counts = starts[1:] - starts[:-1]
    each = (counts + (rows - 1)) // rows
    ends = each.cumsum(0)
    group = torch.arange(min(tokens, tokens // rows + batch), device=device)
    of_group = torch.searchsorted(ends, group, right=True)
    exists, of_group = of_group < batch, of_group.clamp(max=batch - 1)
    nth = group - (ends - each)[of_group]
    last = starts[:-1][of_group] + torch.minimum((nth + 1) * rows, counts[of_group])  # the row after the group's last
    after = starts[1:][of_group] - last if causal else 0
    used = ((lengths[of_group] - after) * exists).clamp(min=0)
    token = (last[:, None] + torch.arange(-rows, 0, device=device)).clamp(0, tokens - 1)
    row = torch.arange(tokens, device=device)
    of_row = torch.searchsorted(starts[1:].contiguous(), row, right=True)
    unused = (row < starts[0]) | (of_row >= batch)
    of_row = of_row.clamp(max=batch - 1)
    its = ((ends - each)[of_row] + (row - starts[:-1][of_row]) // rows).clamp(0, len(group) - 1)
    place = (its * rows + rows - (last[its] - row)).clamp(0, len(group) * rows - 1)
    return Groups(table[of_group], used, token, place, unused, rows)


def of_keys(offsets, lengths, table, page_size, tokens, most_keys):
    """Where up to most_keys keys of all sequences lie, one sequence after the other."""
    lengths = lengths.clamp(0, table.shape[1] * page_size).long()
    starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).clamp(max=most_keys)
    key = torch.arange(most_keys, device=lengths.device)
    of_key = torch.searchsorted(starts[1:].contiguous(), key, right=True).clamp(max=lengths.shape[0] - 1)
    at = (key - starts[:-1][of_key]).clamp(0, table.shape[1] * page_size - 1)
    return Keys(held(offsets, tokens).int(), starts.int(), table[of_key, at // page_size].long(), at % page_size)


def gathered(caches, keys):
    """Rows [keys, kv_heads, head_dim] of each cache; a page that is not there is the nearest."""
    found, page = [], keys.page.clamp(0, caches[0].shape[0] - 1)
    for cache in caches:
        if cache.stride(0) == cache.shape[1] * cache.stride(1):  # a copy of rows, which is faster than indices of two kinds
            found.append(cache.view(-1, *cache.shape[2:]).index_select(0, page * cache.shape[1] + keys.row))
        else:
            found.append(cache[page, keys.row])
    return found


def rewrite(old, new):
    """Puts what a tuple of tensors holds into another of the same shapes, which a graph may have captured."""
    for to, value in zip(old, new):
        if isinstance(to, torch.Tensor) and to is not value:
            to.copy_(value)
