# fagen: GPUs by name, and what is known of one that is not here.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names are those of the tools' --gpu, in their order (include/fagen/Target/GpuNames.h); a test compares them."""
import numbers
import re

from . import errors

# (name, compute capability, SMs); the first of a compute capability stands for it.
GPUS = (("A100", 80, 108), ("A10", 86, 72), ("RTX 3090", 86, 82), ("L4", 89, 58), ("RTX 4090", 89, 128), ("H200", 90, 132),
        ("RTX 5090", 120, 170), ("A30", 80, 56), ("A40", 86, 84), ("L40", 89, 142), ("L40S", 89, 142), ("H100", 90, 132), ("GH200", 90, 132),
        ("B200", 100, 148))
_MOST_SMS = 1 << 31
_SMS = 132  # of a compute capability without a name: an H100's


def _plain(name):
    return name.replace(" ", "").lower()


_BY_NAME = {_plain(name): (capability, sms) for name, capability, sms in GPUS}
_SMS_OF = {capability: sms for _, capability, sms in reversed(GPUS)}


def parse(gpu, sms):
    """(compute capability as 90, SMs) of gpu, "sm_90" or "H100". sms, where it is not None, counts instead of the table's."""
    target = re.fullmatch(r"sm_(\d+)[af]?", gpu) if isinstance(gpu, str) else None
    if target:
        capability = int(target[1])
        known = _SMS_OF.get(capability, _SMS)
    elif isinstance(gpu, str) and _plain(gpu) in _BY_NAME:
        capability, known = _BY_NAME[_plain(gpu)]
    else:
        raise errors.Error(f"gpu is {gpu!r}; it is sm_ and the compute capability, as 'sm_90', or {', '.join(name for name, *_ in GPUS)}")
    if sms is not None and not (isinstance(sms, numbers.Integral) and 1 <= sms < _MOST_SMS):
        raise errors.Error(f"sms is {sms!r}; it is how many SMs the GPU has, as 132")
    return capability, known if sms is None else int(sms)
