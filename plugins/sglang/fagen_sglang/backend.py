# fagen: SGLang's attention over fagen's kernels: what is planned once a step, and what each layer computes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoder attention with causal masks and sliding windows, float16 and bfloat16, pages of any size. Requests of up to 16 rows are computed over
the pages, others from keys copied together. Decoding may be captured into a graph, which makes its plan itself."""
import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

import fagen
from fagen import serving

fallback = "warn"  # for what no kernel computes: "warn", "torch" or "error", as in fagen.attention
MODES = ("EXTEND", "MIXED", "SPLIT_PREFILL", "DECODE", "IDLE")  # of a step; the others are of drafts in trees, or see keys after their own place


class FagenBackend(AttentionBackend):
    """What SGLang asks a backend for. invariant: bits of a request do not depend on others (fagen.serving.plan)."""

    def __init__(self, model_runner, invariant=False):
        super().__init__()
        self._tokens_of = model_runner.req_to_token_pool.req_to_token  # [requests, tokens]: where each one's keys lie
        self._pool, self._page_size = model_runner.token_to_kv_pool, model_runner.page_size
        self._is_invariant = invariant
        self.forward_metadata = None
        if hasattr(self._pool, "translate_loc_from_full_to_swa"):
            raise fagen.Unsupported("FagenBackend: the pool keeps keys of sliding windows by themselves, and the kernels' tables do not know where; start "
                                    "the server with --disable-hybrid-swa-memory")

    def support_triton(self):
        return False

    def init_cuda_graph_state(self, max_bs, max_num_tokens):
        """Nothing is kept: graphs make their plans."""

    def get_cuda_graph_seq_len_fill_value(self):
        return 0  # no key is read of a request that only fills a graph

    def init_forward_metadata(self, forward_batch):
        """The plan of a step, by what the host knows of it; None for one without requests."""
        batch, mode = forward_batch, forward_batch.forward_mode
        if mode.name not in MODES:
            raise fagen.Unsupported(f"FagenBackend: a step is {mode!r}; kernels of pages compute {', '.join(MODES)}, with causal masks: choose another "
                                    "attention backend, or start the server without speculative decoding")
        keys = _numbers(batch.seq_lens_cpu, batch.batch_size)
        longest = self._tokens_of.shape[1] if keys is None else max(keys, default=1)
        if not batch.batch_size:
            self.forward_metadata = None
        elif mode.is_decode_or_idle():
            self.forward_metadata = self._decoding(batch, longest)
        else:
            self.forward_metadata = self._extending(batch, keys, longest)

    def _extending(self, batch, keys, longest):
        """The plan of rows of any number. What the host does not know of them is bounded: keys are then not copied together."""
        if batch.extend_seq_lens is None:
            raise fagen.Unsupported(f"FagenBackend: {batch.forward_mode!r} without extend_seq_lens, which says how many rows each request has")
        rows = _numbers(batch.extend_seq_lens_cpu, batch.batch_size)
        tokens = batch.extend_num_tokens if rows is None else sum(rows)
        if tokens is None:
            raise fagen.Unsupported(f"FagenBackend: {batch.forward_mode!r} with neither extend_seq_lens_cpu nor extend_num_tokens; the host has to know how many "
                                    "rows there are")
        lengths, table = self._lengths_and_table(batch, longest)
        counts = batch.extend_seq_lens[:len(lengths)]
        starts = torch.cat([counts.new_zeros(1), counts.cumsum(0).to(counts.dtype)])
        return serving.plan(starts, lengths[:len(counts)], table[:len(counts)], page_size=self._page_size, tokens=tokens,
                            most_rows=tokens if rows is None else max(rows), most_keys=None if keys is None else sum(keys), invariant=self._is_invariant)

    def init_forward_metadata_out_graph(self, forward_batch, in_capture=False):
        """Nothing has to be done before a graph is replayed."""

    def init_forward_metadata_in_graph(self, forward_batch):
        """The plan of decoding, made in the graph of tensors that are read when it runs."""
        if not forward_batch.forward_mode.is_decode_or_idle():
            raise fagen.Unsupported(f"FagenBackend: {forward_batch.forward_mode!r} in a graph; decoding is captured, other steps are not")
        self.forward_metadata = self._decoding(forward_batch, self._tokens_of.shape[1])

    def _lengths_and_table(self, batch, longest):
        """Keys of each request, and its pages: of each page's first key the place."""
        requests, lengths = batch.req_pool_indices[:batch.batch_size], batch.seq_lens[:batch.batch_size]
        of_requests = self._tokens_of[requests, :max(1, longest):self._page_size]
        return lengths, of_requests // self._page_size if self._page_size > 1 else of_requests

    def _decoding(self, batch, longest):
        lengths, table = self._lengths_and_table(batch, longest)
        return serving.plan(None, lengths, table, page_size=self._page_size, tokens=lengths.shape[0], most_rows=1, invariant=self._is_invariant)

    def forward_decode(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        """O [tokens, heads * head_dim] of one row for each request."""
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, kwargs)

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        """O [tokens, heads * head_dim] of the rows of all requests, packed."""
        return self._forward(q, k, v, layer, forward_batch, save_kv_cache, kwargs)

    def _forward(self, q, k, v, layer, batch, save_kv_cache, others):
        _check(layer, others)
        if save_kv_cache and k is not None:
            self._pool.set_kv_buffer(layer, KVWriteLoc(batch.out_cache_loc), k, v)
        q, plan = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim), self.forward_metadata
        tokens = 0 if plan is None else plan.tokens
        if not tokens:
            return q.new_zeros(len(q), layer.tp_q_head_num * layer.v_head_dim)
        caches = (self._pool.get_key_buffer(layer.layer_id), self._pool.get_value_buffer(layer.layer_id))
        caches = [cache[:len(cache) // self._page_size * self._page_size].unflatten(0, (-1, self._page_size)) for cache in caches]
        o = plan.run(q[:tokens], *caches, scale=layer.scaling, window_left=layer.sliding_window_size, fallback=fallback)
        if len(q) > tokens:  # rows that only fill the batch
            o = torch.cat([o, o.new_zeros(len(q) - tokens, *o.shape[1:])])
        return o.reshape(-1, layer.tp_q_head_num * layer.v_head_dim)


def _numbers(values, count):
    """Of a list or a tensor on the CPU; None where the host does not know them."""
    return None if values is None else (values.tolist() if isinstance(values, torch.Tensor) else list(values))[:count]


def _check(layer, others):
    """Unsupported for layers that kernels of pages do not compute."""
    wrong = {name: value for name, value in (("logit_cap", layer.logit_cap), ("is_cross_attention", layer.is_cross_attention), *others.items())
             if value is not None and value is not False and not (isinstance(value, (int, float)) and value == 0)}
    if layer.attn_type != AttentionType.DECODER:
        wrong["attn_type"] = layer.attn_type
    if layer.v_head_dim != layer.qk_head_dim:
        wrong["v_head_dim"] = layer.v_head_dim
    for name, value in wrong.items():
        raise fagen.Unsupported(f"FagenBackend: {name} is {value!r}, and kernels of pages have none such; choose another attention backend")
