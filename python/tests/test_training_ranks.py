# fagen: a small model trained by DDP and by FSDP on two processes over gloo, on the emulator: the bits of one process.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import pytest
import torch

from fagen import _lib, _torch_programs
from emulated_programs import emulate
from ranks import Ranks
from torch_emulated import LIBRARY, emulating, use_emulator

if not use_emulator():
    pytest.skip("this build has no emulator", allow_module_level=True)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "measure"))
import train  # noqa: E402
import train_ranks  # noqa: E402

SIZES = train.Sizes(width=128, layers=2, heads=2, kv_heads=1, hidden=64, words=32)


@pytest.fixture(scope="module")
def two():
    ranks = Ranks(2)
    yield ranks
    ranks.close()


def weights_of(rank, ranks, *, way, steps=2, sdpa=False):
    """After training, and how often a program of the package computed a gradient."""
    counted = []
    run = emulate(LIBRARY, 90)
    _torch_programs.set_emulator(lambda kernels, call: (counted.append(1), run(kernels, call)))
    attend = train.by_sdpa(train.BACKENDS["math"]) if sdpa else train.by_fagen
    with emulating(_lib.path("kernels", "l4_bf16")):
        tokens = train.text(steps=steps, batch=2, rows=20, words=SIZES.words)
        return train_ranks.trained(way, SIZES, attend, tokens, torch.device("cpu"), ranks, rank)[0], len(counted)


@pytest.fixture(scope="module")
def alone():
    yield weights_of(0, 2, way="alone")[0]
    _torch_programs.set_emulator(None)


@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_bits_of_one_process(two, alone, way):
    """A sum of two ranks' gradients has no order; each rank's come from the package's program, a launch for each layer and step."""
    for weights, launches in two.call(weights_of, way=way):
        assert all(map(torch.equal, weights, alone)) and launches == 4
        assert not train_ranks.wrong_with(weights, alone, weights, 2)


def test_wrong_weights_are_found(two, alone):
    torch.manual_seed(0)
    start = list(train.Model(SIZES, None).parameters())
    by_sdpa = two.call(weights_of, way="ddp", sdpa=True)[0][0]
    assert "not the bits" in train_ranks.wrong_with(by_sdpa, alone, start, 2)
    assert "of the way" in train_ranks.wrong_with(by_sdpa, alone, start, 4)
    assert train_ranks.way_of(by_sdpa, alone) < 0.1 * train_ranks.way_of(alone, start)
