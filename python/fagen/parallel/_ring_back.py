# fagen: gradients of the rows that a rank holds, and of the keys of a ring of ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys come as in the forward, and their gradients go back in float32 while the next step is computed. A rank adds those of its own keys in
the order of steps: the same bits each time, whatever arrives first."""
import torch

from ._ring import Ring
from ._transfers import Message


class RingBack(Ring):
    """A rank's part in one backward. dk, dv: zeros [batch, own keys, kv_heads, columns] of a wide type, to which gradients are added."""

    def __init__(self, schedule, transfers, k, v, dk, dv):
        super().__init__(schedule, transfers, k, v)
        self.own = dk, dv
        flat = lambda keys: [torch.empty(t[:, :1].numel() * keys, dtype=t.dtype, device=t.device) for t in self.own]  # noqa: E731
        self._parts = [flat(schedule.most_received) for _ in self._buffers]  # of others' keys, while they are computed and sent
        self._landing = flat(schedule.most_sent)  # of own keys, from others

    def run(self, compute):
        """compute(piece, k, v, dk, dv) adds the gradients of a piece to those of its keys. An exception in it is kept until the transfers are
        over, so that the others get something; then it is raised."""
        failed, coming, going, sent = None, None, None, 0
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
                self._add(going)
                going = self._give(step, parts)
            coming = following
        self._add(going)
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
        return [flat[:t[:, :1].numel() * count].view(t.shape[0], count, *t.shape[2:]) for flat, t in zip(flats, self.own)]

    def _give(self, step, parts):
        """Begins to send the gradients of a step's keys to who holds them, and to receive those of own keys. One landing does: what came
        before was added before."""
        sends = [Message(part, step.source) for part in parts] if step.receives else []
        landing = self._shaped(self._landing, step.sends) if step.sends else []
        return self.transfers.start(sends, [Message(t, step.target) for t in landing], self.transfers.now()), step.sends, landing

    def _add(self, going):
        if going is None:
            return
        started, keys, landing = going
        self.transfers.finish(started)
        for own, come in zip(self.own, landing):
            own[:, slice(*keys)] += come
