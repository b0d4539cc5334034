# fagen: types of the package.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Literal, Optional, Tuple, Union

import torch
from torch import Tensor

def quantize(x: Tensor, scales: Literal["head", "tensor", "block"] = "head", *, kv_heads: Optional[int] = None,
             layout: Literal["bshd", "bhsd"] = "bshd", dtype: torch.dtype = ...,
             amax: Union[None, float, Tensor] = None, mean: Optional[Tensor] = None, programs: bool = False) -> Tuple[Tensor, Tensor]: ...
