# fagen: the small engine over our plugins' classes, by kernels: logits against dense attention in float64, and tokens. On a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import fagen
from drivers import Sglang, Vllm
from engine import Engine, Model, Request, Sizes, judge

if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)
SIZES = {"d128": Sizes(3, 16, 4, 128, 1024, 2000), "d64, windows": Sizes(3, 8, 8, 64, 512, 2000, 100)}


@pytest.mark.parametrize("driver, block_size", [(Vllm, 16), (Sglang, 8)])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("invariant", [False, True])
def test_an_engine_over_our_classes(driver, block_size, sizes, dtype, invariant):
    """Nothing is computed by PyTorch. The cache has room for a part of the requests, which are put back in turn."""
    model, draw = Model(SIZES[sizes], dtype, "cuda"), torch.Generator().manual_seed(1)
    def tokens(n):
        return torch.randint(0, model.sizes.vocabulary, (n,), generator=draw).tolist()
    shared = tokens(300)
    prompts = [shared + tokens(200), tokens(3), shared + tokens(41), tokens(900), shared[:200] + tokens(60), tokens(1), shared + tokens(7), tokens(130)]
    requests = [Request(prompt, most_new) for prompt, most_new in zip(prompts, (30, 40, 24, 12, 24, 50, 20, 33))]
    blocks = 1100 // block_size
    engine = Engine(model, driver(model, blocks, block_size, invariant), blocks, block_size, 256)
    fagen.stats(reset=True)
    engine.run(requests, [0, 0, 3, 4, 6, 8, 12, 14])
    assert not fagen.stats()["fallbacks"]
    assert all(engine.seen[what] for what in ("preempted", "prefix blocks", "chunks", "mixed steps"))
    judged = [judge(model, request) for request in requests]
    assert max(worst for worst, *_ in judged) <= 1 and not any(wrong for *_, wrong in judged)
    assert all(len(request.logits) == request.most_new for request in requests)
    assert sum(decided for _, decided, _ in judged) * 2 > sum(len(request.logits) for request in requests)  # else tokens say nothing
