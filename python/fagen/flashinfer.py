# fagen: FlashInfer's wrappers of attention over pages and over packed sequences, with their names, arguments and layouts.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`from fagen.flashinfer import BatchDecodeWithPagedKVCacheWrapper` in place of flashinfer's (names as of 0.6.18).

plan() says which rows and pages belong together, run() computes a layer. run() waits for nothing and may be captured into a graph; with
use_cuda_graph=True a later plan() of the same sizes is what the graph then computes. plan() reads indptr, which waits where it is on a GPU: give
it on the CPU, or use_cuda_graph=True, and nothing waits. Workspaces are taken and not used: kernels have their own.

LSE is as FlashInfer's: of base 2, [tokens, heads], float32. Causal masks are bottom-right. What neither kernels nor the fallback compute, as
custom masks, rotary embeddings, sinks and scales of float8, raises Unsupported; `fagen.flashinfer.fallback` is "warn", "torch" or "error".

Graphs: the first plan() with use_cuda_graph=True says how many rows and columns of tables there are; later ones have as many or fewer. Tables have
columns for max_sequence_kv keys where that is given, to plan() or as the wrapper's attribute, else for as many pages as the buffer of indices has.
"""
import functools
import inspect
import math
import numbers

import torch

from . import _arguments, _flash, _groups, _indptr, errors, serving

fallback = "warn"
_BACKENDS = ("auto", "fa2", "fa3")
_LN2 = math.log(2.0)


def _refuse(function, **given):
    """Unsupported for the first argument that asks for something."""
    for name, value in given.items():
        if value is not None and value is not False and not (isinstance(value, (int, float)) and value == 0) and value != "NONE":
            raise errors.Unsupported(f"{function}: {name} is {_arguments.words(value)}: neither fagen nor its fallback computes it")


def _refuse_encoding(function, mode):
    """Unsupported for rotary embeddings and ALiBi. What rope_scale and rope_theta are counts only with the former."""
    _refuse(function, pos_encoding_mode=mode)


def _check_layout(function, layout):
    if layout not in ("NHD", "HND"):
        raise errors.ArgumentError(f'{function}: kv_layout is {layout!r}; it is "NHD" or "HND"')
    return layout


def _product(function, *factors):
    """Of scales that are numbers, None for 1."""
    for factor in factors:
        if factor is not None and (isinstance(factor, bool) or not isinstance(factor, numbers.Real)):
            raise errors.Unsupported(f"{function}: a scale is {_arguments.words(factor)}; it is a number of Python or NumPy")
    return math.prod(factor for factor in factors if factor is not None)


def _finish(function, o, lse, v_scale, out, lse_out, return_lse):
    """O and LSE as a caller wants them."""
    for name, given, made in (("out", out, o), ("lse", lse_out if return_lse else None, lse)):
        if given is not None and (not isinstance(given, torch.Tensor) or given.shape != made.shape):
            raise errors.ArgumentError(f"{function}: {name} is {_arguments.words(given)}; it is a tensor {list(made.shape)}")
    if v_scale is not None:
        o = (o.float() * _product(function, v_scale)).to(o.dtype)
    o = o if out is None else out.copy_(o)
    if not return_lse:
        return o
    lse = lse / _LN2
    return o, lse if lse_out is None else lse_out.copy_(lse)


def _by_position(plan):
    """Takes arguments that go by name by position, too, in their order: FlashInfer does, and calls it deprecated."""
    kinds = inspect.signature(plan).parameters.values()
    first = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]
    rest = [p.name for p in kinds if p.kind is p.KEYWORD_ONLY]

    @functools.wraps(plan)
    def call(*args, **named):
        more = dict(zip(rest, args[len(first):]))
        twice = [name for name in more if name in named]
        if twice or len(args) > len(first) + len(rest):
            raise errors.ArgumentError(f"{plan.__qualname__}: {twice[0]} is given by position and by name" if twice else
                                       f"{plan.__qualname__}: {len(args) - 1} arguments are given; it takes {len(first) + len(rest) - 1}")
        return plan(*args[:len(first)], **more, **named)

    return call


class _Wrapper:
    """What the wrappers have in common."""

    _buffers = ()  # what use_cuda_graph=True wants
    max_sequence_kv = None  # keys of a sequence at most, for tables of graphs; to be set before plan()

    def __init__(self, float_workspace_buffer, kv_layout, use_cuda_graph, backend, jit, buffers):
        name = type(self).__name__
        _refuse(name, **jit)
        if backend not in _BACKENDS:
            raise errors.ArgumentError(f"{name}: backend is {backend!r}; it is {', '.join(_BACKENDS)}: a hint that kernels do not need")
        if not isinstance(float_workspace_buffer, torch.Tensor):
            raise errors.ArgumentError(f"{name}: float_workspace_buffer is {_arguments.words(float_workspace_buffer)}; it is a tensor")
        for buffer, value in buffers.items():
            if use_cuda_graph and not isinstance(value, torch.Tensor):
                raise errors.ArgumentError(f"{name}: {buffer} is {_arguments.words(value)}; with use_cuda_graph=True it is a tensor")
        self._kv_layout, self._is_graph = _check_layout(name, kv_layout), bool(use_cuda_graph)
        self.device, self._buffers, self._plan, self._options = float_workspace_buffer.device, buffers, None, {}

    @property
    def is_cuda_graph_enabled(self):
        """Whether use_cuda_graph was given."""
        return self._is_graph

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer):
        """Kernels have their own workspaces: only the device counts."""
        self.device = float_workspace_buffer.device

    def end_forward(self):
        """Of no effect, as in FlashInfer."""

    def _keep(self, plan, options):
        if self._is_graph and self._plan is not None:
            self._plan.rewrite(plan)
        else:
            self._plan = plan
        self._options = options

    def _write(self, *tables):
        """What graphs read of the caller's own buffers, as in FlashInfer."""
        if not self._is_graph:
            return
        for (name, buffer), table in zip(self._buffers.items(), tables):
            if len(table) > len(buffer):
                raise errors.Error(f"{type(self).__name__}: {name} has {len(buffer)} elements, and plan() is given {len(table)}; make the buffer as large")
            buffer[:len(table)].copy_(table)

    def _planned(self):
        if self._plan is None:
            raise errors.Error(f"{type(self).__name__}: run() is called before plan()")
        return self._plan

    def _sizes(self, q, num_qo_heads, head_dim):
        if not isinstance(q, torch.Tensor):
            raise errors.ArgumentError(f"{type(self).__name__}: q is {_arguments.words(q)}; it is a tensor [tokens, heads, head_dim]")
        if tuple(q.shape[1:]) != (num_qo_heads, head_dim):
            raise errors.Error(f"{type(self).__name__}: q has {list(q.shape)}; the plan is of {num_qo_heads} heads of {head_dim} columns")

    def _columns(self, indptr, indices, buffer, page_size, stated=None):
        """Columns of a table: the most pages of a sequence. Of a graph what is stated, else what its buffer of indices could hold: the host
        need not know more, and later plans have as many."""
        name = type(self).__name__
        if not self._is_graph:
            return max(1, _indptr.longest(_indptr.on_host(name, "indptr", indptr)))
        if indices.shape[0] > buffer.shape[0]:
            raise errors.Error(f"{name}: indices has {indices.shape[0]} pages; the buffer that use_cuda_graph=True was given has {buffer.shape[0]}")
        stated = self.max_sequence_kv if stated is None else stated
        if stated is not None and (not isinstance(stated, numbers.Integral) or stated < 1):
            raise errors.ArgumentError(f"{name}: max_sequence_kv is {_arguments.words(stated)}; it is a whole number, 1 or more, or None")
        columns = max(1, buffer.shape[0] if stated is None else min(buffer.shape[0], -(-stated // page_size)))
        if stated is not None and not indptr.is_cuda and _indptr.longest(indptr.tolist()) > columns:
            raise errors.Error(f"{name}: a sequence has {_indptr.longest(indptr.tolist())} pages of {page_size} keys; max_sequence_kv is {stated}, which "
                               f"{columns} pages hold")
        return columns

    def _rows(self, tokens):
        """Rows of q: a graph has as many as its first plan, of which later ones may use fewer."""
        if not self._is_graph or self._plan is None:
            return tokens
        if tokens > self._plan.tokens:
            raise errors.Error(f"{type(self).__name__}: qo_indptr ends at {tokens}; the first plan with use_cuda_graph=True was of {self._plan.tokens} rows, and "
                               "later ones have as many or fewer")
        return self._plan.tokens

    def _run_pages(self, q, paged_kv_cache, q_scale, k_scale, v_scale, out, lse, return_lse, window_left):
        name, options = type(self).__name__, self._options
        plan = self._planned()
        self._sizes(q, *options["sizes"])
        scale = _product(name, options["sm_scale"], q_scale, k_scale)
        window = options["window_left"] if window_left is None else window_left
        rows = len(q)
        if self._is_graph and rows < plan.tokens:  # rows that no sequence has
            q = torch.cat([q, q.new_zeros(plan.tokens - rows, *q.shape[1:])])
        o = plan.run(q, *_indptr.caches(name, paged_kv_cache, self._kv_layout), scale=scale, window_left=window, softcap=options["softcap"],
                     return_lse=return_lse, fallback=fallback)
        o, sums = (one[:rows] for one in o) if return_lse else (o[:rows], None)
        return _finish(name, o, sums, v_scale, out, lse, return_lse)


def _options(sm_scale, head_dim, window_left, logits_soft_cap, num_qo_heads):
    return {"sm_scale": head_dim ** -0.5 if sm_scale is None else sm_scale, "window_left": window_left, "softcap": logits_soft_cap or 0.0,
            "sizes": (num_qo_heads, head_dim)}


class BatchDecodeWithPagedKVCacheWrapper(_Wrapper):
    """Decoding: one row of q for each sequence, or q_len_per_req of them, bottom-right."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, use_tensor_cores=False, paged_kv_indptr_buffer=None,
                 paged_kv_indices_buffer=None, paged_kv_last_page_len_buffer=None, backend="auto", jit_args=None):
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, backend, {"jit_args": jit_args},
                         {"paged_kv_indptr_buffer": paged_kv_indptr_buffer, "paged_kv_indices_buffer": paged_kv_indices_buffer,
                          "paged_kv_last_page_len_buffer": paged_kv_last_page_len_buffer})
        self._uses_tensor_cores = bool(use_tensor_cores)

    @property
    def use_tensor_cores(self):
        """As given: kernels use them always."""
        return self._uses_tensor_cores

    @_by_position
    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *, pos_encoding_mode="NONE", window_left=-1,
             logits_soft_cap=None, q_data_type=None, kv_data_type=None, o_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None,
             non_blocking=True, block_tables=None, seq_lens=None, fixed_split_size=None, disable_split_kv=False, q_len_per_req=1):
        """indptr [sequences + 1], indices [pages of all sequences], last_page_len [sequences], as FlashInfer has them. block_tables
        [sequences, columns] and seq_lens [sequences] may be given in their place. fixed_split_size, of any size, and disable_split_kv ask for
        bits that do not depend on the batch (invariant=True of fagen.serving.plan)."""
        name = "BatchDecodeWithPagedKVCacheWrapper"
        _refuse_encoding(name, pos_encoding_mode)
        given = indptr
        indptr, indices, last = _indptr.check(name, indptr, indices, last_page_len, self.device)
        if block_tables is None:
            table = _indptr.table_of(indptr, indices, self._columns(given, indices, self._buffers["paged_kv_indices_buffer"], page_size))
        else:
            table = block_tables.clone()  # graphs write into a plan's tensors
        lengths = _indptr.lengths_of(indptr, last, page_size) if seq_lens is None or block_tables is None else seq_lens.flatten().clone()
        plan = serving.plan(None, lengths, table, page_size=page_size, tokens=(indptr.shape[0] - 1) * q_len_per_req, most_rows=q_len_per_req,
                            invariant=fixed_split_size is not None or bool(disable_split_kv))
        self._keep(plan, _options(sm_scale, head_dim, window_left, logits_soft_cap, num_qo_heads))
        self._write(indptr, indices, last)

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None,
            window_left=None, sinks=None, q_len_per_req=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None):
        """O as q [sequences * q_len_per_req, heads, head_dim], and LSE [rows, heads] of base 2 if return_lse. The caches are a pair, or
        [pages, 2, page_size, kv_heads, head_dim] (NHD), [pages, 2, kv_heads, page_size, head_dim] (HND)."""
        _refuse("BatchDecodeWithPagedKVCacheWrapper", args=args or None, sinks=sinks, kv_cache_sf=kv_cache_sf,
                skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        return self._run_pages(q, paged_kv_cache, q_scale, k_scale, v_scale, out, lse, return_lse, window_left)

    run_return_lse = functools.partialmethod(run, return_lse=True)


class CUDAGraphBatchDecodeWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """The same with use_cuda_graph=True."""

    def __init__(self, workspace_buffer, indptr_buffer, indices_buffer, last_page_len_buffer, kv_layout="NHD", use_tensor_cores=False):
        super().__init__(workspace_buffer, kv_layout, True, use_tensor_cores, indptr_buffer, indices_buffer, last_page_len_buffer)


def _most_keys(function, indptr, page_size):
    """Keys of all sequences at most, by their pages; None, for over the pages, where these are more than are copied together."""
    numbers = _indptr.on_host(function, "paged_kv_indptr", indptr)
    keys = max(0, numbers[-1] - numbers[0]) * page_size
    return keys if keys <= serving.MOST_KEYS else None


class BatchPrefillWithPagedKVCacheWrapper(_Wrapper):
    """Prefill and appending over pages: any number of rows for each sequence, packed."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None,
                 paged_kv_indices_buf=None, paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend="auto", jit_args=None,
                 jit_kwargs=None):
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, backend,
                         {"jit_args": jit_args, "jit_kwargs": jit_kwargs, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf},
                         {"qo_indptr_buf": qo_indptr_buf, "paged_kv_indptr_buf": paged_kv_indptr_buf, "paged_kv_indices_buf": paged_kv_indices_buf,
                          "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf})

    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size,
             head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None,
             window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None, q_data_type="float16", kv_data_type=None, o_data_type=None,
             non_blocking=True, prefix_len_ptr=None, token_pos_in_items_ptr=None, token_pos_in_items_len=0, max_item_len_ptr=None, seq_lens=None,
             seq_lens_q=None, block_tables=None, max_token_per_sequence=None, max_sequence_kv=None, fixed_split_size=None, disable_split_kv=False):
        """qo_indptr [sequences + 1]: where the rows of each sequence begin; the other tables as in decoding. With use_cuda_graph=True
        qo_indptr is read, too, for how many rows there are, unless it is on the CPU."""
        name = "BatchPrefillWithPagedKVCacheWrapper"
        _refuse_encoding(name, pos_encoding_mode)
        _refuse(name, custom_mask=custom_mask, packed_custom_mask=packed_custom_mask, prefix_len_ptr=prefix_len_ptr,
                token_pos_in_items_ptr=token_pos_in_items_ptr, max_item_len_ptr=max_item_len_ptr)
        if head_dim_vo not in (None, head_dim_qk):
            raise errors.Unsupported(f"{name}: head_dim_vo is {head_dim_vo}, head_dim_qk {head_dim_qk}; kernels of pages take equal ones")
        rows = _indptr.on_host(name, "qo_indptr", _indptr.offsets(name, "qo_indptr", qo_indptr))
        given, tokens = paged_kv_indptr, self._rows(rows[-1])
        indptr, indices, last = _indptr.check(name, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, self.device)
        table = block_tables
        if block_tables is None:
            table = _indptr.table_of(indptr, indices, self._columns(given, indices, self._buffers["paged_kv_indices_buf"], page_size, max_sequence_kv))
        plan = serving.plan(qo_indptr.to(self.device), _indptr.lengths_of(indptr, last, page_size), table, page_size=page_size, tokens=tokens,
                            most_rows=tokens if self._is_graph else _indptr.longest(rows), most_keys=None if self._is_graph else _most_keys(name, given, page_size),
                            causal=causal, invariant=fixed_split_size is not None or bool(disable_split_kv))
        self._keep(plan, _options(sm_scale, head_dim_qk, window_left, logits_soft_cap, num_qo_heads))
        self._write(qo_indptr, indptr, indices, last)

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None,
            window_left=None, sinks=None, kv_cache_sf=None, skip_softmax_threshold_scale_factor=None, use_fp16_softmax=None, uses_spcompress=None):
        """O as q [tokens, heads, head_dim], and LSE [tokens, heads] of base 2 if return_lse. Caches as in decoding."""
        _refuse("BatchPrefillWithPagedKVCacheWrapper", args=args or None, sinks=sinks, kv_cache_sf=kv_cache_sf, uses_spcompress=uses_spcompress,
                skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
        return self._run_pages(q, paged_kv_cache, q_scale, k_scale, v_scale, out, lse, return_lse, window_left)

    run_return_lse = functools.partialmethod(run, return_lse=True)


class BatchPrefillWithRaggedKVCacheWrapper(_Wrapper):
    """Prefill of packed queries over packed keys."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, kv_indptr_buf=None, custom_mask_buf=None,
                 mask_indptr_buf=None, backend="auto", jit_args=None, jit_kwargs=None):
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, backend,
                         {"jit_args": jit_args, "jit_kwargs": jit_kwargs, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf},
                         {"qo_indptr_buf": qo_indptr_buf, "kv_indptr_buf": kv_indptr_buf})

    def plan(self, qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False,
             pos_encoding_mode="NONE", use_fp16_qk_reduction=False, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None,
             q_data_type="float16", kv_data_type=None, o_data_type=None, non_blocking=True, prefix_len_ptr=None, token_pos_in_items_ptr=None,
             token_pos_in_items_len=0, max_item_len_ptr=None, fixed_split_size=None, disable_split_kv=False, seq_lens=None, seq_lens_q=None,
             max_token_per_sequence=None, max_sequence_kv=None, v_indptr=None, o_indptr=None):
        """qo_indptr and kv_indptr [sequences + 1]: where the rows and the keys of each sequence begin. Nothing is read by the host."""
        name = "BatchPrefillWithRaggedKVCacheWrapper"
        _refuse_encoding(name, pos_encoding_mode)
        _refuse(name, custom_mask=custom_mask, packed_custom_mask=packed_custom_mask, prefix_len_ptr=prefix_len_ptr,
                token_pos_in_items_ptr=token_pos_in_items_ptr, max_item_len_ptr=max_item_len_ptr,
                v_indptr=v_indptr, o_indptr=o_indptr, fixed_split_size=fixed_split_size)
        starts = [_indptr.offsets(name, which, indptr).to(self.device) for which, indptr in (("qo_indptr", qo_indptr), ("kv_indptr", kv_indptr))]
        if self._is_graph and self._plan is not None:
            _groups.rewrite(self._plan, starts)
        else:
            self._plan = tuple(start.clone() for start in starts) if self._is_graph else tuple(starts)
        self._options = {**_options(sm_scale, head_dim_qk, window_left, logits_soft_cap, num_qo_heads), "causal": bool(causal)}

    begin_forward = plan

    def run(self, q, k, v, *args, q_scale=None, k_scale=None, v_scale=None, o_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None,
            kv_cache_sf=None):
        """O as q [tokens, heads, head_dim], and LSE [tokens, heads] of base 2 if return_lse. k and v are [keys, kv_heads, head_dim]."""
        name, options = "BatchPrefillWithRaggedKVCacheWrapper", self._options
        _refuse(name, args=args or None, o_scale=o_scale, kv_cache_sf=kv_cache_sf)
        starts = self._planned()
        self._sizes(q, *options["sizes"])
        found = serving.packed(q, k, v, *starts, scale=_product(name, options["sm_scale"], q_scale, k_scale), causal=options["causal"],
                               window_left=options["window_left"], softcap=options["softcap"], return_lse=return_lse, fallback=fallback)
        return _finish(name, *(found if return_lse else (found, None)), v_scale, out, lse, return_lse)

    run_return_lse = functools.partialmethod(run, return_lse=True)


def single_decode_with_kv_cache(q, k, v, kv_layout="NHD", pos_encoding_mode="NONE", use_tensor_cores=False, q_scale=None, k_scale=None, v_scale=None,
                                window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False):
    """O [heads, head_dim] of one row q [heads, head_dim], and LSE [heads] of base 2 if return_lse. k, v: [keys, kv_heads, head_dim] (NHD)."""
    _refuse_encoding("single_decode_with_kv_cache", pos_encoding_mode)
    found = _single("single_decode_with_kv_cache", q[None], k, v, kv_layout, True, (q_scale, k_scale, v_scale), window_left, logits_soft_cap, sm_scale, return_lse)
    return (found[0][0], found[1][0]) if return_lse else found[0]


def single_prefill_with_kv_cache(q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None, packed_custom_mask=None, causal=False,
                                 kv_layout="NHD", pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1,
                                 logits_soft_cap=None, rope_scale=None, rope_theta=None, backend="auto", return_lse=False, kv_cache_sf=None, k_scale=None,
                                 v_scale=None):
    """O [rows, heads, head_dim] of q, and LSE [rows, heads] of base 2 if return_lse. k, v: [keys, kv_heads, head_dim] (NHD)."""
    name = "single_prefill_with_kv_cache"
    _refuse_encoding(name, pos_encoding_mode)
    _refuse(name, scale_q=scale_q, scale_k=scale_k, scale_v=scale_v, custom_mask=custom_mask, packed_custom_mask=packed_custom_mask, kv_cache_sf=kv_cache_sf)
    if o_dtype not in (None, q.dtype):
        raise errors.Unsupported(f"{name}: o_dtype is {o_dtype}; O has q's type, {q.dtype}")
    return _single(name, q, k, v, kv_layout, causal, (None, k_scale, v_scale), window_left, logits_soft_cap, sm_scale, return_lse)


def _single(function, q, k, v, layout, causal, scales, window_left, logits_soft_cap, sm_scale, return_lse):
    k, v = (t.transpose(0, 1) if _check_layout(function, layout) == "HND" else t for t in (k, v))
    scale = _product(function, q.shape[-1] ** -0.5 if sm_scale is None else sm_scale, *scales[:2])
    o, lse = _flash.attend(function, q[None], k[None], v[None], scale=scale, causal=causal, window=(window_left, -1), softcap=logits_soft_cap or 0.0,
                           lse=return_lse, fallback=fallback)
    return _finish(function, o[0], lse[0].t() if return_lse else None, scales[2], None, None, return_lse)


def merge_state(v_a, s_a, v_b, s_b):
    """(V, S) over the keys of both: V [rows, heads, head_dim], S [rows, heads] of base 2, float32."""
    return merge_states(torch.stack([v_a, v_b], 1), torch.stack([s_a, s_b], 1))


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    """merge_state() into v and s; mask [rows]: which rows are merged."""
    o, sums = merge_state(v, s, v_other, s_other)
    v.copy_(o if mask is None else torch.where(mask.bool()[:, None, None], o, v))
    s.copy_(sums if mask is None else torch.where(mask.bool()[:, None], sums, s))


def merge_states(v, s):
    """(V, S) over the keys of all: v [rows, states, heads, head_dim], s [rows, states, heads] of base 2, float32."""
    o, sums = serving.merge(v.transpose(0, 1), s.float().transpose(0, 1) * _LN2)
    return o, sums / _LN2


def get_seq_lens(kv_indptr, kv_last_page_len, page_size):
    """Keys of each sequence [sequences], int32."""
    return _indptr.lengths_of(_indptr.offsets("get_seq_lens", "kv_indptr", kv_indptr), kv_last_page_len, page_size).int()


def get_batch_indices_positions(append_indptr, seq_lens, nnz, batch_indices=None, positions=None):
    """(sequence, place among its keys) of each of nnz packed new keys, int32: those of a sequence are its last ones. Rows beyond the last
    offset are of sequence -1."""
    row = torch.arange(nnz, device=_indptr.offsets("get_batch_indices_positions", "append_indptr", append_indptr).device)
    which = torch.searchsorted(append_indptr[1:].contiguous(), row, right=True)
    exists, held = which < seq_lens.shape[0], which.clamp(max=seq_lens.shape[0] - 1)
    found = torch.where(exists, which, -1).int(), torch.where(exists, row - append_indptr[1:][held] + seq_lens[held], -1).int()
    return tuple(one if out is None else out.copy_(one) for one, out in zip(found, (batch_indices, positions)))


def append_paged_kv_cache(append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr, kv_last_page_len, kv_layout="NHD"):
    """Puts new keys [n, kv_heads, head_dim] at the places of their sequences. One of a sequence or at a place that is not there goes nowhere."""
    k_cache, v_cache = _indptr.caches("append_paged_kv_cache", paged_kv_cache, _check_layout("append_paged_kv_cache", kv_layout))
    pages, page_size = k_cache.shape[:2]
    if not kv_indices.shape[0]:
        return
    _indptr.offsets("append_paged_kv_cache", "kv_indptr", kv_indptr)
    sequence = batch_indices.long().clamp(0, kv_indptr.shape[0] - 2)
    nth = torch.div(positions, page_size, rounding_mode="floor")
    at = kv_indptr[sequence] + nth
    exists = (batch_indices == sequence) & (positions >= 0) & (at < kv_indptr[sequence + 1])
    page = kv_indices[at.long().clamp(0, kv_indices.shape[0] - 1)].long()
    exists &= (page >= 0) & (page < pages)
    serving.append(append_key, append_value, k_cache, v_cache, torch.where(exists, page * page_size + positions % page_size, -1))
