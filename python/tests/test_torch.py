# fagen: the operators and fagen.attention on CPU tensors: values, strides, gradients, schemas, graphs, refusals.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import fagen
import fagen.torch
from torch_emulated import assert_near, reference, tensors, use_emulator

emulated = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")


@emulated
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(40, 40), (1, 70), (33, 80), (50, 20)])
def test_values(layout, causal, lengths):
    q, k, v = tensors(seq_q=lengths[0], seq_kv=lengths[1], layout=layout)
    o, lse = fagen.attention(q, k, v, causal=causal, layout=layout, return_lse=True)
    wanted, sums = reference(q, k, v, causal, layout=layout)
    assert_near(o, wanted)
    torch.testing.assert_close(lse.double(), sums, atol=1e-3, rtol=1e-3)


@emulated
def test_scale_and_no_lse():
    q, k, v = tensors()
    assert_near(fagen.attention(q, k, v, scale=0.05), reference(q, k, v, scale=0.05)[0])


@emulated
def test_strides_are_taken_as_they_are():
    q, k, v = tensors(seq_q=24, seq_kv=24)
    packed = torch.cat([q, k, v], dim=2)  # [batch, seq, heads + 2 * kv_heads, head_dim]
    views = packed.split([q.shape[2], k.shape[2], v.shape[2]], dim=2)
    assert not views[1].is_contiguous()
    assert_near(fagen.attention(*views), reference(q, k, v)[0])


@emulated
def test_expanded_and_transposed_tensors():
    q, k, v = tensors(batch=2, seq_q=24, seq_kv=24)
    one = k[:1, :1, :1].expand_as(k)  # every stride but the last is 0
    assert_near(fagen.attention(q, one, v), reference(q, one, v)[0])
    columns = v.transpose(1, 3).contiguous().transpose(1, 3)  # its last stride is not 1
    assert_near(fagen.attention(q, k, columns), reference(q, k, v)[0])


@emulated
def test_out():
    q, k, v = tensors()
    out = torch.empty_like(q)
    given, lse = fagen.attention(q, k, v, out=out, return_lse=True)
    assert given.data_ptr() == out.data_ptr()
    assert_near(out, reference(q, k, v)[0])
    torch.testing.assert_close(lse.double(), reference(q, k, v)[1], atol=1e-3, rtol=1e-3)


@emulated
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_gradients(causal, kv_heads):
    inputs = [t.requires_grad_() for t in tensors(kv_heads=kv_heads)]
    grad = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(1))
    fagen.attention(*inputs, causal=causal).backward(grad.half())
    ours = [t.grad for t in inputs]
    exact = [t.detach().double().requires_grad_() for t in inputs]
    reference(*exact, causal)[0].backward(grad.double())
    for got, wanted in zip(ours, exact):
        torch.testing.assert_close(got.double(), wanted.grad, atol=6e-3, rtol=6e-3)


@emulated
@pytest.mark.parametrize("lengths", [(8, 40), (40, 8)])
def test_gradients_of_causal_problems_of_unequal_lengths(lengths):
    inputs = [t.requires_grad_() for t in tensors(seq_q=lengths[0], seq_kv=lengths[1])]
    fagen.attention(*inputs, causal=True).sum().backward()
    exact = [t.detach().double().requires_grad_() for t in inputs]
    wanted = reference(*exact, True)[0]
    wanted.sum().backward()
    for got, one in zip(inputs, exact):
        torch.testing.assert_close(got.grad.double(), one.grad.nan_to_num(), atol=6e-3, rtol=6e-3)


@emulated
@pytest.mark.parametrize("of", ["both", "lse", "o"])
def test_gradients_through_lse(of):
    inputs = [t.requires_grad_() for t in tensors()]
    exact = [t.detach().double().requires_grad_() for t in inputs]
    for tensors_, compute in ((inputs, fagen.attention), (exact, reference)):
        results = compute(*tensors_, return_lse=True) if compute is fagen.attention else compute(*tensors_)
        total = (results[0].double() ** 2).sum() * (of != "lse") + (results[1].double() ** 2).sum() * (of != "o")
        total.backward()
    for got, one in zip(inputs, exact):
        torch.testing.assert_close(got.grad.double(), one.grad, atol=2e-2, rtol=1e-2)


def test_fallbacks_with_rows_without_keys_have_gradients():
    from fagen import _by_torch
    for keys, lse in ((8, False), (8, True), (0, True)):
        inputs = [t.float().requires_grad_() for t in tensors(seq_q=40, seq_kv=keys)]
        o, sums = _by_torch.attention(*inputs, scale=0.125, causal=True, lse=lse)
        (o.sum() + (sums[:, :, 32:].sum() if lse else 0)).backward()
        wanted = reference(*(t.detach() for t in inputs), True)
        assert_near(o, wanted[0])
        assert all(torch.isfinite(t.grad).all() for t in inputs)


@emulated
def test_no_gradient_is_silently_missing():
    q, k, v = (t.requires_grad_() for t in tensors())
    with pytest.raises(fagen.Error, match="out= takes no part in gradients"):
        fagen.attention(q, k, v, out=torch.empty_like(q))
    with torch.no_grad():
        assert not fagen.attention(q, k, v).requires_grad
    assert fagen.attention(q, k.detach(), v.detach()).requires_grad


@emulated
@pytest.mark.parametrize("lse", [False, True])
def test_opcheck(lse):
    q, k, v = tensors(seq_q=16, seq_kv=16)
    arguments = (q, k, v, 0.125, True, True, lse, fagen.torch._READY)
    torch.library.opcheck(torch.ops.fagen.attention.default, arguments, test_utils=("test_schema", "test_faketensor"))
    out, sums = torch.empty_like(q), torch.empty((1, 4, 16) if lse else (0,), dtype=torch.float32)
    with torch.no_grad():
        torch.library.opcheck(torch.ops.fagen.attention_out.default, (q, k, v, out, sums, 0.125, True, True, fagen.torch._READY),
                              test_utils=("test_schema", "test_faketensor"))
        for forward in (torch.ops.fagen._forward.default, torch.ops.fagen._forward_lse.default):
            torch.library.opcheck(forward, (q, k, v, 0.125, True, True, fagen.torch._READY),
                                  test_utils=("test_schema", "test_faketensor"))


@emulated
def test_a_direct_call_has_gradients():
    """By LSE, without it, and through it."""
    for lse, of in ((True, 0), (False, 0), (True, 1)):
        inputs = [t.requires_grad_() for t in tensors()]
        torch.ops.fagen.attention(*inputs, None, True, True, lse, fagen.torch._READY)[of].double().sum().backward()
        exact = [t.detach().double().requires_grad_() for t in inputs]
        reference(*exact, True)[of].sum().backward()
        for got, wanted in zip(inputs, exact):
            torch.testing.assert_close(got.grad.double(), wanted.grad if wanted.grad is not None else torch.zeros_like(wanted),
                                       atol=2e-2, rtol=1e-2)


@pytest.mark.parametrize("kind", [torch.Tensor, "fake"])
def test_operators_without_gradients_say_so(kind):
    from torch._subclasses.fake_tensor import FakeTensorMode
    inputs = [t.requires_grad_() for t in tensors()]
    out, none, ops = torch.empty_like(inputs[0]), torch.empty(0), torch.ops.fagen
    calls = (lambda q, k, v, o, n: ops.attention_out(q, k, v, o, n, 0.1, True, True, 0),
             lambda q, k, v, o, n: ops._forward(q, k, v, 0.1, True, True, 0),
             lambda q, k, v, o, n: ops._forward_lse(q, k, v, 0.1, True, True, 0))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = [*inputs, out, none] if kind is torch.Tensor else [mode.from_tensor(t) for t in (*inputs, out, none)]
    for call in calls:
        with pytest.raises((fagen.Error, RuntimeError), match="has no gradient: call it under torch.no_grad"):
            call(*given)


@emulated
def test_a_second_gradient_is_refused():
    q, k, v = (t.requires_grad_() for t in tensors())
    for result in fagen.attention(q, k, v, return_lse=True):
        with pytest.raises(fagen.Error, match="no second gradient"):
            torch.autograd.grad(result.sum(), q, create_graph=True)


@emulated
def test_calls_of_one_shape_differ_in_all_else():
    """What is remembered of a call is not taken for one with other options, strides, types or addresses."""
    q, k, v = tensors(heads=2, kv_heads=2, seq_q=32, seq_kv=32)
    packed, wide = torch.empty_like(q), torch.empty(1, 32, 4, 64).half()[:, :, :2]
    off = torch.empty(q.numel() + 1).half()[1:].view(q.shape).copy_(q)  # at an odd address
    for _ in range(2):
        for causal, scale in ((False, None), (True, None), (True, 0.3), (False, 0.0)):
            wanted = reference(q, k, v, causal, scale)[0]
            assert_near(fagen.attention(q, k, v, causal=causal, scale=scale), wanted)
            for one in (off, q.transpose(1, 2).contiguous().transpose(1, 2)):
                assert_near(fagen.attention(one, k, v, causal=causal, scale=scale), wanted)
            for out in (packed, wide):
                assert_near(fagen.attention(q, k, v, causal=causal, scale=scale, out=out), wanted)
            assert_near(fagen.attention(q, k, v, causal=causal, scale=scale, layout="bhsd"),
                        reference(q, k, v, causal, scale, "bhsd")[0])
        with pytest.raises(fagen.Unsupported, match="float16"):
            fagen.attention(q.int(), k.int(), v.int())
        with pytest.raises(fagen.Error, match="k is of torch.bfloat16, and q of torch.float16"):
            fagen.attention(q, k.bfloat16(), v)


@emulated
def test_repeated_calls_need_no_dispatcher(monkeypatch):
    q, k, v = tensors()
    p, out = fagen.plan(q, k, v, causal=True), torch.empty_like(q)
    wanted, first = reference(q, k, v, True)[0], fagen.attention(q, k, v, causal=True)
    sums = fagen.attention(q, k, v, causal=True, return_lse=True)[1]
    for name in ("_forward", "_forward_lse", "_attention_out", "_planned"):
        monkeypatch.setattr(fagen.torch, name, None)
    again = [t.clone() for t in (q, k, v)]
    fagen.stats(reset=True)
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        with mode():
            made = fagen.attention(*again, causal=True)
            assert torch.equal(made, first) and made.is_contiguous() and made.is_inference() == (mode is torch.inference_mode)
            assert fagen.attention(*again, causal=True, out=out.zero_()) is out and torch.equal(out, first)
            o, lse = fagen.attention(*again, causal=True, return_lse=True)
            assert torch.equal(o, first) and torch.equal(lse, sums)
            assert p(*again, out.zero_()) is out and torch.equal(out, first)
    assert fagen.stats(reset=True)["computed"] == {"attention": 9} and fagen.stats()["computed"] == {}
    assert_near(first, wanted)
    with pytest.raises(TypeError):  # another problem
        fagen.attention(q[:, :8], k, v, causal=True)


@emulated
def test_dependent_launches_are_other_calls(monkeypatch):
    """What is remembered of a call is not taken for one that asks for dependent launches; results are the same."""
    q, k, v = tensors(seq_q=48)
    first = fagen.attention(q, k, v)
    try:
        fagen.torch.enable_pdl()
        with monkeypatch.context() as without:
            without.setattr(fagen.torch, "_forward", None)
            with pytest.raises(TypeError):  # it is not remembered
                fagen.attention(q, k, v)
        assert torch.equal(fagen.attention(q, k, v), first)
    finally:
        fagen.torch.enable_pdl(False)
    monkeypatch.setattr(fagen.torch, "_forward", None)
    assert torch.equal(fagen.attention(q, k, v), first)


class Recorded(TorchDispatchMode):
    """The names of fagen's operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "fagen":
            self.names.append(function.name())
        return function(*args, **(kwargs or {}))


def test_without_memory():
    q, k, v = tensors()
    with pytest.raises(torch.OutOfMemoryError, match="PyTorch has no memory for"):
        fagen.attention(q[:, :1].expand(-1, 2 ** 42, -1, -1), k, v)


@pytest.fixture
def gpu_of_the_emulator(monkeypatch):
    """Graphs and padding ask for its kernels."""
    monkeypatch.setattr(fagen.torch, "_capability", lambda ordinal: 89)
    fagen.stats(reset=True)


@emulated
@pytest.mark.parametrize("head_dim, width", [(40, 64), (80, 128), (16, 64)])
@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_head_dims_that_no_kernel_has_are_padded(gpu_of_the_emulator, monkeypatch, head_dim, width, layout):
    monkeypatch.setattr(fagen.torch, "_WIDTHS", (64, 128))  # what the emulator is given
    q, k, v = tensors(head_dim=head_dim, layout=layout)
    for scale in (None, 0.3):
        wanted, sums = reference(q, k, v, True, scale, layout)
        o, lse = fagen.attention(q, k, v, causal=True, scale=scale, layout=layout, return_lse=True)
        assert o.shape == q.shape
        assert_near(o, wanted)
        torch.testing.assert_close(lse.double(), sums, atol=1e-3, rtol=1e-3)
        out = torch.empty_like(q)
        assert fagen.attention(q, k, v, causal=True, scale=scale, layout=layout, out=out) is out
        assert_near(out, wanted)
    stats = fagen.stats(reset=True)
    assert stats["padded"] == {("attention", f"head_dim {head_dim} as {width}"): 4} and not stats["fallbacks"]
    assert not fagen.stats()["padded"]
    inputs = [t.requires_grad_() for t in (q, k, v)]
    fagen.attention(*inputs, causal=True, layout=layout).sum().backward()
    exact = [t.detach().double().requires_grad_() for t in inputs]
    reference(*exact, True, layout=layout)[0].sum().backward()
    for got, one in zip(inputs, exact):
        torch.testing.assert_close(got.grad.double(), one.grad, atol=1e-2, rtol=1e-2)


@emulated
@pytest.mark.parametrize("dynamic", [False, True])
def test_graphs_pad_head_dims(gpu_of_the_emulator, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: fagen.attention(q, k, v, causal=True), backend="aot_eager", fullgraph=True,
                             dynamic=dynamic)
    q, k, v = tensors(head_dim=40)
    assert_near(compiled(q, k, v), reference(q, k, v, True)[0])


@emulated
def test_nothing_is_padded_where_pytorch_may_compute(gpu_of_the_emulator):
    q, k, v = tensors(head_dim=40)
    assert_near(fagen.attention(q, k, v, causal=True, fallback="torch"), reference(q, k, v, True)[0])
    assert fagen.stats()["padded"] == {} and len(fagen.stats()["fallbacks"]) == 1
    with pytest.raises(fagen.Unsupported, match="head_dim 40"):
        fagen.torch.attend("a function", q, k, v, causal=True, has_other_way=True)


@emulated
def test_what_is_not_padded(gpu_of_the_emulator):
    q, k, v = tensors(head_dim=40)
    for wrong, say in (((q, tensors(head_dim=48)[1], v), "q has head_dim 40, k 48"), ((q[0], k, v), "q has 3 dimensions; it takes 4")):
        with pytest.raises(fagen.Error, match=say):
            fagen.attention(*wrong)
    with pytest.raises(fagen.Error, match=r"out is torch.float16 of \(2, 40, 4, 40\).*it is torch.float16 of \(1, 40, 4, 40\)"):
        fagen.attention(q, k, v, out=torch.empty(2, *q.shape[1:], dtype=q.dtype))
    wide = tensors(head_dim=288)
    with pytest.raises(fagen.Unsupported, match="head_dim 288"):
        fagen.attention(*wide)


class Called(TorchFunctionMode):
    """The functions that are called."""

    def __init__(self):
        super().__init__()
        self.functions = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.functions.append(function)
        return function(*args, **(kwargs or {}))


@emulated
def test_tracing_sees_the_operators():
    q, k, v = tensors()
    with torch.no_grad():
        fagen.attention(q, k, v)
        traced = torch.jit.trace(lambda q, k, v: fagen.attention(q, k, v), (q, k, v))
        assert "fagen::_forward" in str(traced.graph)
        other = tensors(seed=1)
        assert_near(traced(*other), reference(*other)[0])


@emulated
def test_transforms_of_functorch_see_the_operators():
    q, k, v = (torch.stack([one, two]) for one, two in zip(tensors(), tensors(seed=1)))
    with torch.no_grad():
        alone = [fagen.attention(q[i], k[i], v[i]) for i in range(2)]
        together = torch.vmap(lambda q, k, v: fagen.attention(q, k, v))(q, k, v)
    assert torch.equal(together, torch.stack(alone))


@emulated
def test_what_is_learned_of_a_thread_holds_for_it_alone():
    """A mode of one thread is none of another's."""
    q, k, v = tensors()
    first, found = fagen.attention(q, k, v), []
    with Recorded() as seen:
        thread = threading.Thread(target=lambda: found.extend(fagen.attention(q, k, v) for _ in range(2)))
        thread.start()
        thread.join()
        assert seen.names == [] and all(torch.equal(one, first) for one in found)
        fagen.attention(q, k, v)
        assert seen.names == ["fagen::_forward"]


@emulated
def test_modes_and_the_profiler_see_the_operators():
    q, k, v = tensors()
    p, out = fagen.plan(q, k, v), torch.empty_like(q)
    wanted = fagen.attention(q, k, v)
    with Recorded() as seen:
        assert torch.equal(fagen.attention(q, k, v), wanted) and torch.equal(p(q, k, v, out), wanted)
    assert seen.names == ["fagen::_forward", "fagen::_planned"]
    with Called() as called:
        fagen.attention(q, k, v)
    assert torch.ops.fagen._forward.default in called.functions
    with torch.profiler.profile() as profile:
        fagen.attention(q, k, v)
    assert "fagen::_forward" in {event.name for event in profile.events()}


class Subclass(torch.Tensor):
    pass


@emulated
@pytest.mark.parametrize("change", [torch._neg_view, lambda t: t.as_subclass(Subclass), torch.nn.Parameter])
def test_tensors_that_are_more_than_memory(change):
    """They have the memory of tensors of which the kernel is known."""
    q, k, v = tensors()
    with torch.no_grad():
        p, out = fagen.plan(q, k, v), torch.empty_like(q)
        fagen.attention(q, k, v)
        changed = change(q)
        wanted = reference(changed.resolve_neg(), k, v)[0]
        assert_near(fagen.attention(changed, k, v), wanted)
        assert_near(p(changed, k, v, out), wanted)


@emulated
def test_a_pytorch_without_its_internals(monkeypatch):
    for name in ("_at_once", "_planned_at_once"):
        monkeypatch.setattr(fagen.torch, name, fagen.torch._not_at_once)
    q, k, v = tensors()
    p, out = fagen.plan(q, k, v), torch.empty_like(q)
    for _ in range(2):
        assert_near(fagen.attention(q, k, v), reference(q, k, v)[0])
        assert_near(p(q, k, v, out), reference(q, k, v)[0])


@emulated
def test_compile_without_graph_breaks():
    compiled = torch.compile(lambda q, k, v: fagen.attention(q, k, v, causal=True) * 2, backend="aot_eager", fullgraph=True,
                             dynamic=True)
    for length in (16, 24):
        q, k, v = tensors(seq_q=length, seq_kv=length)
        assert_near(compiled(q, k, v), 2 * reference(q, k, v, True)[0])


@emulated
def test_compile_with_gradients():
    compiled = torch.compile(lambda q, k, v: fagen.attention(q, k, v, causal=True), backend="aot_eager", fullgraph=True)
    q, k, v = (t.requires_grad_() for t in tensors(seq_q=16, seq_kv=16))
    compiled(q, k, v).sum().backward()
    graph = [t.grad.clone() for t in (q, k, v)]
    q.grad = k.grad = v.grad = None
    fagen.attention(q, k, v, causal=True).sum().backward()
    for got, wanted in zip(graph, (q, k, v)):
        torch.testing.assert_close(got, wanted.grad)


@emulated
def test_export():
    class Layer(torch.nn.Module):
        def forward(self, q, k, v):
            return fagen.attention(q, k, v)

    q, k, v = tensors(seq_q=16, seq_kv=16)
    program = torch.export.export(Layer(), (q, k, v))
    assert "fagen.attention" in str(program.graph)
    assert_near(program.module()(q, k, v), reference(q, k, v)[0])


@emulated
def test_plan():
    q, k, v = tensors()
    p, out = fagen.plan(q, k, v, causal=True), torch.empty_like(q)
    assert_near(p(q, k, v, out), reference(q, k, v, True)[0])
    with pytest.raises(fagen.Error, match="planned for 1 batches, 4 heads of q and 2 of k, 40 rows and 40 keys"):
        p(q[:, :8], k, v, out)
    with pytest.raises(fagen.Error, match="planned for"):
        p(q, k.transpose(1, 2).contiguous().transpose(1, 2), v, out)
    wide = torch.empty(1, 40, 8, 64).half()[:, :, ::2]
    assert_near(p(q, k, v, wide), reference(q, k, v, True)[0])
    assert_near(fagen.plan(q, k, v)(q, k, v, out), reference(q, k, v)[0])
    assert_near(p(q, k, v, out), reference(q, k, v, True)[0])
    with pytest.raises(fagen.Error, match="a plan has no gradient"):
        p(q.requires_grad_(), k, v, out)


@emulated
def test_a_plan_ends_with_its_object():
    q, k, v = tensors()
    p = fagen.plan(q, k, v)
    number = p._number
    del p
    with torch.no_grad(), pytest.raises(RuntimeError, match=f"no plan of number {number}"):
        torch.ops.fagen._planned(q, k, v, torch.empty_like(q), number)


@emulated
def test_a_plan_in_a_graph():
    q, k, v = tensors(seq_q=16, seq_kv=16)
    p = fagen.plan(q, k, v)
    compiled = torch.compile(lambda q, k, v: p(q, k, v, torch.empty_like(q)) * 2, backend="aot_eager", fullgraph=True)
    assert_near(compiled(q, k, v), 2 * reference(q, k, v)[0])


@emulated
@pytest.mark.parametrize("fallback", ["warn", "torch"])
@pytest.mark.parametrize("causal", [False, True])
def test_what_no_kernel_computes_falls_back_and_is_counted(fallback, causal):
    q, k, v = tensors(seq_q=24, seq_kv=40, head_dim=80)
    with pytest.raises(fagen.Unsupported, match='head_dim 80.*fallback="torch" computes it'):
        fagen.attention(q, k, v)
    fagen.stats(reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o, lse = fagen.attention(q, k, v, causal=causal, return_lse=True, fallback=fallback)
        assert_near(fagen.attention(q, k, v, causal=causal, fallback=fallback), o.double())
    assert_near(o, reference(q, k, v, causal)[0])
    torch.testing.assert_close(lse.double(), reference(q, k, v, causal)[1], atol=1e-3, rtol=1e-3)
    counts = fagen.stats()
    assert counts["computed"] == {} and sum(counts["fallbacks"].values()) == 2


@pytest.mark.parametrize("change, message", [
    (lambda q, k, v: (q.float(), k.float(), v.float()), "float16 and bfloat16"),
    (lambda q, k, v: (q, k.bfloat16(), v), "k is of torch.bfloat16, and q of torch.float16"),
    (lambda q, k, v: (q[0], k, v), "q has 3 dimensions"),
    (lambda q, k, v: (q, k[..., :32], v), "q has head_dim 64, k 32"),
    (lambda q, k, v: (q, k[:, :8], v), "k has 2 heads and 8 rows"),
    (lambda q, k, v: (q.expand(3, -1, -1, -1), k, v), "3, 1 and 1 batches"),
])
def test_wrong_tensors(change, message):
    with pytest.raises((fagen.Error, RuntimeError), match=message):
        fagen.attention(*change(*tensors()))


def test_wrong_words():
    q, k, v = tensors()
    with pytest.raises(fagen.Error, match='layout is "bhds"|layout is \'bhds\''):
        fagen.attention(q, k, v, layout="bhds")
    with pytest.raises(fagen.Error, match="fallback is 'maybe'"):
        fagen.attention(q.float(), k.float(), v.float(), fallback="maybe")


def test_the_cpu_is_refused_where_there_is_no_emulator():
    code = ("import torch, fagen; q = torch.zeros(1, 8, 2, 64, dtype=torch.half)\n"
            "try: fagen.attention(q, q, q)\nexcept fagen.Unsupported as e: print(e)")
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "tensors are on the CPU; fagen computes on CUDA GPUs" in printed


def test_declarations_are_those_of_torchs_headers(tmp_path):
    """csrc/shim.h declares PyTorch's C functions itself; here the compiler compares them with PyTorch's own."""
    root = os.path.join(os.path.dirname(__file__), "..", "csrc")
    with open(os.path.join(root, "shim.h"), encoding="utf-8") as file:
        text = file.read()
    for ours, theirs in (("TensorHandle = struct AtenTensor *", "TensorHandle = AtenTensorHandle"),
                         ("ListHandle = struct StableList *", "ListHandle = StableListHandle"),
                         ("LibraryHandle = struct TorchLibrary *", "LibraryHandle = TorchLibraryHandle"),
                         ("GuardHandle = struct DeviceGuard *", "GuardHandle = CUDAGuardHandle")):
        assert ours in text
        text = text.replace(ours, theirs)
    check = """
#define USE_CUDA
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>
#include "shim.h"
#include <type_traits>
#define SAME(result, name, parameters) static_assert(std::is_same_v<decltype(fagen::torch::Shim::name), decltype(&::name)>, #name);
FAGEN_TORCH_CPU_FUNCTIONS(SAME)
FAGEN_TORCH_CUDA_FUNCTIONS(SAME)
"""
    (tmp_path / "shim.h").write_text(text)
    (tmp_path / "check.cpp").write_text(check)
    include = os.path.join(os.path.dirname(torch.__file__), "include")
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", include, str(tmp_path / "check.cpp")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
