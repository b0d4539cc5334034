# fagen: where raw results are kept: in evidence/ as they are, compressed there, or in the history.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A result NAME under evidence/ is kept in one of these ways:
  NAME                  the raw file, or the summary of one that is in the history alone: `raw` has `sha256`, `bytes`, `commit`;
  NAME.xz               the raw file, compressed; who reads NAME takes its summary, which is made when it is asked for;
  history.json          names of files that left the tree, and the commit that has them."""
import hashlib
import json
import lzma
import os
import subprocess

from summary import summary


class NotKept(Exception):
    pass


def object_of(path):
    """The JSON object at that path, compressed or not: as its file has it, no summary."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    with lzma.open(f"{path}.xz") as file:
        return json.load(file)


def summary_of(path):
    """The summary of the result at that path, compressed or not (measure/summary.py)."""
    return summary(object_of(path))


class EvidenceFiles:
    def __init__(self, root):
        self.root, self.folder = root, os.path.join(root, "evidence")
        self.names = sorted(os.path.relpath(os.path.join(where, name), self.folder)
                            for where, _, names in os.walk(self.folder) for name in names)
        self.history = {"commit": "", "files": []}
        if "history.json" in self.names:
            self.history = json.loads(self.bytes_of("history.json"))

    def bytes_of(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def object_of(self, name):
        """The JSON object NAME, compressed or not, or None."""
        if not name.endswith(".json") or not {name, name + ".xz"} & set(self.names):
            return None
        data = object_of(os.path.join(self.folder, name))
        return data if isinstance(data, dict) else None

    def from_history(self, commit, name):
        shown = subprocess.run(["git", "-C", self.root, "show", f"{commit}:evidence/{name}"], capture_output=True, check=False)
        if shown.returncode:
            raise NotKept(f"evidence/{name} is in the history alone, at commit {commit}, and this tree has no such commit: "
                          "a whole clone shows it")
        return shown.stdout

    def raw(self, name):
        """The bytes of the raw file; NotKept says what is in the way."""
        if name + ".xz" in self.names:
            return lzma.decompress(self.bytes_of(name + ".xz"))
        if name in self.history["files"]:
            return self.from_history(self.history["commit"], name)
        if name not in self.names:
            raise NotKept(f"there is no evidence/{name}; --list prints all")
        kept = (self.object_of(name) or {}).get("raw")
        if not isinstance(kept, dict):
            return self.bytes_of(name)
        found = self.from_history(kept["commit"], name)
        if hashlib.sha256(found).hexdigest() != kept["sha256"]:
            raise NotKept(f"evidence/{name} of commit {kept['commit']} is not the file that its summary was made of")
        return found

    def under(self, folder):
        """Results in that folder, not in folders of it."""
        return sorted({name.removesuffix(".xz") for name in self.names if os.path.dirname(name) == folder})

    def places(self):
        """Each result, and where its raw file is."""
        for name in sorted({name.removesuffix(".xz") for name in self.names} | set(self.history["files"])):
            if name in self.history["files"]:
                yield name, f"history, {self.history['commit']}"
            elif name + ".xz" in self.names:
                yield name, "compressed"
            else:
                kept = (self.object_of(name) or {}).get("raw")
                yield name, f"a summary; raw in the history, {kept['commit']}" if isinstance(kept, dict) else "as it is"
