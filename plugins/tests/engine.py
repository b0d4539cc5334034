# fagen: a small serving engine: a Llama-like model of random weights, pages, prefixes that are used again, prompts in chunks, requests that wait.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""It calls attention through our plugins' classes as vLLM and SGLang do, and keeps the logits of each step, to be compared with those of dense
attention in float64 on the same tokens. Greedy decoding."""
from collections import OrderedDict
from typing import NamedTuple

import torch
import torch.nn.functional as F


class Sizes(NamedTuple):
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    hidden: int = 128
    vocabulary: int = 199
    window: int = 0  # keys that a row of every other layer sees, or 0 for all


class Model:
    """Random weights. attend(layer, q, k, v) is told with each call."""

    def __init__(self, sizes, dtype, device, seed=0):
        draw = torch.Generator().manual_seed(seed)
        def weights(*shape):
            return (torch.randn(*shape, generator=draw) * shape[-1] ** -0.5).to(device, dtype)
        self.sizes = s = sizes
        self.embedding = (torch.randn(s.vocabulary, s.hidden, generator=draw)).to(device, dtype)
        self.layers = [{"q": weights(s.heads * s.head_dim, s.hidden), "k": weights(s.kv_heads * s.head_dim, s.hidden),
                        "v": weights(s.kv_heads * s.head_dim, s.hidden), "o": weights(s.hidden, s.heads * s.head_dim),
                        "up": weights(4 * s.hidden, s.hidden), "gate": weights(4 * s.hidden, s.hidden), "down": weights(s.hidden, 4 * s.hidden)}
                       for _ in range(s.layers)]

    def to(self, dtype):
        """The same weights in another type."""
        other = Model.__new__(Model)
        other.sizes, other.embedding = self.sizes, self.embedding.to(dtype)
        other.layers = [{name: value.to(dtype) for name, value in layer.items()} for layer in self.layers]
        return other

    def window_of(self, layer):
        return self.sizes.window if layer % 2 else 0

    def forward(self, tokens, positions, attend):
        """Logits [tokens, vocabulary] of packed tokens."""
        s, x = self.sizes, self.embedding[tokens]
        for i, w in enumerate(self.layers):
            y = _norm(x)
            q, k, v = (F.linear(y, w[name]).unflatten(1, (-1, s.head_dim)) for name in "qkv")
            x = x + F.linear(attend(i, _turned(q, positions), _turned(k, positions), v).flatten(1), w["o"])
            y = _norm(x)
            x = x + F.linear(F.silu(F.linear(y, w["gate"])) * F.linear(y, w["up"]), w["down"])
        return F.linear(_norm(x), self.embedding)


def _norm(x):
    wide = x.double() if x.dtype == torch.float64 else x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _turned(x, positions):
    """Rotary embedding, [tokens, heads, columns]."""
    half = x.shape[-1] // 2
    angle = positions.double()[:, None] * 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    cos, sin = (f(angle)[:, None].to(torch.float64 if x.dtype == torch.float64 else torch.float32) for f in (torch.cos, torch.sin))
    a, b = x.to(cos.dtype).split(half, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def dense_logits(model, tokens):
    """Logits [tokens, vocabulary] of one sequence, with dense attention in the model's type."""
    device, s = model.embedding.device, model.sizes
    place = torch.arange(len(tokens), device=device)
    def attend(layer, q, k, v):
        k, v = (t.repeat_interleave(s.heads // s.kv_heads, 1) for t in (k, v))
        way = place[:, None] - place[None]
        seen = (way >= 0) & ((way < model.window_of(layer)) if model.window_of(layer) else True)
        scores = torch.einsum("qhd,khd->hqk", q, k).mul(s.head_dim ** -0.5).masked_fill(~seen, -torch.inf)
        return torch.einsum("hqk,khd->qhd", scores.softmax(-1, dtype=torch.promote_types(q.dtype, torch.float32)).to(q.dtype), v)
    return model.forward(torch.tensor(tokens, device=device), place, attend)


class Request:
    def __init__(self, prompt, most_new):
        self.tokens, self.prompt_size, self.most_new = list(prompt), len(prompt), most_new
        self.computed, self.blocks, self.logits = 0, [], {}  # logits: by place, of the step that chose the token after it

    @property
    def is_done(self):
        return len(self.tokens) - self.prompt_size >= self.most_new


class Blocks:
    """Blocks of the cache: how often each is used, and full ones by the tokens up to their end, to be used again."""

    def __init__(self, count, size):
        self.size, self.uses, self.by_tokens, self.tokens_of = size, [0] * count, {}, {}
        self.free = OrderedDict.fromkeys(range(count))

    def take(self):
        """A block that nobody uses, the one that was left first; None where there is none."""
        if not self.free:
            return None
        block, _ = self.free.popitem(last=False)
        self.by_tokens.pop(self.tokens_of.pop(block, None), None)
        self.uses[block] = 1
        return block

    def again(self, tokens):
        """The block that ends with these tokens of a sequence's begin, now used once more; None where there is none."""
        block = self.by_tokens.get(tuple(tokens))
        if block is not None:
            self.free.pop(block, None)
            self.uses[block] += 1
        return block

    def leave(self, block):
        self.uses[block] -= 1
        if not self.uses[block]:
            self.free[block] = None

    def keep(self, block, tokens):
        """The block is full."""
        if tuple(tokens) not in self.by_tokens and block not in self.tokens_of:
            self.by_tokens[tuple(tokens)], self.tokens_of[block] = block, tuple(tokens)


class Batch(NamedTuple):
    """A step, on the host: for each request its rows, keys and blocks; for each row its token, place and slot."""
    requests: list
    rows: list
    lengths: list
    tables: list
    tokens: list
    positions: list
    slots: list


class Engine:
    """backend: attend(layer, q, k, v) after begin(batch). A step has at most `budget` rows; requests that find no block are put back."""

    def __init__(self, model, backend, blocks, block_size, budget):
        self.model, self.backend, self.budget, self.blocks = model, backend, budget, Blocks(blocks, block_size)
        self.waiting, self.running, self.seen = [], [], {"preempted": 0, "prefix blocks": 0, "chunks": 0, "mixed steps": 0, "steps": 0}

    def run(self, requests, arrivals=()):
        """Computes all; arrivals: at which step each comes."""
        coming = sorted(zip(arrivals or [0] * len(requests), range(len(requests))))
        while coming or self.waiting or self.running:
            while coming and coming[0][0] <= self.seen["steps"]:
                self.waiting.append(requests[coming.pop(0)[1]])
            self.step()

    def step(self):
        self.seen["steps"] += 1
        scheduled = self._schedule()
        if not scheduled:
            assert self.waiting or not self.running, "no request fits into the cache"
            return
        scheduled.sort(key=lambda pair: pair[1])  # those of few rows first, as vLLM orders them
        counts = [rows for _, rows in scheduled]
        self.seen["mixed steps"] += min(counts) == 1 < max(counts)
        batch = self._batch(scheduled)
        self.backend.begin(batch)
        device = self.model.embedding.device
        logits = self.model.forward(torch.tensor(batch.tokens, device=device), torch.tensor(batch.positions, device=device), self.backend.attend)
        ends = torch.tensor(counts).cumsum(0) - 1
        self._finish(scheduled, logits[ends.to(device)])

    def _schedule(self):
        """[(request, rows)] of a step."""
        found, left = [], self.budget
        for request in list(self.running):
            rows = min(len(request.tokens) - request.computed, left)
            if request in self.running and rows and self._grow(request, request.computed + rows, found):
                found.append((request, rows))
                left -= rows
        while self.waiting and left:
            request = self.waiting[0]
            again = self._use_prefix(request)
            rows = min(len(request.tokens) - request.computed, left)
            if not self._grow(request, request.computed + rows, None):
                self._put_back(request)
                break
            self.running.append(self.waiting.pop(0))
            self.seen["prefix blocks"] += again
            found.append((request, rows))
            left -= rows
        return found

    def _use_prefix(self, request):
        """Takes blocks of others that hold the same tokens, and says how many; at least one token is left to be computed."""
        size = self.blocks.size
        while (request.computed + size) < len(request.tokens):
            block = self.blocks.again(request.tokens[:request.computed + size])
            if block is None:
                break
            request.blocks.append(block)
            request.computed += size
        return len(request.blocks)

    def _grow(self, request, length, scheduled):
        """Gives the request blocks for so many keys; others that run and are not scheduled yet are put back for it."""
        while len(request.blocks) * self.blocks.size < length:
            block = self.blocks.take()
            if block is not None:
                request.blocks.append(block)
                continue
            others = [one for one in self.running if scheduled is not None and one is not request and all(one is not other for other, _ in scheduled)]
            if not others:
                if scheduled is not None:
                    self._preempt(request)
                return False
            self._preempt(others[-1])
        return True

    def _preempt(self, request):
        self.running.remove(request)
        self._put_back(request)
        self.waiting.insert(0, request)
        self.seen["preempted"] += 1

    def _put_back(self, request):
        for block in reversed(request.blocks):
            self.blocks.leave(block)
        request.blocks, request.computed = [], 0

    def _batch(self, scheduled):
        size, made = self.blocks.size, Batch([], [], [], [], [], [], [])
        for request, rows in scheduled:
            places = range(request.computed, request.computed + rows)
            self.seen["chunks"] += rows > 1 and places.stop < len(request.tokens)
            for target, value in zip(made[:4], (request, rows, places.stop, request.blocks)):
                target.append(value)
            made.tokens.extend(request.tokens[p] for p in places)
            made.positions.extend(places)
            made.slots.extend(request.blocks[p // size] * size + p % size for p in places)
        return made

    def _finish(self, scheduled, logits):
        for (request, rows), of_last in zip(scheduled, logits):
            size = self.blocks.size
            for nth in range(request.computed // size, (request.computed + rows) // size):
                self.blocks.keep(request.blocks[nth], request.tokens[:(nth + 1) * size])
            request.computed += rows
            if request.computed == len(request.tokens):
                request.logits[request.computed - 1] = of_last.float().cpu()
                request.tokens.append(int(of_last.argmax()))
            if request.is_done:
                self.running.remove(request)
                self._put_back(request)


def judge(model, request):
    """(the worst of the engine's rows of logits, as a share of what is allowed; how many rows decide their token; those of them whose token is
    another), against float64 on the same tokens. Allowed is twice the largest error of dense attention in the model's own type, in the same
    row or as the mean of all, whichever is more, and 2e-3. A row decides where the first logit is that much, twice, ahead of the second."""
    exact = dense_logits(model.to(torch.float64), request.tokens[:-1]).cpu()
    errors = (dense_logits(model, request.tokens[:-1]).double().cpu() - exact).abs().amax(-1)
    allowed = 2 * torch.maximum(errors, errors.mean()) + 2e-3
    worst = max(((row.double() - exact[p]).abs().max() / allowed[p]).item() for p, row in request.logits.items())
    top = exact.topk(2).values
    decided = [p for p in request.logits if top[p, 0] - top[p, 1] > 2 * allowed[p]]
    return worst, len(decided), [p for p in decided if request.tokens[p + 1] != exact[p].argmax()]
