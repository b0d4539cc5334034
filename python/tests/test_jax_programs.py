# fagen: programs of kernel sets on JAX arrays of the CPU, by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import jax.numpy as jnp
import numpy

import fagen
from fagen import _jax_programs, _lib
from emulated_programs import emulate

LIBRARY = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "Inputs", "programs")
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY), reason="no emulator in this build")


@pytest.fixture(scope="module", autouse=True)
def emulator():
    _jax_programs.set_emulator(emulate(LIBRARY, 90))
    yield
    _jax_programs.set_emulator(None)


@pytest.fixture(scope="module")
def gelu():
    return _jax_programs.program(os.path.join(PROGRAMS, "gemm_gelu.fair"))


def matrices(m=70, n=40, k=64):
    draw = numpy.random.default_rng(1)
    return [jnp.asarray(draw.standard_normal(shape), jnp.float16) for shape in ((m, k), (n, k))]


def expected(a, b):
    return jax.nn.gelu(a.astype(jnp.float32) @ b.astype(jnp.float32).T, approximate=True)


def test_eager_and_jit(gelu):
    a, b = matrices()
    c = gelu(a=a, b=b)
    assert c.shape == (70, 40) and c.dtype == jnp.float16
    numpy.testing.assert_allclose(c.astype(jnp.float32), expected(a, b), atol=2e-2, rtol=2e-2)
    traced = jax.jit(lambda a, b: gelu(a=a + 0, b=b) * 2)(a, b)
    assert jnp.array_equal(traced, c * 2)
    assert jnp.array_equal(gelu(a=numpy.asarray(a), b=b, K=64), c)


def test_integers_and_sizes_of_sums():
    ragged = _jax_programs.program(os.path.join(PROGRAMS, "ragged_results.fair"))
    draw = numpy.random.default_rng(0)
    x, w = (jnp.asarray(draw.standard_normal(shape), jnp.float16) for shape in ((140, 64), (64, 64)))
    begin = jnp.asarray([0, 70, 140], jnp.int32)  # u32[B + 1]
    wanted = x.astype(jnp.float32) @ w.astype(jnp.float32).T
    numpy.testing.assert_allclose(ragged(x=x, w=w, begin=begin, R=70).astype(jnp.float32), wanted, atol=2e-2, rtol=2e-2)


def test_several_launches_and_results():
    two = _jax_programs.program(os.path.join(PROGRAMS, "two_launches.fair"))
    draw = numpy.random.default_rng(0)
    x, u, w = (jnp.asarray(draw.standard_normal(shape), jnp.float16) for shape in ((32, 40), (72, 40), (72, 72)))
    y, z = two(x=x, u=u, w=w)
    numpy.testing.assert_allclose(y.astype(jnp.float32), x.astype(jnp.float32) @ u.astype(jnp.float32).T, atol=2e-2, rtol=2e-2)
    assert z.shape == (32, 72)


@pytest.mark.parametrize("change, message", [
    (dict(b=jnp.zeros((40, 72), jnp.float16)), "'K' is 64 by extent 1 of tensor 'a', and 72 by extent 1 of tensor 'b'"),
    (dict(a=jnp.zeros((70, 64), jnp.bfloat16)), "tensor 'a' has elements of bf16"),
    (dict(c=jnp.zeros((70, 40), jnp.float16)), "c is a result, which JAX allocates"),
    (dict(K=1.5), "K is 1.5; it is a whole number"),
    (dict(K=65), "'K' is given as 65, and is 64 by extent 1 of tensor 'a'"),
    (dict(scale="x"), "scale is a str; a program takes arrays and numbers"),
])
def test_mistakes(gelu, change, message):
    a, b = matrices()
    with pytest.raises(fagen.Error) as caught:
        gelu(**{"a": a, "b": b, **change})
    assert message in str(caught.value)


def test_missing_arrays_and_names(gelu):
    with pytest.raises(fagen.Error, match="tensors and numbers are given by name"):
        gelu(*matrices())
    with pytest.raises(fagen.Error, match="tensor 'b' is missing"):
        gelu(a=matrices()[0])
    with pytest.raises(fagen.Error, match="no array is given"):
        gelu()
    with pytest.raises(fagen.Error, match="no program is named 'gem'"):
        _jax_programs.program(gelu.kernels, "gem")


def test_vmap(gelu):
    a, b = matrices()
    several = jax.vmap(lambda a: gelu(a=a, b=b))(jnp.stack([a, a * 0.5]))
    assert jnp.array_equal(several[0], gelu(a=a, b=b)) and jnp.array_equal(several[1], gelu(a=a * 0.5, b=b))
