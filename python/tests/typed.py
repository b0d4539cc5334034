# fagen: uses of the package as a type checker sees them (test_types.py); nothing runs it.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Dict, Tuple

import torch
from typing_extensions import assert_type

import fagen
import fagen.torch
from fagen import flash_attn, flash_attn_interface

q = k = v = torch.empty(1, 1, 1, 64)

assert_type(fagen.attention(q, k, v, causal=True), torch.Tensor)
assert_type(fagen.attention(q, k, v, return_lse=True), Tuple[torch.Tensor, torch.Tensor])
assert_type(fagen.plan(q, k, v)(q, k, v, q), torch.Tensor)
assert_type(fagen.stats()["launches"], Dict[Tuple[str, str], int])
assert_type(fagen.compile("spec.fa", targets=["sm_89"]), fagen.KernelSet)
assert_type(fagen.ready()(q, k, v), torch.Tensor)
assert_type(fagen.ready()(q, k, v, form="window", window=128), torch.Tensor)
assert_type(fagen.ready().plan(q, k, v), fagen.torch.Plan)
assert_type(fagen.ready().explain(shape=(1, 1, 1, 64, 64, 64), gpu="sm_90"), str)
assert_type(flash_attn.flash_attn_func(q, k, v, 0.0, None, True), torch.Tensor)
assert_type(flash_attn.flash_attn_func(q, k, v, return_attn_probs=True), Tuple[torch.Tensor, torch.Tensor, None])
assert_type(flash_attn_interface.flash_attn_func(q, k, v, return_attn_probs=True), Tuple[torch.Tensor, torch.Tensor])

try:
    fagen.compile("kernel {}")
except fagen.SpecError as error:
    assert_type(error.diagnostics[0].line, int)

fagen.attention(q, k, v, layout="bhds")  # type: ignore[call-overload]
fagen.attention(q, k, v, fallback="maybe")  # type: ignore[call-overload]
fagen.attention(q, k, v, True)  # type: ignore[call-overload]
