# fagen: programs of kernel sets on PyTorch tensors, by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import math
import os

import pytest
import torch

import fagen
from fagen import _torch_programs
from emulated_programs import emulate
from torch_emulated import LIBRARY

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Inputs", "programs")

if not os.path.exists(LIBRARY):
    pytest.skip("this build has no emulator", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def emulator():
    _torch_programs.set_emulator(emulate(LIBRARY, 90))
    yield
    _torch_programs.set_emulator(None)


@pytest.fixture(scope="module")
def gelu():
    return fagen.program(os.path.join(PROGRAMS, "gemm_gelu.fair"))


def matrices(m=70, n=40, k=64):
    draw = torch.Generator().manual_seed(1)
    return torch.randn(m, k, generator=draw).half(), torch.randn(n, k, generator=draw).half()


def expected(a, b):
    return torch.nn.functional.gelu(a.float() @ b.float().T, approximate="tanh")


def test_results_are_allocated_or_given(gelu):
    a, b = matrices()
    c = gelu(a=a, b=b)
    assert c.shape == (70, 40) and c.dtype == torch.float16
    torch.testing.assert_close(c.float(), expected(a, b), atol=2e-2, rtol=2e-2)
    given = torch.empty_like(c)
    assert gelu(b=b, a=a, c=given) is given
    assert torch.equal(given, c)
    assert torch.equal(gelu(a=a, b=b, K=64), c)


def test_several_launches_and_results():
    two = fagen.program(os.path.join(PROGRAMS, "two_launches.fair"))
    x, u = matrices(33, 72, 40)
    w = torch.randn(24, 72).half()
    y, z = two(x=x, u=u, w=w)
    torch.testing.assert_close(y.float(), x.float() @ u.float().T, atol=2e-2, rtol=2e-2)
    torch.testing.assert_close(z.float(), y.float() @ w.float().T, atol=2e-2, rtol=2e-2)


def test_strides_and_integers():
    ragged = fagen.program(os.path.join(PROGRAMS, "ragged.fair"))
    x, w = torch.randn(300, 64).half(), torch.randn(64, 64).half()
    begin = torch.tensor([0, 90, 180], dtype=torch.int32)
    y = ragged(x=x, w=w, begin=begin, R=70)
    assert y.shape == (3, 70, 64)
    for b in range(3):
        torch.testing.assert_close(y[b].float(), x[90 * b:90 * b + 70].float() @ w.float().T, atol=2e-2, rtol=2e-2)


def test_real_numbers():
    flash = fagen.program(os.path.join(PROGRAMS, "flash_causal_hopper.fair"))
    q, k, v = (torch.randn(1, heads, 1, 128).half() for heads in (2, 1, 1))
    o, lse = flash(q=q, k=k, v=v, scale=0.0625, scale_log2=0.0625 * 1.4426950408889634)  # one key: its value
    assert torch.equal(o, v.expand(1, 2, 1, 128))
    torch.testing.assert_close(lse, (q.float() * k.float()).sum(-1) * 0.0625, atol=1e-3, rtol=1e-3)
    with pytest.raises(fagen.Error, match="number 'scale_log2' is missing: it follows from no tensor's extent"):
        flash(q=q, k=k, v=v, scale=0.0625)


def test_compiled_graphs_have_them_whole(gelu):
    a, b = matrices()
    double = torch.compile(lambda a, b: gelu(a=a, b=b) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(double(a, b), gelu(a=a, b=b) * 2)

    def into(a, b):
        c = a.new_empty(a.shape[0], b.shape[0])
        return gelu(a=a, b=b, c=c) + c
    assert torch.equal(torch.compile(into, fullgraph=True, backend="aot_eager")(a, b), gelu(a=a, b=b) * 2)


@pytest.mark.parametrize("change, message", [
    (lambda a, b: dict(a=a), "gemm_gelu: tensor 'b' is missing; it is f16[N, K]"),
    (lambda a, b: dict(a=a, bb=b), "gemm_gelu has no tensor 'bb'; did you mean 'b'? there are a, b, c"),
    (lambda a, b: dict(a=a, b=b.bfloat16()), "gemm_gelu: tensor 'b' has elements of bf16 (dtype 2); it is f16[N, K]"),
    (lambda a, b: dict(a=a, b=b[None]), "gemm_gelu: tensor 'b' has 3 dimensions; it is f16[N, K]"),
    (lambda a, b: dict(a=a, b=b[:, :32].contiguous()),
     "gemm_gelu: 'K' is 64 by extent 1 of tensor 'a', and 32 by extent 1 of tensor 'b'"),
    (lambda a, b: dict(a=a, b=b, K=32), "gemm_gelu: 'K' is given as 32, and is 64 by extent 1 of tensor 'a'"),
    (lambda a, b: dict(a=a, b=b[::2, :]), "gemm_gelu: stride 0 of tensor 'b' is 128; the program takes it dense"),
    (lambda a, b: dict(a=a, b=b, scale=0.5), "gemm_gelu has no number 'scale'; there are M, N, K"),
    (lambda a, b: dict(a=a, b=b.double()), "gemm_gelu: b has elements of torch.float64; programs take"),
    (lambda a, b: dict(a=a.float().requires_grad_(), b=b), "gemm_gelu: a wants a gradient, and programs have none"),
    (lambda a, b: dict(a=a, b="x"), "gemm_gelu: b is a str; a program takes tensors and numbers"),
    (lambda a, b: dict(), "gemm_gelu: no tensor is given"),
])
@pytest.mark.parametrize("emulator", [None, emulate(LIBRARY, 90)])
def test_mistakes(gelu, change, message, emulator):
    """The same where nothing computes: that there is no GPU is said last."""
    _torch_programs.set_emulator(emulator)
    try:
        with pytest.raises(fagen.Error) as raised:
            gelu(**change(*matrices()))
    finally:
        _torch_programs.set_emulator(emulate(LIBRARY, 90))
    assert message in str(raised.value)


def test_results_have_memory_of_their_own(gelu):
    a, b = matrices(64, 64, 64)
    with pytest.raises(fagen.Error, match="gemm_gelu: tensor 'c' shares memory with 'a', which is read while 'c' is written"):
        gelu(a=a, b=b, c=a)
    packed = torch.zeros(65, 64, dtype=torch.float16)
    with pytest.raises(fagen.Error, match="tensor 'c' shares memory with 'b'"):
        gelu(a=a, b=packed[:64], c=packed[1:])
    two = fagen.program(os.path.join(PROGRAMS, "two_launches.fair"))
    x, u, w = torch.randn(32, 40).half(), torch.randn(72, 40).half(), torch.randn(72, 72).half()
    y = torch.zeros(32, 72, dtype=torch.float16)
    with pytest.raises(fagen.Error, match="shares memory with '[yz]', which is written, too, while '[yz]' is written"):
        two(x=x, u=u, w=w, y=y, z=y)


def test_promises_are_checked_on_the_emulator():
    ragged = fagen.program(os.path.join(PROGRAMS, "ragged_results.fair"))
    assert "begin: u32[B + 1] ascending" in str(ragged.signature)
    x, w = torch.randn(140, 64).half(), torch.randn(64, 64).half()
    right = torch.tensor([0, 70, 140], dtype=torch.int32)
    torch.testing.assert_close(ragged(x=x, w=w, begin=right, R=70).float(), x.float() @ w.float().T, atol=2e-2, rtol=2e-2)
    with pytest.raises(fagen.Error, match=r"begin\[2\] is 70, and begin\[1\] is 140; the program is promised that 'begin' is ascending"):
        ragged(x=x, w=w, begin=torch.tensor([0, 140, 70], dtype=torch.int32), R=140)


def test_numbers_are_finite_and_in_range(tmp_path):
    scaled = fagen.program(os.path.join(PROGRAMS, "..", "numbers.fair"))
    self = torch.randn(70, 64).half()  # as one of its tensors is called
    w = torch.randn(64, 64).half()
    y = scaled(self=self, w=w, scale=0.5, shift=3)
    torch.testing.assert_close(y.float(), self.float() @ w.float().T * 0.5 + 3, atol=2e-2, rtol=2e-2)
    with pytest.raises(fagen.Error, match="scaled: number 'scale' is nan; it must be finite"):
        scaled(self=self, w=w, scale=float("nan"), shift=3)
    with pytest.raises(fagen.Error, match="scaled: number 'shift' is 9; it must be 0 to 8"):
        scaled(self=self, w=w, scale=0.5, shift=9)


def test_arguments_have_names(gelu):
    with pytest.raises(TypeError, match=r"gemm_gelu: tensors and numbers are given by name: gemm_gelu\(a: f16\[M, K\], b: "):
        gelu(*matrices())


def test_which_program(gelu):
    with pytest.raises(fagen.Error, match="no program is named 'gem'; there are gemm_gelu"):
        fagen.program(gelu.kernels, "gem")
    assert gelu.kernels.programs == ["gemm_gelu(a: f16[M, K], b: f16[N, K]) -> c: f16[M, N]; numbers M: i32, N: i32, K: i32"]


def test_without_a_gpu_or_emulator(gelu):
    a, b = matrices()
    _torch_programs.set_emulator(None)
    try:
        with pytest.raises(fagen.Error, match="tensors are on cpu; programs run on GPUs"):
            gelu(a=a, b=b)
    finally:
        _torch_programs.set_emulator(emulate(LIBRARY, 90))


def attend(q, k, v, lengths_q, lengths_k, scale):
    """Causal attention of each sequence, bottom-right, in float64: O and LSE."""
    o, lse = torch.zeros(q.shape, dtype=torch.float64), torch.zeros(q.shape[1], q.shape[0], dtype=torch.float64)
    k, v = (each.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    first_q = first_k = 0
    for rows, keys in zip(lengths_q, lengths_k):
        of_q, of_k = slice(first_q, first_q + rows), slice(first_k, first_k + keys)
        scores = torch.einsum("qhd,khd->hqk", q[of_q].double(), k[of_k]) * scale
        scores = scores.masked_fill(~torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows), -torch.inf)
        lse[:, of_q] = torch.logsumexp(scores, -1)
        o[of_q] = torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1).nan_to_num(0.0), v[of_k])
        first_q, first_k = first_q + rows, first_k + keys
    return o, lse


# Empty sequences, rows without a key, single rows, tiles that end where a sequence does and one row after that; rows that
# belong to no sequence stay as they were.
@pytest.mark.parametrize("lengths_q, lengths_k", [([90, 0, 128, 1], [150, 40, 128, 300]), ([130, 3], [260, 0]), ([257, 1, 127, 129], [257, 1, 127, 129])])
def test_ragged_batches(lengths_q, lengths_k):
    ragged = fagen.program(os.path.join(PROGRAMS, "ragged_causal_hopper.fair"))
    draw = torch.Generator().manual_seed(1)
    rows, keys = sum(lengths_q) + 5, sum(lengths_k) + 5
    q, k, v = (torch.randn(n, heads, 128, generator=draw).half() for n, heads in ((rows, 2), (keys, 1), (keys, 1)))
    ends_q, ends_k = (torch.tensor([0, *lengths]).cumsum(0).int() for lengths in (lengths_q, lengths_k))
    o, lse = torch.full_like(q, 7.0), torch.full((2, rows), 7.0)
    ragged(q=q, k=k, v=v, cu_q=ends_q, cu_k=ends_k, o=o, lse=lse, B=len(lengths_q), MAXQ=max(lengths_q), scale=0.1, scale_log2=0.1 / math.log(2.0))
    wanted, sums = attend(q, k, v, lengths_q, lengths_k, 0.1)
    torch.testing.assert_close(o[:-5].double(), wanted[:-5], atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(lse[:, :-5].double(), sums[:, :-5], atol=1e-4, rtol=1e-4)
    assert (o[-5:] == 7.0).all() and (lse[:, -5:] == 7.0).all()
