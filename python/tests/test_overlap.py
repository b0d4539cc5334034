# fagen: whether two tensors share memory (runtime/src/overlap.cpp), against sets of their bytes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import itertools
import os
import random
import shutil
import subprocess

import pytest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "src")
WRAPPER = """
#include "overlap.cpp"
extern "C" bool may_overlap(const long long *a, const long long *b) { // rank, sizes, strides, address, bytes of an element
  auto elements = [](const long long *t) {
    return fagen::Elements{reinterpret_cast<void *>(t[9]), t[0], reinterpret_cast<const int64_t *>(t + 1),
                           reinterpret_cast<const int64_t *>(t + 5), t[10]};
  };
  return fagen::mayOverlap(elements(a), elements(b));
}
"""


@pytest.fixture(scope="module")
def may_overlap(tmp_path_factory):
    compiler = shutil.which(os.environ.get("FAGEN_CXX", "c++"))
    if not compiler:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("overlap")
    (folder / "wrapper.cpp").write_text(WRAPPER)
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-I", SOURCE, folder / "wrapper.cpp", "-o", folder / "wrapper.so"], check=True)
    function = ctypes.CDLL(str(folder / "wrapper.so")).may_overlap
    function.restype = ctypes.c_bool
    return lambda a, b: function(*((ctypes.c_longlong * 11)(*tensor) for tensor in (a, b)))


def tensor(sizes, strides, address, element):
    return len(sizes), *sizes, *[0] * (4 - len(sizes)), *strides, *[0] * (4 - len(strides)), address, element


def bytes_of(sizes, strides, address, element):
    places = (sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, sizes)))
    return {address + place * element + byte for place in places for byte in range(element)}


def test_random_tensors(may_overlap):
    draw, shared = random.Random(0), 0
    for _ in range(4000):
        made = []
        for _ in range(2):
            rank = draw.randint(1, 4)
            element = draw.choice([1, 2, 4])
            sizes = [draw.randint(0 if draw.random() < 0.05 else 1, 4) for _ in range(rank)]
            made.append((sizes, [draw.choice([0, 1, 2, 3, 4, 6, 8, 12, 24, 48]) for _ in range(rank)], 4096 + element * draw.randint(0, 60), element))
        wanted = bool(bytes_of(*made[0]) & bytes_of(*made[1]))
        shared += wanted
        assert may_overlap(*(tensor(*one) for one in made)) == wanted, made
    assert 500 < shared < 3500


def test_slices_of_packed_tensors_are_apart(may_overlap):
    """As large as in use, of each order of dimensions: not a search without an end."""
    batch, rows, heads, columns = 3, 5000, 24, 128
    stride = [rows * heads * columns, heads * columns, columns, 1]
    slices = [tensor([batch, rows, 8, columns], stride, 4096 + i * 8 * columns * 2, 2) for i in range(3)]
    for a, b in itertools.permutations(slices, 2):
        assert not may_overlap(a, b)
    assert may_overlap(slices[0], tensor([batch, rows, 8, columns], stride, 4096 + 7 * columns * 2, 2))
    assert may_overlap(slices[0], slices[0])
