# fagen: what serving engines call attention with: packed queries over keys in pages.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plan() says once a step which rows are whose; Plan.run() computes a layer; append() puts new keys into a cache; merge() joins results
over parts of the keys; check() says which entry of offsets, lengths or a table is wrong.

Tensors: q is [tokens, heads, head_dim], caches are [pages, page_size, kv_heads, head_dim] with any strides whose rows begin at multiples of
16 bytes. Nothing but check() waits for the GPU, and all but it may be captured into a graph, which then reads offsets, lengths and tables as
they are when it runs. What these hold leads outside of no tensor.
"""
import numbers

import torch

from . import _arguments, _entries, _flash, _groups, _lengths, _paged, _stats, errors
from . import torch as front

MOST_KEYS = 1 << 28  # that are copied together


def _whole(function, name, value, least):
    """A whole number, of Python or NumPy, as Python's; Error for another."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise errors.ArgumentError(f"{function}: {name} is {_arguments.words(value)}; it is a whole number, {least} or more")
    return int(value)


def _is_captured(tensor):
    """Whether what is done with it now is captured into a graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


class Plan:
    """Which rows of q and which keys belong together, for all layers of a step. Made by plan()."""

    def __init__(self, starts, lengths, table, *, tokens, most_rows, page_size, most_keys, causal, invariant):
        self._tensors = starts, lengths, table
        self._tokens, self._most_rows, self._page_size, self._most_keys = tokens, most_rows, page_size, most_keys
        self._is_causal, self._is_invariant = causal, invariant
        self._is_captured = _is_captured(lengths)
        self._ways, self._refused = {}, set()  # by name; layers that no kernel of copied keys takes in one launch
        if self._wants_tiles() and self._way(_groups.Tiles) is not None:
            return
        if starts is not None:
            self._way(_groups.Groups if most_keys is None else _groups.Keys)

    def _wants_tiles(self):
        """Whether rows may be computed in tiles by programs of packed rows: always where bits depend on a row alone, for all are of one kernel then."""
        return self._is_invariant or (self._tensors[0] is not None and self._most_keys is None and self._most_rows > 1)

    def __repr__(self):
        kinds = [name for name, is_so in (("causal", self._is_causal), ("invariant", self._is_invariant)) if is_so]
        return (f"<fagen.serving plan of {len(self._tensors[1])} sequences, {self._tokens} rows, at most {self._most_rows} each, pages of {self._page_size}: "
                f"{', '.join([*kinds, 'over pages' if self._most_keys is None else 'over copies of the keys'])}>")

    def _way(self, kind):
        """Groups of rows, or where keys lie, made when they are first asked for. Unsupported where that is in a graph and the plan is older:
        the graph alone would fill them, with what this plan then holds."""
        if kind not in self._ways:
            starts, lengths, table = self._tensors
            if _is_captured(lengths) and not self._is_captured:
                raise errors.Unsupported("run: no kernel of copied keys takes this layer, and what kernels of pages need would be made in the graph that is "
                                         "being captured; run the layer once before, or make the plan without most_keys")
            if kind is _groups.Keys:
                made = _groups.of_keys(starts, lengths, table, self._page_size, self._tokens, self._most_keys)
            elif kind is _groups.Tiles:
                made = _paged.tiles(self._starts(), lengths, table, self._page_size, self._tokens)
            elif starts is None:
                made = _groups.uniform(lengths, table, self._tokens)
            else:
                # a group's keys end some before its sequence's: what has no place in the table is left out before
                lengths = lengths.clamp(max=table.shape[1] * self._page_size)
                made = _groups.of_rows(starts, lengths, table, self._tokens, self._most_rows, self._is_causal)
            self._ways[kind] = made
        return self._ways[kind]

    def _starts(self):
        """query_starts, made where all sequences have as many rows."""
        starts, lengths, _ = self._tensors
        if starts is not None:
            return starts
        rows = self._tokens // len(lengths)
        return torch.arange(len(lengths) + 1, dtype=torch.int32, device=lengths.device) * rows

    @property
    def tokens(self):
        """Rows of q."""
        return self._tokens

    def _shapes(self):
        return [None if t is None else t.shape for t in self._tensors], self._tokens, self._most_rows, self._page_size, self._most_keys, self._is_causal, self._is_invariant

    def rewrite(self, other):
        """Takes over what another plan holds, in place: graphs that captured this one run with the other's sequences. Without query_starts
        that is written into the lengths and the table that this one was made of. Error where shapes differ."""
        if self._shapes() != other._shapes():
            raise errors.Error(f"rewrite: {other!r} differs in its shapes from {self!r}; make a new plan, and capture anew")
        for kind, made in self._ways.items():
            if made is not None:
                _groups.rewrite(made, other._way(kind))
        self._tensors = other._tensors  # what is made from now on

    def run(self, q, k_cache, v_cache, *, scale=None, window_left=-1, softcap=0.0, alibi_slopes=None, out=None, return_lse=False,
            fallback="error"):
        """O [tokens, heads, head_dim], and LSE [tokens, heads] in nats, float32, if return_lse.

        window_left: how many keys before its own place a row sees, -1 all. softcap and alibi_slopes [heads] as in flash-attn. out: where O
        is put. Rows that no sequence has are 0, and -inf as LSE. fallback, for what no kernel of pages computes: "error" raises
        Unsupported, "warn" and "torch" let other kernels or PyTorch compute on copied keys, counted in stats().
        """
        self._check(q, k_cache, v_cache, alibi_slopes, out, fallback)
        window_left = _whole("run", "window_left", window_left, -1)
        options = {"scale": None if scale is None else _arguments.scale_of("run", scale), "softcap": softcap, "alibi_slopes": alibi_slopes}
        if q.shape[0]:
            o, lse = self._compute(q, k_cache, v_cache, window_left, return_lse, fallback, options)
        else:
            o, lse = torch.empty_like(q), q.new_empty(q.shape[:2], dtype=torch.float32)
        o = o if out is None else out.copy_(o)
        return (o, lse) if return_lse else o

    def _check(self, q, k_cache, v_cache, alibi_slopes, out, fallback):
        if fallback not in _stats.FALLBACKS:
            raise errors.Error(f'run: fallback is {fallback!r}; it is "error", "warn" or "torch"')
        for name, tensor, dims in (("q", q, 3), ("k_cache", k_cache, 4), ("v_cache", v_cache, 4)):
            if not isinstance(tensor, torch.Tensor) or tensor.dim() != dims:
                wanted = "[tokens, heads, head_dim]" if dims == 3 else "[pages, page_size, kv_heads, head_dim]"
                raise errors.Error(f"run: {name} is {_arguments.words(tensor)}; it is a tensor {wanted}")
        if q.shape[0] != self._tokens:
            raise errors.Error(f"run: q has {q.shape[0]} rows; the plan is of {self._tokens}")
        for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
            if cache.shape[1] != self._page_size:
                raise errors.Error(f"run: {name} has pages of {cache.shape[1]} keys; the plan is of {self._page_size}")
        if v_cache.shape[:3] != k_cache.shape[:3]:
            raise errors.Error(f"run: v_cache has {list(v_cache.shape)}, k_cache {list(k_cache.shape)}; they have as many pages and heads")
        if alibi_slopes is not None and not isinstance(alibi_slopes, torch.Tensor):
            raise errors.Error(f"run: alibi_slopes is {_arguments.words(alibi_slopes)}; it is a tensor of a slope for each head")
        if out is not None and isinstance(out, torch.Tensor) and out.requires_grad:
            raise errors.Error("run: out wants a gradient, and what is put there has none; give a detached tensor")
        if out is not None and (not isinstance(out, torch.Tensor) or out.shape != (*q.shape[:2], v_cache.shape[3]) or out.dtype != q.dtype):
            raise errors.Error(f"run: out is {_arguments.words(out)}; it is {q.dtype} {[*q.shape[:2], v_cache.shape[3]]}")
        if self._tensors[2] is not None and front.checks_now(q):
            _entries.check_table("run", "table", self._tensors[2], self._tensors[1], self._page_size, k_cache.shape[0])

    def _compute(self, q, k_cache, v_cache, left, lse, fallback, options):
        """Over copies of the keys where that is one launch, else over pages where kernels do it, else as the fallback may."""
        over_copies = self._most_keys is not None
        kind = q.dtype, q.shape[1:], k_cache.shape[2:], left >= 0, bool(options["softcap"]), options["alibi_slopes"] is not None
        if over_copies and kind not in self._refused:
            try:
                return self._over_copies(q, k_cache, v_cache, left, lse, "error", options)
            except errors.Unsupported:
                self._refused.add(kind)
        found, why = self._over_pages(q, k_cache, v_cache, left, lse, options)
        if why is None:
            return found
        if self._is_invariant:
            raise errors.Unsupported(f"serving: {why}; with invariant=True nothing else computes it")
        if over_copies:
            return self._over_copies(q, k_cache, v_cache, left, lse, fallback, options)
        if self._cuts(left, options["alibi_slopes"]):
            raise errors.Unsupported(f"run: {why}")
        groups = self._way(_groups.Groups)
        o, sums = _flash.kvcache("serving", self._grouped(groups, q), k_cache, v_cache, None, None, groups.used, table=groups.table, causal=self._is_causal,
                                 window=(left, -1), lse=lse, fallback=fallback, **options)
        return self._apart(groups, o, sums)

    def _over_pages(self, q, k_cache, v_cache, left, lse, options):
        """((O, LSE), None), or (None, why not)."""
        if self._wants_tiles():
            found, why = self._over_tiles(q, k_cache, v_cache, left, lse, options)
            if why is None or self._is_invariant:  # other kernels have other bits
                return found, why
        if self._cuts(left, options["alibi_slopes"]):
            said = f"window_left is {left}" if left >= 0 else "alibi_slopes are given"
            return None, (f"{said}, without a causal mask, and sequences have up to {self._most_rows} rows; plans that are causal take "
                          f"it, and others with up to {_groups.MOST_ROWS} rows, or with most_keys")
        groups = self._way(_groups.Groups)
        rows, place = self._grouped(groups, q), _lengths.Cache(groups.table, *k_cache.shape[:2])
        why = _paged.why_not(rows, k_cache, v_cache, place, invariant=self._is_invariant, **options)
        if why is not None:
            return None, why
        o, sums = _paged.attend("serving", rows, k_cache, v_cache, place, groups.used, _flash._bounds(self._is_causal, (left, -1)), scale=options["scale"],
                                lse=lse, by_batch=False, invariant=self._is_invariant)
        return self._apart(groups, o, sums), None

    def _over_tiles(self, q, k_cache, v_cache, left, lse, options):
        """((O, LSE), None) by programs of packed rows, or (None, why not)."""
        tiles, table = self._way(_groups.Tiles), self._tensors[2]
        why = _paged.why_not(q[:, None], k_cache, v_cache, _lengths.Cache(table, *k_cache.shape[:2]), invariant=self._is_invariant, most_batch=self._tokens, **options)
        if why is None and tiles is None:
            why = f"pages: a table of {list(table.shape)} pages of {self._page_size} keys, and {self._tokens} rows, are more than programs count"
        if why is not None:
            return None, why
        return _paged.attend_rows("serving", q, k_cache, v_cache, tiles, _flash._bounds(self._is_causal, (left, -1)), scale=options["scale"], lse=lse,
                                  invariant=self._is_invariant), None

    def _cuts(self, left, slopes):
        """Whether groups of rows would be at the wrong places: all see the last key, and only the last stands there."""
        return (left >= 0 or slopes is not None) and not self._is_causal and self._most_rows > _groups.MOST_ROWS

    def _grouped(self, groups, q):
        return q.unflatten(0, (-1, groups.rows)) if groups.token is None else q[groups.token]

    def _apart(self, groups, o, sums):
        """O and LSE of q's rows, of those of groups."""
        o, sums = o.flatten(0, 1), None if sums is None else sums.transpose(1, 2).flatten(0, 1)
        if groups.token is None:
            return o, sums
        o = o[groups.place].masked_fill(groups.unused[:, None, None], 0)
        return o, None if sums is None else sums[groups.place].masked_fill(groups.unused[:, None], -torch.inf)

    def _over_copies(self, q, k_cache, v_cache, left, lse, fallback, options):
        keys = self._way(_groups.Keys)
        k, v = _groups.gathered((k_cache, v_cache), keys)
        o, sums = _flash.varlen("serving", q, k, v, keys.starts_q, keys.starts, causal=self._is_causal, window=(left, -1), lse=lse,
                                fallback=fallback, **options)
        return o, sums.t() if lse else None


def plan(query_starts, lengths, table, *, page_size, tokens, most_rows, most_keys=None, causal=True, invariant=False):
    """A Plan of packed sequences whose keys are in pages.

    query_starts: int32 or int64 [sequences + 1], the rows of q where each begins and the last ends; None: all have tokens / sequences rows.
    lengths: [sequences], the keys of each, those of its rows of q included. table: [sequences, columns], its pages in order; entries beyond
    a length are not read. page_size: keys of a page. tokens: rows of q. most_rows: of a sequence, at most. causal: the last row of a
    sequence stands at its last key, and sees no key after its place.

    Up to 16 rows of a sequence, and where most_keys is None any number, are computed over the pages, in one launch for all sequences. Of more
    rows, with most_keys, the keys of all sequences are copied together before, up to so many: that is faster where rows are many.
    A length beyond what its row of the table has columns for counts as that. Keys beyond most_keys are left out, the last ones first: `check` says so.
    invariant: the bits of a row depend on nothing but the row, its keys and its place: not on other sequences, other rows of q, pages or plans.
    A part of 512 keys is then a CTA's, and up to 131072 keys a sequence; rows are always computed over the pages. Raises errors.Error
    for arguments of other kinds, types or shapes.
    """
    batch = lengths.shape[0] if isinstance(lengths, torch.Tensor) and lengths.dim() == 1 else None
    if batch == 0:
        raise errors.Error("plan: lengths is empty; a plan has a sequence or more")
    like = lengths if isinstance(lengths, torch.Tensor) else table
    lengths = _lengths.integers("plan", "lengths", lengths, (batch,), like)
    table = _lengths.integers("plan", "table", table, (batch, None), like)
    page_size, tokens, most_rows = (_whole("plan", name, value, least) for name, value, least in (
        ("page_size", page_size, 1), ("tokens", tokens, 0), ("most_rows", most_rows, 0)))
    if query_starts is None:
        if tokens % batch or tokens // batch > _groups.MOST_ROWS:
            raise errors.Error(f"plan: tokens is {tokens} of {batch} sequences without query_starts; each has as many rows, up to {_groups.MOST_ROWS}")
        if tokens // batch > most_rows:
            raise errors.Error(f"plan: most_rows is {most_rows}; without query_starts each of {batch} sequences has {tokens // batch} rows of {tokens}")
    else:
        query_starts = _lengths.integers("plan", "query_starts", query_starts, (batch + 1,), like)
    if front.checks_now(lengths):
        check(query_starts, lengths, table, page_size=page_size, tokens=tokens, most_rows=most_rows, most_keys=most_keys)
    if most_keys is not None and _whole("plan", "most_keys", most_keys, 0) > MOST_KEYS:
        raise errors.Error(f"plan: most_keys is {most_keys}; up to {MOST_KEYS} keys are copied together")
    if query_starts is None or most_rows <= _groups.MOST_ROWS or invariant or not table.shape[1]:
        most_keys = None
    return Plan(query_starts, lengths, table, tokens=tokens, most_rows=most_rows, page_size=page_size, most_keys=most_keys, causal=bool(causal),
                invariant=bool(invariant))


def packed(q, k, v, query_starts, key_starts, *, scale=None, causal=True, window_left=-1, softcap=0.0, alibi_slopes=None, return_lse=False, fallback="error"):
    """Packed rows over packed keys: O [tokens, heads, head_dim], and LSE [tokens, heads] in nats if return_lse. q is [tokens, heads, head_dim], k and
    v are [keys, kv_heads, head_dim]; query_starts and key_starts [sequences + 1] say where those of each begin. The rest as in Plan.run."""
    o, lse = _flash.varlen("packed", q, k, v, query_starts, key_starts, scale=scale, causal=causal, window=(window_left, -1), softcap=softcap,
                           alibi_slopes=alibi_slopes, lse=return_lse, fallback=fallback)
    return (o, lse.t()) if return_lse else o


def append(k, v, k_cache, v_cache, slots):
    """Puts new keys and values [tokens, kv_heads, head_dim] into the caches. slots: int32 or int64 [tokens or fewer]: page * page_size + the
    place in the page; a slot below 0 or beyond the cache takes nothing. Of two equal slots it is not said which key is kept."""
    slots = _lengths.integers("append", "slots", slots, (None,), k_cache)
    for name, new, cache in (("k", k, k_cache), ("v", v, v_cache)):
        if not isinstance(new, torch.Tensor) or not isinstance(cache, torch.Tensor):
            raise errors.Error(f"append: {name} is {_arguments.words(new)}, its cache {_arguments.words(cache)}; both are tensors")
        if new.dim() != 3 or cache.dim() != 4 or new.shape[1:] != cache.shape[2:] or cache.shape[:2] != k_cache.shape[:2] or len(new) < len(slots):
            raise errors.Error(f"append: {name} is {list(new.shape)}, its cache {list(cache.shape)}, of {len(slots)} slots; they are [tokens, kv_heads, head_dim], one for "
                               "each slot or more, and [pages, page_size, kv_heads, head_dim], as many pages of keys as of values")
    pages, page_size = k_cache.shape[:2]
    if front.checks_now(slots):
        _entries.check_slots("append", "slots", slots, pages * page_size)
    if not slots.shape[0] or not k_cache.numel():
        return
    slots = slots.long()
    exists = (slots >= 0) & (slots < pages * page_size)
    held = slots.clamp(0, pages * page_size - 1)
    _lengths.put((k_cache, v_cache), (k[:len(slots)], v[:len(slots)]), held // page_size, held % page_size, exists)


def merge(outputs, sums, dtype=None):
    """O and LSE over all keys, of results over parts of them: outputs [parts, ..., head_dim] and sums [parts, ...], LSE in nats. A part whose
    LSE is -inf counts nothing; where all are, O is 0 and LSE -inf. dtype: of O; None: that of outputs."""
    for name, value, dims in (("outputs", outputs, None), ("sums", sums, getattr(outputs, "shape", ())[:-1])):
        if not isinstance(value, torch.Tensor) or not value.dim() or (dims is not None and value.shape != dims):
            raise errors.Error(f"merge: {name} is {_arguments.words(value)}{f' {list(value.shape)}' if isinstance(value, torch.Tensor) else ''}; outputs are "
                               "[parts, ..., head_dim], and sums [parts, ...]")
    top = sums.amax(0)
    weights = torch.exp(sums - top.masked_fill(top == -torch.inf, 0))
    total = weights.sum(0)
    weights = weights / total.masked_fill(total == 0, 1)
    o = torch.where(weights[..., None] > 0, outputs.float() * weights[..., None], 0).sum(0)
    return o.to(outputs.dtype if dtype is None else dtype), top.masked_fill(top == -torch.inf, 0) + torch.log(total)


def check(query_starts, lengths, table, *, page_size, tokens=None, pages=None, most_rows=None, most_keys=None):
    """Raises errors.Error for the first entry that is wrong, with its name, place and value: an offset less than that before it or beyond
    `tokens` rows; a length below 0 or more than the table has columns for; of the entries that lengths make use of, a page that is not
    among `pages`; a sequence of more than `most_rows` rows, and lengths that are more than `most_keys` together. It waits for the GPU. With
    fagen.torch.enable_checks(), or FAGEN_CHECKS=1, plan() and append() do it, too."""
    if query_starts is not None:
        _entries.check_offsets("check", "query_starts", query_starts, query_starts.shape[0] and (int(query_starts.max()) if tokens is None else tokens))
        if most_rows is not None:
            _entries.check_rows("check", "query_starts", query_starts, most_rows)
    _entries.check_lengths("check", "lengths", lengths, table.shape[1] * page_size, f"a row of the table, {table.shape[1]} pages of {page_size} keys,")
    if most_keys is not None and int(lengths.sum()) > most_keys:
        raise errors.Error(f"check: lengths are {int(lengths.sum())} keys together; most_keys is {most_keys}, and those beyond it would be left out")
    _entries.check_table("check", "table", table, lengths, page_size, (1 << 31) if pages is None else pages)
