# fagen: flash-attn 2's forward tests on fagen.flash_attn: their parameters and their criterion.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pytest python/tests/gpu/test_fa2_gpu.py, with the package on PYTHONPATH; with -s the last test prints what does not apply, and why.

The parameters are those of tests/test_flash_attn.py of flash-attn 2.8 for flash_attn_func, its packed forms, flash_attn_varlen_func
and flash_attn_with_kvcache. The error against float32 is at most twice PyTorch's in the tensors' type, as there. Nothing may
fall back: a case that kernels cannot compute does not apply.
"""
import collections
import itertools

import pytest
import torch

import fagen
import fagen.flash_attn as ours

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")

KERNELS = (64, 96, 128, 192, 256)  # head dims
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)  # its ragged kernels have more head dims
MOST_WITH_LENGTHS = 128  # the head dims of kernels that have offsets or lengths
FEATURES = {"dtype": ("fp16", "bf16"), "mha_type": ("mha", "mqa", "gqa"), "deterministic": (False, True), "alibi": (False, True),
            "local": (False, True), "causal": (False, True)}
OUTPUT = {"kvpacked": (True, False), **FEATURES, "d": (32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256),
          "lengths": ((113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024), (1023, 1024),
                      (1024, 1023), (2048, 2048)),
          "dropout": (0.0, 0.17), "softcap": (0.0, 50.0)}
QKVPACKED = {**{name: FEATURES[name] for name in ("dtype", "deterministic", "alibi", "local", "causal")},
             "d": (32, 59, 64, 80, 96, 128, 160, 192, 224, 256), "length": (97, 128, 200, 384, 768, 1024, 1025, 2048),
             "dropout": (0.0, 0.17)}
VARLEN = {**FEATURES, "d": (32, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256),
          "lengths": ((1, 147), *OUTPUT["lengths"]), "dropout": (0.0, 0.17), "softcap": (0.0, 50.0)}
KVCACHE = {"dtype": ("fp16",), "num_splits": (1, 0), "mha_type": ("mha", "mqa", "gqa"), "new_kv": (False, True),
           "alibi": (False, True), "local": (False, True), "causal": (False, True), "new_lengths_equal": (True, False),
           "rotary_interleaved": (False, True), "rotary_fraction": (0.0, 0.5, 1.0), "page_size": (None, 256),
           "leftpad": (False, True), "batch_idx": (False, True), "d": (32, 59, 64, 80, 96, 128, 160, 192, 224, 256),
           "lengths": ((1, 128), (1, 339), (3, 1024), (64, 800), (64, 256), (3, 799), (64, 2048), (16, 20000), (1, 131072),
                       (16, 131072), (128, 128))}


def why_not(case):
    """Why a case does not apply; None where it does. The first reason of several."""
    reasons = (
        (case.get("dropout"), "dropout: PyTorch computes it, and draws other random numbers than flash-attn"),
        (case.get("softcap"), "softcap: PyTorch computes it"),
        (case.get("local"), "local windows: PyTorch computes them"),
        (case.get("alibi"), "alibi: PyTorch computes it"),
        (case.get("rotary_fraction"), "rotary embeddings: refused"),
        (case.get("page_size"), "pages: they are copied together"),
        (case.get("leftpad"), "left padding: the keys are copied together"),
        (case.get("batch_idx"), "batch indices: the keys are copied together"),
        (case["d"] not in KERNELS, f"head_dim {case['d']}: PyTorch computes it"),
        (case.get("deterministic"), "deterministic: only backward differs; forward is, so the case is there already"),
        (case.get("rotary_interleaved"), "rotary_interleaved without rotary embeddings: the case is there already"),
        (case.get("new_kv") is False and case.get("new_lengths_equal") is False, "no new keys: the case is there already"),
    )
    return next((reason for applies_not, reason in reasons if applies_not), None)


def cases(parameters):
    return [dict(zip(parameters, values)) for values in itertools.product(*parameters.values())]


def applicable(parameters):
    found = [case for case in cases(parameters) if why_not(case) is None]
    varied = [name for name in parameters if len({case[name] for case in found}) > 1]
    return [pytest.param(case, id="-".join(f"{name}={case[name]}".replace(" ", "") for name in varied)) for case in found]


@pytest.fixture(autouse=True)
def strictly(monkeypatch):
    monkeypatch.setattr(ours, "fallback", "error")


def draw(*shape, case):
    dtype = torch.float16 if case["dtype"] == "fp16" else torch.bfloat16
    return torch.randn(shape, device="cuda", dtype=dtype)


def heads_of(case):
    """Heads of q and of k."""
    return 6, {"mha": 6, "mqa": 1, "gqa": 2}[case.get("mha_type", "mha")]


def by_steps(q, k, v, causal, exactly, lengths=None):
    """Attention in float32, or step by step in the tensors' type; `lengths`: how many keys each batch has."""
    dtype = q.dtype
    if exactly:
        q, k, v = q.float(), k.float(), v.float()
    k, v = (t.repeat_interleave(q.shape[2] // k.shape[2], 2) for t in (k, v))
    scores = torch.einsum("bthd,bshd->bhts", q * q.shape[-1] ** -0.5, k)
    rows, keys = scores.shape[-2:]
    last = torch.full((q.shape[0],), keys, device=q.device) if lengths is None else lengths
    key = torch.arange(keys, device=q.device)
    seen = (key < last[:, None])[:, None, None, :].expand(-1, -1, rows, -1)
    if causal:
        row = torch.arange(rows, device=q.device)
        seen = seen & (key <= row[:, None] + (last - rows)[:, None, None])[:, None]
    weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1).nan_to_num(0.0).to(v.dtype)
    return torch.einsum("bhts,bshd->bthd", weights, v).to(dtype)


def assert_as_exact_as_torch(o, q, k, v, causal, lengths=None):
    wanted = by_steps(q, k, v, causal, True, lengths)
    theirs = by_steps(q, k, v, causal, False, lengths)
    assert (o - wanted).abs().max() <= 2 * (theirs - wanted).abs().max() + 1e-5


@needs_gpu
@pytest.mark.parametrize("case", applicable(OUTPUT))
def test_flash_attn_output(case):
    torch.random.manual_seed(0)
    (rows, keys), (heads, kv_heads), d = case["lengths"], heads_of(case), case["d"]
    q, kv = draw(4, rows, heads, d, case=case), draw(4, keys, 2, kv_heads, d, case=case)
    k, v = kv[:, :, 0], kv[:, :, 1]
    with torch.no_grad():
        if case["kvpacked"]:
            o = ours.flash_attn_kvpacked_func(q, kv, causal=case["causal"])
        else:
            o, lse, _ = ours.flash_attn_func(q, k.contiguous(), v.contiguous(), causal=case["causal"], return_attn_probs=True)
            assert lse.shape == (4, heads, rows)
    assert_as_exact_as_torch(o, q, k, v, case["causal"])


@needs_gpu
@pytest.mark.parametrize("case", applicable(QKVPACKED))
def test_flash_attn_qkvpacked(case):
    torch.random.manual_seed(0)
    qkv = draw(4, case["length"], 3, 9, case["d"], case=case)
    with torch.no_grad():
        o = ours.flash_attn_qkvpacked_func(qkv, causal=case["causal"])
    assert_as_exact_as_torch(o, *qkv.unbind(2), case["causal"])


@needs_gpu
@pytest.mark.parametrize("case", applicable(VARLEN))
def test_flash_attn_varlen_output(case, monkeypatch):
    """In one launch to head_dim 128; wider ones go one after the other, each by kernels, and only that is counted as a fallback."""
    monkeypatch.setattr(ours, "fallback", "torch")
    torch.random.manual_seed(0)
    (rows, keys), (heads, kv_heads), d, fagen_stats = case["lengths"], heads_of(case), case["d"], fagen.stats
    q, k, v = (draw(4, n, h, d, case=case) for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads)))
    used_q, used_k = (torch.randint(max(1, n - 20), n + 1, (4,)).tolist() for n in (rows, keys))
    packed = [torch.cat([t[i, :n] for i, n in enumerate(used)]) for t, used in ((q, used_q), (k, used_k), (v, used_k))]
    starts = [torch.tensor([0, *itertools.accumulate(used)], dtype=torch.int32, device="cuda") for used in (used_q, used_k)]
    fagen_stats(reset=True)
    with torch.no_grad():
        o = ours.flash_attn_varlen_func(*packed, *starts, max(used_q), max(used_k), causal=case["causal"])
    assert not fagen_stats()["fallbacks"] or d > MOST_WITH_LENGTHS and not HOPPER
    for i, (n, m) in enumerate(zip(used_q, used_k)):
        begin = int(starts[0][i])
        assert_as_exact_as_torch(o[begin:begin + n][None], q[i:i + 1, :n], k[i:i + 1, :m], v[i:i + 1, :m], case["causal"])


@needs_gpu
@pytest.mark.parametrize("case", applicable(KVCACHE))
def test_flash_attn_kvcache(case):
    """A length for each batch; one for all where head dims are wider than those of kernels that have lengths."""
    torch.random.manual_seed(0)
    (rows, keys), (heads, kv_heads), d = case["lengths"], heads_of(case), case["d"]
    batch, added = 2, (rows if case["new_lengths_equal"] else max(1, rows // 2)) if case["new_kv"] else 0
    q = draw(batch, rows, heads, d, case=case)
    cache = [draw(batch, keys, kv_heads, d, case=case) for _ in range(2)]
    new = [draw(batch, added, kv_heads, d, case=case) for _ in range(2)] if added else [None, None]
    begins = (torch.randint(0, keys - added + 1, (batch,)) if added else torch.tensor([max(1, keys - 5), max(1, keys // 2)])).tolist()
    begins = begins if d <= MOST_WITH_LENGTHS else begins[:1] * batch
    wanted = [c.clone() for c in cache]
    for whole, part in zip(wanted, new):
        for i, begin in enumerate(begins if added else []):
            whole[i, begin:begin + added] = part[i]
    lengths = torch.tensor(begins, dtype=torch.int32, device="cuda") if d <= MOST_WITH_LENGTHS else begins[0]
    with torch.no_grad():
        o = ours.flash_attn_with_kvcache(q, *cache, *new, cache_seqlens=lengths, causal=case["causal"], num_splits=case["num_splits"])
    assert all(torch.equal(c, w) for c, w in zip(cache, wanted))
    for i, begin in enumerate(begins):
        assert_as_exact_as_torch(o[i:i + 1], q[i:i + 1], *(w[i:i + 1, :begin + added] for w in wanted), case["causal"])


def test_what_applies():
    """Needs no GPU. How many cases there are of each test, how many apply, and why the others do not."""
    for name, parameters, wanted in (("output", OUTPUT, 1200), ("qkvpacked", QKVPACKED, 160), ("varlen", VARLEN, 660),
                                     ("kvcache", KVCACHE, 1980)):
        reasons = collections.Counter(why_not(case) for case in cases(parameters))
        print(f"\n{name}: {reasons[None]} of {sum(reasons.values())} apply")
        for reason, count in reasons.most_common():
            if reason:
                print(f"{count:7} {reason}")
        assert reasons[None] == wanted == len(applicable(parameters))
