# fagen: what the blocks of documentation pages run on without a GPU: the emulator, with all ready kernels of compute capability 9.0.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.environ["FAGEN_SOURCE"], "python", "tests"))
import torch  # noqa: E402
import torch_emulated  # noqa: E402
from fagen import _lib  # noqa: E402

warnings.simplefilter("error")  # a page shows what warns
warnings.simplefilter("ignore", ResourceWarning)  # of kernel sets that live until the end
torch.manual_seed(1)
if not torch.cuda.is_available():
    torch_emulated.open_kernels(_lib.path("kernels"), 90)
