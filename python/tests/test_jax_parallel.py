# fagen: JAX on four devices of the CPU: shardings that calls keep, and rings in shard_map, by the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import functools
import os

import pytest

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import NamedSharding, PartitionSpec as P

import fagen
import fagen.jax as ours
from fagen import _lib
from fagen.parallel import _jax_gradients, jax as parallel

LIBRARY = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
pytestmark = [pytest.mark.skipif(not os.path.exists(LIBRARY), reason="no emulator in this build"),
              pytest.mark.skipif(len(jax.devices()) < 4, reason="JAX was imported before, with fewer devices: run this file by itself")]


def emulate(monkeypatch, kernels, gpu):
    library, error = ctypes.CDLL(LIBRARY), ctypes.create_string_buffer(2048)
    assert not library.fagen_torch_emulator_open(os.fsencode(_lib.path("kernels", kernels)), gpu, error, 2048), error.value
    ours._ours.fagen_jax_set_emulator(ctypes.cast(library.fagen_torch_emulate, ctypes.c_void_p))
    monkeypatch.setattr(ours, "_gpu", lambda: (gpu, 132))
    monkeypatch.setattr(ours, "fallback", "error")


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    emulate(monkeypatch, "l4_fp16", 89)


def arrays(batch=2, rows=16, heads=4, kv_heads=2):
    draw = numpy.random.default_rng(0)
    return [jnp.asarray(draw.standard_normal((batch, rows, h, 64)), jnp.float16) for h in (heads, kv_heads, kv_heads)]


def exact(q, k, v, causal):
    return jax.nn.dot_product_attention(*(t.astype(jnp.float32) for t in (q, k, v)), is_causal=causal, return_residual=True)


def assert_near(got, wanted):
    numpy.testing.assert_allclose(numpy.asarray(got, numpy.float32), numpy.asarray(wanted), atol=3e-3, rtol=3e-3)


def mesh_of(*shape):
    return jax.make_mesh(shape, ("x", "y")[:len(shape)], axis_types=(jax.sharding.AxisType.Auto,) * len(shape))


@pytest.mark.parametrize("kv_heads", [2, 4])
@pytest.mark.parametrize("spec, causal, gathers", [(P("x", None, "y", None), True, False), (P("x"), True, False), (P(None, None, "y"), False, False),
                                                   (P(None, "x"), True, True)])
def test_shardings_are_kept(spec, causal, gathers, kv_heads):
    """Batches and heads stay on their devices: no gathering is compiled; rows are gathered where a mask compares them with keys."""
    inputs = arrays(kv_heads=kv_heads)
    sharded = [jax.device_put(t, NamedSharding(mesh_of(2, 2), spec)) for t in inputs]
    function = jax.jit(lambda *t: ours.dot_product_attention(*t, is_causal=causal, return_residual=True)).lower(*sharded).compile()
    o, lse = function(*sharded)
    wanted, sums = exact(*inputs, causal)
    assert_near(o, wanted)
    assert_near(lse, sums)
    assert ("all-gather" in function.as_text()) == gathers
    if not gathers:
        assert o.sharding.is_equivalent_to(sharded[0].sharding, 4)


def test_masks_are_sharded_along(monkeypatch):
    """What is read for each query and key, of one head here."""
    emulate(monkeypatch, "forms", 90)
    inputs, mesh = arrays(), mesh_of(2, 2)
    mask = jnp.asarray(numpy.random.default_rng(1).random((2, 1, 16, 16)) < 0.7).at[..., 0].set(True)
    sharded = [jax.device_put(t, NamedSharding(mesh, P("x", None, "y"))) for t in inputs] + [jax.device_put(mask, NamedSharding(mesh, P("x")))]
    function = jax.jit(lambda *t: ours.dot_product_attention(*t[:3], mask=t[3])).lower(*sharded).compile()
    assert_near(function(*sharded), jax.nn.dot_product_attention(*(t.astype(jnp.float32) for t in inputs), mask=mask))
    assert "all-gather" not in function.as_text()


def test_vmap_folds_into_the_batch():
    several = [jnp.stack([t, t[::-1]]) for t in arrays()]
    o = jax.jit(jax.vmap(lambda *t: ours.dot_product_attention(*t, is_causal=True)))(*several)
    for index in range(2):
        assert_near(o[index], exact(*(t[index] for t in several), True)[0])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
def test_rings(ranks, causal):
    inputs = arrays(rows=32)
    mesh = mesh_of(ranks)
    order = functools.partial(parallel.zigzag, ranks=ranks) if causal else lambda t: t
    back = functools.partial(parallel.unzigzag, ranks=ranks) if causal else lambda t: t
    ring = jax.jit(jax.shard_map(functools.partial(parallel.ring_attention, axis_name="x", is_causal=causal, return_residual=True), mesh=mesh,
                                 in_specs=P(None, "x"), out_specs=P(None, "x"), check_vma=False))
    o, lse = ring(*map(order, inputs))
    wanted, sums = exact(*inputs, causal)
    assert_near(back(o), wanted)
    assert_near(back(lse), sums)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("rows_at_once", [256, 3])
def test_gradients_of_rings(monkeypatch, ranks, causal, rows_at_once):
    """Through O and LSE, against one device."""
    monkeypatch.setattr(_jax_gradients, "_ROWS", rows_at_once)
    inputs, draw = arrays(rows=32), numpy.random.default_rng(3)
    of_o, of_lse = jnp.asarray(draw.standard_normal((2, 32, 4, 64)), jnp.float32), jnp.asarray(draw.standard_normal((2, 32, 4)), jnp.float32)
    order = functools.partial(parallel.zigzag, ranks=ranks) if causal else lambda t: t
    ring = jax.shard_map(functools.partial(parallel.ring_attention, axis_name="x", is_causal=causal, return_residual=True), mesh=mesh_of(ranks),
                         in_specs=P(None, "x"), out_specs=P(None, "x"), check_vma=False)

    def loss(outputs, weights):
        return sum((one.astype(jnp.float32) * weight).sum() for one, weight in zip(outputs, weights))
    got = jax.jit(jax.grad(lambda *t: loss(ring(*map(order, t)), map(order, (of_o, of_lse))), argnums=(0, 1, 2)))(*inputs)
    wanted = jax.grad(lambda *t: loss(by_hand(*t, causal), (of_o, of_lse)), argnums=(0, 1, 2))(*(t.astype(jnp.float32) for t in inputs))
    for one, other in zip(got, wanted):
        numpy.testing.assert_allclose(numpy.asarray(one, numpy.float32), numpy.asarray(other), atol=4e-3, rtol=4e-3)


def by_hand(q, k, v, causal):
    k, v = (jnp.repeat(t, q.shape[2] // k.shape[2], 2) for t in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bqhk", q, k) * q.shape[-1] ** -0.5
    if causal:
        scores = jnp.where(jnp.tri(q.shape[1], k.shape[1], dtype=bool)[None, :, None], scores, -jnp.inf)
    return jnp.einsum("bqhk,bkhd->bqhd", jax.nn.softmax(scores), v), jax.nn.logsumexp(scores, -1)


def test_rings_refuse():
    with pytest.raises(fagen.Error, match="30 rows are not divided by 2 \\* 4"):
        parallel.zigzag(jnp.zeros((1, 30, 1, 64)), 4)
