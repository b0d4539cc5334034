# fagen: in the place of torch.distributed.tensor.experimental.context_parallel.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from .. import errors
from ._plan import attention
from ._ranks import TIMEOUT, Ranks
from ._split import zigzag

_FUNCTION = "parallel.context_parallel"


class _Attention(TorchFunctionMode):
    """scaled_dot_product_attention over the ranks."""

    def __init__(self, split, options):
        super().__init__()
        self.split, self.options = split, options

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        return self.attend(*args, **kwargs) if func is F.scaled_dot_product_attention else func(*args, **kwargs)

    def attend(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if attn_mask is not None or dropout_p:
            raise errors.Unsupported("scaled_dot_product_attention with attn_mask or dropout_p; ranks take is_causal and scale, and "
                                     "parallel.attention forms", _FUNCTION)
        if query.shape[-3] != key.shape[-3] and not enable_gqa:
            raise errors.Error(f"{_FUNCTION}: q has {query.shape[-3]} heads and k {key.shape[-3]}; enable_gqa=True takes them")
        return attention(query, key, value, split=self.split, causal=is_causal, scale=scale, layout="bhsd", **self.options)


@contextlib.contextmanager
def context_parallel(mesh, *, buffers=None, buffer_seq_dims=None, no_restore_buffers=None, scheme=None, timeout=TIMEOUT):
    """As PyTorch's: within it each of the buffers is, in place, what this rank holds of it, and scaled_dot_product_attention of
    such tensors is that of the whole sequence. Buffers are restored at the end, but those of no_restore_buffers.

    Lengths need not be divided by ranks. mesh: a DeviceMesh of one dimension, or of two, the ring and the exchange over heads. scheme:
    "ring" or "ulysses" for one dimension. Gradients go through; a backward that reads a buffer is called within the context.
    """
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    kept = list(no_restore_buffers or ())
    if not buffers or len(buffers) != len(dims):
        raise errors.Error(f"{_FUNCTION}: {len(buffers)} buffers and {len(dims)} buffer_seq_dims; there is one for each, and at least one")
    lengths = {buffer.shape[dim] for buffer, dim in zip(buffers, dims)}
    if len(lengths) > 1:
        raise errors.Error(f"{_FUNCTION}: buffers are of lengths {sorted(lengths)}; they are of one")
    if any(all(one is not buffer for buffer in buffers) for one in kept):
        raise errors.Error(f"{_FUNCTION}: no_restore_buffers has a tensor that is none of the buffers")
    if any(buffer.requires_grad for buffer in buffers):
        raise errors.Error(f"{_FUNCTION}: a buffer wants a gradient, and buffers are changed in place; give inputs of the model, which want none")
    scheme = scheme or ("mixed" if mesh.ndim == 2 else "ring")
    ranks = Ranks(None, mesh, scheme, timeout)
    ring, exchange = ranks.shape
    split = zigzag(lengths.pop(), ring).divide(exchange)
    wholes = [None if any(one is buffer for one in kept) else buffer.clone() for buffer in buffers]
    with torch.no_grad():
        for buffer, dim in zip(buffers, dims):
            _become(buffer, split.shard(buffer, ranks.rank, dim).clone())
    try:
        with _Attention(split, {"mesh": mesh, "scheme": scheme, "timeout": timeout}):
            yield split
    finally:
        with torch.no_grad():
            for buffer, whole in zip(buffers, wholes):
                if whole is not None:
                    _become(buffer, whole)


def _become(buffer, tensor):
    buffer.resize_(tensor.shape)
    buffer.copy_(tensor)


def unshard(tensor, split, dim=1, group=None):
    """The tensor of the whole sequence on each rank, from what each holds: split.join() of all."""
    group = dist.group.WORLD if group is None else group
    if dist.get_world_size(group) != split.ranks:
        raise errors.Error(f"parallel.unshard: a split of {split.ranks} ranks for a group of {dist.get_world_size(group)}")
    own = split.size(dist.get_rank(group))
    if tensor.shape[dim] != own:
        raise errors.Error(f"parallel.unshard: dimension {dim} of the tensor is {tensor.shape[dim]}; this rank holds {own} places of the split")
    most = max(split.size(rank) for rank in range(split.ranks))
    own = tensor.new_zeros([most if i == dim % tensor.dim() else n for i, n in enumerate(tensor.shape)])
    own.narrow(dim, 0, tensor.shape[dim]).copy_(tensor)
    parts = [torch.empty_like(own) for _ in range(split.ranks)]
    dist.all_gather(parts, own, group=group)
    return split.join([part.narrow(dim, 0, split.size(rank)) for rank, part in enumerate(parts)], dim)
