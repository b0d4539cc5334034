# fagen: how long the gradients of attention over ranks take, by the model of _cost.py.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Of what docs/Parallel.md says travels: keys as in the forward, gradients of keys in float32, dO and dQ over an exchange."""
import dataclasses

from . import _cost

_FLOPS = 2.5  # of the forward's: five products for two
_WIDE = 4  # bytes of a sum


def estimate(problem, machine, ring, exchange, chunks=2):
    """As of the forward alone, with its gradients after it."""
    forward = _cost.estimate(problem, machine, ring, exchange, chunks)
    ranks, heads, kv_heads = ring * exchange, problem.heads // exchange, max(1, problem.kv_heads // exchange)
    rows = problem.seq / ring
    compute = _cost.compute_ms(problem, machine, ranks, heads, rows, _FLOPS, machine.tflops_back)
    travels, exposed, steps = _ring(problem, machine, ring, exchange, 2 * rows * kv_heads * problem.batch * problem.head_dim, compute)
    over_heads = _exchange(problem, machine, ranks, exchange, kv_heads)
    exposed += over_heads / max(1, min(chunks, kv_heads))
    sums = (steps + 1) * (problem.bytes + 2 * _WIDE) * problem.batch * rows * problem.head_dim * (heads + 2 * kv_heads) / machine.memory / 1e6
    launches = (2 + steps * 8) * machine.launch_us / 1000
    one = forward.one_ms + _cost.compute_ms(problem, machine, 1, problem.heads, problem.seq, _FLOPS, machine.tflops_back) + machine.launch_us / 1000
    return dataclasses.replace(forward, compute_ms=forward.compute_ms + compute, travel_ms=forward.travel_ms + travels + over_heads,
                               exposed_ms=forward.exposed_ms + exposed, merge_ms=forward.merge_ms + sums,
                               total_ms=forward.total_ms + compute + exposed + sums + launches, one_ms=one,
                               mib=forward.mib + _memory(problem, ring, exchange, heads, kv_heads, steps))


def _ring(problem, machine, ring, exchange, elements, compute):
    """As of the forward. The first keys and the last gradients travel under half of a step, keys and gradients together under the others."""
    steps, keys = _cost.ring_steps(problem, machine, ring, exchange, elements * problem.bytes)
    if steps == 0:
        return 0.0, 0.0, 0
    _, back = _cost.ring_steps(problem, machine, ring, exchange, elements * _WIDE)
    each = compute / (steps + 1)
    exposed = max(0.0, keys - each / 2) + max(0.0, back - each / 2) + (steps - 1) * max(0.0, keys + back - each)
    return steps * (keys + back), exposed, steps


def _exchange(problem, machine, ranks, exchange, kv_heads):
    if exchange == 1:
        return 0.0
    wide = _WIDE if exchange > problem.kv_heads else problem.bytes
    sent = problem.seq / ranks * (2 * problem.heads * problem.bytes + 2 * kv_heads * exchange * wide) * problem.batch * problem.head_dim
    return _cost.travel(machine, sent * (exchange - 1) / exchange, exchange, 1, 4)


def _memory(problem, ring, exchange, heads, kv_heads, steps):
    """MiB in addition to the forward's tensors; its buffers of keys are counted there. What PyTorch's flash attention takes is among it."""
    rows = problem.seq / ring * problem.batch * problem.head_dim
    held = rows * heads * (problem.bytes + _WIDE + 3 * problem.bytes + _WIDE) + rows * kv_heads * 2 * _WIDE
    if kv_heads < heads:  # flash attention gets a K/V head for each head
        held += rows * heads * 2 * problem.bytes
    if steps:
        held += rows * kv_heads * 2 * _WIDE * (min(2, steps) + 1)
    if exchange > 1:
        held += problem.seq / (ring * exchange) * problem.batch * problem.head_dim * (2 * problem.heads * problem.bytes + 2 * problem.kv_heads * _WIDE)
    return held / 2**20
