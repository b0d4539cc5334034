# fagen: percentiles and bootstrap intervals of timing samples, as runtime/lab/statistics.cpp has them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import random
import statistics


def percentile(samples, fraction):
    samples = sorted(samples)
    position = fraction * (len(samples) - 1)
    below = int(position)
    above = min(below + 1, len(samples) - 1)
    return samples[below] + (samples[above] - samples[below]) * (position - below)


def ratio_of_medians(ours, theirs, draws=1000):
    """median(ours) / median(theirs) and its 95 % bootstrap interval."""
    generator = random.Random(1)
    drawn = [statistics.median(generator.choices(ours, k=len(ours))) /
             statistics.median(generator.choices(theirs, k=len(theirs))) for _ in range(draws)]
    return statistics.median(ours) / statistics.median(theirs), percentile(drawn, 0.025), percentile(drawn, 0.975)
