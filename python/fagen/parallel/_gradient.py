# fagen: the gradients of attention over ranks, from those of O and LSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dQ stays with the rows, dK and dV are summed where the keys are held; all in float32, in a fixed order. All ranks of a call record a
gradient or none does, and all ask for it."""
import functools

import torch

from .. import errors
from . import _over_heads, _piece_gradients, _ring_back, _schedule_back
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
    found, buffers, device = [], None, kept[0].device
    wide = torch.float64 if plan.dtype == torch.float64 else torch.float32

    def begin():
        nonlocal buffers
        q, k, v = plan.local_shapes()
        found.append(torch.empty(q, dtype=plan.dtype, device=device) if plan.chunks else torch.zeros(q, dtype=wide, device=device))
        found.extend(torch.zeros(shape, dtype=wide, device=device) for shape in (k, v))
        buffers = plan.ranks.ring and _ring_back.buffers_of(plan.schedule_back, q[0], plan.shapes_of_keys(), plan.dtype, wide, device)
        width, width_v = plan.columns
        plan.reserve(width * plan.dtype.itemsize + width_v * plan.o_dtype.itemsize + torch.float32.itemsize, (width + width_v) * wide.itemsize, device)

    def run():
        given = torch.zeros((*plan.local_shapes()[0][:3], plan.columns[1]), dtype=plan.o_dtype, device=device) if grad is None else grad.contiguous()
        if plan.chunks is None:
            _over_ring(plan, buffers, *kept, given, grad_lse, 0, found)
            return
        differentiate = functools.partial(_over_ring, plan, buffers)
        _over_heads.Backward(plan.exchange(device), plan.chunks, differentiate, kept, given, grad_lse, *found).run()
    plan.together(begin, run, " of the gradient", gradient_of_lse=grad_lse is not None)
    return [t.to(plan.dtype) for t in found]


def _over_ring(plan, buffers, q, k, v, o, lse, grad, grad_lse, head0, sums=None):
    """dq, dk and dv, of a wide type, of the rows and keys that a rank of the ring has; sums: zeros for them."""
    rows, problem, failed = _piece_gradients.Rows(grad, grad_lse, q, o, lse), plan.problem(head0), None
    try:
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        sums = [torch.zeros(t.shape, dtype=wide, device=q.device) for t in (q, k, v)] if sums is None else sums
    except Exception as error:  # raised after the others have got their keys
        failed = error

    def compute(piece, k, v, dk, dv):
        which = slice(None) if piece.batch is None else slice(piece.batch, piece.batch + 1)
        found = _piece_gradients.gradients(problem, piece, rows.of(piece), k[which], v[which])
        for into, part in zip((sums[0][which, slice(*piece.rows)], dk[which], dv[which]), found):
            into += part
    if plan.ranks.ring is None:
        _alone(plan.schedule_back.steps[0].pieces, compute, k, v, sums, failed)
    else:
        RingBack(plan.schedule_back, Transfers(plan.ranks.ring, q.device), k, v, buffers, sums and sums[1:]).run(compute, failed)
    return sums


def _alone(pieces, compute, k, v, sums, failed):
    """Where the keys are here."""
    if failed is not None:
        raise failed
    for piece in pieces:
        keys = slice(*piece.keys)
        compute(piece, *(t[:, keys] for t in (k, v, *sums[1:])))


def schedule_of(plan):
    """Of a plan's gradients, with the bounds of its pieces on the device."""
    mask = plan.mask
    made = _schedule_back.schedule(mask.bounds, *plan.over_ring, plan.ranks.place[0], mask.is_exact)
    return made._replace(steps=[step._replace(pieces=[piece.to(plan.device) for piece in step.pieces]) for step in made.steps])
