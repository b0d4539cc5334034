# fagen: what rows see of keys, as it is asked for: a mask, documents or a form.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import zlib

import torch

from .. import _arguments, _forms, _kernels, errors
from . import _bounds, _placed


class Mask:
    """What rows see of keys: bounds, and a form with places where the kernel looks itself."""

    def __init__(self, rows, keys, sizes, causal, window, documents, form, form_args, kernels):
        self.args, self.placed, self.placed_with_sink = {}, None, None
        self.words = f"causal={causal}, window={window}, documents={digest(documents)}, form={form}"
        if form is not None:
            if causal or window is not None or documents is not None:
                raise errors.Error("form is given with causal, window or documents; a form says itself what is seen")
            self._of_form(form, form_args, sizes, kernels)
            return
        left, right = _window_of(window, causal)
        if isinstance(documents, (tuple, list)):
            self.bounds = _bounds.of_sequences(*_offsets_of(documents, rows, keys), left, right)
            return
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
        self.words += "".join(f", {name}={digest(value)}" for name, value in args.items())
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
        offsets = _ascending_offsets("documents", documents, keys, "keys")
        return torch.searchsorted(offsets[1:].contiguous(), torch.arange(keys), right=True)[None]
    if documents.shape[1] != keys or documents.shape[0] not in (1, batch):
        raise errors.Error(f"documents has shape {list(documents.shape)}; ids are [{batch} or 1, {keys}]")
    if bool((documents[:, 1:] < documents[:, :-1]).any()):
        raise errors.Error("documents does not ascend along the keys; give padding the largest id")
    return documents


def _offsets_of(documents, rows, keys):
    """Offsets of rows and of keys of packed sequences, which they are given."""
    if len(documents) != 2 or not all(isinstance(one, torch.Tensor) and one.dim() == 1 and not one.is_floating_point() for one in documents):
        raise errors.Error(f"documents is {_arguments.words(documents)}; it is a tensor, or offsets of rows and offsets of keys: two tensors of integers "
                           "[documents + 1]")
    of_rows, of_keys = (_ascending_offsets(f"documents[{i}]", one, n, what) for i, (one, n, what) in enumerate(zip(documents, (rows, keys), ("rows", "keys"))))
    if len(of_rows) != len(of_keys):
        raise errors.Error(f"documents has {len(of_rows) - 1} sequences of rows and {len(of_keys) - 1} of keys; they are as many")
    return of_rows, of_keys


def _ascending_offsets(name, offsets, length, what):
    offsets = offsets.long().cpu()
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != length or bool((offsets.diff() < 0).any()):
        raise errors.Error(f"{name} are offsets that do not ascend from 0 to the {length} {what}")
    return offsets


def digest(value):
    """A word that tells values apart."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(digest, value))})"
    if isinstance(value, torch.Tensor):
        if value.numel() * value.element_size() > 1 << 26:
            return f"{value.dtype} {list(value.shape)}"
        return f"{value.dtype} {list(value.shape)} {zlib.crc32(value.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()):08x}"
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:60]}... {zlib.crc32(said.encode()):08x}"
