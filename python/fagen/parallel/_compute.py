# fagen: one call of a kernel for a piece, and where its O and LSE go.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels give parts of O in the type of q: what this costs is in docs/Parallel.md. A kernel that gives float32 would be asked here, and
nothing else would change: merges take any type."""
import torch

from .. import _forms_by_torch, _stats, errors
from .. import torch as front
from . import _merge, _placed


class Problem:
    """What is asked of kernels, whichever rows and keys they get."""

    def __init__(self, scale, placed=None, placed_with_sink=None, args=None, sizes=None, head0=0):
        self.scale, self.placed, self.placed_with_sink, self.args = scale, placed, placed_with_sink, args
        self.sizes, self.head0 = sizes, head0


def attend(problem, piece, q, k, v, out=None, with_sink=False):
    """O and LSE of a piece, whose tensors these are: [batch, rows, heads, head_dim] and float32 [batch, heads, rows]."""
    fallback = "error" if q.is_cuda else "torch"
    options = {"scale": problem.scale, "return_lse": True, "out": out, "fallback": fallback}
    if piece.kind in ("none", "causal"):
        return front.attention(q, k, v, causal=piece.kind == "causal", **options)
    if piece.kind == "placed":
        return _attend_placed(problem, piece, q, k, v, out, with_sink)
    if piece.kind == "local" and front.why_not_form(q, k, v, "local", {"left": 0, "right": 0}) is None:
        try:
            return front.attention(q, k, v, form="local", form_args={"left": piece.left, "right": piece.right}, **options)
        except errors.Unsupported:  # windows have kernels for few GPUs, rows for all
            pass
    first, last = (piece.first, piece.last) if piece.kind == "rows" else _rows_of(piece, q.shape[1], k.shape[1], q.device)
    return front.attention(q, k, v, form="rows", form_args={"first": first, "last": last}, **options)


def _rows_of(piece, rows, keys, device):
    place = torch.arange(rows, dtype=torch.int32, device=device) + (keys - rows)
    return (place - piece.left).clamp(min=0), (place + piece.right).clamp(max=keys - 1)


def _attend_placed(problem, piece, q, k, v, out, with_sink):
    placed = problem.placed_with_sink if with_sink else problem.placed
    args = placed.args(problem.args, piece, problem.sizes, problem.head0)
    dtype = front._DTYPES.get(q.dtype)
    if q.is_cuda:
        if dtype is None:
            raise errors.Unsupported(f"q's dtype is {q.dtype}; kernels are of float16 and bfloat16")
        major, minor = torch.cuda.get_device_capability(q.device)
        kernels = _placed.kernels(placed, dtype, q.shape[3], 10 * major + minor)
        return front.attention(q, k, v, form="placed", form_args=args, kernels=kernels, scale=problem.scale, return_lse=True, out=out)
    _stats.refuse("parallel.attention", "a form with places on the CPU", "torch")
    o, lse = _forms_by_torch.Attention(placed.form, args, q, k, v, problem.scale, True).forward(q, k, v)
    return (o if out is None else out.copy_(o)), lse


def alone(parts, compute, k, v, failed=None):
    """compute(part, k, v) for each part, where the keys are here; what failed before is raised."""
    if failed is not None:
        raise failed
    for part in parts:
        compute(part, *(t[:, slice(*part.piece.keys)] for t in (k, v)))


class Output:
    """The rows of a rank: O in the type of q, LSE, and an accumulator in float32 where rows have more than two parts."""

    def __init__(self, o, lse, accumulates):
        self.o, self.lse = o, lse
        wide = torch.float64 if o.dtype == torch.float64 else torch.float32
        self.sums = torch.empty(o.shape, dtype=wide, device=o.device) if accumulates else None

    def clear(self, empty):
        """Rows that see nothing: 0 and -inf."""
        for batch, begin, end in empty:
            which = slice(None) if batch is None else slice(batch, batch + 1)
            self.o[which, begin:end] = 0
            self.lse[which, :, begin:end] = -torch.inf

    def add_sinks(self, problem, pieces, q, k, v):
        """Rows that see nothing, where sums have a sink: a key that none of them sees, whatever it holds."""
        k, v = (t.new_zeros((t.shape[0], 1, *t.shape[2:])) for t in (k, v))
        for piece in pieces:
            rows = slice(*piece.rows)
            o, lse = attend(problem, piece, q[:, rows], k, v, with_sink=True)
            self.o[:, rows].copy_(o)
            self.lse[:, :, rows].copy_(lse)

    def add(self, problem, part, q, k, v, with_sink=False):
        """Computes a part and merges it. q is all rows of the rank; k and v are the piece's keys."""
        piece = part.piece
        which = slice(None) if piece.batch is None else slice(piece.batch, piece.batch + 1)
        (begin, end), target = piece.rows, self.o[which, slice(*piece.rows)]
        is_there = part.is_new and target.dtype == q.dtype  # the kernel writes where the output is
        o, lse = attend(problem, piece, q[which, begin:end], k[which], v[which], target if is_there else None, with_sink)
        for run in part.runs:
            a, b = run.rows
            rows, own = slice(a, b), slice(a - begin, b - begin)
            sums = self.lse[which, :, rows]
            if run.source == "new":
                if not is_there:
                    self.o[which, rows].copy_(o[:, own])
                sums.copy_(lse[:, :, own])
                continue
            source = self.o if run.source == "out" else self.sums
            into = self.o if run.is_last else self.sums
            _merge.merge(into[which, rows], sums, source[which, rows], sums, o[:, own], lse[:, :, own])
