# fagen: workers of a pool that have a core each.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import concurrent.futures
import itertools
import os


def pool(jobs):
    """Of threads; where there are several, what each starts stays on one core of those that this process may use. fagen-run
    takes as many threads as it may use cores: sixteen at once would have 256 threads on sixteen cores."""
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))
    hold = (lambda: os.sched_setaffinity(0, {next(cores)})) if jobs > 1 else None
    return concurrent.futures.ThreadPoolExecutor(jobs, initializer=hold)
