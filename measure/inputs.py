# fagen: values of Q, K and V for measurements: standard normal ones, and such as make an online softmax work.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors are [batch, heads, rows, head_dim] of any strides; scale is 1 / sqrt(head_dim).

normal    standard normal, and so is what the others begin with
hotX      Q times X
sink      a unit vector u: 6 u added to Q, 2 sqrt(head_dim) u to key 0, whose scores rise by 12
ropeW     sqrt(W / sqrt(head_dim)) added to Q and K, which then are rotated by their positions (base 10000, neighbouring
          columns are a pair): the mean score is W at distance 0
riseN     column 0 of Q is sqrt(head_dim), of K N * key / 128: scores rise by N from one tile of 128 keys to the next
fallN     the same from the last key to the first: what rises for a kernel that begins with the first keys falls for one
          that begins with the last, and the other way round"""
import re

import torch

HELP = "normal, hotX, sink, ropeW, riseN or fallN, as hot8, rope12 or rise2: measure/inputs.py says what they are"
ROPE_BASE, ROPE_PAIR, RISE_KEYS = 10000.0, 2, 128
SINK_IN_Q, SINK_IN_K = 6.0, 2.0


def parse(text):
    """The kind and its number, None where it has none."""
    found = re.fullmatch(r"(hot|rope|rise|fall)(\d+(?:\.\d+)?)|(normal|sink)", text)
    if not found:
        raise ValueError(f"{text} is not a kind of inputs; there are {HELP}")
    return (found[3], None) if found[3] else (found[1], float(found[2]))


def rotate(tensor):
    """Each pair of columns by its row's angle."""
    rows, columns = tensor.shape[2:]
    speed = ROPE_BASE ** (-torch.arange(0, columns, ROPE_PAIR, device=tensor.device) / columns)
    angle = torch.arange(rows, device=tensor.device)[:, None] * speed
    first, second = (tensor[..., i::ROPE_PAIR].float() for i in range(ROPE_PAIR))
    tensor[..., 0::ROPE_PAIR] = (first * angle.cos() - second * angle.sin()).to(tensor.dtype)
    tensor[..., 1::ROPE_PAIR] = (first * angle.sin() + second * angle.cos()).to(tensor.dtype)


def change(kind, q, k):
    """Makes inputs of a kind of normal ones, in place."""
    name, number = parse(kind)
    head_dim = q.shape[3]
    if name == "hot":
        q.mul_(number)
    elif name == "sink":
        u = torch.randn(head_dim, device=q.device)
        u /= u.norm()
        q.add_((SINK_IN_Q * u).to(q.dtype))
        k[:, :, 0].add_((SINK_IN_K * head_dim ** 0.5 * u).to(k.dtype))
    elif name == "rope":
        for tensor in (q, k):
            tensor.add_((number / head_dim ** 0.5) ** 0.5)
            for head in range(tensor.shape[1]):  # all of them at once would take as much memory again in f32
                rotate(tensor[:, head:head + 1])
    elif name in ("rise", "fall"):
        rising = torch.arange(k.shape[2], device=k.device) * (number / RISE_KEYS)
        q[..., 0] = head_dim ** 0.5
        k[..., 0] = (rising if name == "rise" else rising.flip(0)).to(k.dtype)
