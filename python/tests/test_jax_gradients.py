# fagen: gradients of attention in JAX by programs of the package, on CPU arrays by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import jax.numpy as jnp
import numpy

import fagen
import fagen.jax as ours
from fagen import _jax_gradients, _jax_programs, _lib
from emulated_programs import emulate

LIBRARY = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY), reason="no emulator in this build")


@pytest.fixture(autouse=True)
def launches(monkeypatch):
    """Programs' names, one a launch."""
    library, error = ctypes.CDLL(LIBRARY), ctypes.create_string_buffer(2048)
    assert not library.fagen_torch_emulator_open(os.fsencode(_lib.path("kernels", "l4_fp16")), 90, error, 2048), error.value
    ours._ours.fagen_jax_set_emulator(ctypes.cast(library.fagen_torch_emulate, ctypes.c_void_p))
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    monkeypatch.setattr(ours, "fallback", "error")
    names = []

    run = emulate(LIBRARY, 90)

    def noted(kernels, call):
        names.append(call.program.decode())
        run(kernels, call)
    _jax_programs.set_emulator(noted)
    yield names
    _jax_programs.set_emulator(None)


def arrays(batch=1, heads=2, kv_heads=1, rows=70, keys=70, columns=64, dtype=jnp.float16):
    draw = numpy.random.default_rng(0)
    shapes = [(batch, rows, heads, columns)] + 2 * [(batch, keys, kv_heads, columns)] + [(batch, rows, heads, columns)]
    return [jnp.asarray(draw.standard_normal(s), dtype) for s in shapes]


def gradients(attend, q, k, v, weights, **options):
    """Of sum(weights * O), and of LSE where it is there, by q, k and v."""
    def loss(*given):
        found = attend(*given, **options)
        o, lse = found if options.get("return_residual") else (found, 0.0)
        return (o.astype(jnp.float32) * weights).sum() + (jnp.sin(jnp.arange(jnp.size(lse)).reshape(jnp.shape(lse))) * lse).sum()
    return jax.grad(loss, (0, 1, 2))(q, k, v)


def exact(q, k, v, **options):
    return jax.nn.dot_product_attention(*(t.astype(jnp.float32) for t in (q, k, v)), **options)


def assert_near(got, wanted, tolerance=2e-2):
    for one, other in zip(got, wanted):
        assert one.shape == other.shape
        numpy.testing.assert_allclose(numpy.asarray(one, numpy.float32), numpy.asarray(other, numpy.float32), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("options, shape, program", [
    ({}, dict(rows=30, keys=70), "backward_f16_d64"),
    ({"is_causal": True, "scale": 0.1}, dict(batch=2), "backward_f16_d64_window"),
    ({"is_causal": True, "return_residual": True}, {}, "backward_f16_d64_window"),
])
def test_values(launches, options, shape, program):
    given = arrays(**shape)
    assert_near(gradients(ours.dot_product_attention, *given, **options), gradients(exact, *given, **options))
    assert launches == [program]


@pytest.mark.parametrize("scratch, count", [(2 * 70 * 128, 8), (4 * 2 * 70 * 128, 2)])
def test_pieces(launches, monkeypatch, scratch, count):
    """Batches, heads and parts of a group, each a launch of its own: the bits of one launch but where parts are added."""
    given = arrays(batch=2, heads=4, kv_heads=2)
    jax.clear_caches()
    whole = gradients(ours.dot_product_attention, *given)
    monkeypatch.setattr(_jax_gradients, "_MOST_SCRATCH", scratch)
    jax.clear_caches()  # JAX keeps what a backward pass was traced to
    launches.clear()
    got = gradients(ours.dot_product_attention, *given)
    assert len(launches) == count
    assert jnp.array_equal(got[0], whole[0])
    if count < 8:
        assert all(jnp.array_equal(*pair) for pair in zip(got, whole))
    assert_near(got, whole, 2e-3)


def test_by_mma_sync(launches, monkeypatch):
    monkeypatch.setattr(ours, "_gpu", lambda: (89, 58))
    given = arrays(rows=40, keys=40)
    assert_near(gradients(ours.dot_product_attention, *given, is_causal=True), gradients(exact, *given, is_causal=True))
    assert launches == ["backward_sync_f16_d64_window"]


def test_jit_and_vmap(launches):
    given = arrays(rows=40, keys=40)
    call = lambda *t: gradients(ours.dot_product_attention, *t, is_causal=True)  # noqa: E731
    whole = call(*given)
    assert all(jnp.array_equal(*pair) for pair in zip(jax.jit(call)(*given), whole))
    several = jax.vmap(call)(*(jnp.stack([t, t * 0.5]) for t in given))
    assert all(jnp.array_equal(one[0], other) for one, other in zip(several, whole))
    assert_near([t[1] for t in several], gradients(exact, *(t * 0.5 for t in given), is_causal=True))


@pytest.mark.parametrize("change, gpu", [({"dtype": jnp.float32}, 90), ({"columns": 72}, 90), ({}, 75), ({"keys": 0}, 90)])
def test_what_has_no_program(change, gpu):
    q, k, v, _ = arrays(**change)
    assert not _jax_gradients.has_program(q, k, v, gpu)


def test_what_is_too_long_has_no_program(monkeypatch):
    q, k, v, _ = arrays()
    assert _jax_gradients.has_program(q, k, v, 90)
    monkeypatch.setattr(_jax_gradients, "_MOST_SCRATCH", 2 * 70 * 128 - 1)
    assert not _jax_gradients.has_program(q, k, v, 90)
