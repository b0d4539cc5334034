# fagen: what evidence says of the package's programs, for docs/Gpus.md's table of contracts.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No tool writes one format for all programs: FILES says which result speaks of which set, and how its cases are found. What a cell says
is in the file, or follows from the manifest's operations; without the file the cell says "not recorded"."""
import dataclasses
import re

MERGES = {"merge_parts", "combine_last"}  # a result is the sum of parts, as many as a call says


@dataclasses.dataclass
class Seen:
    """What one result says; fields are None where it does not say it."""
    cases: int = 0
    wrong: int = 0
    error: float = None   # the largest
    unit: str = ""        # of it: "", "of what is allowed", ...
    dtypes: set = dataclasses.field(default_factory=set)
    dims: set = dataclasses.field(default_factory=set)
    variants: set = dataclasses.field(default_factory=set)
    alike: list = dataclasses.field(default_factory=list)  # sentences about repeated bits
    any_batch: tuple = None                                # (comparisons with invariant=True that differ, all of them)
    reads: list = dataclasses.field(default_factory=list)  # sentences about hostile tensors


def _repeats(problems, other="different"):
    """[{runs, different}] as a sentence."""
    runs = " or ".join(map(str, sorted({problem["runs"] for problem in problems})))
    same = sum(problem[other] == 0 for problem in problems)
    return [f"{same} of {len(problems)} problems, {runs} runs each"] * bool(problems)


def gradients(content):
    """Cases as objects (case, worst, ok), or as rows that end in the worst; 1 is what is allowed."""
    content = content if isinstance(content["check"], list) else content["check"]
    seen = Seen(unit="of what is allowed", alike=_repeats(content["repeat"]))
    for case in content["check"]:
        shape, worst, right = (case["case"], case["worst"], case["ok"]) if isinstance(case, dict) else (case, case[-1], case[-1] <= 1)
        seen.cases, seen.wrong, seen.error = seen.cases + 1, seen.wrong + (not right), max(seen.error or 0.0, worst)
        seen.dims.add(int(shape[5]))
        seen.dtypes.add(shape[6])
    return seen


def front(content):
    """Tests of python/tests/gpu that compare with float64."""
    tests = [content["tests"].get(name, {}) for name in ("test_against_autograd", "test_forms")]
    passed = sum(test.get("passed", 0) for test in tests)
    others = sum(sum(test.values()) for test in tests) - passed
    return Seen(cases=passed + others, wrong=others)


def ragged(content):
    seen = Seen()
    for result in content["results"]:
        for row in result["right"]:
            seen.cases, seen.wrong, seen.error = seen.cases + row["cases"], seen.wrong + row["wrong"], max(seen.error or 0.0, row["o_error"])
            seen.variants.add(row["program"])
        seen.alike += _repeats([result["alike"]], "others")
    return seen


def pages(content):
    """Of several texts, that of the file's commit."""
    checks = [result["check"] for result in content["results"] if result["text"] == f"of {content['notes']['commit']}"]
    hostile = [finite for check in checks for finite in check["hostile_lengths_finite"]]
    return Seen(cases=sum(check["cases"] for check in checks), wrong=sum(check["bad"] for check in checks),
                error=max(check["worst_ulp"] for check in checks), unit="ulp",
                reads=[f"hostile lengths: {sum(hostile)} of {len(hostile)} finite"])


def batches(content):
    """fagen.serving; with invariant=True nothing but programs of pages computes it."""
    bits, random = content["bits"].values(), content["random_batches"]
    finite = random["hostile_batches"] - random["not_finite"]
    return Seen(any_batch=(sum(one["differ"] for one in bits), sum(one["tried"] for one in bits)),
                reads=[f"hostile batches: {finite} of {random['hostile_batches']} finite"])


def latent(content):
    sets = content["check"]["sets"].values()
    return Seen(cases=sum(one["cases"] for one in sets), wrong=sum(one["bad"] for one in sets), error=max(one["worst"] for one in sets),
                dtypes=set(re.findall(r"\bb?f16\b", content["notes"]["text"])))


def eighths(content):
    checks = content["checks"]
    same = sum(check["same"] for check in checks)
    return Seen(cases=len(checks), wrong=sum(not check["right"] for check in checks), error=max(check["max"] for check in checks),
                dims={check["shape"][5] for check in checks}, alike=[f"{same} of {len(checks)} problems, how many runs is not recorded"])


FILES = (("ragged", "h200/ragged.json", ragged),
         ("paged", "h200/pages.json", pages),
         ("paged", "h200/python/serving.json", batches),
         ("backward", "h200/gradients_merged.json", gradients),
         ("backward", "h200/python/fronts/gradients.json", front),
         ("backward_sync", "h200/backward_sync.json", gradients),
         ("backward_sync", "h200/python/fronts/gradients_sync.json", front),
         ("fp8_products", "h200/fp8/front.json", eighths),
         ("mla", "h200/mla_tiles.json", latent))


def seen_of(kept, name, machine):
    """[(Seen, commit)] of the set's files that were made on this GPU. kept: EvidenceFiles."""
    contents = ((kept.object_of(path), read) for of, path, read in FILES if of == name)
    return [(read(content), content["notes"]["commit"]) for content, read in contents
            if content and machine in (content["machine"].get("gpu") or "")]


def operations(row):
    return {operation["op"].split("@")[0] for launch in row["launches"] for operation in launch["ops"]}


def _span(values):
    return " to ".join(str(value) for value in dict.fromkeys((min(values), max(values))))


def _scope(seen, rows):
    """Of which rows the cases are, as far as the results say it."""
    variants, dtypes, dims = (set().union(*(getattr(one, part) for one in seen)) for part in ("variants", "dtypes", "dims"))
    said = [f"{len(variants & {row['variant'] for row in rows})} of {len(rows)} rows"] if variants else []
    said += [" and ".join(sorted(dtypes))] if dtypes else []
    said += [f"d {_span(dims)}"] if dims else []
    return ", ".join(said) or "which rows is not recorded"


def _code(found, rows, spills):
    checked = [(one, commit) for one, commit in found if one.cases]
    if not checked:
        spilling = [spilled for spilled in spills if spilled]
        said = [f"assembled: {spills.count(0)}"] if 0 in spills else []
        said += [f"assembled with spills of {_span(spilling)} bytes: {len(spilling)}"] if spilling else []
        return "; ".join(said) or "text only"
    cases, wrong = (sum(getattr(one, part) for one, _ in checked) for part in ("cases", "wrong"))
    commits = ", ".join(sorted({commit for _, commit in checked}))
    return f"ran: {cases} cases, {wrong} wrong ({commits}); {_scope([one for one, _ in checked], rows)}"


def _by_batch(rows, found):
    merging = sum(bool(operations(row) & MERGES) for row in rows)
    says = "no" if not merging else "yes" if merging == len(rows) else f"of {merging} rows"
    tried = [one.any_batch for one, _ in found if one.any_batch]
    differ, of = (sum(column) for column in zip(*tried)) if tried else (0, 0)
    return says + (f"; with `invariant=True` {differ} of {of} differ" if of else "")


def _error(found):
    worst = {}
    for one, _ in found:
        if one.error is not None:
            worst[one.unit] = max(worst.get(one.unit, 0.0), one.error)
    said = [f"{value:.2f} {unit}" if unit else f"{value:.1e}" for unit, value in worst.items()]
    return "; ".join(said) or "not recorded"


def cells(rows, found, spills):
    """Code, bits repeat, by batch, error, inputs: of rows that run on a GPU, what was seen there, and what ptxas spilled of each: None: not tried."""
    reads = [sentence for one, _ in found for sentence in one.reads]
    # Scores less their maximum overflow for no finite input.
    inputs = ["any finite"] if all("max" in operations(row) for row in rows) else []
    return [_code(found, rows, spills), "; ".join(s for one, _ in found for s in one.alike) or "not recorded", _by_batch(rows, found), _error(found),
            "; ".join(inputs + reads) or "not recorded"]
