# fagen: what the tests of the Python package share.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest

SPEC = """target sm_90a;
kernel mine {
  problem  { pass = forward; dtype = f16; head_dim = 64; mask = [none, causal]; }
  schedule only { tile = 64 x 64; warps = 4; mma = wgmma; copy = tma; stages = 2; }
  select { otherwise : only; }
}
"""


@pytest.fixture(scope="session")
def kernels():
    import fagen
    return fagen.compile(SPEC)
