# fagen: cases from public reports of defects in attention kernels, on a GPU.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest python/tests/gpu/test_reports_gpu.py; 30 GB of memory are free, or the largest are left out."""
import faulthandler
import os
import sys

import pytest
import torch

os.environ["FAGEN_REPORTS_DEVICE"] = "cuda"
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reports  # noqa: E402
from fagen import flash_attn as fa2  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
LIMIT = 90  # seconds; kernels that hang end the process


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    monkeypatch.setattr(fa2, "fallback", "torch")
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    yield
    torch.cuda.synchronize()
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize("case", reports.CASES, ids=[case.name for case in reports.CASES])
def test_case(case):
    if case.big:
        torch.cuda.empty_cache()
        if torch.cuda.mem_get_info()[0] < case.big << 30:
            pytest.skip(f"it takes {case.big} GiB of the GPU's memory")
    case.run()
