# fagen: gradients of attention by programs of the package: the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls have them, and how these are taken apart. specs/backward.fair.in is what runs, specs/backward_sync.fair.in where there is no
wgmma."""
import functools
import math
import os

import torch
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from . import _kernels, _lib, _torch_programs
from ._forms import Scores

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIMS = (64, 96, 128, 192, 256)
_OF_WGMMA, _OLDEST = (9, 0), (8, 0)  # compute capabilities
_ROWS = 128  # of a tile: dS has a multiple of them
_MOST_SCRATCH = 1 << 30  # bytes of dS at a time
_MOST_ROWS, _MOST_HEADS = 1 << 20, 4096  # the program's sizes
_BYTES = 16  # that rows begin at multiples of


@functools.lru_cache(maxsize=None)
def _kernel_set():
    machine_code, is_of_these = _kernels.with_machine_code()
    there = os.path.join(machine_code, "backward") if machine_code and is_of_these else None
    return _kernels.load(there if there and os.path.exists(there) else _lib.path("kernels", "backward"))


@functools.lru_cache(maxsize=None)
def _program(text, kind, head_dim, scores):
    return _torch_programs.program(_kernel_set(), f"backward{text}_{kind}_d{head_dim}{scores}")


def _is_plain(tensor):
    """Whether it is memory, or stands for that in a graph. What others are made of, as DTensors, has gradients of its own."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) or isinstance(tensor, (FakeTensor, FunctionalTensor))


_text_when_emulated = ""


def _text_for(device):
    """What the names of its programs have after `backward`: nothing with wgmma, `_sync` on other GPUs; None where it runs none."""
    if device.type != "cuda":
        return _text_when_emulated if _torch_programs.is_emulated() else None
    capability = torch.cuda.get_device_capability(device)
    return "" if capability == _OF_WGMMA else "_sync" if capability >= _OLDEST else None


def _scratch_of_head(rows, keys):
    """Bytes of dS of one head of one batch."""
    return 2 * keys * -(-rows // _ROWS) * _ROWS


def has_program(q, k, v, bshd):
    """Whether backward() takes these: float16 or bfloat16, Q and V of one head dim up to 256, on a GPU of compute capability 8.0 or
    newer."""
    if not all(_is_plain(t) for t in (q, k, v)):
        return False
    if q.dtype not in _TYPES or q.shape[-1] > _HEAD_DIMS[-1] or v.shape[-1] != q.shape[-1] or _text_for(q.device) is None:
        return False
    q, k = (_heads_first(t, bshd) for t in (q, k))
    return 0 not in (q.numel(), k.numel()) and max(q.shape[0], q.shape[2], k.shape[2]) <= _MOST_ROWS and q.shape[1] <= _MOST_HEADS


def _heads_first(tensor, bshd):
    return tensor.transpose(1, 2) if bshd else tensor


def _for_boxes(tensor):
    """As the copy engine takes it: elements of a row side by side, rows at multiples of 16 bytes."""
    each = _BYTES // tensor.element_size()
    fits = tensor.stride(-1) == 1 and tensor.storage_offset() % each == 0 and all(
        stride % each == 0 and stride > 0 for stride in tensor.stride()[:-1])
    if fits:
        return tensor
    if tensor.shape[-1] % each == 0:
        return tensor.contiguous(memory_format=torch.contiguous_format)
    padded = tensor.new_empty((*tensor.shape[:-1], -(-tensor.shape[-1] // each) * each))[..., :tensor.shape[-1]]
    return padded.copy_(tensor)


def _like(tensor):
    """Memory for its gradient: of its strides, where elements of a row lie side by side."""
    same = torch.empty_like(tensor)
    return same if same.stride(-1) == 1 else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _pieces(batch, kv_heads, group, scratch):
    """(batches, heads of K/V, query heads of each) that a launch takes, of `scratch` bytes for each query head of a batch."""
    most = max(1, _MOST_SCRATCH // scratch)
    if most < group:
        return 1, 1, max(part for part in range(1, most + 1) if group % part == 0)
    heads = min(kv_heads, most // group)
    return min(batch, max(1, most // group // heads)), heads, group


def backward(grad, q, k, v, o, lse, scale, causal, bshd, *, grad_lse=None, scores=None):
    """Gradients of q, k and v, laid out as these are, from those of O and of LSE (None: of no effect).

    lse, grad_lse: float32 [batch, heads, rows], natural logarithms. scores: which keys a row sees, and what becomes of scores, in place of
    `causal`. LSE is of scores as they are then, a sink among them.
    """
    scores = scores or Scores(right=0 if causal else -1)
    columns = q.shape[-1]
    if columns not in _HEAD_DIMS:  # zeros after them add nothing
        wider = min(d for d in _HEAD_DIMS if d > columns)
        padded = (torch.nn.functional.pad(t, (0, wider - columns)) for t in (grad.to(q.dtype), q, k, v, o))
        found = backward(*padded, lse, scale, causal, bshd, grad_lse=grad_lse, scores=scores)
        return tuple(t[..., :columns] for t in found)
    results = [_like(t) for t in (q, k, v)]
    given = [_heads_first(t, bshd) for t in (grad.to(q.dtype), q, k, v, o)]
    into = [_heads_first(t, bshd) for t in results]
    rows, keys = q.shape[1 if bshd else 2], k.shape[1 if bshd else 2]
    of_rows = [lse] if grad_lse is None else [lse, grad_lse]
    if _scratch_of_head(rows, keys) <= _MOST_SCRATCH:
        _backward_of_block(*given, of_rows, scale, scores, *into)
        return tuple(results)
    sums = [torch.zeros(t.shape, dtype=torch.float32, device=t.device) for t in into]
    for its_rows, its_keys, seen in _blocks(rows, keys, scores):
        grad, q, k, v, o = (t[:, :, one] for t, one in zip(given, (its_rows, its_rows, its_keys, its_keys, its_rows)))
        parts = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v)]
        _backward_of_block(grad, q, k, v, o, [t[:, :, its_rows] for t in of_rows], scale, seen, *parts)
        for total, one, part in zip(sums, (its_rows, its_keys, its_keys), parts):
            total[:, :, one] += part
    for result, total in zip(into, sums):
        result.copy_(total)
    return tuple(results)


def of_sinks(grad, o, lse, sinks, bshd, grad_lse=None):
    """The gradient of one score of each head that joins the sum of its rows' weights."""
    grad, o = (_heads_first(t, bshd) for t in (grad, o))
    of_rows = (grad.float() * o).sum(-1)
    of_rows = of_rows if grad_lse is None else of_rows - grad_lse
    weights = torch.exp(sinks.float()[:, None] - lse)
    return -(weights * of_rows).sum((0, 2)).to(sinks.dtype)


def _bounds(rows, keys, scores):
    """(left, right): how many keys before and after its place a row sees, all where a side is open; the last row stands at the last key."""
    return keys if scores.left < 0 else min(scores.left, keys), rows if scores.right < 0 else min(scores.right, rows)


def _blocks(rows, keys, scores):
    """(rows, keys, scores) of blocks whose dS of a head is within the scratch: their gradients add up to the whole's. In a block, too, the last
    row stands at the last key, so that bounds move; blocks of which no row sees a key are left out."""
    side = max(1, math.isqrt(_MOST_SCRATCH // 2) // _ROWS) * _ROWS  # of a block, in rows and in keys
    left, right = _bounds(rows, keys, scores)
    for first in range(0, keys, side):
        last = min(first + side, keys)
        for begin in range(0, rows, side):
            end = min(begin + side, rows)
            place = begin + keys - rows  # of the first row
            if first <= place + end - begin - 1 + right and last - 1 >= place - left:
                moved = place - first - (last - first - (end - begin))  # the row's place after where the block has it
                yield slice(begin, end), slice(first, last), scores._replace(left=left - moved, right=right + moved, is_of_block=True)


def _program_of(q, k, scores):
    """The program, and the numbers that are the mask's."""
    rows, keys = q.shape[2], k.shape[2]
    left, right = (scores.left, scores.right) if scores.is_of_block else _bounds(rows, keys, scores)
    name = "_softcap" if scores.cap else "_window" if left < keys - 1 or right < rows - 1 else ""
    return _program(_text_for(q.device), _TYPES[q.dtype], q.shape[-1], name), {
        "left": max(-_MOST_ROWS, min(left, _MOST_ROWS)), "right": max(-_MOST_ROWS, min(right, _MOST_ROWS))}


def _backward_of_block(grad, q, k, v, o, of_rows, scale, scores, dq, dk, dv):
    """Into dq, dk and dv. All are [batch, heads, rows, columns]. of_rows: LSE, and its gradient if there is one."""
    grad, q, k, v, o = (_for_boxes(t) for t in (grad, q, k, v, o))
    group = q.shape[1] // k.shape[1]
    batches, heads, part = _pieces(k.shape[0], k.shape[1], group, _scratch_of_head(q.shape[2], k.shape[2]))
    parts = group // part
    # A group that is taken in parts has sums of each, which are added in order.
    sums = [t if parts == 1 else t.new_empty((parts, *t.shape)) for t in (dk, dv)]
    program, numbers = _program_of(q, k, scores)
    exponent = scores.cap if scores.cap else scale
    numbers.update(scale=scale, scale_log2=exponent * math.log2(math.e), lse_gradient=float(len(of_rows) - 1))
    if scores.cap:
        numbers["scale_of_tanh"] = scale / scores.cap
    of_rows = [_for_boxes(t) for t in of_rows]
    for b in range(0, k.shape[0], batches):
        for h in range(0, k.shape[1], heads):
            kv = (slice(b, b + batches), slice(h, h + heads))
            for p in range(parts):
                first = h * group + p * part
                rows = (kv[0], slice(first, first + heads * part))
                of_k, of_v = (t if parts == 1 else t[p] for t in sums)
                program(o=o[rows], dout=grad[rows], lse=of_rows[0][rows], dlse=of_rows[-1][rows], q=q[rows], k=k[kv], v=v[kv], dq=dq[rows],
                        dk=of_k[kv], dv=of_v[kv], **numbers)
    if parts > 1:
        for result, each in zip((dk, dv), sums):
            result.copy_(each.sum(0, dtype=torch.float32))
