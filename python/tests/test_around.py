# fagen: what PyTorch does around a call: forward-mode differentiation, autocast, nested tensors, counts of operations, pickle.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import copy
import os
import pickle
import re
import subprocess
import sys

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F

import fagen
import fagen.torch
from conftest import SPEC
from torch_emulated import assert_near, reference, shipped_forms, tensors, use_emulator  # noqa: F401

pytestmark = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
HERE = os.path.dirname(os.path.abspath(__file__))


# What a process waits for.

@pytest.mark.parametrize("module", ["torch", "flash_attn", "flash_attn_interface"])
def test_importing_brings_no_compiler(module):
    code = (f"import sys, torch; before = set(sys.modules); import fagen.{module}; fagen.attention, fagen.program; "
            "print(*(m for m in set(sys.modules) - before if not m.startswith('fagen') and m.split('.')[0] in ('torch', 'sympy', 'triton')))")
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name for name in added if name.startswith(("torch._dynamo", "torch._inductor", "sympy", "triton"))}, added
    assert len(added) < 20, added


# Forward-mode differentiation.

def with_tangent(inputs, of):
    """The inputs, of which one is a dual tensor."""
    return [forward_ad.make_dual(t, torch.ones_like(t)) if i == of else t for i, t in enumerate(inputs)]


@pytest.mark.parametrize("of", range(3))
def test_dual_tensors_are_refused_or_right(of):
    inputs = tensors(seq_q=16, seq_kv=16)
    fagen.attention(*inputs, causal=True)  # remembered
    p, out = fagen.plan(*inputs, causal=True), torch.empty_like(inputs[0])
    with forward_ad.dual_level():
        duals = with_tangent(inputs, of)
        calls = (lambda: fagen.attention(*duals, causal=True), lambda: torch.ops.fagen.attention(*duals, None, True, True, False, 0),
                 lambda: fagen.plan(*duals))
        for call in calls:
            with pytest.raises(fagen.Unsupported, match="forward-mode d"):
                call()
        with pytest.raises(fagen.Error, match="a plan has no gradient"):
            p(*duals, out)
        with pytest.raises(fagen.Error, match="out has a tangent"):
            fagen.attention(*inputs, out=forward_ad.make_dual(out, torch.ones_like(out)))
        with torch.no_grad(), pytest.raises(fagen.Unsupported, match="forward-mode d"):
            fagen.attention(*duals, causal=True)
        wanted = forward_ad.unpack_dual(reference(*with_tangent([t.double() for t in inputs], of), True)[0])
        for lse in (False, True):
            o = fagen.attention(*duals, causal=True, fallback="torch", return_lse=lse)
            got = forward_ad.unpack_dual(o[0] if lse else o)
            assert_near(got.primal, wanted.primal)
            torch.testing.assert_close(got.tangent.double(), wanted.tangent, atol=5e-3, rtol=5e-3)


def test_jvp_of_all():
    q, k, v = tensors(seq_q=16, seq_kv=16)
    compute = lambda fallback: lambda x: fagen.attention(x, k, v, fallback=fallback)  # noqa: E731
    with pytest.raises(fagen.Unsupported, match='attention: forward-mode differentiation, of which kernels have none; fallback="torch" computes it'):
        torch.func.jvp(compute("error"), (q,), (q,))
    with pytest.raises(fagen.Unsupported, match="torch.ops.fagen.attention has no forward-mode derivative"):
        torch.func.jvp(lambda x: torch.ops.fagen.attention(x, k, v, None, True, True, False, 0)[0], (q,), (q,))
    wanted = torch.func.jvp(lambda x: reference(x, k, v)[0], (q.double(),), (q.double(),))[1]
    torch.testing.assert_close(torch.func.jvp(compute("torch"), (q,), (q,))[1].double(), wanted, atol=5e-3, rtol=5e-3)
    assert not torch.func.vmap(compute("error"))(q[None]).isnan().any()  # other transforms are as before


def test_jvp_of_forms(shipped_forms):  # noqa: F811
    q, k, v = tensors(seq_q=16, seq_kv=16)
    compute = lambda fallback: lambda x: fagen.attention(x, k, v, form="window", window=100, fallback=fallback)  # noqa: E731
    with pytest.raises(fagen.Unsupported, match="forward-mode differentiation"):
        torch.func.jvp(compute("error"), (q,), (q,))
    wanted = torch.func.jvp(lambda x: reference(x, k, v, True)[0], (q.double(),), (q.double(),))[1]
    torch.testing.assert_close(torch.func.jvp(compute("torch"), (q,), (q,))[1].double(), wanted, atol=5e-3, rtol=5e-3)
    bias = torch.zeros(16, 16)
    with pytest.raises(fagen.Unsupported, match="forward-mode differentiation"):
        torch.func.jvp(lambda b: fagen.attention(q, k, v, form="bias", bias=b), (bias,), (bias,))


def test_jvp_in_a_graph():
    q, k, v = tensors(seq_q=16, seq_kv=16)
    jvp = torch.compile(lambda x, t: torch.func.jvp(lambda x: fagen.attention(x, k, v), (x,), (t,))[1], backend="aot_eager")
    with pytest.raises(Exception, match="forward-mode d"):
        jvp(q, q)


# Autocast.

@pytest.mark.parametrize("given", [(torch.float32,) * 3, (torch.float32, torch.float32, torch.float16), (torch.bfloat16,) * 3])
def test_autocast_casts_as_for_sdpa(monkeypatch, given):
    inputs = [t.to(kind) for t, kind in zip(tensors(seq_q=16, seq_kv=16), given)]
    remembered = tensors(seq_q=16, seq_kv=16)
    fagen.attention(*remembered)
    with torch.autocast("cpu", dtype=torch.float16):
        with monkeypatch.context() as without:
            without.setattr(fagen.torch, "_forward", None)
            assert_near(fagen.attention(*remembered), reference(*remembered)[0])
            if torch.float16 not in given:  # cast, then remembered
                fagen.attention(*inputs)
        o = fagen.attention(*inputs)
        assert o.dtype == torch.float16 == F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in inputs), enable_gqa=True).dtype
        assert_near(o, reference(*(t.half() for t in inputs))[0])
        with torch.autocast("cpu", enabled=False), pytest.raises(fagen.Error, match="q's dtype is|v is of|emulator"):
            fagen.attention(*inputs)
        with pytest.raises(fagen.Error, match="out is torch.float32"):
            fagen.attention(*inputs, out=torch.empty_like(inputs[0].float()))
        with pytest.raises(fagen.Unsupported, match="q's dtype is torch.float64"):
            fagen.attention(*(t.double() for t in inputs))


def test_autocast_of_forms_gradients_and_graphs(shipped_forms):  # noqa: F811
    inputs = [t.float().requires_grad_() for t in tensors(seq_q=16, seq_kv=16)]
    with torch.autocast("cpu", dtype=torch.float16):
        assert_near(fagen.attention(*inputs, form="window", window=100).detach(), reference(*(t.detach().half() for t in inputs), True)[0])
        fagen.attention(*inputs, form="window", window=100).sum().backward()
    exact = [t.detach().half().double().requires_grad_() for t in inputs]
    reference(*exact, True)[0].sum().backward()
    for got, wanted in zip(inputs, exact):
        assert got.grad.dtype == torch.float32
        torch.testing.assert_close(got.grad.double(), wanted.grad, atol=1e-2, rtol=1e-2)


def test_fallbacks_compute_in_float32_under_autocast():
    inputs = [t.float() for t in tensors(head_dim=80, seq_q=16, seq_kv=16)]
    half = [t.half() for t in inputs]
    with torch.autocast("cpu", dtype=torch.float16):
        o, lse = fagen.attention(*inputs, return_lse=True, fallback="torch")
        formed, sums = fagen.attention(*inputs, form="window", window=100, return_lse=True, fallback="torch")
    for got, its, causal in ((o, lse, False), (formed, sums, True)):
        wanted = reference(*half, causal)
        assert got.dtype == torch.float16
        assert_near(got, wanted[0])
        torch.testing.assert_close(its.double(), wanted[1], atol=1e-5, rtol=1e-5)


def test_autocast_in_a_graph():
    inputs = [t.float() for t in tensors(seq_q=16, seq_kv=16)]
    compiled = torch.compile(lambda q, k, v: fagen.attention(q, k, v, causal=True), backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", dtype=torch.float16):
        o = compiled(*inputs)
    assert o.dtype == torch.float16
    assert_near(o, reference(*(t.half() for t in inputs), True)[0])


# Nested tensors.

def nested(layout, bshd):
    """q, k and v of sequences of several lengths, and the sequences."""
    parts = [[t[0] for t in tensors(seq_q=n, seq_kv=m, seed=n)] for n, m in ((5, 9), (12, 12), (1, 7))]
    made = [torch.nested.nested_tensor([p[i] for p in parts], layout=layout) for i in range(3)]
    return [t if bshd else t.transpose(1, 2) for t in made], parts


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.parametrize("bshd", [True, False])
@pytest.mark.parametrize("causal", [False, True])
def test_nested_tensors_take_the_fallback(layout, bshd, causal):
    inputs, parts = nested(layout, bshd)
    options = {"causal": causal, "layout": "bshd" if bshd else "bhsd"}
    with pytest.raises(fagen.Unsupported, match="q is a nested tensor; kernels have one length for all"):
        fagen.attention(*inputs, **options)
    fagen.stats(reset=True)
    o, lse = fagen.attention(*inputs, **options, fallback="torch", return_lse=True)
    assert fagen.stats()["fallbacks"] == {("attention", "q is a nested tensor; kernels have one length for all"): 1}
    assert o.is_nested and o.layout == layout
    for got, sums, part in zip(o.unbind(), lse.unbind(), parts):
        wanted = reference(*(t[None] for t in part), causal)
        assert_near(got if bshd else got.transpose(0, 1), wanted[0][0])
        torch.testing.assert_close(sums.double(), wanted[1][0], atol=1e-3, rtol=1e-3)
    if layout == torch.jagged and bshd:
        assert (o + inputs[0]).is_nested  # of the same lengths


def test_nested_tensors_with_forms_and_others(shipped_forms):  # noqa: F811
    inputs, parts = nested(torch.jagged, True)
    with pytest.raises(fagen.Unsupported, match="nested tensor"):
        fagen.attention(*inputs, form="window", window=3, fallback="torch")
    with pytest.raises(fagen.Error, match="v is not"):
        fagen.attention(*inputs[:2], parts[1][2][None], fallback="torch")


# Operations.

def test_flop_counters_see_the_operators(shipped_forms):  # noqa: F811
    from torch.utils.flop_counter import FlopCounterMode
    q, k, v = tensors(batch=2, heads=4, kv_heads=2, seq_q=10, seq_kv=14)
    wanted, out = 4 * 2 * 4 * 10 * 14 * 64, torch.empty_like(q)
    turned = [t.transpose(1, 2) for t in (q, k, v)]
    fagen.attention(q, k, v, form="window", window=30)
    for compute in (lambda: fagen.attention(q, k, v, form="window", window=30), lambda: fagen.attention(q, k, v, form="window", window=30, out=out),
                    lambda: fagen.attention(*turned, form="window", window=30, layout="bhsd")):
        with FlopCounterMode(display=False) as counter:
            compute()
        assert counter.get_total_flops() == wanted


def test_flop_counters_count_as_sdpas():
    from torch.utils.flop_counter import FlopCounterMode
    q, k, v = tensors(batch=2, kv_heads=4, seq_q=10, seq_kv=14)
    p, out = fagen.plan(q, k, v), torch.empty_like(q)
    with FlopCounterMode(display=False) as theirs, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
    for compute in (lambda: fagen.attention(q, k, v), lambda: fagen.attention(q, k, v, return_lse=True), lambda: fagen.attention(q, k, v, out=out),
                    lambda: p(q, k, v, out), lambda: fagen.attention(q.clone().requires_grad_(), k, v),
                    lambda: fagen.attention(*(t.transpose(1, 2) for t in (q, k, v)), layout="bhsd")):
        with FlopCounterMode(display=False) as counter:
            compute()
        assert counter.get_total_flops() == theirs.get_total_flops() == 4 * 2 * 4 * 10 * 14 * 64


def test_flop_counters_that_are_imported_first():
    code = "import torch.utils.flop_counter as counter, fagen.torch, torch\nassert torch.ops.fagen.attention in counter.flop_registry"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# Pickle.

def loaded_elsewhere(what, then):
    """What another process prints after it has planned something else and loaded this."""
    code = ("import pickle, sys, torch, fagen, fagen.torch, torch_emulated as t\nfrom test_around import *\nt.use_emulator()\n"
            "others = [fagen.plan(*t.tensors(seq_q=n)) for n in (8, 9)]\nloaded = pickle.load(sys.stdin.buffer)\n" + then)
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(what), capture_output=True, cwd=HERE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_plans_and_kernel_sets_in_another_process():
    q, k, v = (t.transpose(1, 2) for t in tensors(seq_q=24))
    p, made = fagen.plan(q, k, v, causal=True, scale=0.2, layout="bhsd"), fagen.compile(SPEC)
    fagen.torch._number(made)
    then = ("p, made = loaded\nq, k, v = (x.transpose(1, 2) for x in t.tensors(seq_q=24))\n"
            "t.assert_near(p(q, k, v, torch.empty_like(q)), t.reference(q, k, v, True, 0.2, 'bhsd')[0])\n"
            "print(made.names, made.source(made.names[0]) != '', hasattr(made, '_torch_number'))")
    assert loaded_elsewhere((p, made), then) == f"{made.names} True False\n"
    again = pickle.loads(pickle.dumps(made))
    assert again._directories != made._directories and again.source(made.names[0]) == made.source(made.names[0])
    assert copy.deepcopy(made) is copy.copy(made) is made
    assert pickle.loads(pickle.dumps(fagen.ready())) is fagen.ready()


def test_a_plan_for_a_device_that_is_not_there():
    p = fagen.plan(*tensors())
    p._problem = (*p._problem[:2], "cuda:99", *p._problem[3:])
    with pytest.raises(fagen.Error, match="a plan for cuda:99 is made anew where it is loaded, and its tensors are not there: "):
        pickle.loads(pickle.dumps(p))


def test_copies_of_plans_are_plans():
    q, k, v = tensors()
    p, out = fagen.plan(q, k, v, causal=True), torch.empty_like(q)
    copies = [copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))]
    assert len({one._number for one in (p, *copies)}) == 4
    del p
    for one in copies:
        assert_near(one(q, k, v, out), reference(q, k, v, True)[0])


def test_errors_are_what_they_were():
    from fagen import errors
    for one in (fagen.Unsupported("because", "f", "do that"), fagen.Misaligned("because"), fagen.CompileError("NVRTC says no"), fagen.Error("no")):
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one) and str(again) == str(one) and getattr(again, "reason", 0) == getattr(one, "reason", 0)
    with pytest.raises(fagen.SpecError) as caught:
        fagen.compile(SPEC.replace("dtype = f16", "dtype = f8"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.diagnostics == caught.value.diagnostics
    assert caught.value.diagnostics[0].file == "<spec>" and re.match(r"<spec>:3:\d+: error: ", str(again)) and isinstance(again, errors.SpecError)
