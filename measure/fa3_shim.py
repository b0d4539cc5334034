# fagen: flash-attn 3's forward and backward under flash-attn 2's names, as ring-flash-attn asks for them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Importing this puts modules `flash_attn` and `flash_attn.flash_attn_interface` where ring_flash_attn looks, made of the flash_attn_interface
of flash-attn 3. Its adapter to transformers is left out: it wants functions that transformers no longer has."""
import inspect
import sys
import types

try:
    import flash_attn_interface
except ImportError:
    import fa3_fwd_interface as flash_attn_interface  # the wheel fa3-fwd: the forward pass alone


def _flash_attn_forward(q, k, v, dropout_p, softmax_scale, causal, window_size_left, window_size_right, softcap, alibi_slopes, return_softmax):
    if dropout_p or softcap or alibi_slopes is not None:
        raise NotImplementedError("flash-attn 3 has no dropout, and this no softcap or ALiBi")
    o, lse = flash_attn_interface.flash_attn_func(q, k, v, softmax_scale=softmax_scale, causal=causal, return_attn_probs=True,
                                                  window_size=(window_size_left, window_size_right))[:2]
    return o, lse, None, None


def _flash_attn_backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, dropout_p, softmax_scale, causal, window_size_left, window_size_right, softcap,
                         alibi_slopes, deterministic, rng_state=None):
    if dropout_p or softcap or alibi_slopes is not None:
        raise NotImplementedError("flash-attn 3 has no dropout, and this no softcap or ALiBi")
    theirs = flash_attn_interface._flash_attn_backward
    names = set(inspect.signature(theirs).parameters)
    options = {"softmax_scale": softmax_scale, "causal": causal, "is_causal": causal, "window_size_left": window_size_left, "window_size_right": window_size_right,
               "window_size": (window_size_left, window_size_right), "deterministic": deterministic}
    empty = {name: None for name in names if name.startswith(("cu_seqlens", "seq", "max_seqlen"))}
    theirs(dout=dout, q=q, k=k, v=v, out=out, softmax_lse=softmax_lse, dq=dq, dk=dk, dv=dv, **empty, **{n: x for n, x in options.items() if n in names})


def _is_not_there(*_, **__):
    raise NotImplementedError("only sequences of one length are here")


def _install():
    interface = types.ModuleType("flash_attn.flash_attn_interface")
    interface._flash_attn_forward, interface._flash_attn_backward = _flash_attn_forward, _flash_attn_backward
    for name in ("_flash_attn_varlen_forward", "_flash_attn_varlen_backward"):
        setattr(interface, name, _is_not_there)
    package, adapters = types.ModuleType("flash_attn"), types.ModuleType("ring_flash_attn.adapters")
    package.flash_attn_interface = interface
    adapters.substitute_hf_flash_attn = adapters.update_ring_flash_attn_params = _is_not_there
    sys.modules.update({"flash_attn": package, "flash_attn.flash_attn_interface": interface, "ring_flash_attn.adapters": adapters})


def check():
    """Raises unless O and LSE are attention's."""
    import torch
    q, k, v = (torch.randn((1, 256, 2, 128), device="cuda", dtype=torch.bfloat16) for _ in range(3))
    o, lse, *_ = _flash_attn_forward(q, k, v, 0.0, 128 ** -0.5, True, -1, -1, 0.0, None, False)
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float()) * 128 ** -0.5
    scores = scores.masked_fill(~torch.ones(256, 256, dtype=torch.bool, device="cuda").tril(), -torch.inf)
    torch.testing.assert_close(lse, torch.logsumexp(scores, -1), atol=1e-2, rtol=1e-3)
    torch.testing.assert_close(o.float(), torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v.float()), atol=2e-2, rtol=2e-2)


_install()
