# fagen: dependent launches of forms: a number on the device, and a tensor, that the launch before writes last.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

import fagen
import fagen.torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
                                reason="no GPU of compute capability 9.0")

SPEC = """
target sm_90a;
form number { param x: f32; score = s + x * 0.01 * f32(k - p); mask = k <= p; }
form window { param x: i32 in [1, 1000]; mask = k <= p && p - k < x; }
form heads { param x: f32[heads]; score = s + x[h] * 0.01 * f32(k - p); mask = k <= p; }
form keys { param x: f32[heads, seq_kv]; score = s + x[h, k] * 0.5; mask = k <= p; }
kernel k {
  problem { dtype = f16; head_dim = 64; form = [number, window, heads, keys]; }
  schedule drawn { tile = 128 x 64; warps = 8; mma = wgmma; overlap = both; rescale = optimistic; grid = longest_first; pdl = PDL; }
}
"""
BATCH, HEADS, LENGTH, CHAIN, ROUNDS = 1, 4, 256, 24, 40
ARGUMENTS = {  # of LSE [BATCH, HEADS, LENGTH], what the launch before writes when its last tile is done; all of them views
    "number": lambda lse: lse[0, HEADS - 1, LENGTH - 1],
    "window": lambda lse: lse.view(torch.int32)[0, HEADS - 1, LENGTH - 1],  # held to the range: 1000, where 0 would be 1
    "heads": lambda lse: lse[0, :, LENGTH - 1],
    "keys": lambda lse: lse[0],
}


def chain_of(kernels, form, inputs):
    """Each launch reads what the one before it has written; O and LSE of all."""
    results, last = [], torch.full((BATCH, HEADS, LENGTH), 3.0, device="cuda")
    for _ in range(CHAIN):
        o, last = kernels(*inputs, form=form, return_lse=True, x=ARGUMENTS[form](last))
        results.append((o, last))
    return results


@pytest.fixture(scope="module", params=(True, False), ids=("pdl", "without"))
def kernels(request):
    """In the schedule with pdl = 1, and in the one without, of which the others' results are those to expect."""
    return request.param, fagen.compile(SPEC.replace("PDL", str(int(request.param))))


@pytest.mark.parametrize("form", ARGUMENTS)
def test_numbers_of_the_launch_before(kernels, form):
    """In a graph, whose launches have the same memory in each replay, what was there before is what another replay left."""
    asks, compiled = kernels
    inputs = [torch.randn((BATCH, LENGTH, HEADS, 64), device="cuda", dtype=torch.float16) for _ in range(3)]
    chain_of(compiled, form, inputs)  # compiled, and prepared
    torch.cuda.synchronize()
    try:
        fagen.torch.enable_pdl(asks)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = chain_of(compiled, form, inputs)
    finally:
        fagen.torch.enable_pdl(False)
    for seed in range(ROUNDS):
        torch.manual_seed(seed)
        for tensor in inputs:
            tensor.normal_()
        for _, lse in results:
            lse.fill_(-1000.0 if seed % 2 else 1000.0) if form != "window" else lse.zero_()
        graph.replay()
        got = [(o.clone(), lse.clone()) for o, lse in results]
        previous = torch.full((BATCH, HEADS, LENGTH), 3.0, device="cuda")
        for step, (o, lse) in enumerate(got):  # each alone, by the number that the one before gave
            alone, sums = compiled(*inputs, form=form, return_lse=True, x=ARGUMENTS[form](previous))
            torch.cuda.synchronize()
            assert torch.equal(o, alone) and torch.equal(lse, sums), (form, seed, step)
            previous = lse
        assert not torch.equal(got[0][1], got[1][1]) or form == "window"  # the number matters
