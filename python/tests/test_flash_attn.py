# fagen: flash-attn's functions: signatures, masks, refusals, and what PyTorch computes instead.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import inspect
import re

import pytest
import torch

import fagen
import fagen.flash_attn as fa2
import fagen.flash_attn_interface as fa3
from fagen import _flash
from torch_emulated import assert_near, reference, shipped_forms, tensors, use_emulator  # noqa: F401

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")

FA2 = ("q,k,v,dropout_p=0.0,softmax_scale=None,causal=False,window_size=(-1,-1),softcap=0.0,alibi_slopes=None,"
       "deterministic=False,return_attn_probs=False")
FA3 = ("q,k,v,softmax_scale=None,causal=False,qv=None,q_descale=None,k_descale=None,v_descale=None,window_size=(-1,-1),"
       "attention_chunk=0,softcap=0.0,num_splits=1,pack_gqa=None,deterministic=False,sm_margin=0,return_attn_probs=False")
PACKED = "q,k,v,cu_seqlens_q,cu_seqlens_k,max_seqlen_q,max_seqlen_k,"
SIGNATURES = [
    (fa2.flash_attn_func, FA2), (fa3.flash_attn_func, FA3),
    (fa2.flash_attn_varlen_func, FA2.replace("q,k,v,", PACKED) + ",block_table=None"),
    (fa3.flash_attn_varlen_func, FA3.replace("q,k,v,", PACKED + "seqused_q=None,seqused_k=None,")),
    (fa2.flash_attn_with_kvcache,
     "q,k_cache,v_cache,k=None,v=None,rotary_cos=None,rotary_sin=None,cache_seqlens=None,cache_batch_idx=None,"
     "cache_leftpad=None,block_table=None,softmax_scale=None,causal=False,window_size=(-1,-1),softcap=0.0,"
     "rotary_interleaved=True,alibi_slopes=None,num_splits=0,return_softmax_lse=False"),
    (fa3.flash_attn_with_kvcache,
     "q,k_cache,v_cache,k=None,v=None,qv=None,rotary_cos=None,rotary_sin=None,cache_seqlens=None,cache_batch_idx=None,"
     "cache_leftpad=None,page_table=None,cu_seqlens_q=None,cu_seqlens_k_new=None,max_seqlen_q=None,rotary_seqlens=None,"
     "q_descale=None,k_descale=None,v_descale=None,softmax_scale=None,causal=False,window_size=(-1,-1),attention_chunk=0,"
     "softcap=0.0,rotary_interleaved=True,scheduler_metadata=None,num_splits=0,pack_gqa=None,sm_margin=0,"
     "return_softmax_lse=False"),
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Fallbacks are counted without warnings, from zero on."""
    monkeypatch.setattr(fa2, "fallback", "torch")
    monkeypatch.setattr(fa3, "fallback", "torch")
    fagen.stats(reset=True)


@pytest.mark.parametrize("function, wanted", SIGNATURES)
def test_signatures(function, wanted):
    assert str(inspect.signature(function))[1:-1].replace(" ", "") == wanted


def by_steps(q, k, v, seen=None, softcap=0.0, bias=None, lse=False):
    """Attention in float64 with any mask: O, or (O, LSE)."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    scores = scores if bias is None else scores + bias
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    o = (torch.softmax(scores, -1).nan_to_num() @ v).transpose(1, 2)
    return (o, torch.logsumexp(scores, -1)) if lse else o


@pytest.mark.parametrize("module", [fa2, fa3])
@pytest.mark.parametrize("causal", [False, True])
def test_values_and_lse(module, causal):
    q, k, v = tensors(seq_q=24, seq_kv=40)
    o, lse = module.flash_attn_func(q, k, v, causal=causal, return_attn_probs=True)[:2]
    assert_near(o, reference(q, k, v, causal)[0])
    torch.testing.assert_close(lse.double(), reference(q, k, v, causal)[1], atol=1e-3, rtol=1e-3)
    assert fagen.stats()["computed"] == {"flash_attn_func": 1}


def test_the_fourth_argument():
    q, k, v = tensors()
    assert_near(fa3.flash_attn_func(q, k, v, 0.05), reference(q, k, v, scale=0.05)[0])
    fa2.flash_attn_func(q, k, v, 0.05)
    assert ("flash_attn_func", "dropout_p=0.05: kernels have no dropout") in fagen.stats()["fallbacks"]


@pytest.mark.parametrize("causal, window, seq_q, seq_kv, wanted", [
    (False, (-1, -1), 8, 8, (False, (-1, -1))), (False, (-1, 0), 8, 8, (True, (-1, -1))),
    (True, (-1, -1), 8, 8, (True, (-1, -1))), (True, (255, 255), 8, 8, (True, (-1, -1))),
    (False, (7, 7), 8, 8, (False, (-1, -1))), (False, (6, 7), 8, 8, (False, (6, -1))),
    (True, (3, -1), 8, 8, (False, (3, 0))), (False, (None, None), 8, 8, (False, (-1, -1))),
    (False, (-1, 5), 8, 4, (False, (-1, 5))), (False, (2, 0), 1, 3, (True, (-1, -1)))])
def test_windows(causal, window, seq_q, seq_kv, wanted):
    assert _flash.normalize(causal, window, seq_q, seq_kv) == wanted


@pytest.mark.parametrize("seq_q", range(1, 7))
@pytest.mark.parametrize("seq_kv", range(1, 7))
def test_normalized_windows_are_the_same_mask(seq_q, seq_kv):
    """Against flash-attn's words: key j of row i is seen where i + d - left <= j <= i + d + right, d = seq_kv - seq_q."""
    from fagen import _by_torch
    everything = torch.ones(seq_q, seq_kv, dtype=torch.bool)
    for left in range(-1, 8):
        for right in range(-1, 8):
            for causal in (False, True):
                most = 0 if causal else right
                wanted = torch.tensor([[(left < 0 or j >= i + seq_kv - seq_q - left) and
                                        (most < 0 or j <= i + seq_kv - seq_q + most) for j in range(seq_kv)]
                                       for i in range(seq_q)])
                is_causal, window = _flash.normalize(causal, (left, right), seq_q, seq_kv)
                seen = _by_torch.visible(seq_q, seq_kv, causal=is_causal, window=window)
                assert torch.equal(everything if seen is None else seen, wanted), (left, right, causal)


SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


@pytest.mark.parametrize("seq_q, seq_kv", [(24, 24), (1, 200), (40, 150), (30, 20)])
def test_windows_softcap_and_alibi_by_forms(shipped_forms, seq_q, seq_kv):
    q, k, v = tensors(seq_q=seq_q, seq_kv=seq_kv)
    place, key = torch.arange(seq_q)[:, None] + seq_kv - seq_q, torch.arange(seq_kv)[None]
    causal, near = key <= place, (key <= place) & (key >= place - 3)
    assert_near(fa2.flash_attn_func(q, k, v, causal=True, window_size=(3, 0)), by_steps(q, k, v, near))
    assert_near(fa3.flash_attn_func(q, k, v, causal=True, softcap=5.0), by_steps(q, k, v, causal, 5.0))
    assert_near(fa3.flash_attn_func(q, k, v, window_size=(3, 0), softcap=5.0), by_steps(q, k, v, near, 5.0))
    bias = SLOPES[:, None, None].double() * (key - place)
    assert_near(fa2.flash_attn_func(q, k, v, causal=True, alibi_slopes=SLOPES), by_steps(q, k, v, causal, bias=bias))
    assert fagen.stats()["computed"] == {"flash_attn_func": 4} and not fagen.stats()["fallbacks"]


FORMED = [{"causal": True, "window_size": (3, 0)}, {"window_size": (3, 2)}, {"causal": True, "softcap": 5.0},
          {"causal": True, "softcap": 5.0, "window_size": (7, 0)}, {"causal": True, "alibi_slopes": SLOPES}]


@pytest.mark.parametrize("lse", [False, True])
@pytest.mark.parametrize("options", FORMED)
def test_graphs_have_forms(shipped_forms, monkeypatch, options, lse):
    """Where the GPU has their kernels; also for tensors that are no kernel's as they are."""
    monkeypatch.setattr(fagen.torch, "_capability", lambda ordinal: 90)
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph

    q, k, v = tensors(seq_q=24, seq_kv=24)
    columns = v.transpose(1, 3).contiguous().transpose(1, 3)  # its last stride is not 1
    function = lambda q, k, v: fa2.flash_attn_func(q, k, v, return_attn_probs=lse, **options)  # noqa: E731
    torch._dynamo.reset()
    compiled, wanted = torch.compile(function, backend=keep, fullgraph=True), function(q, k, v)
    for got in (compiled(q, k, v), compiled(q, k, columns)):
        for one, two in zip(got if lse else (got,), wanted if lse else (wanted,)):
            assert torch.equal(one, two) if one is not None else two is None
    assert all("fagen.form_attention" in str(graph.graph) for graph in graphs)


@pytest.mark.parametrize("gpu", [None, 80])
def test_graphs_without_kernels_of_forms_fall_back(monkeypatch, gpu):
    """On the CPU, and on GPUs for which the package has no forms."""
    monkeypatch.setattr(fagen.torch, "_capability", lambda ordinal: gpu)
    q, k, v = tensors(seq_q=24, seq_kv=24)
    row, key = torch.arange(24)[:, None], torch.arange(24)[None]
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: fa2.flash_attn_func(q, k, v, causal=True, softcap=5.0), backend="eager", fullgraph=True)
    assert_near(compiled(q, k, v), by_steps(q, k, v, key <= row, 5.0))


def test_windows_on_both_sides_by_forms(shipped_forms):
    q, k, v = tensors(seq_q=40, seq_kv=60)
    place, key = torch.arange(40)[:, None] + 20, torch.arange(60)[None]
    for left, right in ((3, 2), (-1, 5), (10, -1)):
        seen = (key >= place - left if left >= 0 else True) & (key <= place + right if right >= 0 else key >= 0)
        assert_near(fa2.flash_attn_func(q, k, v, window_size=(left, right)), by_steps(q, k, v, seen))
    assert fagen.stats()["computed"] == {"flash_attn_func": 3}


@pytest.mark.parametrize("window", [(3, 2), (5, 0), (-1, 5)])
def test_gradients_of_windows(shipped_forms, monkeypatch, window):
    """On a GPU PyTorch's flash attention computes them from our O and LSE; here, what is asked of it. One through LSE is computed anew."""
    q, k, v = inputs = [t.requires_grad_() for t in tensors(seq_q=24, seq_kv=24)]
    left, right = window
    row, key = torch.arange(24)[:, None], torch.arange(24)[None]
    seen = (key >= row - left if left >= 0 else True) & (key <= row + right)
    asked = []

    def backward(grad, q, k, v, o, lse, scale, bounds, bshd):
        asked.append(bounds)
        exact, sums = by_steps(q, k, v, seen, lse=True)
        assert_near(o, exact)
        assert_near(lse, sums)
        with torch.enable_grad():
            parts = [t.detach().requires_grad_() for t in (q, k, v)]
            return torch.autograd.grad(by_steps(*parts, seen), parts, grad.double())

    monkeypatch.setattr(fagen.torch._by_torch, "has_backward_of_window", lambda q, k, v: True)
    monkeypatch.setattr(fagen.torch._by_torch, "backward_of_window", backward)
    wanted = by_steps(*inputs, seen, lse=True)
    for of_lse in (0.0, 1.0):
        o, lse, *_ = fa3.flash_attn_func(q, k, v, window_size=window, return_attn_probs=True)
        got = torch.autograd.grad(o.float().square().sum() + (of_lse * lse.sum() if of_lse else 0.0), inputs)
        exact = torch.autograd.grad(wanted[0].square().sum() + of_lse * wanted[1].sum(), inputs, retain_graph=True)
        for one, other in zip(got, exact):
            torch.testing.assert_close(one.double(), other.double(), atol=2e-2, rtol=2e-2)
    assert asked == [(left if left >= 0 else 1 << 30, right)] and fagen.stats()["computed"] == {"flash_attn_func": 2}


def test_what_forms_do_not_take(shipped_forms):
    q, k, v = tensors(seq_q=24, seq_kv=24)
    row, key = torch.arange(24)[:, None], torch.arange(24)[None]
    assert_near(fa3.flash_attn_func(q, k, v, causal=True, softcap=5000.0), by_steps(q, k, v, key <= row, 5000.0))
    k.requires_grad_()
    fa3.flash_attn_func(q, k, v, causal=True, softcap=5.0).sum().backward()
    assert k.grad is not None
    reasons = [reason for _, reason in fagen.stats()["fallbacks"]]
    assert reasons == ["softcap=5000.0: cap is 5000.0; the form softcap takes 1 to 1000", "softcap=5.0: the form softcap has no gradient"]


def test_windows_softcap_and_alibi_by_torch():
    q, k, v = tensors(seq_q=24, seq_kv=24)
    row, key = torch.arange(24)[:, None], torch.arange(24)[None]
    assert_near(fa2.flash_attn_func(q, k, v, window_size=(3, 2)), by_steps(q, k, v, (key >= row - 3) & (key <= row + 2)))
    assert_near(fa3.flash_attn_func(q, k, v, causal=True, softcap=5.0), by_steps(q, k, v, key <= row, 5.0))
    slopes = SLOPES
    bias = -slopes[:, None, None].double() * (row - key).abs()
    assert_near(fa2.flash_attn_func(q, k, v, alibi_slopes=slopes), by_steps(q, k, v, bias=bias))
    assert len(fagen.stats()["fallbacks"]) == 3 and not fagen.stats()["computed"]


@pytest.mark.parametrize("wrong, said", [
    ({"softcap": -1.0}, "softcap is -1.0; it is a positive number, or 0.0 for none"),
    ({"softcap": "30"}, "softcap is '30'; it is a positive number"),
    ({"alibi_slopes": torch.ones(3)}, "alibi_slopes has the shape (3,); it has a slope for each head of q, (4,) or (1, 4)"),
    ({"alibi_slopes": [1.0] * 4}, "alibi_slopes is [1.0, 1.0, 1.0, 1.0]; it is a torch.Tensor"),
    ({"window_size": 128}, "window_size is 128; it is (left, right), two integers"),
])
def test_mistakes_are_named(wrong, said):
    with pytest.raises(fagen.Error, match=re.escape(f"flash_attn_func: {said}")):
        fa2.flash_attn_func(*tensors(), causal=True, **wrong)


def test_errors_where_asked_for(monkeypatch):
    monkeypatch.setattr(fa2, "fallback", "error")
    q, k, v = tensors()
    with pytest.raises(fagen.Unsupported, match=r'flash_attn_func: window_size=\(5, 0\): .*fallback="torch" computes it'):
        fa2.flash_attn_func(q, k, v, causal=True, window_size=(5, 0))


def test_a_warning_once_a_reason(monkeypatch):
    monkeypatch.setattr(fa2, "fallback", "warn")
    q, k, v = tensors()
    with pytest.warns(RuntimeWarning, match="softcap=3.5, not causal: no form has this together; PyTorch computes it"):
        fa2.flash_attn_func(q, k, v, softcap=3.5)
    fa2.flash_attn_func(q, k, v, softcap=3.5)


@pytest.mark.parametrize("argument", ["qv", "attention_chunk"])
def test_what_nobody_computes(argument):
    q, k, v = tensors()
    with pytest.raises(fagen.Unsupported, match=f"{argument}: neither fagen nor its fallback"):
        fa3.flash_attn_func(q, k, v, **{argument: 8 if argument == "attention_chunk" else torch.ones(1)})


def test_varlen():
    lengths, keys = [3, 20, 0, 9], [5, 20, 4, 30]
    parts = [tensors(seq_q=n, seq_kv=m, seed=i) for i, (n, m) in enumerate(zip(lengths, keys))]
    q, k, v = (torch.cat([p[i][0] for p in parts]) for i in range(3))
    starts = [torch.tensor([0, *n]).cumsum(0).int() for n in (lengths, keys)]
    o, lse, _ = fa2.flash_attn_varlen_func(q, k, v, *starts, 20, 30, causal=True, return_attn_probs=True)
    assert_near(o, torch.cat([reference(*p, True)[0][0] for p in parts]))
    torch.testing.assert_close(lse.double(), torch.cat([reference(*p, True)[1][0] for p in parts], 1), atol=1e-3, rtol=1e-3)
    used = torch.tensor([2, 20, 0, 9])
    o = fa3.flash_attn_varlen_func(q, k, v, *starts, 20, 30, seqused_q=used, seqused_k=torch.tensor([5, 11, 4, 30]))
    assert_near(o[:2], reference(parts[0][0][:, :2], *parts[0][1:])[0][0])
    assert_near(o[3:23], reference(parts[1][0], parts[1][1][:, :11], parts[1][2][:, :11])[0][0])
    assert not o[2].any()


def test_kvcache_of_one_length_is_ours():
    q, k, v = tensors(batch=2, seq_q=2, seq_kv=32)
    for module in (fa2, fa3):
        assert_near(module.flash_attn_with_kvcache(q, k, v, cache_seqlens=17, causal=True), reference(q, k[:, :17], v[:, :17], True)[0])
    assert fagen.stats()["fallbacks"] == {} and fagen.stats()["computed"] == {"flash_attn_with_kvcache": 2}


def test_kvcache_takes_new_keys():
    q, k, v = tensors(batch=2, seq_q=2, seq_kv=32)
    _, new_k, new_v = tensors(batch=2, seq_q=2, seq_kv=2, seed=5)
    fa2.flash_attn_with_kvcache(q, k, v, new_k, new_v, cache_seqlens=torch.tensor([4, 9]), causal=True)
    assert torch.equal(k[0, 4:6], new_k[0]) and torch.equal(v[1, 9:11], new_v[1])


def test_kvcache_of_several_lengths():
    q, k, v = tensors(batch=2, seq_q=1, seq_kv=32)
    lengths, pads = torch.tensor([5, 30]), torch.tensor([2, 0])
    o, lse = fa3.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, cache_leftpad=pads, return_softmax_lse=True)
    assert_near(o[:1], reference(q[:1], k[:1, 2:5], v[:1, 2:5])[0])
    assert_near(o[1:], reference(q[1:], k[1:, :30], v[1:, :30])[0])
    assert lse.shape == (2, 4, 1)
    turned = fa2.flash_attn_with_kvcache(q, k, v, cache_seqlens=9, cache_batch_idx=torch.tensor([1, 0]))
    assert_near(turned, reference(q, k[[1, 0], :9], v[[1, 0], :9])[0])


def test_kvcache_of_pages():
    q, k, v = tensors(batch=2, seq_q=1, seq_kv=32)
    table = torch.tensor([[2, 0, 3, 1], [7, 6, 5, 4]], dtype=torch.int32)
    pages = [torch.empty(8, 8, 2, 64, dtype=t.dtype) for t in (k, v)]
    for page, tensor in zip(pages, (k, v)):
        page[table.long()] = tensor.unflatten(1, (4, 8))
    assert_near(fa2.flash_attn_with_kvcache(q, *pages, cache_seqlens=21, block_table=table), reference(q, k[:, :21], v[:, :21])[0])


def test_packed():
    q, k, v = tensors(kv_heads=4, seq_q=24, seq_kv=24)
    wanted = reference(q, k, v, True)[0]
    assert_near(fa2.flash_attn_qkvpacked_func(torch.stack([q, k, v], 2), causal=True), wanted)
    assert_near(fa2.flash_attn_kvpacked_func(q, torch.stack([k, v], 2), causal=True), wanted)
    assert_near(fa3.flash_attn_qkvpacked_func(torch.cat([q, k, v], 2), causal=True, num_heads_q=4), wanted)


@pytest.mark.parametrize("options", [{"causal": True}, {"softcap": 4.0}, {"window_size": (3, 2)}])
def test_compile_without_graph_breaks(options):
    q, k, v = tensors(seq_q=16, seq_kv=16)
    compiled = torch.compile(lambda q, k, v: fa2.flash_attn_func(q, k, v, **options), backend="aot_eager", fullgraph=True)
    assert_near(compiled(q, k, v), fa2.flash_attn_func(q, k, v, **options).double())
