# fagen: attention of the rows that a rank holds with the keys of a ring of ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The keys of the next step travel while one is computed, into two buffers in turn."""
import torch

from ._transfers import Message


def buffers_of(schedule, batch, shapes, kind, device):
    """Memory for keys that come, in a list of one for each step that is under way: flat tensors for K and V of (heads, columns)."""
    most, steps = schedule.most_received, sum(step.receives is not None for step in schedule.steps)
    return [[torch.empty(batch * most * heads * columns, dtype=kind, device=device) for heads, columns in shapes] for _ in range(min(2, steps))]


class Ring:
    """A rank's part in one call, with buffers of buffers_of(), and the transfers."""

    def __init__(self, schedule, transfers, k, v, buffers):
        self.schedule, self.transfers, self.k, self.v, self._buffers = schedule, transfers, k, v, buffers
        self._computed = [None for _ in self._buffers]  # when what used a buffer was computed
        self._received = 0

    def _into(self, keys):
        """Tensors for as many keys, of the next buffer, and the point after which it may be written."""
        number = self._received % len(self._buffers)
        self._received += 1
        return number, [flat[:t.shape[0] * keys * t.shape[2] * t.shape[3]].view(t.shape[0], keys, *t.shape[2:])
                        for flat, t in zip(self._buffers[number], (self.k, self.v))]

    def _start(self, step):
        """Begins the transfers of a step; gives (what finish() takes, the buffer's number, its tensors)."""
        sends, receives, number, tensors, after = [], [], None, None, None
        if step.sends:
            sends = [Message(t[:, slice(*step.sends)].contiguous(), step.target) for t in (self.k, self.v)]
            after = self.transfers.now()
        if step.receives:
            number, tensors = self._into(step.receives[1] - step.receives[0])
            receives = [Message(t, step.source) for t in tensors]
        # A buffer was used in the step before the last: no later point than now has to be waited for.
        waits = self._computed[number] if number is not None else None
        copied = after if sends and sends[0].tensor.data_ptr() != self.k[:, slice(*step.sends)].data_ptr() else None
        return self.transfers.start(sends, receives, copied or waits), number, tensors

    def run(self, compute, failed=None):
        """compute(part, k, v) for each part, in order. An exception in it, or one before, is kept until the transfers are over, so that the
        others get their keys; then it is raised."""
        steps = self.schedule.steps
        coming = None
        for number, step in enumerate(steps):
            coming_next = self._start(steps[number + 1]) if number + 1 < len(steps) else None
            tensors, buffer, first = (self.k, self.v), None, 0
            if coming is not None:
                started, buffer, received = coming
                self.transfers.finish(started)
                if received is not None:
                    tensors, first = received, step.receives[0]
            for part in step.parts:
                try:
                    if failed is None:
                        compute(part, *(t[:, part.piece.keys[0] - first:part.piece.keys[1] - first] for t in tensors))
                except Exception as error:  # of whatever kind: it is raised below
                    failed = error
            if buffer is not None:
                self._computed[buffer] = self.transfers.now()
            coming = coming_next
        self.transfers.close()
        if failed is not None:
            raise failed
