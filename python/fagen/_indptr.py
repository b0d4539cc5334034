# fagen: page tables in compressed rows (indptr, indices, length of the last page), as FlashInfer has them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables are made on the device. What the host must know, how many columns and rows there are at most, is read once where it is not told."""
import torch

from . import _arguments, _lengths, errors


def lengths_of(indptr, last_page_len, page_size):
    """Keys of each sequence, on the device: whole pages, and what the last has."""
    pages = indptr[1:] - indptr[:-1]
    return torch.where(pages > 0, (pages - 1) * page_size + last_page_len, 0)


def table_of(indptr, indices, columns):
    """[sequences, columns]: the pages of each, in order; beyond them entries that mean nothing."""
    if not indices.shape[0]:
        return torch.zeros((indptr.shape[0] - 1, columns), dtype=torch.int32, device=indptr.device)
    at = indptr[:-1, None] + torch.arange(columns, device=indptr.device)
    return indices[at.clamp(0, indices.shape[0] - 1)]


def on_host(function, name, tensor):
    """Its numbers. On a GPU that waits, and not while a graph is captured."""
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        raise errors.Unsupported(f"{function}: {name} is on {tensor.device}, and plans read it, which waits; plan before a graph is captured")
    return tensor.tolist()


def longest(numbers):
    """The most that one sequence has, of offsets on the host."""
    return max((b - a for a, b in zip(numbers, numbers[1:])), default=0)


def offsets(function, name, value):
    """The tensor itself; Error for what is none of offsets [sequences + 1]."""
    if not isinstance(value, torch.Tensor) or value.dim() != 1 or value.shape[0] < 2 or value.dtype not in (torch.int32, torch.int64):
        raise errors.ArgumentError(f"{function}: {name} is {_arguments.words(value)}; it is a tensor [sequences + 1] of a sequence or more, int32 or int64")
    return value


def check(function, indptr, indices, last_page_len, device):
    """The three on the device, of the shapes that go together."""
    offsets(function, "indptr", indptr)
    like = torch.empty(0, device=device)
    return (_lengths.integers(function, "indptr", indptr, (None,), like), _lengths.integers(function, "indices", indices, (None,), like),
            _lengths.integers(function, "last_page_len", last_page_len, (indptr.shape[0] - 1,), like))


def caches(function, paged_kv_cache, layout):
    """(K, V) [pages, page_size, kv_heads, head_dim] of a pair of caches, or of one tensor with both, of NHD or HND."""
    if isinstance(paged_kv_cache, torch.Tensor):
        if paged_kv_cache.dim() != 5 or paged_kv_cache.shape[1] != 2:
            raise errors.Error(f"{function}: paged_kv_cache is {_arguments.words(paged_kv_cache)}; it is a pair of K and V, or a tensor [pages, 2, ...]")
        paged_kv_cache = paged_kv_cache.unbind(1)
    if not isinstance(paged_kv_cache, (tuple, list)):
        raise errors.Error(f"{function}: paged_kv_cache is {_arguments.words(paged_kv_cache)}; it is a pair of K and V, or a tensor [pages, 2, ...]")
    if len(paged_kv_cache) != 2:
        raise errors.Error(f"{function}: paged_kv_cache has {len(paged_kv_cache)} parts; it is a pair of K and V, or a tensor [pages, 2, ...]")
    return [cache.transpose(1, 2) if layout == "HND" else cache for cache in paged_kv_cache]
