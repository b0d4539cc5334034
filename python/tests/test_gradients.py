# fagen: gradients of attention by the package's programs, on the emulator, against autograd in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

import fagen
from fagen import _by_torch, _forms, _forms_by_torch, _gradients, _kernels, _lib, _sdpa, _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY, emulating, reference, use_emulator

if not use_emulator():
    pytest.skip("this build has no emulator", allow_module_level=True)

KINDS = {"f16": torch.float16, "bf16": torch.bfloat16}
FORWARD = {"f16": "fp16", "bf16": "bf16"}


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    yield
    _torch_programs.set_emulator(None)


@pytest.fixture
def calls(monkeypatch):
    """What is asked of programs: (name, shape of q, shape of k)."""
    seen = []

    class Seen(_torch_programs.Program):
        def __call__(self, /, **arguments):
            seen.append((self.name, tuple(arguments["q"].shape), tuple(arguments["k"].shape)))
            return super().__call__(**arguments)
    monkeypatch.setattr(_torch_programs, "Program", Seen)
    _gradients._program.cache_clear()
    yield seen
    _gradients._program.cache_clear()


def drawn(kind, heads, kv_heads, rows, keys, head_dim, layout="bshd", batch=1, seed=0):
    """q, k, v and the gradient of O."""
    draw = torch.Generator().manual_seed(seed)
    shapes = [(batch, n, h, head_dim) for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads), (rows, heads))]
    if layout == "bhsd":
        shapes = [(b, h, n, d) for b, n, h, d in shapes]
    return [torch.randn(shape, generator=draw).to(KINDS[kind]) for shape in shapes]


def exact(q, k, v, window, scale, cap=0.0, sinks=None):
    """O and LSE of [batch, heads, rows, columns], and scores before `cap`, in float64."""
    group = q.shape[1] // k.shape[1]
    raw = q.double() @ k.double().repeat_interleave(group, 1).transpose(-1, -2) * scale
    seen = _by_torch.visible(q.shape[2], k.shape[2], window=window)
    scores = cap * torch.tanh(raw / cap) if cap else raw
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    joined = scores if sinks is None else torch.cat([scores, sinks.double()[:, None, None].expand(*scores.shape[:3], 1)], -1)
    lse = joined.logsumexp(-1)
    weights = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None])
    return weights @ v.double().repeat_interleave(group, 1), lse, raw, weights


def plain(q, k, v, o, lse, grad, window, scale, rounded, cap=0.0, grad_lse=None, sinks=None):
    """Gradients of [batch, heads, rows, columns] by the definition, with P and dS as `rounded` makes them."""
    group = q.shape[1] // k.shape[1]
    keys, values = (t.repeat_interleave(group, 1) for t in (k, v))
    *_, raw, weights = exact(q, k, v, window, scale, cap, sinks)
    of_rows = (grad * o).sum(-1, keepdim=True) - (0 if grad_lse is None else grad_lse[..., None])
    of_scores = weights * (grad @ values.transpose(-1, -2) - of_rows)
    of_scores = rounded(of_scores * (1 - torch.tanh(raw / cap) ** 2) if cap else of_scores)
    together = lambda t: t.unflatten(1, (-1, group)).sum(2)
    return of_scores @ keys * scale, together(of_scores.transpose(-1, -2) @ q) * scale, together(rounded(weights).transpose(-1, -2) @ grad)


def assert_right(found, q, k, v, grad, causal, scale, layout, parts=0, window=(-1, -1), **options):
    """As near to float64 as twice what rounding O, P, dS and the results costs, and rounding so many parts of each result."""
    heads_first = lambda t: t.double().transpose(1, 2) if layout == "bshd" else t.double()
    args = [heads_first(t) for t in (q, k, v)]
    window = (-1, 0) if causal else window
    o, lse, *_ = exact(*args, window, scale, options.get("cap", 0.0), options.get("sinks"))
    wanted_ones = plain(*args, o, lse, heads_first(grad), window, scale, lambda t: t, **options)
    to = lambda t: t.to(q.dtype).double()
    rough = plain(*args, to(o), lse, heads_first(grad), window, scale, to, **options)
    for ours, wanted, near in zip(found, wanted_ones, rough):
        allowed = 2 * (to(near) - wanted).abs().max() + 2.0 ** -14 + parts * torch.finfo(q.dtype).eps / 2 * wanted.abs().max()
        assert (heads_first(ours) - wanted).abs().max() <= allowed


def gradients(q, k, v, grad, **options):
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    return torch.autograd.grad(fagen.attention(*inputs, **options), inputs, grad)


@pytest.mark.parametrize("kind, head_dim, causal, heads, kv_heads, rows, keys, layout", [
    ("f16", 64, True, 4, 2, 70, 133, "bshd"),
    ("f16", 128, False, 2, 2, 33, 40, "bhsd"),
    ("bf16", 64, False, 2, 1, 130, 65, "bshd"),
    ("bf16", 128, True, 2, 2, 150, 60, "bhsd"),
])
def test_against_autograd(calls, kind, head_dim, causal, heads, kv_heads, rows, keys, layout):
    """Rows and keys that tiles do not divide, grouped heads, and, where rows are more than keys, rows without keys."""
    q, k, v, grad = drawn(kind, heads, kv_heads, rows, keys, head_dim, layout)
    with emulating(_lib.path("kernels", f"l4_{FORWARD[kind]}")):
        found = gradients(q, k, v, grad, causal=causal, layout=layout)
    assert [name for name, *_ in calls] == [f"backward_{kind}_d{head_dim}{('_causal' if head_dim == 64 else '_window') if causal else ''}"]
    assert [t.stride() for t in found] == [t.stride() for t in (q, k, v)]
    assert_right(found, q, k, v, grad, causal, head_dim ** -0.5, layout)


def test_same_bits_whatever_stands_in_memory():
    q, k, v, grad = drawn("f16", 2, 1, 72, 80, 64)
    first, second = (gradients(q, k, v, grad, causal=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_gradients_and_heads_with_strides_of_their_own(calls):
    """A gradient that is expanded, heads that are packed with others, rows of 64 of 72 elements."""
    q, k, v, grad = drawn("f16", 2, 2, 24, 24, 64)
    packed = torch.cat([q, k, v], 2)
    wide = torch.zeros(1, 24, 2, 72, dtype=q.dtype)
    wide[..., 4:68] = q
    grad = grad[:, :1, :1].expand(q.shape)
    wanted = gradients(q, k, v, grad.contiguous())
    found = gradients(packed[:, :, :2], packed[:, :, 2:4], packed[:, :, 4:], grad)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))
    assert_right(gradients(wide[..., 4:68], k, v, grad), q, k, v, grad, False, 64 ** -0.5, "bshd")
    assert len(calls) == 3


def test_scratch_is_bounded(calls, monkeypatch):
    """Launches for some heads at a time, then for some batches; the bits are those of one launch."""
    q, k, v, grad = drawn("f16", 6, 3, 16, 16, 64, batch=2)
    wanted = gradients(q, k, v, grad)
    one = 2 * 2 * 16 * 128  # two heads' dS
    for heads, launches in ((2, [(1, 4), (1, 2)] * 2), (3, [(1, 6)] * 2), (1, [(1, 2)] * 6)):
        monkeypatch.setattr(_gradients, "_MOST_SCRATCH", heads * one)
        calls.clear()
        found = gradients(q, k, v, grad)
        assert all(torch.equal(a, b) for a, b in zip(found, wanted))
        assert [shape[:2] for _, shape, _ in calls] == launches
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", one - 1)  # of a group each head by itself: sums are rounded once more
    calls.clear()
    parts = gradients(q, k, v, grad)
    assert [shape[:2] for _, shape, _ in calls] == [(1, 1)] * 12
    assert torch.equal(parts[0], wanted[0])
    assert_right(parts, q, k, v, grad, False, 64 ** -0.5, "bshd")


@pytest.mark.parametrize("rows, keys, causal, blocks", [
    (200, 300, False, [(128, 128, False), (72, 128, False), (128, 128, False), (72, 128, False), (128, 44, False), (72, 44, False)]),
    (200, 300, True, [(128, 128, True), (72, 128, False), (128, 128, True), (72, 128, True), (72, 44, True)]),
    (300, 140, True, [(128, 128, True), (44, 128, True), (44, 12, True)]),
])
def test_long_sequences_are_taken_in_blocks(calls, monkeypatch, rows, keys, causal, blocks):
    """Each within the scratch; rows that see none of a block's keys are left out."""
    q, k, v, grad = drawn("f16", 2, 1, rows, keys, 64)
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", 2 * 128 * 128)
    found = gradients(q, k, v, grad, causal=causal)
    taken = [(of_q[2], of_k[2], name.endswith("causal")) for name, of_q, of_k in calls for _ in range(of_q[1])]  # of each head
    assert sorted(taken) == sorted(2 * blocks)
    assert_right(found, q, k, v, grad, causal, 64 ** -0.5, "bshd", parts=4)  # two blocks of rows, two heads of a group
    assert all(torch.equal(a, b) for a, b in zip(found, gradients(q, k, v, grad, causal=causal)))


def test_where_no_program_is_pytorch_computes(calls):
    q, k, v, grad = drawn("f16", 2, 2, 16, 16, 264)
    found = gradients(q, k, v, grad, fallback="torch")
    assert not calls
    assert_right(found, q, k, v, grad, False, 264 ** -0.5, "bshd")


INTERVALS = {
    "rows": {"first": torch.tensor([0] * 20 + [20] * 30 + [50] * 200), "last": torch.tensor([19] * 20 + [49] * 30 + [40] * 100 + [249] * 100)},
    "documents": {"first": torch.tensor([[0] * 70 + [70] * 180, [0] * 10 + [10] * 200 + [210] * 40])},
    "same_document": {"document": torch.tensor([[0] * 70 + [3] * 180, [0] * 10 + [1] * 200 + [2] * 40])},
    "prefix": {"prefix": torch.tensor([30, 200])}, "chunked": {"chunk": 60},
}


@pytest.mark.parametrize("form", INTERVALS)
def test_intervals_of_keys(calls, form):
    """Tiles that no row of an interval sees are not visited; a batch may differ from the next."""
    args = {name: t.int() if isinstance(t, torch.Tensor) else t for name, t in INTERVALS[form].items()}
    q, k, v, grad = drawn("f16", 2, 1, 250, 250, 64, batch=2)
    assert_as_form(q, k, v, grad, form, args)
    assert [name for name, *_ in calls] == ["backward_f16_d64_rows"]


def test_alibi(calls):
    q, k, v, grad = drawn("bf16", 4, 2, 60, 130, 128)
    assert_as_form(q, k, v, grad, "alibi", {"slope": torch.tensor([0.5, 0.25, 0.125, 0.0625])})
    assert [name for name, *_ in calls] == ["backward_bf16_d128_alibi"]


@pytest.mark.parametrize("scratch, batch, rows, keys, launches", [(None, 2, 60, 130, 1), (2 * 128 * 128, 1, 200, 300, 9)])
def test_slopes_have_gradients(calls, monkeypatch, scratch, batch, rows, keys, launches):
    """From dS as the program leaves it: as near to float64 as rounding P, dS and O costs; in blocks, too; the same bits twice."""
    if scratch:
        monkeypatch.setattr(_gradients, "_MOST_SCRATCH", scratch)
    q, k, v, grad = drawn("f16", 2, 1, rows, keys, 64, batch=batch)
    slope = torch.tensor([0.05, -0.02], requires_grad=True)
    inputs = [*(t.detach().requires_grad_() for t in (q, k, v)), slope]
    found, again = (torch.autograd.grad(form_attention(inputs[:3], "alibi", {"slope": slope})[0], inputs, grad) for _ in range(2))
    wide = [*(t.detach().double().transpose(1, 2).requires_grad_() for t in (q, k, v)), slope.detach().double().requires_grad_()]
    way = torch.arange(keys) - torch.arange(rows)[:, None] - (keys - rows)
    scores = wide[0] @ wide[1].repeat_interleave(2, 1).transpose(-1, -2) * 0.125 + wide[3][:, None, None] * way
    weights = scores.masked_fill(way > 0, -torch.inf).softmax(-1)
    weights.retain_grad()
    wanted = torch.autograd.grad(weights @ wide[2].repeat_interleave(2, 1), (wide[3], weights), grad.double().transpose(1, 2))
    terms = weights * (wanted[1] - (wanted[1] * weights).sum(-1, keepdim=True)) * way
    allowed = torch.finfo(q.dtype).eps * terms.square().sum((0, 2, 3)).sqrt()  # of terms that are rounded each for itself
    assert ((found[3] - wanted[0]).abs() <= allowed).all() and (allowed < 0.05 * wanted[0].abs()).all()
    assert all(map(torch.equal, found, again)) and len(calls) == 2 * launches


@pytest.mark.parametrize("form, args", [("alibi", {"slope": torch.tensor([0.05])}), ("documents", {"first": torch.tensor([[0] * 130 + [130] * 170]).int()})])
def test_forms_in_blocks(calls, monkeypatch, form, args):
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", 2 * 128 * 128)
    q, k, v, grad = drawn("f16", 1, 1, 200, 300, 64)
    assert_as_form(q, k, v, grad, form, args, parts=4)
    assert len(calls) > 3


def assert_as_form(q, k, v, grad, form, args, parts=0):
    """As near to the gradients of float32 of the form's own programs as rounding P, dS, O and results costs."""
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    found = torch.autograd.grad(form_attention(inputs, form, args)[0], inputs, grad)
    wide = [t.detach().float().requires_grad_() for t in (q, k, v)]
    programs = _forms_by_torch.find(_kernels.ready()._directories, form, tuple(args))
    attention = _forms_by_torch.Attention(programs, args, *wide, 0.125, True)
    wanted = torch.autograd.grad(attention.step(0, q.shape[1], *wide, args)[0].transpose(1, 2), wide, grad.float())
    for ours, exact_one in zip(found, wanted):
        assert (ours - exact_one).abs().max() <= (6 + parts) * torch.finfo(q.dtype).eps * exact_one.abs().max()


def test_fewer_columns_of_v(calls):
    q, k, v, grad = drawn("f16", 2, 1, 50, 70, 192)
    v, grad = v[..., :128], grad[..., :128]
    found = by_programs(q, k, v, grad, 0.1, _forms.Scores(right=0))
    assert_right(found, q, k, v, grad, True, 0.1, "bshd")
    assert [t.shape[-1] for t in found] == [192, 192, 128] and [name for name, *_ in calls] == ["backward_f16_d192_window"]


def by_programs(q, k, v, grad, scale, scores, **options):
    """Gradients from O and LSE of float64, rounded."""
    o, lse, *_ = exact(*(t.transpose(1, 2) for t in (q, k, v)), scores[:2], scale, scores.cap)
    return _gradients.backward(grad, q, k, v, o.transpose(1, 2).to(q.dtype), lse.float(), scale, None, True, scores=scores, **options)


@pytest.mark.parametrize("capability, kind, head_dim, heads, kv_heads, rows, keys, window, cap", [
    (89, "f16", 64, 4, 2, 70, 133, (-1, 0), 0.0),
    (86, "bf16", 128, 2, 1, 33, 40, (-1, -1), 0.0),
    (80, "f16", 80, 2, 2, 150, 60, (-1, 0), 0.0),
    (80, "bf16", 128, 2, 2, 140, 400, (70, 5), 2.0),
    (86, "bf16", 128, 2, 2, 140, 270, (70, 5), 2.0),
    (120, "f16", 256, 1, 1, 72, 66, (-1, 0), 0.0),
])
def test_gpus_without_wgmma(calls, monkeypatch, capability, kind, head_dim, heads, kv_heads, rows, keys, window, cap):
    """Their programs are made of another text."""
    monkeypatch.setattr(_gradients, "_text_when_emulated", "_sync")
    _torch_programs.set_emulator(emulate(LIBRARY, capability))
    q, k, v, grad = drawn(kind, heads, kv_heads, rows, keys, head_dim)
    found = by_programs(q, k, v, grad, head_dim ** -0.5, _forms.Scores(*window, cap))
    assert [name.split("_d")[0] for name, *_ in calls] == [f"backward_sync_{kind}"]
    assert_right(found, q, k, v, grad, False, head_dim ** -0.5, "bshd", window=window, cap=cap)


def test_which_text_a_gpu_gets(monkeypatch):
    for capability, text in (((7, 5), None), ((8, 0), "_sync"), ((8, 9), "_sync"), ((9, 0), ""), ((10, 0), "_sync"), ((12, 0), "_sync")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert _gradients._text_for(torch.device("cuda", 0)) == text


@pytest.mark.parametrize("kind, head_dim, rows, keys, causal", [
    ("f16", 96, 40, 133, True), ("bf16", 192, 70, 40, False), ("bf16", 192, 140, 70, True), ("f16", 256, 72, 66, True), ("f16", 72, 40, 30, True),
])
def test_head_dims(calls, kind, head_dim, rows, keys, causal):
    """Others are computed as wider ones."""
    q, k, v, grad = drawn(kind, 2, 1, rows, keys, head_dim)
    found = by_programs(q, k, v, grad, head_dim ** -0.5, _forms.Scores(right=0 if causal else -1))
    assert_right(found, q, k, v, grad, causal, head_dim ** -0.5, "bshd")
    assert [name for name, *_ in calls] == [f"backward_{kind}_d{max(head_dim, 96)}" + ("_window" if causal else "")]


def test_gradient_through_lse(calls):
    """Rows without keys have an LSE of -inf, whose gradient is of no effect, even where it is NaN."""
    q, k, v, grad = drawn("f16", 4, 2, 90, 70, 64)
    of_lse = torch.randn(1, 4, 90, generator=torch.Generator().manual_seed(1))
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    outputs = fagen.attention(*inputs, causal=True, return_lse=True)
    found = torch.autograd.grad(outputs, inputs, (grad, of_lse.masked_fill(outputs[1] == -torch.inf, torch.nan)), retain_graph=True)
    assert_right(found, q, k, v, grad, True, 64 ** -0.5, "bshd", grad_lse=of_lse.double())
    alone = torch.autograd.grad(outputs[1], inputs, of_lse)
    assert_right(alone, q, k, v, torch.zeros_like(grad), True, 64 ** -0.5, "bshd", grad_lse=of_lse.double())
    assert len(calls) == 2


@pytest.mark.parametrize("rows, keys, window", [
    (70, 133, (20, 0)), (133, 70, (3, 40)), (300, 300, (100, -1)), (40, 300, (-1, 20)), (300, 20, (0, 0)), (130, 260, (1000, 1000)),
])
def test_windows(calls, rows, keys, window):
    q, k, v, grad = drawn("f16", 2, 1, rows, keys, 64)
    found = by_programs(q, k, v, grad, 0.125, _forms.Scores(*window))
    assert_right(found, q, k, v, grad, False, 0.125, "bshd", window=window)
    assert [name for name, *_ in calls] == ["backward_f16_d64" + ("" if window[0] == 1000 else "_causal" if window[0] < 0 else "_window")]


@pytest.mark.parametrize("head_dim, rows, keys, window, cap", [(64, 70, 133, (-1, 0), 1.5), (128, 133, 70, (20, 3), 3.0), (192, 40, 40, (-1, -1), 1.0)])
def test_softcap(calls, head_dim, rows, keys, window, cap):
    q, k, v, grad = drawn("bf16", 2, 1, rows, keys, head_dim)
    found = by_programs(q, k, v, grad, 0.2, _forms.Scores(*window, cap=cap))
    assert_right(found, q, k, v, grad, False, 0.2, "bshd", window=window, cap=cap)
    assert [name for name, *_ in calls] == [f"backward_bf16_d{head_dim}_softcap"]


@pytest.mark.parametrize("window", [(-1, -1), (30, 20), (-1, 0)])
def test_windows_in_blocks(calls, monkeypatch, window):
    """Of long sequences bounds move from block to block, and blocks that no row sees are left out."""
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", 2 * 128 * 128)
    q, k, v, grad = drawn("f16", 1, 1, 300, 400, 64)
    found = by_programs(q, k, v, grad, 0.125, _forms.Scores(*window))
    assert_right(found, q, k, v, grad, False, 0.125, "bshd", parts=4, window=window)
    assert len(calls) == {(-1, -1): 12, (30, 20): 6, (-1, 0): 9}[window]


@pytest.mark.parametrize("form, args, options", [
    ("window", {"window": 20}, {"window": (19, 0)}), ("local", {"left": 9, "right": 30}, {"window": (9, 30)}),
    ("softcap", {"cap": 2.0}, {"window": (-1, 0), "cap": 2.0}), ("gemma2", {"cap": 2.0, "window": 25}, {"window": (24, 0), "cap": 2.0}),
])
def test_forms_of_the_package(calls, form, args, options):
    """By programs, from what a form's own programs in PyTorch give for O and LSE here; LSE's gradient too."""
    q, k, v, grad = drawn("f16", 2, 1, 60, 80, 64)
    of_lse = torch.randn(1, 2, 60, generator=torch.Generator().manual_seed(2))
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    outputs = form_attention(inputs, form, args)
    found = torch.autograd.grad(outputs, inputs, (grad, of_lse))
    assert_right(found, q, k, v, grad, False, 0.125, "bshd", grad_lse=of_lse.double(), **options)
    assert len(calls) == 1


def form_attention(inputs, form, args, by_programs=True):
    """attend_form()'s way to a gradient, with a forward by PyTorch: the emulator of these tests runs programs alone."""
    programs = _forms_by_torch.find(_kernels.ready()._directories, form, tuple(args))
    attention = _forms_by_torch.Attention(programs, args, *inputs, 0.125, True)
    return _forms_by_torch.with_gradient(attention, lambda q, k, v, args: attention.forward(q, k, v), *inputs, form if by_programs else None)


@pytest.mark.parametrize("form, args, by_programs", [("softcap", {"cap": 2.0}, True), ("temperature", {"factor": torch.tensor([0.5, 2.0])}, False)])
def test_forms_have_no_second_gradient(form, args, by_programs):
    """It would be left out silently."""
    q, k, v, grad = drawn("f16", 2, 1, 20, 30, 64)
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    with pytest.raises(fagen.Error, match="no second gradient"):
        torch.autograd.grad(form_attention(inputs, form, args, by_programs)[0], inputs, grad, create_graph=True)


@pytest.mark.parametrize("form, window", [("sink", -1), ("gpt_oss", 20)])
def test_sinks_have_gradients(calls, form, window):
    q, k, v, grad = drawn("f16", 4, 2, 60, 50, 64)
    sinks = torch.tensor([-1.0, 0.0, 1.0, 3.0])
    args = {"sinks": sinks.requires_grad_(), **({"window": window} if window > 0 else {})}
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    *found, of_sinks = torch.autograd.grad(form_attention(inputs, form, args)[0], [*inputs, sinks], grad)
    bounds = window - 1 if window > 0 else -1, 0
    assert_right(found, q, k, v, grad, False, 0.125, "bshd", window=bounds, sinks=sinks.detach())
    exact_sinks = sinks.detach().double().requires_grad_()
    o, *_ = exact(*(t.transpose(1, 2).double() for t in (q, k, v)), bounds, 0.125, sinks=exact_sinks)
    wanted, = torch.autograd.grad(o, exact_sinks, grad.transpose(1, 2).double())
    assert torch.allclose(of_sinks.double(), wanted, rtol=1e-2, atol=1e-2)
    assert len(calls) == 1


def test_tensors_of_other_kinds_have_gradients_of_their_own():
    class Other(torch.Tensor):
        pass
    q, k, v, _ = drawn("f16", 2, 2, 16, 16, 64)
    assert _gradients.has_program(q, k, v, True)
    assert not _gradients.has_program(q.as_subclass(Other), k, v, True)


def test_compiled_graphs_have_them_whole(calls):
    q, k, v, grad = drawn("f16", 2, 1, 24, 40, 64)
    attend = torch.compile(lambda q, k, v: fagen.attention(q, k, v, causal=True), fullgraph=True, backend="aot_eager")
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    found = torch.autograd.grad(attend(*inputs), inputs, grad)
    assert all(torch.equal(a, b) for a, b in zip(found, gradients(q, k, v, grad, causal=True)))
    assert len(calls) == 2


def test_sdpa_has_them(calls):
    """The operator that activate() puts in the place of PyTorch's; what it does not take goes on to that."""
    q, k, v, grad = drawn("f16", 2, 1, 40, 40, 64, "bhsd")
    o, lse = reference(q, k, v, True, layout="bhsd")

    class Saved:
        def call_boxed(self, keyset, *arguments, **keywords):
            return "saved"
    backward = _sdpa.flash_backward(Saved())
    rest = (o.half(), lse.float(), None, None, 40, 40)
    found = backward(None, grad, q, k, v, *rest, 0.0, True, None, None)
    assert_right(found, q, k, v, grad, True, 64 ** -0.5, "bhsd")
    assert backward(None, grad, q, k, v, *rest, 0.5, True, None, None) == "saved"
    assert backward(None, grad, q, k[:, :, :30], v[:, :, :30], *rest, 0.0, True, None, None) == "saved"
    assert len(calls) == 1


def test_who_computes_plain_gradients_of_other_gpus(monkeypatch):
    """PyTorch's flash attention where it is faster, programs where bits have to repeat."""
    capability = [(8, 6)]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability[0])
    assert _gradients.is_slower(torch.device("cuda", 0))
    torch.use_deterministic_algorithms(True)
    try:
        assert not _gradients.is_slower(torch.device("cuda", 0))
    finally:
        torch.use_deterministic_algorithms(False)
    capability[0] = (9, 0)
    assert not _gradients.is_slower(torch.device("cuda", 0)) and not _gradients.is_slower(torch.device("cpu"))


def torch_of(q, k, v, bias, seen=None):
    """O [batch, rows, heads, columns] in float64, of q, k and v laid out so."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).transpose(-1, -2) * 0.125 + bias
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    return (_by_torch.softmax(scores)[0] @ v.repeat_interleave(group, 1)).transpose(1, 2)


@pytest.mark.parametrize("text, shape, scratch, hidden", [
    ("", (2, 2, 40, 70), None, False), ("", (1, 2, 40, 70), 2 * 2 * 70 * 128, True), ("", (2, 1, 70), None, False),
    ("", (2, 1, 40, 1), None, True), ("_sync", (2, 2, 40, 70), None, True), ("_sync", (40, 70), 70 * 128 * 2, False),
])
def test_biases_have_gradients(calls, monkeypatch, text, shape, scratch, hidden):
    """dS, summed over what is repeated, as near to float64 as rounding P, dS and O costs; the same bits twice. With a mask rows see no key."""
    monkeypatch.setattr(_gradients, "_text_when_emulated", text)
    _torch_programs.set_emulator(emulate(LIBRARY, 80 if text else 90))
    if scratch:
        monkeypatch.setattr(_gradients, "_MOST_SCRATCH", scratch)
    q, k, v, grad = drawn("f16", 2, 1, 40, 70, 64, batch=2)
    draw = torch.Generator().manual_seed(3)
    args = {"bias": torch.randn(shape, generator=draw).requires_grad_()}
    if hidden:
        args["visible"] = torch.randint(0, 3, (2, 1, 40, 70), generator=draw, dtype=torch.uint8)
        args["visible"][0, :, 17] = 0
    inputs = [*(t.detach().requires_grad_() for t in (q, k, v)), args["bias"]]
    found, again = (torch.autograd.grad(form_attention(inputs[:3], "_".join(args), args)[0], inputs, grad) for _ in range(2))
    wide = [t.detach().double().requires_grad_() for t in inputs]
    wanted = torch.autograd.grad(torch_of(*wide, args["visible"] != 0 if hidden else None), wide, grad.double())
    assert found[3].shape == shape and all(map(torch.equal, found, again))
    assert {name for name, *_ in calls} == {f"backward{text}_f16_d64_bias"} and (len(calls) > 2) == bool(scratch)
    for ours, exact_one in zip(found[:3], wanted):
        assert (ours - exact_one).abs().max() <= 6 * torch.finfo(q.dtype).eps * exact_one.abs().max()
    terms = (2 * 2 * 40 * 70 / found[3].numel()) ** 0.5  # that are rounded each for itself
    assert (found[3] - wanted[3]).abs().max() <= terms * torch.finfo(q.dtype).eps * wanted_of_terms(wide, grad, args).abs().max()
    if shape[-1] > 1:  # what all keys of a row have in common has no gradient
        assert (found[3] - wanted[3]).abs().max() <= 0.02 * wanted[3].abs().max()


def wanted_of_terms(wide, grad, args):
    """dS of each batch, head, row and key."""
    bias = wide[3].detach().expand(2, 2, 40, 70).clone().requires_grad_()
    seen = args["visible"] != 0 if "visible" in args else None
    return torch.autograd.grad(torch_of(*(t.detach() for t in wide[:3]), bias, seen), bias, grad.double())[0]


def test_bias_in_blocks(calls, monkeypatch):
    monkeypatch.setattr(_gradients, "_MOST_SCRATCH", 2 * 128 * 128)
    q, k, v, grad = drawn("bf16", 2, 1, 200, 300, 64)
    bias = torch.randn(2, 200, 300, generator=torch.Generator().manual_seed(4)).requires_grad_()
    inputs = [*(t.detach().requires_grad_() for t in (q, k, v)), bias]
    found = torch.autograd.grad(form_attention(inputs[:3], "bias", {"bias": bias})[0], inputs, grad)
    wide = [t.detach().double().requires_grad_() for t in inputs]
    wanted = torch.autograd.grad(torch_of(*wide), wide, grad.double())
    assert len(calls) > 5
    for ours, exact_one in zip(found, wanted):
        assert (ours - exact_one).abs().max() <= 10 * torch.finfo(q.dtype).eps * exact_one.abs().max()


@pytest.mark.parametrize("hidden, launches", [(-1e4, 0), (-1e9, 0), (torch.finfo(torch.float32).min, 0), (-30.0, 1)])
def test_rows_whose_keys_all_have_large_biases(calls, hidden, launches):
    """Of these LSE has lost the logarithm of the sum: PyTorch computes anew. Single keys with such biases have no weight."""
    q, k, v, grad = drawn("f16", 1, 1, 40, 50, 64)
    bias = torch.zeros(40, 50)
    bias[:, 3] = torch.finfo(torch.float32).min
    bias[5] = hidden
    inputs = [*(t.detach().requires_grad_() for t in (q, k, v)), bias.requires_grad_()]
    found = torch.autograd.grad(form_attention(inputs[:3], "bias", {"bias": bias})[0], inputs, grad)
    assert len(calls) == launches and all(t.isfinite().all() for t in found)
    wide = [t.detach().float().requires_grad_() for t in inputs]
    programs = _forms_by_torch.find(_kernels.ready()._directories, "bias", ("bias",))
    attention = _forms_by_torch.Attention(programs, {"bias": wide[3]}, *wide[:3], 0.125, True)
    wanted = torch.autograd.grad(attention.step(0, 40, *wide[:3], {"bias": wide[3]})[0].transpose(1, 2), wide, grad.float())
    for ours, exact_one in zip(found, wanted):
        assert (ours - exact_one).abs().max() <= 6 * torch.finfo(q.dtype).eps * exact_one.abs().max()


def test_masks_by_element(calls):
    q, k, v, grad = drawn("bf16", 2, 1, 60, 130, 128)
    visible = torch.randint(0, 2, (1, 2, 60, 130), generator=torch.Generator().manual_seed(5), dtype=torch.uint8)
    assert_as_form(q, k, v, grad, "visible", {"visible": visible})
    assert [name for name, *_ in calls] == ["backward_bf16_d128_bias"]
