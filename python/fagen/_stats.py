# fagen: what was computed by whom, counted.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts of fallbacks, by function and reason, and the one place that decides between fallback, warning and error."""
import collections
import sys
import threading
import warnings

from . import errors

FALLBACKS = ("error", "warn", "torch")

_lock = threading.Lock()
_of_threads = []  # calls that kernels computed, by function: a dict for each thread, so that counting takes no lock
_before_reset = collections.Counter()
_fallbacks = collections.Counter()
_padded = collections.Counter()
_warned = set()


class _OfThread(threading.local):
    def __init__(self):
        self.computed = {}
        with _lock:
            _of_threads.append(self.computed)


_of_thread = _OfThread()


def computed(function):
    counts = _of_thread.computed
    counts[function] = counts.get(function, 0) + 1


def padded(function, how):
    with _lock:
        _padded[function, how] += 1


def refuse(function, reason, fallback):
    """Raises Unsupported where fallback is "error"; else counts, and for "warn" says so once a reason.

    reason: words, or an Unsupported of which the words and the kind are taken. The caller then lets PyTorch compute.
    """
    if fallback not in FALLBACKS:
        raise errors.Error(f'{function}: fallback is {fallback!r}; it is "error", "warn" or "torch"')
    kind = type(reason) if isinstance(reason, errors.Unsupported) else errors.Unsupported
    reason = getattr(reason, "reason", reason)
    if fallback == "error":
        raise kind(reason, function, 'fallback="torch" computes it') from None
    with _lock:
        _fallbacks[function, reason] += 1
        first = (function, reason) not in _warned
        _warned.add((function, reason))
    if fallback == "warn" and first:
        warnings.warn(f"fagen: {function}: {reason}; PyTorch computes it", RuntimeWarning, stacklevel=4)


def stats(reset=False):
    """What ran so far, since the last reset.

    {"computed": {function: calls}, "padded": {(function, how): calls} of these, by kernels of a wider head dim,
    "fallbacks": {(function, reason): calls}, and "launches": {(kernel, target): launches}, which also counts those of compiled
    graphs, and is never reset}.
    """
    front = sys.modules.get("fagen.torch")
    with _lock:
        ever = sum((collections.Counter(counts) for counts in _of_threads), collections.Counter())
        ever += collections.Counter(front.computed_at_once() if front else {})
        counts = {"computed": dict(ever - _before_reset), "padded": dict(_padded), "fallbacks": dict(_fallbacks),
                  "launches": front.launches() if front else {}}
        if reset:
            _before_reset.update(ever - _before_reset)
            _fallbacks.clear()
            _padded.clear()
    return counts
