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

_POLL = 0.2  # seconds between looks at what others have said


class PeerError(errors.Error):
    """Another rank failed, is missing, or asks for something else."""


class Group:
    """A process group of torch.distributed, with a timeout in seconds."""

    _serials = {}  # by the ranks of a group: how often they have agreed

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

    def agree(self, record, failed=None):
        """All ranks say the same record (a dict of words and numbers). PeerError on every rank where one says another, has failed, or
        does not come. failed: why this rank has, which the others are told; it is raised here."""
        serial = Group._serials[self._names] = Group._serials.get(self._names, 0) + 1
        mine = {"failed": _words(failed)} if failed is not None else {"record": record}
        try:
            self._store.set(f"{serial}/{self.rank}", json.dumps(mine))
            if failed is not None:
                raise failed
            said = self._heard(serial)
            if serial > 2:
                self._store.delete_key(f"{serial - 2}/{self.rank}")  # all have read it: they have said the next
        except dist.DistError as error:
            raise PeerError(f"the store of torch.distributed does not answer ({str(error).splitlines()[0]}); the rank that holds it has "
                            "probably ended") from None
        for rank, one in enumerate(said):
            if one["record"] != record:
                raise PeerError(self._difference(rank, record, one["record"]))

    def _heard(self, serial):
        """What each rank has said."""
        keys, end = [f"{serial}/{rank}" for rank in range(self.size)], time.monotonic() + self.timeout
        said, missing = {}, list(range(self.size))
        while missing:
            left = end - time.monotonic()
            try:
                self._store.wait([keys[rank] for rank in missing], datetime.timedelta(seconds=max(0.001, min(_POLL, left))))
                arrived = missing
            except dist.DistStoreError:
                arrived = [rank for rank in missing if self._store.check([keys[rank]])]
            for rank in arrived:
                said[rank] = json.loads(self._store.get(keys[rank]))
                if "failed" in said[rank]:
                    raise PeerError(f"{self.name(rank)} failed: {said[rank]['failed']}")
            missing = [rank for rank in missing if rank not in said]
            if missing and left <= 0:
                names = ", ".join(map(self.name, missing))
                raise PeerError(f"{names} did not come to call {serial} of this group within {self.timeout:g} s; all ranks make the same "
                                "calls in the same order, and timeout= says how long one waits for another")
        return [said[rank] for rank in range(self.size)]

    def _difference(self, rank, mine, theirs):
        for name in dict.fromkeys([*mine, *theirs]):
            if mine.get(name) != theirs.get(name):
                return (f"{name} is {mine.get(name)} on {self.name(self.rank)} and {theirs.get(name)} on {self.name(rank)}; all ranks say "
                        "the same")
        return f"{self.name(rank)} says something else"


def _words(error):
    said = str(error).splitlines()
    return f"{type(error).__name__}: {said[0] if said else ''}"[:500]


def is_out_of_memory(error):
    """Whether an exception says that memory ran out, on a GPU or here."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)
