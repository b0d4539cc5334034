# fagen: attention of sequences longer than one GPU, on the ranks of torch.distributed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
    split = parallel.zigzag(length, ranks)
    o = parallel.attention(split.shard(q, rank), split.shard(k, rank), split.shard(v, rank), split=split, causal=True)

docs/Parallel.md. `python -m fagen.parallel plan` says which scheme and mesh to take. PyTorch is imported with the first name that
needs it.
"""
import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._balance import balanced
    from ._context import context_parallel, unshard
    from ._decode import decode
    from ._group import PeerError
    from ._plan import Plan, attention
    from ._split import Split, contiguous, zigzag

_LATER = {"PeerError": "_group", "Plan": "_plan", "Split": "_split", "attention": "_plan", "balanced": "_balance", "context_parallel": "_context",
          "contiguous": "_split", "decode": "_decode", "unshard": "_context", "zigzag": "_split"}
__all__ = [*_LATER]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'fagen.parallel' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)
