# fagen: attention on PyTorch tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attention(), plan() and explain() for PyTorch.

The operators torch.ops.fagen.attention and attention_out have no gradient of their own: attention() here takes an
autograd.Function where a gradient is wanted. Causal is bottom-right, as in flash-attn: row i of seq_q sees keys
j <= i + seq_kv - seq_q.
"""
import ctypes
import math
import os

import torch
from torch.nn.attention import register_flash_attention_impl

from . import _by_torch, _kernels, _lib, _sdpa, _stats, errors

_DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_ERRORS = {kind.__name__: kind for kind in (errors.Unsupported, errors.Misaligned, errors.CompileError, errors.CudaError)}


def _register():
    """The operators, defined with the PyTorch that is imported; and the library that has them."""
    _lib.library()
    ours = ctypes.CDLL(_lib.path("lib", "libfagen_torch.so"))
    ours.fagen_torch_register.restype = ctypes.c_char_p
    ours.fagen_torch_register.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    ours.fagen_torch_add_kernels.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
    cuda = os.path.join(libraries, "libtorch_cuda.so")
    error = ours.fagen_torch_register(os.fsencode(os.path.join(libraries, "libtorch_cpu.so")),
                                      os.fsencode(cuda) if os.path.exists(cuda) else None)
    if error:
        raise errors.Error(error.decode())
    return ours


_ours = _register()


@torch.library.register_fake("fagen::attention")
def _(q, k, v, scale, causal, bshd, lse, kernels):
    o = q.new_empty((*q.shape[:3], v.shape[3]))
    heads, rows = (q.shape[2], q.shape[1]) if bshd else (q.shape[1], q.shape[2])
    return o, q.new_empty((q.shape[0], heads, rows) if lse else (0,), dtype=torch.float32)


@torch.library.register_fake("fagen::attention_out")
def _(q, k, v, out, lse, scale, causal, bshd, kernels):
    return None


_attention = torch.ops.fagen.attention.default
_attention_out = torch.ops.fagen.attention_out.default


def _number_of(tables):
    number = _ours.fagen_torch_add_kernels(_lib.pointers(tables), len(tables))
    if number < 0:
        raise errors.Error("this process has compiled 1024 kernel sets; keep and reuse them")
    return number


_READY = _number_of(_kernels.ready()._tables)


def _number(kernels):
    """The operators' number of a KernelSet; None: of the package's own."""
    if kernels is None:
        return _READY
    if not hasattr(kernels, "_torch_number"):
        kernels._torch_number = _number_of(kernels._tables)
    return kernels._torch_number


def _is_bshd(layout):
    if layout in ("bshd", "bhsd"):
        return layout == "bshd"
    raise errors.Error(f'layout is {layout!r}; it is "bshd" (batch, seq, heads, head_dim) or "bhsd"')


def describe(q, k, v, *, causal=False, scale=None, layout="bshd", lse=False):
    """The C ABI's problem of these tensors, with their strides."""
    if q.dtype not in _DTYPES:
        raise errors.Unsupported(f"q's dtype is {q.dtype}; kernels are of float16 and bfloat16")
    head, row = (2, 1) if _is_bshd(layout) else (1, 2)
    shape = (q.shape[0], q.shape[head], k.shape[head], q.shape[row], k.shape[row], q.shape[3], v.shape[3])
    problem = _kernels.describe(shape, _DTYPES[q.dtype], causal, lse, scale)
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


class _Attention(torch.autograd.Function):
    """Our O; its gradient by PyTorch's flash attention, fed with our O and LSE, or by what else PyTorch has."""

    @staticmethod
    def forward(ctx, q, k, v, scale, causal, bshd, kernels):
        o, lse = _attention(q, k, v, scale, causal, bshd, True, kernels)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = scale, causal, bshd
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return (*_by_torch.backward(grad, *ctx.saved_tensors, *ctx.options), None, None, None, None)


class _AttentionAndLse(torch.autograd.Function):
    """Our O and LSE. A gradient through LSE is none of flash attention's: PyTorch computes both anew for it."""

    @staticmethod
    def forward(ctx, q, k, v, scale, causal, bshd, kernels):
        o, lse = _attention(q, k, v, scale, causal, bshd, True, kernels)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = scale, causal, bshd
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad, grad_lse):
        q, k, v, o, lse = ctx.saved_tensors
        if grad_lse is None:
            gradients = _by_torch.backward(grad, q, k, v, o, lse, *ctx.options)
        else:
            gradients = _by_torch.backward_anew((grad, grad_lse), q, k, v, *ctx.options)
        return (*gradients, None, None, None, None)


def attention(q, k, v, *, causal=False, scale=None, layout="bshd", return_lse=False, out=None, fallback="error",
              kernels=None):
    """softmax(scale * q k^T + mask) v, and LSE [batch, heads, seq_q] in float32 if return_lse.

    q is [batch, seq_q, heads, head_dim] (layout "bshd") or [batch, heads, seq_q, head_dim] ("bhsd"), k and v have kv_heads,
    which divide heads; all other strides are free. scale: 1 / sqrt(head_dim) where None. A row that sees no key gives 0 and
    -inf. out: where to write; it takes no part in gradients. kernels: a KernelSet, else the package's
    own. fallback, for what no kernel computes: "error" raises Unsupported, "warn" lets PyTorch compute it and says so once a
    reason, "torch" lets it silently; stats() counts both.
    """
    result = attend("attention", q, k, v, scale=scale, causal=causal, bshd=_is_bshd(layout), lse=return_lse, out=out,
                    fallback=fallback, kernels=kernels)
    return result if return_lse else result[0]


def attend(function, q, k, v, *, scale=None, causal=False, bshd=True, lse=False, out=None, fallback="error", kernels=None):
    """O and LSE of attention(), on behalf of a function of this name."""
    if fallback not in _stats.FALLBACKS:
        raise errors.Error(f'{function}: fallback is {fallback!r}; it is "error", "warn" or "torch"')
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    number = _number(kernels)
    if torch.compiler.is_compiling():
        if kernels is None and q.is_cuda and not _has_kernel(q.dtype, causal, lse, q.shape[3], v.shape[3], q.device.index or 0):
            if fallback == "error":
                raise errors.Unsupported(f"{function}: no kernel for this type and these head dims")
            o, sums = _by_torch.attention(q, k, v, scale=scale, causal=causal, bshd=bshd, lse=lse)
            return (o if out is None else out.copy_(o)), sums
        return _launch(q, k, v, scale, causal, bshd, lse, out, number)
    try:
        result = _launch(q, k, v, scale, causal, bshd, lse, out, number)
    except RuntimeError as error:
        reason = error if isinstance(error, errors.Error) else reason_of(error)
        if reason is None:
            raise
        if not isinstance(reason, errors.Unsupported):
            raise reason from None
        _stats.refuse(function, reason, fallback)
        o, sums = _by_torch.attention(q, k, v, scale=scale, causal=causal, bshd=bshd, lse=lse)
        return (o if out is None else out.copy_(o)), sums
    _stats.computed(function)
    return result


def _has_kernel(dtype, causal, lse, head_dim, head_dim_v, ordinal):
    """Whether the package has a kernel for packed tensors like these: what a graph can know when it is made."""
    if dtype not in _DTYPES:
        return False
    major, minor = torch.cuda.get_device_capability(ordinal)
    problem = _kernels.describe((1, 1, 1, 128, 128, head_dim, head_dim_v), _DTYPES[dtype], causal, lse)
    tables, choice = _kernels.ready()._tables, _lib.Choice()
    return _lib.library().fagen_query(_lib.pointers(tables), len(tables), ctypes.byref(problem),
                                      _lib.described_device(10 * major + minor, 1), ctypes.byref(choice)) == _lib.OK


_has_kernel._dynamo_marked_constant = True  # what torch.compiler.assume_constant_result sets, without importing the compiler


def _launch(q, k, v, scale, causal, bshd, lse, out, number):
    """By our kernels: with a gradient where one is wanted."""
    q, k, v = _dense(q), _dense(k), _dense(v)
    wants_gradient = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    if out is not None:
        if wants_gradient:
            raise errors.Error("out= takes no part in gradients; leave it out, or use torch.no_grad()")
        return _into(out, q, k, v, scale, causal, bshd, lse, number)
    if wants_gradient:
        if lse:
            return _AttentionAndLse.apply(q, k, v, scale, causal, bshd, number)
        return _Attention.apply(q, k, v, scale, causal, bshd, number), None
    return _attention(q, k, v, scale, causal, bshd, lse, number)


def _into(out, q, k, v, scale, causal, bshd, return_lse, number):
    heads, rows = (q.shape[2], q.shape[1]) if bshd else (q.shape[1], q.shape[2])
    lse = torch.empty((q.shape[0], heads, rows) if return_lse else (0,), dtype=torch.float32, device=q.device)
    _attention_out(q, k, v, out, lse, scale, causal, bshd, number)
    return out, lse


class Plan:
    """One attention of fixed shapes and strides: nothing is asked again at a call, and a call may be captured.

    plan() makes it: its kernel is compiled and loaded by then. It holds its inputs' shapes, not their memory.
    """

    def __init__(self, q, k, v, causal, scale, layout, kernels):
        self._layout = [(tuple(t.shape), t.stride(), t.dtype, t.device) for t in (q, k, v)]
        self._rest = (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale, causal, _is_bshd(layout))
        self._number = kernels
        self._no_lse = torch.empty(0, dtype=torch.float32, device=q.device)

    def __call__(self, q, k, v, out):
        """Computes into out. The tensors have the shapes, strides, types and device that were planned."""
        for tensor, (shape, stride, dtype, device) in zip((q, k, v), self._layout):
            if (tensor.shape, tensor.stride(), tensor.dtype, tensor.device) != (shape, stride, dtype, device):
                raise errors.Error(f"planned for {shape} with strides {stride}, called with {tuple(tensor.shape)} and "
                                   f"{tensor.stride()} ({tensor.dtype}, {tensor.device})")
        _attention_out(q, k, v, out, self._no_lse, *self._rest, self._number)
        return out


def plan(q, k, v, *, causal=False, scale=None, layout="bshd", kernels=None):
    """A Plan for tensors like these, its kernel compiled and loaded. Unsupported where there is none."""
    number = _number(kernels)
    made = Plan(q, k, v, causal, scale, layout, number)
    try:
        made(q, k, v, torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device))
    except RuntimeError as error:
        raise reason_of(error) or error from None
    return made


def explain(q, k, v, *, causal=False, scale=None, layout="bshd", lse=False):
    """Which kernel of the package computes this and why, in words. On a GPU."""
    return _kernels.ready().explain(q, k, v, causal=causal, scale=scale, layout=layout, lse=lse)


def warmup(shapes, *, dtype=torch.float16, causal=True, device="cuda"):
    """Compiles and loads the kernels for these shapes: (batch, heads, kv_heads, seq_q, seq_kv, head_dim), packed bshd."""
    for batch, heads, kv_heads, seq_q, seq_kv, head_dim in shapes:
        q = torch.zeros((batch, seq_q, heads, head_dim), dtype=dtype, device=device)
        k = torch.zeros((batch, seq_kv, kv_heads, head_dim), dtype=dtype, device=device)
        plan(q, k, k, causal=causal)


def launches():
    """How often each kernel was launched: {(variant, target): launches}."""
    found = {}
    each = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64)
    _ours.fagen_torch_counts(each(lambda variant, target, count: found.update({(variant.decode(), target.decode()): count})))
    return found


register_flash_attention_impl("fagen", register_fn=_sdpa.activate)
