# fagen: rings whose keys are read from the other ranks' memory by copy engines, which take no processor from what computes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""On GPUs of one host, by PyTorch's symmetric memory: each rank puts its keys where the others read them, and a barrier on the GPUs says
that they are there; another at the end, that all have been read. The host waits for neither."""
import socket
import zlib

import torch
import torch.distributed as dist

from .. import errors
from ._ring import Ring

_neighbours = {}  # by group: whether are_neighbours() was True


def are_neighbours(group, device):
    """Whether all ranks of a group are GPUs of one host, each of which reads the memory of all. All ranks ask together."""
    if group.group not in _neighbours:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            host = zlib.crc32((file.read() + socket.gethostname()).encode())  # containers of one machine may not share memory
        gpus = range(torch.cuda.device_count())
        reads = len(gpus) >= group.size and all(torch.cuda.can_device_access_peer(a, b) for a in gpus for b in gpus if a != b)
        least = torch.tensor([host, -host, reads], dtype=torch.int64, device=device)
        dist.all_reduce(least, dist.ReduceOp.MIN, group=group.group)
        low, high, all_read = least.tolist()
        _neighbours[group.group] = low == -high and bool(all_read)
    return _neighbours[group.group]


class Window:
    """Memory of a plan that the ranks of a group read: for the keys of the rank that holds most. All ranks make it together."""

    def __init__(self, group, batch, most, shapes, dtype, device):
        """shapes: (heads, columns) of K and of V."""
        from torch.distributed import _symmetric_memory as symmetric
        self.group, self.batch, self.most, self.shapes, self.dtype = group, batch, most, shapes, dtype
        count = sum(batch * most * heads * columns for heads, columns in shapes)
        try:
            self.memory = symmetric.empty(max(1, count), dtype=dtype, device=device)
            self.handle = symmetric.rendezvous(self.memory, group.group.group_name)
        except RuntimeError as error:
            raise errors.Unsupported(f'transport="copies" needs GPUs of one host that read each other\'s memory: {str(error).splitlines()[0]}',
                                     "parallel.attention") from None
        self.stream = torch.cuda.Stream(device)

    def of(self, rank, keys):
        """K and V of a rank that holds so many keys: [batch, keys, heads, columns]."""
        found, at = [], 0
        for heads, columns in self.shapes:
            found.append(self.handle.get_buffer(rank, (self.batch, keys, heads, columns), self.dtype, at))
            at += self.batch * self.most * heads * columns
        return found

    def barrier(self, channel):
        self.handle.barrier(channel, int(1000 * self.group.timeout))


class _Events:
    """What Ring asks of transfers, of the window's stream."""

    def __init__(self, window, device):
        self.window, self.device = window, device

    def now(self):
        return torch.cuda.current_stream(self.device).record_event()

    def finish(self, event):
        if event is not None:
            torch.cuda.current_stream(self.device).wait_event(event)

    def close(self):
        with torch.cuda.stream(self.window.stream):
            self.window.barrier(1)
        torch.cuda.current_stream(self.device).wait_stream(self.window.stream)


class CopiedRing(Ring):
    """sizes: how many keys each rank holds."""

    def __init__(self, schedule, window, sizes, k, v, buffers):
        super().__init__(schedule, _Events(window, k.device), k, v, buffers)
        self.window, self.sizes = window, sizes
        window.stream.wait_stream(torch.cuda.current_stream(k.device))
        with torch.cuda.stream(window.stream):
            for place, tensor in zip(window.of(window.group.rank, k.shape[1]), (k, v)):
                place.copy_(tensor)
            window.barrier(0)

    def _start(self, step):
        if not step.receives:
            return None, None, None
        number, tensors = self._into(step.receives[1] - step.receives[0])
        with torch.cuda.stream(self.window.stream):
            if self._computed[number] is not None:
                self.window.stream.wait_event(self._computed[number])
            for place, theirs in zip(tensors, self.window.of(step.source, self.sizes[step.source])):
                place.copy_(theirs[:, slice(*step.receives)], non_blocking=True)
            return self.window.stream.record_event(), number, tensors
