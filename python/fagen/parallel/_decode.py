# fagen: a few rows, which all ranks have, against a cache that is divided over ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each rank attends to its own keys; O in float32 and LSE of all go to all, which merge them in the order of ranks: the results have
the same bits everywhere."""
import torch
import torch.distributed as dist

from .. import _arguments, _forms, _lengths, errors
from .. import torch as front
from . import _compute, _pieces
from ._group import Group, PeerError
from ._plan import TIMEOUT, Mask, _shared
from ._schedule import of_pieces
from ._split import Split

_FUNCTION = "parallel.decode"


def merge_all(o, lse):
    """O float32 [batch, rows, heads, columns] and LSE of parts: o [parts, batch, rows, heads, columns] and lse [parts, batch, heads, rows],
    float32 both."""
    top = lse.amax(0)
    shift = top.masked_fill(top == -torch.inf, 0.0)
    weights = torch.exp(lse - shift)
    total = weights.sum(0)
    nothing = total == 0
    divisor = total.masked_fill(nothing, 1.0)
    weights = (weights / divisor).transpose(2, 3)[..., None]
    return (o * weights).sum(0), (shift + torch.log(divisor)).masked_fill(nothing, -torch.inf)


class _Keys:
    """What a rank computes of the keys that a Split gives it: settled once, and agreed on."""

    def __init__(self, group, q, k, keys, scale, mask):
        self.group, failed = group, None
        try:
            if not isinstance(keys, Split) or keys.ranks != group.size:
                raise errors.Error(f"{_FUNCTION}: keys is {_arguments.words(keys)}; it is a Split of the {group.size} ranks")
            batch, rows, heads, _ = q.shape
            self.sizes = {"batch": batch, "heads": heads, "kv_heads": k.shape[2], "seq_q": rows, "seq_kv": keys.length}
            self.mask = Mask(rows, keys.length, self.sizes, **mask)
            self.parts, self.rank = self._settle(rows, keys), group.rank
            self.problem = _compute.Problem(scale, self.mask.placed, self.mask.placed_with_sink, self.mask.args, self.sizes)
            self.record = {"keys": repr(keys)[:400], "dtype": str(q.dtype), "q": str(list(q.shape)), "mask": self.mask.words, "scale": scale}
        except Exception as error:
            failed = error
        group.agree(getattr(self, "record", None) and {**self.record, "at": "plan"}, failed)

    def _settle(self, rows, keys):
        """The schedule of the own keys, as that of a ring of one rank."""
        own = keys.ranges[self.group.rank]
        bounds, held = self.mask.bounds, keys.places(self.group.rank)
        everything = torch.arange(rows)
        made = (_pieces.pieces_of(bounds, everything, held) if self.mask.is_exact else _pieces.placed_pieces(bounds, ((0, rows),), own))
        return of_pieces(made, rows, len(bounds.first), self.mask.has_sink)

    def __call__(self, q, k, v):
        o = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
        lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
        output = _compute.Output(o, lse, self.parts.accumulates)
        output.clear(self.parts.empty)
        adds_sink = self.mask.has_sink and self.rank == 0  # exactly one part of each row has it
        if adds_sink:
            output.add_sinks(self.problem, self.parts.sinks, q, k, v)
        for part in self.parts.steps[0].parts:
            piece = part.piece
            output.add(self.problem, part, q, *(t[:, slice(*piece.keys)] for t in (k, v)), with_sink=adds_sink and part.is_new)
        return o, lse


def _with_lengths(q, k, v, lengths, scale):
    """O and LSE of the own cache, of which each sequence uses a length."""
    fallback = "error" if q.is_cuda else "torch"
    if lengths is None:
        return front.attention(q, k, v, scale=scale, return_lse=True, fallback=fallback)
    lengths = _lengths.integers(_FUNCTION, "lengths", lengths, (q.shape[0],), q).int()
    return front.attention(q, k, v, form="used", form_args={"used": lengths, "left": _lengths.MOST, "right": _lengths.MOST}, scale=scale,
                           return_lse=True, fallback=fallback)


@torch.compiler.disable(reason="ranks agree by words on what they decode")
def decode(q, k, v, *, keys=None, lengths=None, causal=False, window=None, documents=None, form=None, form_args=None, scale=None, group=None,
           return_lse=False, kernels=None, timeout=TIMEOUT, **params):
    """O of rows that all ranks have, against a cache divided over ranks: the same on each rank.

    q: [batch, rows, heads, head_dim], the same on each rank. k, v: [batch, own keys, kv_heads, head_dim].
    lengths: int32 [batch], how many of its own keys a rank uses of each sequence, which the kernel reads: rows see all of them.
    keys: which places of the sequence a rank's keys have, a Split, for a mask or a form as of attention(): rows are the last ones.
    """
    params = _forms.together(_FUNCTION, form, form_args, params)
    _arguments.check(_FUNCTION, q, k, v)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v)):
        raise errors.Unsupported("decoding has no gradient; use torch.no_grad()", _FUNCTION)
    if keys is None and (causal or window is not None or documents is not None or form is not None):
        raise errors.Error(f"{_FUNCTION}: a mask or a form needs keys, a Split that says which places of the sequence a rank's keys have")
    if keys is not None and lengths is not None:
        raise errors.Error(f"{_FUNCTION}: keys and lengths are given; lengths are for caches all of whose used keys are seen")
    members = Group(group, timeout)
    scale = q.shape[3] ** -0.5 if scale is None else _arguments.scale_of(_FUNCTION, scale)
    with torch.no_grad():
        if keys is None:
            o, lse = _with_lengths(q, k, v, lengths, scale)
        else:
            mask = {"causal": causal, "window": window, "documents": documents, "form": form, "form_args": params, "kernels": kernels}
            key = None
            if documents is None and not any(isinstance(value, torch.Tensor) for value in params.values()):
                key = ("decode", keys, group, tuple(q.shape), k.shape[2], q.dtype, scale, causal, window, form, tuple(params.items()), kernels)
            o, lse = _shared(key, lambda: _Keys(members, q, k, keys, scale, mask))(q, k, v)
        o, lse = _from_all(members, o, lse)
        o = o.to(q.dtype)
    return (o, lse) if return_lse else o


def _from_all(group, o, lse):
    batch, rows, heads, columns = o.shape
    own = torch.cat([o.float(), lse.transpose(1, 2)[..., None]], -1).contiguous()
    parts = torch.empty((group.size, *own.shape), dtype=own.dtype, device=own.device)
    work = dist.all_gather_into_tensor(parts.view(-1), own.view(-1), group=group.group, async_op=True)
    try:
        work.wait(group.delta) if own.device.type == "cpu" else work.wait()
    except RuntimeError as error:
        raise PeerError(f"{_FUNCTION}: parts of the others did not come within {group.timeout:g} s: {str(error).splitlines()[0]}") from None
    return merge_all(parts[..., :columns], parts[..., columns].transpose(2, 3))
