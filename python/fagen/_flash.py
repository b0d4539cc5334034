# fagen: what flash-attn's functions have in common, whatever the order of their arguments.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors are [batch, seq, heads, head_dim]; masks are bottom-right. What kernels lack is computed by PyTorch, counted.

Neither is computed: qv, descales, attention_chunk, rotary embeddings, probabilities. They raise Unsupported.
"""
import torch

from . import _arguments, _by_torch, _forms, _stats, errors
from . import torch as front


def refuse_all(function, **arguments):
    """Raises Unsupported for the first of the arguments that is set: nobody computes them."""
    for name, value in arguments.items():
        if value is not None and value is not False and not (isinstance(value, (int, float)) and value == 0):
            raise errors.Unsupported(f"{function}: {name}: neither fagen nor its fallback computes it")


def normalize(causal, window, seq_q, seq_kv):
    """(causal, window) of the same mask, where a window that binds nothing is (-1, -1) and (-1, 0) is causal."""
    left, right = (-1 if side is None else int(side) for side in window)
    if causal:
        right = 0 if right < 0 else min(right, 0)
    if left >= max(seq_kv - 1, 0):
        left = -1
    if right > 0 and right >= seq_q - 1:
        right = -1
    if left < 0 and right == 0:
        return True, (-1, -1)
    return False, (left, right)


def form_of(is_causal, window, softcap, alibi_slopes):
    """(form, args) of the package's forms for a normalized mask, or None: softcap and ALiBi need a causal one."""
    left, right = window
    if not (is_causal or right == 0):
        if softcap or alibi_slopes is not None:
            return None
        return "local", {"left": _forms.ALL_KEYS if left < 0 else left, "right": _forms.ALL_KEYS if right < 0 else right}
    if alibi_slopes is not None and alibi_slopes.dim() != 1:
        return None
    return _forms.shipped(window=None if is_causal else left + 1, softcap=softcap or None, slopes=alibi_slopes)


def _words(is_causal, window, softcap, alibi_slopes):
    """What of a call is not plain, as its caller said it."""
    words = [f"window_size={window}"] if window != (-1, -1) else []
    words += [f"softcap={softcap}"] if softcap else []
    words += ["alibi_slopes"] if alibi_slopes is not None else []
    return ", ".join(words) + ("" if is_causal or window != (-1, -1) else ", not causal")


def _refuse(function, reason, fallback):
    """As _stats.refuse; in a graph that is being made nothing is counted."""
    if fallback == "error" or not torch.compiler.is_compiling():
        _stats.refuse(function, reason, fallback)


def attend(function, q, k, v, *, scale, causal, window=(-1, -1), softcap=0.0, dropout=0.0, alibi_slopes=None, lse=False,
           fallback="warn"):
    """O and LSE [batch, heads, seq_q]."""
    q, k, v = _arguments.cast(q, k, v)
    scale = None if scale is None else _arguments.scale_of(function, scale)
    is_causal = causal
    if window != (-1, -1):
        is_causal, window = normalize(causal, window, q.shape[1], k.shape[1])
    if not dropout and window == (-1, -1) and not softcap and alibi_slopes is None:
        return front.attend(function, q, k, v, scale, is_causal, lse=lse, fallback=fallback)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    said = _words(is_causal, window, softcap, alibi_slopes)
    if dropout:
        reason = f"dropout_p={dropout}: kernels have no dropout"
    else:
        found = form_of(is_causal, window, softcap, alibi_slopes)
        reason = f"{said}: no form has this together" if found is None else front.why_not_form(q, k, v, *found, lse)
        if reason is None:
            try:
                return front.attend_form(function, q, k, v, *found, scale=scale, lse=lse)
            except errors.Unsupported as refused:
                reason = refused.reason
        reason = reason if found is None else f"{said}: {reason}"
    _refuse(function, reason, fallback)
    return _by_torch.attention(q, k, v, scale=scale, causal=is_causal, lse=lse, window=window, softcap=softcap,
                               alibi_slopes=alibi_slopes, dropout=dropout)


def attend_each(function, why, parts, *, fallback, alibi_slopes=None, **options):
    """attend() for (q, k, v) of one sequence after the other: a list of O and LSE."""
    _refuse(function, f"{why}: kernels have one length for all; sequences are computed one after the other", fallback)
    slopes = [alibi_slopes[i] if alibi_slopes is not None and alibi_slopes.dim() == 2 else alibi_slopes
              for i in range(len(parts))]
    return [attend(function, *part, alibi_slopes=one, fallback=fallback, **options) for part, one in zip(parts, slopes)]


def varlen(function, q, k, v, cu_seqlens_q, cu_seqlens_k, *, seqused_q=None, seqused_k=None, lse, **options):
    """O [total, heads, head_dim] and LSE [heads, total] of packed sequences."""
    starts_q, starts_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    used_q = [b - a for a, b in zip(starts_q, starts_q[1:])] if seqused_q is None else seqused_q.tolist()
    used_k = [b - a for a, b in zip(starts_k, starts_k[1:])] if seqused_k is None else seqused_k.tolist()
    parts = [(q[None, a:a + n], k[None, b:b + m], v[None, b:b + m])
             for a, n, b, m in zip(starts_q, used_q, starts_k, used_k)]
    results = attend_each(function, "cu_seqlens", parts, lse=lse, **options)
    if seqused_q is None and starts_q[-1:] == [q.shape[0]]:
        o = torch.cat([o[0] for o, _ in results]) if results else q.new_empty((0, q.shape[1], v.shape[2]))
        return o, torch.cat([sums[0] for _, sums in results], dim=1) if lse else None
    o = q.new_zeros((*q.shape[:2], v.shape[2]))  # rows that are not used: 0 and -inf
    sums = torch.full((q.shape[1], q.shape[0]), -torch.inf, dtype=torch.float32, device=q.device) if lse else None
    for start, rows, (one, its) in zip(starts_q, used_q, results):
        o[start:start + rows] = one[0]
        if lse:
            sums[:, start:start + rows] = its[0]
    return o, sums


def kvcache(function, q, k_cache, v_cache, k, v, cache_seqlens, *, batch_idx=None, leftpad=None, table=None, lse, fallback,
            **options):
    """O and LSE with the cache's first keys, behind which k and v are put first where they are given.

    cache_seqlens: None, a number, or one for each batch; table: the pages of each batch.
    """
    if table is not None:
        if k is not None:
            raise errors.Unsupported(f"{function}: k with a page table: neither fagen nor its fallback puts keys into pages")
        _refuse(function, "a page table: kernels have no pages; they are copied together", fallback)
        k_cache, v_cache = (c[table.long()].flatten(1, 2) for c in (k_cache, v_cache))
    rows = list(range(q.shape[0])) if batch_idx is None else batch_idx.tolist()
    lengths = _lengths(cache_seqlens, k_cache.shape[1], q.shape[0])
    if k is not None:
        for i, (row, length) in enumerate(zip(rows, lengths)):
            k_cache[row, length:length + k.shape[1]] = k[i]
            v_cache[row, length:length + v.shape[1]] = v[i]
        lengths = [length + k.shape[1] for length in lengths]
    pads = [0] * len(rows) if leftpad is None else leftpad.tolist()
    if batch_idx is None and not any(pads) and len(set(lengths)) <= 1:
        end = lengths[0] if lengths else 0
        return attend(function, q, k_cache[:len(rows), :end], v_cache[:len(rows), :end], lse=lse, fallback=fallback, **options)
    parts = [(q[i:i + 1], k_cache[row:row + 1, pad:length], v_cache[row:row + 1, pad:length])
             for i, (row, pad, length) in enumerate(zip(rows, pads, lengths))]
    results = attend_each(function, "cache_seqlens, cache_batch_idx or cache_leftpad", parts, lse=lse, fallback=fallback, **options)
    return torch.cat([o for o, _ in results]), torch.cat([sums for _, sums in results]) if lse else None


def _lengths(cache_seqlens, size, batches):
    if cache_seqlens is None:
        return [size] * batches
    if isinstance(cache_seqlens, int):
        return [cache_seqlens] * batches
    return cache_seqlens.tolist()
