# fagen: windows as PyTorch's flash attention is asked for them: the blocks see just what the window says.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import random

import torch

from fagen import _by_torch


def window(rows, keys, left, right):
    place, key = torch.arange(rows)[:, None] + keys - rows, torch.arange(keys)[None]
    return ((key >= place - left) | (left < 0)) & ((key <= place + right) | (right < 0))


def by_flash_attention(rows, keys, left, right):
    """What PyTorch's flash attention makes of a window: sides of all keys are open, and one that is open next to one that is not is of as many
    keys as there are."""
    left, right = (-1 if side >= keys else side for side in (left, right))
    if left >= 0 or right >= 0:
        left, right = (keys if side < 0 else side for side in (left, right))
    return window(rows, keys, left, right)


def test_blocks_see_what_the_window_says():
    draw, cut = random.Random(4), 0
    for _ in range(2000):
        rows, keys = draw.randint(1, 40), draw.randint(1, 20)
        sides = [draw.choice((-1, 0, 1, draw.randint(0, 70))) for _ in range(2)]
        seen = torch.zeros((rows, keys), dtype=torch.bool)
        blocks = list(_by_torch.blocks_of_window(rows, keys, *sides))
        for block in blocks:
            own = seen[slice(*block.rows), :block.keys]
            assert not own.any()
            own |= by_flash_attention(*own.shape, block.left, block.right)
        assert torch.equal(seen, window(rows, keys, *sides)), (rows, keys, sides)
        cut += len(blocks) > 1
    assert cut > 100
