# fagen: what a rank computes of its rows against the keys of a rank: calls of kernels, with places of their own.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A rank's rows and keys are held in ascending order, so that bounds by place in the sequence are bounds by number in what is held."""
from typing import NamedTuple, Optional, Tuple

import torch

_MOST_CALLS = 3  # into which rows are cut where each is a plain mask; more take one call with bounds for each row
_MOST_PLAIN_CALLS = 1024  # into which rows are cut where bounds for each row have no kernel


class Piece(NamedTuple):
    """One call. rows and keys: (begin, end) in what the two ranks hold. batch: the one it is of; None: of all."""
    rows: Tuple[int, int]
    keys: Tuple[int, int]
    kind: str  # "none", "causal" (bottom-right), "local", "rows" or "placed"
    left: int = 0  # of "local"
    right: int = 0
    first: Optional[torch.Tensor] = None  # of "rows": int32 [rows]
    last: Optional[torch.Tensor] = None
    row0: int = 0  # of "placed": the places in the sequence of the first row and of the first key
    key0: int = 0
    batch: Optional[int] = None

    def to(self, device):
        """With its bounds on the device."""
        return self if self.first is None else self._replace(first=self.first.to(device), last=self.last.to(device))

    def pairs(self):
        """Products of a row and a key that the call's mask leaves."""
        rows, keys = self.rows[1] - self.rows[0], self.keys[1] - self.keys[0]
        if self.kind == "causal":
            return sum_of_causal(rows, keys)
        if self.kind == "rows":
            return int((self.last.long() - self.first.long() + 1).clamp(min=0).sum())
        if self.kind == "local":
            place = torch.arange(rows) + (keys - rows)
            first, last = (place - self.left).clamp(min=0), (place + self.right).clamp(max=keys - 1)
            return int((last - first + 1).clamp(min=0).sum())
        return rows * keys


def sum_of_causal(rows, keys):
    """Products under a bottom-right causal mask."""
    seen = min(rows, keys)
    return seen * (2 * keys - seen + 1) // 2


def visible(bounds, rows, keys):
    """Bounds of the rows a rank holds, by numbers of the keys that another holds: int64 [batch or 1, rows] both. rows and keys are
    Split.places() of them."""
    own = bounds.of(rows)
    first = torch.searchsorted(keys, own.first.contiguous())
    return first, torch.searchsorted(keys, own.last.contiguous(), right=True) - 1


def needed(bounds, rows, keys):
    """(begin, end) in the keys held that some row sees; None where none does."""
    if not len(rows) or not len(keys):
        return None
    first, last = visible(bounds, rows, keys)
    seen = last >= first
    return (int(first[seen].min()), int(last[seen].max()) + 1) if bool(seen.any()) else None


def pieces_of(bounds, rows, keys):
    """The calls for rows and keys that two ranks hold, by bounds that are exact."""
    return _each_batch(_of_one, bounds, rows, keys)


def plain_pieces(bounds, rows, keys):
    """As pieces_of(), of kinds "none", "causal" and "local" alone, which gradients have kernels for; "rows" where that takes too many."""
    return _each_batch(_plain_of_one, bounds, rows, keys)


def _each_batch(of_one, bounds, rows, keys):
    if not len(rows) or not len(keys):
        return []
    first, last = visible(bounds, rows, keys)
    if len(first) > 1 and bool((first == first[:1]).all()) and bool((last == last[:1]).all()):
        first, last = first[:1], last[:1]
    if len(first) == 1:
        return of_one(first[0], last[0], None)
    return [piece for batch in range(len(first)) for piece in of_one(first[batch], last[batch], batch)]


def placed_pieces(bounds, rows, keys):
    """The calls where the kernel evaluates the mask itself: for each range of rows with each range of keys what their bounds leave."""
    found = []
    row_at = 0
    for row_begin, row_end in rows:
        places = torch.arange(row_begin, row_end)
        key_at = 0
        for key_begin, key_end in keys:
            first, last = visible(bounds, places, torch.arange(key_begin, key_end))
            seen = last >= first
            if bool(seen.any()):
                which = seen.any(0).nonzero()
                a, b = int(which[0]), int(which[-1]) + 1
                c, d = int(first[seen].min()), int(last[seen].max()) + 1
                found.append(Piece((row_at + a, row_at + b), (key_at + c, key_at + d), "placed", row0=row_begin + a, key0=key_begin + c))
            key_at += key_end - key_begin
        row_at += row_end - row_begin
    return found


def _of_one(first, last, batch):
    """Of one batch. Rows at both ends that see nothing are left out."""
    seen = (last >= first).nonzero()
    if not len(seen):
        return []
    begin, end = int(seen[0]), int(seen[-1]) + 1
    plain = _plain(first, last, begin, end, batch)
    return [_with_bounds(first, last, begin, end, batch)] if plain is None else plain


def _plain_of_one(first, last, batch):
    """Of one batch: runs of rows each of which is a window, and rows that see nothing left out."""
    seen, steps = last >= first, torch.stack([first.diff(), last.diff()])
    cut = ((steps < 0) | (steps > 1)).any(0) | (seen[1:] != seen[:-1])
    cut[1:] |= (steps[0, :-1] == 1) & (steps[0, 1:] == 0) | (steps[1, :-1] == 0) & (steps[1, 1:] == 1)  # a window's first key rests, then rises
    edges = [0, *(cut.nonzero()[:, 0] + 1).tolist(), len(first)]
    runs = [(a, b) for a, b in zip(edges, edges[1:]) if bool(seen[a])]
    if len(runs) > _MOST_PLAIN_CALLS:
        return [_with_bounds(first, last, runs[0][0], runs[-1][1], batch)]
    return [piece for a, b in runs for piece in _fit(first[a:b], last[a:b], a, batch)]


def _plain(first, last, begin, end, batch):
    """Calls of plain masks, few of them; None where it takes more."""
    first, last = first[begin:end], last[begin:end]
    if bool((last < first).any()):
        return None
    whole = _fit(first, last, begin, batch)
    if whole is not None:
        return whole
    step = torch.stack([first.diff(), last.diff()], 1)
    change = ((step[1:] != step[:-1]).any(1)).nonzero()[:, 0] + 2  # the row after which steps differ joins the run that it ends
    edges = [0]
    for at in change.tolist():
        if at - edges[-1] > 1 or len(edges) == 1:
            edges.append(at)
        if len(edges) > _MOST_CALLS:
            return None
    edges.append(len(first))
    found = []
    for a, b in zip(edges, edges[1:]):
        calls = _fit(first[a:b], last[a:b], begin + a, batch) if a < b else []
        if calls is None:
            return None
        found += calls
    return found if len(found) <= _MOST_CALLS else None


def _fit(first, last, begin, batch):
    """One mask of two bounds that rise with the row and end with the keys; None where it is none."""
    row = torch.arange(len(first))
    low, high = int(first[0]), int(last[-1]) + 1
    left, right = _slope(first - row, first > low), _slope(last - row, last < high - 1)
    if left is False or right is False:
        return None
    fits_first = first if left is None else (row + left).clamp(min=low)
    fits_last = last if right is None else (row + right).clamp(max=high - 1)
    if bool((fits_first != first).any()) or bool((fits_last != last).any()):
        return None
    rows, keys, n = (begin, begin + len(first)), (low, high), len(first)
    if left is None and right is None:
        return [Piece(rows, keys, "none", batch=batch)]
    beyond = 0 if right is None else n - 1 + right - (high - 1)  # how many rows before the last see the last key, too
    if left is None and beyond == 0:
        return [Piece(rows, keys, "causal", batch=batch)]
    if left is None:
        cut = begin + n - beyond
        return [Piece((begin, cut), keys, "causal", batch=batch), Piece((cut, rows[1]), keys, "none", batch=batch)]
    wide = high - low + n
    return [Piece(rows, keys, "local", batch=batch, left=high - n - left, right=wide if right is None else beyond)]


def _slope(offset, free):
    """What the bound is in addition to the row's number where it is free; None: nowhere; False: more than one."""
    found = offset[free]
    if not len(found):
        return None
    return int(found[0]) if bool((found == found[0]).all()) else False


def _with_bounds(first, last, begin, end, batch):
    seen = last[begin:end] >= first[begin:end]
    low, high = int(first[begin:end][seen].min()), int(last[begin:end][seen].max()) + 1
    first, last = ((t[begin:end] - low).clamp(-1, high - low).int() for t in (first, last))
    return Piece((begin, end), (low, high), "rows", first=first.contiguous(), last=last.contiguous(), batch=batch)
