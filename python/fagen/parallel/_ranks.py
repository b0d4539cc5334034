# fagen: the ranks of a call: a process group or a DeviceMesh as a ring and an exchange over heads.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from .. import errors
from ._group import Group

SCHEMES = "ring", "ulysses", "mixed"
TIMEOUT = 300.0  # seconds


class Ranks:
    """The ranks of a call as a mesh of a ring and an exchange over heads, either of which may be of one rank."""

    def __init__(self, group, mesh, scheme, timeout):
        if scheme not in SCHEMES:
            raise errors.Error(f'scheme is {scheme!r}; it is "ring", "ulysses" or "mixed"')
        if group is not None and mesh is not None:
            raise errors.Error("group and mesh are given; a mesh has groups of its own")
        dimensions = 1 if mesh is None else mesh.ndim
        if dimensions > 2 or (dimensions == 2) != (scheme == "mixed"):
            raise errors.Error(f'a mesh of {dimensions} dimension{"s" * (dimensions != 1)} and scheme="{scheme}": "mixed" takes a mesh of 2, the ring and the '
                               'exchange over heads, "ring" and "ulysses" take a group or a mesh of 1')
        self.ring = self.heads = None
        if scheme == "mixed":
            self.ring, self.heads = (Group(mesh.get_group(i), timeout) for i in range(2))
        else:
            one = Group(group if mesh is None else mesh.get_group(), timeout)
            self.ring, self.heads = (one, None) if scheme == "ring" else (None, one)
        self.scheme, self.groups = scheme, [g for g in (self.ring, self.heads) if g is not None]

    @property
    def shape(self):
        """(ranks of the ring, ranks of the exchange over heads)."""
        return (self.ring.size if self.ring else 1), (self.heads.size if self.heads else 1)

    @property
    def size(self):
        return self.shape[0] * self.shape[1]

    @property
    def place(self):
        """(rank in the ring, rank in the exchange)."""
        return (self.ring.rank if self.ring else 0), (self.heads.rank if self.heads else 0)

    @property
    def rank(self):
        """The number of this rank in splits."""
        return self.place[0] * self.shape[1] + self.place[1]

    def agree(self, record, failed=None):
        """Group.agree() of all: the ring's ranks first, then those of the exchange, so that each has heard of all."""
        for group in self.groups:
            try:
                group.agree(record, failed)
            except errors.Error as error:
                failed = error if failed is None else failed
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
