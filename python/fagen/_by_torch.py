# fagen: what PyTorch computes in our place: fallbacks, and gradients.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by PyTorch's own operators, with bottom-right masks. Slower, never another result."""
import math
from typing import NamedTuple, Tuple

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

from . import _gradients, errors


def _bhsd(tensor, bshd):
    return tensor.transpose(1, 2) if bshd else tensor


def visible(seq_q, seq_kv, *, causal=False, window=(-1, -1), device=None):
    """[seq_q, seq_kv] of bool: which keys a row sees, bottom-right; None where it sees all. window: (left, right), -1: open."""
    left, right = window
    if causal:
        right = 0 if right < 0 else min(right, 0)
    if left < 0 and right < 0:
        return None
    last = torch.arange(seq_q, device=device)[:, None] + (seq_kv - seq_q)
    key = torch.arange(seq_kv, device=device)[None, :]
    seen = torch.ones((seq_q, seq_kv), dtype=torch.bool, device=device)
    if left >= 0:
        seen &= key >= last - left
    if right >= 0:
        seen &= key <= last + right
    return seen


def attention(q, k, v, *, scale, causal=False, bshd=True, lse=False, window=(-1, -1), softcap=0.0, alibi_slopes=None,
              dropout=0.0):
    """O and LSE (None unless lse) as the kernels define them: a row that sees no key gives 0 and -inf.

    window, softcap, alibi_slopes ([heads] or [batch, heads]) and dropout as in flash-attn.
    """
    q, k, v = (_bhsd(t, bshd) for t in (q, k, v))
    seen = visible(q.shape[2], k.shape[2], causal=causal, window=window, device=q.device)
    bias = None if alibi_slopes is None else _alibi(alibi_slopes, q.shape[2], k.shape[2], q.device)
    if softcap or lse or k.shape[2] == 0:
        with torch.autocast(q.device.type, enabled=False):
            o, sums = _in_steps(q, k, v, scale, seen, bias, softcap, dropout)
    else:
        o, sums = _by_sdpa(q, k, v, scale, seen, bias, dropout), None
    return _bhsd(o, bshd), sums if lse else None


def attention_of_nested(q, k, v, *, bshd, lse, **options):
    """attention() of nested tensors, one sequence after the other: O as q is, and LSE [batch, heads, rows] nested."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not tensor.is_nested:
            raise errors.Error(f"q, k and v are nested tensors, or none is; {name} is not")
    parts = [attention(*(t[None] for t in one), bshd=bshd, lse=lse, **options) for one in zip(q.unbind(), k.unbind(), v.unbind())]
    o = _nested([o[0] if bshd else o[0].transpose(0, 1) for o, _ in parts], q)  # [rows, heads, columns] each
    sums = _nested([sums[0].t() for _, sums in parts], q).transpose(1, 2) if lse else None
    return (o if bshd else o.transpose(1, 2)), sums


def _nested(parts, like):
    """Parts of as many rows as those of `like` have, in its layout and with its offsets."""
    if like.layout == torch.jagged and like.lengths() is None:
        return torch.nested.nested_tensor_from_jagged(torch.cat(parts), offsets=like.offsets())
    return torch.nested.as_nested_tensor(parts, layout=like.layout)


def _alibi(slopes, seq_q, seq_kv, device):
    row = torch.arange(seq_q, device=device)[:, None] + (seq_kv - seq_q)
    distance = (row - torch.arange(seq_kv, device=device)[None, :]).abs()
    slopes = slopes if slopes.dim() == 2 else slopes[None]
    return -slopes[:, :, None, None].float() * distance


def _by_sdpa(q, k, v, scale, seen, bias, dropout):
    """Rows that see no key are given all, and their O is put to 0: what SDPA makes of them may be NaN, in gradients too."""
    mask = nothing = None
    if seen is not None:
        nothing = ~seen.any(-1, keepdim=True)
        mask = seen | nothing
    if bias is not None:
        mask = bias.to(q.dtype) if mask is None else bias.masked_fill(~mask, -math.inf).to(q.dtype)
    with torch.nn.attention.sdpa_kernel(_kernels_of_torch()):
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=scale,
                                           enable_gqa=q.shape[1] != k.shape[1])
    return o if nothing is None else o.masked_fill(nothing, 0.0)


def _kernels_of_torch():
    """All but what activate() has put in flash attention's and cuDNN's place: a fallback does not come back to us. Of
    forward-mode differentiation only one knows."""
    from torch.nn.attention import SDPBackend
    return [SDPBackend.MATH] if forward_ad._current_level >= 0 else [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def softmax(scores, sink=None):
    """Weights and LSE of rows of float32 scores of any size. A row of -inf alone has weights of 0 and LSE -inf.

    sink is a score that joins each row's sum. Terms are relative to the maximum: of large scores LSE has lost the logarithm of the sum.
    """
    top = scores.detach().amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full((*scores.shape[:-1], 1), -math.inf)
    if sink is not None:
        top = torch.maximum(top, sink.detach())
    shift = top.masked_fill(top == -math.inf, 0.0)
    terms = torch.exp(scores - shift)
    total = terms.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - shift)
    nothing = total == 0
    total = total.masked_fill(nothing, 1.0)  # its gradient would be NaN
    return terms / total, (shift + torch.log(total)).masked_fill(nothing, -math.inf)[..., 0]


def _in_steps(q, k, v, scale, seen, bias, softcap, dropout):
    """In float32, step by step."""
    groups = q.shape[1] // max(1, k.shape[1])
    k, v = (t.float().repeat_interleave(groups, 1) for t in (k, v))
    scores = q.float() @ k.transpose(-1, -2) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    weights, sums = softmax(scores)
    if dropout:
        weights = F.dropout(weights, dropout)
    return (weights @ v).to(q.dtype), sums


def _by_heads(t, groups, axis):
    """k or v for each query head."""
    return t if groups <= 1 else t.repeat_interleave(groups, axis)


def _by_kv_heads(t, groups, axis, kind=None):
    """Its gradient, summed over the query heads that share it, in its type or another."""
    return t if groups <= 1 else t.unflatten(axis, (-1, groups)).sum(axis + 1, dtype=kind)


def backward(grad, q, k, v, o, lse, scale, causal, bshd, grad_lse=None):
    """Gradients of q, k and v from our O and LSE, and the gradients of these (grad_lse None: of no effect): by our program, else by PyTorch's
    flash attention; where that cannot, by computing anew."""
    rows, keys = (q.shape[1], k.shape[1]) if bshd else (q.shape[2], k.shape[2])
    flash_can = grad_lse is None and q.shape[-1] == v.shape[-1] and rows > 0 and keys > 0 and not (causal and rows != keys)
    if _gradients.has_program(q, k, v, bshd) and not (flash_can and _gradients.is_slower(q.device)):
        return _gradients.backward(grad, q, k, v, o, lse, scale, causal, bshd, grad_lse=grad_lse)
    if not flash_can:
        return backward_anew((grad, grad_lse), q, k, v, scale, causal, bshd)
    grad, q, k, v, o = (_bhsd(t, bshd) for t in (grad, q, k, v, o))
    groups = q.shape[1] // max(1, k.shape[1])
    k, v = (_by_heads(t, groups, 1) for t in (k, v))
    if q.is_cuda:
        state = torch.empty(2, dtype=torch.uint64, device=q.device)  # of dropout, which there is none of
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_backward(
            grad, q, k, v, o, lse, None, None, rows, keys, 0.0, causal, state, state, scale=scale)
    else:
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, o, lse, 0.0, causal, scale=scale)
    dk, dv = (_by_kv_heads(t, groups, 1) for t in (dk, dv))
    return tuple(_bhsd(t, bshd) for t in (dq, dk, dv))


def backward_of_window(grad, q, k, v, o, lse, scale, window, bshd, kind=None):
    """Gradients of q, k and v on a GPU, by PyTorch's flash attention from our O and LSE.

    window: (left, right), -1: open; a row at place p of the keys, the last row at the last key, sees those from p - left to p + right. kind:
    the type in which those of a K/V head are summed over its query heads.
    """
    grad, q, k, v, o = (t if bshd else t.transpose(1, 2) for t in (grad, q, k, v, o))
    groups = q.shape[2] // max(1, k.shape[2])
    k, v = (_by_heads(t, groups, 2) for t in (k, v))
    lse = lse.masked_fill(lse == -math.inf, math.inf)  # a row that sees no key has terms of 0
    blocks = list(blocks_of_window(q.shape[1], k.shape[1], *window))
    if len(blocks) == 1:
        dq, dk, dv = _backward_of_block(grad, q, k, v, o, lse, scale, blocks[0])
    else:
        dq, (dk, dv) = torch.zeros_like(q), (torch.zeros(t.shape, dtype=torch.float32, device=t.device) for t in (k, v))
        for block in blocks:
            own, theirs = slice(*block.rows), slice(0, block.keys)
            dq[:, own], *parts = _backward_of_block(grad[:, own], q[:, own], k[:, theirs], v[:, theirs], o[:, own], lse[..., own].contiguous(), scale, block)
            for whole, part in zip((dk, dv), parts):
                whole[:, theirs] += part
        dk, dv = dk.to(k.dtype), dv.to(v.dtype)
    dk, dv = (_by_kv_heads(t, groups, 2, kind) for t in (dk, dv))
    return tuple(t if bshd else t.transpose(1, 2) for t in (dq, dk, dv))


class WindowBlock(NamedTuple):
    """rows: (begin, end); keys: the first so many; left and right as of backward_of_window, of these rows and keys."""
    rows: Tuple[int, int]
    keys: int
    left: int
    right: int


def blocks_of_window(rows, keys, left, right):
    """The calls of PyTorch's flash attention that a window takes. It takes a right side of at least the number of keys, also an open one, for
    that number, and a row is further away from the last key than that where there are more rows than keys: then rows are cut."""
    if rows <= keys + 1 or 0 <= right < keys or (left < 0 and right < 0):
        yield WindowBlock((0, rows), keys, left, right)
        return
    right = rows + keys if right < 0 else right
    for end in range(rows, 0, -keys):
        begin, seen = max(0, end - keys), min(keys, end + keys - rows + right)
        if seen <= 0:
            return
        moved = seen + rows - keys - end  # how much later a row's place is among these keys, the last row at the last of them
        yield WindowBlock((begin, end), seen, left if left < 0 else left + moved, right - moved)


def _backward_of_block(grad, q, k, v, o, lse, scale, block):
    state = torch.empty(2, dtype=torch.uint64, device=q.device)  # of dropout, which there is none of
    return torch.ops.aten._flash_attention_backward(
        grad, q, k, v, o, lse, None, None, q.shape[1], k.shape[1], 0.0, False, state, state, scale=scale,
        window_size_left=block.left, window_size_right=block.right)


def has_backward_of_window(q, k, v):
    """Whether backward_of_window() takes tensors like these, whose types and head dims a kernel has."""
    return q.is_cuda and q.shape[-1] == v.shape[-1] and q.shape[-1] % 8 == 0 and 0 not in (q.numel(), k.numel())


def backward_anew(grads, q, k, v, scale, causal, bshd):
    """Gradients of q, k and v from those of O and LSE (None: of no effect), by PyTorch's forward and its gradient."""
    with torch.enable_grad():
        inputs = [t.detach().requires_grad_() for t in (q, k, v)]
        outputs = attention(*inputs, scale=scale, causal=causal, bshd=bshd, lse=grads[1] is not None)
        wanted = [(output, grad) for output, grad in zip(outputs, grads) if grad is not None]
        return torch.autograd.grad([output for output, _ in wanted], inputs, [grad for _, grad in wanted], allow_unused=True,
                                   materialize_grads=True)
