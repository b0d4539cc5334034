# fagen: attention whose bits depend on a row, its keys and its place alone.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of pages compute it, with parts of 512 keys at fixed places: a tensor of keys is a cache with one page for each batch."""
import torch

from . import _arguments, errors, serving


def attend(function, q, k, v, *, scale, causal, bshd, lse, out, kernels, form):
    """O and LSE of fagen.attention with invariant=True."""
    for name, value in (("form", form), ("kernels", kernels)):
        if value is not None:
            raise errors.Unsupported(f"{function}: {name} is given with invariant=True; kernels whose bits depend on a row alone are the package's, without forms")
    q, k, v = _arguments.cast(q, k, v)
    _arguments.check(function, q, k, v, out, bshd)
    reason = _arguments.why_not(q, k, v)
    if reason is not None:
        raise errors.Unsupported(reason, function)
    by_rows = [t if bshd else t.transpose(1, 2) for t in (q, k, v)]
    (batch, rows, heads, _), keys = by_rows[0].shape, by_rows[1].shape[1]
    o = by_rows[0].new_zeros((batch, rows, heads, v.shape[3]))
    sums = torch.full((batch, rows, heads), -torch.inf, dtype=torch.float32, device=q.device)
    if keys and o.numel():
        _, sums = _plan(batch, rows, keys, causal, q.device).run(by_rows[0].flatten(0, 1), *by_rows[1:], scale=scale, out=o.flatten(0, 1), return_lse=True)
        sums = sums.unflatten(0, (batch, rows))
    o = o if bshd else o.transpose(1, 2)
    return o if out is None else out.copy_(o), sums.transpose(1, 2).contiguous() if lse else None


def _plan(batch, rows, keys, causal, device):
    """Of dense tensors: as many rows and keys in each batch."""
    starts = None if rows <= 16 else torch.arange(0, (batch + 1) * rows, rows, device=device)
    lengths = torch.full((batch,), keys, dtype=torch.int32, device=device)
    return serving.plan(starts, lengths, torch.arange(batch, dtype=torch.int32, device=device)[:, None], page_size=keys, tokens=batch * rows, most_rows=rows,
                        causal=causal, invariant=True)
