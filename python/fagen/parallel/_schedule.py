# fagen: what a rank of a ring receives, sends, computes and merges, step by step.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""In step s a rank has the keys of the rank s before it, straight from there, and only those that its rows see. Steps are in this order
on every rank, so that parts are merged in the same order each time."""
from typing import List, NamedTuple, Optional, Tuple

import torch

from . import _pieces


class Run(NamedTuple):
    """Rows of a part that are merged alike. source: "new" (nothing is there yet), "out" or "sums" (the accumulator in float32)."""
    rows: Tuple[int, int]
    source: str
    is_last: bool  # no other part has these rows: they go to the output


class Part(NamedTuple):
    piece: _pieces.Piece
    runs: List[Run]

    @property
    def is_new(self):
        """Whether its rows have had no part yet: the kernel may write where the output is, and adds a sink."""
        return all(run.source == "new" for run in self.runs)


class Step(NamedTuple):
    source: int  # whose keys
    receives: Optional[Tuple[int, int]]  # which of them; None: none come
    target: int  # who gets keys of this rank
    sends: Optional[Tuple[int, int]]
    parts: List[Part]


class Schedule(NamedTuple):
    steps: List[Step]
    empty: List[Tuple[Optional[int], int, int]]  # (batch, begin, end) of rows that see nothing
    accumulates: bool
    sinks: List[_pieces.Piece]  # of those rows, where a sink joins their sums: against a key that they do not see

    @property
    def most_received(self):
        """Keys of the largest step."""
        return max([step.receives[1] - step.receives[0] for step in self.steps if step.receives], default=0)


def schedule(bounds, rows, keys, rank, exact, has_sink=False):
    """Of a rank. rows and keys are Splits over the ring; exact: whether bounds are the mask, else kernels evaluate it."""
    ranks = keys.ranks
    own_rows, own_keys = rows.places(rank), keys.places(rank)
    steps = []
    for step in range(ranks):
        source, target = (rank - step) % ranks, (rank + step) % ranks
        theirs = keys.places(source)
        made = (_pieces.pieces_of(bounds, own_rows, theirs) if exact else
                _pieces.placed_pieces(bounds, rows.ranges[rank], keys.ranges[source]))
        sends = receives = None
        if step:
            receives = _hull(made)
            sends = _pieces.needed(bounds, rows.places(target), own_keys)
        steps.append(Step(source, receives, target, sends, made))
    return _merged(steps, len(own_rows), len(bounds.first), rows.ranges[rank], has_sink)


def of_pieces(made, rows, batches, has_sink=False):
    """Of rows that are held whole against keys that are here: one step."""
    return _merged([Step(0, None, 0, None, made)], rows, batches, ((0, rows),), has_sink)


def _merged(steps, rows, batches, ranges, has_sink):
    """The steps with their pieces as parts, and what else the merge of them has to know."""
    pieces = [piece for step in steps for piece in step.parts]
    states = _States(rows, list(range(batches)) if any(piece.batch is not None for piece in pieces) else [None], has_sink)
    for piece in pieces:
        states.count(piece)
    steps = [step._replace(parts=[part for piece in step.parts for part in states.parts_of(piece)]) for step in steps]
    accumulates = any(not run.is_last and run.source != "new" for step in steps for part in step.parts for run in part.runs)
    empty = states.untouched()
    return Schedule(steps, empty, accumulates, _sinks_of(empty, ranges) if has_sink else [])


def _sinks_of(empty, ranges):
    found, at = [], 0
    for begin, end in ranges:
        for _, first, last in empty:
            a, b = max(first, at), min(last, at + end - begin)
            if a < b:
                found.append(_pieces.Piece((a, b), (0, 1), "placed", row0=begin + a - at, key0=0))
        at += end - begin
    return found


def _hull(made):
    return (min(p.keys[0] for p in made), max(p.keys[1] for p in made)) if made else None


class _States:
    """How many parts each row has had, and will have."""

    def __init__(self, rows, batches, split_new):
        self.batches, self.split_new = batches, split_new
        self.total = {batch: torch.zeros(rows, dtype=torch.int64) for batch in batches}
        self.seen = {batch: torch.zeros(rows, dtype=torch.int64) for batch in batches}

    def _of(self, piece):
        return self.batches if piece.batch is None else [piece.batch]

    def count(self, piece):
        for batch in self._of(piece):
            self.total[batch][slice(*piece.rows)] += 1

    def parts_of(self, piece):
        """The piece with its runs: one for each batch that has its own."""
        pieces = [piece] if piece.batch is not None or self.batches == [None] else [piece._replace(batch=b) for b in self.batches]
        return [part for one in pieces for part in self._part(one)]

    def _part(self, piece):
        begin, end = piece.rows
        seen, total = self.seen[piece.batch][begin:end], self.total[piece.batch][begin:end]
        kind = seen.clamp(max=2) * 2 + (seen + 1 == total)
        edges = [0, *((kind[1:] != kind[:-1]).nonzero()[:, 0] + 1).tolist(), end - begin]
        runs = [Run((begin + a, begin + b), ("new", "out", "sums")[int(kind[a]) // 2], bool(kind[a] % 2)) for a, b in zip(edges, edges[1:])]
        seen += 1
        if not self.split_new or len({run.source == "new" for run in runs}) == 1:
            return [Part(piece, runs)]
        return [Part(piece._replace(rows=run.rows, row0=piece.row0 + run.rows[0] - begin), [run]) for run in runs]

    def untouched(self):
        found = []
        for batch in self.batches:
            none = torch.cat([torch.zeros(1, dtype=torch.bool), self.total[batch] == 0, torch.zeros(1, dtype=torch.bool)]).int()
            change = none.diff()
            found += [(batch, a, b) for a, b in zip((change == 1).nonzero()[:, 0].tolist(), (change == -1).nonzero()[:, 0].tolist())]
        return found
