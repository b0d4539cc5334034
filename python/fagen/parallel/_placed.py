# fagen: forms with places: the same score and mask for some rows, keys and heads of a longer sequence.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A form names rows and keys by their numbers. One with places adds where a call's rows, keys and heads begin, and how many there
are of each in all, as params; tensors stay those of the whole sequence. Its kernels are compiled when they are first asked for."""
import functools

from .. import _forms, _forms_by_torch, _kernels, errors

_MOST = 1 << 28  # rows or keys of the whole sequence

_ROW0, _KEY0, _ROWS, _KEYS = "placed_row", "placed_key", "placed_rows", "placed_keys"
_HEAD0, _HEADS, _KV_HEADS = "placed_head", "placed_heads", "placed_kv_heads"
# What a program names, as it is said with places; postfix.
_WORDS = {
    "@q": f"@q ${_ROW0} +", "@k": f"@k ${_KEY0} +", "@p": f"@q ${_ROW0} + ${_KEYS} + ${_ROWS} -",
    "@h": f"@h ${_HEAD0} +", "@hk": f"@h ${_HEAD0} + ${_KV_HEADS} * ${_HEADS} floor_div",
    "@seq_q": f"${_ROWS}", "@seq_kv": f"${_KEYS}", "@heads": f"${_HEADS}", "@kv_heads": f"${_KV_HEADS}",
}
_EXTENTS = {"seq_q": _ROWS, "seq_kv": _KEYS, "heads": _HEADS, "kv_heads": _KV_HEADS}
_RANGES = {name: (0, _MOST) for name in (_ROW0, _KEY0, _ROWS, _KEYS)}
_RANGES.update({_HEAD0: (0, 4096), _HEADS: (1, 4096), _KV_HEADS: (1, 4096)})


class Placed:
    """A form of `find` with places. with_sink: whether its rows' sums take the sink, which one call of each row does."""

    def __init__(self, form, ranges, with_sink):
        self._ranges = ranges  # of its params: (low, high, ascends)
        said = lambda program: " ".join(_WORDS.get(word, word) for word in program.split())  # noqa: E731
        lets = tuple((name, said(program)) for name, program in form.lets)
        score, mask, sink = said(form.score), said(form.mask), said(form.sink) if with_sink else ""
        v_scale = said(form.v_scale)
        extents = {name: tuple(_EXTENTS.get(one, one) for one in sizes) for name, sizes in form.extents.items()}
        used = _reached(dict(lets), (score, mask, sink, v_scale))
        lets = tuple((name, program) for name, program in lets if f"={name}" in used)
        tensors = {name: sizes for name, sizes in extents.items() if any(word.startswith(f"{name}[") for word in used)}
        names = {word[1:] for word in used if word[0] == "$"} | {one for sizes in tensors.values() for one in sizes if isinstance(one, str)}
        self.places = tuple(name for name in _RANGES if name in names)
        kept = {name: element for name, element in form.elements.items() if name in names or name in tensors}
        taken = {**{name: _RANGES[name] for name in self.places}, **{name: one for name, one in form.ranges.items() if name in kept}}
        self.form = _forms_by_torch.Form(lets, score, mask, sink, v_scale, {**{name: "i32" for name in self.places}, **kept}, tensors,
                                         taken)

    def args(self, given, piece, sizes, head0):
        """The args of a call: those given, and where its rows, keys and heads begin. sizes are those of the whole."""
        at = {_ROW0: piece.row0, _KEY0: piece.key0, _ROWS: sizes["seq_q"], _KEYS: sizes["seq_kv"], _HEAD0: head0,
              _HEADS: sizes["heads"], _KV_HEADS: sizes["kv_heads"]}
        return {**{name: at[name] for name in self.places}, **{name: given[name] for name in self.form.elements if name in given}}

    def text(self):
        """The form as a spec says it."""
        form = self.form
        lines = [f"  param {name}: {form.elements[name]}{self._extents(name)}{self._range(name)};" for name in form.elements]
        lines += [f"  let {name} = {_infix(program)};" for name, program in form.lets]
        results = (("score", form.score), ("mask", form.mask), ("sink", form.sink), ("v_scale", form.v_scale))
        lines += [f"  {what} = {_infix(program)};" for what, program in results if program]
        return "form placed {\n" + "\n".join(lines) + "\n}\n"

    def _extents(self, name):
        return f"[{', '.join(map(str, self.form.extents[name]))}]" if name in self.form.extents else ""

    def _range(self, name):
        low, high, ascends = self._ranges.get(name) or (*_RANGES[name], False)
        said = "" if low is None else f" in [{low!r}, {high!r}]"
        return (" ascending" if ascends else "") + said


def _reached(lets, programs):
    """The words of programs, and of the lets that they name."""
    found, todo = set(), " ".join(programs).split()
    while todo:
        word = todo.pop()
        if word not in found:
            found.add(word)
            todo += lets[word[1:]].split() if word[0] == "=" and word[1:] in lets else []
    return found


_CALLS = {"abs", "f32", "i32", "exp", "exp2", "log", "log2", "sqrt", "tanh", "floor_div", "floor_mod", "min", "max"}
_PREFIX = {"neg": "-", "!": "!"}


def _infix(program):
    """A postfix program as a spec writes it, each operation in brackets."""
    stack = []
    for word in program.split():
        if word.endswith("]"):
            count = int(word[word.index("[") + 1:-1])
            said = f"{word[:word.index('[')]}[{', '.join(_popped(stack, count))}]"
        elif word in _forms_by_torch._OPERATORS:
            operands = _popped(stack, _forms_by_torch._OPERATORS[word][0])
            said = _said(word, operands)
        else:
            said = word[1:] if word[0] in "@$=" else word
        stack.append(said)
    return stack[0]


def _popped(stack, count):
    operands = stack[len(stack) - count:]
    del stack[len(stack) - count:]
    return operands


def _said(word, operands):
    if word in _CALLS:
        return f"{word}({', '.join(operands)})"
    if word in _PREFIX:
        return f"({_PREFIX[word]}{operands[0]})"
    if word == "?:":
        return f"({operands[0]} ? {operands[1]} : {operands[2]})"
    return f"({operands[0]} {word} {operands[1]})"


@functools.lru_cache(maxsize=None)
def placed(directories, tables, name, params, with_sink):
    """The Placed of a form of kernel sets by its name and the names of its params; None where there is none."""
    form = _forms_by_torch.find(directories, name, params)
    if form is None:
        return None
    taken = [param for param in params if param.startswith("placed_")]
    if taken:
        raise errors.Error(f"the form {name} has a param '{taken[0]}'; names that begin with placed_ are those of places")
    ranges = {p.name: (*_range_of(p, form.elements[p.name]), p.ascends) for p in _forms.find(tables, name, params)}
    return Placed(form, ranges, with_sink)


def _range_of(param, element):
    """(low, high) as a spec gives them; (None, None) where they are the type's own."""
    if element == "i32":
        return int(param.low), int(param.high)
    if element in ("u8", "bit") or max(abs(param.low), abs(param.high)) > 1e38 or param.low == param.high:
        return None, None
    return float(param.low), float(param.high)


_SCHEDULES = {
    "sm_90a": "tile = 128 x 128; warps = 8; mma = wgmma; copy = tma; roles = specialized; stages = 2; overlap = both; "
              "rescale = optimistic; grid = longest_first;",
    "sm_80": "tile = 128 x 64; warps = 4; mma = mma_sync; copy = cp_async; stages = 2; refill = late; q_in = registers; "
             "when head_dim == 128 { warps = 8; }",
}


def spec_of(form, dtype, head_dim, target):
    """The spec of the kernels of a form with places."""
    return (f"target {target};\n{form.text()}kernel placed {{\n  problem {{ dtype = {dtype}; head_dim = {head_dim}; form = placed; }}\n"
            f"  schedule {{ {_SCHEDULES[target]} }}\n}}\n")


@functools.lru_cache(maxsize=None)
def kernels(form, dtype, head_dim, capability):
    """The KernelSet of a Placed for a GPU; Unsupported where the compiler has no kernel for it."""
    target = "sm_90a" if capability == 90 else "sm_80"
    try:
        return _kernels.compile(spec_of(form, dtype, head_dim, target))
    except errors.SpecError as error:
        said = str(error).split("\n")[0]
        raise errors.Unsupported(f"a form with places has no kernel for {dtype}, head_dim {head_dim} and {target}: {said}") from None


def form_of(directories, name, params):
    """The form itself, as the manifest has it; None where there is none."""
    return _forms_by_torch.find(directories, name, params)
