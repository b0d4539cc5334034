# fagen: whether the tuner's default strategy is the best one on replayed landscapes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import json
import sys

for file in sys.argv[1:]:
    with open(file) as stream:
        results = {result["strategy"]: result for result in json.load(stream)["replay"]["results"]}
    evolution = results["evolutionary"]
    first = all(evolution["median"] < result["median"] for name, result in results.items() if name != "evolutionary")
    quarter = evolution["median"] <= evolution["points"] / 4
    print(f"{evolution['problem']}: evolutionary {'first' if first else 'not first'}, "
          f"{'within' if quarter else 'beyond'} a quarter")
