# fagen: fagen.parallel in torch.compile's graphs, over gloo.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest
import torch

from fagen import parallel
from ranks import Ranks
from test_parallel import inputs, mesh_of


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.close()


def model_of(plan, weight):
    return lambda q, k, v: plan(q @ weight, k, v * 2).square()


def compiled(rank, ranks, *, scheme, shape, split, lse=False, **problem):
    """O and gradients of a whole graph are those without one, to the bit."""
    q, k, v = inputs(**problem)
    mesh = {"mesh": mesh_of(*shape)} if shape else {}
    plan = parallel.Plan(split, batch=q.shape[0], heads=q.shape[2], kv_heads=k.shape[2], head_dim=q.shape[3], dtype=q.dtype, device=q.device, causal=True,
                         scheme=scheme, o_dtype=torch.float32, **mesh)
    held = [split.shard(t, rank).detach().requires_grad_() for t in (q, k, v)]
    weight = (torch.eye(q.shape[3]) + 0.01).to(q.dtype)
    plain = model_of(plan, weight)
    graph = torch.compile(plain, fullgraph=True, backend="aot_eager")
    for call in (plain, graph):
        with torch.no_grad():
            o = call(*held)
        found = call(*held)
        assert torch.equal(o, found)
        results = found, *torch.autograd.grad(found.sum(), held)
        if call is plain:
            wanted = results
    assert all(map(torch.equal, results, wanted))
    if lse:
        graph = torch.compile(lambda *t: plan(*t, return_lse=True), fullgraph=True, backend="aot_eager")
        assert all(map(torch.equal, graph(*held), plan(*held, return_lse=True)))


@pytest.mark.parametrize("scheme, shape", [("ring", None), ("ulysses", None), ("mixed", (2, 2))])
def test_plans_are_operators(four, scheme, shape):
    split = parallel.zigzag(41, 2).divide(2) if shape else parallel.zigzag(41, 4) if scheme == "ring" else parallel.contiguous(41, 4)
    four.call(compiled, rows=41, batch=2, scheme=scheme, shape=shape, split=split, lse=True, dtype=torch.bfloat16)


def broken(rank, ranks, *, split, **problem):
    held = [split.shard(t, rank).detach().requires_grad_() for t in inputs(**problem)]
    call = lambda q, k, v: parallel.attention(q + 0, k, v, split=split, causal=True) * 2  # noqa: E731
    wanted = call(*held)
    o = torch.compile(call, backend="aot_eager")(*held)
    assert torch.equal(o, wanted)
    assert all(map(torch.equal, torch.autograd.grad(o.sum(), held), torch.autograd.grad(wanted.sum(), held)))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="make a parallel.Plan once: its calls are traced"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(*held)


def test_attention_breaks_graphs(four):
    """It computes the same, and says why it is in no whole graph."""
    four.call(broken, rows=41, split=parallel.zigzag(41, 4))


def operators(rank, ranks, *, split, scheme, **problem):
    q, k, v = inputs(**problem)
    plan = parallel.Plan(split, batch=1, heads=q.shape[2], kv_heads=k.shape[2], head_dim=q.shape[3], dtype=q.dtype, device=q.device, scheme=scheme, o_dtype=torch.float32)
    held = [split.shard(t, rank).detach().requires_grad_() for t in (q, k, v)]
    torch.library.opcheck(torch.ops.fagen_parallel.attention.default, (*held, plan.name, True), test_utils=("test_schema", "test_faketensor"))
    name = plan.name
    del plan
    with pytest.raises(Exception, match="is gone"):
        torch.ops.fagen_parallel.attention(*held, name, True)


@pytest.mark.parametrize("scheme", ["ring", "ulysses"])
def test_operators_say_what_they_give(four, scheme):
    four.call(operators, rows=41, split=parallel.contiguous(41, 4), scheme=scheme, dtype=torch.bfloat16)
