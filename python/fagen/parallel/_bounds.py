# fagen: the first and the last key that each row sees, from a mask's program.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds are found from structure: comparisons of what depends on the row alone with what depends on the key alone and does not
fall. All else bounds nothing, and says so: the kernel then evaluates the mask itself."""
from typing import NamedTuple, Optional

import torch

from .. import _forms_by_torch


class Bounds(NamedTuple):
    """first and last, int64 [batch or 1, rows]: no row sees a key outside. exact: every row sees all keys between."""
    first: torch.Tensor
    last: torch.Tensor
    exact: bool

    def pairs(self, keys):
        """How many keys each row sees at most, float64 [batch or 1, rows]."""
        return (self.last.clamp(max=keys - 1) - self.first.clamp(min=0) + 1).clamp(min=0).double()

    def of(self, rows):
        """Those of some rows, by their numbers."""
        return Bounds(self.first[:, rows], self.last[:, rows], self.exact)


def of_window(rows, keys, left, right):
    """Of rows whose last stands at the last key: `left` keys before the place of each and `right` after it; None: all."""
    place = torch.arange(rows)[None] + (keys - rows)
    none = torch.zeros_like(place)
    return Bounds(none if left is None else place - left, none + keys - 1 if right is None else place + right, True).ascending(keys)


def of_documents(ids, rows, causal):
    """Of documents: ids, int [batch, keys], ascend; a row sees the keys of the document at its place, to its place where causal."""
    ids = ids.long().cpu().contiguous()
    keys = ids.shape[1]
    at = torch.arange(rows) + (keys - rows)
    own = ids[:, at.clamp(min=0)].contiguous() if keys else ids.new_zeros(ids.shape[0], rows)
    first, last = torch.searchsorted(ids, own), torch.searchsorted(ids, own, right=True) - 1
    last = torch.minimum(last, at) if causal else last.masked_fill(at < 0, -1)
    return Bounds(first, last, True).ascending(keys)


def of_sequences(of_rows, of_keys, left, right):
    """Of packed sequences, by the offsets of their rows and of their keys, int64 [sequences + 1]: the rows of each are its last, and
    see `left` keys before their place in it and `right` after; None: all of it."""
    rows, keys = int(of_rows[-1]), int(of_keys[-1])
    row = torch.arange(rows)
    which = torch.searchsorted(of_rows[1:].contiguous(), row, right=True)
    first, end = of_keys[which], of_keys[which + 1]
    place = end - (of_rows[which + 1] - row)
    last = end - 1 if right is None else torch.minimum(end - 1, place + right)
    first = first if left is None else torch.maximum(first, place - left)
    return Bounds(first[None], last[None], True).ascending(keys)


def of_form(form, args, sizes):
    """Of a form (_forms_by_torch.Form) with these args; sizes has batch, heads, kv_heads, seq_q and seq_kv."""
    if not form.mask:
        return of_window(sizes["seq_q"], sizes["seq_kv"], None, None)
    args = {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in args.items()}
    found = _Reader(form, args, sizes).run(form.mask)
    if not isinstance(found, _Interval):
        return of_window(sizes["seq_q"], sizes["seq_kv"], None, None)._replace(exact=False)
    return Bounds(found.first, found.last, found.exact).ascending(sizes["seq_kv"])


def _ascending(bounds, keys):
    """Within the keys. Where bounds fall from one row to the next they are widened, and no longer exact."""
    first, last = bounds.first.clamp(0, keys), bounds.last.clamp(-1, keys - 1)
    empty = last < first
    first = first.masked_fill(empty, keys).flip(-1).cummin(-1).values.flip(-1)
    last = last.masked_fill(empty, -1).cummax(-1).values
    exact = bounds.exact and bool(((first >= bounds.first) & (last <= bounds.last) | empty).all())
    if exact and bool((empty & (last >= first)).any()):
        exact = False
    return Bounds(first, last, exact)


Bounds.ascending = _ascending


class _Interval(NamedTuple):
    first: torch.Tensor
    last: torch.Tensor
    exact: bool


class _Sum(NamedTuple):
    """row + key: int64 [batch or 1, rows] and [batch or 1, keys], or numbers. Either may be missing."""
    row: Optional[torch.Tensor]
    key: Optional[torch.Tensor]


class _Unknown:
    pass


_UNKNOWN = _Unknown()
_SWAPPED = {">": "<", ">=": "<="}


class _Reader:
    """Runs a mask's program on sums and intervals."""

    def __init__(self, form, args, sizes):
        self.form, self.args, self.sizes = form, args, sizes
        row, key = torch.arange(sizes["seq_q"])[None], torch.arange(sizes["seq_kv"])[None]
        self.places = {"q": _Sum(row, None), "p": _Sum(row + sizes["seq_kv"] - sizes["seq_q"], None), "k": _Sum(None, key),
                       "b": _Sum(torch.arange(sizes["batch"])[:, None], None)}  # of one column: it may join keys as well
        self.lets = {}

    def run(self, program):
        stack = []
        for word in program.split():
            count = int(word[word.index("[") + 1:-1]) if word.endswith("]") else _forms_by_torch._OPERATORS.get(word, (0,))[0]
            operands = stack[len(stack) - count:]
            del stack[len(stack) - count:]
            stack.append(self.apply(word, operands) if count else self.value(word))
        return stack[0]

    def value(self, word):
        if word[0] == "=":
            if word[1:] not in self.lets:
                self.lets[word[1:]] = self.run(dict(self.form.lets)[word[1:]])
            return self.lets[word[1:]]
        if word[0] == "@":
            name = word[1:]
            return self.places.get(name) or (_Sum(torch.tensor([[self.sizes[name]]]), None) if name in self.sizes else _UNKNOWN)
        number = self.args[word[1:]] if word[0] == "$" else float(word)
        if isinstance(number, torch.Tensor):
            number = number.item()
        return _Sum(torch.tensor([[int(number)]]), None) if number == int(number) else _UNKNOWN

    def apply(self, word, operands):
        if word in ("&&", "||"):
            return _both(*operands) if word == "&&" else _either(*operands)
        if any(not isinstance(one, _Sum) for one in operands):
            return _UNKNOWN
        if word in ("<", "<=", ">", ">=", "=="):
            return self.compare(word, *operands)
        if word in ("+", "-"):
            return _added(*operands, 1 if word == "+" else -1)
        if all(one.key is None for one in operands):
            return self.computed(word, [one.row for one in operands], rows=True)
        if all(one.key is None if one.row is not None and one.row.shape[-1] == 1 else one.row is None for one in operands):
            return self.computed(word, [one.row if one.key is None else one.key for one in operands], rows=False)
        return _UNKNOWN

    def computed(self, word, operands, rows):
        """Of what depends on rows alone, or on keys alone."""
        if word.endswith("]"):
            found = self.read(word[:word.index("[")], operands)
        elif word in ("neg", "*", "min", "max", "floor_div", "floor_mod", "abs"):
            found = _forms_by_torch._OPERATORS[word][1](*operands)
        else:
            found = None
        if found is None or found.is_floating_point() or found.dim() != 2:
            return _UNKNOWN
        return _Sum(found.long(), None) if rows else _Sum(None, found.long())

    def read(self, name, indices):
        tensor = self.args[name]
        if tensor.is_floating_point() or self.form.elements[name] == "bit":
            return None
        tensor = tensor.reshape((1,) * (len(indices) - tensor.dim()) + tensor.shape)
        if 0 in tensor.shape:
            return None
        return tensor[tuple(index.clamp(0, size - 1) for index, size in zip(indices, tensor.shape))].long()

    def compare(self, word, left, right):
        if word in _SWAPPED:
            return self.compare(_SWAPPED[word], right, left)
        difference = _added(left, right, -1)  # row + key < 0, <= 0 or == 0
        if not isinstance(difference, _Sum) or difference.key is None:
            return _UNKNOWN
        row = torch.zeros((1, 1), dtype=torch.int64) if difference.row is None else difference.row
        keys = self.sizes["seq_kv"]
        batch = max(len(row), len(difference.key))
        key, row = (t.expand(batch, n).contiguous() for t, n in ((difference.key, keys), (row, self.sizes["seq_q"])))
        falls = bool((key[:, 1:] < key[:, :-1]).any())
        if falls:
            key = key.flip(-1)
            if bool((key[:, 1:] < key[:, :-1]).any()):
                return _UNKNOWN
        low = torch.searchsorted(key, -row) if word == "==" else torch.zeros_like(row)
        high = torch.searchsorted(key, -row, right=word != "<") - 1
        return _Interval(keys - 1 - high, keys - 1 - low, True) if falls else _Interval(low, high, True)


def _added(left, right, sign):
    def sum_of(a, b):
        return b if a is None and sign == 1 else a if b is None else sign * b if a is None else a + sign * b
    return _Sum(sum_of(left.row, right.row), sum_of(left.key, right.key))


def _both(left, right):
    if not isinstance(left, _Interval) or not isinstance(right, _Interval):
        known = left if isinstance(left, _Interval) else right
        return known._replace(exact=False) if isinstance(known, _Interval) else _UNKNOWN
    return _Interval(torch.maximum(left.first, right.first), torch.minimum(left.last, right.last), left.exact and right.exact)


def _either(left, right):
    """The hull of both; exact where each row's intervals touch."""
    if not isinstance(left, _Interval) or not isinstance(right, _Interval):
        return _UNKNOWN
    left, right = (_Interval(*torch.broadcast_tensors(*one[:2]), one[2]) for one in (left, right))
    empty_left, empty_right = left.last < left.first, right.last < right.first
    touch = empty_left | empty_right | ((left.first <= right.last + 1) & (right.first <= left.last + 1))
    first = torch.where(empty_left, right.first, torch.where(empty_right, left.first, torch.minimum(left.first, right.first)))
    last = torch.where(empty_left, right.last, torch.where(empty_right, left.last, torch.maximum(left.last, right.last)))
    return _Interval(first, last, left.exact and right.exact and bool(touch.all()))
