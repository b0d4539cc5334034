# fagen: the arguments of jax.nn's dot_product_attention: what they must be.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refusals as jax.nn's own, and of what it would take for something else; each names the argument and what it is."""
import numbers
from operator import index

import jax
import jax.numpy as jnp
import numpy

from . import errors

_NAME = "dot_product_attention"


def _refuse(name, said):
    raise errors.Error(f"{_NAME}: {name} {said}")


def array_of(name, given):
    """The array of an argument, with four dimensions: those in front that it lacks are 1."""
    try:
        array = jnp.asarray(given)
    except (TypeError, ValueError):
        _refuse(name, f"is {given!r}; it is an array")
    if array.ndim > 4:
        _refuse(name, f"has shape {array.shape}; it has at most 4 dimensions")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def lengths_of(name, given, batch):
    """The lengths of batches as int32; None where none are given."""
    if given is None:
        return None
    lengths = jnp.asarray(given)
    if lengths.shape != (batch,) or lengths.dtype != jnp.int32:
        _refuse(name, f"is of {lengths.dtype} and shape {lengths.shape}; it is of int32 and shape ({batch},), one for each batch")
    return lengths


def window_of(given):
    """(left, right) as integers; None where there is none."""
    if given is None:
        return None
    try:
        left, right = given if isinstance(given, (tuple, list)) else (given, given)
        return index(left), index(right)
    except (TypeError, ValueError):
        _refuse("local_window_size", f"is {given!r}; it is an integer, or a pair of them")


def flag_of(name, given):
    """True or False of an argument that says which."""
    if isinstance(given, (bool, numpy.bool_)) or (isinstance(given, int) and given in (0, 1)):
        return bool(given)
    _refuse(name, f"is {given!r}; it is True or False, and is known when the function is traced")


def scale_of(given):
    """The scale: None, a float, or a number that is known when the traced function runs."""
    if given is None or isinstance(given, jax.core.Tracer):
        if given is not None and (given.shape != () or not jnp.issubdtype(given.dtype, jnp.number) or jnp.iscomplexobj(given)):
            _refuse("scale", f"is of {given.dtype} and shape {given.shape}; it is one number")
        return given
    if isinstance(given, (jax.Array, numpy.ndarray)) and given.shape == () and given.dtype != bool:
        given = given.item()
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        _refuse("scale", f"is {given!r}; it is a number, or None for 1 / sqrt(head_dim)")
    if not abs(given) <= float(numpy.finfo(numpy.float32).max):
        _refuse("scale", f"is {given}; it is finite in float32")
    return float(given)


def check(query, key, value, mask):
    """Of arrays of four dimensions: types, batches, lengths and heads. V may have other columns than Q and K, which jax.nn does not take."""
    batch, _, heads, columns = query.shape
    for name, array in (("key", key), ("value", value)):
        if array.dtype != query.dtype:
            _refuse(name, f"is of {array.dtype}, and query of {query.dtype}; they are of one type")
        if array.shape[0] != batch:
            _refuse(name, f"has {array.shape[0]} batches, and query {batch}")
    if value.shape[1:3] != key.shape[1:3]:
        _refuse("value", f"has {value.shape[1]} rows and {value.shape[2]} heads, and key {key.shape[1]} and {key.shape[2]}")
    if key.shape[3] != columns:
        _refuse("key", f"has head_dim {key.shape[3]}, and query {columns}")
    if not key.shape[2] or heads % key.shape[2]:
        _refuse("key", f"has {key.shape[2]} heads, which do not divide the {heads} of query")
    if mask is not None and mask.dtype != jnp.bool_:
        _refuse("mask", f"is of {mask.dtype}; it is of bool: what is added to scores is bias")
