# fagen: attention over several GPUs of one host: right, and how fast compared with one GPU and with others.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 measure/parallel.py --out DIR [--package DIR] [--ranks N] [--phases PHASE,...] [--seq 65536,131072]
[--unpack FILE]... [--note key=value]...

A process for each GPU, over NCCL without NVLink multicast. Each phase has processes and a time limit of its own (--limit seconds for
all, 470), and writes DIR/parallel_PHASE.json after each result: what was measured before a phase is stopped is there.

right: against float64 on one GPU. time: the same global problem on one GPU and on all, by schemes in turn; a sample is a call's share of four
in a row on the slowest rank, all are kept; `tflops` is of the median. `... one at a time` has samples of one call, the host's start of it among them. peers: PyTorch's context_parallel by its backends, and ring-flash-attn's zigzag over
flash-attn 3 where both are installed, or in archives (wheels, .tar.xz) that --unpack names. graph: a call captured and replayed. copies: a
ring by copy engines next to one by NCCL. failure: a rank that ends, and how long the others take to say so. gradients_right and gradients
(measure/parallel_gradients.py): gradients against float64, and forward with backward timed as `time` and `peers` do. Two GPUs, with gradients alone:

    python3 measure/parallel.py --out DIR --ranks 2 --phases gradients_right,gradients --seq 65536
"""
import argparse
import functools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
LIMITS = {"right": 120, "time": 190, "copies": 70, "peers": 100, "graph": 60, "failure": 40, "gradients_right": 150, "gradients": 300}
FIRST = "right,time,copies,peers,graph,failure"
HEADS, KV_HEADS, WIDTH, ROUNDS = 16, 16, 128, 7
MOST_ERROR = 0.015  # of the largest element; what is rounded to 16 bits and added up loses some thousandths
IN_A_ROW = 4  # calls of a sample, as a training step or a model's layers follow each other
DEVICE = "cuda"


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--package", help="where `fagen` is, else as Python finds it")
    parser.add_argument("--ranks", type=int, help="GPUs; all where not given")
    parser.add_argument("--phases", default=FIRST, help=", ".join(LIMITS))
    parser.add_argument("--seq", default="65536,131072")
    parser.add_argument("--limit", type=float, default=470)
    parser.add_argument("--unpack", action="append", default=[], help="a wheel or tar whose modules are found, too")
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--cpu", action="store_true", help="try the script: small tensors, over gloo")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# The parent: a phase after the other.

def environment(options):
    here = {**os.environ, "NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1",
            "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "4"}
    found = ([os.path.abspath(options.package)] if options.package else []) + ([options.folder] if options.unpack else [])
    return {**here, "PYTHONPATH": os.pathsep.join([*found, here.get("PYTHONPATH", "")])}


def run_phase(phase, number, options, seconds):
    """Its processes; those that are there after the time are ended."""
    command = [sys.executable, __file__, "--out", str(options.out), "--phases", phase, "--ranks", str(options.ranks), "--seq", options.seq]
    command += ["--cpu"] * options.cpu
    command += [word for note in options.note for word in ("--note", note)]
    logs = [open(options.out / f"parallel_{phase}_{rank}.log", "w", encoding="utf-8") for rank in range(options.ranks)]
    here = {**environment(options), "MASTER_PORT": str(29500 + number)}
    processes = [subprocess.Popen([*command, "--rank", str(rank)], env=here, stdout=log, stderr=subprocess.STDOUT) for rank, log in enumerate(logs)]
    end = time.monotonic() + seconds
    while any(p.poll() is None for p in processes) and time.monotonic() < end:
        time.sleep(0.5)
    for process in processes:
        if process.poll() is None:
            process.kill()
    return [process.wait() for process in processes]


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fagen-peers-") as options.folder:
        for file in options.unpack:
            shutil.unpack_archive(file, options.folder, "zip" if file.endswith(".whl") else None)
        for program in pathlib.Path(options.folder).glob("*/bin/*"):
            program.chmod(0o755)
        run_phases(options)


def run_phases(options):
    if options.ranks is None:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
        options.ranks = len(listed.strip().splitlines())
    end = time.monotonic() + options.limit
    for number, phase in enumerate(options.phases.split(",")):
        seconds = min(LIMITS[phase], end - time.monotonic())
        began = time.monotonic()
        codes = run_phase(phase, number, options, seconds) if seconds > 10 else "no time left"
        print(f"{phase}: {codes}, {time.monotonic() - began:.0f} s", flush=True)
        for file in sorted(options.out.glob(f"parallel_{phase}_*.log")):
            said = file.read_text(encoding="utf-8", errors="replace").strip()
            print("\n".join(f"  {file.stem}: {line}" for line in said.splitlines()[-12:]), flush=True)


# A rank.

class Results:
    """What a phase found, in a file that is written anew with each result. Only the first rank writes."""

    def __init__(self, phase, options):
        import torch
        from notes import machine, notes_of
        self.path, self.rank, self.wrong = options.out / f"parallel_{phase}.json", options.rank, 0
        self.found = {"phase": phase, "ranks": options.ranks, "machine": machine(), "notes": notes_of(options.note), "torch": torch.__version__,
                      "nccl": None if options.cpu else ".".join(map(str, torch.cuda.nccl.version())), "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": WIDTH, "results": []}

    def add(self, **result):
        self.wrong += result.get("right") is False
        if self.rank:
            return
        self.found["results"].append(result)
        self.path.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        print(json.dumps({k: v for k, v in result.items() if k != "samples_ms"}), flush=True)


def start(options):
    import datetime
    import torch
    import torch.distributed as dist
    if options.cpu:
        globals().update(DEVICE="cpu", WIDTH=32, KV_HEADS=8, ROUNDS=2)
        dist.init_process_group("gloo", rank=options.rank, world_size=options.ranks)
        return
    torch.cuda.set_device(options.rank)
    dist.init_process_group("nccl", rank=options.rank, world_size=options.ranks, device_id=torch.device("cuda", options.rank),
                            timeout=datetime.timedelta(seconds=90))


def draw(rows, keys, heads, kv_heads, dtype, seed=0):
    """q, k and v of the whole sequence: the same on each rank."""
    import torch
    made = torch.Generator(DEVICE).manual_seed(seed)
    return [torch.randn((1, n, h, WIDTH), generator=made, device=DEVICE, dtype=dtype) for n, h in ((rows, heads), (keys, kv_heads), (keys, kv_heads))]


def gathered(tensor, split, dim, ranks):
    """The whole of what ranks hold, on each."""
    import torch
    import torch.distributed as dist
    most = max(split.size(rank) for rank in range(ranks))
    padded = torch.zeros([most if i == dim else n for i, n in enumerate(tensor.shape)], dtype=tensor.dtype, device=DEVICE)
    padded.narrow(dim, 0, tensor.shape[dim]).copy_(tensor)
    all_of = [torch.empty_like(padded) for _ in range(ranks)]
    dist.all_gather(all_of, padded)
    return split.join([one.narrow(dim, 0, split.size(rank)) for rank, one in enumerate(all_of)], dim)


def exact(q, k, v, seen, score=None, sink=None):
    """O and LSE in float64, a head at a time."""
    import torch
    o, lse = [], []
    group = q.shape[2] // k.shape[2]
    for head in range(q.shape[2]):
        one, key, value = q[0, :, head].double(), k[0, :, head // group].double(), v[0, :, head // group].double()
        scores = one @ key.T * WIDTH ** -0.5
        scores = (score(scores, head) if score else scores).masked_fill(~seen, -torch.inf)
        sums = torch.logsumexp(scores, -1)
        if sink is not None:
            sums = torch.logaddexp(sums, sink[head].double())
        o.append(torch.exp(scores - sums.masked_fill(sums == -torch.inf, 0)[:, None]) @ value)
        lse.append(sums)
    return torch.stack(o, 1)[None], torch.stack(lse)[None]


def cases(rows, keys, heads):
    """name: (options of the call, what it means)."""
    import torch
    row, key = torch.arange(rows, device=DEVICE)[:, None], torch.arange(keys, device=DEVICE)[None]
    place = row + keys - rows
    causal = key <= place
    offsets = torch.tensor([0, keys // 10, keys // 10 + 1, keys // 2, keys - 40, keys])
    ids = torch.bucketize(torch.arange(keys), offsets[1:], right=True).to(DEVICE)
    same = ids[key] == ids[place.clamp(min=0)]
    slopes, sinks = torch.linspace(0.01, 0.5, heads, device=DEVICE), torch.linspace(-2, 3, heads, device=DEVICE)
    everything = torch.ones((rows, keys), dtype=torch.bool, device=DEVICE)
    return {
        "none": ({}, (everything,)), "causal": ({"causal": True}, (causal,)),
        "window": ({"causal": True, "window": (700, 0)}, (causal & (place - key <= 700),)),
        "local": ({"window": (300, 200)}, ((key >= place - 300) & (key <= place + 200),)),
        "documents": ({"causal": True, "documents": offsets}, (causal & same,)),
        "softcap": ({"form": "softcap", "form_args": {"cap": 20.0}}, (causal, lambda s, head: 20 * torch.tanh(s / 20))),
        "gemma2": ({"form": "gemma2", "form_args": {"cap": 20.0, "window": 500}},
                   (causal & (place - key < 500), lambda s, head: 20 * torch.tanh(s / 20))),
        "alibi": ({"form": "alibi", "form_args": {"slope": slopes}}, (causal, lambda s, head: s + slopes[head].double() * (key - place))),
        "gpt_oss": ({"form": "gpt_oss", "form_args": {"window": 500, "sinks": sinks}}, (causal & (place - key < 500), None, sinks)),
        "streaming": ({"form": "streaming", "form_args": {"first": 4, "window": 500}}, (causal & ((key < 4) | (place - key < 500)),)),
    }


def right(options, results):
    import torch
    import fagen
    from fagen import parallel
    rank, ranks = options.rank, options.ranks
    import torch.distributed as dist
    meshes = {shape: dist.init_device_mesh(DEVICE, shape) for shape in {(ranks, 1), (1, ranks), (ranks // 2, 2)} if shape[0] * shape[1] == ranks}
    sizes = ((200, 200, 2, torch.float16),) if options.cpu else ((4096, 4096, 8, torch.bfloat16), (3001, 3001, 2, torch.float16), (1500, 3001, 1, torch.bfloat16))
    for rows, keys, kv_heads, dtype in sizes:
        q, k, v = draw(rows, keys, 8, kv_heads, dtype)
        for name, (asked, meaning) in cases(rows, keys, 8).items():
            wanted, sums = exact(q, k, v, *meaning)
            one = None
            if name in ("none", "causal"):
                one = float((fagen.attention(q, k, v, causal=name == "causal", fallback="torch" if options.cpu else "error").double() - wanted).abs().max())
            ways = [("ring", None, parallel.zigzag), ("ring", None, parallel.contiguous), ("ulysses", None, parallel.contiguous)]
            ways += [("mixed", shape, None) for shape in meshes]
            for scheme, shape, make in ways:
                of = make or (lambda n, ranks, shape=shape: parallel.zigzag(n, shape[0]).divide(shape[1]))
                split, other = of(rows, ranks), of(keys, ranks)
                try:
                    held = [one_split.shard(t, rank) for t, one_split in ((q, split), (k, other), (v, other))]
                    call = functools.partial(parallel.attention, *held, split=split, keys=other, scheme=scheme, mesh=shape and meshes[shape],
                                             return_lse=True, **asked)
                    (o, lse), again = call(), call()
                    same = torch.equal(o, again[0]) and torch.equal(lse, again[1])
                    o, lse = gathered(o, split, 1, ranks), gathered(lse, split, 2, ranks)
                    finite = sums != -torch.inf
                    error, largest = float((o.double() - wanted).abs().max()), float(wanted.abs().max())
                    results.add(right=error <= MOST_ERROR * largest,
                                case=name, rows=rows, keys=keys, kv_heads=kv_heads, dtype=str(dtype), scheme=scheme, mesh=shape,
                                split=make.__name__ if make else "zigzag.divide", o_error=error, one_gpu_o_error=one,
                                lse_error=float((lse.double() - sums)[finite].abs().max()), no_keys_agree=bool(((lse == -torch.inf) == ~finite).all()),
                                largest=largest, same_bits=same)
                except fagen.Unsupported as error:
                    results.add(case=name, rows=rows, keys=keys, kv_heads=kv_heads, dtype=str(dtype), scheme=scheme, mesh=shape, unsupported=str(error))


def took(call, in_a_row):
    """Milliseconds of a call on this rank, of so many in a row."""
    import torch
    if DEVICE == "cpu":
        began = time.perf_counter()
        for _ in range(in_a_row):
            call()
        return 1000 * (time.perf_counter() - began) / in_a_row
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(in_a_row):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / in_a_row


def timed(calls, rounds=None, in_a_row=IN_A_ROW):
    """{name: [milliseconds of the slowest rank]}: calls take turns; all ranks begin together."""
    import torch
    import torch.distributed as dist
    samples = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS if rounds is None else rounds):
        for name, call in calls.items():
            dist.barrier()
            taken = torch.tensor([took(call, in_a_row)], device=DEVICE)
            dist.all_reduce(taken, dist.ReduceOp.MAX)
            samples[name].append(float(taken))
    return samples


def operations(rows, keys, causal):
    return 4 * HEADS * WIDTH * (rows * keys if not causal else rows * (2 * keys - rows + 1) / 2)


def report(results, samples, rows, causal, what, peaks=None, base=None, **more):
    for name, each in samples.items():
        median = statistics.median(each)
        results.add(what=what, way=name, seq=rows, causal=causal, median_ms=median, least_ms=min(each), samples_ms=each,
                    tflops=operations(rows, rows, causal) / median / 1e9, speedup=base / median if base else None,
                    peak_mib=(peaks or {}).get(name), **more)


def peak_of(call):
    """MiB that a call takes in addition to what is there, its output among it; the most of all ranks."""
    import torch
    import torch.distributed as dist
    if DEVICE == "cpu":
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    most = torch.tensor([(torch.cuda.max_memory_allocated() - before) / 2**20], device=DEVICE)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return float(most)


@functools.lru_cache(maxsize=None)
def group_of(ctas):
    """All ranks, with at most so many thread blocks for a transfer: those that it takes from what computes."""
    import torch.distributed as dist
    if DEVICE == "cpu":
        return dist.new_group()
    made = dist.ProcessGroupNCCL.Options()
    made.config.max_ctas = ctas
    return dist.new_group(backend="nccl", pg_options=made)


def ways_of(options, q, k, v, causal):
    """Calls of each scheme on this rank's part of the whole tensors."""
    from fagen import parallel
    import torch.distributed as dist
    rank, ranks, rows = options.rank, options.ranks, q.shape[1]

    def of(split, **asked):
        plan = parallel.Plan(split, batch=1, heads=HEADS, kv_heads=KV_HEADS, head_dim=WIDTH, dtype=q.dtype, device=q.device, causal=causal, **asked)
        held = [split.shard(t, rank).contiguous() for t in (q, k, v)]
        return lambda: plan(*held)
    found = {"ring": of(parallel.zigzag(rows, ranks))}
    for ctas in (4, 8, 16):
        found[f"ring, {ctas} CTAs of NCCL"] = of(parallel.zigzag(rows, ranks), group=group_of(ctas))
    for chunks in (1, 2, 4):
        found[f"ulysses, {chunks} chunks"] = of(parallel.contiguous(rows, ranks), scheme="ulysses", chunks=chunks)
    if ranks % 2 == 0:
        shape = (ranks // 2, 2) if ranks > 2 else (2, 1)
        mesh = dist.init_device_mesh(DEVICE, shape)
        found[f"mixed {shape[0]} x {shape[1]}"] = of(parallel.zigzag(rows, shape[0]).divide(shape[1]), scheme="mixed", mesh=mesh)
    return found


def times(options, results):
    import torch
    import fagen
    for rows in map(int, options.seq.split(",")):
        for causal in (True, False):
            q, k, v = draw(rows, rows, HEADS, KV_HEADS, torch.bfloat16)
            o = torch.empty_like(q)
            alone = {"one GPU": lambda: fagen.attention(q, k, v, causal=causal, out=o, fallback="torch" if options.cpu else "error")}
            one, single = timed(alone, 5 if rows <= 65536 else 3), timed(alone, 3, 1)
            base = statistics.median(one["one GPU"])
            report(results, one, rows, causal, "one")
            report(results, single, rows, causal, "one, one at a time")
            calls = ways_of(options, q, k, v, causal)
            del q, k, v, o, alone
            samples = timed(calls)
            report(results, samples, rows, causal, "fagen", {name: peak_of(call) for name, call in calls.items()}, base)
            report(results, timed(calls, 3, 1), rows, causal, "fagen, one at a time", base=statistics.median(single["one GPU"]))
            if rows == 65536 and not options.cpu:
                profiled(results, calls["ring"], f"ring, causal={causal}")
                profiled(results, calls["ulysses, 2 chunks"], f"ulysses, causal={causal}")
    results.add(what="launches", launches={f"{name} {target}": count for (name, target), count in __import__("fagen.torch").torch.launches().items()})


def profiled(results, call, name):
    """The kernels of one call, by their time: what travels runs under what computes."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    kernels = [(e.key[:90], e.count, e.device_time_total / 1000) for e in profile.key_averages() if e.device_time_total]
    results.add(what="profile", way=name, kernels=sorted(kernels, key=lambda one: -one[2])[:12])


def peers(options, results):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel
    mesh = dist.init_device_mesh(DEVICE, (options.ranks,))
    for rows in (int(n) for n in options.seq.split(",")[:1]):
        for causal in (True, False):
            for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
                q, k, v = (t.transpose(1, 2).contiguous() for t in draw(rows, rows, HEADS, KV_HEADS, torch.bfloat16))
                try:
                    with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2], no_restore_buffers={q, k, v}), sdpa_kernel(backend), \
                            torch.no_grad():
                        call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)  # noqa: E731
                        samples = timed({f"context_parallel, {backend.name}": call}, 5)
                        report(results, samples, rows, causal, "peer", {name: peak_of(call) for name in samples})
                except Exception as error:  # a peer that does not run is a result
                    results.add(what="peer", way=f"context_parallel, {backend.name}", seq=rows, causal=causal, failed=f"{type(error).__name__}: {error}"[:400])
            over_fa3(options, results, rows, causal)


def over_fa3(options, results, rows, causal):
    """ring-flash-attn's zigzag, and its plain ring where no mask is, with flash-attn 3's forward in place of flash-attn 2's."""
    import torch
    from fagen import parallel
    try:
        import fa3_shim  # measure/fa3_shim.py
        import ring_flash_attn
    except ImportError as error:
        results.add(what="peer", way="ring-flash-attn over FA3", seq=rows, causal=causal, failed=f"not installed: {error}")
        return
    try:
        fa3_shim.check()
        q, k, v = draw(rows, rows, HEADS, KV_HEADS, torch.bfloat16)
        split = parallel.zigzag(rows, options.ranks) if causal else parallel.contiguous(rows, options.ranks)
        held = [split.shard(t, options.rank).contiguous() for t in (q, k, v)]
        function = ring_flash_attn.zigzag_ring_flash_attn_func if causal else ring_flash_attn.ring_flash_attn_func
        with torch.no_grad():
            call = lambda: function(*held, causal=causal)  # noqa: E731
            samples = timed({"ring-flash-attn over FA3": call}, 5)
            error = None
            if causal:
                ours = parallel.attention(*held, split=split, causal=True)
                error = float((call().float() - ours.float()).abs().max())
            report(results, samples, rows, causal, "peer", {name: peak_of(call) for name in samples}, difference_from_ours=error)
    except Exception as error:
        results.add(what="peer", way="ring-flash-attn over FA3", seq=rows, causal=causal, failed=f"{type(error).__name__}: {error}"[:400])


def graph(options, results):
    import torch
    from fagen import parallel
    rows = 16384
    for scheme, split in (("ring", parallel.zigzag(rows, options.ranks)), ("ulysses", parallel.contiguous(rows, options.ranks))):
        held = [split.shard(t, options.rank).contiguous() for t in draw(rows, rows, HEADS, KV_HEADS, torch.bfloat16)]
        plan = parallel.Plan(split, batch=1, heads=HEADS, kv_heads=KV_HEADS, head_dim=WIDTH, dtype=torch.bfloat16, device=DEVICE, causal=True, scheme=scheme)
        wanted = plan(*held)
        torch.cuda.synchronize()
        try:
            captured, o = torch.cuda.CUDAGraph(), torch.empty_like(wanted)
            with torch.cuda.graph(captured, capture_error_mode="thread_local"):
                plan(*held, out=o)
            for _ in range(3):
                o.zero_()
                captured.replay()
            torch.cuda.synchronize()
            results.add(what="graph", scheme=scheme, same_bits=bool(torch.equal(o, wanted)))
            samples = timed({f"{scheme}, captured": captured.replay, f"{scheme}, called": lambda: plan(*held)})
            report(results, samples, rows, True, "graph")
        except Exception as error:
            results.add(what="graph", scheme=scheme, failed=f"{type(error).__name__}: {error}"[:400])


def copies(options, results):
    import torch
    from fagen import parallel
    rows = int(options.seq.split(",")[0])
    for causal in (True, False):
        split = parallel.zigzag(rows, options.ranks)
        held = [split.shard(t, options.rank).contiguous() for t in draw(rows, rows, HEADS, KV_HEADS, torch.bfloat16)]
        calls, outputs = {}, []
        for transport in ("messages", "copies"):
            plan = parallel.Plan(split, batch=1, heads=HEADS, kv_heads=KV_HEADS, head_dim=WIDTH, dtype=torch.bfloat16, device=DEVICE, causal=causal,
                                 transport=transport, timeout=30)
            outputs.append(plan(*held))
            calls[f"ring by {transport}"] = functools.partial(plan, *held)
        results.add(what="copies", causal=causal, same_bits=bool(torch.equal(*outputs)))
        samples = timed(calls)
        report(results, samples, rows, causal, "copies", {name: peak_of(call) for name, call in calls.items()})
        profiled(results, calls["ring by copies"], f"ring by copies, causal={causal}")


def failure(options, results):
    """The last rank ends before a plan: the others say so after the plan's timeout."""
    import torch
    from fagen import parallel
    split = parallel.zigzag(4096, options.ranks)
    parallel.Plan(split, batch=1, heads=4, head_dim=WIDTH, dtype=torch.bfloat16, device=DEVICE, causal=True)
    if options.rank == options.ranks - 1:
        os._exit(0)
    began = time.monotonic()
    try:
        parallel.Plan(split, batch=2, heads=4, head_dim=WIDTH, dtype=torch.bfloat16, device=DEVICE, causal=True, timeout=5)
        results.add(what="failure", said=None)
    except parallel.PeerError as error:
        results.add(what="failure", said=str(error), seconds=time.monotonic() - began)
    os._exit(0)


def main_of_rank(options):
    sys.path.insert(0, str(HERE))
    start(options)
    results = Results(options.phases, options)
    try:
        import parallel_gradients as gradients
        this = sys.modules[__name__]
        {"right": right, "time": times, "peers": peers, "graph": graph, "copies": copies, "failure": failure,
         "gradients_right": functools.partial(gradients.right, this), "gradients": functools.partial(gradients.times, this)}[options.phases](options, results)
    except BaseException:
        results.add(error=traceback.format_exc()[-3000:])
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)
    os._exit(2 if results.wrong else 0)


if __name__ == "__main__":
    given = options_of(sys.argv[1:])
    main(given) if given.rank is None else main_of_rank(given)
