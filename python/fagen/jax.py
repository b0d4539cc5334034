# fagen: attention for JAX.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from fagen.jax import dot_product_attention` in place of jax.nn's; needs jax-tvm-ffi.

Kernels compute scale, is_causal, grouped heads, the residual, windows, bias, mask and lengths of batches on a CUDA GPU. The rest is jax.nn's, once a
reason with a warning: `fagen.jax.fallback` is "warn", "torch" (silently) or "error". Decisions fall when a function is traced, and
are counted then. jit and vmap work, which folds into the batch. Gradients come from programs of the package where
there is neither bias, mask nor length (docs/PythonDetails.md); else from jax.nn's function, computed anew. A row
whose keys the mask hides all is 0 (jax.nn's is the mean of V), its residual -inf.
"""
import ctypes
import functools

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy
import tvm_ffi
from tvm_ffi import libinfo

from . import _forms, _jax_arguments, _jax_gradients, _jax_partitioned, _kernels, _lib, _stats, errors
from ._jax_programs import program

fallback = "warn"
_TARGET = "fagen_attention"
_DTYPES = {"float16": "f16", "bfloat16": "bf16"}


def _register():
    """XLA's custom call on GPUs, and on CPUs, where it computes only with an emulator."""
    _lib.library()
    path = _lib.path("lib", "libfagen_jax.so")
    ours = ctypes.CDLL(path)
    ours.fagen_jax_register.restype = ctypes.c_char_p
    ours.fagen_jax_register.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    module, tables = tvm_ffi.load_module(path), _kernels.ready()._tables
    error = ours.fagen_jax_register(str(libinfo.find_libtvm_ffi()).encode(), _lib.pointers(tables), len(tables))
    if error:
        raise errors.Error(error.decode())
    for platform in ("gpu", "cpu"):
        jax_tvm_ffi.register_ffi_target(_TARGET, module.fagen_attention, ["args", "rets", "attrs.scale", "attrs.causal", "attrs.lse",
                                                                               "attrs.windowed", "attrs.left", "attrs.right"],
                                        platform=platform)
    return ours


_ours = _register()


@functools.lru_cache(maxsize=None)
def _gpu():
    """(compute capability, SMs) of the GPU that JAX computes on; None without one."""
    if jax.default_backend() != "gpu":
        return None
    device = jax.devices()[0]
    return int(float(device.compute_capability) * 10 + 0.5), int(getattr(device, "core_count", 0)) or 132


def _window_of(window, is_causal, rows, keys):
    """(left, right) of a window that binds, or None. jax.nn's is around the row's own number: ours, where rows and keys are as many."""
    if window is None:
        return None
    left, right = window
    right = 0 if is_causal else right
    return None if left >= rows - 1 and (is_causal or right >= keys - 1) else (left, right)


def _form_of(window):
    """The form of the package, and its args, that libfagen_jax takes for a window."""
    left, right = window
    return ("window", {"window": left + 1}) if right == 0 else ("local", {"left": left, "right": right})


def _elementwise_form(bias, visible):
    """The form that libfagen_jax takes for these, and its args."""
    args = {name: given for name, given in (("bias", bias), ("visible", visible)) if given is not None}
    return "_".join(args), args


def _why_not(shape, dtype, causal, window, bias, visible):
    """Why no kernel computes this problem; None where one does."""
    gpu = _gpu()
    if gpu is None:
        return f"the backend is {jax.default_backend()}; kernels run on CUDA GPUs"
    if dtype not in _DTYPES:
        return f"dtype {dtype}; kernels are of float16 and bfloat16"
    problem = _kernels.describe(shape, _DTYPES[dtype], causal, True)
    tables, choice = _kernels.ready()._tables, _lib.Choice()
    elementwise = bias is not None or visible is not None
    if elementwise or window is not None:
        form, args = _elementwise_form(bias, visible) if elementwise else _form_of(window)
        why = _forms.lacks(tables, form, args)
        if why:
            return f"{' and '.join(args) if elementwise else 'local_window_size'}: {why}"
        _forms.describe(problem, tables, form, args)
    status = _lib.library().fagen_query(_lib.pointers(tables), len(tables), ctypes.byref(problem),
                                        _lib.described_device(*gpu), ctypes.byref(choice))
    return None if status == _lib.OK else _lib.library().fagen_last_error().decode()


def _theirs(query, key, value, bias, visible, scale, is_causal, residual, window):
    options = {"return_residual": True} if residual else {}
    mask = None if visible is None else visible.astype(bool)
    return jax.nn.dot_product_attention(query, key, value, bias, mask, scale=scale, is_causal=is_causal, local_window_size=window,
                                        **options)


@functools.lru_cache(maxsize=None)
def _local(scale, is_causal, residual, window):
    """The custom call on what one device has: of query, key, value and what is read for each query and key."""
    left, right = window or (0, 0)

    def call(*given):
        batch, rows, heads, _ = given[0].shape
        results = (jax.ShapeDtypeStruct((batch, rows, heads, given[2].shape[3]), given[0].dtype),
                   jax.ShapeDtypeStruct((batch, heads, rows) if residual else (1,), jnp.float32))
        ours = jax.ffi.ffi_call(_TARGET, results, vmap_method="broadcast_all")
        return tuple(ours(*given, scale=scale, causal=is_causal, lse=residual, windowed=window is not None, left=left, right=right))
    return call


def _by_kernel(query, key, value, bias, visible, scale, is_causal, residual, window):
    """O and LSE, [batch, heads, rows], or [1] unless residual."""
    bias = None if bias is None else bias.astype(jnp.float32)
    given = [t for t in (query, key, value, bias, visible) if t is not None]
    call = _local(float(scale), bool(is_causal), bool(residual), window)
    if _jax_partitioned.is_wanted():
        call = _jax_partitioned.call_of(call, not is_causal and window is None, bool(residual))
    return call(*given)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6, 7, 8))
def _attention(query, key, value, bias, visible, scale, is_causal, residual, window):
    o, lse = _by_kernel(query, key, value, bias, visible, scale, is_causal, residual, window)
    return (o, lse.swapaxes(1, 2)) if residual else o


def _forward(query, key, value, bias, visible, scale, is_causal, residual, window):
    inputs = query, key, value, bias, visible
    if bias is not None or visible is not None or not _jax_gradients.has_program(query, key, value, (_gpu() or (0,))[0]):
        return _attention(*inputs, scale, is_causal, residual, window), (inputs, None)
    o, lse = _by_kernel(*inputs, scale, is_causal, True, window)
    return (o, lse.swapaxes(1, 2)) if residual else o, (inputs, (o, lse))


def _backward(scale, is_causal, residual, window, saved, gradient):
    inputs, results = saved
    *tensors, visible = inputs
    if results is not None:
        dout = gradient[0] if residual else gradient
        return *_jax_gradients.backward(dout, *tensors[:3], *results, float(scale), bool(is_causal), window, _gpu()[0]), None, None
    if visible is not None:  # a row that sees nothing is 0 here, and the mean of V there
        seen = visible.any(-1).swapaxes(1, 2)[..., None]
        gradient = (jnp.where(seen, gradient[0], 0), jnp.where(seen[..., 0], gradient[1], 0)) if residual else jnp.where(seen, gradient, 0)
    theirs, pull = jax.vjp(lambda *t: _theirs(*t, visible, scale, is_causal, residual, window), *tensors)
    gradient = jax.tree.map(lambda one, like: one.astype(like.dtype), gradient, theirs)  # their residual has the type of query
    return *pull(gradient), None


_attention.defvjp(_forward, _backward)


def _visible(mask, rows, keys, is_causal, window, row_lengths, key_lengths):
    """What mask, top-left causality, window and lengths of batches leave, as bytes; None where that is everything."""
    k, q = jnp.arange(keys), jnp.arange(rows)[:, None]
    parts = [] if mask is None else [mask.astype(bool)]
    for place, lengths in ((q, row_lengths), (k, key_lengths)):
        if lengths is not None:
            parts.append(place < lengths[:, None, None, None])
    if is_causal:
        parts.append(k <= q)
    if window is not None:
        parts.append((k >= q - window[0]) & (k <= q + window[1]))
    if not parts:
        return None
    return functools.reduce(jnp.logical_and, parts).astype(jnp.uint8)


def _elementwise(name, given, shape):
    """The tensor with four dimensions and all keys: heads, rows and batch may be 1, and are repeated by strides."""
    batch, heads, rows, keys = shape
    if given is None:
        return None, None
    given = given.reshape((1,) * (4 - given.ndim) + given.shape)
    if any(n not in (1, m) for n, m in zip(given.shape, shape)):
        return None, f"{name} of shape {given.shape}, which is not repeated to {shape}"
    return jnp.broadcast_to(given, given.shape[:3] + (keys,)), None


def dot_product_attention(query, key, value, bias=None, mask=None, *, scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None, local_window_size=None,
                          implementation=None, return_residual=False):
    """jax.nn.dot_product_attention: [batch, rows, heads, columns], or without batch; its causal mask is top-left.

    The residual is LSE, [batch, rows, heads]. A scale that is traced multiplies query, which is rounded once more. Error where
    jax.nn takes no such arguments.
    """
    own = numpy.shape(query)[:-1]
    query, key, value = (_jax_arguments.array_of(name, t) for name, t in (("query", query), ("key", key), ("value", value)))
    bias, mask = (None if t is None else _jax_arguments.array_of(name, t) for name, t in (("bias", bias), ("mask", mask)))
    _jax_arguments.check(query, key, value, mask)
    lengths = {name: _jax_arguments.lengths_of(name, given, query.shape[0]) for name, given in (
        ("query_seq_lengths", query_seq_lengths), ("key_value_seq_lengths", key_value_seq_lengths))}
    return_residual = _jax_arguments.flag_of("return_residual", return_residual)
    rest = {"scale": _jax_arguments.scale_of(scale), "is_causal": _jax_arguments.flag_of("is_causal", is_causal), "implementation": implementation, **lengths,
            "local_window_size": _jax_arguments.window_of(local_window_size)}
    rest.update({"return_residual": True} if return_residual else {})
    result = _attend(query, key, value, bias, mask, rest)
    if not return_residual:
        return result.reshape(*own, result.shape[-1])
    return result[0].reshape(*own, result[0].shape[-1]), result[1].reshape(own)


def _attend(query, key, value, bias, mask, rest):
    """Of arrays of four dimensions."""
    is_causal = rest["is_causal"]
    reason = None if rest["implementation"] is None else "implementation: kernels do not have it"
    if any(given is not None for given in (bias, mask, rest["query_seq_lengths"], rest["key_value_seq_lengths"])):
        return _with_elements(query, key, value, bias, mask, rest, reason)
    rows, keys = query.shape[1], key.shape[1]
    if is_causal and keys < rows:
        reason = reason or f"a top-left causal mask with fewer keys than rows, {keys} and {rows}"
    window = _window_of(rest["local_window_size"], is_causal, rows, rows if is_causal and keys > rows else keys)
    if window is not None and (min(window) < 0 or (rows != keys and not is_causal)):
        reason = reason or "local_window_size: rows and keys are not as many, or a side is negative"
    if is_causal and keys > rows and not reason:  # the same keys by a bottom-right mask
        key, value = key[:, :rows], value[:, :rows]
    return _computed(query, key, value, None, None, window, is_causal, rest, reason)


def _with_elements(query, key, value, bias, mask, rest, reason):
    """With a bias, a mask or lengths of batches: all but the bias joins the mask."""
    rows, keys, is_causal = query.shape[1], key.shape[1], rest["is_causal"]
    shape = (query.shape[0], query.shape[2], rows, keys)
    ours, why = _elementwise("bias", bias, shape)
    visible, why_mask = _elementwise("mask", mask, shape)
    reason = reason or why or why_mask
    if not reason:
        window = _window_of(rest["local_window_size"], is_causal, rows, keys)
        visible = _visible(visible, rows, keys, is_causal, window, rest["query_seq_lengths"], rest["key_value_seq_lengths"])
        visible, _ = _elementwise("mask", visible, shape)
    return _computed(query, key, value, ours, visible, None, False, rest, reason, (bias, mask))


def _scaled(query, scale):
    """query and a scale for kernels, which take a number that is not negative."""
    if scale is None:
        return query, query.shape[3] ** -0.5
    if isinstance(scale, jax.core.Tracer):
        return (query.astype(jnp.float32) * scale).astype(query.dtype), 1.0
    return (-query, -scale) if scale < 0 else (query, scale)


def _computed(query, key, value, bias, visible, window, is_causal, rest, reason, given=(None, None)):
    """By a kernel, or by jax.nn with what was given."""
    residual = rest.get("return_residual", False)
    shape = (query.shape[0], query.shape[2], key.shape[2], query.shape[1], key.shape[1], query.shape[3], value.shape[3])
    reason = reason or _why_not(shape, str(query.dtype), is_causal, window, bias, visible)
    if reason:
        _stats.refuse("jax.dot_product_attention", reason, fallback)
        return jax.nn.dot_product_attention(query, key, value, *given, **rest)
    _stats.computed("jax.dot_product_attention")
    query, scale = _scaled(query, rest["scale"])
    return _attention(query, key, value, bias, visible, scale, is_causal, residual, window)
