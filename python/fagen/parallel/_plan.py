# fagen: attention of a sequence that ranks share: what is asked, checked and agreed on before anything is computed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import collections
import functools

import torch

from .. import _arguments, _forms, errors
from . import _compute, _copies, _gradient, _heads, _merge_gpu, _operators, _over_heads, _ring
from ._mask import Mask, digest
from ._ranks import TIMEOUT, Ranks
from ._ring import Ring
from ._schedule import schedule
from ._split import Split
from ._transfers import Transfers


class Plan:
    """One attention of a sequence that ranks share: what each holds, computes, sends and merges is settled here, and agreed on.

    split, keys: which rows and which keys each rank holds (keys: as the rows are where None); rank r * u + h of a mesh of u ranks in
    the exchange over heads is rank (r, h) of the mesh. Shapes are those of the whole sequence.
    transport of a ring's keys: "messages" of the group, or "copies" by copy engines from the memory of other GPUs of the host; None: copies
    where all ranks of the ring are GPUs of one host that read each other's memory.
    invariant: whether the bits of a row are the same for every number of ranks: each K/V head is then a call of its own.
    o_dtype: torch.float32 gives O as it is merged; None: in the type of q.
    """

    def __init__(self, split, keys=None, *, batch, heads, kv_heads=None, head_dim, head_dim_v=None, dtype, device, causal=False, window=None,
                 documents=None, form=None, form_args=None, scale=None, group=None, mesh=None, scheme="ring", chunks=2, kernels=None,
                 timeout=TIMEOUT, check=None, transport=None, invariant=False, o_dtype=None):
        self.ranks = Ranks(group, mesh, scheme, timeout)
        self.timeout = timeout
        failed = None
        try:
            may_copy = self.ranks.ring is not None and torch.device(device).type == "cuda"
            if transport not in (None, "messages", *["copies"] * may_copy):
                raise errors.Error(f'transport is {transport!r}; it is "messages", or for a ring of GPUs "copies"; None takes what is faster')
            self._settle(split, split if keys is None else keys, batch, heads, heads if kv_heads is None else kv_heads, head_dim,
                         head_dim if head_dim_v is None else head_dim_v, dtype, torch.device(device), causal, window, documents, form,
                         form_args or {}, scale, chunks, kernels, invariant)
            self.o_dtype = _o_dtype_of(o_dtype, dtype)
            self.record |= {"o_dtype": str(self.o_dtype), "transport": str(transport)}
        except Exception as error:
            failed = error
        self._agree("plan", failed)
        self.check = self.device.type == "cpu" if check is None else check
        self.name = _operators.name_of(self)
        if self.device.type == "cuda":
            _merge_gpu.warm_up(dtype, self.device)
            for group in self.ranks.groups:
                group.meet(self.device)
        if transport is None and may_copy and _copies.are_neighbours(self.ranks.ring, self.device):
            transport = "copies"
        self._window = self._window_of_keys() if transport == "copies" else None

    def _settle(self, split, keys, batch, heads, kv_heads, head_dim, head_dim_v, dtype, device, causal, window, documents, form, form_args,
                scale, chunks, kernels, invariant):
        for name, one in (("split", split), ("keys", keys)):
            if not isinstance(one, Split) or one.ranks != self.ranks.size:
                raise errors.Error(f"{name} is {f'of {one.ranks} ranks' if isinstance(one, Split) else _arguments.words(one)}; it is a Split of "
                                   f"the {self.ranks.size} ranks")
        if not isinstance(causal, bool):
            raise errors.Error(f"causal is {causal!r}; it is True or False")
        if not isinstance(chunks, int) or chunks < 1:
            raise errors.Error(f"chunks is {chunks!r}; it is a whole number, 1 or more")
        if heads < 1 or kv_heads < 1 or heads % kv_heads:
            raise errors.Error(f"kv_heads is {kv_heads}, which does not divide the {heads} heads of q")
        if invariant:
            _check_invariant(self.ranks, kv_heads)
            chunks = kv_heads
        self.split, self.keys, self.device, self.dtype = split, keys, device, dtype
        self.scale = head_dim ** -0.5 if scale is None else _arguments.scale_of("parallel.attention", scale)
        self.sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq_q": split.length, "seq_kv": keys.length}
        self.columns = head_dim, head_dim_v
        mask = Mask(split.length, keys.length, self.sizes, causal, window, documents, form, form_args, kernels)
        ring, exchange = self.ranks.shape
        over_ring = [one.merge(exchange) for one in (split, keys)]
        if None in over_ring:
            raise errors.Error(f"the {exchange} ranks of each exchange over heads hold ranges that do not ascend together: make the split by "
                               f"zigzag(length, {ring}).divide({exchange})")
        self.over_ring, self._ring_keys = over_ring, [over_ring[1].size(rank) for rank in range(ring)]
        self.schedule = _on_device(schedule(mask.bounds, *over_ring, self.ranks.place[0], mask.is_exact, mask.has_sink), device)
        self.chunks = _heads.shares(heads, kv_heads, exchange, chunks) if exchange > 1 or invariant else None
        self.mask = mask
        self.record = {"split": digest(split), "keys": digest(keys), "dtype": str(dtype), "device": device.type, "batch": batch, "heads": heads,
                       "kv_heads": kv_heads, "head_dim": head_dim, "head_dim_v": head_dim_v, "scale": self.scale, "mask": mask.words,
                       "scheme": self.ranks.scheme, "mesh": str(self.ranks.shape), "chunks": str(chunks), "invariant": bool(invariant)}

    def _window_of_keys(self):
        """Of the keys and heads that a rank has in the ring."""
        device = torch.device("cuda", torch.cuda.current_device() if self.device.index is None else self.device.index)
        return _copies.Window(self.ranks.ring, self.sizes["batch"], max(self._ring_keys), self.shapes_of_keys(), self.dtype, device)

    def shapes_of_keys(self):
        """The most heads that a rank has in the ring at once, and columns, of K and of V."""
        kv_heads = max([len(share.kv_heads) for chunk in self.chunks or () for share in chunk], default=self.sizes["kv_heads"])
        return [(kv_heads, width) for width in self.columns]

    def _agree(self, at, failed, **more):
        self.ranks.agree({**self.record, **more, "at": at} if failed is None else None, failed)

    def local_shapes(self):
        """Of q, k and v as this rank gives them."""
        rank, (width, width_v) = self.ranks.rank, self.columns
        rows, keys, batch = self.split.size(rank), self.keys.size(rank), self.sizes["batch"]
        return ((batch, rows, self.sizes["heads"], width), (batch, keys, self.sizes["kv_heads"], width), (batch, keys, self.sizes["kv_heads"], width_v))

    def __call__(self, q, k, v, *, out=None, return_lse=False):
        """O [batch, own rows, heads, head_dim_v] of this rank's rows, and LSE float32 [batch, heads, own rows] if return_lse.

        q, k, v: [batch, own rows or keys, heads or kv_heads, head_dim], which have a gradient if all ranks record one. The host waits for
        nothing on a GPU.
        """
        records = torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in (q, k, v))
        if out is None and (records or torch.compiler.is_compiling()):
            o, lse, *_ = _operators.attention(q, k, v, self.name, records)
        else:
            o, lse = self.compute(q, k, v, out, records)
        return (o, lse) if return_lse else o

    def compute(self, q, k, v, out=None, records=False, kept=None):
        """O and LSE, of which a gradient is recorded or none is. kept: a list that gets what gradients need; None: nothing is."""
        o = lse = buffers = None

        def begin():
            nonlocal o, lse, buffers
            self._check(q, k, v, out, records)
            o = torch.empty((*q.shape[:3], v.shape[3]), dtype=self.o_dtype, device=q.device) if out is None else out
            lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
            buffers = self.ranks.ring and _ring.buffers_of(self.schedule, q.shape[0], self.shapes_of_keys(), q.dtype, q.device)
            size, of_o, (width, width_v) = self.dtype.itemsize, self.o_dtype.itemsize, self.columns
            self.reserve(width * size + width_v * of_o + lse.itemsize, (width + width_v) * size, q.device)
        self.together(begin, lambda: self._compute(q, k, v, o, lse, buffers, kept), "", gradient=records)
        return o, lse

    def together(self, begin, run, of, **record):
        """begin(), then run(), which records nothing; where ranks agree, before and after run() (of: " of the gradient" in words)."""
        failed = None
        for at, step in (("begin", begin), ("end", torch.no_grad()(run))):
            try:
                if failed is None:
                    step()
            except Exception as error:
                failed = error
            if self.check or failed is not None:
                self._agree(f"{at}{of}", failed, **record)

    def _check(self, q, k, v, out, records):
        for (name, tensor), shape in zip((("q", q), ("k", k), ("v", v)), self.local_shapes()):
            _arguments.check_kinds("parallel.attention", [(name, tensor)])
            if tuple(tensor.shape) != shape or tensor.dtype != self.dtype or tensor.device.type != self.device.type:
                raise errors.Error(f"parallel.attention: {name} is {tensor.dtype} {list(tensor.shape)} on {tensor.device}; on rank "
                                   f"{self.ranks.rank} it is {self.dtype} {list(shape)} on {self.device.type}")
        if out is not None:
            if records:
                raise errors.Error("out= takes no part in gradients; leave it out, or use torch.no_grad()")
            _arguments.check_output("parallel.attention", q, k, v, out, self.o_dtype)
        if records:
            _gradient.check(self)

    def _compute(self, q, k, v, o, lse, buffers, kept):
        if self.chunks is None:
            self._over_ring(buffers, q, k, v, o, lse, 0)
            return
        _over_heads.Forward(self.exchange(q.device), self.chunks, functools.partial(self._over_ring, buffers), (q, k, v), o, lse, kept).run()

    def exchange(self, device):
        """Of one call."""
        return _heads.Exchange(Transfers(self.ranks.heads, device), *self.exchange_sizes())

    def reserve(self, row_bytes, key_bytes, device):
        """Fails where an exchange over heads has too little memory for these; where ranks agree, for only then the others hear of it."""
        if self.chunks is not None and self.check:
            _over_heads.reserve(self.exchange(device), self.chunks, self.sizes["batch"], row_bytes, key_bytes, device)

    def exchange_sizes(self):
        """How many rows, and how many keys, each rank of the exchange over heads holds."""
        first = self.ranks.place[0] * self.ranks.shape[1]
        return [[one.size(rank) for rank in range(first, first + self.ranks.shape[1])] for one in (self.split, self.keys)]

    def problem(self, head0):
        mask = self.mask
        return _compute.Problem(self.scale, mask.placed, mask.placed_with_sink, mask.args, self.sizes, head0)

    def _over_ring(self, buffers, q, k, v, o, lse, head0):
        mask, problem, output, failed = self.mask, self.problem(head0), None, None
        try:
            output = _compute.Output(o, lse, self.schedule.accumulates)
            output.clear(self.schedule.empty)
            if self.schedule.sinks:
                output.add_sinks(problem, self.schedule.sinks, q, k, v)
        except Exception as error:  # raised after the others have got their keys
            failed = error

        def compute(part, k, v):
            output.add(problem, part, q, k, v, with_sink=mask.has_sink and part.is_new)
        if self.ranks.ring is None:
            _compute.alone(self.schedule.steps[0].parts, compute, k, v, failed)
        elif self._window is None:
            Ring(self.schedule, Transfers(self.ranks.ring, q.device), k, v, buffers).run(compute, failed)
        else:
            _copies.CopiedRing(self.schedule, self._window, self._ring_keys, k, v, buffers).run(compute, failed)

    @functools.cached_property
    def schedule_back(self):
        """Of gradients."""
        return _gradient.schedule_of(self)

    def work(self):
        """Products of a row and a key that this rank computes, for each head."""
        return sum(part.piece.pairs() for step in self.schedule.steps for part in step.parts)

    def __reduce__(self):
        raise errors.Error("a plan over ranks cannot be pickled or copied: it belongs to its process group")


def _o_dtype_of(o_dtype, dtype):
    if o_dtype not in (None, dtype, torch.float32):
        raise errors.Error(f"o_dtype is {o_dtype!r}; it is torch.float32, or the type of q, which is {dtype}")
    return dtype if o_dtype is None else o_dtype


def _check_invariant(ranks, kv_heads):
    if ranks.scheme != "ulysses":
        raise errors.Unsupported(f'invariant=True with scheme="{ranks.scheme}": a ring merges parts that end where ranks hold other keys, in the order of its '
                                 'steps, so another number of ranks gives other bits; scheme="ulysses" merges nothing', "parallel.attention")
    if kv_heads % ranks.size:
        raise errors.Unsupported(f"invariant=True with {kv_heads} K/V heads and {ranks.size} ranks, which do not divide them: a call for each K/V head is what "
                                 "every number of ranks has", "parallel.attention")


def _on_device(made, device):
    """The schedule with the bounds of its pieces on the device."""
    return made._replace(steps=[step._replace(parts=[part._replace(piece=part.piece.to(device)) for part in step.parts]) for step in made.steps])


_plans = collections.OrderedDict()
_MOST_PLANS = 32


def _shared(key, make):
    """A plan that was made for the same; of those with tensors, whose values count, none is kept."""
    if key is None:
        return make()
    if key not in _plans:
        _plans[key] = make()
        if len(_plans) > _MOST_PLANS:
            _plans.popitem(last=False)
    _plans.move_to_end(key)
    return _plans[key]


@torch.compiler.disable(reason="a plan is made, or found, by words between ranks; make a parallel.Plan once: its calls are traced")
def attention(q, k, v, *, split, keys=None, causal=False, window=None, documents=None, form=None, form_args=None, scale=None, group=None,
              mesh=None, scheme="ring", chunks=2, layout="bshd", return_lse=False, out=None, kernels=None, timeout=TIMEOUT, check=None,
              transport=None, invariant=False, o_dtype=None, **params):
    """Attention of a sequence that ranks share. q, k and v are what this rank holds; so is O, and LSE if return_lse.

    split: which rows each rank holds (zigzag(), contiguous(), balanced()); keys: which keys, where not as the rows.
    causal, window=(left, right), documents (offsets, (offsets of rows, offsets of keys), or ids [batch, keys]), or a form with its params: what a row sees, by places in the
    whole sequence; tensors of forms are those of the whole sequence, on each rank.
    scheme: "ring", "ulysses" (an exchange over heads) or "mixed" (mesh: a DeviceMesh of 2 dimensions, the ring and the exchange).
    chunks: into how many parts the exchange over heads is cut, at most, so that it runs under computing.
    timeout: seconds that a rank waits for another. check: whether ranks agree before and after each call, which waits for the GPU's
    host, not only when a plan is made; None: on the CPU.
    transport: how a ring's keys travel, as of Plan. invariant: bits that do not depend on the number of ranks; o_dtype: torch.float32,
    for O as it is merged; both as of Plan.
    """
    params = _forms.together("parallel.attention", form, form_args, params)
    if layout not in ("bshd", "bhsd"):
        raise errors.Error(f'layout is {layout!r}; it is "bshd" (batch, seq, heads, head_dim) or "bhsd"')
    if layout == "bhsd":
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = out if out is None else out.transpose(1, 2)
    _arguments.check_kinds("parallel.attention", [("q", q), ("k", k), ("v", v)])
    options = {"batch": q.shape[0], "heads": q.shape[2], "kv_heads": k.shape[2], "head_dim": q.shape[3], "head_dim_v": v.shape[3],
               "dtype": q.dtype, "device": q.device, "causal": causal, "window": window, "form": form, "scale": scale, "group": group, "mesh": mesh,
               "scheme": scheme, "chunks": chunks, "kernels": kernels, "timeout": timeout, "check": check, "transport": transport, "invariant": invariant, "o_dtype": o_dtype}
    key = None
    if documents is None and not any(isinstance(value, torch.Tensor) for value in (*params.values(), scale)):
        key = (split, keys, tuple(params.items()), *options.values())
    plan = _shared(key, lambda: Plan(split, keys, documents=documents, form_args=params, **options))
    o, lse = plan(q, k, v, out=out, return_lse=True)
    o = o if layout == "bshd" else o.transpose(1, 2)
    return (o, lse) if return_lse else o
