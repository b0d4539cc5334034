# fagen: attention of a sequence that ranks share: what is asked, checked and agreed on before anything is computed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import collections
import functools
import zlib

import torch

from .. import _arguments, _forms, _kernels, errors
from . import _bounds, _compute, _copies, _gradient, _heads, _merge_gpu, _operators, _over_heads, _placed
from ._group import Group
from ._ring import Ring
from ._schedule import schedule
from ._split import Split
from ._transfers import Transfers

SCHEMES = "ring", "ulysses", "mixed"
TIMEOUT = 300.0  # seconds


class Ranks:
    """The ranks of a call as a mesh of a ring and an exchange over heads, either of which may be of one rank."""

    def __init__(self, group, mesh, scheme, timeout):
        if scheme not in SCHEMES:
            raise errors.Error(f'scheme is {scheme!r}; it is "ring", "ulysses" or "mixed"')
        if group is not None and mesh is not None:
            raise errors.Error("group and mesh are given; a mesh has groups of its own")
        dimensions = 1 if mesh is None else mesh.ndim
        if dimensions > 2 or (dimensions == 2) != (scheme == "mixed"):
            raise errors.Error(f'a mesh of {dimensions} dimension{"s" * (dimensions != 1)} and scheme="{scheme}": "mixed" takes a mesh of 2, the ring and the '
                               'exchange over heads, "ring" and "ulysses" take a group or a mesh of 1')
        self.ring = self.heads = None
        if scheme == "mixed":
            self.ring, self.heads = (Group(mesh.get_group(i), timeout) for i in range(2))
        else:
            one = Group(group if mesh is None else mesh.get_group(), timeout)
            self.ring, self.heads = (one, None) if scheme == "ring" else (None, one)
        self.scheme, self.groups = scheme, [g for g in (self.ring, self.heads) if g is not None]

    @property
    def shape(self):
        """(ranks of the ring, ranks of the exchange over heads)."""
        return (self.ring.size if self.ring else 1), (self.heads.size if self.heads else 1)

    @property
    def size(self):
        return self.shape[0] * self.shape[1]

    @property
    def place(self):
        """(rank in the ring, rank in the exchange)."""
        return (self.ring.rank if self.ring else 0), (self.heads.rank if self.heads else 0)

    @property
    def rank(self):
        """The number of this rank in splits."""
        return self.place[0] * self.shape[1] + self.place[1]

    def agree(self, record, failed=None):
        """Group.agree() of all: the ring's ranks first, then those of the exchange, so that each has heard of all."""
        for group in self.groups:
            try:
                group.agree(record, failed)
            except errors.Error as error:
                failed = error if failed is None else failed
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed


class Mask:
    """What rows see of keys: bounds, and a form with places where the kernel looks itself."""

    def __init__(self, rows, keys, sizes, causal, window, documents, form, form_args, kernels):
        self.args, self.placed, self.placed_with_sink = {}, None, None
        self.words = f"causal={causal}, window={window}, documents={_digest(documents)}, form={form}"
        if form is not None:
            if causal or window is not None or documents is not None:
                raise errors.Error("form is given with causal, window or documents; a form says itself what is seen")
            self._of_form(form, form_args, sizes, kernels)
            return
        left, right = _window_of(window, causal)
        bounds = _bounds.of_window(rows, keys, left, right)
        if documents is not None:
            own = _bounds.of_documents(_ids_of(documents, keys, sizes["batch"]), rows, False)
            bounds = _bounds.Bounds(torch.maximum(bounds.first, own.first), torch.minimum(bounds.last, own.last), True).ascending(keys)
        self.bounds = bounds

    def _of_form(self, form, args, sizes, kernels):
        kernels = _kernels.ready() if kernels is None else kernels
        tables, directories, names = tuple(kernels._tables), tuple(kernels._directories), tuple(args)
        _forms.check("parallel.attention", tables, form, names)
        self.args = args
        self.words += "".join(f", {name}={_digest(value)}" for name, value in args.items())
        find = lambda sink: _placed.placed(directories, tables, form, names, sink)  # noqa: E731
        self.placed, self.placed_with_sink = find(False), find(True)
        program = self.placed_with_sink and _placed.form_of(directories, form, names)
        if program is None:
            raise errors.Unsupported(f"the kernel set's manifest does not have the form {form}", "parallel.attention")
        self.bounds = _bounds.of_form(program, args, sizes)
        if self.bounds.exact and not program.score and not program.sink:
            self.placed = self.placed_with_sink = None
        self.has_sink = bool(program.sink)

    has_sink = False

    @property
    def is_exact(self):
        """Whether bounds are the whole form."""
        return self.placed is None


def _window_of(window, causal):
    if window is None:
        return None, 0 if causal else None
    sides = list(window) if isinstance(window, (tuple, list)) else []
    if len(sides) != 2 or any(n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < -1) for n in sides):
        raise errors.Error(f"window is {window!r}; it is (left, right), how many keys before and after its place a row sees, -1 for all")
    left, right = (None if n is None or n < 0 else n for n in sides)
    return left, 0 if causal else right


def _ids_of(documents, keys, batch):
    """Ids [batch or 1, keys] of documents: these, or offsets of packed ones."""
    if not isinstance(documents, torch.Tensor) or documents.is_floating_point() or documents.dim() not in (1, 2):
        raise errors.Error(f"documents is {_arguments.words(documents)}; it is a tensor of integers: offsets [documents + 1], or ids "
                           "[batch, keys] that ascend")
    if documents.dim() == 1:
        offsets = documents.long().cpu()
        if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != keys or bool((offsets.diff() < 0).any()):
            raise errors.Error(f"documents are offsets that do not ascend from 0 to the {keys} keys")
        return torch.searchsorted(offsets[1:].contiguous(), torch.arange(keys), right=True)[None]
    if documents.shape[1] != keys or documents.shape[0] not in (1, batch):
        raise errors.Error(f"documents has shape {list(documents.shape)}; ids are [{batch} or 1, {keys}]")
    if bool((documents[:, 1:] < documents[:, :-1]).any()):
        raise errors.Error("documents does not ascend along the keys; give padding the largest id")
    return documents


def _digest(value):
    """A word that tells values apart."""
    if isinstance(value, torch.Tensor):
        if value.numel() * value.element_size() > 1 << 26:
            return f"{value.dtype} {list(value.shape)}"
        return f"{value.dtype} {list(value.shape)} {zlib.crc32(value.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()):08x}"
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:60]}... {zlib.crc32(said.encode()):08x}"


class Plan:
    """One attention of a sequence that ranks share: what each holds, computes, sends and merges is settled here, and agreed on.

    split, keys: which rows and which keys each rank holds (keys: as the rows are where None); rank r * u + h of a mesh of u ranks in
    the exchange over heads is rank (r, h) of the mesh. Shapes are those of the whole sequence.
    transport of a ring's keys: "messages" of the group, or "copies" by copy engines from the memory of other GPUs of the host.
    """

    def __init__(self, split, keys=None, *, batch, heads, kv_heads=None, head_dim, head_dim_v=None, dtype, device, causal=False, window=None,
                 documents=None, form=None, form_args=None, scale=None, group=None, mesh=None, scheme="ring", chunks=2, kernels=None,
                 timeout=TIMEOUT, check=None, transport="messages"):
        self.ranks = Ranks(group, mesh, scheme, timeout)
        self.timeout = timeout
        failed = None
        try:
            if transport not in ("messages", "copies") or (transport == "copies" and (self.ranks.ring is None or torch.device(device).type != "cuda")):
                raise errors.Error(f'transport is {transport!r}; it is "messages", or for a ring of GPUs "copies"')
            self._settle(split, split if keys is None else keys, batch, heads, heads if kv_heads is None else kv_heads, head_dim,
                         head_dim if head_dim_v is None else head_dim_v, dtype, torch.device(device), causal, window, documents, form,
                         form_args or {}, scale, chunks, kernels)
        except Exception as error:
            failed = error
        self._agree("plan", failed)
        self.check = self.device.type == "cpu" if check is None else check
        self.name = _operators.name_of(self)
        if self.device.type == "cuda":
            _merge_gpu.warm_up(dtype, self.device)
            for group in self.ranks.groups:
                group.meet(self.device)
        self._window = self._window_of_keys() if transport == "copies" else None

    def _settle(self, split, keys, batch, heads, kv_heads, head_dim, head_dim_v, dtype, device, causal, window, documents, form, form_args,
                scale, chunks, kernels):
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
        self.chunks = _heads.shares(heads, kv_heads, exchange, chunks) if exchange > 1 else None
        self.mask = mask
        self.record = {"split": _digest(split), "keys": _digest(keys), "dtype": str(dtype), "device": device.type, "batch": batch, "heads": heads,
                       "kv_heads": kv_heads, "head_dim": head_dim, "head_dim_v": head_dim_v, "scale": self.scale, "mask": mask.words,
                       "scheme": self.ranks.scheme, "mesh": str(self.ranks.shape), "chunks": str(chunks)}

    def _window_of_keys(self):
        """Of the keys and heads that a rank has in the ring."""
        kv_heads = {len(share.kv_heads) for chunk in self.chunks or () for share in chunk} or {self.sizes["kv_heads"]}
        device = torch.device("cuda", torch.cuda.current_device() if self.device.index is None else self.device.index)
        return _copies.Window(self.ranks.ring, self.sizes["batch"], max(self._ring_keys), [(max(kv_heads), width) for width in self.columns],
                              self.dtype, device)

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
        o = lse = None

        def begin():
            nonlocal o, lse
            self._check(q, k, v, out, records)
            o = torch.empty((*q.shape[:3], v.shape[3]), dtype=q.dtype, device=q.device) if out is None else out
            lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
        self.together(begin, lambda: self._compute(q, k, v, o, lse, kept), "", gradient=records)
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
            _arguments._check_output("parallel.attention", q, k, v, out)
        if records:
            _gradient.check(self)

    def _compute(self, q, k, v, o, lse, kept):
        if self.chunks is None:
            self._over_ring(q, k, v, o, lse, 0)
            return
        _over_heads.Forward(self.exchange(q.device), self.chunks, self._over_ring, (q, k, v), o, lse, kept).run()

    def exchange(self, device):
        """Of one call."""
        return _heads.Exchange(Transfers(self.ranks.heads, device), *self.exchange_sizes())

    def exchange_sizes(self):
        """How many rows, and how many keys, each rank of the exchange over heads holds."""
        first = self.ranks.place[0] * self.ranks.shape[1]
        return [[one.size(rank) for rank in range(first, first + self.ranks.shape[1])] for one in (self.split, self.keys)]

    def problem(self, head0):
        mask = self.mask
        return _compute.Problem(self.scale, mask.placed, mask.placed_with_sink, mask.args, self.sizes, head0)

    def _over_ring(self, q, k, v, o, lse, head0):
        mask, problem = self.mask, self.problem(head0)
        output = _compute.Output(o, lse, self.schedule.accumulates)
        output.clear(self.schedule.empty)
        if self.schedule.sinks:
            output.add_sinks(problem, self.schedule.sinks, q, k, v)

        def compute(part, k, v):
            output.add(problem, part, q, k, v, with_sink=mask.has_sink and part.is_new)
        if self.ranks.ring is None:
            for part in self.schedule.steps[0].parts:
                compute(part, *(t[:, slice(*part.piece.keys)] for t in (k, v)))
            return
        if self._window is None:
            Ring(self.schedule, Transfers(self.ranks.ring, q.device), k, v).run(compute)
        else:
            _copies.CopiedRing(self.schedule, self._window, self._ring_keys, k, v).run(compute)

    @functools.cached_property
    def schedule_back(self):
        """Of gradients."""
        return _gradient.schedule_of(self)

    def work(self):
        """Products of a row and a key that this rank computes, for each head."""
        return sum(part.piece.pairs() for step in self.schedule.steps for part in step.parts)

    def __reduce__(self):
        raise errors.Error("a plan over ranks cannot be pickled or copied: it belongs to its process group")


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
              transport="messages", **params):
    """Attention of a sequence that ranks share. q, k and v are what this rank holds; so is O, and LSE if return_lse.

    split: which rows each rank holds (zigzag(), contiguous(), balanced()); keys: which keys, where not as the rows.
    causal, window=(left, right), documents (offsets, or ids [batch, keys]), or a form with its params: what a row sees, by places in the
    whole sequence; tensors of forms are those of the whole sequence, on each rank.
    scheme: "ring", "ulysses" (an exchange over heads) or "mixed" (mesh: a DeviceMesh of 2 dimensions, the ring and the exchange).
    chunks: into how many parts the exchange over heads is cut, at most, so that it runs under computing.
    timeout: seconds that a rank waits for another. check: whether ranks agree before and after each call, which waits for the GPU's
    host, not only when a plan is made; None: on the CPU.
    transport: how a ring's keys travel, as of Plan.
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
               "scheme": scheme, "chunks": chunks, "kernels": kernels, "timeout": timeout, "check": check, "transport": transport}
    key = None
    if documents is None and not any(isinstance(value, torch.Tensor) for value in (*params.values(), scale)):
        key = (split, keys, tuple(params.items()), *options.values())
    plan = _shared(key, lambda: Plan(split, keys, documents=documents, form_args=params, **options))
    o, lse = plan(q, k, v, out=out, return_lse=True)
    o = o if layout == "bshd" else o.transpose(1, 2)
    return (o, lse) if return_lse else o
