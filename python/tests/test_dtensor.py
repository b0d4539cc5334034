# fagen: DTensors: what shardings of inputs the operators keep, by the emulator on two ranks.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch
import torch.distributed as dist

import fagen
from ranks import Ranks
from torch_emulated import assert_near, reference, tensors, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")


@pytest.fixture(scope="module")
def two():
    ranks = Ranks(2)
    yield ranks
    ranks.close()


def attend(rank, ranks, *, dim, causal, lse):
    """O and LSE of DTensors that are sharded in a dimension (None: replicated), as wholes, and their placements."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    assert use_emulator()
    mesh = dist.init_device_mesh("cpu", (ranks,))
    placement = Replicate() if dim is None else Shard(dim)
    with torch.no_grad():
        inputs = [distribute_tensor(t, mesh, [placement]) for t in tensors(batch=2)]
        result = fagen.attention(*inputs, causal=causal, return_lse=lse)
        return [(t.full_tensor(), str(t.placements[0])) for t in (result if lse else (result,))]


@pytest.mark.parametrize("dim, causal, kept", [(0, True, ("S(0)", "S(0)")), (2, True, ("S(2)", "S(1)")), (1, False, ("S(1)", "S(2)")), (None, True, ("R", "R")),
                                               (1, True, None)])
def test_shardings(two, dim, causal, kept):
    wanted = reference(*tensors(batch=2), causal=causal)
    for lse in (False, True):
        for result in two.call(attend, dim=dim, causal=causal, lse=lse):
            assert_near(result[0][0], wanted[0])
            if lse:
                torch.testing.assert_close(result[1][0].double(), wanted[1], atol=2e-3, rtol=1e-3)
            if kept:
                assert [place for _, place in result] == list(kept[:len(result)])
