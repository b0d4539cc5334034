# fagen: what attention on PyTorch tensors is given: kinds, types, sizes, outputs; each refusal names the argument and its value.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os
import re
import subprocess
import sys

import numpy
import pytest
import torch

import fagen
import fagen.torch
from fagen import flash_attn
from torch_emulated import assert_near, reference, shipped_forms, tensors, use_emulator  # noqa: F401

emulated = pytest.mark.skipif(not use_emulator(), reason="no emulator in this build")
Q, K, V = tensors(seq_q=16, seq_kv=16)

MISTAKES = [
    ({"q": None}, "q is None; it is a torch.Tensor"),
    ({"q": [1.0]}, "q is [1.0]; it is a torch.Tensor"),
    ({"k": K.numpy()}, "k is a numpy.ndarray of shape (1, 16, 2, 64); it is a torch.Tensor: torch.from_numpy makes one"),
    ({"v": V[0]}, "v has 3 dimensions; it takes 4: [batch, seq, heads, head_dim]"),
    ({"k": K.to_sparse()}, "k is of torch.sparse_coo; it is of torch.strided: to_dense() makes one"),
    ({"k": K.bfloat16()}, "k is of torch.bfloat16, and q of torch.float16"),
    ({"v": V.to("meta")}, "v is on meta, and q on cpu"),
    ({"v": V[:, :8]}, "k has 2 heads and 16 rows, v 2 and 8"),
    ({"k": K[..., :32]}, "q has head_dim 64, k 32"),
    ({"q": Q[:, :, :3]}, "k has 2 heads, which do not divide the 3 of q"),
    ({"k": K[:, :, :0], "v": V[:, :, :0]}, "k has 0 heads, which do not divide the 4 of q"),
    ({"q": Q.expand(2, -1, -1, -1)}, "q, k and v have 2, 1 and 1 batches"),
    ({"scale": "0.1"}, "scale is '0.1'; it is a number, or None for 1 / sqrt(head_dim)"),
    ({"scale": True}, "scale is True; it is a number"),
    ({"scale": math.nan}, "scale is nan; it is finite in float32"),
    ({"scale": -math.inf}, "scale is -inf; it is finite in float32"),
    ({"scale": 1e39}, "scale is 1e+39; it is finite in float32"),
    ({"scale": 1j}, "scale is 1j; it is a number"),
    ({"scale": torch.ones(2)}, "scale is a tensor of torch.float32 on cpu of shape (2,); it is one number"),
    ({"scale": numpy.ones(2)}, "scale is a numpy.ndarray of shape (2,); it is a number"),
    ({"scale": torch.ones((), requires_grad=True)}, "scale is a tensor that wants a gradient, and kernels have none for it; multiply q by it"),
    ({"causal": "yes"}, "causal is 'yes'; it is True or False"),
    ({"causal": torch.tensor(True)}, "causal is a tensor of torch.bool on cpu; it is True or False"),
    ({"causal": 2}, "causal is 2; it is True or False"),
    ({"return_lse": "yes"}, "return_lse is 'yes'; it is True or False"),
    ({"kernels": "mine"}, "kernels is 'mine'; it is a KernelSet"),
    ({"form": "window", "form_args": [3]}, "form_args is [3]; it is a dict of the form's params"),
    ({"out": Q.numpy()}, "out is a numpy.ndarray"),
    ({"out": torch.empty(1, 16, 4, 32)}, "out is torch.float32 of (1, 16, 4, 32) on cpu; it is torch.float16 of (1, 16, 4, 64) on cpu"),
    ({"out": Q.clone().requires_grad_()}, "out takes part in a graph of autograd, and what is written there has no gradient; give out.detach()"),
    ({"form": "gemma3"}, "form is 'gemma3', did you mean 'gemma2'?; there are window, local, "),
    ({"form": "window"}, "'window' of the form window is missing; its params are window"),
    ({"form": "window", "window": "8"}, "window is '8'; it is a number or a tensor"),
    ({"form": "window", "window": -3}, "window is -3; the form window takes 1 to 1073741824"),
    ({"form": "softcap", "cap": math.nan}, "cap is nan; the form softcap takes 1 to 1000"),
    ({"form": "gemma2", "cap": 5000.0, "window": 8}, "cap is 5000.0; the form gemma2 takes 1 to 1000"),
    ({"form": "gemma2", "cap": 5000.0, "window": 8, "fallback": "torch"}, "cap is 5000.0; the form gemma2 takes 1 to 1000"),
    ({"windw": 3}, "attention() got an unexpected keyword argument 'windw'"),
    ({"form": "bias", "bias": numpy.zeros((16, 16))}, "bias is a numpy.ndarray of shape (16, 16); it is a number or a tensor"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_a_mistake_is_named(number):
    """The same without an emulator, which is a CPU on which nothing is computed: arguments come first."""
    change, said = MISTAKES[number]
    given = {"q": Q, "k": K, "v": V, **change}
    with pytest.raises(fagen.Error, match=re.escape(said)):
        fagen.attention(given.pop("q"), given.pop("k"), given.pop("v"), **given)


@pytest.mark.parametrize("given, said", [
    ({"is_causal": True}, "unexpected keyword argument 'is_causal'; here it is causal"),
    ({"lse": True}, "unexpected keyword argument 'lse'; here it is return_lse"),
    ({"softcap": 30.0}, "unexpected keyword argument 'softcap'; it is a form: form=\"softcap\", whose params are cap"),
    ({"enable_gqa": True}, "unexpected keyword argument 'enable_gqa'; leave it out: k and v may have fewer heads than q without it"),
    ({"deterministic": True}, "unexpected keyword argument 'deterministic'; leave it out: the same call always gives the same bits"),
    ({"blocksize": 3}, "unexpected keyword argument 'blocksize'; it takes causal, fallback, form, "),
    ({"dropout_p": 0.1}, "unexpected keyword argument 'dropout_p'; kernels have no dropout"),
    ({"softmax_scale": 0.1}, "'softmax_scale'; here it is scale"),
    ({"window_size": (3, 0)}, '\'window_size\'; here it is form="window" or form="local"'),
    ({"window": 128}, '\'window\'; it is a param of a form: give form="window" or one of gemma2, '),
    ({"return_lce": True}, "'return_lce', did you mean 'return_lse'?"),
])
def test_names_of_others_and_params_without_a_form(given, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        fagen.attention(Q, K, V, **given)


def test_other_names():
    with pytest.raises(AttributeError, match="'attenton'; did you mean 'attention'"):
        fagen.attenton
    with pytest.raises(AttributeError, match="no attribute 'nothing_like_it'$"):
        fagen.nothing_like_it
    with pytest.raises(fagen.Error, match="program: kernels is text; it is a KernelSet, the directory of one, or a file"):
        fagen.program("program @p { }")
    with pytest.raises(fagen.Error, match="program: kernels is None; it is a path"):
        fagen.program(None)
    with pytest.raises(TypeError, match="explain.* unexpected keyword argument 'mask'; causal=True and form= say it"):
        fagen.ready().explain(shape=(1, 2, 2, 64, 64, 64), gpu="sm_90", mask="causal")


@emulated
@pytest.mark.parametrize("scale", [0.3, 1, 0, -0.25, numpy.float32(0.25), numpy.float64(0.25), numpy.int64(1), numpy.array(0.25),
                                   torch.tensor(0.25), torch.tensor([0.25], dtype=torch.float64), torch.tensor(1),
                                   torch.tensor(-0.25, dtype=torch.bfloat16)])
def test_scales(scale, shipped_forms):  # noqa: F811
    wanted = reference(Q, K, V, scale=float(scale))[0]
    row, key = torch.arange(16)[:, None], torch.arange(16)[None]
    bias = torch.where(key <= row, 0.0, -torch.inf)
    for _ in range(2):  # the second is remembered
        assert_near(fagen.attention(Q, K, V, form="bias", bias=torch.zeros(16, 16), scale=scale), wanted)
        assert_near(fagen.attention(Q, K, V, form="bias", bias=bias, scale=scale), reference(Q, K, V, True, float(scale))[0])


@emulated
def test_scales_of_plain_attention_plans_and_graphs():
    for scale in (0.3, -0.3, torch.tensor(0.3), numpy.float32(-0.3)):
        wanted = reference(Q, K, V, True, float(scale))[0]
        for _ in range(2):
            assert_near(fagen.attention(Q, K, V, causal=True, scale=scale), wanted)
    out = torch.empty_like(Q)
    assert_near(fagen.plan(Q, K, V, scale=torch.tensor(0.3))(Q, K, V, out), reference(Q, K, V, scale=0.3)[0])
    with pytest.raises(fagen.Error, match=re.escape("plan: scale is -0.3; a plan takes none below 0: give 0.3, and -q to its calls")):
        fagen.plan(Q, K, V, scale=-0.3)
    with torch.no_grad():
        assert_near(fagen.attention(Q, K, V, scale=torch.ones((), requires_grad=True)), reference(Q, K, V, scale=1.0)[0])
    inputs = [t.clone().requires_grad_() for t in (Q, K, V)]
    fagen.attention(*inputs, scale=-0.3).sum().backward()
    exact = [t.detach().double().requires_grad_() for t in inputs]
    reference(*exact, scale=-0.3)[0].sum().backward()
    for got, one in zip(inputs, exact):
        torch.testing.assert_close(got.grad.double(), one.grad, atol=6e-3, rtol=6e-3)


@pytest.mark.parametrize("scale", [math.nan, math.inf, -1.0])
def test_operators_refuse_scales_that_are_none(scale):
    with torch.no_grad(), pytest.raises(RuntimeError, match="scale is .*; it is finite and not negative"):
        torch.ops.fagen._forward(Q, K, V, scale, False, True, fagen.torch._READY)


# Outputs.

@emulated
@pytest.mark.parametrize("of", ["q", "k", "v"])
def test_an_output_that_is_read(of):
    q, k, v = tensors(kv_heads=4, seq_q=16, seq_kv=16)
    given = {"q": q, "k": k, "v": v}
    shifted = torch.empty(1, 17, 4, 64).half()
    for layout in ("bshd", "bhsd"):
        for _ in range(2):
            with pytest.raises(fagen.Error, match=f"out shares memory with {of}"):
                fagen.attention(**given, out=given[of], layout=layout)
            fagen.attention(**given, out=torch.empty_like(q), layout=layout)  # what is remembered is asked, too
    part = {**given, of: shifted[:, 1:].copy_(given[of])}
    p = fagen.plan(**part)
    for compute in (lambda: fagen.attention(**part, out=shifted[:, :16]), lambda: p(part["q"], part["k"], part["v"], shifted[:, :16])):
        with pytest.raises(fagen.Error, match=f"out shares memory with {of}"):
            compute()


@emulated
def test_plans_name_their_mistakes():
    p, out = fagen.plan(Q, K, V), torch.empty_like(Q)
    for given, said in (((None, K, V, out), "a plan: q is None"), ((Q, K.numpy(), V, out), "k is a numpy.ndarray"), ((Q, K, V, None), "out is None"),
                        ((Q, K, V[0], out), "v has 3 dimensions"), ((Q, K, V, out.float()), "out is torch.float32"),
                        ((Q, K.bfloat16(), V, out), "k is of torch.bfloat16"), ((Q, K, V, Q.clone().requires_grad_()), "out takes part in a graph"),
                        ((Q, K[:, :8], V, out), "planned for 1 batches")):
        with pytest.raises(fagen.Error, match=said):
            p(*given)


@emulated
def test_outputs_and_tensors_of_forms(shipped_forms):  # noqa: F811
    memory = torch.zeros(1, 16, 4, 64).half()
    bias = memory.view(torch.float32).flatten()[:16].expand(1, 4, 16, 16)
    with pytest.raises(fagen.Error, match="out shares memory with bias"):
        fagen.attention(Q, K, V, form="bias", bias=bias, out=memory)
    out = torch.empty_like(Q)
    before = out._version
    fagen.attention(Q, K, V, form="window", window=3, out=out)
    assert out._version == before + 1


@emulated
def test_writes_are_changes():
    out, none, p = torch.empty_like(Q), torch.empty(0), fagen.plan(Q, K, V)
    direct = lambda: torch.ops.fagen.attention_out(Q, K, V, out, none, None, False, True, fagen.torch._READY)  # noqa: E731
    with torch.no_grad():
        for compute in 2 * [lambda: fagen.attention(Q, K, V, out=out), lambda: p(Q, K, V, out), direct]:
            before = out._version
            compute()
            assert out._version == before + 1
    sums = torch.empty(1, 4, 16)
    with torch.no_grad():
        torch.ops.fagen.attention_out(Q, K, V, out, sums, None, False, True, fagen.torch._READY)
        assert sums._version == 1
        for of in ("lse", "q"):  # LSE where O or Q lies
            memory = torch.zeros(Q.shape, dtype=torch.float16)
            lies = memory.view(torch.float32).flatten()[:64].view(1, 4, 16)
            q, o = (memory, out) if of == "q" else (Q, memory)
            with pytest.raises(RuntimeError, match="lse shares memory with q" if of == "q" else "out shares memory with lse"):
                torch.ops.fagen.attention_out(q, K, V, o, lies, None, False, True, fagen.torch._READY)
    with torch.inference_mode():
        made = torch.empty_like(Q)
        fagen.attention(Q, K, V, out=made)
        p(Q, K, V, made)
    for compute in (lambda: fagen.attention(Q, K, V, out=made), lambda: p(Q, K, V, made)):
        with pytest.raises(RuntimeError, match="nference tensor"):
            compute()


@emulated
def test_writes_are_changes_without_pytorchs_internals():
    """Where calls at once are not there, Python tells autograd. Checks are asked for by the environment, too."""
    code = """
import ctypes, torch, fagen
class Lacking:
    def __init__(self, path): self.fagen_torch_direct = self
    def __call__(self, *_): raise ValueError("null")
ctypes.PyDLL = Lacking
import fagen.torch
import torch_emulated
assert fagen.torch._checks
torch_emulated.use_emulator()
q, k, v = torch_emulated.tensors()
out, p = torch.empty_like(q), fagen.plan(q, k, v)
for compute in (lambda: fagen.attention(q, k, v, out=out), lambda: p(q, k, v, out)):
    before = out._version
    compute()
    assert out._version == before + 1
"""
    assert fagen.torch._checks == (os.environ.get("FAGEN_CHECKS", "0") == "1")
    subprocess.run([sys.executable, "-c", code], check=True, cwd=os.path.dirname(os.path.abspath(__file__)), env={**os.environ, "FAGEN_CHECKS": "1"})


# What is promised, and looked at where that is asked for.

def test_checks_of_promises(shipped_forms, monkeypatch):  # noqa: F811
    ids = torch.tensor([[0] * 8 + [2] * 5 + [1] * 3], dtype=torch.int32)
    calls = [({"form": "same_document", "document": ids}, "document does not ascend, as the form same_document wants it to: document[0, 13] is 1, after 2"),
             ({"form": "temperature", "factor": torch.tensor([1.0, 0.5, 2000.0, 1.0])}, "factor of the form temperature holds 0.5 to 2000.0; it is 0.001 to 1000"),
             ({"form": "temperature", "factor": torch.tensor([1.0, 0.5, math.nan, 1.0])}, "factor of the form temperature holds nan to nan; it is 0.001 to 1000"),
             ({"form": "alibi", "slope": torch.tensor([1.0, 0.5, -1.5, 1.0])}, "slope of the form alibi holds -1.5 to 1.0; it is -1 to 1"),
             ({"form": "window", "window": torch.tensor(0, dtype=torch.int32)}, "window of the form window holds 0 to 0; it is 1 to 1073741824")]
    monkeypatch.setattr(fagen.torch, "_checks", False)
    fagen.torch.enable_checks()
    for given, said in calls:
        with pytest.raises(fagen.Error, match=re.escape(said)):
            fagen.attention(Q, K, V, **given)
    fagen.attention(Q, K, V, form="same_document", document=ids.sort().values)
    fagen.attention(Q, K, V, form="blocks", size=8, rows=2, columns=2, map=torch.ones(1, 4, 2, 2, dtype=torch.bool))


def test_promises_of_tensors_on_the_cpu(shipped_forms, monkeypatch):  # noqa: F811
    """Nothing has to be waited for there: they are looked at in any case, and what does not keep them PyTorch computes, where it may."""
    monkeypatch.setattr(fagen.torch, "_checks", False)
    ids = torch.tensor([[0] * 8 + [2] * 5 + [1] * 3], dtype=torch.int32)
    with pytest.raises(fagen.Unsupported, match=re.escape("document[0, 13] is 1, after 2")):
        fagen.attention(Q, K, V, form="same_document", document=ids)
    seen = (ids[0][:, None] == ids[0]) & torch.ones(16, 16, dtype=torch.bool).tril()
    q, k, v = (t.double().transpose(1, 2) for t in (Q, K, V))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True).transpose(1, 2)
    o = fagen.attention(Q, K, V, form="same_document", document=ids, fallback="torch")
    torch.testing.assert_close(o.double(), wanted, atol=2e-3, rtol=2e-3)


def test_explain_without_a_gpu():
    with pytest.raises(fagen.Error, match=re.escape('explain: q is on cpu; gpu="sm_90" says for which GPU')):
        fagen.explain(Q, K, V)
    assert "picked" in fagen.ready().explain(Q, K, V, gpu="sm_90")
    assert "picked" in fagen.ready().explain(shape=numpy.array([1, 4, 2, 16, 16, 64]), gpu="sm_90")
    for shape in ((1, 4, 0, 16, 16, 64), (1, 4, 2, 16, 16, 64, 0), (1, 4, 2, 16.5, 16, 64)):
        with pytest.raises(fagen.Error, match="its sizes are integers, and heads, kv_heads and head_dims at least 1"):
            fagen.ready().explain(shape=shape, gpu="sm_90")


def test_without_pytorch():
    code = "import sys; sys.modules['torch'] = None\nimport fagen\ntry: fagen.attention\nexcept fagen.Error as error: print(error)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "fagen.attention needs PyTorch 2.10 or later, and it is not installed: pip install torch\n"


SPEC = "target sm_80; kernel k { problem { dtype = f16; head_dim = 64; mask = none; } schedule { tile = 64 x 64; warps = 4; mma = mma_sync; } }"
SHAPE = (1, 2, 2, 16, 16, 64)


@pytest.mark.parametrize("call, said", [
    (lambda: fagen.compile(3), "compile: spec is 3; it is a path"),
    (lambda: fagen.load(None), "load: directory is None; it is a path"),
    (lambda: fagen.program(3), "program: kernels is 3; it is a path"),
    (lambda: fagen.compile(SPEC, targets=80), "compile: targets is 80; it is a list of targets"),
    (lambda: fagen.compile(SPEC, targets=[80]), "compile: targets is [80]; it is a list of targets"),
    (lambda: fagen.ready().explain(shape=3, gpu="sm_90"), "shape is 3; it is (batch, heads, "),
    (lambda: fagen.ready().explain(shape=SHAPE, gpu="sm_90", dtype=[]), "dtype is []; it is f16, bf16"),
    (lambda: fagen.ready().explain(shape=SHAPE, gpu="sm_90", variant=3), "explain: variant is 3; it is a kernel's name"),
    (lambda: fagen.ready().explain(shape=SHAPE, gpu=90), "gpu is 90; it is sm_ and the compute capability, as 'sm_90', or A100, A10, "),
    (lambda: fagen.ready().explain(shape=SHAPE, gpu=""), "gpu is ''; it is sm_ and the compute capability"),
    (lambda: fagen.ready().explain(shape=SHAPE, gpu="sm_90", sms="all"), "sms is 'all'; it is how many SMs the GPU has"),
    (lambda: fagen.ready().explain([1], [2], [3], gpu="sm_90"), "explain: q is [1]; it is a torch.Tensor"),
    (lambda: fagen.warmup(3), "warmup: a shape is 3; it is (batch, heads, "),
    (lambda: fagen.warmup([(1, 2)]), "warmup: a shape is (1, 2); it is (batch, heads, "),
    (lambda: fagen.warmup([SHAPE], dtype="f16"), "warmup: dtype is 'f16'; it is torch.float16 or torch.bfloat16"),
    (lambda: flash_attn.flash_attn_func(Q, K, V, window_size=3), "flash_attn_func: window_size is 3; it is (left, right)"),
    (lambda: flash_attn.flash_attn_func(Q, K, V, window_size=(3, 0.5)), "flash_attn_func: window_size is (3, 0.5); it is (left, right)"),
])
def test_arguments_of_other_kinds(call, said):
    with pytest.raises(fagen.Error, match=re.escape(said)):
        call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_warmup_without_a_gpu():
    with pytest.raises(fagen.CudaError, match="warmup: there is no CUDA GPU here that PyTorch can use; `fagen doctor` says what is missing"):
        fagen.warmup([SHAPE])


def test_explain_of_a_gpu_that_is_too_old():
    """The kernel that comes nearest says what it lacks."""
    said = fagen.ready().explain(shape=SHAPE, gpu="sm_75").splitlines()[2]
    assert re.fullmatch(r"picked   none: UNSUPPORTED: .* its text for sm_80 needs compute capability 8.0 or more; the device has 7.5", said)


def test_ranges_hold_where_pytorch_computes():
    """An i32 in a tensor is held to its range, as kernels hold it, which do not wait to look."""
    def window(of):
        return fagen.attention(Q, K, V, form="window", window=of, fallback="torch")
    assert torch.equal(window(torch.tensor(-3, dtype=torch.int32)), window(1))
    with pytest.raises(fagen.Error, match="window is -3; the form window takes 1 to 1073741824"):
        window(-3)
