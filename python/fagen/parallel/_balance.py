# fagen: splits whose ranks have even work, counted from what rows see.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import torch

from .. import errors
from ._mask import Mask
from ._split import Split, contiguous, zigzag

_EVEN = 1.02  # of the mean: a split of fewer ranges is taken where its largest share of work is no more


def work_of_rows(length, *, keys=None, batch=1, heads=1, kv_heads=1, causal=False, window=None, documents=None, form=None, form_args=None, kernels=None):
    """float64 [length]: how many keys each row sees, of all batches; an upper bound for forms that the kernel evaluates itself."""
    keys = length if keys is None else keys
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq_q": length, "seq_kv": keys}
    return Mask(length, keys, sizes, causal, window, documents, form, form_args or {}, kernels).bounds.pairs(keys).sum(0)


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
    work = work_of_rows(length, **mask)
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
