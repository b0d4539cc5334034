# fagen: fagen.jax on a GPU, against jax.nn by xla and cudnn.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("jax_tvm_ffi")

import jax.numpy as jnp
import numpy

import fagen
import fagen.jax as ours

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="no GPU for JAX")


@pytest.fixture(autouse=True)
def strictly(monkeypatch):
    monkeypatch.setattr(ours, "fallback", "error")


def arrays(batch=2, heads=8, kv_heads=2, rows=512, keys=512, columns=128, dtype=jnp.bfloat16):
    draw = numpy.random.default_rng(0)
    shapes = [(batch, rows, heads, columns)] + 2 * [(batch, keys, kv_heads, columns)]
    return [jnp.asarray(draw.standard_normal(s), dtype) for s in shapes]


def exact(q, k, v, **options):
    with jax.default_matmul_precision("highest"):
        return jax.nn.dot_product_attention(*(t.astype(jnp.float32) for t in (q, k, v)), implementation="xla", **options)


def assert_near(got, wanted, tolerance=1.6e-2):
    numpy.testing.assert_allclose(numpy.asarray(got, numpy.float32), numpy.asarray(wanted, numpy.float32), atol=tolerance,
                                  rtol=tolerance)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("lengths", [(512, 512), (100, 333), (1, 700)])
def test_values(dtype, causal, columns, lengths):
    q, k, v = arrays(rows=lengths[0], keys=lengths[1], columns=columns, dtype=dtype)
    o, lse = jax.jit(lambda *t: ours.dot_product_attention(*t, is_causal=causal, return_residual=True))(q, k, v)
    wanted, sums = exact(q, k, v, is_causal=causal, return_residual=True)
    assert_near(o, wanted)
    assert_near(lse, sums, 2e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_against_cudnn(causal):
    q, k, v = arrays()
    theirs = jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn")
    assert_near(ours.dot_product_attention(q, k, v, is_causal=causal), theirs)


def test_many_calls_of_one_program():
    q, k, v = arrays(rows=2048, keys=2048)
    call = jax.jit(lambda q: ours.dot_product_attention(q, k, v, is_causal=True))
    first = numpy.asarray(call(q))
    for _ in range(100):
        assert numpy.array_equal(numpy.asarray(call(q)), first)


def test_vmap_and_gradients():
    q, k, v = arrays()
    stacked = [jnp.stack([t, t * 0.5]) for t in (q, k, v)]
    got = jax.vmap(lambda *t: ours.dot_product_attention(*t, is_causal=True))(*stacked)
    assert_near(got[1], exact(q * 0.5, k * 0.5, v * 0.5, is_causal=True))
    gradients = jax.grad(lambda *t: ours.dot_product_attention(*t).astype(jnp.float32).sum(), (0, 1, 2))(q, k, v)
    for one, other in zip(gradients, jax.grad(lambda *t: exact(*t).sum(), (0, 1, 2))(q, k, v)):
        assert_near(one, other, 5e-2)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("options", [{"bias": (1, 8, 1, 700)}, {"mask": (2, 1, 300, 700)}, {"bias": (2, 1, 300, 700), "mask": (1, 1, 300, 700)},
                                     {"mask": (1, 8, 300, 700), "is_causal": True, "local_window_size": (60, 20)}])
def test_bias_and_mask(dtype, options):
    q, k, v = arrays(rows=300, keys=700, dtype=dtype)
    draw, options = numpy.random.default_rng(1), dict(options)
    if "bias" in options:
        options["bias"] = jnp.asarray(draw.standard_normal(options["bias"]), jnp.float32)
    if "mask" in options:
        options["mask"] = jnp.asarray(draw.random(options["mask"]) < 0.6).at[..., 0].set(True)
    o, lse = jax.jit(lambda *t: ours.dot_product_attention(*t, **options, return_residual=True))(q, k, v)
    wanted, sums = exact(q, k, v, **options, return_residual=True)
    if "is_causal" not in options:  # there a row may see nothing: jax.nn's is the mean of V
        assert_near(o, wanted)
        assert_near(lse, sums, 2e-3)
    else:
        seen = jnp.isfinite(lse)
        assert_near(o[seen], wanted[seen])
        assert not o[~seen].any()


@pytest.mark.parametrize("value", [-1e4, -1e9, -0.7 * float(jnp.finfo(jnp.float32).max), float(jnp.finfo(jnp.float32).min)])
def test_large_biases(value):
    q, k, v = arrays(rows=300, keys=300)
    bias = jnp.where(jnp.tril(jnp.ones((300, 300), bool)), 0.0, value)[None, None].astype(jnp.float32)
    assert_near(ours.dot_product_attention(q, k, v, bias), exact(q, k, v, is_causal=True))


def test_scales_that_are_traced_and_below_0():
    q, k, v = arrays()
    for scale in (0.05, -0.05):
        assert_near(jax.jit(lambda s: ours.dot_product_attention(q, k, v, scale=s))(scale), exact(q, k, v, scale=scale))
        assert_near(ours.dot_product_attention(q, k, v, scale=scale), exact(q, k, v, scale=scale))


def test_what_does_not_fit():
    q, k, v = arrays()
    for wrong in ((q, k.astype(jnp.float16), v.astype(jnp.float16)), (q, k, v[:, :100])):
        with pytest.raises(fagen.Error, match="key is of float16|value has 100 rows"):
            ours.dot_product_attention(*wrong)
