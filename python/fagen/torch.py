# fagen: attention on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention(), plan() and explain() for PyTorch.

torch.ops.fagen.attention has a gradient. The other operators have none, and refuse to run where one would be recorded, unless they
are told that none is wanted: attention() here does so, and saves the time of PyTorch's autograd. Causal is bottom-right, as in
flash-attn: row i of seq_q sees keys j <= i + seq_kv - seq_q.
"""
import ctypes
import functools
import os
import weakref
from collections.abc import Iterable, Sequence
from operator import index

import torch
from torch.nn.attention import register_flash_attention_impl

from . import _arguments, _by_torch, _forms, _forms_by_torch, _fp8, _gradients, _kernels, _lib, _operators, _sdpa, _stats, errors
from ._operators import empty_lse as _empty_lse, ours as _ours

_is_compiling, _is_traced = torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling
_DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_ERRORS = {kind.__name__: kind for kind in (errors.Unsupported, errors.Misaligned, errors.CompileError, errors.CudaError,
                                            torch.OutOfMemoryError)}


_attention = torch.ops.fagen.attention.default
_attention_out = torch.ops.fagen.attention_out.default
_form_attention = torch.ops.fagen.form_attention.default
_form_attention_out = torch.ops.fagen.form_attention_out.default
_plan = torch.ops.fagen._plan.default
_planned = torch.ops.fagen._planned.default
_forward = torch.ops.fagen._forward.default
_forward_lse = torch.ops.fagen._forward_lse.default

_NO_LSE = torch.empty(0)  # where nothing is written


def _find_direct():
    """python/csrc/direct.cpp's functions, which launch what was launched before without PyTorch's dispatcher; in their place
    functions that do nothing where this PyTorch lacks what they take."""
    probe = torch.empty(1)
    make = ctypes.PyDLL(_lib.path("lib", "libfagen_torch.so")).fagen_torch_direct
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_char_p, ctypes.py_object, ctypes.py_object, ctypes.c_size_t, ctypes.c_void_p]
    try:
        found = make(os.fsencode(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_python.so")), torch.Tensor,
                     probe, torch.Tensor.__basicsize__, probe._cdata)
    except ValueError:  # null
        return _not_at_once, _not_at_once
    for inference in (False, True):
        with torch.inference_mode(inference):
            _ours.fagen_torch_note_keys(inference)
    return found


def _not_at_once(*_):
    return None


_at_once, _planned_at_once = _find_direct()
_tells_changes = _at_once is not _not_at_once  # the operators tell autograd that they write into out


def _note_change(out):
    if not _tells_changes and not _is_compiling():
        torch.autograd.graph.increment_version(out)
_is_grad_enabled = torch.is_grad_enabled
_is_any_autocast_enabled = torch._C._is_any_autocast_enabled
_MOST_SCALE = _arguments.MOST_SCALE


def _number_of(tables):
    number = _ours.fagen_torch_add_kernels(_lib.pointers(tables), len(tables))
    if number < 0:
        raise errors.Error("this process has compiled 1024 kernel sets; keep and reuse them")
    return number


_READY = _number_of(_kernels.ready()._tables)
_READY_TABLES = tuple(_kernels.ready()._tables)


def _tables_of(kernels):
    return _READY_TABLES if kernels is None else tuple(kernels._tables)


def _number(kernels):
    """The operators' number of a KernelSet; None: of the package's own."""
    if kernels is None:
        return _READY
    if not isinstance(kernels, _kernels.KernelSet):
        raise errors.Error(f"kernels is {_arguments.words(kernels)}; it is a KernelSet, as fagen.load and fagen.compile give it")
    if not hasattr(kernels, "_torch_number"):
        kernels._torch_number = _number_of(kernels._tables)
    return kernels._torch_number


def _is_bshd(layout):
    if layout in ("bshd", "bhsd"):
        return layout == "bshd"
    raise errors.Error(f'layout is {layout!r}; it is "bshd" (batch, seq, heads, head_dim) or "bhsd"')


def check_tensors(function, q, k, v):
    """Error unless these are tensors of attention."""
    _arguments.check_kinds(function, [("q", q), ("k", k), ("v", v)])


def describe(q, k, v, *, causal=False, scale=None, layout="bshd", lse=False):
    """The C ABI's problem of these tensors, with their strides."""
    _arguments.check("explain", q, k, v, bshd=_is_bshd(layout))
    if q.dtype not in _DTYPES:
        raise errors.Unsupported(f"q's dtype is {q.dtype}; kernels are of float16 and bfloat16")
    head, row = (2, 1) if _is_bshd(layout) else (1, 2)
    shape = (q.shape[0], q.shape[head], k.shape[head], q.shape[row], k.shape[row], q.shape[3], v.shape[3])
    problem = _kernels.describe(shape, _DTYPES[q.dtype], causal, lse, scale, _arguments.BYTES.get(k.dtype))
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        stride = tensor.stride()
        setattr(problem, f"{name}_stride", (ctypes.c_int64 * 3)(stride[0], stride[head], stride[row]))
    return problem


def reason_of(error):
    """The exception that a RuntimeError of the operators stands for, or None where it is another's."""
    head, _, rest = str(error).partition("fagen.")
    name, colon, reason = rest.partition(": ")
    reason = reason.split("\nException raised from", 1)[0].strip()
    kind = errors.Error if name == "Error" else _ERRORS.get(name)
    return kind(reason) if kind and colon and not head.strip() else None


def _dense(tensor):
    """The tensor, or a copy where its last stride is not 1 or it is expanded in every dimension."""
    stride = tensor.stride()
    is_dense = (stride[-1] == 1 or tensor.shape[-1] <= 1) and (any(stride[:3]) or tensor.numel() <= tensor.shape[-1])
    return tensor if is_dense else tensor.contiguous()


def _form_number(form, args):
    """The operators' number of a form and its args: (name, whether it is a tensor) of each."""
    return _register_form(form, args)


_form_number._dynamo_marked_constant = True


@functools.lru_cache(maxsize=None)
def _register_form(form, args):
    names = (ctypes.c_char_p * len(args))(*(name.encode() for name, _ in args))
    are_tensors = (ctypes.c_bool * len(args))(*(is_tensor for _, is_tensor in args))
    number = _ours.fagen_torch_add_form(form.encode(), names, are_tensors, len(args))
    if number < 0:
        raise errors.Error("this process has used 65536 different sets of args of forms")
    return number


class _Form:
    """A form of a call, as the operators take it."""

    def __init__(self, name, args):
        for key, value in args.items():
            if not isinstance(value, (int, float, torch.Tensor)):
                raise errors.Error(f"form {name}: {key} is {_arguments.words(value)}; it is a number or a tensor")
        self.number = _form_number(name, tuple((key, isinstance(value, torch.Tensor)) for key, value in args.items()))
        self.tensors = [value for value in args.values() if isinstance(value, torch.Tensor)]
        self.numbers = [float(value) for value in args.values() if not isinstance(value, torch.Tensor)]
        self.name = name


def attention(q, k, v, *, causal=False, form=None, form_args=None, scale=None, layout="bshd", return_lse=False, out=None,
              fallback="error", kernels=None, invariant=False, **params):
    """softmax(score(scale * q k^T) + mask) v, and LSE [batch, heads, seq_q] in float32 if return_lse.

    q is [batch, seq_q, heads, head_dim] (layout "bshd") or [batch, heads, seq_q, head_dim] ("bhsd"), k and v have kv_heads,
    which divide heads; all other strides are free. A row that sees no key gives 0 and -inf. Under autocast q, k and v are cast
    as scaled_dot_product_attention casts them.

    scale: a number, 1 / sqrt(head_dim) where None. A tensor of one number is read now; one that wants a gradient is refused.
    out: where to write. It takes no part in gradients, and shares no memory with what is read.
    kernels: a KernelSet, else the package's own. Where they have no kernel for the head dims, but one for wider ones, tensors are
    padded, unless PyTorch may compute: they are copied, and stats() counts it.
    form: the name of a form of these kernels, which says score and mask in place of causal. Its params are given by keyword,
    numbers and tensors (form="gemma2", cap=50.0, window=1024), or in form_args where a name is taken.
    q, k and v of torch.float8_e4m3fn give O of bfloat16, or as out is; q_descale, k_descale and v_descale, float32 of [batch, kv_heads],
    are what they are multiplied by (docs/Python.md). A number may be a tensor
    of one element, too, which is read when the kernel runs. Gradients are computed anew by PyTorch.
    fallback, for what no kernel computes: "error" raises Unsupported, "warn" lets PyTorch compute it and says so once a
    reason, "torch" lets it silently; stats() counts both.
    invariant: the bits of a row depend on nothing but the row, its keys and its place: not on the batch, the number of rows or the GPU's size; they
    are those of fagen.serving with invariant=True. Without forms, kernels, gradients and fallbacks: Unsupported.
    """
    if invariant:
        from . import _invariant
        result = _invariant.attend("attention", q, k, v, scale=scale, causal=_arguments.flag_of("attention", "causal", causal), bshd=_is_bshd(layout),
                                   lse=return_lse, out=out, kernels=kernels, form=form or form_args or params or None)
    elif form is None and form_args is None and _is_bytes(q) and params.keys() <= set(_fp8.DESCALES):
        result = _attend_bytes("attention", q, k, v, params, scale, causal, _is_bshd(layout), return_lse, out, fallback, kernels)
    elif form is None and not params and form_args is None:
        bshd = layout == "bshd" or _is_bshd(layout)
        result = attend("attention", q, k, v, scale, causal, bshd, return_lse, out, fallback, kernels)
    else:
        params = _forms.together("attention", form, form_args, params)
        if causal:
            raise errors.Error("attention: causal and form are given; a form says itself what is seen")
        if fallback not in _stats.FALLBACKS:
            raise errors.Error(f'attention: fallback is {fallback!r}; it is "error", "warn" or "torch"')
        result = _attend_form_or_instead(q, k, v, form, params, fallback, scale=scale, bshd=_is_bshd(layout), lse=return_lse,
                                         out=out, kernels=kernels)
    return result if return_lse else result[0]


def _is_bytes(q):
    return isinstance(q, torch.Tensor) and q.dtype == _fp8.E4M3


def _attend_bytes(function, q, k, v, descales, scale, causal, bshd, lse, out, fallback, kernels):
    """Of q, k and v of e4m3."""
    if fallback not in _stats.FALLBACKS:
        raise errors.Error(f'{function}: fallback is {fallback!r}; it is "error", "warn" or "torch"')
    return _fp8.attend(function, q, k, v, descales, scale=None if scale is None else _arguments.scale_of(function, scale),
                       causal=_arguments.flag_of(function, "causal", causal), bshd=bshd, lse=_arguments.flag_of(function, "return_lse", lse),
                       out=out, fallback=fallback, reason=None if kernels is None else "a kernel set of your own with q of float8")


def attend(function, q, k, v, scale=None, causal=False, bshd=True, lse=False, out=None, fallback="error", kernels=None,
           has_other_way=False):
    """O and LSE of attention(), on behalf of a function of this name. has_other_way: where this raises Unsupported the caller lets
    PyTorch compute."""
    if fallback not in _stats.FALLBACKS:
        raise errors.Error(f'{function}: fallback is {fallback!r}; it is "error", "warn" or "torch"')
    number = _READY if kernels is None else _number(kernels)
    if scale is not None and not (type(scale) is float and 0 <= scale <= _MOST_SCALE):
        scale = _arguments.scale_of(function, scale)
    if causal is not True and causal is not False:
        causal = _arguments.flag_of(function, "causal", causal)
    if lse is not True and lse is not False:
        lse = _arguments.flag_of(function, "return_lse", lse)
    if not _is_traced():
        result = _at_once(function, q, k, v, out, scale, causal, bshd, lse, number)
        if result is not None:
            return result
    if _is_bytes(q):
        return _attend_bytes(function, q, k, v, {}, scale, causal, bshd, lse, out, fallback, kernels)
    if _is_traced() or _is_any_autocast_enabled():
        given, (q, k, v) = (q, k, v), _arguments.cast(q, k, v)
        if not _is_traced() and (q is not given[0] or k is not given[1] or v is not given[2]):
            return attend(function, q, k, v, scale, causal, bshd, lse, out, fallback, kernels, has_other_way)
    _arguments.check(function, q, k, v, out, bshd)
    reason = _arguments.why_not(q, k, v)
    if reason is not None:
        _refuse(function, reason, fallback)
        return _instead(q, k, v, scale, causal, bshd, lse, out)
    if scale is not None and scale < 0:  # kernels take none: they look for the largest score before it
        q, scale = -q, -scale
    width = _width(q, k, v, causal, lse, kernels)
    if width is not None and fallback == "error" and not has_other_way:  # PyTorch is faster than a kernel after copies
        return _attend_padded(function, width, q, k, v, scale, out, functools.partial(
            attend, causal=causal, bshd=bshd, lse=lse, fallback=fallback, kernels=kernels))
    if _is_compiling():
        return _attend_in_graph(function, q, k, v, scale, causal, bshd, lse, out, fallback, number)
    wants_gradient = _is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    try:
        result = _launch(q, k, v, scale, causal, bshd, lse, out, number, wants_gradient)
    except RuntimeError as error:
        reason = _refusal(error)
        dense = [_dense(t) for t in (q, k, v)]
        if any(copy is not t for copy, t in zip(dense, (q, k, v))):
            return attend(function, *dense, scale, causal, bshd, lse, out, fallback, kernels)
        _stats.refuse(function, reason, fallback)
        return _instead(q, k, v, scale, causal, bshd, lse, out)
    _stats.computed(function)
    return result


def _refuse(function, reason, fallback):
    """As _stats.refuse; in a graph that is being made nothing is counted."""
    if fallback == "error" or not _is_compiling():
        _stats.refuse(function, reason, fallback)


def _attend_padded(function, width, q, k, v, scale, out, attend_as):
    """O and LSE by kernels of a wider head dim, with zeros after the columns: they add nothing to scores, and give columns of O
    that are cut off. `attend_as` is attend() or attend_form() with what remains of the call."""
    head_dim, columns = q.shape[3], v.shape[3]
    scale = head_dim ** -0.5 if scale is None else scale
    padded = (torch.nn.functional.pad(t, (0, width - t.shape[3])) for t in (q, k, v))
    o, sums = attend_as(function, *padded, scale=scale)
    if not _is_compiling():
        _stats.padded(function, f"head_dim {head_dim if head_dim == columns else f'{head_dim}:{columns}'} as {width}")
    return _into(out, o[..., :columns]), sums


def _into(out, o):
    """o, or out where it is given, which then holds what o holds."""
    return o if out is None else out.copy_(o)


def why_not_form(q, k, v, form, args, lse=False, kernels=None, bshd=True):
    """Why a form of these kernels cannot compute this; None where it can, as far as that is known without asking for a kernel.

    In a graph, which takes no other way once it runs, a kernel is asked for: by type, head dims and GPU.
    """
    tables = _tables_of(kernels)
    given = [q, k, v, *(value for value in args.values() if isinstance(value, torch.Tensor))]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
        if not _has_gradient(q, k, v, form, args, bshd, kernels):
            return f"the form {form} has no gradient"
    why = _forms.lacks(tables, form, args)
    if why is None and _is_compiling():
        kind = _kind(q, v, False, lse, form, args)
        if not _has_kernel(tables, *kind) and _wider(tables, *kind) is None:
            why = "no kernel for this type, these head dims and this GPU"
    return why


def attend_form(function, q, k, v, form, args, *, scale=None, bshd=True, lse=False, out=None, kernels=None):
    """O and LSE by a form, on behalf of a function of this name; Unsupported where no kernel computes it."""
    number, tables = _READY if kernels is None else _number(kernels), _tables_of(kernels)
    if _is_traced() or _is_any_autocast_enabled():
        q, k, v = _arguments.cast(q, k, v)
    _arguments.check(function, q, k, v, out, bshd)
    scale = None if scale is None else _arguments.scale_of(function, scale)
    lse = _arguments.flag_of(function, "return_lse", lse)
    if not _is_compiling():  # graphs say so when they run
        params = _forms.check(function, tables, form, tuple(args))
        _forms.check_numbers(function, form, params, args)
        if checks_now(q):
            _arguments.check_promises(function, form, params, args)
        elif function == "attention" and not q.is_cuda:  # users' tensors, for which nothing has to be waited
            broken = _arguments.broken_promise(form, params, args)
            if broken:
                raise errors.Unsupported(broken, function)
    bound = _Form(form, args)
    reason = _arguments.why_not(q, k, v, *bound.tensors)
    if reason is not None:
        raise errors.Unsupported(reason, function)
    if scale is not None and scale < 0:
        q, scale = -q, -scale
    if torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v, *bound.tensors)):
        return _attend_form_with_gradient(function, q, k, v, form, args, scale, bshd, lse, out, kernels)
    width = _width(q, k, v, False, lse, kernels, form, args)
    if width is not None:
        return _attend_padded(function, width, q, k, v, scale, out, functools.partial(
            attend_form, form=form, args=args, bshd=bshd, lse=lse, kernels=kernels))
    if _is_compiling():
        q, k, v = _dense(q), _dense(k), _dense(v)
    call = q, k, v, bound.tensors, bound.numbers, bound.number
    try:
        if out is None:
            o, sums = _form_attention(*call, scale, bshd, lse, number, True)
            result = o, sums if lse else None
        else:
            sums = _empty_lse(q, bshd, lse) if lse or _is_compiling() else _NO_LSE
            _form_attention_out(*call, out, sums, scale, bshd, number, True)
            _note_change(out)
            result = out, sums
    except RuntimeError as error:
        reason = _refusal(error)
        dense = [_dense(t) for t in (q, k, v)]
        if all(copy is t for copy, t in zip(dense, (q, k, v))):
            raise type(reason)(reason.reason, function) from None
        return attend_form(function, *dense, form, args, scale=scale, bshd=bshd, lse=lse, out=out, kernels=kernels)
    if not _is_compiling():
        _stats.computed(function)
    return result


def _programs_of(form, args, kernels):
    """What the kernels' manifests say of a form; None where none has it."""
    return _forms_by_torch.find((_kernels.ready() if kernels is None else kernels)._directories, form, tuple(args))


def _has_gradient(q, k, v, form, args, bshd, kernels):
    """Whether our programs compute a form's gradient from O and LSE, or of windows PyTorch's flash attention does."""
    if kernels is not None or _is_compiling():
        return False
    scores = _forms.scores_of(form, args)
    return scores is not None and (_gradients.has_program(q, k, v, bshd, scores) or (
        _forms.window_of(form, args) is not None and _by_torch.has_backward_of_window(q, k, v)))


def _attend_form_with_gradient(function, q, k, v, form, args, scale, bshd, lse, out, kernels):
    """O and LSE by a kernel. The gradient is our programs', or PyTorch's: of windows by its flash attention, else computed anew from the
    form's own programs."""
    if out is not None:
        raise errors.Error("out= takes no part in gradients; leave it out, or use torch.no_grad()")
    programs = _programs_of(form, args, kernels)
    if programs is None:  # the call says what is wrong
        with torch.no_grad():
            return attend_form(function, q, k, v, form, args, scale=scale, bshd=bshd, lse=lse, kernels=kernels)

    def compute(q, k, v, args):
        return attend_form(function, q, k, v, form, args, scale=scale, bshd=bshd, lse=True, kernels=kernels)

    attention = _forms_by_torch.Attention(programs, args, q, k, v, scale, bshd)
    by_programs = form if _has_gradient(q, k, v, form, args, bshd, kernels) else None
    o, sums = _forms_by_torch.with_gradient(attention, compute, q, k, v, by_programs)
    return o, sums if lse else None


def _attend_form_or_instead(q, k, v, form, args, fallback, *, scale, bshd, lse, out, kernels):
    """By a kernel; where there is none and the fallback is another, by PyTorch."""
    if _is_traced() or _is_any_autocast_enabled():
        q, k, v = _arguments.cast(q, k, v)
    scale = None if scale is None else _arguments.scale_of("attention", scale)
    try:
        return attend_form("attention", q, k, v, form, args, scale=scale, bshd=bshd, lse=lse, out=out, kernels=kernels)
    except errors.Unsupported as refused:
        programs = _programs_of(form, args, kernels)
        if fallback == "error" or programs is None or _is_compiling() or q.is_nested:
            raise
        _stats.refuse("attention", refused, fallback)
        k, v = _arguments.widened(q, k, v)
        attention = _forms_by_torch.Attention(programs, args, q, k, v, scale, bshd)
        if _arguments.has_tangent(q, k, v, *args.values()):
            o, sums = attention.forward(q, k, v)
        else:
            o, sums = _forms_by_torch.with_gradient(attention, lambda q, k, v, args: attention.forward(q, k, v), q, k, v)
        return (o if out is None else out.copy_(o)), sums if lse else None


def _refusal(error):
    """What no kernel computes, as Unsupported; raises all else that the operators say."""
    reason = error if isinstance(error, errors.Error) else reason_of(error)
    if reason is None:
        raise error
    if not isinstance(reason, errors.Unsupported):
        raise reason from None
    return reason


def _instead(q, k, v, scale, causal, bshd, lse, out):
    """O and LSE by PyTorch."""
    k, v = _arguments.widened(q, k, v)
    scale = q.size(-1) ** -0.5 if scale is None else scale
    compute = _by_torch.attention_of_nested if q.is_nested or k.is_nested or v.is_nested else _by_torch.attention
    o, sums = compute(q, k, v, scale=scale, causal=causal, bshd=bshd, lse=lse)
    return _into(out, o), sums


def _attend_in_graph(function, q, k, v, scale, causal, bshd, lse, out, fallback, number):
    """attend() while a graph is made: what is decided there holds whenever it runs."""
    if number == _READY and q.is_cuda and not _has_kernel(_READY_TABLES, *_kind(q, v, causal, lse)):
        if fallback == "error":
            raise errors.Unsupported(f"{function}: no kernel for this type and these head dims")
        return _instead(q, k, v, scale, causal, bshd, lse, out)
    wants_gradient = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _launch(_dense(q), _dense(k), _dense(v), scale, causal, bshd, lse, out, number, wants_gradient)


def _kind(q, v, causal, lse, form=None, args=()):
    """What _has_kernel and _wider are asked of a call. A graph is for its head dims alone: index() makes numbers of symbols."""
    kind = (q.dtype, v.dtype) if v.dtype in _arguments.BYTES else q.dtype
    return kind, causal, lse, index(q.shape[3]), index(v.shape[3]), q.device.index if q.is_cuda else None, form, tuple(args)


def _width(q, k, v, causal, lse, kernels, form=None, args=()):
    """The head dim to which these tensors are padded, or None."""
    if v.dtype in _arguments.BYTES:
        return None
    return _wider(_tables_of(kernels), *_kind(q, v, causal, lse, form, args))


def _has_kernel(tables, dtype, causal, lse, head_dim, head_dim_v, ordinal, form=None, params=()):
    """Whether tables have a kernel for packed tensors like these (dtype: q's, or with v's where that is of float8), by a form with these params: what a graph can know when it is
    made. ordinal: the GPU's; None: the CPU."""
    return _knows(tables, dtype, causal, lse, head_dim, head_dim_v, _capability(ordinal), form, params)


def _wider(tables, dtype, causal, lse, head_dim, head_dim_v, ordinal, form=None, params=()):
    """The head dim to which tensors are padded; None where tables have a kernel for theirs, or none for a wider one either."""
    def knows(head_dim, head_dim_v):
        return _knows(tables, dtype, causal, lse, head_dim, head_dim_v, capability, form, params)

    capability, most = _capability(ordinal), max(head_dim, head_dim_v)
    if capability is None or knows(head_dim, head_dim_v):
        return None
    return next((width for width in _WIDTHS if width >= most and knows(width, width)), None)


_WIDTHS = range(32, 257, 32)  # the head dims that tensors are padded to, where there is a kernel


@functools.lru_cache(maxsize=None)
def _knows(tables, dtype, causal, lse, head_dim, head_dim_v, capability, form, params):
    dtype, kv_dtype = dtype if isinstance(dtype, tuple) else (dtype, None)
    if dtype not in _DTYPES or capability is None or head_dim < 1 or head_dim_v < 1:
        return False
    problem = _kernels.describe((1, 1, 1, 128, 128, head_dim, head_dim_v), _DTYPES[dtype], causal, lse,
                                kv_dtype=_arguments.BYTES.get(kv_dtype))
    if form is not None:
        if _forms.find(tables, form, params) is None:
            return False
        _forms.describe(problem, tables, form, _forms.any_args(tables, form, params))
    choice = _lib.Choice()
    return _lib.library().fagen_query(_lib.pointers(tables), len(tables), ctypes.byref(problem),
                                      _lib.described_device(capability, 1), ctypes.byref(choice)) == _lib.OK


def _capability(ordinal):
    """The GPU's compute capability, as 90; None: it is the CPU."""
    if ordinal is None:
        return None
    major, minor = torch.cuda.get_device_capability(ordinal)
    return 10 * major + minor


_has_kernel._dynamo_marked_constant = _wider._dynamo_marked_constant = True  # what torch.compiler.assume_constant_result sets, without importing the compiler


def _launch(q, k, v, scale, causal, bshd, lse, out, number, wants_gradient):
    """By an operator: with a gradient where one is wanted, for which LSE is kept."""
    options = scale, causal, bshd
    if out is not None:
        sums = _empty_lse(q, bshd, lse)
        _attention_out(q, k, v, out, sums, *options, number, True)
        _note_change(out)
        return out, sums if lse else None
    if wants_gradient or _is_compiling():
        o, sums = _attention(q, k, v, *options, lse or wants_gradient, number)
        return o, sums if lse else None
    return _forward_lse(q, k, v, *options, number, True) if lse else (_forward(q, k, v, *options, number, True), None)


class Plan:
    """One attention of fixed shapes and strides: nothing is asked again at a call, and a call may be captured.

    plan() makes it: its kernel is compiled and loaded by then. It holds its inputs' shapes, not their memory. A copy is another
    plan, and one that is pickled is planned anew where it is loaded.
    """

    def __init__(self, q, k, v, out, scale, causal, bshd, kernels):
        self._number = _plan(q, k, v, out, scale, causal, bshd, _number(kernels))
        self._problem = [(tuple(t.shape), t.stride()) for t in (q, k, v)], q.dtype, str(q.device), scale, causal, bshd, kernels
        _operators.bshd_of_plans[self._number] = bshd
        weakref.finalize(self, _forget_plan, self._number)

    def __reduce__(self):
        return _plan_again, self._problem

    def __call__(self, q, k, v, out):
        """Computes into out. q, k and v have the shapes, strides, type and device that were planned; out takes no part in
        gradients, and shares no memory with them."""
        if _is_compiling():
            _planned(q, k, v, out, self._number, True)
            return out
        if _planned_at_once(q, k, v, out, self._number):
            return out
        _check_planned(q, k, v, out, self._problem)
        try:
            _planned(q, k, v, out, self._number, True)
        except RuntimeError as error:
            raise reason_of(error) or error from None
        _note_change(out)
        return out


def _check_planned(q, k, v, out, problem):
    """What is no matter of the plan's; the operator says where tensors are not as planned."""
    _arguments.check_kinds("a plan", [("q", q), ("k", k), ("v", v), ("out", out)])
    if _arguments.has_tangent(q, k, v) or (_is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)):
        raise errors.Error("a plan has no gradient; use fagen.attention, or torch.no_grad()")
    shapes, bshd = problem[0], problem[5]
    if all(tuple(t.shape) == shape for t, (shape, _) in zip((q, k, v), shapes)):
        _arguments.check("a plan", q, k, v, out, bshd)


def _forget_plan(number):
    _operators.bshd_of_plans.pop(number, None)
    _ours.fagen_torch_forget_plan(number)


def _plan_again(shapes, dtype, device, scale, causal, bshd, kernels):
    """A plan of the problem of another, which may have been another process's."""
    try:
        q, k, v = (torch.empty_strided(size, stride, dtype=dtype, device=device).zero_() for size, stride in shapes)
    except (RuntimeError, AssertionError) as error:
        raise errors.Error(f"a plan for {device} is made anew where it is loaded, and its tensors are not there: "
                           f"{str(error).splitlines()[0]}") from None
    return plan(q, k, v, causal=causal, scale=scale, layout="bshd" if bshd else "bhsd", kernels=kernels)


def plan(q, k, v, *, causal=False, scale=None, layout="bshd", kernels=None):
    """A Plan for tensors like these, its kernel compiled and loaded. Unsupported where there is none."""
    bshd = _is_bshd(layout)
    _arguments.check("plan", q, k, v, bshd=bshd)
    scale = None if scale is None else _arguments.scale_of("plan", scale)
    if scale is not None and scale < 0:
        raise errors.Error(f"plan: scale is {scale}; a plan takes none below 0: give {-scale}, and -q to its calls")
    causal = _arguments.flag_of("plan", "causal", causal)
    reason = _arguments.why_not(q, k, v)
    if reason is not None:
        raise errors.Unsupported(reason, "plan")
    out = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device)
    try:
        with torch.no_grad():
            made = Plan(q, k, v, out, scale, causal, bshd, kernels)
            made(q, k, v, out)
    except RuntimeError as error:
        raise (error if isinstance(error, errors.Error) else reason_of(error) or error) from None
    return made


def explain(q, k, v, *, causal=False, scale=None, layout="bshd", lse=False, form=None, form_args=None, **params):
    """Which kernel of the package computes this and why, in words. On a GPU."""
    return _kernels.ready().explain(q, k, v, causal=causal, scale=scale, layout=layout, lse=lse, form=form,
                                    form_args=form_args, **params)


def pack_bits(tensor):
    """A bool tensor as a form's bits: int32 of the same shape but for the last dimension, whose bits lie 32 in a word."""
    size = tensor.shape[-1]
    padded = torch.nn.functional.pad(tensor.to(torch.int32), (0, -size % 32)).unflatten(-1, (-1, 32))
    return (padded << torch.arange(32, dtype=torch.int32, device=tensor.device)).sum(-1, dtype=torch.int32)


def warmup(shapes, *, dtype=torch.float16, causal=True, device="cuda"):
    """Compiles and loads the kernels for these shapes: (batch, heads, kv_heads, seq_q, seq_kv, head_dim), packed bshd."""
    if dtype not in _DTYPES:
        raise errors.ArgumentError(f"warmup: dtype is {dtype!r}; it is {' or '.join(map(str, _DTYPES))}")
    shapes = list(shapes) if isinstance(shapes, Iterable) else [shapes]
    for shape in shapes:
        if not isinstance(shape, Sequence) or len(shape) != 6:
            raise errors.ArgumentError(f"warmup: a shape is {shape!r}; it is (batch, heads, kv_heads, seq_q, seq_kv, head_dim)")
        _kernels.describe(shape, _DTYPES[dtype])
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise errors.CudaError("warmup: there is no CUDA GPU here that PyTorch can use; `fagen doctor` says what is missing")
    for batch, heads, kv_heads, seq_q, seq_kv, head_dim in shapes:
        q = torch.zeros((batch, seq_q, heads, head_dim), dtype=dtype, device=device)
        k = torch.zeros((batch, seq_kv, kv_heads, head_dim), dtype=dtype, device=device)
        plan(q, k, k, causal=causal)


def enable_pdl(on=True):
    """Whether calls and plans made from now on, in this process, are programmatic dependent launches.

    Kernels of schedules with `pdl = 1` then set themselves up while the launch before them in the stream ends. That gains
    where the kernels before and after do so, too, as fagen's own do; after others it costs a little.
    What was captured or planned before stays as it is. Results are the same.
    """
    _ours.fagen_torch_overlap_launches(bool(on))


_checks = os.environ.get("FAGEN_CHECKS", "0") not in ("", "0")


def checks_now(like):
    """Whether a call with this tensor looks at what tensors hold: enable_checks(), and no graph is being made."""
    return _checks and not _is_compiling() and not (like.is_cuda and torch.cuda.is_current_stream_capturing())


def enable_checks(on=True):
    """Whether calls look from now on, in this process, at what their tensors hold: that ids ascend which a form wants to ascend, that
    numbers on the GPU lie in their range, and that offsets, lengths, slots and the entries of page tables that are used name what there is, in
    fagen.serving and in flash-attn's functions. Error where they do not, with the first wrong entry. Each call waits for the GPU; in
    graphs nothing is checked. The environment's FAGEN_CHECKS=1 does the same from the start.
    """
    global _checks
    _checks = bool(on)


def computed_at_once():
    """How often functions were computed by _at_once, by name."""
    found = {}
    each = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64)
    _ours.fagen_torch_computed(each(lambda name, calls: found.update({name.decode(): calls})))
    return found


def launches():
    """How often each kernel was launched: {(variant, target): launches}."""
    found = {}
    each = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64)
    _ours.fagen_torch_counts(each(lambda variant, target, count: found.update({(variant.decode(), target.decode()): count})))
    return found


register_flash_attention_impl("fagen", register_fn=_sdpa.activate)
