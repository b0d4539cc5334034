# fagen: what a rank of a ring receives, computes and sends for gradients, step by step.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys come as in the forward's steps; the gradients of a step's keys go back to the rank that holds them. The first and the last step are
of the rank's own keys, of half of the rows each: the first keys and the last gradients travel while they are computed."""
from typing import List, NamedTuple, Optional, Tuple

from . import _pieces


class Step(NamedTuple):
    source: int  # whose keys, and who gets their gradients
    receives: Optional[Tuple[int, int]]  # which of them; None: none come
    target: int  # who gets keys of this rank, and gives their gradients
    sends: Optional[Tuple[int, int]]
    pieces: List[_pieces.Piece]


class ScheduleBack(NamedTuple):
    steps: List[Step]

    @property
    def most_received(self):
        """Keys of the largest step that come."""
        return _most(step.receives for step in self.steps)

    @property
    def most_sent(self):
        """Keys of the largest step that go, whose gradients come."""
        return _most(step.sends for step in self.steps)


def _most(ranges):
    return max([one[1] - one[0] for one in ranges if one], default=0)


def schedule(bounds, rows, keys, rank, exact):
    """Of a rank. rows and keys are Splits over the ring; exact: whether bounds are the mask, else the mask is the form's own."""
    ranks, own_rows, own_keys = keys.ranks, rows.places(rank), keys.places(rank)
    steps = []
    for step in range(1, ranks):
        source, target = (rank - step) % ranks, (rank + step) % ranks
        receives = _pieces.needed(bounds, own_rows, keys.places(source))
        sends = _pieces.needed(bounds, rows.places(target), own_keys)
        steps.append(Step(source, receives, target, sends, _pieces_of(bounds, rows, rank, keys, source, exact)))
    travels = any(step.receives or step.sends for step in steps)
    first, last = _halves(bounds, rows, keys, rank, exact) if travels else (_pieces_of(bounds, rows, rank, keys, rank, exact), [])
    own = [Step(rank, None, rank, None, pieces) for pieces in (first, last)]
    return ScheduleBack([own[0], *steps, *own[1:]] if last else [own[0], *steps])


def _pieces_of(bounds, rows, rank, keys, source, exact):
    if exact:
        return _pieces.plain_pieces(bounds, rows.places(rank), keys.places(source))
    return _pieces.placed_pieces(bounds, rows.ranges[rank], keys.ranges[source])


def _halves(bounds, rows, keys, rank, exact):
    """The pieces of the own keys, in two."""
    if not exact:
        pieces = _pieces_of(bounds, rows, rank, keys, rank, exact)
        return pieces[:(len(pieces) + 1) // 2], pieces[(len(pieces) + 1) // 2:]
    held, own = rows.places(rank), keys.places(rank)
    half = len(held) // 2
    last = _pieces.plain_pieces(bounds, held[half:], own)
    return (_pieces.plain_pieces(bounds, held[:half], own),
            [piece._replace(rows=(piece.rows[0] + half, piece.rows[1] + half)) for piece in last])
