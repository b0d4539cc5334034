"""fagen: plan-from-ir.py SPECS...: compares what fagen-opt makes of each variant's IR with the manifest's row.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import sys

from programs import programs_of, run


def main() -> None:
    for spec in sys.argv[1:]:
        programs = programs_of(spec)
        rows = json.loads(run("fagen", spec, "--emit=plan", "--json"))
        for row in rows:
            plan = json.loads(run("fagen-opt", "-", "--emit=plan", text=programs[row["variant"]]))
            row["program"] = row["variant"]
            del row["plan"]["schedule"]
            for key, value in plan.items():
                if row[key] != value:
                    print(f"{row['variant']}: {key} differs:\n{row[key]}\n{value}")
        print(f"{len(rows)} plans, with grids", *sorted({row["launches"][0]["grid"] for row in rows}))


main()
