# fagen: others' score and mask mods on a GPU, next to compiled FlexAttention on the same tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib
import sys

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import fagen  # noqa: E402
import fagen.torch  # noqa: E402, F401
from mods import by_flex, in_double, mods, spec_of, tensors  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
                                reason="no GPU of compute capability 9.0")

SIZES = (2, 700, 1000)
MODS = mods(*SIZES, device="cuda") if torch.cuda.is_available() else {}
SCHEDULES = {
    "wgmma": "tile = 128 x 128; warps = 8; mma = wgmma; copy = tma; roles = specialized; stages = 2; overlap = both; rescale = optimistic;",
    "mma_sync": "tile = 128 x 64; warps = 8; mma = mma_sync; copy = cp_async; stages = 2;",
}


@pytest.fixture(scope="module")
def kernels():
    return {mma: fagen.compile(spec_of(MODS, "sm_90a", "bf16", schedule)) for mma, schedule in SCHEDULES.items()}


def furthest(got, wanted):
    return (got.double() - wanted)[torch.isfinite(wanted)].abs().max().item()


@pytest.mark.parametrize("name", MODS)
def test_as_flex_attention(kernels, name, record_property):
    mod, inputs = MODS[name], tensors(*SIZES, torch.bfloat16, device="cuda")
    exact, sums = in_double(mod, *inputs)
    exact = exact.masked_fill(~torch.isfinite(sums).transpose(1, 2)[..., None], torch.nan)  # rows without keys are ours to define
    torch._dynamo.reset()  # no function that was compiled for another mod
    theirs, their_lse = by_flex(torch.compile(flex_attention), mod, *inputs, create_block_mask, BLOCK_M=64, BLOCK_N=64)  # larger ones may not fit
    flex = furthest(theirs, exact), furthest(their_lse, sums)
    record_property("flex_o", flex[0]), record_property("flex_lse", flex[1])
    for mma, compiled in kernels.items():
        o, lse = compiled(*inputs, form=name, return_lse=True, **mod.params)
        ours = furthest(o, exact), furthest(lse, sums)
        record_property(f"{mma}_o", ours[0]), record_property(f"{mma}_lse", ours[1])
        assert ours[0] <= 2 * flex[0] + 2**-9 and ours[1] <= 2 * flex[1] + 1e-4, (mma, ours, flex)
        assert torch.equal(torch.isneginf(lse), torch.isneginf(sums)) and not o.isnan().any()
        assert furthest(o, theirs.double().masked_fill(exact.isnan(), torch.nan)) <= ours[0] + flex[0]
