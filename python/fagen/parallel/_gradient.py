# fagen: the gradients of attention over ranks, from those of O and LSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dQ stays with the rows, dK and dV are summed where the keys are held; all in float32, in a fixed order. All ranks of a call record a
gradient or none does, and all ask for it."""
import functools

import torch

from .. import errors
from . import _over_heads, _piece_gradients, _schedule_back
from ._ring_back import RingBack
from ._transfers import Transfers


def check(plan):
    """Refuses what has no gradient; settles what one needs."""
    for name, value in plan.mask.args.items():
        if isinstance(value, torch.Tensor) and value.requires_grad:
            raise errors.Unsupported(f"{name} of the form wants a gradient, of which each rank has a part: gradients are those of q, k and v; give "
                                     f"{name}.detach()", "parallel.attention")
    plan.schedule_back  # noqa: B018


def gradients(plan, kept, grad, grad_lse):
    """Of q, k and v, in their types, from those of O and LSE (None: of no effect). kept: what the forward has."""
    found = []

    def begin():
        wide = torch.float64 if plan.dtype == torch.float64 else torch.float32
        q, k, v = plan.local_shapes()
        found.append(torch.empty(q, dtype=plan.dtype, device=kept[0].device) if plan.chunks else None)
        found.extend(torch.zeros(shape, dtype=wide, device=kept[0].device) for shape in (k, v))

    def run():
        given = torch.zeros((*plan.local_shapes()[0][:3], plan.columns[1]), dtype=plan.dtype, device=kept[0].device) if grad is None else grad.contiguous()
        if plan.chunks is None:
            found[:] = _over_ring(plan, *kept, given, grad_lse, 0, found[1:])
            return
        differentiate = functools.partial(_over_ring, plan)
        _over_heads.Backward(plan.exchange(given.device), plan.chunks, differentiate, kept, given, grad_lse, *found).run()
    plan.together(begin, run, " of the gradient", gradient_of_lse=grad_lse is not None)
    return [t.to(plan.dtype) for t in found]


def _over_ring(plan, q, k, v, o, lse, grad, grad_lse, head0, sums=None):
    """dq, dk and dv, of a wide type, of the rows and keys that a rank of the ring has. sums: zeros for dk and dv."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    dq = torch.zeros(q.shape, dtype=wide, device=q.device)
    dk, dv = [torch.zeros(t.shape, dtype=wide, device=q.device) for t in (k, v)] if sums is None else sums
    rows, problem = _piece_gradients.Rows(grad, grad_lse, q, o, lse), plan.problem(head0)

    def compute(piece, k, v, dk, dv):
        which = slice(None) if piece.batch is None else slice(piece.batch, piece.batch + 1)
        found = _piece_gradients.gradients(problem, piece, rows.of(piece), k[which], v[which])
        for into, part in zip((dq[which, slice(*piece.rows)], dk[which], dv[which]), found):
            into += part
    made = plan.schedule_back
    if plan.ranks.ring is None:
        for piece in made.steps[0].pieces:
            keys = slice(*piece.keys)
            compute(piece, *(t[:, keys] for t in (k, v, dk, dv)))
    else:
        RingBack(made, Transfers(plan.ranks.ring, q.device), k, v, dk, dv).run(compute)
    return dq, dk, dv


def schedule_of(plan):
    """Of a plan's gradients, with the bounds of its pieces on the device."""
    mask = plan.mask
    made = _schedule_back.schedule(mask.bounds, *plan.over_ring, plan.ranks.place[0], mask.is_exact)
    return made._replace(steps=[step._replace(pieces=[piece.to(plan.device) for piece in step.pieces]) for step in made.steps])
