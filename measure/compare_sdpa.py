#!/usr/bin/env python3
# fagen: times PyTorch's attention backends and generated kernels side by side, in one process on the same tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The method of docs/Laboratory.md: CUDA graphs of 20 launches (200 below 20 us), one warm replay, nine timed ones; the
contestants of a shape alternate in rounds; burst = the first 30 ms after a second of idling, steady = after 1.25 s of
the same load, whose energy is measured (energy.py), alternating = no idling, and three timed replays a round after one that is not. Raw samples and sensor
readings go to the JSON, which is written anew after each problem. `fagen-run time --baseline sdpa` runs this script with
--stream: then each line of standard output is {"progress": [done, total, what]}, the last one {"result": ...}."""
import argparse
import json
import os
import platform
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    sys.exit(f"PyTorch cannot be imported by {sys.executable}: {error}")

import contestants
import energy
import fagen_ctypes
import inputs
from notes import machine, notes_of
from samples import percentile

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
MATH_MOST_SCORES = 1 << 30  # math writes all scores to memory
# A mean of a few normal numbers, as in the first rows of a causal mask, may lie in [4, 8), where one unit in the last
# place is 0.0039 of f16 and 0.031 of bf16: two right results may round to neighbours. Seen were 0.001 and 0.008 at most.
SAME_RESULT = {torch.float16: 5e-3, torch.bfloat16: 4e-2}
# Where one key has nearly all of a row, O is its V, largest values included, and its term is rounded, too: two units.
SAME_DOMINATED_RESULT = {torch.float16: 1e-2, torch.bfloat16: 8e-2}
ROUNDED_INPUTS_FACTOR = 16  # e4m3 has 3 bits of a fraction
NAMED_LAYOUTS = {"bhsd": "[B, H, S, D]", "bshd": "[B, S, H, D]"}
LAYOUTS = list(NAMED_LAYOUTS)
CHECKED_ROWS = 1024  # of a head at once, in f64
PRODUCT_SIZE = 8192
TIMED_REPLAYS, LAUNCHES, SHORT_LAUNCHES, SHORT_US, BURST_US, IDLE_S, LOAD_S = 9, 20, 200, 20.0, 30e3, 1.0, 1.25
ALTERNATING_REPLAYS = 3
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "float16": torch.float16, "bfloat16": torch.bfloat16}
GRID = (64, 128), (512, 2048, 8192)  # head dims, lengths; B*S = 16384, H*d = 2048
FULL_GRID = (64, 128, 256), (512, 1024, 2048, 4096, 8192, 16384)
NAMED_SHAPES = {"mission": (1, 8, 8, 512, 512, 64, 64), "mission2": (2, 8, 8, 512, 512, 64, 64)}


def nvml_of_gpu():
    """Sensors of the current GPU."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    if not hasattr(properties, "pci_bus_id"):
        return energy.Nvml()
    return energy.Nvml(f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0")


class WarmGraph:
    """Launches one after the other; the time of a replay is theirs."""

    def __init__(self, launch, count):
        self.count = count
        self.graph = capture(lambda: [launch() for _ in range(count)], launch)
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time(self):
        """Microseconds a launch of one replay."""
        self.start.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.start.elapsed_time(self.end) * 1e3 / self.count


class ColdGraph:
    """Before each launch twice the L2 is written; events in the graph enclose the launch alone."""

    def __init__(self, launch, count, flushed):
        self.count = count
        self.pairs = [[torch.cuda.Event(enable_timing=True, external=True) for _ in range(2)] for _ in range(count)]

        def all_launches():
            for start, end in self.pairs:
                flushed.zero_()
                start.record()
                launch()
                end.record()
        self.graph = capture(all_launches, launch)

    def time(self):
        self.graph.replay()
        torch.cuda.synchronize()
        return sum(start.elapsed_time(end) for start, end in self.pairs) * 1e3 / self.count


def capture(work, launch):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            launch()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


class Entrant:
    """One way to compute a shape, as a CUDA graph."""

    def __init__(self, name, launch, arguments, facts):
        self.name, self.facts, self.state = name, facts, arguments.state
        self.idle, self.load = arguments.idle, arguments.load
        self.samples, self.segments = [], []
        flushed = None
        if arguments.l2 == "cold":
            size = torch.cuda.get_device_properties(0).L2_cache_size
            flushed = torch.empty(2 * size, dtype=torch.uint8, device="cuda")
        self.make = lambda count: ColdGraph(launch, count, flushed) if flushed is not None else WarmGraph(launch, count)
        self.graph = self.make(LAUNCHES)
        self.graph.time()  # the first replay also loads
        once = self.graph.time()
        count = SHORT_LAUNCHES if once < SHORT_US and flushed is None else LAUNCHES
        if self.state != "steady":
            count = max(1, min(count, int(BURST_US / (TIMED_REPLAYS + 1) / once)))
        if count != LAUNCHES:
            self.graph = self.make(count)

    def segment(self, number, nvml):
        timed = ALTERNATING_REPLAYS if self.state == "alternating" else TIMED_REPLAYS
        if self.state == "burst":
            time.sleep(self.idle)
        before, spent = nvml.read(), None
        if self.state == "steady":
            spent = self.load_metered(nvml)
        else:
            self.graph.time()
        self.samples += [[number, self.graph.time()] for _ in range(timed)]
        self.segments.append(dict(before=before, after=nvml.read(), energy=spent))

    def load_metered(self, nvml):
        """Runs the load before what is timed; its energy, or why that is not known."""
        replays, begin = 0, time.monotonic()
        with energy.Meter(nvml) as meter:
            while (seconds := time.monotonic() - begin) < self.load or not replays:
                self.graph.time()
                replays += 1
        if isinstance(meter.energy, str):
            return meter.energy
        launches = replays * self.graph.count
        return dict(meter.energy, launches=launches, load_s=seconds, joules_per_launch=meter.energy["watts"] * seconds / launches)

    def of_energy(self, figure):
        """The median of a figure over the segments whose energy is known, or None."""
        told = [segment["energy"][figure] for segment in self.segments if isinstance(segment["energy"], dict)]
        return statistics.median(told) if told else None

    def result(self, flops):
        times, last = [us for _, us in self.samples], self.segments[-1]["after"]
        median = statistics.median(times)
        return dict(name=self.name, median_us=median, p90_us=percentile(times, 0.9), p99_us=percentile(times, 0.99),
                    tflops=flops / median / 1e6, launches_per_graph=self.graph.count,
                    sm_clock_mhz=last["sm_clock_mhz"], watts=last["watts"],
                    joules_per_launch=self.of_energy("joules_per_launch"), average_watts=self.of_energy("watts"),
                    energy_error=self.of_energy("error"),
                    samples_round_us=self.samples, segments=self.segments, **self.facts)


def attention_by(backend, q, k, v, mask):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal", enable_gqa=q.shape[1] != k.shape[1])


def sdpa_entrants(tensors, arguments):
    """Each backend that takes the shape; for the others, the reason."""
    entrants, refused = [], {}
    q, k, v, mask = tensors.q, tensors.k, tensors.v, tensors.mask
    for name in arguments.backend or BACKENDS:
        if mask == "causal" and q.shape[2] != k.shape[2]:
            refused[name] = "skipped: its is_causal aligns the mask top left, ours bottom right"
            continue
        if name == "math" and q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] > MATH_MOST_SCORES:
            refused[name] = "skipped: its score matrix would take gigabytes"
            continue
        try:
            launch = lambda backend=BACKENDS[name]: attention_by(backend, q, k, v, mask)
            facts = dict(max_error=tensors.exact.largest_error(launch())) if tensors.exact else {}
            entrants.append(Entrant(name, launch, arguments, dict(kind="sdpa", **facts)))
        except RuntimeError as error:
            refused[name] = str(error).splitlines()[0][:200]
    return entrants, refused


def tensor_of(layout, make, shape, **options):
    """[batch, heads, rows, columns], which lie in memory as the layout says."""
    b, h, s, d = shape
    return make(b, h, s, d, **options) if layout == "bhsd" else make(b, s, h, d, **options).transpose(1, 2)


class Exact:
    """Softmax(Q K^T) V of the first head and the last, in f64."""

    def __init__(self, q, k, v, mask):
        self.places = [(0, 0), (q.shape[0] - 1, q.shape[1] - 1)]
        self.heads = [self.head(q, k, v, mask, *place) for place in self.places]

    @staticmethod
    def head(q, k, v, mask, batch, head):
        q, k, v = q[batch, head], *(t[batch, head * t.shape[1] // q.shape[1]] for t in (k, v))
        parts, later = [], k.shape[0] - q.shape[0]
        for row in range(0, q.shape[0], CHECKED_ROWS):
            scores = q[row:row + CHECKED_ROWS].double() @ k.double().T * q.shape[1] ** -0.5
            if mask == "causal":
                scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(row + later + 1), float("-inf"))
            parts.append(torch.softmax(scores, -1).nan_to_num(0) @ v.double())
        return torch.cat(parts)

    def largest_error(self, o):
        return max((o[place].double() - expected).abs().max().item() for place, expected in zip(self.places, self.heads))


def expected_result(q, k, v, mask):
    """By a backend that every shape has; a causal mask is aligned bottom right, as ours is."""
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    bias = None
    if mask == "causal" and q.shape[2] != k.shape[2]:
        from torch.nn.attention.bias import causal_lower_right
        bias = causal_lower_right(q.shape[2], k.shape[2])
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        causal = mask == "causal" and bias is None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal).float()


class Tensors:
    """What the contestants of a problem share, and what their results are compared with."""

    def __init__(self, problem, arguments):
        (b, h, hkv, sq, sk, d, dv), self.mask, dtype, self.kind, self.layout = problem
        torch.manual_seed(arguments.seed)
        make = lambda make, *shape: tensor_of(self.layout, make, shape, device="cuda", dtype=dtype)
        self.q, self.k, self.v = make(torch.randn, b, h, sq, d), make(torch.randn, b, hkv, sk, d), make(torch.randn, b, hkv, sk, dv)
        if self.kind != "normal":
            inputs.change(self.kind, self.q, self.k)
        self.o = make(torch.empty, b, h, sq, dv)
        self.lse = torch.empty(b, h, sq, dtype=torch.float32, device="cuda")
        self.expected = expected_result(self.q, self.k, self.v, self.mask)
        self.exact = Exact(self.q, self.k, self.v, self.mask) if arguments.errors else None
        self.same = (SAME_RESULT if self.kind == "normal" else SAME_DOMINATED_RESULT)[dtype]

    def all(self):
        return self.q, self.k, self.v, self.o, self.lse, self.mask

    def judge(self, launch, factor=1):
        """What is to be told of what is written to O, and why it is no result, or None."""
        self.o.fill_(float("nan"))
        launch()
        difference = (self.o.float() - self.expected).abs().max().item()
        facts = dict(max_difference_from_sdpa=difference)
        if self.exact:
            facts["max_error"] = self.exact.largest_error(self.o)
        return facts, None if difference < self.same * factor else f"differs from PyTorch by {difference}"


def fagen_entrants(library, tensors, arguments):
    """The rows that dispatch picks, or what --all, --variant and --dispatched say. And what went wrong."""
    picked = library.picked(*tensors.all())
    wanted = arguments.variant or library.variants()
    if arguments.dispatched or not (arguments.all or arguments.variant):
        wanted = [variant for variant, _ in picked if variant in wanted]
    entrants, failed = [], []
    for variant in dict.fromkeys(wanted):
        try:
            attention = library.attention(*tensors.all(), variant)
        except fagen_ctypes.Error:
            continue  # another problem's variant
        info = attention.info()
        target = info.target.decode()
        facts, wrong = tensors.judge(attention)
        if wrong:
            failed.append(dict(name=variant, target=target, reason=wrong))
            continue
        entrants.append(Entrant(variant, attention, arguments,
                                dict(kind="fagen", picked=(variant, target) in picked, target=target,
                                     registers=info.registers, local_bytes=info.local_bytes, **facts)))
    return entrants, failed


def outside_entrants(outsiders, tensors, arguments):
    """Contestants of other libraries, each with the reason when it does not take the shape or is wrong."""
    entrants, refused, failed = [], {}, []
    for outsider in outsiders:
        launch = outsider.attention(*tensors.all())
        try:
            facts, wrong = tensors.judge(launch, factor=ROUNDED_INPUTS_FACTOR if outsider.rounds_inputs else 1)
        except contestants.Refused as reason:
            refused[outsider.name] = str(reason)
            continue
        if wrong:
            failed.append(dict(name=outsider.name, target="", reason=wrong))
            continue
        entrants.append(Entrant(outsider.name, launch, arguments, dict(kind="contestant", **facts)))
    return entrants, refused, failed


def matrix_products(dtypes, arguments, nvml, when):
    """What a large square product reaches in this run and state: the ceiling of products."""
    products = []
    for dtype in dtypes:
        a, b = (torch.randn(PRODUCT_SIZE, PRODUCT_SIZE, device="cuda", dtype=dtype) for _ in range(2))
        c = torch.empty(PRODUCT_SIZE, PRODUCT_SIZE, device="cuda", dtype=dtype)
        entrant = Entrant("matmul", lambda: torch.matmul(a, b, out=c), arguments,
                          dict(kind="product", size=PRODUCT_SIZE, dtype=str(dtype).split(".")[1], when=when))
        entrant.segment(0, nvml)
        products.append(entrant.result(2.0 * PRODUCT_SIZE ** 3))
    return products


def parse_shape(text):
    """b,h,s,d or b,h,hkv,sq,sk,d[,dv] or a name."""
    if text in NAMED_SHAPES:
        return NAMED_SHAPES[text]
    numbers = tuple(int(x) for x in text.split(","))
    if len(numbers) == 4:
        b, h, s, d = numbers
        return b, h, h, s, s, d, d
    return numbers if len(numbers) == 7 else (*numbers, numbers[5])


def parse_problem(text):
    """As fagen-run writes a case: "1,8,8,512,512,64 dtype=bf16 mask=causal"; layout=bshd, inputs=hot8 as here."""
    shape, *words = text.split()
    options = dict(word.split("=", 1) for word in words)
    return (parse_shape(shape), options.get("mask", "none"), DTYPES[options.get("dtype", "f16")],
            options.get("inputs", "normal"), options.get("layout", "bhsd"))


def problems_of(arguments):
    if arguments.problem:
        return [parse_problem(text) for text in arguments.problem]
    shapes = [parse_shape(text) for text in arguments.shape]
    for heads, lengths in [GRID] * arguments.grid + [FULL_GRID] * arguments.full_grid:
        shapes += [parse_shape(f"{16384 // s},{2048 // d},{s},{d}") for d in heads for s in lengths]
    return [(shape, mask, DTYPES[dtype], kind, layout) for dtype in arguments.dtype or ["float16"]
            for layout in arguments.layout or LAYOUTS[:1] for shape in shapes or NAMED_SHAPES.values()
            for mask in arguments.mask or ["none", "causal"] for kind in arguments.inputs or ["normal"]]


def measure(library, outsiders, problem, arguments, nvml, tell):
    (b, h, hkv, sq, sk, d, dv), mask, dtype, kind, layout = problem
    tensors = Tensors(problem, arguments)
    flops = 2.0 * b * h * sq * sk * (d + dv) * (0.5 if mask == "causal" else 1.0)
    ours, failed = fagen_entrants(library, tensors, arguments)
    backends, refused = sdpa_entrants(tensors, arguments)
    outside, outside_refused, outside_failed = outside_entrants(outsiders, tensors, arguments)
    entrants = backends + outside + ours
    for number in range(arguments.rounds):
        for entrant in entrants[::-1] if number % 2 else entrants:  # nobody always follows the same one
            tell(f"{b},{h},{hkv},{sq},{sk},{d} {mask} {kind} {layout} round {number + 1}: {entrant.name}")
            entrant.segment(number, nvml)
    results = [entrant.result(flops) for entrant in entrants]
    for r in results if not arguments.stream else []:
        print(f"b{b} h{h} s{sq} d{d} {mask:6s} {kind:6s} {layout} {r['name']:44s} {r['median_us']:9.2f} us {r['tflops']:7.1f} TFLOP/s",
              file=sys.stderr, flush=True)
    return dict(b=b, h=h, s=sq, d=d, hkv=hkv, sk=sk, dv=dv, mask=mask, dtype=str(dtype).split(".")[1], inputs=kind, layout=layout,
                refused={**refused, **outside_refused}, failed=failed + outside_failed, results=results)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", help="generated kernel directories")
    parser.add_argument("--library", default="build/release/bin/libfagen_capi.so")
    parser.add_argument("--output", help="JSON file to write")
    parser.add_argument("--stream", action="store_true", help="progress and result as lines of JSON")
    parser.add_argument("--shape", action="append", default=[],
                        help="b,h,s,d or b,h,hkv,sq,sk,d[,dv], mission or mission2; may be repeated")
    parser.add_argument("--grid", action="store_true", help="d 64, 128 at S 512, 2048, 8192; B*S = 16384, H*d = 2048")
    parser.add_argument("--full-grid", action="store_true", help="d 64, 128, 256 at S 512 to 16384, likewise")
    parser.add_argument("--dtype", choices=["float16", "bfloat16"], action="append",
                        help="default: float16; may be repeated")
    parser.add_argument("--mask", choices=["none", "causal"], action="append", help="default: both")
    parser.add_argument("--inputs", action="append", help=f"default: normal; may be repeated: {inputs.HELP}")
    parser.add_argument("--layout", choices=LAYOUTS, action="append",
                        help="of Q, K, V and O, [B, H, S, D] or [B, S, H, D]; default: bhsd; may be repeated")
    parser.add_argument("--problem", action="append", default=[],
                        help='instead of --shape and the options above: "b,h,hkv,sq,sk,d[,dv] [mask=causal] [dtype=bf16] '
                             '[inputs=hot8] [layout=bshd]"')
    parser.add_argument("--backend", action="append", choices=list(BACKENDS), help="default: all; may be repeated")
    parser.add_argument("--contestant", action="append", default=[], metavar="NAME=LIBRARY",
                        help="another library's attention, by measure/contestant.h, or one of the Python packages "
                             f"{', '.join(contestants.PACKAGES)}; may be repeated")
    parser.add_argument("--errors", action="store_true", help="also each result's largest error, of the first and the last head, "
                        "from what they are in f64")
    parser.add_argument("--product", action="store_true",
                        help=f"also time a square matrix product of {PRODUCT_SIZE} rows, first and last")
    parser.add_argument("--state", choices=["burst", "steady", "alternating"], default="burst")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds before each burst; less is a quick look")
    parser.add_argument("--load", type=float, default=LOAD_S,
                        help="seconds of load, whose energy is measured, before what is timed in the steady state; contestants who are all at the power "
                        "limit need less, and more rounds then even out who ran before; problems below a millisecond need it")
    parser.add_argument("--l2", choices=["warm", "cold"], default="warm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every fitting variant, not only the dispatched one")
    parser.add_argument("--dispatched", action="store_true", help="of those, only what dispatch picks")
    parser.add_argument("--variant", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--pdl", action="store_true",
                        help="ours are programmatic dependent launches: they begin while the one before them ends")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    arguments = parser.parse_args()
    if not arguments.output and not arguments.stream:
        parser.error("--output says where the JSON goes")
    return arguments


def machine_facts():
    properties = torch.cuda.get_device_properties(0)
    return dict(machine(), gpu=properties.name, sms=properties.multi_processor_count, torch=torch.__version__,
                cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), python=platform.python_version())


def write_whole(path, result):
    """The file never holds half a result: whoever stops the run keeps the problems measured so far."""
    with open(path + ".part", "w") as file:
        json.dump(result, file, indent=1)
    os.replace(path + ".part", path)


def main():
    arguments = parse_arguments()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    try:
        outsiders = [contestants.load(named) for named in arguments.contestant]
        for _, _, _, kind, _ in problems_of(arguments):
            inputs.parse(kind)
    except ValueError as mistake:
        sys.exit(str(mistake))
    library = fagen_ctypes.Library(arguments.library, arguments.directories, arguments.pdl)
    nvml, problems = nvml_of_gpu(), problems_of(arguments)
    if nvml.missing and arguments.state == "steady":
        print(f"joules are not told: {nvml.missing}", file=sys.stderr, flush=True)
    result = dict(tool="compare_sdpa.py", state=arguments.state, idle_s=arguments.idle, load_s=arguments.load, l2=arguments.l2,
                  rounds=arguments.rounds, machine=machine_facts(), notes=notes_of(arguments.note), energy_missing=nvml.missing,
                  inputs=", ".join(dict.fromkeys("standard normal" if kind == "normal" else kind for _, _, _, kind, _ in problems)),
                  layout=", ".join(dict.fromkeys(f"contiguous {NAMED_LAYOUTS[layout]}" for *_, layout in problems))
                  + "; ours and contestants also write LSE",
                  overlaps_launches=arguments.pdl, contestants={outsider.name: outsider.about for outsider in outsiders},
                  asked=len(problems), products=[], problems=[])

    def tell(what):
        if arguments.stream:
            print(json.dumps(dict(progress=[len(result["problems"]), len(problems), what])), flush=True)

    def add(key, values):
        result[key] += values
        if arguments.output:
            write_whole(arguments.output, result)
    dtypes = list(dict.fromkeys(problem[2] for problem in problems)) if arguments.product else []
    add("products", matrix_products(dtypes, arguments, nvml, "first"))
    for problem in problems:
        add("problems", [measure(library, outsiders, problem, arguments, nvml, tell)])
    add("products", matrix_products(dtypes, arguments, nvml, "last"))
    if arguments.stream:
        print(json.dumps(dict(result=result)), flush=True)


if __name__ == "__main__":
    main()
