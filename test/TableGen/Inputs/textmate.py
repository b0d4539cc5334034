# fagen: reads the grammar as an editor does, line by line, the first pattern that matches at the earliest place.
import json
import re
import sys

root = sys.argv[1]


def grammar(name):
    with open(f"{root}/editors/{name}.tmLanguage.json", encoding="utf-8") as file:
        return [p for p in json.load(file)["patterns"] if "match" in p]


SPECS, IR = grammar("fagen"), grammar("fair")


def colours(line, patterns=SPECS):
    """(word, the first part of its scope) of each piece that a pattern matches."""
    position = 0
    while position < len(line):
        found = [(m.start(), n, m) for n, p in enumerate(patterns) if (m := re.compile(p["match"]).search(line, position)) and m.end() > m.start()]
        if not found:
            return
        _, number, match = min(found, key=lambda f: f[:2])
        pattern = patterns[number]
        if "name" in pattern:
            yield match.group().strip(), pattern["name"]
        for group, capture in pattern.get("captures", {}).items():
            if match.group(int(group)):
                yield match.group(int(group)), capture["name"]
        position = match.end()


def scope(word, line, patterns=SPECS):
    return dict(colours(line, patterns)).get(word, "-")


def words(pattern, file):
    with open(f"{root}/include/fagen/td/{file}", encoding="utf-8") as text:
        return re.findall(pattern, text.read(), re.M)


keys = words(r'^def \w+ : (?:EnumOption|Option|PassNumber)<"(\w+)"', "SpecOptions.td")
cases = words(r'^def \w+ : Case<"(\w+)"', "SpecEnums.td")
targets = words(r'^def \w+ : (?:Ampere|Hopper)<"(\w+)"', "Targets.td")
wrong = [k for k in keys if scope(k, f"  {k} = 1;") != "variable.parameter.key.fagen"]
wrong += [c for c in cases if scope(c, f"  dtype = {c};") != "constant.language.fagen"]
wrong += [t for t in targets if scope(t, f"target {t};") != "support.constant.target.fagen"]
ops = set(words(r'^def \w+ : \w+<"(\w+)",\s+"', "Ops.td")) - {"loop", "if"}
wrong += [o for o in ops if scope(o, f"    {o} %a, %b", IR) != "support.function.op.fair"]
if wrong or not (keys and cases and targets and len(ops) > 20):
    sys.exit(f"without their colour: {', '.join(wrong)}")
print(f"{len(keys)} keys, {len(cases)} values, {len(targets)} targets and {len(ops)} ops have their colours")
for line in ("target sm_90a;", "kernel k { // x", "tile = 128 x 64;", "when head_dim == 128 {", "shared <= 99 KiB;", "stages = tune(2, 3);",
             "form f {", "param n: i32 in [1, 2];", "mask = floor_div(k, 2) & 1;"):
    print(*(f"{word}={name.split('.')[0]}" for word, name in colours(line)))
print(*(f"{word}={name.split('.')[0]}" for word, name in colours('  mma %s, %k[j] {form = "abt", when = j < kStages} // x', IR)))
