# fagen: score and mask mods of attention-gym and of FlashAttention-4's tests, as forms and as FlexAttention's functions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mod is written down twice: in the language of specs, and as score_mod and mask_mod of torch's FlexAttention. Both get the same
tensors. A form's p is the place of query q among the keys; FlexAttention has no such number, so its functions add the difference
of lengths."""
from typing import Callable, NamedTuple, Optional

import torch
from torch.nn.attention.flex_attention import AuxRequest

HEADS, KV_HEADS, COLUMNS = 4, 2, 64

SPEC = """target {target};
{forms}
kernel mods {{
  problem  {{ dtype = {dtype}; head_dim = 64; form = [{names}]; }}
  schedule {{ {schedule} }}
}}
"""


class Mod(NamedTuple):
    form: str                           # what stands in the form's block
    params: dict
    score: Optional[Callable] = None    # of (score, b, h, q, k)
    mask: Optional[Callable] = None     # of (b, h, q, k)


def spec_of(mods, target, dtype, schedule):
    forms = "\n".join(f"form {name} {{ {mod.form} }}" for name, mod in mods.items())
    return SPEC.format(target=target, dtype=dtype, schedule=schedule, forms=forms, names=", ".join(mods))


def _masks(tensors, rows, keys):
    """Masks by place alone and by what tensors say."""
    off, doc, doc_q, prefix, kind, seen, at, length = keys - rows, *tensors
    causal = lambda b, h, q, k: q + off >= k  # noqa: E731
    near = lambda q, k, width: (q + off - k).abs() <= width  # noqa: E731
    side = 20  # of a canvas
    middle = lambda x: x.clamp(2, side - 3)  # noqa: E731
    yield "causal_mask", Mod("mask = k <= p;", {}, mask=causal)
    yield "sliding", Mod("param window: i32 in [1, 4096]; mask = k <= p && p - k <= window;", dict(window=70),
                         mask=lambda b, h, q, k: causal(b, h, q, k) & (q + off - k <= 70))
    yield "both_sides", Mod("param window: i32 in [1, 4096]; mask = abs(p - k) <= window;", dict(window=70),
                            mask=lambda b, h, q, k: near(q, k, 70))
    yield "dilated", Mod("param window: i32 in [1, 64]; param step: i32 in [1, 64]; mask = abs(p - k) <= window * step && "
                         "floor_mod(p - k, step) == 0;", dict(window=20, step=3),
                         mask=lambda b, h, q, k: near(q, k, 60) & ((q + off - k) % 3 == 0))
    yield "prefix_lm", Mod("param prefix: i32[batch]; mask = k < prefix[b] || k <= p;", dict(prefix=prefix),
                           mask=lambda b, h, q, k: (k < prefix[b]) | causal(b, h, q, k))
    yield "document", Mod("param doc: i32[batch, seq_kv] ascending; mask = k <= p && doc[b, k] == doc[b, p];", dict(doc=doc),
                          mask=lambda b, h, q, k: causal(b, h, q, k) & (doc[b, k] == doc[b, q + off]))
    yield "two_documents", Mod("param doc_q: i32[batch, seq_q] ascending; param doc: i32[batch, seq_kv] ascending; "
                               "mask = doc_q[b, q] == doc[b, k];", dict(doc=doc, doc_q=doc_q),
                               mask=lambda b, h, q, k: doc_q[b, q] == doc[b, k])
    yield "streaming", Mod("param n: i32 in [0, 64]; param window: i32 in [1, 4096]; mask = k <= p && (k < n || p - k < window);",
                           dict(n=4, window=70), mask=lambda b, h, q, k: causal(b, h, q, k) & ((k < 4) | (q + off - k < 70)))
    yield "chunked", Mod("param c: i32 in [1, 4096]; mask = k <= p && floor_div(k, c) == floor_div(p, c);", dict(c=100),
                         mask=lambda b, h, q, k: causal(b, h, q, k) & (k // 100 == (q + off) // 100))
    yield "block_diagonal", Mod("mask = floor_div(q, 64) == floor_div(k, 64);", {}, mask=lambda b, h, q, k: q // 64 == k // 64)
    yield "block_causal", Mod("param c: i32 in [1, 64]; mask = floor_div(p, c) >= floor_div(k, c);", dict(c=33),
                              mask=lambda b, h, q, k: (q + off) // 33 >= k // 33)
    yield "mini_causal", Mod("mask = floor_mod(q, 128) >= floor_mod(k, 128);", {}, mask=lambda b, h, q, k: q % 128 >= k % 128)
    yield "xor", Mod("mask = ((q ^ k) & 1) == 0;", {}, mask=lambda b, h, q, k: ((q ^ k) & 1) == 0)
    yield "kinds", Mod("param kind: u8[batch, seq_kv]; mask = k <= p || kind[b, k] == 1 && kind[b, p] == 1;", dict(kind=kind),
                       mask=lambda b, h, q, k: causal(b, h, q, k) | ((kind[b, k] == 1) & (kind[b, q + off] == 1)))
    yield "image_span", Mod("param at: i32[batch] in [0, 4096]; param length: i32[batch] in [0, 4096]; let first = at[b]; "
                            "let last = first + length[b]; mask = k <= p || first <= p && p < last && first <= k && k < last;",
                            dict(at=at, length=length),
                            mask=lambda b, h, q, k: causal(b, h, q, k) | ((q + off >= at[b]) & (q + off < at[b] + length[b])
                                                                          & (k >= at[b]) & (k < at[b] + length[b])))
    yield "canvas", Mod(f"let x = clamp(floor_div(p, {side}), 2, {side - 3}); let y = clamp(floor_mod(p, {side}), 2, {side - 3}); "
                        f"mask = abs(x - floor_div(k, {side})) <= 2 && abs(y - floor_mod(k, {side})) <= 2;", {},
                        mask=lambda b, h, q, k: ((middle((q + off) // side) - k // side).abs() <= 2)
                        & ((middle((q + off) % side) - k % side).abs() <= 2))
    yield "any_element", Mod("param seen: u8[batch, heads, seq_q, seq_kv]; mask = seen[b, h, q, k] != 0;", dict(seen=seen),
                             mask=lambda b, h, q, k: seen[b, h, q, k] != 0)


def _scores(tensors, rows, keys):
    """Scores by place and by what tensors say."""
    off, slope, of_batch, of_query, by_distance, bias = keys - rows, *tensors
    capped = lambda s: 5 * torch.tanh(s / 5)  # noqa: E731
    biased = lambda s, h, q, k: s + slope[h] * (k - q - off)  # noqa: E731
    yield "softcap", Mod("param cap: f32 in [1, 55]; score = cap * tanh(s / cap);", dict(cap=5.0), lambda s, b, h, q, k: capped(s))
    yield "alibi", Mod("param slope: f32[heads]; score = s + slope[h] * f32(k - p);", dict(slope=slope),
                       lambda s, b, h, q, k: biased(s, h, q, k))
    yield "alibi_by_distance", Mod("param slope: f32[heads]; score = s - slope[h] * f32(abs(k - p));", dict(slope=slope),
                                   lambda s, b, h, q, k: s - slope[h] * (k - q - off).abs())
    yield "softcap_of_alibi", Mod("param cap: f32 in [1, 55]; param slope: f32[heads]; "
                                  "score = cap * tanh((s + slope[h] * f32(k - p)) / cap);", dict(cap=5.0, slope=slope),
                                  lambda s, b, h, q, k: capped(biased(s, h, q, k)))
    yield "relative", Mod("score = s + f32(q - k) * 0.125;", {}, lambda s, b, h, q, k: s + (q - k) * 0.125)
    yield "twice", Mod("score = s * 2;", {}, lambda s, b, h, q, k: s * 2)
    yield "temperature", Mod("param slope: f32[heads]; score = s * slope[h];", dict(slope=slope), lambda s, b, h, q, k: s * slope[h])
    yield "batch_bias", Mod("param of_batch: f16[batch]; score = s + of_batch[b];", dict(of_batch=of_batch),
                            lambda s, b, h, q, k: s + of_batch[b])
    yield "head_and_query_bias", Mod("param slope: f32[heads]; param of_query: bf16[seq_q]; score = s + slope[h] + of_query[q];",
                                     dict(slope=slope, of_query=of_query), lambda s, b, h, q, k: s + slope[h] + of_query[q])
    yield "distance_bias", Mod("param by_distance: f32[heads, 65]; score = s + by_distance[h, clamp(k - p, -32, 32) + 32];",
                               dict(by_distance=by_distance),
                               lambda s, b, h, q, k: s + by_distance[h, (k - q - off).clamp(-32, 32) + 32])
    yield "dense_bias", Mod("param bias: f16[batch, heads, seq_q, seq_kv]; score = s + bias[b, h, q, k];", dict(bias=bias),
                            lambda s, b, h, q, k: s + bias[b, h, q, k])


def mods(batch, rows, keys, device="cpu"):
    """name: Mod, on tensors of these sizes."""
    draw = torch.Generator(device).manual_seed(2)
    normal = lambda *shape, dtype=torch.float32: torch.randn(shape, generator=draw, device=device).to(dtype)  # noqa: E731
    whole = lambda limit, *shape: torch.randint(limit, shape, generator=draw, device=device, dtype=torch.int32)  # noqa: E731
    doc = whole(keys, batch, keys).sort(1).values // (keys // 5)
    seen = whole(2, batch, HEADS, rows, keys).to(torch.uint8)
    seen[..., 0] = 1  # each row sees something
    slope = torch.rand(HEADS, generator=draw, device=device) + 0.25
    masks = (doc, doc[:, keys - rows:].contiguous(), whole(keys, batch), whole(3, batch, keys).to(torch.uint8), seen,
             whole(keys // 2, batch), whole(keys // 3, batch))
    scores = (slope, normal(batch, dtype=torch.float16), normal(rows, dtype=torch.bfloat16), normal(HEADS, 65),
              normal(batch, HEADS, rows, keys, dtype=torch.float16))
    return dict([*_masks(masks, rows, keys), *_scores(scores, rows, keys)])


def tensors(batch, rows, keys, dtype, device="cpu"):
    """q, k, v as [B, S, H, D]."""
    draw = torch.Generator(device).manual_seed(3)
    return [torch.randn((batch, length, heads, COLUMNS), generator=draw, device=device).to(dtype)
            for length, heads in ((rows, HEADS), (keys, KV_HEADS), (keys, KV_HEADS))]


def in_double(mod, q, k, v):
    """O [B, S, H, D] and LSE [B, H, S] of FlexAttention's functions, at all elements in f64. Rows without keys: 0 and -inf."""
    q, k, v = (t.double().transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    shaped = lambda n, dim: torch.arange(n, device=q.device).view([-1 if i == dim else 1 for i in range(4)])  # noqa: E731
    places = [shaped(n, dim) for dim, n in enumerate(scores.shape)]
    if mod.score:
        scores = mod.score(scores, *places)
    if mod.mask:
        scores = scores.masked_fill(~mod.mask(*places).expand_as(scores), -torch.inf)
    lse = torch.logsumexp(scores, -1)
    o = torch.exp(scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]) @ v
    return o.transpose(1, 2), lse


def by_flex(flex, mod, q, k, v, blocks, **options):
    """O [B, S, H, D] and LSE [B, H, S] of FlexAttention with these kernel options; `blocks` makes its block mask."""
    q, k, v = (t.transpose(1, 2).contiguous() for t in (q, k, v))
    sizes = (q.shape[0], HEADS, q.shape[2], k.shape[2])
    block_mask = blocks(mod.mask, *sizes, device=q.device) if mod.mask else None
    o, aux = flex(q, k, v, score_mod=mod.score, block_mask=block_mask, enable_gqa=True,
                  return_aux=AuxRequest(lse=True), kernel_options=options or None)
    return o.transpose(1, 2), aux.lse
