# fagen: steps that SGLang may ask for: what its batches leave unsaid is bounded, what pads them is left out, what is not ours is refused.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import types

import pytest
import torch

import fagen
import stubs
from drivers import Sglang
from engine import Batch

ROWS, KEYS = [3, 1, 5], [9, 4, 30]


def served(rows, keys, mode, change):
    """O of a step with what `change` makes of its batch and of q."""
    model = types.SimpleNamespace(embedding=torch.zeros(1, dtype=torch.float16), window_of=lambda _: 0,
                                  sizes=types.SimpleNamespace(heads=2, kv_heads=1, head_dim=64, layers=1))
    driver = Sglang(model, 16, 4)
    stubs.plugin("sglang").fallback = "torch"
    pages = torch.randperm(16, generator=torch.Generator().manual_seed(2)).tolist()
    batch = Batch([], rows, keys, [[pages.pop() for _ in range(-(-n // 4))] for n in keys], [], [], [0] * sum(rows))
    driver.begin(batch)
    driver.batch.forward_mode = getattr(driver.info.ForwardMode, mode)
    pool = driver.backend._pool
    draw = torch.Generator().manual_seed(3)
    for cache in (pool.k[0], pool.v[0]):
        cache.copy_(torch.randn(cache.shape, generator=draw))
    q = torch.randn(sum(rows), 2, 64, generator=draw).half()
    q = change(driver.batch, q)
    driver.backend.init_forward_metadata(driver.batch)
    return driver.backend.forward_extend(q.flatten(1), None, None, driver.layers[0], driver.batch)


def same(rows, keys, mode, change):
    wanted, got = served(rows, keys, mode, lambda _, q: q), served(rows, keys, mode, change)
    assert torch.allclose(got[:len(wanted)], wanted, atol=1e-3) and not got[len(wanted):].any()
    return got


def without(**fields):
    def change(batch, q):
        batch.__dict__.update(fields)
        return q
    return change


@pytest.mark.parametrize("rows, mode", [(ROWS, "EXTEND"), (ROWS, "MIXED"), ([1, 1, 1], "DECODE")])
def test_lengths_that_the_host_does_not_know(rows, mode):
    same(rows, KEYS, mode, without(seq_lens_cpu=None))
    if mode != "DECODE":
        same(rows, KEYS, mode, without(seq_lens_cpu=None, extend_seq_lens_cpu=None, extend_num_tokens=sum(rows)))


@pytest.mark.parametrize("rows, mode", [(ROWS, "EXTEND"), ([1, 1, 1], "DECODE")])
def test_rows_that_only_fill_the_batch(rows, mode):
    got = same(rows, KEYS, mode, lambda _, q: torch.cat([q, torch.full((4, 2, 64), torch.nan).half()]))
    assert len(got) == sum(rows) + 4


def test_requests_that_only_fill_the_batch():
    def padded(batch, q):
        batch.batch_size += 2
        for name in ("req_pool_indices", "seq_lens", "seq_lens_cpu"):
            setattr(batch, name, torch.cat([getattr(batch, name), getattr(batch, name).new_zeros(2)]))
        return q
    same(ROWS, KEYS, "EXTEND", padded)


def test_a_step_without_requests():
    def idle(batch, q):
        batch.batch_size = 0
        return q
    assert not served([1], [5], "IDLE", idle).any()


@pytest.mark.parametrize("mode", ["TARGET_VERIFY", "DRAFT_EXTEND_V2", "DLLM_EXTEND", "PREBUILT"])
def test_steps_of_other_kinds(mode):
    with pytest.raises(fagen.Unsupported, match=f"a step is .*{mode}.*; kernels of pages compute EXTEND, MIXED, SPLIT_PREFILL, DECODE, IDLE"):
        served(ROWS, KEYS, mode, lambda _, q: q)


@pytest.mark.parametrize("fields, words", [({"extend_seq_lens": None}, "without extend_seq_lens"),
                                           ({"extend_seq_lens_cpu": None}, "with neither extend_seq_lens_cpu nor extend_num_tokens")])
def test_what_the_host_has_to_know(fields, words):
    with pytest.raises(fagen.Unsupported, match=words):
        served(ROWS, KEYS, "EXTEND", without(**fields))
