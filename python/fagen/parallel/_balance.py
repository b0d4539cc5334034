# fagen: splits whose ranks have even work, counted from what rows see.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import random

import torch

from .. import errors
from ._mask import Mask
from ._split import Split, contiguous, zigzag

_EVEN = 1.02  # of the mean: a split of fewer ranges is taken where its largest share of work is no more


def bounds_of(length, *, keys=None, batch=1, heads=1, kv_heads=1, causal=False, window=None, documents=None, form=None, form_args=None, kernels=None):
    """The Bounds of rows, a mask given as attention() takes it."""
    keys = length if keys is None else keys
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq_q": length, "seq_kv": keys}
    return Mask(length, keys, sizes, causal, window, documents, form, form_args or {}, kernels).bounds


def work_of_rows(length, *, keys=None, **mask):
    """float64 [length]: how many keys each row sees, of all batches; an upper bound for forms that the kernel evaluates itself."""
    return bounds_of(length, keys=keys, **mask).pairs(length if keys is None else keys).sum(0)


def keys_of_others(bounds, split):
    """The most keys that a rank needs of others, in relation to the mean that a rank holds. bounds: of one batch, of as many keys as rows."""
    most = 0
    for ranges in split.ranges:
        needed, at = 0, 0
        for begin, end in ranges:
            first, last = int(bounds.first[0, begin]), int(bounds.last[0, end - 1]) + 1
            needed += max(0, last - max(first, at))
            at = max(at, last)
        most = max(most, needed - sum(end - begin for begin, end in ranges))
    return most * split.ranks / max(1, split.length)


def drawn(lengths, tokens, seed):
    """Lengths drawn from these, one after the other, until there are so many tokens; the last is cut."""
    draw, found, left = random.Random(seed), [], tokens
    while left > 0:
        found.append(min(left, draw.choice(lengths)))
        left -= found[-1]
    return found


def share_of(work, split):
    """The largest rank's work in relation to the mean."""
    ends = torch.cat([torch.zeros(1, dtype=torch.float64), work.cumsum(0)])
    each = [sum(float(ends[end] - ends[begin]) for begin, end in ranges) for ranges in split.ranges]
    return max(each) * split.ranks / sum(each) if sum(each) else 1.0


def balanced(length, ranks, *, granule=None, **mask):
    """A split with even work and, within a granule, as many rows on each rank; of few ranges where that is as even.

    mask: causal, window, documents, form and form_args as of attention(), for a form also batch, heads and kv_heads. granule: rows
    that are not parted; None: a 16th or a 64th of a rank's rows, at least 128.
    """
    return of_work(work_of_rows(length, **mask), ranks, granule)


def of_work(work, ranks, granule=None):
    """As balanced(), of what rows have to do."""
    length = len(work)
    plain = [contiguous(length, ranks), zigzag(length, ranks)]
    for split in plain:
        if share_of(work, split) <= _EVEN:
            return split
    if granule is not None and granule < 1:
        raise errors.Error(f"granule is {granule}; it is at least 1")
    for size in [max(128, length // (parts * ranks)) for parts in (16, 64)] if granule is None else [granule]:
        found = _by_blocks(work, ranks, size)
        if share_of(work, found) <= _EVEN:
            return found
        plain.append(found)
    return min(plain, key=lambda split: share_of(work, split))


def _by_blocks(work, ranks, granule):
    """Blocks of rows, those with most work first, in rounds: one for each rank, the largest of a round for the rank with least."""
    length = len(work)
    edges = [*range(0, length, granule), length]
    ends = torch.cat([torch.zeros(1, dtype=torch.float64), work.cumsum(0)])
    blocks = sorted(((float(ends[b] - ends[a]), a, b) for a, b in zip(edges, edges[1:])), key=lambda one: (-one[0], one[1]))
    done, held = [0.0] * ranks, [[] for _ in range(ranks)]
    for first in range(0, len(blocks), ranks):
        order = sorted(range(ranks), key=lambda rank: (done[rank], rank))
        for rank, (amount, begin, end) in zip(order, blocks[first:first + ranks]):
            done[rank] += amount
            held[rank].append((begin, end))
    return Split(length, [sorted(one) for one in held])
