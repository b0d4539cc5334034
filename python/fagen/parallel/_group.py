# fagen: the ranks of a process group: what they agree on before they compute, and how one learns that another failed.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Words go through the store of torch.distributed, not through the group: a rank that is missing is named, and nobody waits longer
than the timeout."""
import datetime
import json
import time

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from .. import errors

_LEAST_PAUSE, _MOST_PAUSE = 0.0005, 0.05  # seconds between looks at what others have said


class PeerError(errors.Error):
    """Another rank failed, is missing, or asks for something else."""


class Group:
    """A process group of torch.distributed, with a timeout in seconds."""

    _serials = {}  # by the ranks of a group: how often they have agreed
    _met = set()

    def __init__(self, group, timeout):
        if not dist.is_available() or not dist.is_initialized():
            raise errors.Error("fagen.parallel needs torch.distributed: call torch.distributed.init_process_group first")
        self.group = dist.group.WORLD if group is None else group
        self.rank = dist.get_rank(self.group)
        if self.rank < 0:
            raise errors.Error(f"rank {dist.get_rank()} is not in this group, whose ranks are {dist.get_process_group_ranks(self.group)}")
        self.size = dist.get_world_size(self.group)
        self.timeout = float(timeout)
        if not self.timeout > 0:
            raise errors.Error(f"timeout is {timeout}; it is a number of seconds above 0")
        self._names = tuple(dist.get_process_group_ranks(self.group))
        self._store = dist.PrefixStore(f"fagen/{','.join(map(str, self._names))}", distributed_c10d._get_default_store())

    def __getstate__(self):
        raise errors.Error("a group of ranks cannot be pickled or copied")

    @property
    def delta(self):
        return datetime.timedelta(seconds=self.timeout)

    def name(self, rank):
        """How messages call a rank: by its number in the group, and in the world where that differs."""
        return f"rank {rank}" if self._names[rank] == rank else f"rank {rank} of the group (rank {self._names[rank]})"

    def meet(self, device):
        """Makes NCCL's communicator, which wants all ranks, once: in a ring some may have nothing to send."""
        if self.group not in Group._met:
            Group._met.add(self.group)
            dist.all_reduce(torch.zeros(1, device=device), group=self.group)

    def agree(self, record, failed=None):
        """All ranks say the same record (a dict of words and numbers). PeerError on every rank where one says another, has failed, or
        does not come. failed: why this rank has, which the others are told; it is raised here."""
        serial = Group._serials[self._names] = Group._serials.get(self._names, 0) + 1
        try:
            self._say(serial, record, failed)
            self._hear(serial)
            if self.rank == 0 and serial > 2:  # all have read what was said before the last time
                for name in ("record", "failed", "count", *range(self.size)):
                    self._store.delete_key(f"{serial - 2}/{name}")
        except dist.DistError as error:
            raise PeerError(f"the store of torch.distributed does not answer ({str(error).splitlines()[0]}); the rank that holds it has "
                            "probably ended") from None

    def _say(self, serial, record, failed):
        """What goes wrong is said before this rank is counted: who counts all ranks sees it."""
        mine = json.dumps({"rank": self.rank, "record": record})
        if failed is None:
            first = json.loads(self._store.compare_set(f"{serial}/record", "", mine))
            if first["record"] != record:
                failed = PeerError(self._difference(first["rank"], record, first["record"]))
        if failed is not None:
            said = str(failed) if isinstance(failed, PeerError) else f"{self.name(self.rank)} failed: {_words(failed)}"
            self._store.set(f"{serial}/failed", said)
        self._store.set(f"{serial}/{self.rank}", "here")
        self._store.add(f"{serial}/count", 1)
        if failed is not None:
            raise failed

    def _hear(self, serial):
        """Waits until all ranks have said something, or one that it failed."""
        end, pause = time.monotonic() + self.timeout, _LEAST_PAUSE
        while True:
            is_over = self._store.add(f"{serial}/count", 0) == self.size
            if self._store.check([f"{serial}/failed"]):
                raise PeerError(self._store.get(f"{serial}/failed").decode())
            if is_over:
                return
            if time.monotonic() > end:
                names = ", ".join(self.name(rank) for rank in range(self.size) if not self._store.check([f"{serial}/{rank}"]))
                raise PeerError(f"{names or 'a rank'} did not come to call {serial} of this group within {self.timeout:g} s; all ranks make the "
                                "same calls in the same order, and timeout= says how long one waits for another")
            time.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE)

    def _difference(self, rank, mine, theirs):
        for name in mine:
            if name in theirs and mine[name] != theirs[name] and name != "at":
                return f"{name} is {mine[name]} on {self.name(self.rank)} and {theirs[name]} on {self.name(rank)}; all ranks say the same"
        return (f"{self.name(self.rank)} is at the {mine['at']} of a call and {self.name(rank)} at its {theirs['at']}; all ranks make the same calls "
                "in the same order")


def _words(error):
    said = str(error).splitlines()
    return f"{type(error).__name__}: {said[0] if said else ''}"[:500]

