# fagen: what fagen-run conflicts counts for swizzles.fa, against arithmetic that knows nothing of the emulator.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import math
import sys

ROWS, KEYS, WARPS, CTAS, TILES = 64, 32, 4, 2, 3  # of the spec, and of the case that conflicts runs


def expected(head_dim, swizzled):
    """Of the two products: ldmatrix requests, wavefronts."""
    # ldmatrix takes eight rows of 16 bytes at a time. Row i begins i * 2 * head_dim bytes on, that is in the
    # i * head_dim / 8-th group of four banks, modulo 8 groups.
    meeting = 1 if swizzled else math.gcd(head_dim // 8, 8)
    steps = WARPS * CTAS * TILES
    blocks = head_dim // 16
    scores = steps * blocks * (ROWS // WARPS // 16 + KEYS // 16)
    output = steps * blocks * (KEYS // 16)
    return [(requests, requests * 4 * meeting) for requests in (scores, output)]


with open(sys.argv[1], encoding="utf-8") as file:
    conflicts = json.load(file)["conflicts"]
checked = 0
for kernel in conflicts:
    _, schedule, _, width, _ = kernel["variant"].split("_")
    found = [(site["requests"], site["wavefronts"]) for site in kernel["sites"] if site["kind"] == "ldmatrix"]
    wanted = expected(int(width[1:]), schedule == "swizzled")
    if found != wanted:
        sys.exit(f"{kernel['variant']}: (requests, wavefronts) are {found}, not {wanted}")
    if any(site["ideal"] != 4 * site["requests"] for site in kernel["sites"] if site["kind"] == "ldmatrix"):
        sys.exit(f"{kernel['variant']}: ldmatrix is ideal with four wavefronts a request")
    checked += 1
print(f"{checked} kernels as calculated")
