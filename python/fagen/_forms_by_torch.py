# fagen: forms by PyTorch: what a kernel set's manifest says of them, computed on tensors; for gradients, and without a kernel.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by a form's postfix programs in float32, some rows at a time, so that not all scores are held at once. Slow."""
import functools
import json
import math
import os
from typing import NamedTuple

import torch

from . import _arguments, _by_torch, _forms, _gradients, errors

_MOST_SCORES = 1 << 25  # that are held at once


class Form(NamedTuple):
    lets: tuple     # (name, program), in order
    score: str
    mask: str
    sink: str
    v_scale: str
    elements: dict  # param: its element
    extents: dict   # tensor param: (names or numbers) of its dimensions
    ranges: dict    # param of one i32: (low, high)


@functools.lru_cache(maxsize=None)
def _forms_of(directories):
    found = {}
    for directory in directories:
        path = os.path.join(directory, "manifest.json")
        with errors.reading(path, "manifest"), open(path, encoding="utf-8") as file:
            for form in json.load(file).get("forms", ()):
                params = form["params"]
                made = Form(tuple(map(tuple, form.get("lets", ()))), form.get("score", ""), form.get("mask", ""), form.get("sink", ""),
                            form.get("v_scale", ""),
                            {p["name"]: p["element"] for p in params},
                            {p["name"]: tuple(extent[0] for extent in p["extents"]) for p in params if p["rank"]},
                            {p["name"]: (p["low"], p["high"]) for p in params if not p["rank"] and p["element"] == "i32"})
                found.setdefault((form["name"], frozenset(made.elements)), made)
    return found


def find(directories, name, args):
    """The form of the kernel sets that has just these params; None where there is none."""
    return _forms_of(tuple(directories)).get((name, frozenset(args)))


find._dynamo_marked_constant = True  # graphs take the answer: manifests do not change


def _number(value, real, device):
    return torch.tensor(value, dtype=torch.float32 if real else torch.int64, device=device)


def _truncated(x):
    return torch.nan_to_num(x, nan=0.0, posinf=2.0**31, neginf=-(2.0**31)).double().clamp(-(2.0**31), 2.0**31 - 1).long()


def _promoted(function):
    """Of two tensors, or two and a condition in front, that must have one type."""
    def call(*operands):
        *condition, a, b = operands
        kind = torch.promote_types(a.dtype, b.dtype)
        return function(*condition, a.to(kind), b.to(kind))
    return call


_OPERATORS = {
    "neg": (1, torch.neg), "!": (1, torch.logical_not), "abs": (1, torch.abs), "f32": (1, torch.Tensor.float), "i32": (1, _truncated),
    "exp": (1, torch.exp), "exp2": (1, torch.exp2), "log": (1, torch.log), "log2": (1, torch.log2), "sqrt": (1, torch.sqrt),
    "tanh": (1, torch.tanh), "+": (2, torch.add), "-": (2, torch.sub), "*": (2, torch.mul), "/": (2, torch.div),
    "floor_div": (2, functools.partial(torch.div, rounding_mode="floor")), "floor_mod": (2, torch.remainder),
    "min": (2, _promoted(torch.minimum)), "max": (2, _promoted(torch.maximum)), "&": (2, torch.bitwise_and), "|": (2, torch.bitwise_or),
    "^": (2, torch.bitwise_xor), "<<": (2, torch.bitwise_left_shift), ">>": (2, torch.bitwise_right_shift), "<": (2, torch.lt),
    "<=": (2, torch.le), ">": (2, torch.gt), ">=": (2, torch.ge), "==": (2, torch.eq), "!=": (2, torch.ne), "&&": (2, torch.logical_and),
    "||": (2, torch.logical_or), "?:": (3, _promoted(torch.where)),
}


class _Rows:
    """What programs name, for some rows of all batches and heads."""

    def __init__(self, form, args, sizes, first, end, device):
        shaped = lambda values, dim: values.view([-1 if i == dim else 1 for i in range(4)])  # noqa: E731
        count = lambda begin, stop: torch.arange(begin, stop, device=device)  # noqa: E731
        head, row = count(0, sizes["heads"]), count(first, end)
        self.form, self.args, self.sizes, self.device = form, args, sizes, device
        self.places = {"b": shaped(count(0, sizes["batch"]), 0), "h": shaped(head, 1),
                       "hk": shaped(head // max(1, sizes["heads"] // max(1, sizes["kv_heads"])), 1), "q": shaped(row, 2),
                       "k": shaped(count(0, sizes["seq_kv"]), 3), "p": shaped(row + sizes["seq_kv"] - sizes["seq_q"], 2),
                       **{name: _number(size, False, device) for name, size in sizes.items()}}
        self.lets = {}

    def scored(self, scores):
        self.places["s"], self.lets = scores, {}
        return self.run(self.form.score) if self.form.score else scores

    def run(self, program):
        stack = []
        for word in program.split():
            count, function = _OPERATORS.get(word, (0, None))
            if word.endswith("]"):
                count, function = int(word[word.index("[") + 1:-1]), functools.partial(self.read, word[:word.index("[")])
            operands = stack[len(stack) - count:]
            del stack[len(stack) - count:]
            stack.append(function(*operands) if function else self.value(word))
        return stack[0]

    def value(self, word):
        if word[0] == "@":
            return self.places[word[1:]]
        if word[0] == "$":
            return self.scalar(word[1:])
        if word[0] == "=":
            if word[1:] not in self.lets:
                self.lets[word[1:]] = self.run(dict(self.form.lets)[word[1:]])
            return self.lets[word[1:]]
        real = "." in word or "n" in word  # 1.5, -inf
        return _number(float(word) if real else int(word), real, self.device)

    def scalar(self, name):
        value, real = self.args[name], self.form.elements[name] != "i32"
        if isinstance(value, torch.Tensor):
            number = value.reshape(()).to(torch.float32 if real else torch.int64)
            return number if real else number.clamp(*self.form.ranges[name])  # as kernels do, which do not wait for it
        return _number(float(value) if real else int(value), real, self.device)

    def extent(self, extent):
        return extent if isinstance(extent, int) else self.sizes[extent] if extent in self.sizes else int(self.args[extent])

    def read(self, name, *indices):
        """Indices outside are the nearest inside; sizes of 1, and dimensions in front that are not there, are repeated."""
        tensor, element = self.args[name], self.form.elements[name]
        tensor = tensor.reshape((1,) * (len(indices) - tensor.dim()) + tensor.shape)
        *before, last = self.form.extents[name]
        if not all(map(self.extent, (*before, last))):
            return _number(0, element in ("f16", "bf16", "f32"), self.device)
        if element == "bit":
            bit = indices[-1].clamp(0, self.extent(last) - 1)
            indices = *indices[:-1], bit // 32
        place = tuple(index.clamp(0, size - 1) for index, size in zip(indices, tensor.shape))
        found = tensor[place]
        if element == "bit":
            return ((found >> (bit % 32)) & 1).bool()
        return found.float() if tensor.is_floating_point() else found.long()


def _attend(rows, q, k, v, scale):
    """O and LSE of some rows; all [batch, heads, rows, columns], K and V of all heads. A row that sees nothing gives 0 and -inf."""
    scores = rows.scored(q @ k.transpose(-1, -2) * scale)
    scores = scores.expand(*q.shape[:3], k.shape[2])
    if rows.form.mask:
        scores = scores.masked_fill(~rows.run(rows.form.mask), -math.inf)
    sink = rows.run(rows.form.sink).float().expand((*q.shape[:3], 1)) if rows.form.sink else None
    weights, sums = _by_torch.softmax(scores, sink)
    o = weights @ v
    return o * rows.run(rows.form.v_scale).to(o.dtype) if rows.form.v_scale else o, sums


class Attention:
    """One call: q, k and v are in the layout that it was given in."""

    def __init__(self, form, args, q, k, v, scale, bshd):
        head, row = (2, 1) if bshd else (1, 2)
        self.form, self.args, self.bshd = form, args, bshd
        self.scale = q.shape[-1] ** -0.5 if scale is None else scale
        self.sizes = {"batch": q.shape[0], "heads": q.shape[head], "kv_heads": k.shape[head], "seq_q": q.shape[row],
                      "seq_kv": k.shape[row]}
        self.device = q.device

    def steps(self):
        sizes = self.sizes
        rows = max(1, _MOST_SCORES // max(1, sizes["batch"] * sizes["heads"] * sizes["seq_kv"]))
        return [(first, min(first + rows, sizes["seq_q"])) for first in range(0, sizes["seq_q"], rows)]

    def heads_of(self, q, k, v):
        q, k, v = (t.transpose(1, 2) if self.bshd else t for t in (q, k, v))
        groups = q.shape[1] // max(1, k.shape[1])
        return q.float(), *(t.float().repeat_interleave(groups, 1) for t in (k, v))

    def step(self, first, end, q, k, v, args):
        q, k, v = self.heads_of(q, k, v)
        with torch.autocast(self.device.type, enabled=False):
            return self.attend_rows(first, end, q, k, v, args)

    def attend_rows(self, first, end, q, k, v, args):
        return _attend(_Rows(self.form, args, self.sizes, first, end, self.device), q[:, :, first:end], k, v, self.scale)

    def forward(self, q, k, v):
        parts = [self.step(*step, q, k, v, self.args) for step in self.steps()]
        batch, heads, rows = (self.sizes[name] for name in ("batch", "heads", "seq_q"))
        o = torch.cat([o for o, _ in parts], 2) if parts else q.new_zeros((batch, heads, rows, v.shape[-1]), dtype=torch.float32)
        lse = torch.cat([lse for _, lse in parts], 2) if parts else o[..., 0]
        return (o.transpose(1, 2) if self.bshd else o).to(q.dtype).contiguous(), lse

    def backward(self, grad, grad_lse, q, k, v, names, tensors):
        """Gradients of q, k, v and of those of the args that have one, computed anew, some rows at a time."""
        inputs = [t.detach().requires_grad_(t.is_floating_point()) for t in (q, k, v, *tensors)]
        wanted = [t for t in inputs if t.requires_grad]
        sums = [torch.zeros_like(t, dtype=torch.float32) for t in wanted]
        grad = grad.transpose(1, 2) if self.bshd else grad
        for first, end in self.steps():
            with torch.enable_grad():
                o, lse = self.step(first, end, *inputs[:3], {**self.args, **dict(zip(names, inputs[3:]))})
                outputs, given = [o], [grad[:, :, first:end].float()]
                if grad_lse is not None:
                    finite = lse.detach() != -math.inf
                    outputs, given = [*outputs, lse.masked_fill(~finite, 0.0)], [*given, grad_lse[:, :, first:end]]
                found = torch.autograd.grad(outputs, wanted, given, allow_unused=True, materialize_grads=True)
            for total, part in zip(sums, found):
                total += part
        gradients = iter(total.to(t.dtype) for total, t in zip(sums, wanted))
        return [next(gradients) if t.requires_grad else None for t in inputs]


class _WithGradient(torch.autograd.Function):
    """What `compute` gives, O and LSE, with gradients by PyTorch."""

    @staticmethod
    def forward(ctx, attention, compute, names, q, k, v, *tensors):
        ctx.attention, ctx.names = attention, names
        ctx.save_for_backward(q, k, v, *tensors)
        ctx.set_materialize_grads(False)
        return compute(q, k, v, tensors)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        _arguments.refuse_second_gradient("attention of a form")
        q, k, v, *tensors = ctx.saved_tensors
        if grad is None:
            grad = torch.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype, device=q.device)
        return None, None, None, *ctx.attention.backward(grad, grad_lse, q, k, v, ctx.names, tensors)


class _WithGradientOfScores(torch.autograd.Function):
    """What `compute` gives, O and LSE, with gradients from these: by our programs, else by PyTorch's flash attention, which has windows; one
    through LSE is computed anew there."""

    @staticmethod
    def forward(ctx, attention, compute, form, names, q, k, v, *tensors):
        o, lse = compute(q, k, v, tensors)
        ctx.attention, ctx.form, ctx.names = attention, form, names
        ctx.save_for_backward(q, k, v, o, lse, *tensors)
        ctx.set_materialize_grads(False)
        return o, lse

    @staticmethod
    def backward(ctx, grad, grad_lse):
        _arguments.refuse_second_gradient("attention of a form")
        q, k, v, o, lse, *tensors = ctx.saved_tensors
        grad = torch.zeros_like(o) if grad is None else grad
        attention, bshd = ctx.attention, ctx.attention.bshd
        scores = _forms.scores_of(ctx.form, {**attention.args, **dict(zip(ctx.names, tensors))})
        wanted = {name: tensor for name, tensor, wants in zip(ctx.names, tensors, ctx.needs_input_grad[7:]) if wants}
        if _gradients.has_program(q, k, v, bshd, scores) and (scores.bias is None or _gradients.are_weights_known(lse)):
            of_slopes = torch.zeros_like(wanted["slope"], dtype=torch.float64) if "slope" in wanted else None
            of_bias = torch.zeros_like(_gradients.with_four(wanted["bias"]), dtype=torch.float32) if "bias" in wanted else None
            found = _gradients.backward(grad, q, k, v, o, lse, attention.scale, None, bshd, grad_lse=grad_lse, scores=scores, of_slopes=of_slopes,
                                        of_bias=of_bias)
            of = {"slope": lambda t: of_slopes.to(t.dtype), "bias": lambda t: of_bias.reshape(t.shape).to(t.dtype),
                  "sinks": lambda t: _gradients.of_sinks(grad, o, lse, t, bshd, grad_lse)}
            return None, None, None, None, *found, *(of[name](wanted[name]) if name in wanted else None for name in ctx.names)
        window = _forms.window_of(ctx.form, attention.args)
        if grad_lse is not None or window is None:
            return None, None, None, None, *attention.backward(grad, grad_lse, q, k, v, ctx.names, tensors)
        return None, None, None, None, *_by_torch.backward_of_window(grad, q, k, v, o, lse, attention.scale, window, bshd)


def with_gradient(attention, compute, q, k, v, form=None):
    """O and LSE by compute(q, k, v, args), which records nothing, with a gradient. form: its name, where _forms.Scores can say what it is and
    the gradient is made from O and LSE."""
    args = attention.args
    names = [name for name, value in args.items() if isinstance(value, torch.Tensor)]
    call = lambda q, k, v, tensors: compute(q, k, v, {**args, **dict(zip(names, tensors))})  # noqa: E731
    tensors = [args[name] for name in names]
    if form is not None:
        return _WithGradientOfScores.apply(attention, call, form, names, q, k, v, *tensors)
    return _WithGradient.apply(attention, call, names, q, k, v, *tensors)
