#!/usr/bin/env python3
# fagen: times PyTorch's attention backends and generated kernels side by side, in one process on the same tensors.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The method of docs/Checking.md, Timing: CUDA graphs of 20 launches (200 below 20 us), one warm replay, nine timed
ones; the contestants of a shape alternate in rounds; burst = the first 30 ms after a second of idling, steady = after
a second of the same load. Raw samples go to the JSON."""
import argparse
import ctypes
import json
import platform
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import fagen_ctypes
from samples import percentile

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
MATH_MOST_SCORES = 1 << 30  # math writes all scores to memory
TIMED_REPLAYS, LAUNCHES, SHORT_LAUNCHES, SHORT_US, BURST_US = 9, 20, 200, 20.0, 30e3


class Nvml:
    """Clock, power and energy of the first GPU; None for what NVML does not tell."""

    def __init__(self):
        self.device = ctypes.c_void_p()
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
            if self.lib.nvmlInit_v2() or self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
                self.lib = None
        except OSError:
            self.lib = None

    def read(self, name, value, *arguments):
        if self.lib is None or getattr(self.lib, name)(self.device, *arguments, ctypes.byref(value)):
            return None
        return value.value

    def clock_mhz(self):
        return self.read("nvmlDeviceGetClockInfo", ctypes.c_uint(), ctypes.c_int(1))

    def watts(self):
        milliwatts = self.read("nvmlDeviceGetPowerUsage", ctypes.c_uint())
        return None if milliwatts is None else milliwatts / 1e3

    def joules(self):
        millijoules = self.read("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong())
        return None if millijoules is None else millijoules / 1e3


class Entrant:
    """One way to compute a shape, as a CUDA graph."""

    def __init__(self, name, launch, state, facts):
        self.name, self.launch, self.facts = name, launch, facts
        self.samples, self.clock, self.watts, self.joules = [], None, None, None
        self.graph, self.count = self.capture(LAUNCHES), LAUNCHES
        self.time()  # the first replay also loads
        once = self.time()
        count = SHORT_LAUNCHES if once < SHORT_US else LAUNCHES
        if state == "burst":
            count = max(1, min(count, int(BURST_US / (TIMED_REPLAYS + 1) / once)))
        if count != self.count:
            self.graph, self.count = self.capture(count), count

    def capture(self, count):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.launch()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                self.launch()
        return graph

    def time(self):
        """Microseconds a launch of one replay."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3 / self.count

    def segment(self, state, number, nvml):
        joules, launches = nvml.joules(), 0
        if state == "burst":
            time.sleep(1)
            self.graph.replay()
        else:
            begin = time.monotonic()
            while time.monotonic() - begin < 1:
                self.time()
                launches += self.count
        for _ in range(TIMED_REPLAYS):
            self.samples.append([number, self.time()])
        launches += TIMED_REPLAYS * self.count
        self.clock, self.watts = nvml.clock_mhz(), nvml.watts()
        if state == "steady" and joules is not None:
            self.joules = (nvml.joules() - joules) / launches

    def times(self):
        return [us for _, us in self.samples]

    def result(self, flops):
        median = statistics.median(self.times())
        return dict(name=self.name, median_us=median, p90_us=percentile(self.times(), 0.9),
                    p99_us=percentile(self.times(), 0.99), tflops=flops / median / 1e6,
                    launches_per_graph=self.count, sm_clock_mhz=self.clock, watts=self.watts,
                    joules_per_launch=self.joules, samples_round_us=self.samples, **self.facts)


def sdpa_entrants(q, k, v, mask, state):
    """Each backend that takes the shape; for the others, the reason."""
    entrants, refused = [], {}
    for name, backend in BACKENDS.items():
        if name == "math" and q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] > MATH_MOST_SCORES:
            refused[name] = "skipped: its score matrix would take gigabytes"
            continue
        try:
            def launch(backend=backend):
                with sdpa_kernel(backend):
                    return F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal",
                                                          enable_gqa=q.shape[1] != k.shape[1])
            entrants.append(Entrant(name, launch, state, dict(kind="sdpa")))
        except RuntimeError as error:
            refused[name] = str(error).splitlines()[0][:200]
    return entrants, refused


def fagen_entrants(library, q, k, v, mask, state, everything):
    """The row that dispatch picks; with `everything` each fitting variant."""
    o = torch.empty(*q.shape[:3], v.shape[3], dtype=q.dtype, device="cuda")
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device="cuda")
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=mask == "causal", enable_gqa=False).float()
    picked = library.attention(q, k, v, o, lse, mask).info().variant.decode()
    entrants = []
    for variant in library.variants() if everything else [picked]:
        try:
            attention = library.attention(q, k, v, o, lse, mask, variant)
        except fagen_ctypes.Error:
            continue  # another problem's variant
        o.fill_(float("nan"))
        attention()
        difference = (o.float() - expected).abs().max().item()
        if not difference < 2e-2:
            sys.exit(f"{variant} differs from PyTorch by {difference} on {tuple(q.shape)} {mask}")
        info = attention.info()
        entrants.append(Entrant(variant, attention, state,
                                dict(kind="fagen", picked=variant == picked, target=info.target.decode(),
                                     registers=info.registers, local_bytes=info.local_bytes,
                                     max_difference_from_sdpa=difference)))
    return entrants


def parse_shape(text):
    named = {"mission": (1, 8, 512, 64), "mission2": (2, 8, 512, 64)}
    return named[text] if text in named else tuple(int(x) for x in text.split(","))


def shapes_of(arguments):
    shapes = [parse_shape(text) for text in arguments.shape]
    if arguments.grid:
        shapes += [(16384 // s, 2048 // d, s, d) for d in (64, 128) for s in (512, 2048, 8192)]
    return shapes or [parse_shape("mission"), parse_shape("mission2")]


def measure(library, shape, mask, dtype, arguments, nvml):
    b, h, s, d = shape
    torch.manual_seed(0)
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=dtype) for _ in range(3))
    flops = 4.0 * b * h * s * s * d * (0.5 if mask == "causal" else 1.0)
    entrants, refused = sdpa_entrants(q, k, v, mask, arguments.state)
    entrants += fagen_entrants(library, q, k, v, mask, arguments.state, arguments.all)
    for number in range(arguments.rounds):
        for entrant in entrants:
            entrant.segment(arguments.state, number, nvml)
    results = [entrant.result(flops) for entrant in entrants]
    for r in results:
        print(f"b{b} h{h} s{s} d{d} {mask:6s} {r['name']:44s} {r['median_us']:9.2f} us {r['tflops']:7.1f} TFLOP/s",
              file=sys.stderr, flush=True)
    return dict(b=b, h=h, s=s, d=d, mask=mask, dtype=str(dtype).split(".")[1], refused=refused, results=results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", help="generated kernel directories")
    parser.add_argument("--library", default="build/release/bin/libfagen_capi.so")
    parser.add_argument("--output", required=True, help="JSON file to write")
    parser.add_argument("--shape", action="append", default=[], help="b,h,s,d, mission or mission2; may be repeated")
    parser.add_argument("--grid", action="store_true", help="d 64, 128 at S 512, 2048, 8192; B*S = 16384, H*d = 2048")
    parser.add_argument("--dtype", choices=["float16", "bfloat16"], default="float16")
    parser.add_argument("--state", choices=["burst", "steady"], default="burst")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="every fitting variant, not only the dispatched one")
    parser.add_argument("--note", action="append", default=[], help="key=value to keep in the JSON")
    arguments = parser.parse_args()
    library = fagen_ctypes.Library(arguments.library, arguments.directories)
    nvml = Nvml()
    problems = [measure(library, shape, mask, getattr(torch, arguments.dtype), arguments, nvml)
                for shape in shapes_of(arguments) for mask in ("none", "causal")]
    properties = torch.cuda.get_device_properties(0)
    machine = dict(gpu=properties.name, sms=properties.multi_processor_count, torch=torch.__version__,
                   cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), python=platform.python_version())
    with open(arguments.output, "w") as file:
        json.dump(dict(tool="compare_sdpa.py", state=arguments.state, rounds=arguments.rounds, machine=machine,
                       notes=dict(note.split("=", 1) for note in arguments.note),
                       layout="contiguous [B, H, S, D]; ours also writes LSE", problems=problems), file, indent=1)


if __name__ == "__main__":
    main()
