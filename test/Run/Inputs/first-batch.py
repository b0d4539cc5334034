# fagen: whether the first batch has the same bits in cases that differ only in how many batches there are.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: first-batch.py CHECK.json
import json
import sys

digests = {}
for entry in json.load(open(sys.argv[1]))["check"]["cases"]:
    batch, _, rest = entry["case"].partition(",")
    digests.setdefault((entry["variant"], rest.split()[0]), {})[int(batch)] = entry["first_batch_digest"]
for (variant, rest), of in sorted(digests.items()):
    print(f"{variant} {min(of)},{rest}: {'same' if len(set(of.values())) == 1 else 'differs'}")
