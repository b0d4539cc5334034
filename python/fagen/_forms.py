# fagen: forms: scores, masks and sinks that a kernel set's spec writes down, and their args by name.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What Python knows of a form is what tables say: the names of its params, and which are integers. Imports no framework."""
import ctypes
import difflib
import functools
import numbers
from collections.abc import Mapping
from typing import NamedTuple

from . import _structs, errors

BIT, _I32 = 1, 3  # FAGEN_ELEMENT_...
_ASCENDING = 1  # FAGEN_PARAM_ASCENDING
_KIND_I32, _KIND_F32, _KIND_TENSOR = 1, 2, 3  # FAGEN_ARG_...
_FORMS_END = _structs.Table.form_size.offset + _structs.Table.form_size.size


ALL_KEYS = 1 << 30  # a window that binds nothing


class Param(NamedTuple):
    name: str
    element: int  # FAGEN_ELEMENT_...
    rank: int
    low: float
    high: float
    ascends: bool  # along its last extent, as the caller promises


def _steps(address, count, size, kind):
    return [kind.from_address(address + i * size) for i in range(count)]


@functools.lru_cache(maxsize=None)
def forms_of(tables):
    """[(name, params)] of tables by their addresses: each form once."""
    found = []
    for address in tables:
        table = _structs.Table.from_address(address)
        forms = _steps(table.forms, table.form_count, table.form_size, _structs.Form) if table.struct_size >= _FORMS_END else ()
        for form in forms:
            params = _steps(form.params, form.param_count, form.param_size, _structs.FormParam)
            one = form.name.decode(), tuple(Param(p.name.decode(), p.element, p.rank, p.low, p.high, bool(p.flags & _ASCENDING))
                                             for p in params)
            if one not in found:
                found.append(one)
    return found


def find(tables, form, names):
    """The params of the tables' first form of this name that has just these; None where there is none."""
    return next((params for name, params in forms_of(tuple(tables)) if name == form and {p.name for p in params} == set(names)), None)


def check(function, tables, form, names):
    """The params of the form that has these names; Error where no table has such a form."""
    params = find(tables, form, names)
    if params is not None:
        return params
    known = {}
    for name, params in forms_of(tuple(tables)):
        known.setdefault(name, [p.name for p in params])
    if form in ("causal", "none") and form not in known:
        raise errors.Error(f"{function}: form is {form!r}, which is no form; give causal={form == 'causal'}")
    if form not in known:
        raise errors.Error(f"{function}: form is {form!r}{_meant(form, known)}; there are {', '.join(known)}" if known else
                           f"{function}: form is {form!r}; these kernels have no forms")
    its = f"its params are {', '.join(known[form])}" if known[form] else "it has no params"
    for name in names:
        if name not in known[form]:
            raise errors.Error(f"{function}: the form {form} has no param '{name}'{_meant(name, known[form])}; {its}")
    missing = next(name for name in known[form] if name not in names)
    raise errors.Error(f"{function}: '{missing}' of the form {form} is missing; {its}")


def check_numbers(function, form, params, args):
    """Error for a number outside of its param's range. Numbers on the GPU are not read here."""
    for param in params:
        value = args[param.name]
        if param.rank == 0 and isinstance(value, (int, float)) and not param.low <= value <= param.high:
            raise errors.Error(f"{function}: {param.name} is {value}; the form {form} takes {shown(param.low)} to {shown(param.high)}")


def shown(number):
    """An end of a range, in figures as specs write it."""
    return str(int(number)) if abs(number) < 1 << 53 and number == int(number) else f"{number:.9g}"


def _meant(word, known):
    near = difflib.get_close_matches(str(word), list(known), 1)
    return f", did you mean '{near[0]}'?" if near else ""


def number(value):
    """A number of Python, whoever's number it was; anything else as it is."""
    if isinstance(value, (bool, int, float)) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def describe(problem, tables, form, args):
    """Puts a form and its args into a problem of the C ABI: numbers by name; anything else stands for a tensor."""
    known = {p.name: p for p in find(tables, form, args) or ()}
    array = (_structs.Arg * len(args))()
    for arg, (name, value) in zip(array, args.items()):
        param, is_number = known.get(name), isinstance(value, (int, float))
        arg.name = name.encode()
        if param and param.rank or (param is None and not is_number):
            arg.kind = _KIND_TENSOR
        elif param and param.element == _I32:
            arg.kind, arg.i32 = _KIND_I32, int(value) if is_number else 0
        else:
            arg.kind, arg.f32 = _KIND_F32, float(value) if is_number else 0.0
        if not is_number and arg.kind != _KIND_TENSOR:
            arg.data = 256  # on the device: not read here
    problem.mask, problem.form, problem.args, problem.arg_count = 0, form.encode(), ctypes.addressof(array), len(args)
    problem._kept = array  # as long as the problem


def any_args(tables, form, names):
    """Args that the form takes: for questions in which their values say nothing."""
    return {p.name: None if p.rank else p.low for p in find(tables, form, names)}


def together(function, form, args, named):
    """The args of a call: those given by keyword, and those of form_args, whose names may be a function's own."""
    if form is None and (named or args):
        name = next(iter(named or args))
        if named:
            raise errors.ArgumentError(f"{function}() got an unexpected keyword argument '{name}'{_instead_of(function, name)}")
        raise errors.Error(f"{function}: form_args has '{name}', and there is no form: name it by form=")
    if args is not None and not isinstance(args, Mapping):
        raise errors.Error(f"{function}: form_args is {args!r}; it is a dict of the form's params")
    twice = sorted(set(args or ()) & set(named))
    if twice:
        raise errors.Error(f"{function}: '{twice[0]}' is given by keyword and in form_args")
    return {name: number(value) for name, value in {**named, **(args or {})}.items()}


_OPTIONS = {"causal", "scale", "layout", "return_lse", "form", "form_args", "fallback", "kernels", "out", "invariant"}
_NAMES_OF_OTHERS = {"is_causal": "causal", "softmax_scale": "scale", "sm_scale": "scale", "attn_mask": 'form="visible" or form="bias"',
                    "mask": 'form="visible"', "attn_bias": 'form="bias"', "window_size": 'form="window" or form="local"',
                    "sliding_window": 'form="window"', "alibi_slopes": 'form="alibi"', "logits_soft_cap": 'form="softcap"',
                    "s_aux": 'form="sink"', "return_attn_probs": "return_lse", "lse": "return_lse"}
_NEEDLESS = {"enable_gqa": "k and v may have fewer heads than q without it", "deterministic": "the same call always gives the same bits"}


def _instead_of(function, name):
    """What may be meant by an argument that the function does not have, to go after its name."""
    from . import _kernels
    if name in ("dropout", "dropout_p"):
        return "; kernels have no dropout: leave it out, or call scaled_dot_product_attention"
    if name in _NEEDLESS:
        return f"; leave it out: {_NEEDLESS[name]}"
    if function == "explain" and name in ("mask", "attn_mask"):
        return "; causal=True and form= say it"
    if name in _NAMES_OF_OTHERS:
        return f"; here it is {_NAMES_OF_OTHERS[name]}"
    forms = [form for form, params in _kernels.ready().forms.items() if name in params]
    if forms:
        return f"; it is a param of a form: give form=\"{forms[0]}\"{' or one of ' + ', '.join(forms[1:]) if forms[1:] else ''}"
    if name in _kernels.ready().forms:
        return f"; it is a form: form=\"{name}\", whose params are {', '.join(_kernels.ready().forms[name])}"
    return _meant(name, _OPTIONS) or f"; it takes {', '.join(sorted(_OPTIONS))}, and with form= the form's params"


def shipped(*, window=None, chunk=None, softcap=None, slopes=None, sinks=None):
    """(form, args) of the package's forms (specs/forms.fa) for causal attention with these, or None where there is no such.

    window: how many keys a row sees, its own the last; chunk: it sees those of its own chunk. slopes and sinks are tensors of the heads.
    """
    given = {"window": window, "chunk": chunk, "cap": softcap, "slope": slopes, "sinks": sinks}
    args = {name: number(value) for name, value in given.items() if value is not None}
    names = {("window",): "window", ("chunk",): "chunked", ("cap",): "softcap", ("window", "cap"): "gemma2", ("slope",): "alibi", ("sinks",): "sink",
             ("window", "sinks"): "gpt_oss"}
    form = names.get(tuple(args))
    return None if form is None else (form, args)


class Scores(NamedTuple):
    """What becomes of scores, as far as programs have its gradient: those of keys further than `left` before and `right` after the row's place
    are not seen (-1: a side is open), then cap * tanh(score / cap) if cap is not 0, or slopes[head] times the way from the row's place to
    the key is added; `sinks`, one of each head, join the sum of weights."""

    left: int = -1
    right: int = -1
    cap: float = 0.0
    slopes: object = None
    sinks: object = None
    bias: object = None  # the args of `bias`, `visible` or `bias_visible`: what is added to scores, and which are seen, by row and key
    keys: object = None  # (form, its args): a row sees an interval of keys that tensors say, and left and right are open
    is_of_block: bool = False  # a part of the rows and keys, whose bounds may be negative


_PARAMS = {"window": ("window",), "local": ("left", "right"), "softcap": ("cap",), "gemma2": ("cap", "window"), "alibi": ("slope",),
           "sink": ("sinks",), "gpt_oss": ("window", "sinks"), "rows": ("first", "last"), "documents": ("first",),
           "same_document": ("document",), "prefix": ("prefix",), "chunked": ("chunk",),
           "bias": ("bias",), "visible": ("visible",), "bias_visible": ("bias", "visible")}
_TENSORS = ("slope", "sinks", "first", "last", "document", "prefix", "bias", "visible")


def scores_of(form, args):
    """What a form of the package is (specs/forms.fa), where Scores can say it and its numbers are Python's; None of any other."""
    if set(_PARAMS.get(form, ())) != set(args) or not args:
        return None
    if any(not isinstance(value, (int, float) if name == "cap" else int) for name, value in args.items() if name not in _TENSORS):
        return None
    if form in ("rows", "documents", "same_document", "prefix", "chunked"):
        return Scores(keys=(form, args))
    if form in ("bias", "visible", "bias_visible"):
        return Scores(bias=args)
    if form == "local":
        return Scores(args["left"], args["right"])
    return Scores(args["window"] - 1 if "window" in args else -1, 0, float(args.get("cap", 0.0)), args.get("slope"), args.get("sinks"))


def window_of(form, args):
    """(left, right) of a form of the package that is a mask of these bounds and nothing else; None of any other."""
    return scores_of(form, args)[:2] if form in ("window", "local") and scores_of(form, args) else None


def lacks(tables, form, args):
    """Why the tables' form does not take these args, in words; None where names and numbers are right."""
    ranges = _ranges(tuple(tables), form, tuple(args))
    if ranges is None:
        return f"no kernel has the form {form}({', '.join(args)})"
    for name, low, high in ranges:
        value = args[name]
        if isinstance(value, (int, float)) and not low <= value <= high:
            return f"{name} is {value}; the form {form} takes {shown(low)} to {shown(high)}"
    return None


def _ranges(tables, form, names):
    """(name, low, high) of a form's numbers; None where the tables have no such form."""
    params = find(tables, form, names)
    return None if params is None else tuple((p.name, p.low, p.high) for p in params if p.rank == 0)


_ranges._dynamo_marked_constant = True  # graphs take the answer: tables do not change
