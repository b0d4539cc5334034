# fagen: kernel sets: of the package, from a directory, or compiled from a spec.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler of this package, run as a program of its own, and what it writes."""
import functools
import json
import numbers
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Dict, List, Optional

from . import _forms, _gpus, _lib, _programs, errors

_USERS_MISTAKE = 1


class KernelSet:
    """Kernels that dispatch treats as one. compile(), load() and ready() make them.

    One that is pickled takes its files along, and is loaded from them where it arrives; the package's own is that of the package there.
    """

    def __init__(self, directories, keep=None, of_programs=()):
        self._directories, self._keep = [*directories, *of_programs], keep  # keep: what removes the directories when it goes
        self._tables = [_lib.load_table(directory) for directory in directories]
        self._of_programs = of_programs  # no query of attention asks these

    @functools.cached_property
    def _program_tables(self):
        return [*self._tables, *map(_lib.load_table, self._of_programs)]

    def __reduce__(self):
        if self is ready():
            return ready, ()
        return _unpacked, ([_files_of(directory) for directory in self._directories],)

    def __copy__(self):
        return self  # it does not change

    def __deepcopy__(self, known):
        return self

    @functools.cached_property
    def _sources(self):
        """The file of each kernel, by name and target."""
        found = {}
        for directory in self._directories:
            path = os.path.join(directory, "manifest.json")
            with errors.reading(path, "manifest"), open(path, encoding="utf-8") as file:
                for row in json.load(file)["rows"]:
                    found[row["variant"], row["target"]] = os.path.join(directory, row["source"])
        return found

    def __call__(self, q, k, v, **options):
        """fagen.attention(q, k, v, **options) by these kernels."""
        from . import torch as front
        return front.attention(q, k, v, kernels=self, **options)

    def plan(self, q, k, v, **options):
        """fagen.plan(q, k, v, **options) by these kernels."""
        from . import torch as front
        return front.plan(q, k, v, kernels=self, **options)

    @property
    def forms(self) -> Dict[str, List[str]]:
        """The forms of the spec, by name, and the names of their params."""
        return {name: [p.name for p in params] for name, params in _forms.forms_of(tuple(self._tables))}

    @property
    def programs(self) -> List[str]:
        """What the programs of the set take, a line each: fagen.program(set, name) calls one."""
        return [str(signature) for signature in _programs.signatures_of(tuple(self._directories)).values()]

    @property
    def names(self) -> List[str]:
        """The kernels' names, in the order of the spec."""
        return list(dict.fromkeys(name for name, _ in self._sources))

    def capabilities_of(self, name):
        """Compute capabilities whose text a kernel has: [80, 90]."""
        return sorted({int(re.search(r"\d+", target)[0]) for known, target in self._sources if known == name})

    def source(self, name: str, target: Optional[str] = None) -> str:
        """The CUDA C++ of a kernel; target ("sm_90a") is needed where several targets have one of this name."""
        found = [key for key in self._sources if key[0] == name and target in (None, key[1])]
        if len(found) == 1:
            with open(self._sources[found[0]], encoding="utf-8") as file:
                return file.read()
        if found:
            raise errors.Error(f"{name} is there for {', '.join(t for _, t in found)}: give target=")
        raise errors.Error(f"no kernel '{name}'{f' for {target}' if target else ''}; names has all {len(self.names)}")

    def explain(self, q=None, k=None, v=None, *, shape=None, dtype="f16", causal=False, lse=False, scale=None,
                layout="bshd", gpu=None, sms=None, variant=None, form=None, form_args=None, **params) -> str:
        """Which kernel computes this and why, and why not each other one, in words.

        Tensors q, k and v (of PyTorch, in the layout), or shape = (batch, heads, kv_heads, seq_q, seq_kv, head_dim
        [, head_dim_v]) and dtype. gpu, "sm_90" or "H100", and sms describe a GPU that need not be here; else it is the
        tensors' GPU, or the first. form and its params as in a call; of a tensor ... does as well.
        """
        params = _forms.together("explain", form, form_args, params)
        if variant is not None and not isinstance(variant, str):
            raise errors.ArgumentError(f"explain: variant is {variant!r}; it is a kernel's name, as names has them")
        if q is not None:
            from . import torch as front
            front.check_tensors("explain", q, k, v)
            if q.device.type != "cuda" and gpu is None:
                raise errors.Error(f'explain: q is on {q.device}; gpu="sm_90" says for which GPU, or give shape= instead of tensors')
            problem = front.describe(q, k, v, causal=causal, scale=scale, layout=layout, lse=lse)
            ordinal = q.device.index or 0
        else:
            problem, ordinal = describe(shape, dtype, causal, lse, scale), 0
        if form is not None:
            _forms.describe(problem, self._tables, form, params)
        if variant is not None:
            problem.variant = variant.encode()
        on = _lib.device(ordinal) if gpu is None else _lib.described_device(*_gpus.parse(gpu, sms))
        return _lib.explain(self._tables, problem, on)

    def __repr__(self):
        return f"<fagen.KernelSet of {len(self._sources)} kernels: {', '.join(self.names[:3])}, ...>"


def describe(shape, dtype, causal=False, lse=False, scale=None, kv_dtype=None):
    """A packed problem of this shape; Error for what is no shape or dtype."""
    if not hasattr(shape, "__len__") or len(shape) not in (6, 7):
        raise errors.Error(f"shape is {shape!r}; it is (batch, heads, kv_heads, seq_q, seq_kv, head_dim[, head_dim_v])")
    if not all(isinstance(n, numbers.Integral) for n in shape) or any(shape[i] < 1 for i in (1, 2, 5, len(shape) - 1)):
        raise errors.Error(f"shape is {shape!r}; its sizes are integers, and heads, kv_heads and head_dims at least 1")
    if scale is not None and not isinstance(scale, numbers.Real):
        raise errors.Error(f"scale is {scale!r}; it is a number, or None for 1 / sqrt(head_dim)")
    if not isinstance(dtype, str) or dtype not in _lib.DTYPES:
        raise errors.Error(f"dtype is {dtype!r}; it is {', '.join(_lib.DTYPES)}")
    if kv_dtype not in (None, "e4m3", "e5m2"):
        raise errors.Error(f"kv_dtype is {kv_dtype!r}; it is None for that of q, e4m3 or e5m2")
    problem = _lib.Problem()
    problem.kv_dtype = _lib.KV_DTYPES[kv_dtype] if kv_dtype else 0
    problem.dtype, problem.mask = _lib.DTYPES[dtype], _lib.MASK_CAUSAL if causal else _lib.MASK_NONE
    problem.flags = _lib.FLAG_LSE if lse else 0
    problem.batch, problem.heads, problem.kv_heads, problem.seq_q, problem.seq_kv, problem.head_dim_qk = map(int, shape[:6])
    problem.head_dim_v = int(shape[-1])
    if scale is not None:
        problem.scale, problem.has_scale = scale, 1
    return problem


def _files_of(directory):
    """{path below the directory: bytes} of all its files."""
    found = {}
    for folder, _, names in os.walk(directory):
        for path in (os.path.join(folder, name) for name in names):
            with open(path, "rb") as file:
                found[os.path.relpath(path, directory)] = file.read()
    return found


def _unpacked(sets):
    """A KernelSet of sets that _files_of() gave."""
    kept = tempfile.TemporaryDirectory(prefix="fagen-")
    directories = [os.path.join(kept.name, str(i)) for i in range(len(sets))]
    for directory, files in zip(directories, sets):
        for name, content in files.items():
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
    return KernelSet(directories, kept)


def _sets_below(directory):
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    return [os.path.join(directory, n) for n in names if os.path.exists(os.path.join(directory, n, "manifest.json"))]


def path_of(function, name, value):
    """A path as a string; Error for what is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise errors.ArgumentError(f"{function}: {name} is {value!r}; it is a path")
    return os.fspath(value)


def load(directory) -> KernelSet:
    """The kernel sets that `fagen SPEC -o DIR` wrote: DIR, or one set in it. Its sources run with your rights."""
    return _load(path_of("load", "directory", directory))


def _load(directory, keep=None):
    if os.path.exists(os.path.join(directory, "manifest.json")):
        return KernelSet([directory], keep)
    directories = _sets_below(directory)
    if not directories:
        found = "has no kernel set" if os.path.isdir(directory) else "is no directory"
        raise errors.Error(f"{directory} {found}; `fagen SPEC -o DIR` writes a kernel set to one")
    return KernelSet(directories, keep)


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def with_machine_code():
    """The directory of the wheel fagen_kernels, installed next to this package: (directory or None, whether it is of these kernels)."""
    directory = os.path.join(os.path.dirname(_lib.PACKAGE), "fagen_kernels", "kernels")
    stamp = _read(os.path.join(directory, "stamp.txt"))
    return (directory if stamp else None), stamp == _read(_lib.path("kernels", "stamp.txt"))


@functools.lru_cache(maxsize=None)
def ready() -> KernelSet:
    """The kernel sets of this package, as one: in the order of kernels/ready.txt. With machine code, where fagen_kernels brings it."""
    return KernelSet(list(_ready_directories(".fa").values()), of_programs=list(_ready_directories(".fair").values()))


def _ready_directories(of=""):
    """{name: directory} of the ready sets, in their order. A set of programs has a line for each. of: how their files end."""
    with open(_lib.path("kernels", "ready.txt"), encoding="utf-8") as file:
        names = dict.fromkeys(line.split()[0] for line in file if not line.startswith("#") and line.rstrip().endswith(of))
    machine_code, is_of_these = with_machine_code()
    of_package = _lib.path("kernels")
    with_code = os.listdir(machine_code) if machine_code and is_of_these else []  # the wheel leaves some sets out
    return {name: os.path.join(machine_code if name in with_code else of_package, name) for name in names}


@functools.lru_cache(maxsize=None)
def ready_set(name) -> Optional[KernelSet]:
    """One of the ready sets by itself; None where this package has none of that name."""
    directory = _ready_directories().get(name)
    return KernelSet([directory]) if directory else None


def compile(spec, *, targets: Optional[Sequence[str]] = None) -> KernelSet:
    """Compiles a spec to kernels: its text, or the path of a .fa file, or of a program (.fair). SpecError with the compiler's diagnostics.

    targets: ["sm_89", ...] instead of those that the spec names. Each kernel is built for the GPU at its first use.
    """
    kept = tempfile.TemporaryDirectory(prefix="fagen-")
    targets = [targets] if isinstance(targets, str) else targets
    if targets is not None and not (isinstance(targets, Sequence) and all(isinstance(target, str) for target in targets)):
        raise errors.ArgumentError(f"compile: targets is {targets!r}; it is a list of targets, as ['sm_80', 'sm_90a']")
    file = path_of("compile", "spec", spec)
    is_text = "{" in file
    if is_text:
        file = os.path.join(kept.name, "spec.fa")
        with open(file, "w", encoding="utf-8") as out:
            out.write(spec)
    written = os.path.join(kept.name, "kernels")
    try:
        _run_compiler([file, "-o", written] + ([f"--target={','.join(targets)}"] if targets else []))
    except errors.SpecError as error:
        kept.cleanup()
        raise (error.named(file, "<spec>") if is_text else error) from None
    return _load(written, kept)


def _run_compiler(arguments):
    done = subprocess.run([_lib.path("bin", "fagen"), "--diagnostics=json", *arguments], capture_output=True, text=True, check=False)
    if done.returncode == _USERS_MISTAKE:
        raise errors.SpecError(errors.read_diagnostics(done.stderr))
    if done.returncode:
        raise errors.Error(f"the compiler ended with {done.returncode}: {done.stderr.rstrip()}")


def program_of(kernels, name):
    """The KernelSet, and the Signature of its program of this name, which may be None where there is one program. kernels: a
    KernelSet, the directory of one, or a file of textual IR (.fair), which is compiled."""
    if not isinstance(kernels, KernelSet):
        path = path_of("program", "kernels", kernels)
        if "{" in path:
            raise errors.ArgumentError("program: kernels is text; it is a KernelSet, the directory of one, or a file of textual IR (.fair)")
        kernels = compile(path) if path.endswith(".fair") else load(path)
    signatures = _programs.signatures_of(tuple(kernels._directories))
    if name is None and len(signatures) == 1:
        name, = signatures
    if name not in signatures:
        there = ", ".join(signatures) or "none; fagen FILE.fair -o DIR writes one"
        raise errors.Error(f"{'name says which program' if name is None else f'no program is named {name!r}'}; there are {there}")
    return kernels, signatures[name]
