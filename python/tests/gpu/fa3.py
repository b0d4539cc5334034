#!/usr/bin/env python3
# fagen: flash-attn 3's own test_flash_attn_output on fagen.flash_attn_interface.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fa3.py HOPPER [PYTEST ARGUMENTS]: HOPPER is the folder hopper of a flash-attention checkout; it needs einops.

The cases with q, k and v only, without chunks, pages and fp8; windows and softcap where the package's forms have the head dim, softcap
with a causal mask. Nothing falls back: what kernels cannot compute fails, but for d = 64, where the test also asks for v of 256 and 512
columns: those PyTorch computes. Prints what computed what.
"""
import os
import sys

for feature in ("BACKWARD", "SPLIT", "PAGEDKV", "APPENDKV", "PACKGQA", "FP8"):
    os.environ[f"FLASH_ATTENTION_DISABLE_{feature}"] = "TRUE"

import pytest
import torch

import fagen
import fagen.flash_attn_interface as interface


def missing(*arguments, **keywords):
    raise fagen.Unsupported("only test_flash_attn_output is run")


HEAD_DIMS_OF_FORMS = 64, 128


def applies(has_qv, local, softcap, causal, d, **_):
    if has_qv or (softcap and not causal):
        return False
    return d in HEAD_DIMS_OF_FORMS or not (local or softcap)


class Applicable:
    """Keeps the cases that apply, and says for each who may compute it."""

    def pytest_collection_modifyitems(self, config, items):
        items[:] = [item for item in items if applies(**item.callspec.params)]
        for item in items:
            item.module.DISABLE_LOCAL = True  # no attention_chunk, which the test draws in addition to windows

    def pytest_runtest_setup(self, item):
        torch.set_grad_enabled(False)  # backward is not tested: forms compute, gradient or none
        interface.fallback = "torch" if item.callspec.params["d"] == 64 else "error"


def main(hopper, *arguments):
    interface.flash_attn_combine = interface.get_scheduler_metadata = missing
    sys.modules["flash_attn_interface"] = interface
    sys.path.insert(0, hopper)
    status = pytest.main([os.path.join(hopper, "test_flash_attn.py") + "::test_flash_attn_output", "-q", "--rootdir", hopper,
                          *arguments], plugins=[Applicable()])
    counts = fagen.stats()
    print("computed:", counts["computed"], "\nfell back:", counts["fallbacks"])
    for kernel, launches in sorted(counts["launches"].items()):
        print(f"{launches:7} {' '.join(kernel)}")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
