# fagen: attention of sequences longer than one GPU, on the ranks of torch.distributed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
    split = parallel.zigzag(length, ranks)
    o = parallel.attention(split.shard(q, rank), split.shard(k, rank), split.shard(v, rank), split=split, causal=True)

docs/Parallel.md. `python -m fagen.parallel plan` says which scheme and mesh to take.
"""
from ._group import PeerError
from ._plan import Plan, attention
from ._split import Split, contiguous, zigzag

__all__ = ["PeerError", "Plan", "Split", "attention", "contiguous", "zigzag"]
