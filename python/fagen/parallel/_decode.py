# fagen: a few rows, which all ranks have, against a cache that is divided over ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each rank attends to its own keys; O in float32 and LSE of all go to all, which merge them in the order of ranks: the results have
the same bits everywhere."""
from typing import List, NamedTuple

import torch
import torch.distributed as dist

from .. import _arguments, _forms, _lengths, errors
from .. import torch as front
from . import _compute, _pieces
from ._group import Group, PeerError
from ._mask import Mask
from ._plan import _o_dtype_of, _shared
from ._ranks import TIMEOUT
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
    """What a rank computes of the keys that a Split gives it: settled once, and agreed on. invariant: keys of a part; None: all of a rank's
    are one."""

    def __init__(self, group, q, k, keys, scale, mask, invariant):
        self.group, failed = group, None
        try:
            batch, rows, heads, _ = q.shape
            self.sizes = {"batch": batch, "heads": heads, "kv_heads": k.shape[2], "seq_q": rows, "seq_kv": keys.length}
            self.mask = Mask(rows, keys.length, self.sizes, **mask)
            blocks = None if invariant is None else [_blocks_of(ranges, keys.length, invariant) for ranges in keys.ranges]
            self.order = None if blocks is None else _order_of(blocks)
            self.parts = self._settle(rows, [keys.ranges[group.rank]] if blocks is None else [(one,) for one in blocks[group.rank]], invariant)
            self.problem = _compute.Problem(scale, self.mask.placed, self.mask.placed_with_sink, self.mask.args, self.sizes)
            self.record = {"keys": repr(keys)[:400], "dtype": str(q.dtype), "q": str(list(q.shape)), "mask": self.mask.words, "scale": scale,
                           "invariant": str(invariant)}
        except Exception as error:
            failed = error
        group.agree(getattr(self, "record", None) and {**self.record, "at": "plan"}, failed)

    def _settle(self, rows, parts, invariant):
        """[(whether a sink joins it, the first own key, the schedule)] of the parts of the own keys, each as that of a ring of one rank."""
        bounds, found, at = self.mask.bounds, [], 0
        for ranges in parts:
            held = torch.cat([torch.arange(*one) for one in ranges]) if ranges else torch.arange(0)
            made = (_pieces.pieces_of(bounds, torch.arange(rows), held) if self.mask.is_exact else _pieces.placed_pieces(bounds, ((0, rows),), ranges))
            is_first = self.group.rank == 0 if invariant is None else ranges[0][0] == 0  # exactly one part of each row has a sink
            found.append((self.mask.has_sink and is_first, at, of_pieces(made, rows, len(bounds.first), self.mask.has_sink)))
            at += len(held)
        return found

    def __call__(self, q, k, v):
        """O [parts, batch, rows, heads, columns] and LSE [parts, batch, heads, rows] of the own keys."""
        o = torch.empty((len(self.parts), *q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
        lse = torch.empty((len(self.parts), q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
        for number, (adds_sink, at, parts) in enumerate(self.parts):
            output = _compute.Output(o[number], lse[number], parts.accumulates)
            output.clear(parts.empty)
            if adds_sink:
                output.add_sinks(self.problem, parts.sinks, q, k, v)
            for part in parts.steps[0].parts:
                own = slice(at + part.piece.keys[0], at + part.piece.keys[1])
                output.add(self.problem, part, q, k[:, own], v[:, own], with_sink=adds_sink and part.is_new)
        return o, lse


class _Order(NamedTuple):
    """most: how many parts a rank gives, with what fills them up. of: the numbers of those that are there, in the order of the sequence."""
    most: int
    of: List[int]


def _order_of(places):
    """places[rank]: the ranges of a rank's parts."""
    most = max(map(len, places))
    return _Order(most, [at for _, at in sorted((one[0], rank * most + number) for rank, parts in enumerate(places) for number, one in enumerate(parts))])


def _blocks_of(ranges, length, size):
    """The ranges, cut where blocks of so many keys of the sequence begin."""
    for begin, end in ranges:
        if begin % size or (end % size and end != length):
            raise errors.Unsupported(f"invariant={size} with a rank that holds keys {begin} to {end}: parts are blocks of {size} keys of the sequence, each "
                                     f"on one rank, so ranges begin and end at multiples of {size}", _FUNCTION)
    return tuple((at, min(at + size, end)) for begin, end in ranges for at in range(begin, end, size))


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
           return_lse=False, kernels=None, timeout=TIMEOUT, check=None, invariant=None, o_dtype=None, **params):
    """O of rows that all ranks have, against a cache divided over ranks: the same on each rank.

    q: [batch, rows, heads, head_dim], the same on each rank. k, v: [batch, own keys, kv_heads, head_dim].
    lengths: int32 [batch], how many of its own keys a rank uses of each sequence, which the kernel reads: rows see all of them.
    keys: which places of the sequence a rank's keys have, a Split, for a mask or a form as of attention(): rows are the last ones.
    check: whether ranks agree before and after computing, which waits on a GPU; None: on the CPU, and at the first call of its kind.
    invariant: with keys, so many keys are a part that is computed by itself, and parts are merged in the order of the sequence: the bits do
    not depend on the number of ranks. o_dtype: torch.float32 gives O as it is merged; None: in the type of q.
    """
    params = _forms.together(_FUNCTION, form, form_args, params)
    mask = {"causal": causal, "window": window, "documents": documents, "form": form, "form_args": params, "kernels": kernels}
    members, failed, record, order = Group(group, timeout), None, None, None
    try:
        scale = _checked(members, q, k, v, keys, lengths, mask, scale, invariant)
        _o_dtype_of(o_dtype, q.dtype)
        record = {"q": f"{q.dtype} {list(q.shape)}", "head_dim_v": v.shape[3], "kv_heads": k.shape[2], "device": q.device.type, "scale": scale,
                  "lengths": lengths is not None, "has_keys": keys is not None, "mask": f"causal={causal}, window={window}, form={form}"}
    except Exception as error:
        failed = error
    checks = check or (check is None and (failed is not None or q.device.type == "cpu"))
    _agree(members, record, failed, checks)
    with torch.no_grad():
        settled = None if keys is None else _settled(members, q, k, keys, scale, mask, invariant, group)
        try:
            if settled is None:
                o, lse = (t[None] for t in _with_lengths(q, k, v, lengths, scale))
            else:
                (o, lse), order = settled(q, k, v), settled.order
        except Exception as error:
            failed = error
        if checks or failed is not None:
            members.agree({**record, "at": "merge"}, failed)
        o, lse = _from_all(members, o, lse, order)
        o = o.to(_o_dtype_of(o_dtype, q.dtype))
    return (o, lse) if return_lse else o


def _checked(group, q, k, v, keys, lengths, mask, scale, invariant):
    """The scale, of what fits together."""
    _arguments.check(_FUNCTION, q, k, v)
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v)):
        raise errors.Unsupported("decoding has no gradient; use torch.no_grad()", _FUNCTION)
    if keys is None and (mask["causal"] or any(mask[name] is not None for name in ("window", "documents", "form"))):
        raise errors.Error(f"{_FUNCTION}: a mask or a form needs keys, a Split that says which places of the sequence a rank's keys have")
    if keys is not None and lengths is not None:
        raise errors.Error(f"{_FUNCTION}: keys and lengths are given; lengths are for caches all of whose used keys are seen")
    if invariant is not None and (keys is None or not isinstance(invariant, int) or isinstance(invariant, bool) or invariant < 1):
        raise errors.Error(f"{_FUNCTION}: invariant is {invariant!r}{' without keys' if keys is None else ''}; it is how many keys are a part, 1 or more, "
                           "with keys, a Split that says which places of the sequence a rank's keys have")
    if keys is not None and (not isinstance(keys, Split) or keys.ranks != group.size):
        raise errors.Error(f"{_FUNCTION}: keys is {_arguments.words(keys)}; it is a Split of the {group.size} ranks")
    if keys is not None and k.shape[1] != keys.size(group.rank):
        raise errors.Error(f"{_FUNCTION}: k has {k.shape[1]} keys; keys, a Split, gives {keys.size(group.rank)} to rank {group.rank}")
    return q.shape[3] ** -0.5 if scale is None else _arguments.scale_of(_FUNCTION, scale)


_agreed = set()


def _agree(group, record, failed, checks):
    """All ranks ask for the same: at each call where they check, else at the first of its kind."""
    kind = None if record is None else (group.group, *record.items())
    if checks or failed is not None or kind not in _agreed:
        group.agree(record and {**record, "at": "begin"}, failed)
        _agreed.add(kind)


def _settled(members, q, k, keys, scale, mask, invariant, group):
    """The _Keys of a call; where values of tensors count it is made each time."""
    params, key = mask["form_args"], None
    if mask["documents"] is None and not any(isinstance(value, torch.Tensor) for value in params.values()):
        key = ("decode", keys, group, tuple(q.shape), k.shape[2], q.dtype, scale, mask["causal"], mask["window"], mask["form"], tuple(params.items()),
               mask["kernels"], invariant)
    return _shared(key, lambda: _Keys(members, q, k, keys, scale, mask, invariant))


def _from_all(group, o, lse, order):
    """The parts of all ranks, merged. order: which are there, in order, of as many from each rank; None: all, one from each."""
    count, columns = len(o), o.shape[-1]
    own = torch.cat([o.float(), lse.transpose(2, 3)[..., None]], -1).contiguous()
    if order is not None:
        most = order.most
        own = torch.cat([own, own.new_zeros((most - count, *own.shape[1:]))]) if count < most else own
    parts = torch.empty((group.size * len(own), *own.shape[1:]), dtype=own.dtype, device=own.device)
    work = dist.all_gather_into_tensor(parts.view(-1), own.view(-1), group=group.group, async_op=True)
    try:
        work.wait(group.delta) if own.device.type == "cpu" else work.wait()
    except RuntimeError as error:
        raise PeerError(f"{_FUNCTION}: parts of the others did not come within {group.timeout:g} s: {str(error).splitlines()[0]}") from None
    if order is not None:
        parts = torch.cat([parts[at:at + 1] for at in order.of]) if order.of else parts[:0]
    return merge_all(parts[..., :columns], parts[..., columns].transpose(2, 3))
