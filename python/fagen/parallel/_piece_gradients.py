# fagen: the gradients of one piece: what its rows and keys give each other, from the LSE of all keys of the rows.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain masks and windows are the package's programs' where these run, as fagen.attention's are: the same bits on every run. On other GPUs they
are PyTorch's flash attention's. All else, and the CPU, is computed by PyTorch's operators, some rows at a time: right, and slow."""
import contextlib
import functools

import torch

from .. import _by_torch, _forms_by_torch, _gradients
from .._forms import Scores

_MOST_SCORES = 1 << 25  # that are held at once


class Rows:
    """What gradients know of the rows of a rank: the gradient of O, that of LSE (None: of no effect), q, O and LSE of all keys.

    grad, q, o: [batch, rows, heads, columns]; lse, grad_lse: float32 [batch, heads, rows].
    """

    def __init__(self, grad, grad_lse, q, o, lse):
        self.grad, self.grad_lse, self.q, self.o, self.lse = grad, grad_lse, q, o, lse

    def of(self, piece):
        which = slice(None) if piece.batch is None else slice(piece.batch, piece.batch + 1)
        cut = lambda t: t[which, slice(*piece.rows)]  # noqa: E731
        sums = lambda t: None if t is None else t[which, :, slice(*piece.rows)]  # noqa: E731
        return Rows(cut(self.grad), sums(self.grad_lse), cut(self.q), cut(self.o), sums(self.lse))


def gradients(problem, piece, rows, k, v):
    """(dq, dk, dv) that a piece adds: rows are its own, k and v [batch, keys, kv_heads, columns] its keys. Of the type of q, or wider."""
    window = {"none": (-1, -1), "causal": (-1, 0), "local": (piece.left, piece.right)}.get(piece.kind)
    if window is not None and _gradients.has_program(rows.q, k, v, True):
        grad, o = (t.to(rows.q.dtype) for t in (rows.grad, rows.o))
        return _gradients.backward(grad, rows.q, k, v, o, rows.lse, problem.scale, None, True, grad_lse=rows.grad_lse, scores=Scores(*window))
    if window is not None and rows.grad_lse is None and _by_torch.has_backward_of_window(rows.q, k, v):
        grad, o = (t.to(rows.q.dtype) for t in (rows.grad, rows.o))
        return _by_torch.backward_of_window(grad, rows.q, k, v, o, rows.lse.contiguous(), problem.scale, window, True, torch.float32)
    return _in_steps(problem, piece, rows, k, v)


def _in_steps(problem, piece, rows, k, v):
    kind = torch.float64 if rows.q.dtype == torch.float64 else torch.float32
    q, grad, o, k, v = (t.transpose(1, 2).to(kind) for t in (rows.q, rows.grad, rows.o, k, v))
    kv_heads, groups = k.shape[1], q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
    delta = (grad * o).sum(-1) if rows.grad_lse is None else (grad * o).sum(-1) - rows.grad_lse
    lse = rows.lse.masked_fill(rows.lse == -torch.inf, torch.inf)  # a row that sees no key has weights of 0
    scores_of = _scores_of(problem, piece, q, kv_heads, k.shape[2])
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    step = max(1, _MOST_SCORES // max(1, q.shape[0] * q.shape[1] * k.shape[2]))
    for first in range(0, q.shape[2], step):
        own = slice(first, min(first + step, q.shape[2]))
        raw = q[:, :, own] @ k.transpose(-1, -2) * problem.scale
        scores, seen, pull = scores_of(raw, own)
        weights = torch.exp(scores - lse[:, :, own, None].to(kind)).masked_fill(~seen, 0.0)
        of_scores = pull(weights * (grad[:, :, own] @ v.transpose(-1, -2) - delta[:, :, own, None])) * problem.scale
        dq[:, :, own] = of_scores @ k
        dk += of_scores.transpose(-1, -2) @ q[:, :, own]
        dv += weights.transpose(-1, -2) @ grad[:, :, own]
    dk, dv = (t if groups == 1 else t.unflatten(1, (-1, groups)).sum(2) for t in (dk, dv))
    return tuple(t.transpose(1, 2) for t in (dq, dk, dv))


def _scores_of(problem, piece, q, kv_heads, keys):
    """A function of (scores before the form's, which rows): scores, what is seen of them, and how a gradient of scores becomes one of those
    before."""
    if piece.kind == "placed":
        return _of_form(problem, piece, q, kv_heads, keys)
    key, offset = torch.arange(keys, device=q.device), keys - q.shape[2]

    def of(raw, own):
        place = torch.arange(own.start, own.stop, device=q.device)[:, None] + offset
        if piece.kind == "rows":
            seen = (key >= piece.first[own, None]) & (key <= piece.last[own, None])
        else:
            left, right = {"none": (keys, keys + q.shape[2]), "causal": (keys, 0)}.get(piece.kind, (piece.left, piece.right))
            seen = (key >= place - left) & (key <= place + right)
        return raw, seen, lambda gradient: gradient
    return of


def _of_form(problem, piece, q, kv_heads, keys):
    form = problem.placed.form
    args = problem.placed.args(problem.args, piece, problem.sizes, problem.head0)
    sizes = {"batch": q.shape[0], "heads": q.shape[1], "kv_heads": kv_heads, "seq_q": q.shape[2], "seq_kv": keys}

    def of(raw, own):
        rows = _forms_by_torch._Rows(form, args, sizes, own.start, own.stop, q.device)
        with _recording():
            given = raw.detach().requires_grad_()
            scores = rows.scored(given).expand_as(given)
        seen = rows.run(form.mask) if form.mask else torch.ones((), dtype=torch.bool, device=q.device)
        return scores.detach(), seen, functools.partial(_pulled, scores, given)
    return of


_AUTOGRAD = torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.AutogradOther


@contextlib.contextmanager
def _recording():
    """Autograd records, inside an operator as well, where it is left out."""
    was = [torch._C._dispatch_tls_is_dispatch_key_excluded(key) for key in _AUTOGRAD]
    try:
        for key in _AUTOGRAD:
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
        with torch.enable_grad():
            yield
    finally:
        for key, one in zip(_AUTOGRAD, was):
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, one)


def _pulled(scores, given, gradient):
    """The gradient of what scores were made from."""
    if scores is given:
        return gradient
    if not scores.requires_grad:  # a form whose score is none of Q K^T
        return torch.zeros_like(given)
    return torch.autograd.grad(scores, given, gradient)[0]
