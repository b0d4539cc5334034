# fagen: tiles of packed rows as one launch finds them, next to groups of rows as PyTorch's operators find them; by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import random

import pytest
import torch

from fagen import _groups, _paged, _torch_programs, serving
from emulated_programs import emulate
from paged_batches import MOST, assert_right, drawn, expected
from torch_emulated import LIBRARY

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    yield
    _torch_programs.set_emulator(None)


def of_tiles(starts, lengths, columns, page_size, tokens):
    """(rows of q, sequence, keys that the last of them sees) of each tile with a sequence, and the rows that are in none."""
    table = torch.zeros(len(lengths), columns, dtype=torch.int32)
    tiles = _paged.tiles(starts, lengths, table, page_size, tokens)
    rows, words = tiles.rows.tolist(), tiles.words.tolist()
    assert rows[0] == 0 and rows == sorted(rows) and rows[-1] == tokens and len(rows) == len(words) + 1
    assert all(b - a <= _groups.MOST_ROWS for a, b in zip(rows, rows[1:]))
    return [(range(a, b), b - a, *word[1:]) for a, b, word in zip(rows, rows[1:], words) if b > a]


@pytest.mark.parametrize("seed", range(30))
def test_tiles_are_the_groups_of_pytorchs_operators(seed):
    draw = random.Random(seed)
    count = draw.choice([1, 2, 9, 65, 140, 300])
    rows = [draw.choice([0, 1, 1, draw.randint(0, 16), draw.randint(0, 90)]) for _ in range(count)]
    before, after, page = draw.choice([0, 5, 40]), draw.choice([0, 1, 33]), draw.choice([1, 8, 16])
    starts = torch.tensor([before, *rows]).cumsum(0)
    tokens = max(1, int(starts[-1]) + after)
    if draw.random() < 0.3:  # offsets that lead outside, or back
        starts[draw.randrange(count + 1)] = draw.choice([-3, 0, tokens + 9, MOST, tokens // 2])
    lengths = torch.tensor([draw.choice([-4, 0, 1, draw.randint(0, 40 * page)]) for _ in rows])
    if draw.random() < 0.5:
        starts, lengths = starts.int(), lengths.int()
    groups = _groups.of_rows(starts, lengths, torch.arange(count)[:, None], tokens, _groups.MOST_ROWS, True)
    wanted = {int(first): (int(n), int(sequence), int(used)) for first, n, sequence, used in wanted_of(groups, tokens)}
    got = {span[0]: (n, sequence, max(0, place + n)) for span, n, keys, place, sequence in of_tiles(starts, lengths, 40, page, tokens)
           if not groups.unused[span[0]]}
    assert got == wanted


def wanted_of(groups, tokens):
    """(first row, rows, sequence, keys) of each group that has rows."""
    place = groups.place.clone()
    place[groups.unused] = -1
    for group in range(len(groups.used)):
        of = (place // groups.rows == group).nonzero().flatten()
        of = of[place[of] >= 0]
        if len(of):
            assert of.tolist() == list(range(int(of[0]), int(of[-1]) + 1))
            yield of[0], len(of), groups.table[group, 0], groups.used[group]


def test_lengths_end_with_what_a_table_has():
    (_, _, keys, place, sequence), = of_tiles(torch.tensor([0, 3]), torch.tensor([MOST]), 5, 8, 3)
    assert (keys, place, sequence) == (40, 37, 0)


def test_more_keys_than_are_counted_together_have_no_tiles(monkeypatch):
    monkeypatch.setattr(_paged, "_MOST_PLACES", 79)
    assert _paged.tiles(torch.tensor([0, 1, 2]), torch.tensor([1, 1]), torch.zeros(2, 5, dtype=torch.int32), 8, 2) is None
    batch = drawn([1, 20], [40, 30], heads=8, kv_heads=2)
    plan = serving.plan(batch.starts, batch.lengths, batch.table, page_size=8, tokens=21, most_rows=20)
    assert_right(plan.run(batch.q, batch.k_cache, batch.v_cache, return_lse=True), expected(batch))  # by groups
    with pytest.raises(_paged.front.errors.Unsupported, match="are more than programs count"):
        serving.plan(batch.starts, batch.lengths, batch.table, page_size=8, tokens=21, most_rows=20, invariant=True).run(batch.q, batch.k_cache, batch.v_cache)


@pytest.mark.parametrize("heads, kv_heads", [(2, 2), (6, 2), (8, 1), (40, 1)])
@pytest.mark.parametrize("splits", [1, 3])
def test_rows_in_tiles(monkeypatch, heads, kv_heads, splits):
    """Groups of heads that a tile of 64 rows has whole, in part, or not at all; keys that CTAs share, and not."""
    monkeypatch.setattr(_paged, "_splits", lambda *_: splits)
    monkeypatch.setattr(_groups, "of_rows", None)
    batch = drawn([1, 20, 0, 3], [70, 20, 9, 200], heads=heads, kv_heads=kv_heads)
    for causal, left in ((True, -1), (False, -1), (True, 30), (False, 30)):
        plan = serving.plan(batch.starts, batch.lengths, batch.table, page_size=8, tokens=24, most_rows=20, causal=causal)
        got = plan.run(batch.q, batch.k_cache, batch.v_cache, return_lse=True, window_left=left)
        assert_right(got, expected(batch, causal=causal, window_left=left))
