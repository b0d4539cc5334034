# fagen: batches of sequences whose keys are in pages, for tests: drawn ones, and what attention of them is in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
from typing import NamedTuple

import torch

MOST = 2 ** 31 - 1


class Batch(NamedTuple):
    q: torch.Tensor  # [tokens, heads, head_dim]
    k_cache: torch.Tensor  # [pages, page_size, kv_heads, head_dim]; rows that no sequence uses are NaN
    v_cache: torch.Tensor
    starts: torch.Tensor  # [sequences + 1]
    lengths: torch.Tensor  # [sequences]
    table: torch.Tensor  # [sequences, columns]; entries that are not used lead nowhere
    keys: list  # [length, kv_heads, head_dim] of each sequence
    values: list


def drawn(rows, lengths, page=8, *, heads=4, kv_heads=2, dim=64, dtype=torch.float16, heads_first=False, device="cpu", seed=1, spare=2, columns=None):
    """rows: of q of each sequence; lengths: its keys, those of its rows included."""
    draw = torch.Generator().manual_seed(seed)
    def normal(*shape):
        return torch.randn(*shape, generator=draw).to(dtype)
    used = [-(-n // page) for n in lengths]
    columns, pages = columns or max(1, *used) + 1, sum(used) + spare
    hostile = torch.tensor([-1, pages, MOST, -MOST - 1])
    table = hostile[torch.randint(0, 4, (len(lengths), columns), generator=draw)].int()
    order = torch.randperm(pages, generator=draw).tolist()
    pools = [torch.full((pages, kv_heads, page, dim) if heads_first else (pages, page, kv_heads, dim), math.nan, dtype=dtype) for _ in range(2)]
    by_rows = [pool.transpose(1, 2) if heads_first else pool for pool in pools]
    both = [[normal(n, kv_heads, dim) for n in lengths] for _ in range(2)]
    for b, n in enumerate(lengths):
        for j in range(used[b]):
            table[b, j] = order.pop()
            for pool, one in zip(by_rows, both):
                pool[table[b, j], :min(page, n - j * page)] = one[b][j * page:(j + 1) * page]
    starts = torch.tensor([0, *torch.tensor(rows).cumsum(0).tolist()], dtype=torch.int32)
    tensors = (normal(sum(rows), heads, dim), *by_rows, starts, torch.tensor(lengths, dtype=torch.int32), table)
    return Batch(*(t.to(device) for t in tensors), *([t.to(device) for t in one] for one in both))


def expected(batch, *, causal=True, window_left=-1, scale=None, softcap=0.0):
    """O [tokens, heads, head_dim] and LSE [tokens, heads], float64, in nats; rows without keys are 0 and -inf."""
    outputs, sums = [], []
    for b, (k, v) in enumerate(zip(batch.keys, batch.values)):
        one = batch.q[batch.starts[b]:batch.starts[b + 1]]
        o, lse = of_one(one, k, v, causal=causal, window_left=window_left, scale=scale, softcap=softcap)
        outputs.append(o)
        sums.append(lse)
    return torch.cat(outputs), torch.cat(sums)


def of_one(q, k, v, *, causal=True, window_left=-1, scale=None, softcap=0.0):
    """expected() of one sequence: q [rows, heads, head_dim], k and v [keys, kv_heads, head_dim]."""
    q, k, v = (t.double().transpose(0, 1) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[0] // k.shape[0], 0) for t in (k, v))
    place = torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1]
    key = torch.arange(k.shape[1], device=q.device)[None]
    seen = (key <= place if causal else key < k.shape[1]) & (key >= place - (MOST if window_left < 0 else window_left))
    scores = q @ k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(scores, -1) if k.shape[1] else torch.full(q.shape[:2], -math.inf, dtype=torch.float64, device=q.device)
    o = torch.exp(scores - lse.masked_fill(lse == -math.inf, 0)[..., None]) @ v
    return o.transpose(0, 1), lse.transpose(0, 1)


def assert_right(got, wanted):
    """O, or O and LSE, near float64's."""
    (o, lse), (o_wanted, lse_wanted) = got if isinstance(got, tuple) else (got, None), wanted
    bound = 2e-3 if o.dtype == torch.float16 else 1.6e-2
    torch.testing.assert_close(o.double(), o_wanted, atol=bound, rtol=bound)
    if lse is not None:
        torch.testing.assert_close(lse.double(), lse_wanted, atol=1e-4, rtol=1e-5)
