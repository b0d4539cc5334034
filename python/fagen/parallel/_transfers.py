# fagen: tensors between ranks, under what is computed meanwhile.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""On a GPU transfers have a stream of their own; computing waits for them, and they for it, by events: the host waits for neither. On
the CPU finish() waits, no longer than the group's timeout."""
from typing import NamedTuple

import torch
import torch.distributed as dist

from ._group import PeerError

_streams = {}


class Message(NamedTuple):
    """A contiguous tensor, and the rank of the group that it goes to or comes from."""
    tensor: torch.Tensor
    peer: int


class Transfers:
    """Those of one call of a group. Both ends of a pair name their messages in the same order."""

    def __init__(self, group, device):
        self.group, self.device, self.bytes = group, device, 0
        self._kept = []  # what is being sent
        if device.type == "cuda":
            ordinal = device.index if device.index is not None else torch.cuda.current_device()
            if ordinal not in _streams:
                _streams[ordinal] = torch.cuda.Stream(ordinal, priority=-1)
            self._stream = _streams[ordinal]
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def now(self):
        """A point of what is computed, for start(); None on the CPU."""
        return torch.cuda.current_stream(self.device).record_event() if self.device.type == "cuda" else None

    def start(self, sends, receives, after=None):
        """Begins messages, after such a point where one is given. What it gives is for finish()."""
        sends, receives = ([m for m in messages if m.tensor.numel()] for messages in (sends, receives))
        self.bytes += sum(m.tensor.numel() * m.tensor.element_size() for m in sends)
        self._kept += [m.tensor for m in sends]
        if not sends and not receives:
            return None
        if self.device.type != "cuda":
            return self._begin(sends, receives)
        with torch.cuda.stream(self._stream):
            if after is not None:
                self._stream.wait_event(after)
            for work, _ in self._begin(sends, receives):
                work.wait()  # of the stream, not of the host
            return self._stream.record_event()

    def _begin(self, sends, receives):
        group, tags, operations = self.group.group, {}, []
        for function, messages in ((dist.isend, sends), (dist.irecv, receives)):
            for tensor, peer in messages:
                tag = tags[function, peer] = tags.get((function, peer), -1) + 1
                operations.append((dist.P2POp(function, tensor, group=group, group_peer=peer, tag=tag), peer))
        try:
            works = dist.batch_isend_irecv([operation for operation, _ in operations])
        except RuntimeError as error:
            raise PeerError(f"a transfer with {', '.join(sorted({self.group.name(p) for _, p in operations}))} did not begin: "
                            f"{str(error).splitlines()[0]}") from None
        peers = [peer for _, peer in operations] if len(works) == len(operations) else [operations[0][1]] * len(works)
        return list(zip(works, peers))

    def finish(self, started):
        """What is computed from now on sees what start() began."""
        if started is None:
            return
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).wait_event(started)
            return
        for work, peer in started:
            try:
                work.wait(self.group.delta)
            except RuntimeError as error:
                raise PeerError(f"a transfer with {self.group.name(peer)} failed or took longer than {self.group.timeout:g} s: "
                                f"{str(error).splitlines()[0]}") from None

    def close(self):
        """What is computed from now on comes after all transfers: what was sent may be written again."""
        if self.device.type == "cuda":
            torch.cuda.current_stream(self.device).wait_stream(self._stream)
        self._kept.clear()
