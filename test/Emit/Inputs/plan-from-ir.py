"""fagen: plan-from-ir.py SPECS...: of each variant, what fagen-opt makes of its IR beside the manifest's row.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

import json
import subprocess
import sys


def run(*command: str, text: str = "") -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def plan_of(spec: str, variant: str) -> dict:
    ir = run("fagen", spec, "--emit=ir", f"--variant={variant}")
    return json.loads(run("fagen-opt", "-", "--emit=plan", text=ir))


def main() -> None:
    for spec in sys.argv[1:]:
        rows = json.loads(run("fagen", spec, "--emit=plan", "--json"))
        for row in rows:
            plan = plan_of(spec, row["variant"])
            row["program"] = row["variant"]
            del row["plan"]["schedule"]
            for key, value in plan.items():
                if row[key] != value:
                    print(f"{row['variant']}: {key} differs:\n{row[key]}\n{value}")
        print(f"{len(rows)} plans, with grids", *sorted({row["launches"][0]["grid"] for row in rows}))


main()
