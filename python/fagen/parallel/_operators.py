# fagen: calls of plans as operators of PyTorch: what autograd and torch.compile know of them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An operator names its plan by a word, which a graph takes as it is, where of numbers it makes symbols. Inside, streams and transfers are what they are without a graph: nothing of them is traced."""
import itertools
import weakref
from typing import List, Optional

import torch

from .. import _arguments, errors
from . import _gradient

_plans = weakref.WeakValueDictionary()
_numbers = itertools.count()


def name_of(plan):
    """By which operators find a plan, as long as it is there."""
    name = f"plan {next(_numbers)}"
    _plans[name] = plan
    return name


def _plan(name):
    if name not in _plans:
        raise errors.Error("the parallel.Plan of this graph is gone; keep it as long as what was compiled with it")
    return _plans[name]


@torch.library.custom_op("fagen_parallel::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: str, records: bool) -> List[torch.Tensor]:
    """O and LSE of the own rows; if a gradient is recorded then the tensors of an exchange over heads, too."""
    found, kept = _plan(plan), [] if records else None
    o, lse = found.compute(q, k, v, None, records, kept)
    return [o, lse, *(kept or ())]


@attention.register_fake
def _(q, k, v, plan, records):
    plan = _plan(plan)
    sums = lambda batch, heads, rows: q.new_empty((batch, heads, rows), dtype=torch.float32)  # noqa: E731
    found = [q.new_empty((*q.shape[:3], v.shape[3]), dtype=plan.o_dtype), sums(q.shape[0], q.shape[2], q.shape[1])]
    if plan.chunks is None or not records:
        return found
    rows, keys = plan.exchange_sizes()
    for chunk in plan.chunks:
        share = chunk[plan.ranks.heads.rank]
        heads, kv_heads = share.heads[1] - share.heads[0], len(share.kv_heads)
        found += [q.new_empty((q.shape[0], n, count, width), dtype=kind) for n, count, width, kind in (
            (sum(rows), heads, q.shape[3], q.dtype), (sum(keys), kv_heads, k.shape[3], q.dtype), (sum(keys), kv_heads, v.shape[3], q.dtype),
            (sum(rows), heads, v.shape[3], plan.o_dtype))]
        found.append(sums(q.shape[0], heads, sum(rows)))
    return found


@torch.library.custom_op("fagen_parallel::gradients", mutates_args=())
def gradients(kept: List[torch.Tensor], grad: Optional[torch.Tensor], grad_lse: Optional[torch.Tensor], plan: str) -> List[torch.Tensor]:
    """Of q, k and v, from those of O and LSE."""
    return _gradient.gradients(_plan(plan), kept, grad, grad_lse)


@gradients.register_fake
def _(kept, grad, grad_lse, plan):
    return [kept[0].new_empty(shape) for shape in _plan(plan).local_shapes()]


def _keep(ctx, inputs, output):
    q, k, v, name, _ = inputs
    o, lse, *kept = output
    ctx.plan = _plan(name)  # it lives as long as its gradients may be asked for
    ctx.save_for_backward(*(kept if kept else (q, k, v, o, lse)))
    ctx.set_materialize_grads(False)


def _backward(ctx, grads):
    _arguments.refuse_second_gradient("attention over ranks")
    return *gradients(list(ctx.saved_tensors), grads[0], grads[1], ctx.plan.name), None, None


attention.register_autograd(_backward, setup_context=_keep)
