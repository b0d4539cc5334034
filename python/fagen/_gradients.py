# fagen: gradients of attention by programs of the package: the same bits on every run.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls have them, and how these are taken apart. specs/backward.fair.in is what runs, specs/backward_sync.fair.in where there is no
wgmma."""
import functools
import math

import torch
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from . import _kernels, _torch_programs
from ._forms import Scores

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
_HEAD_DIMS = (64, 96, 128, 192, 256)
_FEW_HEAD_DIMS = (64, 128)  # of slopes, biases and intervals of keys
_OF_WGMMA, _OLDEST = (9, 0), (8, 0)  # compute capabilities
_ROWS = 128  # of a tile: dS has a multiple of them
_MOST_SCRATCH = 1 << 30  # bytes of dS at a time
_MOST_ROWS, _MOST_HEADS = 1 << 20, 4096  # the program's sizes
_LARGEST_LSE = 8192.0  # beyond, a weight is off by more than 2^-10 of itself
_BYTES = 16  # that rows begin at multiples of


@functools.lru_cache(maxsize=None)
def _program(text, kind, head_dim, scores):
    return _torch_programs.program(_kernels.ready_set("backward" + text), f"backward{text}_{kind}_d{head_dim}{scores}")


def _is_plain(tensor):
    """Whether it is memory, or stands for that in a graph. What others are made of, as DTensors, has gradients of its own."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) or isinstance(tensor, (FakeTensor, FunctionalTensor))


_text_when_emulated = ""


def _text_for(device):
    """What the names of its programs have after `backward`: nothing with wgmma, `_sync` on other GPUs; None where it runs none."""
    if device.type != "cuda":
        return _text_when_emulated if _torch_programs.is_emulated() else None
    capability = torch.cuda.get_device_capability(device)
    return "" if capability == _OF_WGMMA else "_sync" if capability >= _OLDEST else None


def _scratch_of_head(rows, keys):
    """Bytes of dS of one head of one batch."""
    return 2 * keys * -(-rows // _ROWS) * _ROWS


def _head_dims(scores, text):
    """Of these scores, by programs of this text."""
    if scores is None or (scores.slopes is None and scores.keys is None and scores.bias is None):
        return _HEAD_DIMS
    if scores.bias is not None:
        return _FEW_HEAD_DIMS
    return () if text else _FEW_HEAD_DIMS


def is_slower(device):
    """Whether PyTorch's flash attention has a plain or causal gradient faster, and bits need not repeat: on GPUs without wgmma."""
    return (device.type == "cuda" and torch.cuda.get_device_capability(device) != _OF_WGMMA
            and not torch.are_deterministic_algorithms_enabled())


def has_program(q, k, v, bshd, scores=None):
    """Whether backward() takes these: float16 or bfloat16, head dims up to 256, on a GPU of compute capability 8.0 or newer;
    with a bias up to 128; slopes and intervals of keys on one of 9.0."""
    if not all(_is_plain(t) for t in (q, k, v)):
        return False
    if scores is not None and scores.slopes is not None and scores.slopes.dim() != 1:
        return False
    text = _text_for(q.device)
    if text is None or q.dtype not in _TYPES or max(q.shape[-1], v.shape[-1]) > max(_head_dims(scores, text), default=0):
        return False
    q, k = (_heads_first(t, bshd) for t in (q, k))
    return 0 not in (q.numel(), k.numel()) and max(q.shape[0], q.shape[2], k.shape[2]) <= _MOST_ROWS and q.shape[1] <= _MOST_HEADS


def _heads_first(tensor, bshd):
    return tensor.transpose(1, 2) if bshd else tensor


def _for_boxes(tensor):
    """As the copy engine takes it: elements of a row side by side, rows at multiples of 16 bytes."""
    each = _BYTES // tensor.element_size()
    fits = tensor.stride(-1) == 1 and tensor.storage_offset() % each == 0 and all(
        stride % each == 0 and stride > 0 for stride in tensor.stride()[:-1])
    if fits:
        return tensor
    if tensor.shape[-1] % each == 0:
        return tensor.contiguous(memory_format=torch.contiguous_format)
    padded = tensor.new_empty((*tensor.shape[:-1], -(-tensor.shape[-1] // each) * each))[..., :tensor.shape[-1]]
    return padded.copy_(tensor)


def _like(tensor):
    """Memory for its gradient: of its strides, where elements of a row lie side by side."""
    same = torch.empty_like(tensor)
    return same if same.stride(-1) == 1 else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _pieces(batch, kv_heads, group, scratch):
    """(batches, heads of K/V, query heads of each) that a launch takes, of `scratch` bytes for each query head of a batch."""
    most = max(1, _MOST_SCRATCH // scratch)
    if most < group:
        return 1, 1, max(part for part in range(1, most + 1) if group % part == 0)
    heads = min(kv_heads, most // group)
    return min(batch, max(1, most // group // heads)), heads, group


def are_weights_known(lse):
    """Whether LSE says each weight about as well as P is rounded: of rows whose scores are all -1e9 it has lost the logarithm of the sum. Waits for
    the GPU, but while a graph is captured, where the answer is yes."""
    if lse.is_cuda and torch.cuda.is_current_stream_capturing():
        return True
    return not bool(((lse.abs() > _LARGEST_LSE) & lse.isfinite()).any())


def backward(grad, q, k, v, o, lse, scale, causal, bshd, *, grad_lse=None, scores=None, of_slopes=None, of_bias=None):
    """Gradients of q, k and v, laid out as these are, from those of O and of LSE (None: of no effect).

    lse, grad_lse: float32 [batch, heads, rows], natural logarithms. scores: which keys a row sees, and what becomes of scores, in place of
    `causal`. LSE is of scores as they are then, a sink among them. of_slopes: float64 [heads], to which the gradient of its slopes is added. of_bias: float32, of
    the bias' shape with four dimensions, likewise.
    """
    scores = scores or Scores(right=0 if causal else -1)
    width = min(d for d in _head_dims(scores, _text_for(q.device)) if d >= max(q.shape[-1], v.shape[-1]))
    if width != q.shape[-1] or width != v.shape[-1]:  # zeros after the columns add nothing
        padded = (torch.nn.functional.pad(t, (0, width - t.shape[-1])) for t in (grad.to(q.dtype), q, k, v, o))
        found = backward(*padded, lse, scale, causal, bshd, grad_lse=grad_lse, scores=scores, of_slopes=of_slopes, of_bias=of_bias)
        return tuple(t[..., :like.shape[-1]] for t, like in zip(found, (q, k, v)))
    results = [_like(t) for t in (q, k, v)]
    given = [_heads_first(t, bshd) for t in (grad.to(q.dtype), q, k, v, o)]
    into = [_heads_first(t, bshd) for t in results]
    rows, keys = q.shape[1 if bshd else 2], k.shape[1 if bshd else 2]
    of_rows = [lse] if grad_lse is None else [lse, grad_lse]
    if scores.keys is not None:
        scores = scores._replace(keys=_intervals(*scores.keys, q.shape[0], rows, keys, q.device))
    if scores.bias is not None:
        scores = scores._replace(bias=_bias_of(scores.bias, (*given[1].shape[:3], keys), q.device))
    if _scratch_of_head(rows, keys) <= _MOST_SCRATCH:
        _backward_of_block(*given, of_rows, scale, scores, *into, of_slopes, of_bias=of_bias)
        return tuple(results)
    sums = [torch.zeros(t.shape, dtype=torch.float32, device=t.device) for t in into]
    for its_rows, its_keys, moved, seen in _blocks(rows, keys, scores):
        grad, q, k, v, o = (t[:, :, one] for t, one in zip(given, (its_rows, its_rows, its_keys, its_keys, its_rows)))
        parts = [torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v)]
        its_lse, *its_grad = (t[:, :, its_rows] for t in of_rows)
        if moved and scores.slopes is not None:
            its_lse = its_lse + scores.slopes.float()[:, None] * moved
        its_bias = None if of_bias is None else _part(of_bias, slice(None), slice(None), its_rows, its_keys)
        _backward_of_block(grad, q, k, v, o, [its_lse, *its_grad], scale, seen, *parts, of_slopes, moved, its_bias)
        for total, one, part in zip(sums, (its_rows, its_keys, its_keys), parts):
            total[:, :, one] += part
    for result, total in zip(into, sums):
        result.copy_(total)
    return tuple(results)


def of_sinks(grad, o, lse, sinks, bshd, grad_lse=None):
    """The gradient of one score of each head that joins the sum of its rows' weights."""
    grad, o = (_heads_first(t, bshd) for t in (grad, o))
    of_rows = (grad.float() * o).sum(-1)
    of_rows = of_rows if grad_lse is None else of_rows - grad_lse
    weights = torch.exp(sinks.float()[:, None] - lse)
    return -(weights * of_rows).sum((0, 2)).to(sinks.dtype)


def _bounds(rows, keys, scores):
    """(left, right): how many keys before and after its place a row sees, all where a side is open; the last row stands at the last key."""
    return keys if scores.left < 0 else min(scores.left, keys), rows if scores.right < 0 else min(scores.right, rows)


def _blocks(rows, keys, scores):
    """(rows, keys, moved, scores) of blocks whose dS of a head is within the scratch: their gradients add up to the whole's. In a block, too, the last
    row stands at the last key, so that bounds move, by `moved`; blocks of which no row sees a key are left out."""
    side = max(1, math.isqrt(_MOST_SCRATCH // 2) // _ROWS) * _ROWS  # of a block, in rows and in keys
    left, right = _bounds(rows, keys, scores)
    for first in range(0, keys, side):
        last = min(first + side, keys)
        for begin in range(0, rows, side):
            end = min(begin + side, rows)
            place = begin + keys - rows  # of the first row
            if first <= place + end - begin - 1 + right and last - 1 >= place - left:
                moved = place - first - (last - first - (end - begin))  # the row's place after where the block has it
                its = scores._replace(left=left - moved, right=right + moved, is_of_block=True)
                if scores.keys is not None:
                    its = its._replace(keys=[t[:, begin:end] - first for t in scores.keys])
                if scores.bias is not None:
                    its = its._replace(bias=scores.bias[:, :, begin:end, first:last])
                yield slice(begin, end), slice(first, last), moved, its


def _intervals(form, args, batch, rows, keys, device):
    """[first, last] key of each row, integers [batch, rows], of a form of the package (specs/forms.fa) in which they are intervals."""
    row = torch.arange(rows, device=device).expand(batch, rows)
    if form == "rows":
        return [args[name].long().expand(batch, rows) for name in ("first", "last")]
    place = row + (keys - rows)
    at = place.clamp(0, keys - 1)
    if form == "prefix":
        return [torch.zeros_like(place), torch.maximum(place, args["prefix"].long().reshape(-1, 1) - 1)]
    if form == "chunked":
        return [torch.div(place, args["chunk"], rounding_mode="floor") * args["chunk"], place]
    given = args["first" if form == "documents" else "document"].long().expand(batch, keys)
    own = given.gather(1, at)
    return [own if form == "documents" else torch.searchsorted(given.contiguous(), own.contiguous()), place]


def with_four(tensor):
    """Its dimensions, with those in front that it lacks."""
    return tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)


def _part(tensor, *places):
    """Of each dimension a part; of one that is repeated all."""
    return tensor[tuple(slice(None) if size == 1 else place for place, size in zip(places, tensor.shape))]


def _bias_of(args, shape, device):
    """What is added to scores, float32 of [batch, heads, rows, keys], a row's keys side by side: -inf where a row does not see a key. It is no
    larger than what it is made of, but that it has all keys."""
    bias = with_four(args["bias"]).detach() if "bias" in args else torch.zeros((1, 1, 1, 1), device=device)
    if "visible" in args:
        bias = torch.where(with_four(args["visible"]) != 0, bias, -math.inf)
    bias = bias.expand(*bias.shape[:3], shape[3])
    return (bias if bias.stride(3) == 1 else bias.contiguous()).expand(shape)


def _tiles_of(first, last, keys):
    """Of intervals of keys, one a row: (key_begin, key_end) of each tile of 128 rows, in tiles of 128 keys, and (row_begin, row_end) of each tile
    of keys: tiles that see each other lie within both. int32."""
    rows = first.shape[1]
    more = -rows % _ROWS
    seen = last >= first
    first = torch.nn.functional.pad(first.clamp(0, keys).masked_fill(~seen, keys), (0, more), value=keys).unflatten(1, (-1, _ROWS)).amin(2)
    last = torch.nn.functional.pad(last.clamp(-1, keys - 1).masked_fill(~seen, -1), (0, more), value=-1).unflatten(1, (-1, _ROWS)).amax(2)
    begin = torch.div(first, _ROWS, rounding_mode="floor")
    end = torch.div(last, _ROWS, rounding_mode="floor") + 1
    tile = torch.arange(-(-keys // _ROWS), device=first.device)
    touch = ((tile >= begin[..., None]) & (tile < end[..., None])).int()  # [batch, tiles of rows, tiles of keys]
    row_begin = touch.argmax(1)
    row_end = torch.where(touch.any(1), touch.shape[1] - touch.flip(1).argmax(1), 0)
    return {"key_begin": begin.int(), "key_end": end.int(), "row_begin": row_begin.int(), "row_end": row_end.int()}


def _program_of(q, k, scores):
    """The program, what it is given of the mask by batch, and by head, and its numbers."""
    rows, keys = q.shape[2], k.shape[2]
    left, right = (scores.left, scores.right) if scores.is_of_block else _bounds(rows, keys, scores)
    by_batch, by_head = {}, {}
    text, binds = _text_for(q.device), (left < keys - 1, right < rows - 1)
    name = "_softcap" if scores.cap else "_window" if any(binds) else ""
    if name == "_window" and not binds[0] and not text and q.shape[-1] == 64:
        name = "_causal"
    if scores.keys is not None:
        name, (first, last) = "_rows", scores.keys
        by_batch = {"firsts": _for_boxes(first.float().contiguous()), "lasts": _for_boxes(last.float().contiguous()), **_tiles_of(first, last, keys)}
    elif scores.bias is not None:
        name = "_bias"
    elif scores.slopes is not None:
        name, by_head = "_alibi", {"slope": (scores.slopes.float() * math.log2(math.e))[:, None].repeat(1, _ROWS)}
    numbers = {"left": max(-_MOST_ROWS, min(left, _MOST_ROWS)), "right": max(-_MOST_ROWS, min(right, _MOST_ROWS))}
    return _program(text, _TYPES[q.dtype], q.shape[-1], name), by_batch, by_head, numbers


def _add_of_slopes(ds, rows, moved, of_slopes):
    """The gradient of slopes: the sum of dS times the way from a row's place to the key, from sums over rows and over keys. ds: dS^T, [batch,
    heads of K/V, query heads of each, keys, rows and more, which are 0], 0 where a row does not see a key. moved: as of _blocks()."""
    keys = ds.shape[-2]
    key = torch.arange(keys, device=ds.device, dtype=torch.float64)
    place = torch.arange(rows, device=ds.device, dtype=torch.float64) + (keys - rows + moved)
    of_keys, of_rows = (ds.sum(dim, dtype=torch.float32).double() for dim in (-1, -2))
    of_slopes += ((of_keys * key).sum(-1) - (of_rows[..., :rows] * place).sum(-1)).sum(0).flatten()


def _add_of_bias(ds, rows, of_bias):
    """The gradient of a bias, [batch or 1, heads or 1, rows or 1, keys or 1]: dS, summed over what is repeated. ds: as of _add_of_slopes()."""
    ds = ds.flatten(1, 2)[..., :rows].transpose(-1, -2)
    repeated = [dim for dim, size in enumerate(of_bias.shape) if size == 1 and ds.shape[dim] > 1]
    of_bias += ds.sum(repeated, keepdim=True, dtype=torch.float32) if repeated else ds


def _with_rows_last(ds, group):
    """dS^T, [batch, heads of K/V, query heads of each, keys, rows and more], as programs by mma_sync leave it: in tiles of rows."""
    return ds.unflatten(2, (group, -1)).movedim(3, 4).flatten(4)


def _memory_of_ds(q, batch, heads, group, keys, is_every_tile_written):
    """For dS^T of one launch, as the program for q's device lays it out."""
    tiles = -(-q.shape[2] // _ROWS)
    shape = (batch, heads, group * tiles, keys, _ROWS) if _text_for(q.device) else (batch, heads, group, keys, tiles * _ROWS)
    return (q.new_empty if is_every_tile_written else q.new_zeros)(shape)


def _backward_of_block(grad, q, k, v, o, of_rows, scale, scores, dq, dk, dv, of_slopes=None, moved=0, of_bias=None):
    """Into dq, dk and dv. All are [batch, heads, rows, columns]. of_rows: LSE, and its gradient if there is one. of_slopes, of_bias, moved: as of
    backward() and of _blocks()."""
    grad, q, k, v, o = (_for_boxes(t) for t in (grad, q, k, v, o))
    group = q.shape[1] // k.shape[1]
    batches, heads, part = _pieces(k.shape[0], k.shape[1], group, _scratch_of_head(q.shape[2], k.shape[2]))
    parts = group // part
    # A group that is taken in parts has sums of each, which are added in order.
    sums = [t if parts == 1 else t.new_empty((parts, *t.shape)) for t in (dk, dv)]
    program, by_batch, by_head, numbers = _program_of(q, k, scores)
    exponent = scores.cap if scores.cap else scale
    numbers.update(scale=scale, scale_log2=exponent * math.log2(math.e), lse_gradient=float(len(of_rows) - 1))
    if scores.cap:
        numbers["scale_of_tanh"] = scale / scores.cap
    of_rows = [_for_boxes(t) for t in of_rows]
    is_one = parts == 1 and batches == k.shape[0] and heads == k.shape[1]  # launch: tensors are taken as they are
    of = (lambda tensor, place: tensor) if is_one else (lambda tensor, place: tensor[place])
    for b in range(0, k.shape[0], batches):
        for h in range(0, k.shape[1], heads):
            kv = (slice(b, b + batches), slice(h, h + heads))
            for p in range(parts):
                first = h * group + p * part
                rows = (kv[0], slice(first, first + heads * part))
                of_k, of_v = (t if parts == 1 else t[p] for t in sums)
                more = {**{name: of(t, kv[0]) for name, t in by_batch.items()}, **{name: of(t, rows[1]) for name, t in by_head.items()}}
                if scores.bias is not None:
                    more["bias"] = of(scores.bias, rows)
                if of_slopes is not None or of_bias is not None:  # tiles that no row sees are not written
                    more["ds"] = _memory_of_ds(q, *of(of_k, kv).shape[:2], part, k.shape[2], of_slopes is None)
                program(o=of(o, rows), dout=of(grad, rows), lse=of(of_rows[0], rows), dlse=of(of_rows[-1], rows), q=of(q, rows), k=of(k, kv),
                        v=of(v, kv), dq=of(dq, rows), dk=of(of_k, kv), dv=of(of_v, kv), **more, **numbers)
                if of_slopes is not None:
                    _add_of_slopes(more["ds"], q.shape[2], moved, of_slopes[rows[1]])
                if of_bias is not None:
                    ds = _with_rows_last(more["ds"], part) if _text_for(q.device) else more["ds"]
                    _add_of_bias(ds, q.shape[2], _part(of_bias, *rows, slice(None), slice(None)))
    if parts > 1:
        for result, each in zip((dk, dv), sums):
            result.copy_(each.sum(0, dtype=torch.float32))
