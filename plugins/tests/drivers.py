# fagen: how the small engine calls our plugins' classes: as vLLM's runner and SGLang's runner do.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import types

import torch

import stubs


class Vllm:
    """Metadata by FagenMetadataBuilder, once a step; each layer by FagenImpl."""

    def __init__(self, model, blocks, block_size, invariant=False):
        self.backend, s = stubs.plugin("vllm"), model.sizes
        from vllm import envs
        from vllm.v1.attention import backend
        self.common, self.device = backend.CommonAttentionMetadata, model.embedding.device
        envs.VLLM_BATCH_INVARIANT = invariant
        spec = types.SimpleNamespace(block_size=block_size, num_kv_heads=s.kv_heads, head_size=s.head_dim)
        names = [f"layers.{i}" for i in range(s.layers)]
        self.builder = self.backend.FagenBackend.get_builder_cls()(spec, names, None, self.device)
        # rows that nobody has put keys into are NaN: they must not be read, or not count
        self.caches = [torch.full((blocks, s.kv_heads, block_size, 2 * s.head_dim), torch.nan, dtype=model.embedding.dtype, device=self.device) for _ in names]
        self.impls = [self.backend.FagenBackend.get_impl_cls()(s.heads, s.head_dim, s.head_dim ** -0.5, s.kv_heads, None, model.window_of(i) or None)
                      for i in range(s.layers)]

    def begin(self, batch):
        columns = max(map(len, batch.tables))
        table = torch.tensor([row + [-1] * (columns - len(row)) for row in batch.tables], dtype=torch.int32)
        starts = torch.tensor([0, *batch.rows]).cumsum(0).int()
        lengths = torch.tensor(batch.lengths, dtype=torch.int32)
        self.slots = torch.tensor(batch.slots).to(self.device)
        self.metadata = self.builder.build(0, self.common(
            query_start_loc=starts.to(self.device), query_start_loc_cpu=starts, seq_lens=lengths.to(self.device), num_reqs=len(batch.rows),
            num_actual_tokens=len(batch.tokens), max_query_len=max(batch.rows), max_seq_len=max(batch.lengths), block_table_tensor=table.to(self.device),
            slot_mapping=self.slots, causal=True, seq_lens_cpu_upper_bound=lengths))

    def attend(self, layer, q, k, v):
        impl, out = self.impls[layer], torch.empty_like(q)
        impl.do_kv_cache_update(None, k, v, self.caches[layer], self.slots)
        return impl.forward(None, q, k, v, self.caches[layer], self.metadata, out)


class Pool:
    """As SGLang's pool of keys: a row for each token's slot."""

    def __init__(self, layers, rows, kv_heads, head_dim, dtype, device):
        self.k, self.v = ([torch.full((rows, kv_heads, head_dim), torch.nan, dtype=dtype, device=device) for _ in range(layers)] for _ in range(2))

    def set_kv_buffer(self, layer, loc_info, cache_k, cache_v):
        self.k[layer.layer_id][loc_info.loc] = cache_k
        self.v[layer.layer_id][loc_info.loc] = cache_v

    def get_key_buffer(self, layer_id):
        return self.k[layer_id]

    def get_value_buffer(self, layer_id):
        return self.v[layer_id]


class Sglang:
    """Metadata by init_forward_metadata, once a step; each layer by forward_decode or forward_extend."""

    def __init__(self, model, blocks, block_size, invariant=False, most_requests=32):
        module, s = stubs.plugin("sglang"), model.sizes
        from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
        from sglang.srt.model_executor import forward_batch_info
        self.info, self.size, self.device = forward_batch_info, block_size, model.embedding.device
        self.tokens_of = torch.zeros((most_requests, blocks * block_size), dtype=torch.int32, device=self.device)
        pool = Pool(s.layers, blocks * block_size + 1, s.kv_heads, s.head_dim, model.embedding.dtype, self.device)  # its last row is no page's
        self.backend = module.FagenBackend(types.SimpleNamespace(
            req_to_token_pool=types.SimpleNamespace(req_to_token=self.tokens_of), token_to_kv_pool=pool, page_size=block_size), invariant)
        self.layers = [RadixAttention.__new__(RadixAttention) for _ in range(s.layers)]
        for i, layer in enumerate(self.layers):
            layer.__dict__.update(tp_q_head_num=s.heads, tp_k_head_num=s.kv_heads, qk_head_dim=s.head_dim, v_head_dim=s.head_dim, scaling=s.head_dim ** -0.5,
                                  layer_id=i, logit_cap=0.0, sliding_window_size=model.window_of(i) - 1 if model.window_of(i) else -1,
                                  is_cross_attention=False, attn_type=AttentionType.DECODER)

    def begin(self, batch):
        slots = torch.arange(self.size)
        for i, table in enumerate(batch.tables):
            its = (torch.tensor(table)[:, None] * self.size + slots).flatten()
            self.tokens_of[i, :len(its)] = its.to(self.device, torch.int32)
        mode = self.info.ForwardMode.DECODE if max(batch.rows) == 1 else self.info.ForwardMode.MIXED if min(batch.rows) == 1 else self.info.ForwardMode.EXTEND
        lengths = torch.tensor(batch.lengths)
        self.batch = self.info.ForwardBatch(
            forward_mode=mode, batch_size=len(batch.rows), req_pool_indices=torch.arange(len(batch.rows), device=self.device), seq_lens=lengths.to(self.device),
            seq_lens_cpu=lengths, out_cache_loc=torch.tensor(batch.slots, device=self.device),
            extend_seq_lens=None if mode.name == "DECODE" else torch.tensor(batch.rows, device=self.device), extend_seq_lens_cpu=batch.rows)
        self.backend.init_forward_metadata(self.batch)

    def attend(self, layer, q, k, v):
        forward = self.backend.forward_decode if self.batch.forward_mode.is_decode_or_idle() else self.backend.forward_extend
        return forward(q.flatten(1), k, v, self.layers[layer], self.batch).unflatten(1, q.shape[1:])
