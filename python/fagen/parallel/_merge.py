# fagen: parts of attention over different keys, merged by their LSE in float32.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of parts is the caller's: it is the same whatever arrives first, so that results have the same bits each time."""
import torch

from . import _merge_gpu


def merge(into, sums, o, o_sums, part, part_sums):
    """Writes into `into` and `sums` what rows have of the keys of both: (o, o_sums) and (part, part_sums).

    o, part, into: [batch, rows, heads, columns] of any floating-point type, which may be the same memory; sums: float32
    [batch, heads, rows]. A row that sees nothing has 0 and -inf.
    """
    if into.is_cuda and _merge_gpu.merge(into, sums, o, o_sums, part, part_sums):
        return
    top = torch.maximum(o_sums, part_sums)
    shift = top.masked_fill(top == -torch.inf, 0.0)
    a, b = torch.exp(o_sums - shift), torch.exp(part_sums - shift)
    total = a + b
    nothing = total == 0
    divisor = total.masked_fill(nothing, 1.0)
    a, b = ((t / divisor).transpose(1, 2)[..., None] for t in (a, b))
    into.copy_((o.to(_wide(o)) * a).addcmul_(part.to(_wide(part)), b))
    sums.copy_((shift + torch.log(divisor)).masked_fill(nothing, -torch.inf))


def _wide(tensor):
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32
