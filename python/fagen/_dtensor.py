# fagen: DTensors: which shardings of attention's inputs its operators take as they are.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches and heads are independent of each other; so are rows where no mask compares them with keys. Inputs that are sharded otherwise are
gathered by PyTorch; fagen.parallel.attention has sequences that are sharded. Of forms the tensors are not known: DTensors are refused."""
import torch
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
from torch.distributed.tensor.experimental import register_sharding


def _shardings(q, k, scale, causal, bshd, others, outputs):
    """[(outputs, inputs)] that one dimension of a mesh may have. outputs(placements of O and of LSE) gives an operator's."""
    head, row = (2, 1) if bshd else (1, 2)
    rest = [None] * (2 + others)
    found = [(outputs(Replicate(), Replicate()), [Replicate()] * 3 + rest), (outputs(Shard(0), Shard(0)), [Shard(0)] * 3 + rest)]
    if k.shape[head] % q.mesh.size() == 0:
        found.append((outputs(Shard(head), Shard(1)), [Shard(head)] * 3 + rest))
    if not causal:
        found.append((outputs(Shard(row), Shard(2)), [Shard(row), Replicate(), Replicate()] + rest))
    return found


@register_sharding(torch.ops.fagen.attention.default)
def _attention(q, k, v, scale, causal, bshd, lse, kernels):
    return _shardings(q, k, scale, causal, bshd, 3, lambda o, sums: [o, sums if lse else Replicate()])


@register_sharding(torch.ops.fagen._forward.default)
def _forward(q, k, v, scale, causal, bshd, kernels, *detached):
    return _shardings(q, k, scale, causal, bshd, 2 + len(detached), lambda o, sums: [o])


@register_sharding(torch.ops.fagen._forward_lse.default)
def _forward_lse(q, k, v, scale, causal, bshd, kernels, *detached):
    return _shardings(q, k, scale, causal, bshd, 2 + len(detached), lambda o, sums: [o, sums])


# What PyTorch remembers of a call's shardings is by integers alone where register_sharding says so; causal and bshd decide, too.
for _op in (torch.ops.fagen.attention, torch.ops.fagen._forward, torch.ops.fagen._forward_lse):
    DTensor._op_dispatcher.sharding_propagator.op_to_schema_info[_op.default] = RuntimeSchemaInfo(3, needs_pytree=True)
