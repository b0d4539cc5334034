# fagen: forms on CPU tensors: values, args and their refusals, graphs.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math

import pytest
import torch

import fagen
import fagen.torch
from torch_emulated import assert_near, emulating, tensors, use_emulator

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")

SPEC = """target sm_89;
form gemma2   { param cap: f32 in [1, 55]; param window: i32 in [1, 1073741824];
                score = cap * tanh(s / cap);  mask = k <= p && p - k < window; }
form sinks    { param sinks: f32[heads];  mask = k <= p;  sink = sinks[h]; }
form bias     { param bias: f32[batch, heads, seq_q, seq_kv];  score = s + bias[b, h, q, k]; }
form document { param doc: i32[batch, seq_kv] ascending;  mask = k <= p && doc[b, k] == doc[b, p]; }
form drafts   { param sees: bit[batch, seq_q, seq_q];  let d = k - (seq_kv - seq_q);  mask = d < 0 || sees[b, q, d]; }
form prefix   { param prefix: i32[batch];  mask = k < prefix[b] || k <= p; }
form bytes    { param seen: u8[batch, seq_kv];  mask = seen[b, k] != 0; }
form many     { param n: i32 in [-3, 7];  param t: f32 in [0.5, 2];  param some: f16[heads, 7];
                let d = clamp(p - k, -20, 20);  let x = f32(floor_mod(k - q, 3)) - 1.0;
                score = (d == n || d > 9 ? max(s, x) * t : min(abs(s), 3.0) - exp2(x) + log2(f32(k + 1)) / 8.0)
                        + sqrt(f32(q)) * 0.125 - exp(-abs(x)) + log(f32(hk + 1)) + tanh(s) + some[h, d] + f32(i32(s * 3.0)) * 0.125;
                mask = ((k ^ q) & 3) != 1 && !(k >> 2 == 5) || k << 1 < (p | 1) && floor_div(-k, 3) <= -n;
                sink = b == 0 ? -inf : some[h, q]; }
kernel formed {
  problem  { dtype = f16; head_dim = 64;
             form = [gemma2, gemma2(window = 8), sinks, bias, document, drafts, prefix, bytes, many]; }
  schedule { tile = 64 x 64; warps = 4; mma = mma_sync; copy = cp_async; stages = 2; }
}
"""


@pytest.fixture(scope="module")
def kernels():
    compiled = fagen.compile(SPEC)
    with emulating(compiled._directories[0]):
        yield compiled


def places(q, k):
    """Indices of queries and keys, and the place of a query among the keys."""
    rows, keys = q.shape[1], k.shape[1]
    row, key = torch.arange(rows)[:, None], torch.arange(keys)[None, :]
    return row, key, row + keys - rows


def reference(q, k, v, *, score=lambda s: s, seen=None, sink=None):
    """O and LSE in float64. seen is [.., seq_q, seq_kv] of bool; sink [heads]."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = score(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    sums = torch.logsumexp(scores, -1)
    if sink is not None:
        sums = torch.logaddexp(sums, sink.double()[:, None].expand_as(sums))
    o = torch.exp(scores - sums.masked_fill(sums == -torch.inf, 0)[..., None]) @ v
    return o.transpose(1, 2), sums


def compare(kernels, inputs, wanted, form, **params):
    o, lse = kernels(*inputs, form=form, return_lse=True, **params)
    assert_near(o, wanted[0])
    torch.testing.assert_close(lse.double(), wanted[1], atol=2e-3, rtol=1e-3)


def gemma2(inputs, cap, window):
    _, key, place = places(*inputs[:2])
    return reference(*inputs, score=lambda s: cap * torch.tanh(s / cap), seen=(key <= place) & (place - key < window))


@pytest.mark.parametrize("lengths", [(40, 40), (1, 70), (33, 80), (50, 20)])
def test_numbers(kernels, lengths):
    inputs = tensors(seq_q=lengths[0], seq_kv=lengths[1])
    for cap, window in ((5.0, 7), (50, 1000), (1.5, 8)):  # 8 is bound in a row of its own
        compare(kernels, inputs, gemma2(inputs, cap, window), "gemma2", cap=cap, window=window)


def test_numbers_that_are_tensors(kernels):
    inputs = tensors()
    for window in (torch.tensor(8, dtype=torch.int32), torch.tensor([8], dtype=torch.int32)):
        compare(kernels, inputs, gemma2(inputs, 5.0, 8), "gemma2", cap=torch.tensor(5.0), window=window)


def test_tensors_of_one_element_are_read_at_each_call(kernels):
    inputs, window = tensors(), torch.tensor(3, dtype=torch.int32)
    compare(kernels, inputs, gemma2(inputs, 5.0, 3), "gemma2", cap=5.0, window=window)
    window.fill_(11)
    compare(kernels, inputs, gemma2(inputs, 5.0, 11), "gemma2", cap=5.0, window=window)


def test_sinks(kernels):
    inputs = tensors(seq_q=50, seq_kv=20)  # the first 30 rows see no key
    sinks = torch.tensor([0.5, -1.0, 3.0, 0.0])
    _, key, place = places(*inputs[:2])
    compare(kernels, inputs, reference(*inputs, seen=key <= place, sink=sinks), "sinks", sinks=sinks)


@pytest.mark.parametrize("shape", [(2, 4, 40, 40), (1, 4, 40, 40), (2, 1, 1, 40), (40, 40), (4, 1, 1), (40, 1)])
def test_bias_of_any_shape_that_is_repeated(kernels, shape):
    inputs = tensors(batch=2)
    bias = torch.randn(shape, generator=torch.Generator().manual_seed(7))
    compare(kernels, inputs, reference(*inputs, score=lambda s: s + bias.double()), "bias", bias=bias)


MOST = torch.finfo(torch.float32).max


@pytest.mark.parametrize("low, high", [
    (-65504.0, 0.0), (-1e9, 0.0), (-1e9, -1e9), (-1e10, 1e9), (torch.finfo(torch.bfloat16).min, 0.0), (-MOST, 0.0), (-0.7 * MOST, 0.0),
    (-MOST, MOST), (0.0, 1e10), (-torch.inf, -1e9)])
def test_biases_of_any_size(kernels, low, high):
    """The softmax of float32 arithmetic: where all keys of a row have `low`, the average of V; its gradient, too."""
    inputs = [t.requires_grad_() for t in tensors(seq_q=24, seq_kv=40)]
    _, key, place = places(*inputs[:2])
    bias = torch.where(key + 20 <= place, high, low).float()  # the first rows have `low` alone
    bias[-1, :] = 0
    q, k, v = (t.float().transpose(1, 2) for t in inputs)
    scores = q @ k.repeat_interleave(2, 1).transpose(-1, -2) * 0.125 + bias
    seen = (scores != -torch.inf).any(-1)
    wanted = (torch.softmax(scores.masked_fill(~seen[..., None], 0), -1) * seen[..., None] @ v.repeat_interleave(2, 1)).transpose(1, 2)
    o, lse = kernels(*inputs, form="bias", bias=bias, return_lse=True)
    assert_near(o.detach(), wanted.detach().double())
    torch.testing.assert_close(lse, torch.logsumexp(scores, -1), atol=2e-3, rtol=1e-5)
    for_o = torch.randn(o.shape, generator=torch.Generator().manual_seed(4))
    for one, other in zip(*(torch.autograd.grad((t.float() * for_o).sum(), inputs, retain_graph=True) for t in (o, wanted))):
        torch.testing.assert_close(one, other, atol=1e-2, rtol=1e-2)


def test_strides_of_args_are_taken_as_they_are(kernels):
    inputs = tensors()
    bias = torch.randn((40, 40, 1, 8), generator=torch.Generator().manual_seed(7))[..., ::2].permute(2, 3, 1, 0)
    assert not bias.is_contiguous() and bias.shape == (1, 4, 40, 40)
    compare(kernels, inputs, reference(*inputs, score=lambda s: s + bias.double()), "bias", bias=bias)


def test_one_value_for_all(kernels):
    """Strides that are all 0 repeat: the C ABI does not take them for packed ones."""
    inputs = tensors()
    _, key, place = places(*inputs[:2])
    compare(kernels, inputs, reference(*inputs, seen=key <= place, sink=torch.full((4,), 0.7)), "sinks", sinks=torch.tensor([0.7]))
    bias = torch.tensor(0.25).expand(1, 4, 40, 40)
    compare(kernels, inputs, reference(*inputs, score=lambda s: s + 0.25), "bias", bias=bias)


def test_numbers_of_numpy(kernels):
    numpy = pytest.importorskip("numpy")
    inputs = tensors()
    for cap, window in ((numpy.float32(5), numpy.int64(7)), (numpy.float64(5), numpy.uint8(7)), (numpy.int32(5), numpy.int16(7))):
        compare(kernels, inputs, gemma2(inputs, 5.0, 7), "gemma2", cap=cap, window=window)
    assert "gemma2" in kernels.explain(*inputs, gpu="sm_89", form="gemma2", cap=numpy.float32(5), window=numpy.int64(7))


def test_documents(kernels):
    inputs = tensors(batch=2, seq_q=24, seq_kv=40)
    doc = torch.tensor([[0] * 13 + [1] * 27, [3] * 30 + [9] * 10], dtype=torch.int32)
    _, key, place = places(*inputs[:2])
    same = doc[:, None, :] == doc[:, place[:, 0]][:, :, None]
    compare(kernels, inputs, reference(*inputs, seen=((key <= place) & same)[:, None]), "document", doc=doc)


def test_bits(kernels):
    inputs = tensors(batch=2, seq_q=40, seq_kv=70)
    sees = torch.rand((2, 40, 40), generator=torch.Generator().manual_seed(5)) < 0.5
    seen = torch.cat([torch.ones((2, 40, 30), dtype=torch.bool), sees], -1)
    words = fagen.torch.pack_bits(sees)
    assert words.dtype == torch.int32 and words.shape == (2, 40, 2)
    compare(kernels, inputs, reference(*inputs, seen=seen[:, None]), "drafts", sees=words)


def test_prefixes_and_bytes(kernels):
    inputs = tensors(batch=2)
    _, key, place = places(*inputs[:2])
    prefix = torch.tensor([5, 20], dtype=torch.int32)
    seen = ((key < prefix[:, None, None]) | (key <= place))[:, None]
    compare(kernels, inputs, reference(*inputs, seen=seen), "prefix", prefix=prefix)
    some = torch.rand((2, 40), generator=torch.Generator().manual_seed(5)) < 0.5
    compare(kernels, inputs, reference(*inputs, seen=some[:, None, None, :]), "bytes", seen=some)


def test_out_layout_and_form_args(kernels):
    inputs = tensors()
    wanted = gemma2(inputs, 5.0, 7)[0]
    turned = [t.transpose(1, 2) for t in inputs]
    out = torch.empty_like(turned[0])
    given = kernels(*turned, form="gemma2", form_args={"cap": 5.0}, window=7, layout="bhsd", out=out)
    assert given.data_ptr() == out.data_ptr()
    assert_near(out.transpose(1, 2), wanted)


MISTAKES = [
    ({"form": "gemma3"}, fagen.Error, "form is 'gemma3', did you mean 'gemma2'?; there are gemma2, "),
    ({"form": 3}, fagen.Error, "form is 3; there are gemma2, "),
    ({"form": "gemma2", "cap": 5.0}, fagen.Error, "'window' of the form gemma2 is missing; its params are cap, window"),
    ({"form": "gemma2", "cap": 5.0, "window": 7, "wndow": 1}, fagen.Error,
     "the form gemma2 has no param 'wndow', did you mean 'window'?; its params are cap, window"),
    ({"form": "gemma2", "cap": [5.0], "window": 7}, fagen.Error, "cap is [5.0]; it is a number or a tensor"),
    ({"form": "gemma2", "cap": math.nan, "window": 7}, fagen.Error, "cap is nan; the form gemma2 takes 1 to 55"),
    ({"form": "gemma2", "cap": 5.0, "window": 0}, fagen.Error, "window is 0; the form gemma2 takes 1 to 1073741824"),
    ({"form": "gemma2", "cap": 5.0, "window": 7.5}, fagen.Error, "window is 7.5; it is an integer"),
    ({"form": "gemma2", "cap": "5", "window": 7}, fagen.Error, "cap is '5'; it is a number or a tensor"),
    ({"form": "gemma2", "cap": 5.0, "window": torch.tensor(7)}, fagen.Error, "window is of another dtype; it is int32"),
    ({"form": "gemma2", "cap": torch.ones(2), "window": 7}, fagen.Error, "cap has shape [2]; it is a number, or a tensor of one"),
    ({"form": "gemma2", "cap": 5.0, "window": 7, "causal": True}, fagen.Error, "causal and form are given"),
    ({"form": "gemma2", "cap": 5.0, "window": 7, "fallback": "cuda"}, fagen.Error, "fallback is 'cuda'"),
    ({"form": "gemma2", "cap": 5.0, "form_args": {"cap": 5.0}, "window": 7}, fagen.Error, "'cap' is given by keyword and in form_args"),
    ({"form": "sinks", "sinks": 1.0}, fagen.Error, "sinks is a number; it is a tensor of 1 dimension"),
    ({"form": "sinks", "sinks": torch.ones(3)}, fagen.Error, "sinks has shape [3]; it is [4], where a size of 1 is repeated"),
    ({"form": "sinks", "sinks": torch.ones(1, 4)}, fagen.Error, "sinks has shape [1, 4]"),
    ({"form": "bias", "bias": torch.ones(4, 40, 40).half()}, fagen.Error, "bias is of another dtype; it is float32"),
    ({"cap": 5.0}, TypeError, "attention() got an unexpected keyword argument 'cap'"),
    ({"form": "causal"}, fagen.Error, "form is 'causal', which is no form; give causal=True"),
    ({"form_args": {"cap": 5.0}}, fagen.Error, "form_args has 'cap', and there is no form"),
]


@pytest.mark.parametrize("call, kind, words", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(kernels, call, kind, words):
    with pytest.raises(kind) as caught:
        kernels(*tensors(), **call)
    assert words in str(caught.value)


def all_forms(batch=2, rows=24, keys=40):
    """form: args, what they mean to reference(), and the names of args that have a gradient."""
    draw = torch.Generator().manual_seed(2)
    key, place = torch.arange(keys)[None, :], torch.arange(rows)[:, None] + keys - rows
    bias = torch.randn((1, 4, rows, keys), generator=draw)
    sinks = torch.tensor([0.5, -1.0, 3.0, 0.0])
    doc = torch.tensor([[0] * 13 + [1] * 27, [3] * 30 + [9] * 10], dtype=torch.int32)
    same = (key <= place) & (doc[:, None, :] == doc[:, place[:, 0]][:, :, None])
    sees = torch.rand((batch, rows, rows), generator=draw) < 0.5
    prefix = torch.tensor([5, 20], dtype=torch.int32)
    some = torch.rand((batch, keys), generator=draw) < 0.5
    return {
        "gemma2": (dict(cap=torch.tensor(5.0), window=7), lambda a: dict(
            score=lambda s: a["cap"].double() * torch.tanh(s / a["cap"].double()), seen=(key <= place) & (place - key < 7)), ["cap"]),
        "sinks": (dict(sinks=sinks), lambda a: dict(seen=key <= place, sink=a["sinks"]), ["sinks"]),
        "bias": (dict(bias=bias), lambda a: dict(score=lambda s: s + a["bias"].double()), ["bias"]),
        "document": (dict(doc=doc), lambda a: dict(seen=same[:, None]), []),
        "drafts": (dict(sees=fagen.torch.pack_bits(sees)), lambda a: dict(
            seen=torch.cat([torch.ones((batch, rows, keys - rows), dtype=torch.bool), sees], -1)[:, None]), []),
        "prefix": (dict(prefix=prefix), lambda a: dict(seen=((key < prefix[:, None, None]) | (key <= place))[:, None]), []),
        "bytes": (dict(seen=some), lambda a: dict(seen=some[:, None, None, :]), []),
    }


@pytest.mark.parametrize("name", sorted(all_forms()))
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_gradients(kernels, monkeypatch, name, layout):
    """Of q, k, v and of args, through O and LSE, in steps of some rows."""
    monkeypatch.setattr(fagen.torch._forms_by_torch, "_MOST_SCORES", 5 * 2 * 4 * 40)
    args, meaning, learnt = all_forms()[name]
    inputs = [t.requires_grad_() for t in tensors(batch=2, seq_q=24, seq_kv=40)]
    args = {key: value.clone().requires_grad_() if key in learnt else value for key, value in args.items()}
    leaves = [*inputs, *(args[key] for key in learnt)]
    given = [t.transpose(1, 2) for t in inputs] if layout == "bhsd" else inputs
    o, lse = kernels(*given, form=name, form_args=args, return_lse=True, layout=layout)
    wanted, sums = reference(*inputs, **meaning(args))
    o = o.transpose(1, 2) if layout == "bhsd" else o
    assert_near(o.detach(), wanted.detach())
    draw = torch.Generator().manual_seed(4)
    for_o, for_lse = torch.randn(o.shape, generator=draw), torch.randn(lse.shape, generator=draw)
    got = torch.autograd.grad((o.float() * for_o).sum() + (lse * for_lse).sum(), leaves)
    exact = torch.autograd.grad((wanted * for_o).sum() + (sums * for_lse).sum(), leaves)
    for one, other in zip(got, exact):
        assert one.dtype == other.dtype and one.isfinite().all()
        torch.testing.assert_close(one.double(), other.double(), atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("number", [-3, 0, 7])
def test_operators_by_torch(kernels, number):
    """PyTorch's reading of programs compared with a kernel's."""
    inputs = tensors(batch=2, seq_q=24, seq_kv=40)
    args = {"n": number, "t": 1.5, "some": torch.randn((4, 7), generator=torch.Generator().manual_seed(6)).half()}
    o, lse = kernels(*inputs, form="many", form_args=args, return_lse=True)
    by_torch = fagen.torch._forms_by_torch
    found = by_torch.Attention(by_torch.find(kernels._directories, "many", args), args, *inputs, None, True).forward(*inputs)
    assert_near(o, found[0].double())
    torch.testing.assert_close(lse, found[1], atol=1e-4, rtol=1e-4)


def test_gradients_of_rows_that_see_nothing(kernels):
    inputs, sinks = [t.requires_grad_() for t in tensors(seq_q=50, seq_kv=20)], torch.zeros(4, requires_grad=True)
    _, key, place = places(*inputs[:2])
    for args, options in (({"sinks": sinks}, dict(form="sinks", sinks=sinks)), ({}, dict(form="gemma2", cap=5.0, window=3))):
        got = torch.autograd.grad(kernels(*inputs, **options).float().sum(), [*inputs, *args.values()])
        assert all(t.isfinite().all() for t in got) and not got[0][:, :30].any() and got[1].any()


def test_gradients_are_not_asked_of_what_cannot_have_them(kernels):
    q, k, v = tensors()
    sinks = torch.zeros(4, requires_grad=True)
    with pytest.raises(fagen.Error, match="out= takes no part in gradients"):
        kernels(q, k, v, form="sinks", sinks=sinks, out=torch.empty_like(q))
    with pytest.raises(fagen.Error, match="has no param 'snks', did you mean 'sinks'"):
        kernels(q, k, v, form="sinks", sinks=sinks, snks=sinks)


def test_gradients_break_graphs(kernels):
    q, k, v = tensors()
    sinks = torch.zeros(4, requires_grad=True)
    call = lambda s: kernels(q, k, v, form="sinks", sinks=s * 2).float().square().sum()  # noqa: E731
    wanted, = torch.autograd.grad(call(sinks), sinks)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(call, backend="aot_eager", fullgraph=True)(sinks)
    got, = torch.autograd.grad(torch.compile(call, backend="aot_eager")(sinks), sinks)
    torch.testing.assert_close(got, wanted)
    assert wanted.any()


@pytest.mark.parametrize("name", sorted(all_forms()))
def test_fallback(kernels, name):
    """A type without a kernel: PyTorch computes the form, with its gradient, and it is counted."""
    args, meaning, learnt = all_forms()[name]
    inputs = [t.bfloat16().requires_grad_() for t in tensors(batch=2, seq_q=24, seq_kv=40)]
    with pytest.raises(fagen.Unsupported):
        kernels(*inputs, form=name, form_args=args)
    fagen.stats(reset=True)
    o, lse = kernels(*inputs, form=name, form_args=args, return_lse=True, fallback="torch")
    wanted, sums = reference(*inputs, **meaning(args))
    torch.testing.assert_close(o.double(), wanted, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(lse.double(), sums, atol=2e-3, rtol=1e-3)
    for one, other in zip(*(torch.autograd.grad(t.double().sum(), inputs) for t in (o, wanted))):
        torch.testing.assert_close(one.double(), other.double(), atol=2e-2, rtol=2e-2)
    (_, reason), = fagen.stats()["fallbacks"]
    assert "bf16" in reason


def test_compiled(kernels):
    inputs, sinks = tensors(), torch.tensor([0.5, -1.0, 3.0, 0.0])

    @torch.compile(backend="aot_eager", fullgraph=True)
    def both(q, k, v, sinks):
        o = kernels(q, k, v, form="sinks", sinks=sinks)
        return o + kernels(q, k, v, form="gemma2", cap=5.0, window=7)

    _, key, place = places(*inputs[:2])
    wanted = reference(*inputs, seen=key <= place, sink=sinks)[0] + gemma2(inputs, 5.0, 7)[0]
    with torch.no_grad():
        assert_near(both(*inputs, sinks), wanted)


def test_opcheck(kernels):
    number, form = fagen.torch._number(kernels), fagen.torch._Form("sinks", {"sinks": torch.zeros(4)})
    q, k, v = tensors()
    call = (q, k, v, form.tensors, form.numbers, form.number)
    tests = {"test_utils": ("test_schema", "test_faketensor")}
    with torch.no_grad():
        for lse in (False, True):
            torch.library.opcheck(torch.ops.fagen.form_attention.default, (*call, 0.1, True, lse, number), **tests)
        torch.library.opcheck(torch.ops.fagen.form_attention_out.default,
                              (*call, torch.empty_like(q), torch.empty((1, 4, 40)), 0.1, True, number), **tests)
    for given in ((*call, 0.1, True, True, number), (*call, torch.empty_like(q), torch.empty(0), 0.1, True, number)):
        name = "form_attention" if len(given) == 10 else "form_attention_out"
        with pytest.raises(RuntimeError, match=f"{name} has no gradient"):
            getattr(torch.ops.fagen, name)(*given)


def test_explain_and_forms(kernels):
    assert kernels.forms["gemma2"] == ["cap", "window"] and list(kernels.forms)[0] == "gemma2"
    text = kernels.explain(shape=(1, 4, 2, 40, 40, 64), form="gemma2", cap=5.0, window=8, gpu="sm_89")
    assert "form gemma2(cap = 5, window = 8)" in text and "is for gemma2(window = 8)" in text
    text = kernels.explain(shape=(1, 4, 2, 40, 40, 64), form="gemma2", cap=5.0, window=9, gpu="sm_89")
    assert "is for gemma2(window = 8); the problem has window = 9" in text
    assert "bias = a tensor" in kernels.explain(*tensors(), form="bias", bias=torch.ones(1, 4, 40, 40), gpu="sm_89")
