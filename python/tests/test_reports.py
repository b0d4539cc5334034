# fagen: cases from public reports of defects in attention kernels, by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import pytest

import reports
from fagen import _lib
from fagen import flash_attn as fa2
from torch_emulated import emulating, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")

# Every fourth, which takes some seconds; FAGEN_ALL_REPORTS=1 takes all (scripts/long reports).
CASES = [case for case in reports.CASES if not case.gpu][::1 if os.environ.get("FAGEN_ALL_REPORTS") else 4]


@pytest.fixture(autouse=True)
def of_an_h200(monkeypatch):
    monkeypatch.setattr(fa2, "fallback", "torch")
    with emulating(_lib.path("kernels"), 90):
        yield


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case):
    case.run()


def test_the_others_need_a_gpu():
    assert all(case.gpu for case in reports.CASES if case.gpu or case.big)
    assert sum(not case.gpu for case in reports.CASES) > len(reports.CASES) // 2
