# fagen: gradients of the rows that a rank holds, and of the keys of a ring of ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys come as in the forward, and their gradients go back in float32 while the next step is computed. A rank adds those of its own keys in
the order of steps: the same bits each time, whatever arrives first."""
import torch

from . import _ring
from ._transfers import Message


def buffers_of(schedule, batch, shapes, kind, wide, device):
    """Memory for keys that come; for the gradients of as many, of the type `wide`; and for those of own keys."""
    keys = _ring.buffers_of(schedule, batch, shapes, kind, device)
    flat = lambda most: [torch.empty(batch * most * heads * columns, dtype=wide, device=device) for heads, columns in shapes]  # noqa: E731
    return keys, [flat(schedule.most_received) for _ in keys], flat(schedule.most_sent)


class RingBack(_ring.Ring):
    """A rank's part in one backward, with buffers of buffers_of(). sums: dK and dV of own keys, to which is added; None where they failed."""

    def __init__(self, schedule, transfers, k, v, buffers, sums):
        keys, self._parts, self._landing = buffers  # of others' keys, while they are computed and sent; of own keys, from others
        super().__init__(schedule, transfers, k, v, keys)
        self.own = sums

    def run(self, compute, failed=None):
        """compute(piece, k, v, dk, dv) adds the gradients of a piece to those of its keys. An exception in it, or one before, is kept until
        the transfers are over, so that the others get something; then it is raised."""
        coming, going, sent = None, None, 0
        steps = self.schedule.steps
        for number, step in enumerate(steps):
            following = self._start(steps[number + 1]) if number + 1 < len(steps) else None
            tensors, buffer, first, parts = (self.k, self.v), None, 0, self.own
            if coming is not None:
                started, buffer, received = coming
                self.transfers.finish(started)
                if received is not None:
                    tensors, first = received, step.receives[0]
                    parts = self._cleared(self._parts[sent % len(self._parts)], step.receives)
                    sent += 1
            try:
                if failed is None:
                    self._compute(compute, step, tensors, parts, first)
            except Exception as error:  # of whatever kind: it is raised below
                failed = error
            if buffer is not None:
                self._computed[buffer] = self.transfers.now()
            if step.receives or step.sends:
                self._add(going, failed)
                going = self._give(step, parts)
            coming = following
        self._add(going, failed)
        self.transfers.close()
        if failed is not None:
            raise failed

    def _compute(self, compute, step, tensors, parts, first):
        for piece in step.pieces:
            keys = slice(piece.keys[0] - first, piece.keys[1] - first)
            compute(piece, *(t[:, keys] for t in (*tensors, *parts)))

    def _cleared(self, flats, keys):
        return [part.zero_() for part in self._shaped(flats, keys)]

    def _shaped(self, flats, keys):
        """Tensors of so many keys, of the beginning of memory."""
        count = keys[1] - keys[0]
        return [flat[:t.shape[0] * count * t.shape[2] * t.shape[3]].view(t.shape[0], count, *t.shape[2:]) for flat, t in zip(flats, (self.k, self.v))]

    def _give(self, step, parts):
        """Begins to send the gradients of a step's keys to who holds them, and to receive those of own keys. One landing does: what came
        before was added before."""
        sends = [Message(part, step.source) for part in parts] if step.receives else []
        landing = self._shaped(self._landing, step.sends) if step.sends else []
        return self.transfers.start(sends, [Message(t, step.target) for t in landing], self.transfers.now()), step.sends, landing

    def _add(self, going, failed):
        if going is None:
            return
        started, keys, landing = going
        self.transfers.finish(started)
        for own, come in zip(self.own if failed is None else (), landing):
            own[:, slice(*keys)] += come
