# fagen: texts with products of two sums, acc and two, and what stands between them.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""products.py WORD...: the ops of a step, in order. `acc` and `two` issue and commit a product that adds to these sums,
after a fence; `new` one that begins acc anew; `read` reads acc, and `sometimes` halves it in some steps; `wait0` and
`wait1` wait for products; `left` leaves the slot, `left1` that of the step before, `last` that of the last one. What
follows `:` stands after the loop, what precedes `;` in a first step before it. `wide` makes the sums 16 x 256."""
import sys

words = sys.argv[1:]
columns = 256 if "wide" in words else 128
words = [word for word in words if word != "wide"]
ISSUE = 'mma_issue %{0}, %as[j], %bs[j] {{form = "abt", accumulate = {1}}}\nmma_commit'
OPS = {
    "acc": 'fence {kind = "mma"}\n' + ISSUE.format("acc", 1),
    "two": 'fence {kind = "mma"}\n' + ISSUE.format("two", 1),
    "new": 'fence {kind = "mma"}\n' + ISSUE.format("acc", 0),
    "read": "map %r, %acc {value = %r + %acc}",
    "sometimes": "if j > 3 {\nmap %acc {value = %acc * 0.5}\n}",
    "full": 'wait %full[j] {by = "thread"}',
    "wait0": "mma_wait {pending = 0}",
    "wait1": "mma_wait {pending = 1}",
    "left": 'arrive %empty[j] {by = "group"}',
    "left1": 'if j > 0 {\narrive %empty[j - 1] {by = "group"}\n}',
    "last": 'if steps > 0 {\narrive %empty[steps - 1] {by = "group"}\n}',
}
before, body, after = [], words, []
if ";" in body:
    before, body = body[:body.index(";")], body[body.index(";") + 1:]
if ":" in body:
    body, after = body[:body.index(":")], body[body.index(":") + 1:]


def ops(names):
    return "\n".join(OPS[name] for name in names)


first = f"loop j = 0 to min(steps, 1) {{\n{ops(['full'] + before)}\n}}\n" if before else ""
size = (64 + columns) * 128
print(f"""program @products {{
kernel @products target sm_90a backend wgmma threads 256 phase laid_out {{
size M, N, K
grid tiles (m in ceil_div(M, 64), n in ceil_div(N, {columns}))
global %a : f16[M, K] param a
global %b : f16[N, K] param b
global %c : f16[M, N] param c
shared %as : f16[64 x 64] stages 2 swizzle xor guard full %full by bytes, empty %empty by group
shared %bs : f16[{columns} x 64] stages 2 swizzle xor guard full %full by bytes, empty %empty by group
shared %full : mbarrier[1 x 1] stages 2
shared %empty : mbarrier[1 x 1] stages 2
fragment %acc : f32[16 x {columns}]
fragment %two : f32[16 x {columns}]
fragment %r : f32[16 x {columns}]
let steps = ceil_div(K, 64)
role load warps 0 to 4 {{
mbarrier_init %full[0] {{arrivals = 1}}
mbarrier_init %full[1] {{arrivals = 1}}
mbarrier_init %empty[0] {{arrivals = 1}}
mbarrier_init %empty[1] {{arrivals = 1}}
fence {{kind = "mbarrier_init"}}
barrier {{scope = "cta"}}
loop j = 0 to steps {{
wait %empty[j - 2] {{by = "role"}}
arrive %full[j] {{by = "role", bytes = {size}}}
copy_issue %as[j], %a, %full[j] {{kind = "bulk", row = m * 64, column = j * 64}}
copy_issue %bs[j], %b, %full[j] {{kind = "bulk", row = n * {columns}, column = j * 64}}
}}
}}
role math warps 4 to 8 grid 4 x 1 {{
barrier {{scope = "cta"}}
map %acc {{value = 0.0}}
map %two {{value = 0.0}}
map %r {{value = 0.0}}
{first}loop j = {1 if before else 0} to steps {{
{ops(['full'] + body)}
}}
{ops(after)}
map %acc, %two {{value = %acc + %two}}
map %acc, %r {{value = %acc + %r}}
store %c, %acc {{row = m * 64, column = n * {columns}}}
}}
}}
}}""")
