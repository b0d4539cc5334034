# fagen: the small engine over our plugins: its logits against dense attention in float64, and its tokens; by PyTorch, and shortly by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import pytest
import torch

import fagen
from drivers import Sglang, Vllm
from engine import Engine, Model, Request, Sizes, judge

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "tests"))


def requests(sizes, seed=0):
    """Prompts of which some begin alike, and how many tokens are wanted."""
    draw = torch.Generator().manual_seed(seed)
    def tokens(n):
        return torch.randint(0, sizes.vocabulary, (n,), generator=draw).tolist()
    shared = tokens(40)
    prompts = [shared + tokens(9), tokens(3), shared + tokens(30), tokens(70), shared[:24] + tokens(1), tokens(1)]
    return [Request(prompt, most_new) for prompt, most_new in zip(prompts, (6, 10, 5, 3, 6, 12))]


def served(driver, sizes=Sizes(), dtype=torch.float16, blocks=15, block_size=16, budget=48, arrivals=(0, 0, 4, 5, 9, 12), **options):
    model = Model(sizes, dtype, "cpu")
    all_of, engine = requests(sizes), Engine(model, driver(model, blocks, block_size, **options), blocks, block_size, budget)
    engine.run(all_of, arrivals)
    return model, all_of, engine.seen


def assert_right(model, all_of):
    decided = 0
    for request in all_of:
        worst, decide, wrong = judge(model, request)
        assert len(request.tokens) == request.prompt_size + request.most_new and len(request.logits) == request.most_new
        assert worst <= 1 and not wrong
        decided += decide
    assert decided * 2 > sum(len(request.logits) for request in all_of)  # else tokens say nothing


@pytest.fixture
def by_torch(monkeypatch):
    from stubs import plugin
    for engine in ("vllm", "sglang"):
        monkeypatch.setattr(plugin(engine), "fallback", "torch")


@pytest.mark.parametrize("driver, dtype, block_size", [(Vllm, torch.bfloat16, 16), (Sglang, torch.float16, 4)])
def test_an_engine_over_our_classes(by_torch, driver, dtype, block_size):
    model, all_of, seen = served(driver, Sizes(head_dim=32, window=20), dtype, blocks=9 * 16 // block_size, block_size=block_size)
    assert_right(model, all_of)
    assert all(seen[what] for what in ("preempted", "prefix blocks", "chunks", "mixed steps"))


@pytest.mark.parametrize("driver", [Vllm, Sglang])
def test_bits_are_the_same_in_any_batch(emulated, driver):
    """invariant=True: a prompt alone, and after another, in chunks, over blocks of another size."""
    def logits(prompts, budget, block_size, blocks=12):
        model = Model(Sizes(layers=1), torch.float16, "cpu")
        all_of = [Request(prompt, 2) for prompt in prompts]
        Engine(model, driver(model, blocks, block_size, invariant=True), blocks, block_size, budget).run(all_of)
        assert_right(model, all_of)
        return all_of[-1].logits
    prompt = list(range(7, 37))
    one, other = logits([prompt], 64, 8), logits([list(range(60, 80)), prompt], 18, 5, 24)
    assert one.keys() == other.keys()
    # products of other sizes may round otherwise on a CPU: what is compared is attention, whose inputs are the same here
    assert all(torch.allclose(one[p], other[p], atol=2e-3) for p in one)


@pytest.fixture
def emulated():
    from fagen import _torch_programs
    from emulated_programs import emulate
    from torch_emulated import LIBRARY
    if not os.path.exists(LIBRARY):
        pytest.skip("this build has no emulator")
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    fagen.stats(reset=True)
    yield
    assert not fagen.stats()["fallbacks"]
    _torch_programs.set_emulator(None)
