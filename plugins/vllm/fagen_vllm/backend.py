# fagen: vLLM's attention over fagen's kernels: what is planned once a step, and what each layer computes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoder attention with causal masks and sliding windows, float16 and bfloat16, over blocks of any size. Requests of up to 16 rows are computed
over the pages, in one launch, whole prompts from their keys, and other requests from keys copied together. Nothing waits for the GPU."""
from dataclasses import dataclass
from typing import Optional

import torch
from vllm import envs
from vllm.v1.attention.backend import (AttentionBackend, AttentionCGSupport, AttentionImpl, AttentionMetadata, AttentionMetadataBuilder, AttentionType,
                                       MultipleOf)

import fagen
from fagen import serving

MOST_ROWS = 16  # of a request that is computed over the pages
fallback = "warn"  # for what no kernel computes: "warn", "torch" or "error", as in fagen.attention


class FagenBackend(AttentionBackend):
    """What vLLM asks a backend for."""

    supported_dtypes = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16"]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name():
        return "CUSTOM"  # vLLM looks backends up by the name under which they are registered

    @staticmethod
    def get_impl_cls():
        return FagenImpl

    @staticmethod
    def get_builder_cls():
        return FagenMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(1)]

    @classmethod
    def get_supported_head_sizes(cls):
        return [64, 96, 128, 192, 256]

    @classmethod
    def supports_sliding_window(cls):
        return True

    @classmethod
    def supports_batch_invariance(cls):
        return True

    @classmethod
    def supports_compute_capability(cls, capability):
        return capability.major >= 8


@dataclass
class FagenMetadata(AttentionMetadata):
    """Requests of few rows come first: `few` plans them, `many` the others, or these are whole prompts, from `starts` on."""

    tokens: int
    split: int  # rows of q of the former
    few: Optional[serving.Plan]
    many: Optional[serving.Plan]
    starts: Optional[torch.Tensor]  # of whole prompts, whose keys are their own rows


class FagenMetadataBuilder(AttentionMetadataBuilder):
    """Makes plans of a step, on the device."""

    _cudagraph_support = AttentionCGSupport.UNIFORM_BATCH
    reorder_batch_threshold = MOST_ROWS

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._page_size = kv_cache_spec.block_size
        self._is_invariant = bool(envs.VLLM_BATCH_INVARIANT)
        drafts = getattr(getattr(vllm_config, "speculative_config", None), "num_speculative_tokens", None) or 0
        if drafts >= MOST_ROWS:
            raise fagen.Unsupported(f"FagenMetadataBuilder: num_speculative_tokens is {drafts}; graphs take up to {MOST_ROWS - 1} drafts; choose another attention backend")

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        common = common_attn_metadata
        count, tokens = common.num_reqs, common.num_actual_tokens
        starts = common.query_start_loc_cpu[:count + 1].tolist()
        rows = max(1, common.max_query_len)
        if rows <= MOST_ROWS and tokens == count * rows and starts[-1] % rows == 0 and all(at == min(i * rows, starts[-1]) for i, at in enumerate(starts)):
            return FagenMetadata(tokens, tokens, self._plan(common, 0, count, None, tokens, rows, None), None, None)
        if self._is_invariant:
            return FagenMetadata(tokens, tokens, self._plan(common, 0, count, common.query_start_loc, tokens, rows, None), None, None)
        few = next((i for i in range(count) if starts[i + 1] - starts[i] > MOST_ROWS), count)
        split = starts[few] if few < count else tokens
        plan = self._plan(common, 0, few, common.query_start_loc, split, min(rows, MOST_ROWS), None) if few else None
        if few == count:
            return FagenMetadata(tokens, split, plan, None, None)
        offsets = common.query_start_loc[few:] - split
        bound = common.seq_lens_cpu_upper_bound
        keys = None if bound is None else bound[few:count].tolist()
        if keys == [b - a for a, b in zip(starts[few:], starts[few + 1:])]:
            return FagenMetadata(tokens, split, plan, None, offsets)
        most_keys = None if keys is None else sum(keys)
        return FagenMetadata(tokens, split, plan, self._plan(common, few, count, offsets, tokens - split, rows, most_keys), None)

    def _plan(self, common, first, last, starts, tokens, rows, most_keys):
        """Of requests first to last, whose rows begin at starts. Columns that no request makes use of are left out: kernels share what there may be."""
        table = common.block_table_tensor[first:last, :-(-max(1, common.max_seq_len) // self._page_size)]
        return serving.plan(None if starts is None else starts[:last - first + 1], common.seq_lens[first:last], table, page_size=self._page_size,
                            tokens=tokens, most_rows=rows, most_keys=most_keys, causal=common.causal, invariant=self._is_invariant)


class FagenImpl(AttentionImpl):
    """A layer."""

    def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None, sliding_window=None, kv_cache_dtype="auto", logits_soft_cap=None,
                 attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None):
        for name, value in (("alibi_slopes", alibi_slopes), ("logits_soft_cap", logits_soft_cap)):
            if value:
                raise fagen.Unsupported(f"FagenImpl: {name} is {value}: kernels of pages have none; choose another attention backend")
        if kv_sharing_target_layer_name is not None:
            raise fagen.Unsupported(f"FagenImpl: kv_sharing_target_layer_name is {kv_sharing_target_layer_name!r}: whole prompts are computed from a layer's own "
                                    "keys; choose another attention backend")
        if attn_type != AttentionType.DECODER:
            raise fagen.Unsupported(f"FagenImpl: attn_type is {attn_type!r}; kernels of pages are for {AttentionType.DECODER!r}")
        if kv_cache_dtype not in FagenBackend.supported_kv_cache_dtypes:
            raise fagen.Unsupported(f"FagenImpl: kv_cache_dtype is {kv_cache_dtype!r}; it is {', '.join(FagenBackend.supported_kv_cache_dtypes)}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype, self.kv_sharing_target_layer_name = kv_cache_dtype, kv_sharing_target_layer_name
        self._left = -1 if sliding_window is None else sliding_window - 1

    def _caches(self, kv_cache):
        """K and V [blocks, block_size, kv_heads, head_size] of vLLM's [blocks, kv_heads, block_size, 2 * head_size]."""
        return kv_cache.transpose(1, 2).split(self.head_size, dim=-1)

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        """Puts keys and values [tokens, kv_heads, head_size] at their slots; those of slot -1 nowhere."""
        serving.append(key, value, *self._caches(kv_cache), slot_mapping)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        """output [tokens, heads, head_size] of query, with the keys that the cache has; without metadata, in a profiling run, zeros."""
        if output_scale is not None or output_block_scale is not None:
            raise fagen.Unsupported("FagenImpl: output_scale is given, and O is not quantised")
        if attn_metadata is None:
            return output.fill_(0)
        meta, split, tokens = attn_metadata, attn_metadata.split, attn_metadata.tokens
        if meta.few is not None:
            meta.few.run(query[:split], *self._caches(kv_cache), scale=self.scale, window_left=self._left, out=output[:split], fallback=fallback)
        if meta.many is not None:
            meta.many.run(query[split:tokens], *self._caches(kv_cache), scale=self.scale, window_left=self._left, out=output[split:tokens], fallback=fallback)
        elif meta.starts is not None:
            output[split:tokens] = serving.packed(query[split:tokens], key[split:tokens], value[split:tokens], meta.starts, meta.starts, scale=self.scale,
                                                  window_left=self._left, fallback=fallback)
        return output
