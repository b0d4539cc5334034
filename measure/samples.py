# fagen: percentiles and bootstrap intervals of timing samples, as lab/support/statistics.cpp has them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
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


def ratio_by_rounds(ours, theirs, draws=1000):
    """The same for samples of (round, time): a draw takes rounds first, then samples in each, since those of one round
    resemble each other; both sides draw the same rounds, which ran side by side."""
    generator = random.Random(1)
    by_round = [{number: [time for which, time in samples if which == number] for number, _ in samples}
                for samples in (ours, theirs)]
    common = sorted(by_round[0].keys() & by_round[1].keys())
    drawn = []
    for _ in range(draws):
        rounds = generator.choices(common, k=len(common))
        medians = [statistics.median(time for number in rounds
                                     for time in generator.choices(side[number], k=len(side[number])))
                   for side in by_round]
        drawn.append(medians[0] / medians[1])
    ours, theirs = (statistics.median(time for _, time in samples) for samples in (ours, theirs))
    return ours / theirs, percentile(drawn, 0.025), percentile(drawn, 0.975)


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))
