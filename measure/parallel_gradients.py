# fagen: the phases of measure/parallel.py for gradients: right, and forward with backward timed next to one GPU and others.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each phase is function(bench, options, results), where `bench` is measure/parallel.py's module."""
import functools
import statistics


def _wanted(bench, q, k, v, grad, seen, score=None, sink=None):
    """dQ, dK and dV in float64, a head at a time."""
    import torch
    group, found = q.shape[2] // k.shape[2], [torch.zeros(t.shape, dtype=torch.float64, device=t.device) for t in (q, k, v)]
    for head in range(q.shape[2]):
        of = head // group
        one, key, value = (t[0, :, h].double().requires_grad_() for t, h in ((q, head), (k, of), (v, of)))
        scores = one @ key.T * bench.WIDTH ** -0.5
        scores = (score(scores, head) if score else scores).masked_fill(~seen, -torch.inf)
        sums = torch.logsumexp(scores, -1)
        if sink is not None:
            sums = torch.logaddexp(sums, sink[head].double())
        o = torch.exp(scores - sums.masked_fill(sums == -torch.inf, 0)[:, None]) @ value
        parts = torch.autograd.grad((o * grad[0, :, head].double()).sum(), (one, key, value))
        for into, part, h in zip(found, parts, (head, of, of)):
            into[0, :, h] += part.nan_to_num()
    return found


def right(bench, options, results):
    """Against float64 on one GPU; the error of one GPU's own gradients is given with it."""
    import torch
    import torch.distributed as dist
    import fagen
    from fagen import parallel
    rank, ranks = options.rank, options.ranks
    meshes = {shape: dist.init_device_mesh(bench.DEVICE, shape) for shape in {(ranks, 1), (ranks // 2, 2)} if shape[0] * shape[1] == ranks}
    sizes = ((120, 120, 2, torch.float16),) if options.cpu else ((4096, 4096, 8, torch.bfloat16), (3001, 3001, 2, torch.float16), (1500, 3001, 1, torch.bfloat16))
    for rows, keys, kv_heads, dtype in sizes:
        q, k, v = bench.draw(rows, keys, 8, kv_heads, dtype)
        grad = bench.draw(rows, keys, 8, kv_heads, dtype, seed=1)[0]
        for name, (asked, meaning) in bench.cases(rows, keys, 8).items():
            wanted, one = _wanted(bench, q, k, v, grad, *meaning), None
            if name in ("none", "causal"):
                given = [t.detach().requires_grad_() for t in (q, k, v)]
                o = fagen.attention(*given, causal=name == "causal", fallback="torch" if options.cpu else "error")
                one = [float((t.double() - w).abs().max()) for t, w in zip(torch.autograd.grad(o, given, grad), wanted)]
            ways = [("ring", None, parallel.zigzag), ("ulysses", None, parallel.contiguous), *(("mixed", shape, None) for shape in meshes)]
            for scheme, shape, make in ways:
                of = make or (lambda n, ranks, shape=shape: parallel.zigzag(n, shape[0]).divide(shape[1]))
                split, other = of(rows, ranks), of(keys, ranks)
                said = {"case": name, "rows": rows, "keys": keys, "kv_heads": kv_heads, "dtype": str(dtype), "scheme": scheme, "mesh": shape}
                try:
                    found, again = (_differentiated(q, k, v, grad, split, other, rank, scheme=scheme, mesh=shape and meshes[shape], **asked) for _ in range(2))
                    same = [bool(torch.equal(*pair)) for pair in zip(found, again)]
                    found = [bench.gathered(t, by, 1, ranks) for t, by in zip(found, (split, other, other))]
                    errors, largest = [float((t.double() - w).abs().max()) for t, w in zip(found, wanted)], [float(w.abs().max()) for w in wanted]
                    results.add(**said, right=all(e <= bench.MOST_ERROR * w for e, w in zip(errors, largest)), errors=errors, one_gpu_errors=one,
                                largest=largest, same_bits=same)
                except fagen.Unsupported as error:
                    results.add(**said, unsupported=str(error))


def _differentiated(q, k, v, grad, split, keys, rank, **asked):
    import torch
    from fagen import parallel
    held = [by.shard(t, rank).detach().requires_grad_() for t, by in ((q, split), (k, keys), (v, keys))]
    return torch.autograd.grad(parallel.attention(*held, split=split, keys=keys, **asked), held, split.shard(grad, rank).contiguous())


def _both(call, held, grad):
    """A call with its gradients."""
    import torch
    return lambda: torch.autograd.grad(call(*held), held, grad)


def times(bench, options, results):
    """Forward with backward: one GPU on the same global problem, then each scheme in turn."""
    import torch
    import fagen
    for rows in map(int, options.seq.split(",")):
        for causal in (True, False):
            q, k, v = (t.requires_grad_() for t in bench.draw(rows, rows, bench.HEADS, bench.KV_HEADS, torch.bfloat16))
            grad = bench.draw(rows, rows, bench.HEADS, bench.KV_HEADS, torch.bfloat16, seed=1)[0]
            fallback = "torch" if options.cpu else "error"
            alone = _both(functools.partial(fagen.attention, causal=causal, fallback=fallback), (q, k, v), grad)
            one = bench.timed({"one GPU": alone}, 3)
            base = statistics.median(one["one GPU"])
            bench.report(results, one, rows, causal, "one, with gradients", {"one GPU": bench.peak_of(alone)})
            calls = _ways(bench, options, q, k, v, grad, causal)
            del q, k, v, grad, alone
            samples = bench.timed(calls, 5)
            bench.report(results, samples, rows, causal, "fagen, with gradients", {name: bench.peak_of(call) for name, call in calls.items()}, base)
            if not options.cpu and rows == 65536:
                bench.profiled(results, calls["ring"], f"ring with gradients, causal={causal}")
            del calls
            _peers(bench, options, results, rows, causal, base)


def _ways(bench, options, q, k, v, grad, causal):
    """Calls with gradients of each scheme on this rank's part of the whole tensors."""
    import torch.distributed as dist
    from fagen import parallel
    rank, ranks, rows = options.rank, options.ranks, q.shape[1]

    def of(split, **asked):
        plan = parallel.Plan(split, batch=1, heads=bench.HEADS, kv_heads=bench.KV_HEADS, head_dim=bench.WIDTH, dtype=q.dtype, device=q.device, causal=causal,
                             **asked)
        held = [split.shard(t, rank).detach().contiguous().requires_grad_() for t in (q, k, v)]
        return _both(plan, held, split.shard(grad, rank).contiguous())
    found = {"ring": of(parallel.zigzag(rows, ranks)), "ulysses": of(parallel.contiguous(rows, ranks), scheme="ulysses")}
    if ranks % 2 == 0:
        shape = (ranks // 2, 2) if ranks > 2 else (2, 1)
        mesh = dist.init_device_mesh(bench.DEVICE, shape)
        found[f"mixed {shape[0]} x {shape[1]}"] = of(parallel.zigzag(rows, shape[0]).divide(shape[1]), scheme="mixed", mesh=mesh)
    return found


def _peers(bench, options, results, rows, causal, base):
    for name, call in (("context_parallel, FLASH_ATTENTION", _by_torch), ("context_parallel, CUDNN_ATTENTION", _by_torch),
                       ("ring-flash-attn over FA3", _by_ring_flash_attn)):
        try:
            call(bench, options, results, rows, causal, base, name)
        except Exception as error:  # a peer that does not run is a result
            results.add(what="peer, with gradients", way=name, seq=rows, causal=causal, failed=f"{type(error).__name__}: {error}"[:400])


def _by_torch(bench, options, results, rows, causal, base, name):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel
    mesh = dist.init_device_mesh(bench.DEVICE, (options.ranks,))
    q, k, v = (t.transpose(1, 2).contiguous() for t in bench.draw(rows, rows, bench.HEADS, bench.KV_HEADS, torch.bfloat16))
    grad = q.clone()
    backend = getattr(SDPBackend, name.split()[-1])
    buffers = [q, k, v, grad]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4, no_restore_buffers=set(buffers)), sdpa_kernel(backend):
        held = [t.detach().requires_grad_() for t in buffers[:3]]
        both = _both(lambda *t: F.scaled_dot_product_attention(*t, is_causal=causal), held, grad)
        samples = bench.timed({name: both}, 3)
        bench.report(results, samples, rows, causal, "peer, with gradients", {name: bench.peak_of(both)}, base)


def _by_ring_flash_attn(bench, options, results, rows, causal, base, name):
    import torch
    from fagen import parallel
    import fa3_shim  # measure/fa3_shim.py
    import ring_flash_attn
    fa3_shim.check()
    split = parallel.zigzag(rows, options.ranks) if causal else parallel.contiguous(rows, options.ranks)
    q, k, v = (split.shard(t, options.rank).contiguous() for t in bench.draw(rows, rows, bench.HEADS, bench.KV_HEADS, torch.bfloat16))
    held = [t.requires_grad_() for t in (q, k, v)]
    function = ring_flash_attn.zigzag_ring_flash_attn_func if causal else ring_flash_attn.ring_flash_attn_func
    both = _both(functools.partial(function, causal=causal), held, q.detach().clone())
    difference = None
    if causal:
        ours = _both(functools.partial(parallel.attention, split=split, causal=True), held, q.detach().clone())
        difference = [float((a.float() - b.float()).abs().max()) for a, b in zip(both(), ours())]
    samples = bench.timed({name: both}, 3)
    bench.report(results, samples, rows, causal, "peer, with gradients", {name: bench.peak_of(both)}, base, differences_from_ours=difference)
