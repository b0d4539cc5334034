# fagen: gradients of attention by the package's programs, on the emulator, against autograd in float64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os

import pytest
import torch

import fagen
from fagen import _gradients, _lib, _sdpa, _torch_programs
from torch_emulated import LIBRARY, emulating, reference, use_emulator

if not use_emulator():
    pytest.skip("this build has no emulator", allow_module_level=True)

KINDS = {"f16": torch.float16, "bf16": torch.bfloat16}
FORWARD = {"f16": "fp16", "bf16": "bf16"}


def _emulate(kernels, call):
    emulated = ctypes.CDLL(LIBRARY)
    error = ctypes.create_string_buffer(2048)
    for directory in kernels._directories:
        if emulated.fagen_torch_emulate_program(os.fsencode(directory), 90, ctypes.byref(call), error, 2048):
            raise fagen.Error(error.value.decode())


@pytest.fixture(autouse=True)
def emulator():
    _torch_programs.set_emulator(_emulate)
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


def plain(q, k, v, o, lse, grad, causal, scale, rounded):
    """Gradients of [batch, heads, rows, columns] by the definition, with P and dS as `rounded` makes them."""
    group = q.shape[1] // k.shape[1]
    keys, values = (t.repeat_interleave(group, 1) for t in (k, v))
    scores = q @ keys.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(keys.shape[2] - q.shape[2]), -torch.inf)
    weights = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None])
    of_scores = rounded(weights * (grad @ values.transpose(-1, -2) - (grad * o).sum(-1, keepdim=True)))
    together = lambda t: t.unflatten(1, (-1, group)).sum(2)
    return of_scores @ keys * scale, together(of_scores.transpose(-1, -2) @ q) * scale, together(rounded(weights).transpose(-1, -2) @ grad)


def assert_right(found, q, k, v, grad, causal, scale, layout, parts=0):
    """As near to float64 as twice what rounding O, P, dS and the results costs, and rounding so many parts of each result."""
    o, lse = reference(q, k, v, causal, scale, layout)
    heads_first = lambda t: t.double().transpose(1, 2) if layout == "bshd" else t.double()
    args = [heads_first(t) for t in (q, k, v)]
    exact = plain(*args, heads_first(o), lse, heads_first(grad), causal, scale, lambda t: t)
    to = lambda t: t.to(q.dtype).double()
    rough = plain(*args, to(heads_first(o)), lse, heads_first(grad), causal, scale, to)
    for ours, wanted, near in zip(found, exact, rough):
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
    assert [name for name, *_ in calls] == [f"backward_{kind}_d{head_dim}{'_causal' if causal else ''}"]
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
    (200, 300, True, [(28, 128, True), (128, 128, False), (44, 128, False), (128, 128, True), (44, 128, False), (44, 44, True)]),
    (300, 140, True, [(128, 128, True), (12, 128, False), (12, 12, True)]),
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
    q, k, v, grad = drawn("f16", 2, 2, 16, 16, 32)
    found = gradients(q, k, v, grad, fallback="torch")
    assert not calls
    assert_right(found, q, k, v, grad, False, 32 ** -0.5, "bshd")


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
