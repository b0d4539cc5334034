# fagen: PyTorch's operators of fagen, and what PyTorch must know of them: shapes, gradients, tangents, operations.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Importing this defines them with the PyTorch that is imported. `ours` is the library that has them."""
import ctypes
import importlib
import importlib.abc
import importlib.util
import os
import sys

import torch

from . import _arguments, _by_torch, _lib, errors


def _register():
    _lib.library()
    ours = ctypes.CDLL(_lib.path("lib", "libfagen_torch.so"))
    ours.fagen_torch_register.restype = ctypes.c_char_p
    ours.fagen_torch_register.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    ours.fagen_torch_forget_plan.argtypes = [ctypes.c_int64]
    ours.fagen_torch_add_kernels.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    ours.fagen_torch_note_keys.argtypes = [ctypes.c_bool]
    ours.fagen_torch_overlap_launches.argtypes = [ctypes.c_bool]
    ours.fagen_torch_add_form.restype = ctypes.c_int64
    ours.fagen_torch_add_form.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_bool),
                                          ctypes.c_size_t]
    libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
    cuda = os.path.join(libraries, "libtorch_cuda.so")
    error = ours.fagen_torch_register(os.fsencode(os.path.join(libraries, "libtorch_cpu.so")),
                                      os.fsencode(cuda) if os.path.exists(cuda) else None)
    if error:
        raise errors.Error(error.decode())
    return ours


ours = _register()


@torch.library.register_fake("fagen::attention")
def _(q, k, v, scale, causal, bshd, lse, kernels):
    return _empty_output(q, v), empty_lse(q, bshd, lse)


@torch.library.register_fake("fagen::_forward")
def _(q, k, v, scale, causal, bshd, kernels, detached=False):
    _refuse_gradients("_forward", detached)
    return _empty_output(q, v)


@torch.library.register_fake("fagen::_forward_lse")
def _(q, k, v, scale, causal, bshd, kernels, detached=False):
    _refuse_gradients("_forward_lse", detached)
    return _empty_output(q, v), empty_lse(q, bshd, True)


@torch.library.register_fake("fagen::attention_out")
def _(q, k, v, out, lse, scale, causal, bshd, kernels, detached=False):
    _refuse_gradients("attention_out", detached)


@torch.library.register_fake("fagen::form_attention")
def _(q, k, v, tensors, numbers, form, scale, bshd, lse, kernels, detached=False):
    _refuse_gradients("form_attention", detached)
    return _empty_output(q, v), empty_lse(q, bshd, lse)


@torch.library.register_fake("fagen::form_attention_out")
def _(q, k, v, tensors, numbers, form, out, lse, scale, bshd, kernels, detached=False):
    _refuse_gradients("form_attention_out", detached)


@torch.library.register_fake("fagen::_planned")
def _(q, k, v, out, plan, detached=False):
    _refuse_gradients("_planned", detached)


def _refuse_gradients(name, detached):
    """As the operators do when they run."""
    if torch.is_grad_enabled() and not detached:
        raise errors.Error(f"torch.ops.fagen.{name} has no gradient: call it under torch.no_grad(), or fagen.attention or "
                           "torch.ops.fagen.attention, which have one")


def _empty_output(q, v):
    return q.new_empty((*q.shape[:3], v.shape[3]))


def empty_lse(q, bshd, lse):
    heads, rows = (q.shape[2], q.shape[1]) if bshd else (q.shape[1], q.shape[2])
    return q.new_empty((q.shape[0], heads, rows) if lse else (0,), dtype=torch.float32)


def _below_autograd(keyset, inputs):
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.fagen.attention.default.redispatch(keyset & torch._C._after_autograd_keyset, *inputs)


class _Attention(torch.autograd.Function):
    """The operator attention, with a gradient."""

    @staticmethod
    def forward(ctx, keyset, *inputs):
        q, k, v, scale, causal, bshd, *_ = inputs
        o, lse = _below_autograd(keyset, inputs)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = q.shape[-1] ** -0.5 if scale is None else scale, causal, bshd
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx, grad, grad_lse):
        """From our O and LSE, as _by_torch.backward() does. Without LSE PyTorch computes forward and backward anew."""
        _arguments.refuse_second_gradient("fagen's attention")
        q, k, v, o, lse = ctx.saved_tensors
        if grad is None and grad_lse is None:
            gradients = (None, None, None)
        elif lse.numel() == 0:
            gradients = _by_torch.backward_anew((grad, grad_lse), q, k, v, *ctx.options)
        else:
            grad = torch.zeros_like(o) if grad is None else grad
            gradients = _by_torch.backward(grad, q, k, v, o, lse, *ctx.options, grad_lse)
        return (None, *gradients, None, None, None, None, None)


def _with_autograd(keyset, q, k, v, *rest):
    if _arguments.has_tangent(q, k, v):  # below here PyTorch would drop it
        raise errors.Unsupported("torch.ops.fagen.attention has no forward-mode derivative; fagen.attention with "
                                 'fallback="torch" has one')
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return _Attention.apply(keyset, q, k, v, *rest)
    return _below_autograd(keyset, (q, k, v, *rest))


_kept = torch.library.Library("fagen", "IMPL")  # what it registers ends with it
_kept.impl("attention", _with_autograd, "Autograd", with_keyset=True)


# Operations, as torch.utils.flop_counter counts them.

_NAMES = ("attention", "_forward", "_forward_lse", "attention_out", "form_attention", "form_attention_out", "_planned")


bshd_of_plans = {}  # by their numbers: whether their tensors are [batch, rows, heads, columns]


def _operations_of(name):
    place = {"attention": 2, "_forward": 2, "_forward_lse": 2, "attention_out": 4, "form_attention": 4, "form_attention_out": 6}.get(name)

    def count(q, k, v, *rest, out_shape=None, **options):
        """Two for each multiplication with an addition of Q K^T and P V, whatever the mask hides, as of SDPA's operators."""
        keys = k[1] if (bshd_of_plans[rest[1]] if place is None else rest[place]) else k[2]
        return 2 * q[0] * q[1] * q[2] * keys * (q[3] + v[3])
    return count


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then` once a module is imported, which is not for its sake."""

    def __init__(self, module, then):
        self._module, self._then = module, then

    def find_spec(self, name, path=None, target=None):
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run, then = spec.loader.exec_module, self._then

        def exec_module(module):
            run(module)
            then()
        spec.loader.exec_module = exec_module
        return spec


def _count_operations():
    counter = sys.modules["torch.utils.flop_counter"]
    for name in _NAMES:
        counter.register_flop_formula(getattr(torch.ops.fagen, name))(_operations_of(name))


def _register_shardings():
    try:
        importlib.import_module("._dtensor", __package__)
    except (ImportError, AttributeError):  # of a PyTorch that has it elsewhere: it says itself that operators have no sharding
        pass


for _module, _then in (("torch.utils.flop_counter", _count_operations), ("torch.distributed.tensor", _register_shardings)):
    if _module in sys.modules:
        _then()
    else:
        sys.meta_path.insert(0, _WhenImported(_module, _then))
