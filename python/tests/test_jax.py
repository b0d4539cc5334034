# fagen: JAX on CPU arrays: values by the emulator, jit, vmap, gradients, what jax.nn computes instead.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # arrays are small: XLA takes longer to compile than to compute

import jax
import jax.numpy as jnp
import numpy

import fagen
import fagen.jax as ours
from fagen import _lib

LIBRARY = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
pytestmark = pytest.mark.skipif(not os.path.exists(LIBRARY), reason="no emulator in this build")


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    library, error = ctypes.CDLL(LIBRARY), ctypes.create_string_buffer(2048)
    assert not library.fagen_torch_emulator_open(os.fsencode(_lib.path("kernels", "l4_fp16")), 89, error, 2048), error.value
    ours._ours.fagen_jax_set_emulator(ctypes.cast(library.fagen_torch_emulate, ctypes.c_void_p))
    monkeypatch.setattr(ours, "_gpu", lambda: (89, 58))
    monkeypatch.setattr(ours, "fallback", "torch")
    fagen.stats(reset=True)


def arrays(batch=2, heads=4, kv_heads=2, rows=24, keys=24, columns=64):
    draw = numpy.random.default_rng(0)
    shapes = [(batch, rows, heads, columns)] + 2 * [(batch, keys, kv_heads, columns)]
    return [jnp.asarray(draw.standard_normal(s), jnp.float16) for s in shapes]


def exact(q, k, v, *rest, **options):
    return jax.nn.dot_product_attention(*(t.astype(jnp.float32) for t in (q, k, v)), *rest, **options)


def assert_near(got, wanted, tolerance=3e-3):
    numpy.testing.assert_allclose(numpy.asarray(got, numpy.float32), numpy.asarray(wanted, numpy.float32), atol=tolerance,
                                  rtol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(24, 24), (24, 40), (1, 40)])
def test_values(causal, lengths):
    q, k, v = arrays(rows=lengths[0], keys=lengths[1])
    assert_near(ours.dot_product_attention(q, k, v, is_causal=causal), exact(q, k, v, is_causal=causal))
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}


def test_residual_scale_and_three_dimensions():
    q, k, v = arrays()
    o, lse = ours.dot_product_attention(q, k, v, scale=0.07, return_residual=True)
    wanted, sums = exact(q, k, v, scale=0.07, return_residual=True)
    assert_near(o, wanted)
    assert_near(lse, sums)
    assert_near(ours.dot_product_attention(q[0], k[0], v[0], scale=0.07), wanted[0])


def test_jit_and_vmap():
    q, k, v = arrays()
    call = jax.jit(lambda *t: ours.dot_product_attention(*t, is_causal=True))
    assert_near(call(q, k, v), exact(q, k, v, is_causal=True))
    stacked = [jnp.stack([t, t * 0.5]) for t in (q, k, v)]
    assert_near(jax.vmap(call)(*stacked)[1], exact(q * 0.5, k * 0.5, v * 0.5, is_causal=True))
    one = jax.vmap(lambda t: ours.dot_product_attention(t, k, v, return_residual=True))(stacked[0])
    for got, wanted in zip(one, exact(q * 0.5, k, v, return_residual=True)):
        assert_near(got[1], wanted)


def test_gradients():
    q, k, v = arrays()
    got = jax.grad(lambda *t: ours.dot_product_attention(*t, is_causal=True).astype(jnp.float32).sum(), (0, 1, 2))(q, k, v)
    wanted = jax.grad(lambda *t: exact(*t, is_causal=True).sum(), (0, 1, 2))(q, k, v)
    for one, other in zip(got, wanted):
        assert_near(one, other, 1e-2)


@pytest.mark.parametrize("change, reason", [
    ({"implementation": "xla"}, "implementation")])
def test_what_jax_computes(change, reason, monkeypatch):
    q, k, v = arrays()
    assert_near(ours.dot_product_attention(q, k, v, **change), jax.nn.dot_product_attention(q, k, v, **change))
    assert fagen.stats()["fallbacks"] == {("jax.dot_product_attention", f"{reason}: kernels do not have it"): 1}
    monkeypatch.setattr(ours, "fallback", "error")
    with pytest.raises(fagen.Unsupported, match=reason):
        ours.dot_product_attention(q, k, v, **change)


@pytest.fixture
def shipped_forms():
    library, error = ctypes.CDLL(LIBRARY), ctypes.create_string_buffer(2048)
    assert not library.fagen_torch_emulator_open(os.fsencode(_lib.path("kernels", "forms")), 90, error, 2048), error.value


@pytest.mark.parametrize("causal, window, lengths", [(True, 3, (24, 24)), (True, (5, 7), (24, 40)), (False, (6, 0), (24, 24)),
                                                     (False, (6, 3), (24, 24)), (False, 4, (24, 24))])
def test_windows_by_forms(shipped_forms, monkeypatch, causal, window, lengths):
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(rows=lengths[0], keys=lengths[1])
    options = {"is_causal": causal, "local_window_size": window, "return_residual": True}
    for got, wanted in zip(ours.dot_product_attention(q, k, v, **options), exact(q, k, v, **options)):
        assert_near(got, wanted)
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}
    call = lambda f: lambda *t: f(*t, is_causal=causal, local_window_size=window).astype(jnp.float32).sum()  # noqa: E731
    for one, other in zip(*(jax.grad(call(f), (0, 1, 2))(q, k, v) for f in (ours.dot_product_attention, exact))):
        assert_near(one, other, 1e-2)


def elements(**options):
    """Of a problem of 24 rows and 40 keys; each row sees a key."""
    draw = numpy.random.default_rng(1)
    made = {"bias": jnp.asarray(draw.standard_normal((1, 4, 1, 40)), jnp.float16), "wide": jnp.asarray(draw.standard_normal((2, 1, 24, 40)), jnp.float32),
            "mask": jnp.asarray(draw.random((1, 1, 24, 40)) < 0.6).at[..., 0].set(True),
            "padding": jnp.arange(40)[None, None, None] < jnp.array([17, 40])[:, None, None, None]}
    return {name: made[given] if isinstance(given, str) else given for name, given in options.items()}


@pytest.mark.parametrize("options", [
    {"bias": "bias"}, {"bias": "wide", "is_causal": True}, {"mask": "mask"}, {"mask": "padding", "is_causal": True},
    {"bias": "bias", "mask": "mask", "local_window_size": (7, 3)}, {"mask": "mask", "is_causal": True, "local_window_size": 5}])
def test_bias_and_mask_by_forms(shipped_forms, monkeypatch, options):
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(rows=24, keys=40)
    options = elements(**options)
    for got, wanted in zip(ours.dot_product_attention(q, k, v, **options, return_residual=True),
                           exact(q, k, v, **options, return_residual=True)):
        assert_near(got, wanted)
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}
    bias = options.pop("bias", None)
    tensors = (q, k, v) if bias is None else (q, k, v, bias)
    call = lambda f: lambda *t: f(*t, **options).astype(jnp.float32).sum()  # noqa: E731
    for one, other in zip(*(jax.grad(call(f), tuple(range(len(tensors))))(*tensors) for f in (ours.dot_product_attention, exact))):
        assert_near(one, other, 1e-2)


@pytest.mark.parametrize("low, mask", [(-0.7 * float(jnp.finfo(jnp.float32).max), None), (float(jnp.finfo(jnp.float32).min), None), (-1e9, "mask")])
def test_biases_that_mask(shipped_forms, monkeypatch, low, mask):
    """Rows of which all keys have the bias are those of jax.nn: the average of V. With a mask none is: jax.nn would average hidden keys, too."""
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(1, rows=24, keys=40)
    seen = jnp.arange(40) <= jnp.arange(24)[:, None] - (0 if mask else 5)
    options = elements(bias=jnp.where(seen, 0.0, low).astype(jnp.float32)[None, None], **{"mask": mask} if mask else {})
    for got, wanted in zip(ours.dot_product_attention(q, k, v, **options, return_residual=True),
                           exact(q, k, v, **options, return_residual=True)):
        assert_near(got, wanted)
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}


@pytest.mark.parametrize("causal, window", [(True, None), (False, (3, 0)), (False, (3, 3))])
def test_the_kernel_takes_no_causality_or_window_beside_a_bias(causal, window):
    q, k, v = arrays()
    with pytest.raises(Exception, match="part of visible"):
        jax.block_until_ready(ours._attention(q, k, v, jnp.zeros((1, 1, 24, 24)), None, 0.125, causal, False, window))


def test_bias_and_mask_under_vmap(shipped_forms, monkeypatch):
    """A mask of one batch for all of a call: vmap leaves no stride for both, so each of its calls is a launch."""
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(rows=24, keys=40)
    made = elements(mask="mask", bias="wide")
    stacked = jnp.stack([q, q * 0.5])
    masks = jnp.stack([made["mask"], ~made["mask"]])
    got = jax.jit(jax.vmap(lambda t, m: ours.dot_product_attention(t, k, v, made["bias"], m)))(stacked, masks)
    assert_near(got[0], exact(q, k, v, **made))
    assert_near(got[1], exact(q * 0.5, k, v, made["bias"], ~made["mask"]))


@pytest.mark.parametrize("causal", [False, True])
def test_lengths_of_batches(shipped_forms, monkeypatch, causal):
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(rows=24, keys=40)
    options = {"query_seq_lengths": jnp.array([24, 11], jnp.int32), "key_value_seq_lengths": jnp.array([17, 40], jnp.int32), "is_causal": causal}
    assert_near(ours.dot_product_attention(q, k, v, **options), exact(q, k, v, **options))
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}
    call = lambda f: lambda *t: (f(*t, **options).astype(jnp.float32) ** 2).sum()  # noqa: E731
    for one, other in zip(*(jax.grad(call(f), (0, 1, 2))(q, k, v) for f in (ours.dot_product_attention, exact))):
        assert_near(one, other, 1e-2)


def test_rows_that_see_nothing(shipped_forms, monkeypatch):
    monkeypatch.setattr(ours, "_gpu", lambda: (90, 132))
    q, k, v = arrays(rows=24, keys=40)
    nothing = lambda *t: ours.dot_product_attention(*t, mask=jnp.zeros((1, 1, 24, 40), bool)).astype(jnp.float32).sum()  # noqa: E731
    assert all(not t.any() for t in jax.grad(nothing, (0, 1, 2))(q, k, v))
    o, lse = ours.dot_product_attention(q, k, v, mask=jnp.ones((1, 1, 24, 1), bool).at[..., 5, :].set(False), return_residual=True)
    assert not o[:, 5].any() and bool(jnp.isneginf(lse[:, 5]).all()) and bool(jnp.isfinite(lse[:, 4]).all())


@pytest.mark.parametrize("change", [{"bias": jnp.zeros((1, 4, 24, 40), jnp.float16)}, {"mask": jnp.ones((2, 1, 24, 40), bool)}])
def test_bias_and_mask_where_no_gpu_has_them(change):
    q, k, v = arrays(rows=24, keys=40)
    assert_near(ours.dot_product_attention(q, k, v, **change), exact(q, k, v, **change))
    assert fagen.stats()["computed"] == {} and len(fagen.stats()["fallbacks"]) == 1


def test_windows_by_jax():
    q, k, v = arrays(rows=24, keys=40)
    assert_near(ours.dot_product_attention(q, k, v, local_window_size=3), exact(q, k, v, local_window_size=3))
    (_, reason), = fagen.stats()["fallbacks"]
    assert reason == "local_window_size: rows and keys are not as many, or a side is negative"
    assert_near(ours.dot_product_attention(q, k, v, local_window_size=100), exact(q, k, v))
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}


def test_fewer_keys_than_rows_other_types_and_head_dims():
    q, k, v = arrays(rows=40)
    assert_near(ours.dot_product_attention(q, k, v, is_causal=True), exact(q, k, v, is_causal=True))
    q, k, v = arrays(columns=80)
    assert_near(ours.dot_product_attention(q, k, v), exact(q, k, v))
    ours.dot_product_attention(*(t.astype(jnp.float32) for t in arrays()))
    assert not fagen.stats()["computed"] and len(fagen.stats()["fallbacks"]) == 3


def test_other_backends(monkeypatch):
    monkeypatch.setattr(ours, "_gpu", lambda: None)
    ours.dot_product_attention(*arrays())
    assert ("jax.dot_product_attention", "the backend is cpu; kernels run on CUDA GPUs") in fagen.stats()["fallbacks"]


MISTAKES = [
    ({"query": None}, "query is None; it is an array"),
    ({"key": "k"}, "key is 'k'; it is an array"),
    ({"query": numpy.zeros((1, 2, 24, 4, 64))}, "query has shape (1, 2, 24, 4, 64); it has at most 4 dimensions"),
    ({"key": jnp.bfloat16}, "key is of bfloat16, and query of float16"),
    ({"value": jnp.float32}, "value is of float32, and query of float16"),
    ({"value": (2, 8, 2, 64)}, "value has 8 rows and 2 heads, and key 24 and 2"),
    ({"value": (2, 24, 1, 64)}, "value has 24 rows and 1 heads, and key 24 and 2"),
    ({"key": (1, 24, 2, 64), "value": (1, 24, 2, 64)}, "key has 1 batches, and query 2"),
    ({"key": (2, 24, 2, 32)}, "key has head_dim 32, and query 64"),
    ({"key": (2, 24, 3, 64), "value": (2, 24, 3, 64)}, "key has 3 heads, which do not divide the 4 of query"),
    ({"mask": numpy.zeros((1, 1, 24, 24), numpy.float32)}, "mask is of float32; it is of bool"),
    ({"query_seq_lengths": numpy.array([3, 4, 5], numpy.int32)}, "query_seq_lengths is of int32 and shape (3,); it is of int32 and shape (2,)"),
    ({"key_value_seq_lengths": numpy.array([3, 4], numpy.float32)}, "key_value_seq_lengths is of float32 and shape (2,); it is of int32"),
    ({"local_window_size": "3"}, "local_window_size is '3'; it is an integer, or a pair of them"),
    ({"local_window_size": (3, 1, 2)}, "local_window_size is (3, 1, 2); it is an integer"),
]
OF_OURS = [({"scale": "0.1"}, "scale is '0.1'; it is a number"), ({"scale": True}, "scale is True; it is a number"), ({"scale": float("nan")}, "scale is nan; it is finite"),
           ({"scale": numpy.ones(2)}, "it is a number"), ({"local_window_size": 2.5}, "local_window_size is 2.5; it is an integer"),
           ({"is_causal": "yes"}, "is_causal is 'yes'; it is True or False"), ({"return_residual": 2}, "return_residual is 2; it is True or False")]


def made(name, given):
    """An argument of MISTAKES: a type or a shape stands for an array of it."""
    if name in ("key", "value") and not isinstance(given, str):
        return jnp.ones(given, jnp.float16) if isinstance(given, tuple) else jnp.ones((2, 24, 2, 64), given)
    return given


@pytest.mark.parametrize("number", range(len(MISTAKES) + len(OF_OURS)))
def test_mistakes_are_named_as_jax_refuses_them(number):
    change, said = [*MISTAKES, *OF_OURS][number]
    given = {**dict(zip(("query", "key", "value"), arrays())), **{name: made(name, one) for name, one in change.items()}}
    with pytest.raises(fagen.Error) as caught:
        ours.dot_product_attention(**given)
    assert said in str(caught.value)
    if number < len(MISTAKES):
        with pytest.raises(Exception):  # noqa: B017
            jax.nn.dot_product_attention(**given)


def test_kernels_check_what_they_are_given():
    """Those who call XLA's custom call themselves are not let past the end of an array."""
    q, k, v = arrays()
    for wrong in ((q, k, v[:, :8]), (q, k.astype(jnp.bfloat16), v), (q, k[..., :32], v), (q[:1], k, v)):
        with pytest.raises(Exception, match="q, k and v|k and v have the same|q and k have the same"):
            jax.block_until_ready(ours._attention(*wrong, None, None, 0.125, False, False, None))
    with pytest.raises(Exception, match="bias and visible are"):
        jax.block_until_ready(ours._attention(q, k, v, jnp.zeros((1, 1, 24, 8)), None, 0.125, False, False, None))


@pytest.mark.parametrize("scale", [0, 1, 0.07, -0.07, numpy.float32(0.07), numpy.array(0.07), jnp.float32(0.07), numpy.int64(1)])
def test_scales(scale):
    q, k, v = arrays()
    assert_near(ours.dot_product_attention(q, k, v, scale=scale), exact(q, k, v, scale=float(scale)))
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 1}


def test_scales_that_are_traced():
    q, k, v = arrays()
    call = lambda f: lambda s: f(q, k, v, scale=s, is_causal=True)  # noqa: E731
    got, wanted = call(ours.dot_product_attention), call(exact)
    assert_near(jax.jit(got)(0.07), wanted(0.07), 5e-3)
    assert_near(jax.jit(got)(-0.07), wanted(-0.07), 5e-3)
    for one, scale in zip(jax.vmap(got)(jnp.array([0.05, 0.1])), (0.05, 0.1)):
        assert_near(one, wanted(scale), 5e-3)
    total = lambda f: lambda s: (call(f)(s).astype(jnp.float32) ** 2).sum()  # noqa: E731
    numpy.testing.assert_allclose(jax.grad(total(ours.dot_product_attention))(0.07), jax.grad(total(exact))(0.07), rtol=2e-2)
    assert fagen.stats()["computed"] == {"jax.dot_product_attention": 3} and not fagen.stats()["fallbacks"]
    with pytest.raises(fagen.Error, match="scale is of float32 and shape .2,.; it is one number"):
        jax.jit(got)(jnp.ones(2))


def test_forward_mode_is_an_error():
    q, k, v = arrays()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: ours.dot_product_attention(x, k, v), (q,), (q,))


def test_dimensions_that_are_left_out_and_arrays_of_numpy():
    q, k, v = (numpy.asarray(t) for t in arrays(batch=1))
    wanted, sums = exact(*(jnp.asarray(t) for t in (q, k, v)), return_residual=True)
    for given in ((q[0], k[0], v[0]), (q, k[0], v[0]), (q[0], k, v)):
        o, lse = ours.dot_product_attention(*given, return_residual=True)
        assert o.shape == given[0].shape and lse.shape == given[0].shape[:-1]
        assert_near(o.reshape(wanted.shape), wanted)
        assert_near(lse.reshape(sums.shape), sums)
