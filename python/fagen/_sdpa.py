# fagen: in the place of PyTorch's flash attention, below torch.nn.functional.scaled_dot_product_attention.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.nn.attention.activate_flash_attention_impl("fagen"), once fagen.torch is imported; restore_... undoes it.

It takes calls that SDPA would give to flash attention, and to cuDNN where no gradient is wanted. SDPA's causal mask is
top-left: keys after the last row are cut off, and what has more rows than keys stays with PyTorch, as do dropout and
whatever no kernel computes. stats() counts those. Gradients of flash attention are our programs' where these take them, and
PyTorch's own else. torch.nn.attention.varlen.varlen_attn goes by another operator, whose masks are bottom-right; its gradients are PyTorch's.
"""
import math
import warnings

import torch

from . import _gradients, _stats, errors

_FLASH = "aten::_scaled_dot_product_flash_attention"
_FLASH_BACKWARD = "aten::_scaled_dot_product_flash_attention_backward"
_PACKED = "aten::_flash_attention_forward"
_CUDNN = "aten::_scaled_dot_product_cudnn_attention"


def top_left(query, key, value, is_causal):
    """key, value and is_causal of the same result with a bottom-right mask; Unsupported where there is none."""
    rows, keys = query.shape[2], key.shape[2]
    if not is_causal or rows == keys:
        return key, value, is_causal
    if keys < rows:
        raise errors.Unsupported(f"a top-left causal mask with fewer keys than rows, {keys} and {rows}")
    return key[:, :, :rows], value[:, :, :rows], True


def _compute(query, key, value, dropout_p, is_causal, scale, lse):
    """O, laid out as query is, and LSE; Unsupported."""
    from . import torch as front
    if dropout_p:
        raise errors.Unsupported(f"dropout_p {dropout_p}")
    if scale is not None and not math.isfinite(scale):
        raise errors.Unsupported(f"scale {scale}")
    key, value, is_causal = top_left(query, key, value, is_causal)
    out = torch.empty_like(query)
    if value.shape[3] != query.shape[3]:
        out = query.new_empty((*query.shape[:3], value.shape[3]))
    with torch.no_grad():
        return front.attend("scaled_dot_product_attention", query, key, value, scale=scale, causal=is_causal, bshd=False,
                            lse=lse, out=out, has_other_way=True)


def _or_torch(saved, keyset, arguments, keywords, compute, function="scaled_dot_product_attention"):
    """compute()'s result, or what the saved kernel of PyTorch gives; counted."""
    try:
        return compute()
    except errors.Unsupported as refused:
        _stats.refuse(function, refused, "torch")
        return saved.call_boxed(keyset, *arguments, **keywords)


def flash(saved):
    """Our kernel of _scaled_dot_product_flash_attention; `saved` is PyTorch's."""

    def kernel(keyset, query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
        def compute():
            if return_debug_mask:
                raise errors.Unsupported("return_debug_mask")
            o, lse = _compute(query, key, value, dropout_p, is_causal, scale, True)
            state = torch.zeros(2, dtype=torch.uint64, device=query.device)
            unused, mask = state.new_empty(0), query.new_empty(0)
            return o, lse, None, None, query.shape[2], key.shape[2], state, unused, mask
        return _or_torch(saved, keyset, (query, key, value, dropout_p, is_causal, return_debug_mask), {"scale": scale}, compute)

    return kernel


def flash_backward(saved):
    """Our kernel of _scaled_dot_product_flash_attention_backward, whoever computed the forward; `saved` is PyTorch's."""

    def kernel(keyset, grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
               philox_seed, philox_offset, *, scale=None):
        is_square = not is_causal or query.shape[2] == key.shape[2]  # else causal is another mask here
        if dropout_p or not is_square or not _gradients.has_program(query, key, value, False):
            return saved.call_boxed(keyset, grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                                    is_causal, philox_seed, philox_offset, scale=scale)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        grad_out, query, key, value, out = (t.transpose(1, 2) for t in (grad_out, query, key, value, out))  # PyTorch's own are laid out so
        found = _gradients.backward(grad_out, query, key, value, out, logsumexp, scale, is_causal, True)
        return tuple(t.transpose(1, 2) for t in found)

    return kernel


def cudnn(saved):
    """Our kernel of _scaled_dot_product_cudnn_attention, of which only O is used where no LSE is asked for."""

    def kernel(keyset, query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False,
               return_debug_mask=False, *, scale=None):
        def compute():
            if attn_bias is not None:
                raise errors.Unsupported("an attn_mask")
            if compute_log_sumexp or return_debug_mask:
                raise errors.Unsupported("a gradient, which is cuDNN's")
            o, _ = _compute(query, key, value, dropout_p, is_causal, scale, False)
            nothing, state = query.new_empty(0, dtype=torch.float32), torch.zeros((), dtype=torch.int64, device=query.device)
            return o, nothing, None, None, query.shape[2], key.shape[2], state, state.clone(), query.new_empty(0)
        arguments = (query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, return_debug_mask)
        return _or_torch(saved, keyset, arguments, {"scale": scale}, compute)

    return kernel


def packed(saved):
    """Our kernel of _flash_attention_forward for packed sequences, as varlen_attn gives them; `saved` is PyTorch's."""

    def kernel(keyset, query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, *, scale=None,
               window_size_left=None, window_size_right=None, seqused_k=None, alibi_slopes=None):
        def compute():
            from . import _flash
            if cum_seq_q is None or query.dim() != 3:
                raise errors.Unsupported("sequences that are not packed")
            if return_debug_mask:
                raise errors.Unsupported("return_debug_mask")
            window = tuple(-1 if side is None else side for side in (window_size_left, window_size_right))
            with torch.no_grad():
                o, lse = _flash.varlen("varlen_attn", query, key, value, cum_seq_q, cum_seq_k, seqused_k=seqused_k, scale=scale, causal=is_causal,
                                       window=window, softcap=0.0, dropout=dropout_p, alibi_slopes=alibi_slopes, lse=True, fallback="error")
            # PyTorch's gradient takes +inf for a row that sees no key: its weights are then 0
            state = torch.zeros(2, dtype=torch.uint64, device=query.device)
            return o, lse.masked_fill(lse == -torch.inf, torch.inf), state, state.new_empty(0), query.new_empty(0)
        keywords = {"scale": scale, "window_size_left": window_size_left, "window_size_right": window_size_right, "seqused_k": seqused_k,
                    "alibi_slopes": alibi_slopes}
        arguments = (query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask)
        return _or_torch(saved, keyset, arguments, keywords, compute, "varlen_attn")

    return kernel


class Handle:
    """Undoes activate()."""

    def __init__(self, library):
        self._library = library

    def remove(self):
        self._library._destroy()
        self._library = None


def activate():
    """Puts our kernels in the place of PyTorch's; a Handle."""
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in ((_FLASH, flash), (_FLASH_BACKWARD, flash_backward), (_PACKED, packed), (_CUDNN, cudnn)):
        saved = torch.library.get_kernel(name, "CUDA")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once|.*[Oo]verrid", UserWarning)  # as is meant
            library.impl(name.split("::")[1], kernel(saved), "CUDA", with_keyset=True, allow_override=True)
    return Handle(library)
