# fagen: a small model that is trained with fagen's attention, on the emulator: next to SDPA's, twice, checkpointed, in graphs.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import pytest
import torch

from fagen import _lib, _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY, emulating, use_emulator

MEASURE = os.path.join(os.path.dirname(__file__), "..", "..", "measure")
if not use_emulator():
    pytest.skip("this build has no emulator", allow_module_level=True)
sys.path.insert(0, MEASURE)
import train  # noqa: E402

SIZES = train.Sizes(width=128, layers=1, heads=2, kv_heads=1, hidden=64, words=32)
TOKENS = train.text(steps=3, batch=1, rows=24, words=SIZES.words)


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    with emulating(_lib.path("kernels", "l4_bf16")):
        yield
    _torch_programs.set_emulator(None)


def trained(attend=train.by_fagen, **options):
    return train.train(SIZES, attend, TOKENS, device="cpu", **options)


def way(weights, others):
    return torch.cat([(a - b).flatten() for a, b in zip(weights, others)]).norm()


def test_training():
    """Losses and weights as with SDPA's, the same bits twice and with activation checkpointing, and in graphs."""
    once, by_math = trained(), trained(train.by_sdpa(train.BACKENDS["math"]))
    torch.manual_seed(0)
    moved = way(by_math.weights, train.Model(SIZES, None).parameters())
    assert train.distance(once.losses, by_math.losses) < 1e-3
    assert way(once.weights, by_math.weights) < 0.1 * moved  # 0.02; without dQ 0.45
    assert train.same_bits(once, trained())
    assert train.same_bits(once, trained(call=train.checkpointed))
    in_graphs = trained(prepare=lambda model: [block.compile(backend="aot_eager", fullgraph=True) for block in model.blocks])
    assert way(in_graphs.weights, by_math.weights) < 0.1 * moved


def test_wrong_runs_are_found():
    run = lambda *losses: train.Run(list(losses), 1.0, [torch.tensor(losses)])  # noqa: E731
    runs = {"fagen": run(5.0, 3.0), "again": run(5.0, 3.0), "checkpointed": run(5.0), "flash": run(5.0, 3.1), "cudnn": run(5.0, 2.9), "efficient": run(5.0, 3.0), "math": run(5.0, 3.0)}
    assert not train.judged(runs, 1)[0]
    for name, other, said in (("fagen", run(5.0, 3.5), "away from the mean"), ("again", run(5.0, 3.0001), "two runs"),
                              ("checkpointed", run(5.1), "checkpointing"), ("math", run(5.0, 4.9), "has not fallen")):
        assert any(said in line for line in train.judged({**runs, name: other}, 1)[0])
