# fagen: `fagen bench`: a model's attention on this machine: times, errors and bits, compared with PyTorch's.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layers of a config.json, layers of one shape once, as prefill and as a decoding step."""
import argparse
import ctypes
import json
import math
import os
import re
import sys
import time
from typing import NamedTuple

from . import _kernels, _lib, errors
from ._command import Parser
from ._models import Layer, read_model

_DONE, _FAILED_CHECK = 0, 2
_LAUNCHES, _ROUNDS, _REPEATS = 20, 9, 5
_BOUNDS = {"f16": 2e-3, "bf16": 1.6e-2}  # of |O - O in float64|, normal inputs
_EMULATED_SET, _EMULATED_SM, _EMULATED_ROWS, _EMULATED_HEADS = "l4_fp16", 89, 96, 4
_EMULATED_SMS = 132  # as emulated.cpp describes it
_BLOCK, _BLOCKS, _HEADS = 128, 8, 4  # what of O is compared: blocks of rows of some heads

_EXAMPLES = """examples:
  fagen bench --model config.json
      each layer's shape with 4096 tokens: prefill, and one token after them
  fagen bench --model config.json --seq 1024,16384 --batch 4 --dtype bf16 --json
      of several lengths, for programs
  fagen bench --model config.json --emulate
      without a GPU: small cuts of the shapes on the emulator, values and bits but no times

exit codes: 0 done; 1 a mistake, or nothing here to run on; 2 bits differ from run to run, or an error is over its bound; 70 a
mistake of fagen's own"""


class Case(NamedTuple):
    """An attention to measure."""
    layer: Layer
    phase: str
    batch: int
    rows: int
    keys: int

    def is_windowed(self):
        return self.layer.window is not None and self.layer.window < self.keys

    def name(self):
        layer = self.layer
        dims = layer.head_dim if layer.head_dim == layer.head_dim_v else f"{layer.head_dim}:{layer.head_dim_v}"
        return f"{self.batch} x {layer.heads}/{layer.kv_heads} x {self.rows} x {self.keys} x {dims}"


class Progress:
    """A line on standard error, from the third second on; overwritten on a terminal, else one every ten seconds."""

    def __init__(self):
        self._next, self._is_terminal = time.monotonic() + 2, sys.stderr.isatty()

    def __call__(self, done, total, what):
        if time.monotonic() < self._next:
            return
        if self._is_terminal:
            print(f"\r\033[K[{done + 1}/{total}] {what}", end="", file=sys.stderr, flush=True)
        else:
            self._next = time.monotonic() + 10
            print(f"[{done + 1}/{total}] {what}", file=sys.stderr, flush=True)

    def end(self):
        if self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _numbers(text):
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of positive numbers, as in 1024,4096")
    return numbers


def parse(arguments):
    parser = Parser("bench", "A model's attention on this machine: our kernels compared with PyTorch's.", _EXAMPLES)
    parser.add_argument("--model", required=True, metavar="FILE", help="the model's config.json, as transformers has it")
    parser.add_argument("--seq", type=_numbers, default=[4096], metavar="N,...", help="tokens of a sequence (default: 4096)")
    parser.add_argument("--batch", type=_numbers, default=[1], metavar="N,...", help="sequences at once (default: 1)")
    parser.add_argument("--dtype", choices=sorted(_BOUNDS), default="f16", help="type of Q, K, V and O (default: f16)")
    parser.add_argument("--phase", choices=["both", "prefill", "decode"], default="both",
                        help="all rows, or one row after the keys (default: both)")
    parser.add_argument("--emulate", action="store_true", help="small cuts of the shapes on the emulator of a build tree: no times")
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    return parser.parse_args(arguments)


def cases_of(layers, options):
    phases = ("prefill", "decode") if options.phase == "both" else (options.phase,)
    for layer in layers:
        for batch in options.batch:
            for seq in options.seq:
                for phase in phases:
                    if phase == "prefill" or layer.causal:  # an encoder has no decoding step
                        yield cut(Case(layer, phase, batch, seq if phase == "prefill" else 1, seq), options.emulate)


def cut(case, is_emulated):
    """What the emulator does in a moment."""
    if not is_emulated:
        return case
    group = case.layer.heads // case.layer.kv_heads
    heads = min(case.layer.heads, max(_EMULATED_HEADS, group))
    layer = case.layer._replace(heads=heads, kv_heads=max(1, heads // group))
    return case._replace(layer=layer, batch=1, rows=min(case.rows, _EMULATED_ROWS), keys=min(case.keys, _EMULATED_ROWS))


class Bench:
    """Measures cases on the first GPU, or on the emulator."""

    def __init__(self, options):
        import torch
        import fagen.torch as front
        self.torch, self.front, self.options = torch, front, options
        self.dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[options.dtype]
        self.device = "cpu" if options.emulate else "cuda"
        if options.emulate:
            self._open_emulator(_lib.path("kernels", _EMULATED_SET))
        elif not torch.cuda.is_available():
            raise errors.Error("PyTorch sees no GPU here, and times need one; --emulate compares values of small cuts")
        self.kernels = _kernels.load(_lib.path("kernels", _EMULATED_SET)) if options.emulate else _kernels.ready()

    def machine(self):
        return "emulator of sm_89" if self.options.emulate else self.torch.cuda.get_device_name()

    def _open_emulator(self, kernels):
        library = os.path.join(_lib.PACKAGE, "..", "libfagen_torch_emulated.so")
        if not os.path.exists(library):
            raise errors.Error("--emulate needs the emulator of a build tree (PYTHONPATH=build/release/python); a wheel has none")
        emulated, message = ctypes.CDLL(library), ctypes.create_string_buffer(2048)
        if emulated.fagen_torch_emulator_open(os.fsencode(kernels), _EMULATED_SM, message, 2048):
            raise errors.Error(message.value.decode())
        self.front._ours.fagen_torch_set_emulator(ctypes.cast(emulated.fagen_torch_emulate, ctypes.c_void_p))

    def tensors(self, case):
        """q, k and v [batch, heads, rows, head_dim], the same for each run."""
        draw = self.torch.Generator(device=self.device).manual_seed(1)
        layer = case.layer
        shapes = ((case.batch, layer.heads, case.rows, layer.head_dim), (case.batch, layer.kv_heads, case.keys, layer.head_dim),
                  (case.batch, layer.kv_heads, case.keys, layer.head_dim_v))
        return [self.torch.randn(shape, generator=draw, device=self.device, dtype=self.torch.float32).to(self.dtype) for shape in shapes]

    def measure(self, case):
        """A row of the result."""
        causal = case.layer.causal and case.phase == "prefill"  # one row sees all keys
        row = dict(layers=case.layer.count, phase=case.phase, shape=case.name(), causal=causal)
        if case.is_windowed():
            return dict(row, refused=f"a window of {case.layer.window} keys: no kernel has windows that bind")
        q, k, v = self.tensors(case)
        functional = self.torch.nn.functional

        def theirs():
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                           enable_gqa=case.layer.heads != case.layer.kv_heads)

        out = q.new_empty((*q.shape[:3], v.shape[3]))
        with self.torch.no_grad():
            try:
                ours = self.front.plan(q, k, v, causal=causal, layout="bhsd")
            except errors.Unsupported as error:
                return dict(row, refused=str(error))
            row["kernel"] = self._kernel(q, k, v, causal)
            row["same_bits"] = self._same_bits(lambda into: ours(q, k, v, into), out)
            row["error"], row["sdpa_error"] = self._errors(ours(q, k, v, out), theirs(), q, k, v, causal)
            if not self.options.emulate:
                row["us"], row["sdpa_us"] = self._time(lambda: ours(q, k, v, out)), self._time(theirs)
        return row

    def _kernel(self, q, k, v, causal):
        where = dict(gpu=f"sm_{_EMULATED_SM}", sms=_EMULATED_SMS) if self.options.emulate else {}
        text = self.kernels.explain(q, k, v, causal=causal, layout="bhsd", **where)
        return re.search(r"^picked +(\S+)", text, re.M)[1]

    def _same_bits(self, launch, out):
        first = launch(out.fill_(math.nan)).clone()
        integers = self.torch.int16
        return all(self.torch.equal(launch(out.fill_(math.nan)).view(integers), first.view(integers)) for _ in range(_REPEATS))

    def _errors(self, ours, theirs, q, k, v, causal):
        """The largest |O - O in float64| of both, over blocks of rows of the first, last and some heads."""
        worst = [0.0, 0.0]
        heads, rows = q.shape[1], q.shape[2]
        for head in _spread(heads, _HEADS):
            for begin in _spread(math.ceil(rows / _BLOCK), _BLOCKS):
                block = slice(begin * _BLOCK, min(rows, (begin + 1) * _BLOCK))
                wanted = self._reference(q, k, v, head, block, causal)
                for i, o in enumerate((ours, theirs)):
                    worst[i] = max(worst[i], (o[:, head, block].double() - wanted).abs().max().item())
        return worst

    def _reference(self, q, k, v, head, block, causal):
        """O of a head's rows in float64."""
        group = q.shape[1] // k.shape[1]
        scores = q[:, head, block].double() @ k[:, head // group].double().transpose(-1, -2) * q.shape[-1] ** -0.5
        if causal:
            rows = self.torch.arange(block.start, block.stop, device=q.device)[:, None]
            keys = self.torch.arange(k.shape[2], device=q.device)
            scores = scores.masked_fill(keys > rows + k.shape[2] - q.shape[2], -math.inf)
        return scores.softmax(-1) @ v[:, head // group].double()

    def _time(self, launch):
        """Microseconds: the median over replays of a CUDA graph of several launches."""
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                launch()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_LAUNCHES):
                launch()
        times = []
        for _ in range(_ROUNDS + 1):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / _LAUNCHES)
        return sorted(times[1:])[_ROUNDS // 2]


def _spread(count, most):
    """At most so many of the numbers below count, the first and the last among them."""
    if count <= most:
        return range(count)
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def table(rows):
    heads = ["layers", "phase", "batch x heads/kv x rows x keys x dim", "ours us", "SDPA us", "speed", "error", "SDPA's", "bits", "kernel"]
    lines = [heads]
    for row in rows:
        start = [str(row["layers"]), row["phase"] + (", causal" if row["causal"] else ""), row["shape"]]
        if "refused" in row:
            lines.append([*start, "-", "-", "-", "-", "-", "-", f"none: {row['refused'].split(';')[0]}"])
            continue
        times = [f"{row['us']:.1f}", f"{row['sdpa_us']:.1f}", f"{row['sdpa_us'] / row['us']:.2f}"] if "us" in row else ["-"] * 3
        lines.append([*start, *times, f"{row['error']:.1e}", f"{row['sdpa_error']:.1e}", "same" if row["same_bits"] else "DIFFER",
                      row["kernel"]])
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def is_sound(row, dtype):
    """Bits repeat, and the error is within the bound, or no larger than twice PyTorch's."""
    return "refused" in row or (row["same_bits"] and row["error"] <= max(_BOUNDS[dtype], 2 * row["sdpa_error"]))


def main(arguments):
    """`fagen bench`; gives the exit code."""
    options = parse(arguments)
    cases = list(cases_of(read_model(options.model), options))
    try:
        bench = Bench(options)
    except ImportError as error:
        raise errors.Error(f"bench needs PyTorch, which {sys.executable} cannot import: {error}") from None
    progress, rows = Progress(), []
    for number, case in enumerate(cases):
        progress(number, len(cases), f"{case.phase} {case.name()}")
        rows.append(bench.measure(case))
    progress.end()
    for row in rows:
        row["sound"] = is_sound(row, options.dtype)
    if options.json:
        print(json.dumps({"tool": "fagen bench", "model": options.model, "machine": bench.machine(), "dtype": options.dtype,
                          "rows": rows}, indent=1))
    else:
        print(f"{options.model}: {options.dtype} on {bench.machine()}\n{table(rows)}")
    return _DONE if all(row["sound"] for row in rows) else _FAILED_CHECK
