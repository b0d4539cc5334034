# fagen: processes that are the ranks of a process group, for tests of fagen.parallel: each runs functions of this file's callers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import contextlib
import importlib
import multiprocessing
import os
import sys
import tempfile
import traceback

_SECONDS = 60  # that a call of all ranks may take


def _serve(pipe, rank, ranks, store, folder):
    sys.path.insert(0, folder)
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    pipe.send(None)
    while (call := pipe.recv()) is not None:
        module, name, arguments = call
        try:
            pipe.send((True, getattr(importlib.import_module(module), name)(rank, ranks, **arguments)))
        except Exception as error:  # told to the test
            pipe.send((False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))
    os._exit(0)  # groups in which a rank is gone would be waited for


class Ranks:
    """ranks[...] of a group over gloo. call(function, **arguments) runs function(rank, ranks, **arguments) on each."""

    def __init__(self, ranks):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch", "torch.distributed", "fagen.parallel"])
        self.folder = tempfile.TemporaryDirectory(prefix="fagen-ranks-")
        self.size, self.pipes, self.processes = ranks, [], []
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            here = os.path.dirname(os.path.abspath(__file__))
            process = context.Process(target=_serve, args=(theirs, rank, ranks, os.path.join(self.folder.name, "store"), here), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self._heard(range(ranks))

    def _heard(self, ranks, seconds=_SECONDS):
        said = {}
        for rank in ranks:
            if not self.pipes[rank].poll(seconds):
                raise AssertionError(f"rank {rank} says nothing for {seconds} s")
            try:
                said[rank] = self.pipes[rank].recv()
            except EOFError:
                said[rank] = (False, "gone")
        return said

    def outcomes(self, function, seconds=_SECONDS, **arguments):
        """[(whether it went well, what it gave or said)] of each rank."""
        for pipe in self.pipes:
            pipe.send((function.__module__, function.__name__, arguments))
        said = self._heard(range(self.size), seconds)
        return [said[rank] for rank in range(self.size)]

    def call(self, function, **arguments):
        """What each rank's function gave."""
        outcomes = self.outcomes(function, **arguments)
        failed = [f"rank {rank}: {said}" for rank, (well, said) in enumerate(outcomes) if not well]
        assert not failed, "\n".join(failed)
        return [said for _, said in outcomes]

    def close(self):
        for pipe, process in zip(self.pipes, self.processes):
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(5)
            process.kill()
