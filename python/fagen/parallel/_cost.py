# fagen: how long attention over ranks takes, from bytes and products: which scheme and mesh to take.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model, of even work. What it leaves out is in docs/Parallel.md. Imports no framework."""
from dataclasses import dataclass

from .. import errors


@dataclass(frozen=True)
class Machine:
    """Of one GPU, unless it says otherwise."""
    tflops: float = 620.0  # of attention kernels on long sequences
    tflops_back: float = 300.0  # of PyTorch's flash attention's gradients
    processors: int = 132
    memory: float = 4000.0  # GB/s
    node: int = 8  # GPUs that NVLink joins
    nvlink: float = 360.0  # GB/s each way, as transfers reach it
    network: float = 45.0  # GB/s each way
    nvlink_us: float = 12.0  # of a transfer, however short
    network_us: float = 25.0
    launch_us: float = 6.0


@dataclass(frozen=True)
class Problem:
    """Of the whole sequence. window: keys that a row sees, its own the last; None: all."""
    seq: int
    heads: int
    kv_heads: int
    head_dim: int = 128
    batch: int = 1
    causal: bool = True
    window: int = None
    bytes: int = 2  # of an element
    part_bytes: int = 2  # of an element of a part of O

    def pairs(self):
        """Products of a row and a key, of one head of one batch."""
        seen = self.seq if self.window is None else min(self.window, self.seq)
        if not self.causal:
            return self.seq * (self.seq if self.window is None else min(2 * seen - 1, self.seq))
        return seen * (seen + 1) // 2 + (self.seq - seen) * seen

    def flops(self):
        return 4 * self.head_dim * self.pairs() * self.heads * self.batch


@dataclass(frozen=True)
class Estimate:
    """Of a mesh. Milliseconds: compute alone, travel alone, and all, with what travels under what computes taken once."""
    ring: int
    exchange: int
    compute_ms: float
    travel_ms: float
    exposed_ms: float
    merge_ms: float
    total_ms: float
    one_ms: float
    mib: float  # that a rank holds for the call: q, k, v, O, LSE, buffers, accumulator

    @property
    def ranks(self):
        return self.ring * self.exchange

    @property
    def speedup(self):
        return self.one_ms / self.total_ms

    @property
    def efficiency(self):
        return self.speedup / self.ranks

    @property
    def scheme(self):
        return "one GPU" if self.ranks == 1 else "ring" if self.exchange == 1 else "ulysses" if self.ring == 1 else "mixed"


def estimate(problem, machine, ring, exchange, chunks=2):
    """Of a ring of `ring` ranks, each of which is an exchange over heads of `exchange` neighbours."""
    if problem.heads % exchange:
        raise errors.Error(f"{exchange} ranks of an exchange do not divide the {problem.heads} heads")
    ranks = ring * exchange
    heads, kv_heads = problem.heads // exchange, max(1, problem.kv_heads // exchange)
    rows = problem.seq / ring  # that a rank computes
    compute = compute_ms(problem, machine, ranks, heads, rows)
    row_bytes = problem.batch * problem.head_dim * problem.bytes
    ring_ms, exposed_ring, steps = _ring(problem, machine, ring, exchange, 2 * rows * kv_heads * row_bytes, compute)
    over_heads = 0.0
    if exchange > 1:
        sent = problem.seq / ranks * (2 * problem.heads + 2 * kv_heads * exchange) * (exchange - 1) / exchange * row_bytes
        over_heads = travel(machine, sent, exchange, 1, 4)
    merged = problem.batch * rows * heads * problem.head_dim
    merge = 0.0 if steps == 0 else ((steps - 1) * (problem.part_bytes + 8) + 3 * problem.part_bytes) * merged / machine.memory / 1e6
    exposed = exposed_ring + over_heads / max(1, min(chunks, kv_heads))
    launches = (1 + steps * 3) * machine.launch_us / 1000
    one = compute_ms(problem, machine, 1, problem.heads, problem.seq) + machine.launch_us / 1000
    return Estimate(ring, exchange, compute, ring_ms + over_heads, exposed, merge, compute + exposed + merge + launches, one,
                    _memory(problem, ring, exchange, kv_heads, steps))


def compute_ms(problem, machine, ranks, heads, rows, flops=1.0, tflops=None):
    """Milliseconds: products, so many of the forward's, and tiles of 128 rows that do not fill the last round of processors."""
    tiles = problem.batch * heads * max(1.0, rows / 128)
    rounds = tiles / machine.processors
    filled = rounds / -(-rounds // 1) if rounds < 16 else 1.0
    return flops * problem.flops() / ranks / (tflops or machine.tflops) / 1e9 / filled


def travel(machine, sent, ranks, stride, messages):
    """Milliseconds to send bytes to all of a group evenly: neighbours of one node by NVLink, the rest by the network."""
    near = max(1, min(ranks, machine.node // stride))
    far = (ranks - near) / max(1, ranks - 1)
    slow = sent * far / machine.network / 1e6 + (machine.network_us * messages / 1000 if far else 0)
    return max(slow, sent * (1 - far) / machine.nvlink / 1e6) + machine.nvlink_us * messages / 1000


def _ring(problem, machine, ring, exchange, step_bytes, compute):
    """(milliseconds of travel, those that computing does not cover, steps that have keys)."""
    steps, one = ring_steps(problem, machine, ring, exchange, step_bytes)
    each = compute / (steps + 1)
    return steps * one, steps * max(0.0, one - each), steps


def ring_steps(problem, machine, ring, exchange, step_bytes):
    """(steps that have keys, milliseconds to send what a step does). step_bytes: of all keys of a rank."""
    if ring == 1:
        return 0, 0.0
    steps, share = ring - 1, 0.75 if problem.causal else 1.0  # a zigzag's rank needs half of the keys of the ranks before it
    if problem.window is not None:
        rows = problem.seq / ring
        sides = 1 if problem.causal else 2
        steps = min(steps, sides * (1 + int((problem.window - 1) // rows)))
        share = min(1.0, (problem.window - 1) / (rows * steps) * sides)
    span = max(1, machine.node // exchange)  # steps within a node: the rest, and one rank of each step, cross
    is_near = ring <= span
    return steps, step_bytes * share / (machine.nvlink if is_near else machine.network) / 1e6 + (machine.nvlink_us if is_near else machine.network_us) / 1000


def _memory(problem, ring, exchange, kv_heads, steps):
    element, rows = problem.batch * problem.head_dim * problem.bytes, problem.seq / (ring * exchange)
    held = rows * (2 * problem.heads + 2 * problem.kv_heads) * element + rows * problem.batch * problem.heads * 4
    heads = problem.heads // exchange
    if exchange > 1:
        held += problem.seq / ring * (2 * heads + 2 * kv_heads) * element
    if ring > 1:
        held += min(2, steps) * 2 * problem.seq / ring * kv_heads * element
    if steps > 1:
        held += problem.seq / ring * heads * problem.batch * problem.head_dim * 4
    return held / 2**20


def meshes(problem, ranks):
    """(ring, exchange) whose product is `ranks`, where heads divide."""
    return [(ranks // exchange, exchange) for exchange in range(1, ranks + 1)
            if ranks % exchange == 0 and problem.heads % exchange == 0]


def best(problem, machine, ranks, chunks=2, of=estimate):
    """Estimates, by such a function, of all meshes of so many ranks, the shortest first."""
    found = [of(problem, machine, *mesh, chunks) for mesh in meshes(problem, ranks)]
    return sorted(found, key=lambda one: one.total_ms)
