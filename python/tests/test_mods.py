# fagen: others' score and mask mods on CPU tensors, compared with FlexAttention's own functions on the same tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fagen
import fagen.torch
from mods import by_flex, in_double, mods, spec_of, tensors
from torch_emulated import emulating, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")

SIZES = (2, 90, 130)
# A third of them, which takes 15 s; FAGEN_ALL_MODS=1 takes all.
MODS = dict(list(mods(*SIZES).items())[::1 if os.environ.get("FAGEN_ALL_MODS") else 3])


@pytest.fixture(scope="module")
def kernels():
    compiled = fagen.compile(spec_of(MODS, "sm_89", "f16", "tile = 64 x 64; warps = 4; mma = mma_sync; copy = cp_async; stages = 2;"))
    with emulating(compiled._directories[0]):
        yield compiled


@pytest.mark.parametrize("name", MODS)
def test_as_flex_attention(kernels, name):
    mod, inputs = MODS[name], tensors(*SIZES, torch.float16)
    o, lse = kernels(*inputs, form=name, return_lse=True, **mod.params)
    exact, sums = in_double(mod, *inputs)
    seen = torch.isfinite(sums)
    torch.testing.assert_close(o.double(), exact, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(lse.double(), sums, atol=1e-4, rtol=1e-4)
    theirs, _ = by_flex(flex_attention, mod, *(t.float() for t in inputs), create_block_mask)
    rows = seen.transpose(1, 2)[..., None].expand_as(exact)
    torch.testing.assert_close(theirs.double()[rows], exact[rows], atol=1e-4, rtol=1e-4)  # the reference is FlexAttention's
