# fagen: what was computed by whom, counted.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of fallbacks, by function and reason, and the one place that decides between fallback, warning and error."""
import collections
import sys
import threading
import warnings

from . import errors

_lock = threading.Lock()
_computed = collections.Counter()
_fallbacks = collections.Counter()
_warned = set()


def computed(function):
    with _lock:
        _computed[function] += 1


def refuse(function, reason, fallback, by="torch"):
    """Raises Unsupported where fallback is "error"; else counts, and for "warn" says so once a reason.

    fallback: "error", "warn", or "quiet". The caller then computes by other means.
    """
    message = f"{function}: {reason}"
    if fallback == "error":
        raise errors.Unsupported(f'{message}; fallback="{by}" computes it' if by else message)
    if fallback not in ("warn", "quiet", "torch"):
        raise errors.Error(f'{function}: fallback is {fallback!r}; it is "error", "warn" or "torch"')
    with _lock:
        _fallbacks[function, reason] += 1
        first = (function, reason) not in _warned
        _warned.add((function, reason))
    if fallback == "warn" and first:
        warnings.warn(f"fagen: {message}; {by or 'another library'} computes it", RuntimeWarning, stacklevel=4)


def stats(reset=False):
    """What ran so far, since the last reset.

    {"computed": {function: calls}, "fallbacks": {(function, reason): calls}, and "launches": {(kernel, target): launches},
    which also counts those of compiled graphs, and is never reset}.
    """
    front = sys.modules.get("fagen.torch")
    with _lock:
        counts = {"computed": dict(_computed), "fallbacks": dict(_fallbacks), "launches": front.launches() if front else {}}
        if reset:
            _computed.clear()
            _fallbacks.clear()
    return counts
