# fagen: types of decoding with latent keys.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import Optional, SupportsFloat, Tuple

from torch import Tensor

def mla_decode(q: Tensor, k_cache: Tensor, block_table: Optional[Tensor], cache_seqlens: Tensor, head_dim_v: int = 512,
               softmax_scale: Optional[SupportsFloat] = None, causal: bool = False) -> Tuple[Tensor, Tensor]: ...
