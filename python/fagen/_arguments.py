# fagen: the arguments of attention on PyTorch's tensors: what they must be, and what is made of them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Refusals name the argument and what it is. Nothing here computes attention."""
import math
import numbers

import torch
from torch.autograd import forward_ad

from . import _forms, errors

BYTES = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}  # of keys and values, next to a q of 16 bits
MOST_SCALE = torch.finfo(torch.float32).max
_is_compiling = torch.compiler.is_compiling


def words(value):
    """What an argument is, in few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {value.dtype} on {value.device}"
    kind = type(value)
    if hasattr(value, "shape"):
        return f"a {kind.__module__.split('.')[0]}.{kind.__name__} of shape {tuple(value.shape)}"
    said = repr(value)
    return said if len(said) <= 60 else f"a {kind.__name__}"


def flag_of(function, name, value):
    """True or False of an argument that says which."""
    if value in (0, 1) if isinstance(value, int) else type(value).__name__ in ("bool", "bool_") and not hasattr(value, "requires_grad"):
        return bool(value)
    raise errors.Error(f"{function}: {name} is {words(value)}; it is True or False")


# Scale.

def scale_of(function, scale):
    """The scale as a float, of either sign. Numbers of Python and NumPy will do, and tensors of one number, which are read now."""
    if type(scale) is float and 0 <= scale <= MOST_SCALE:
        return scale
    if isinstance(scale, torch.Tensor):
        scale = _read(function, scale)
    elif getattr(scale, "shape", None) == () and not isinstance(scale, numbers.Number):
        scale = scale.item()  # an array without dimensions
    if isinstance(scale, bool) or not isinstance(scale, (numbers.Real, torch.SymFloat, torch.SymInt)):
        raise errors.Error(f"{function}: scale is {words(scale)}; it is a number, or None for 1 / sqrt(head_dim)")
    if not abs(scale) <= MOST_SCALE:
        raise errors.Error(f"{function}: scale is {scale}; it is finite in float32")
    return float(scale)


def _read(function, scale):
    """The number of a tensor."""
    instead = "multiply q by it, and give scale=1.0"
    if scale.numel() != 1 or scale.is_complex() or scale.dtype == torch.bool:
        raise errors.Error(f"{function}: scale is {words(scale)} of shape {tuple(scale.shape)}; it is one number")
    if (scale.requires_grad and torch.is_grad_enabled()) or has_tangent(scale):
        raise errors.Error(f"{function}: scale is a tensor that wants a gradient, and kernels have none for it; {instead}")
    if _is_compiling():
        raise errors.Error(f"{function}: scale is a tensor, and a graph takes a number; {instead}")
    if scale.is_cuda and torch.cuda.is_current_stream_capturing():
        raise errors.Error(f"{function}: scale is a tensor on the GPU, which is not read while a graph is captured; {instead}")
    try:
        return scale.item()
    except RuntimeError as error:  # of functorch's transforms, or on the meta device
        reason = str(error).splitlines()[0]
        raise errors.Error(f"{function}: scale is a tensor that cannot be read here ({reason}); {instead}") from None


# Tensors.

def check(function, q, k, v, out=None, bshd=True):
    """Raises Error unless q, k and v are tensors of attention that fit each other, and out one that may be written."""
    given = [("q", q), ("k", k), ("v", v)] + ([] if out is None else [("out", out)])
    check_kinds(function, given, bshd)
    if any(tensor.is_nested for _, tensor in given):
        return
    has_bytes = k.dtype in BYTES and v.dtype == k.dtype and q.dtype in (torch.float16, torch.bfloat16)
    for name, tensor in given[1:3]:
        if tensor.dtype != q.dtype and not has_bytes:
            if tensor.dtype in BYTES:
                raise errors.Error(f"{function}: k is of {k.dtype}, v of {v.dtype} and q of {q.dtype}; k and v of float8 are of one "
                                   "type, and q is of float16 or bfloat16 then")
            raise errors.Error(f"{function}: {name} is of {tensor.dtype}, and q of {q.dtype}; they are of one type")
        if tensor.device != q.device:
            raise errors.Error(f"{function}: {name} is on {tensor.device}, and q on {q.device}; they are on one device")
    if not (_is_compiling() or torch.jit.is_tracing()):  # graphs say so when they run: here it would bind their sizes
        _check_sizes(function, q.shape, k.shape, v.shape, (2, 1) if bshd else (1, 2))
    if out is not None:
        check_output(function, q, k, v, out)


def check_kinds(function, given, bshd=True):
    """Raises Error unless these, by their names, are tensors of four dimensions."""
    for name, tensor in given:
        if not isinstance(tensor, torch.Tensor):
            from_numpy = ": torch.from_numpy makes one" if type(tensor).__module__ == "numpy" else ""
            raise errors.Error(f"{function}: {name} is {words(tensor)}; it is a torch.Tensor{from_numpy}")
    for name, tensor in given:
        if tensor.dim() != 4:
            raise errors.Error(f"{function}: {name} has {tensor.dim()} dimensions; it takes 4: "
                               f"{'[batch, seq, heads, head_dim]' if bshd else '[batch, heads, seq, head_dim]'}")
        if tensor.layout not in (torch.strided, torch.jagged):
            raise errors.Error(f"{function}: {name} is of {tensor.layout}; it is of torch.strided: to_dense() makes one")


def _check_sizes(function, q, k, v, places):
    head, row = places
    if not q[0] == k[0] == v[0]:
        raise errors.Error(f"{function}: q, k and v have {q[0]}, {k[0]} and {v[0]} batches; they have as many")
    if k[head] != v[head] or k[row] != v[row]:
        raise errors.Error(f"{function}: k has {k[head]} heads and {k[row]} rows, v {v[head]} and {v[row]}; they have as many")
    if k[3] != q[3]:
        raise errors.Error(f"{function}: q has head_dim {q[3]}, k {k[3]}; they have the same")
    if q[head] and (not k[head] or q[head] % k[head]):
        raise errors.Error(f"{function}: k has {k[head]} heads, which do not divide the {q[head]} of q")


def check_output(function, q, k, v, out, kind=None):
    """Raises Error unless O of `kind`, q's type where None, may be written there."""
    kind = q.dtype if kind is None else kind
    if torch.is_grad_enabled():
        if q.requires_grad or k.requires_grad or v.requires_grad:
            raise errors.Error("out= takes no part in gradients; leave it out, or use torch.no_grad()")
        if out.requires_grad:
            raise errors.Error(f"{function}: out takes part in a graph of autograd, and what is written there has no gradient; give "
                               "out.detach(), or use torch.no_grad()")
    if has_tangent(out):
        raise errors.Error(f"{function}: out has a tangent, and what is written there has none; give a tensor of its own")
    if out.dtype != kind or out.device != q.device or (not _is_compiling() and out.shape != (*q.shape[:3], v.shape[3])):
        raise errors.Error(f"{function}: out is {out.dtype} of {tuple(out.shape)} on {out.device}; it is {kind} of "
                           f"{(*q.shape[:3], v.shape[3])} on {q.device}")


def has_tangent(*tensors):
    """Whether forward-mode differentiation goes through one of them."""
    return forward_ad._current_level >= 0 and any(
        isinstance(t, torch.Tensor) and t.is_floating_point() and forward_ad.unpack_dual(t).tangent is not None for t in tensors)


def refuse_second_gradient(of):
    """In a backward, of which PyTorch records nothing: a second gradient would be left out silently where only the first one's tensors want it."""
    if torch.is_grad_enabled():
        raise errors.Error(f"{of} has no second gradient: it is asked for by create_graph=True")


def why_not(q, k, v, *others):
    """Why no kernel computes tensors like these, whatever they hold; None where one may."""
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.is_nested:
            return f"{name} is a nested tensor; kernels have one length for all"
    if k.dtype in BYTES and torch.is_grad_enabled() and any(t.requires_grad for t in (q, *others)):
        return f"a gradient, which there is none of with keys of {k.dtype}"
    if has_tangent(q, k, v, *others):
        return "forward-mode differentiation, of which kernels have none"
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"q's dtype is {q.dtype}; kernels are of float16 and bfloat16"
    return None


def widened(q, k, v, k_descale=None, v_descale=None, bshd=True):
    """k and v of float8 as q's type, times what each batch and K/V head is multiplied by; others as they are."""
    if k.dtype not in BYTES:
        return k, v

    def widen(t, factor):
        if factor is None:
            return t.to(q.dtype)
        return (t.float() * factor[:, :, None, None].transpose(1, 2 if bshd else 1)).to(q.dtype)
    return widen(k, k_descale), widen(v, v_descale)


def cast(q, k, v):
    """As autocast has them for scaled_dot_product_attention, where it is on."""
    device = q.device.type if isinstance(q, torch.Tensor) else "cpu"
    if not torch.is_autocast_enabled(device):
        return q, k, v
    kind = torch.get_autocast_dtype(device)

    def cast_one(t):
        takes_part = isinstance(t, torch.Tensor) and t.is_floating_point() and t.device.type == device and t.dtype != torch.float64
        return t.to(kind) if takes_part and t.dtype != kind and t.dtype not in BYTES else t
    return cast_one(q), cast_one(k), cast_one(v)


# Forms.

def check_promises(function, form, params, args):
    """Error where broken_promise() says something."""
    broken = broken_promise(form, params, args)
    if broken:
        raise errors.Error(f"{function}: {broken}")


def broken_promise(form, params, args):
    """What the caller promises of a form's tensors, kernels do not look at, and they do not keep; None where they do. Waits for the
    GPU."""
    for param in params:
        value = args[param.name]
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            continue
        if param.element == _forms.BIT:
            continue
        hasRange = math.isfinite(param.low) or math.isfinite(param.high)  # without one NaN is nobody's mistake
        if bool(value.amin() < param.low) or bool(value.amax() > param.high) or (hasRange and bool(value.isnan().any())):
            return (f"{param.name} of the form {form} holds {value.amin().item()} to {value.amax().item()}; it is "
                    f"{_forms.shown(param.low)} to {_forms.shown(param.high)}")
        if param.ascends and value.dim():
            falls = (value[..., 1:] < value[..., :-1]).nonzero()
            if len(falls):
                *before, last = place = falls[0].tolist()
                after = tuple((*before, last + 1))
                return (f"{param.name} does not ascend, as the form {form} wants it to: {param.name}"
                        f"{list(after)} is {value[after].item()}, after {value[tuple(place)].item()}")
    return None
