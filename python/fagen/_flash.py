# fagen: what flash-attn's functions have in common, whatever the order of their arguments.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors are [batch, seq, heads, head_dim]; masks are bottom-right. What kernels lack is computed by PyTorch, counted.

Neither is computed: qv, attention_chunk, rotary embeddings, probabilities. They raise Unsupported.
"""
import numbers

import torch

from . import _arguments, _by_torch, _entries, _forms, _fp8, _lengths, _paged, _ragged, _stats, errors
from . import torch as front


def refuse_all(function, **arguments):
    """Raises Unsupported for the first of the arguments that is set: nobody computes them."""
    for name, value in arguments.items():
        if value is not None and value is not False and not (isinstance(value, (int, float)) and value == 0):
            raise errors.Unsupported(f"{function}: {name}: neither fagen nor its fallback computes it")


def _check_window(function, window):
    """Error for a window_size that is none."""
    is_pair = isinstance(window, (tuple, list)) and len(window) == 2
    if not is_pair or not all(side is None or isinstance(side, (numbers.Integral, torch.SymInt)) for side in window):
        raise errors.ArgumentError(f"{function}: window_size is {window!r}; it is (left, right), two integers, -1 where a side is open")


def _check_scores(function, q, softcap, alibi_slopes):
    """Error for a cap that caps nothing, and for slopes that are not one a head."""
    is_number = isinstance(softcap, (numbers.Real, torch.SymFloat))
    if softcap is not None and not (is_number and 0 <= softcap < float("inf")):
        raise errors.ArgumentError(f"{function}: softcap is {softcap!r}; it is a positive number, or 0.0 for none")
    if alibi_slopes is not None and not isinstance(alibi_slopes, torch.Tensor):
        raise errors.ArgumentError(f"{function}: alibi_slopes is {_arguments.words(alibi_slopes)}; it is a torch.Tensor")
    shape = None if alibi_slopes is None else tuple(alibi_slopes.shape)
    if shape is not None and q.dim() == 4 and shape not in ((q.shape[2],), (q.shape[0], q.shape[2])):
        raise errors.ArgumentError(f"{function}: alibi_slopes has the shape {shape}; it has a slope for each head of q, "
                                   f"{(q.shape[2],)} or {(q.shape[0], q.shape[2])}")


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


def descales_of(function, q, k, q_descale=None, k_descale=None, v_descale=None):
    """{"k_descale", "v_descale"}: what scores and V of each batch and K/V head are multiplied by, in float32; empty where nothing is.

    q_descale joins k_descale: it is a factor of the scores, too.
    """
    given = {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale}
    shape = (q.shape[0], k.shape[2])
    for name, value in given.items():
        if value is None:
            continue
        if k.dtype not in _arguments.BYTES:
            raise errors.Unsupported(f"{function}: {name}: it goes with k and v of float8; k is of {k.dtype}")
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32 or value.device != q.device or tuple(value.shape) != shape:
            raise errors.ArgumentError(f"{function}: {name} is {_arguments.words(value)}; it is float32 on {q.device}, of shape {shape}: a "
                                       "number for each batch and K/V head")
    if all(value is None for value in given.values()):
        return {}
    ones = torch.ones(shape, dtype=torch.float32, device=q.device)
    keys = ones if k_descale is None else k_descale
    return {"k_descale": keys if q_descale is None else keys * q_descale, "v_descale": ones if v_descale is None else v_descale}


def _attend_bytes(function, q, k, v, descales, *, scale, causal, window, softcap, dropout, alibi_slopes, lse, fallback):
    """attend() of k and v of float8: by the forms of specs/fp8.fa; what they lack PyTorch computes on a copy of 16 bits."""
    _check_window(function, window)
    is_causal, window = normalize(causal, window, q.shape[1], k.shape[1])
    is_plain = not softcap and not dropout and alibi_slopes is None
    if q.dtype == _fp8.E4M3:
        if is_plain and window == (-1, -1):
            return _fp8.attend(function, q, k, v, descales, scale=scale, causal=is_causal, lse=lse, fallback=fallback)
        _refuse(function, "a window, softcap, ALiBi or dropout with q of float8: no program has them", fallback)
        q = q.to(torch.bfloat16)
        k, v = _arguments.widened(q, k, v, **descales)
        return _by_torch.attention(q, k, v, scale=q.shape[-1] ** -0.5 if scale is None else scale, causal=is_causal, lse=lse, window=window,
                                   softcap=softcap, alibi_slopes=alibi_slopes, dropout=dropout)
    if is_plain and not descales and window == (-1, -1):
        return front.attend(function, q, k, v, scale, is_causal, lse=lse, fallback=fallback)
    if is_plain:
        form, args = ("scaled_causal" if is_causal else "scaled"), descales
        if window != (-1, -1):
            used = torch.full((q.shape[0],), k.shape[1], dtype=torch.int32, device=q.device)
            left, right = _bounds(is_causal, window)
            form, args = "scaled_used", {"used": used, "left": left, "right": right, **(descales or _ones(q, k))}
        result, reason = _by_lengths(function, q, k, v, form, args, scale=scale, lse=lse)
        if reason is None:
            return result
    else:
        reason = "softcap, ALiBi or dropout with k and v of float8: no form has this together"
    _refuse(function, reason, fallback)
    k, v = _arguments.widened(q, k, v, **descales)
    return _by_torch.attention(q, k, v, scale=q.shape[-1] ** -0.5 if scale is None else scale, causal=is_causal, lse=lse, window=window,
                               softcap=softcap, alibi_slopes=alibi_slopes, dropout=dropout)


def _ones(q, k):
    one = torch.ones((q.shape[0], k.shape[2]), dtype=torch.float32, device=q.device)
    return {"k_descale": one, "v_descale": one}


def attend(function, q, k, v, *, scale, causal, window=(-1, -1), softcap=0.0, dropout=0.0, alibi_slopes=None, lse=False,
           fallback="warn", descales=None):
    """O and LSE [batch, heads, seq_q]. descales: as descales_of() has them."""
    q, k, v = _arguments.cast(q, k, v)
    if isinstance(k, torch.Tensor) and k.dtype in _arguments.BYTES:
        return _attend_bytes(function, q, k, v, descales or {}, scale=None if scale is None else _arguments.scale_of(function, scale),
                             causal=causal, window=window, softcap=softcap, dropout=dropout, alibi_slopes=alibi_slopes, lse=lse,
                             fallback=fallback)
    scale = None if scale is None else _arguments.scale_of(function, scale)
    is_causal = causal
    _check_window(function, window)
    if softcap or alibi_slopes is not None:
        _check_scores(function, q, softcap, alibi_slopes)
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
    _refuse(function, f"{why}; sequences are computed one after the other", fallback)
    slopes = [alibi_slopes[i] if alibi_slopes is not None and alibi_slopes.dim() == 2 else alibi_slopes
              for i in range(len(parts))]
    return [attend(function, *part, alibi_slopes=one, fallback=fallback, **options) for part, one in zip(parts, slopes)]


def _bounds(causal, window):
    """How many keys before and after its place a row sees."""
    left, right = (_lengths.MOST if side is None or side < 0 else min(int(side), _lengths.MOST) for side in window)
    return left, 0 if causal else right


def _by_lengths(function, q, k, v, form, args, *, scale, lse, softcap=0.0, dropout=0.0, alibi_slopes=None):
    """(O, LSE) by one launch of a form that has the lengths, or why there is none."""
    if dropout:
        return None, f"dropout_p={dropout}: kernels have no dropout"
    if softcap or alibi_slopes is not None:
        return None, f"{_words(True, (-1, -1), softcap, alibi_slopes)}: no form has this together with lengths"
    reason = front.why_not_form(q, k, v, form, args, lse)
    if reason is None:
        try:
            return front.attend_form(function, q, k, v, form, args, scale=scale, lse=lse), None
        except errors.Unsupported as refused:
            reason = refused.reason
    return None, reason


def _numbers(function, why, *tensors):
    """The tensors' numbers, for what goes on one sequence after the other; it waits for the GPU."""
    if any(t.is_cuda for t in tensors) and torch.cuda.is_current_stream_capturing():
        raise errors.Unsupported(f"{function}: {why}; one sequence after the other is not computed while a graph is captured: "
                                 "their lengths are read then")
    return [t.tolist() for t in tensors]


def varlen(function, q, k, v, cu_seqlens_q, cu_seqlens_k, *, seqused_q=None, seqused_k=None, scale, causal, window, lse, fallback,
           **options):
    """O [total, heads, head_dim] and LSE [heads, total] of packed sequences; rows that no sequence uses are 0 and -inf."""
    q, k, v = _arguments.cast(q, k, v)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 3:
            raise errors.Error(f"{function}: {name} is {_arguments.words(tensor)}; it has 3 dimensions: [total, heads, head_dim]")
    if k.dtype in _arguments.BYTES:
        raise errors.Unsupported(f"{function}: k is of {k.dtype}; packed sequences are of float16 and bfloat16")
    starts_q = _lengths.integers(function, "cu_seqlens_q", cu_seqlens_q, (None,), q)
    starts_k = _lengths.integers(function, "cu_seqlens_k", cu_seqlens_k, (starts_q.shape[0],), q)
    if not starts_q.shape[0]:
        raise errors.Error(f"{function}: cu_seqlens_q is empty; it has the sequences' starts and the end of the last")
    used_q, used_k = (used if used is None else _lengths.integers(function, name, used, (starts_q.shape[0] - 1,), q)
                      for name, used in (("seqused_q", seqused_q), ("seqused_k", seqused_k)))
    if front.checks_now(q):
        for name, starts, used, total in (("q", starts_q, used_q, q.shape[0]), ("k", starts_k, used_k, k.shape[0])):
            _entries.check_offsets(function, f"cu_seqlens_{name}", starts, total)
            if used is not None:
                _entries.check_lengths(function, f"seqused_{name}", used, starts.diff().tolist(), "the sequence")
    _check_window(function, window)
    left, right = _bounds(causal, window)
    is_plain = left >= _lengths.MOST and right in (0, _lengths.MOST) and options.get("alibi_slopes") is None and not options.get("softcap") and not options.get("dropout")
    if is_plain and _ragged.why_not(q, k, v, starts_q.shape[0] - 1, right == 0) is None:
        scale = None if scale is None else _arguments.scale_of(function, scale)
        keys, = _lengths.segments((starts_k,), (used_k,), (k.shape[0],))
        o, sums = _ragged.attend(function, q, k, v.masked_fill(keys.unused()[:, None, None], 0), (starts_q, starts_k), (used_q, used_k),
                                 scale=scale, causal=right == 0)
        return o, sums if lse else None
    queries, keys = _lengths.segments((starts_q, starts_k), (used_q, used_k), (q.shape[0], k.shape[0]))
    first, last = _lengths.visible_keys(queries, keys, left, right)
    # No row sees the keys of others, but 0 times what they hold is added where they share a tile: NaN, if that is NaN.
    clean = v if torch.is_grad_enabled() and v.requires_grad else v.masked_fill(keys.unused()[:, None, None], 0)
    result, why = _by_lengths(function, q[None], k[None], clean[None], "rows", {"first": first, "last": last}, scale=scale, lse=lse,
                              **options)
    if why is None:
        return result[0][0], result[1][0] if lse else None
    why = f"cu_seqlens: {why}"
    if fallback == "error":  # before offsets are read
        _refuse(function, why, fallback)
    spans = list(zip(*_numbers(function, why, *queries.spans(), *keys.spans())))
    parts = [(q[None, a:b], k[None, c:d], v[None, c:d]) for a, b, c, d in spans]
    results = attend_each(function, why, parts, scale=scale, causal=causal, window=window, lse=lse, fallback=fallback, **options)
    o = q.new_zeros((*q.shape[:2], v.shape[2]))
    sums = torch.full((q.shape[1], q.shape[0]), -torch.inf, dtype=torch.float32, device=q.device) if lse else None
    for (begin, end, *_), (one, its) in zip(spans, results):
        o[begin:end] = one[0]
        if lse:
            sums[:, begin:end] = its[0]
    return o, sums


def kvcache(function, q, k_cache, v_cache, k, v, cache_seqlens, *, batch_idx=None, leftpad=None, table=None, scale, causal, window, lse,
            fallback, descales=None, **options):
    """O and LSE with the cache's first keys, after which k and v are put first where they are given.

    cache_seqlens: None, a number, or one for each batch; table: the pages of each batch.
    """
    options = {"scale": None if scale is None else _arguments.scale_of(function, scale), "lse": lse, **options}
    batch, kind = q.shape[0], k_cache.dtype
    has_bytes = kind in _arguments.BYTES
    if has_bytes:
        options["descales"] = descales or {}
        if k is not None and (k.dtype != kind or v.dtype != kind):
            raise errors.ArgumentError(f"{function}: k is of {k.dtype}, v of {v.dtype} and the cache of {kind}; quantise what is put there")
    place = _cache_of(function, q, k_cache, batch_idx, table)
    size = place.capacity
    count = 0 if k is None else k.shape[1]
    if front.checks_now(q) and cache_seqlens is not None:
        held = _lengths_of(function, cache_seqlens, q)
        _entries.check_lengths(function, "cache_seqlens", held, size - count, "the cache, less new keys,")
        if table is not None:
            _entries.check_table(function, "the page table", place.table, held + count, place.rows, place.blocks)
    if k is not None:
        if cache_seqlens is None:
            raise errors.Error(f"{function}: k is given and cache_seqlens is not; it says after which keys they are put")
        place.append(*([_as_words(t) for t in two] for two in ((k_cache, v_cache), (k, v))), _lengths_of(function, cache_seqlens, q))
    if table is not None or batch_idx is not None or leftpad is not None:
        used = _lengths_of(function, size if cache_seqlens is None else cache_seqlens, q)
        why = "cache_leftpad: kernels have none" if leftpad is not None else _paged.why_not(q, k_cache, v_cache, place, **options)
        if why is None:
            _check_window(function, window)
            used = _held(used, size, count) if count or batch_idx is not None else used
            return _paged.attend(function, q, k_cache, v_cache, place, used, _bounds(causal, window), scale=options["scale"], lse=lse,
                                 by_batch=batch_idx is not None)
        _refuse(function, f"{why}; the keys are copied together", fallback)
        skipped = torch.zeros_like(used) if leftpad is None else _lengths.integers(function, "cache_leftpad", leftpad, (batch,), q)
        skipped = skipped.clamp(0, size)
        used = (_held(used, size, count) - skipped).clamp(min=0)
        if batch_idx is not None:
            used = used * ((place.table[:, 0] >= 0) & (place.table[:, 0] < place.blocks))
        k_cache, v_cache = (t.view(kind) for t in place.gather([_as_words(t) for t in (k_cache, v_cache)], skipped, used))
    else:
        k_cache, v_cache = k_cache[:batch], v_cache[:batch]
        if cache_seqlens is None or isinstance(cache_seqlens, int):
            end = size if cache_seqlens is None else min(min(max(cache_seqlens, 0), size) + count, size)
            return attend(function, q, k_cache[:, :end], v_cache[:, :end], causal=causal, window=window, fallback=fallback, **options)
        used = _held(_lengths_of(function, cache_seqlens, q), size, count)
    _check_window(function, window)
    left, right = _bounds(causal, window)
    args = {"used": used.int(), "left": left, "right": right}
    if has_bytes:
        args.update(options.pop("descales") or _ones(q, k_cache))
    result, why = _by_lengths(function, q, k_cache, v_cache, "scaled_used" if has_bytes else "used", args, **options)
    if why is None:
        return result
    if has_bytes:  # as what they are, in 16 bits
        _refuse(function, f"k and v of float8: {why}", fallback)
        k_cache, v_cache = _arguments.widened(q, k_cache, v_cache, args["k_descale"], args["v_descale"])
        return kvcache(function, q, k_cache, v_cache, None, None, used, causal=causal, window=window, fallback=fallback, **options)
    why = f"cache_seqlens: {why}"
    ends, = _numbers(function, why, used)
    if len(set(ends)) <= 1:  # of one length after all
        end = ends[0] if ends else 0
        return attend(function, q, k_cache[:, :end], v_cache[:, :end], causal=causal, window=window, fallback=fallback, **options)
    parts = [(q[i:i + 1], k_cache[i:i + 1, :n], v_cache[i:i + 1, :n]) for i, n in enumerate(ends)]
    results = attend_each(function, why, parts, causal=causal, window=window, fallback=fallback, **options)
    return torch.cat([o for o, _ in results]), torch.cat([sums for _, sums in results]) if lse else None


def _as_words(t):
    """What indices and masks take; float8 as bytes."""
    return t.view(torch.uint8) if t.dtype in _arguments.BYTES else t


def _held(lengths, size, count):
    """Lengths after which `count` rows were put, within a cache of `size` rows."""
    lengths = lengths.clamp(0, size)
    return (lengths + count).clamp(max=size) if count else lengths


def _lengths_of(function, value, q):
    """cache_seqlens as a tensor, one for each batch."""
    if isinstance(value, int):
        return torch.full((q.shape[0],), value, dtype=torch.int64, device=q.device)
    return _lengths.integers(function, "cache_seqlens", value, (q.shape[0],), q)


def _cache_of(function, q, k_cache, batch_idx, table):
    """Where each batch's keys lie."""
    batch = q.shape[0]
    if table is not None and batch_idx is not None:
        raise errors.Error(f"{function}: cache_batch_idx and a page table are given; the table says where a batch's keys are")
    if table is not None:
        blocks = _lengths.integers(function, "the page table", table, (batch, None), q)
    elif batch_idx is not None:
        blocks = _lengths.integers(function, "cache_batch_idx", batch_idx, (batch,), q)[:, None]
    elif k_cache.shape[0] < batch:
        raise errors.Error(f"{function}: k_cache has {k_cache.shape[0]} batches, and q {batch}; it has as many, or more")
    else:
        blocks = None
    return _lengths.Cache(blocks, *k_cache.shape[:2])
