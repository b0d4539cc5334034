# fagen: what bound-mutants changes in a kernel's text, and the problems on which it asks about those that pass.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import re

DERIVED = r"(?:(?:\w+_)?(?:first|key|left|full|right|gap)_tiles?|gap_begin|seen|own_\w+|at_(?:first|last)_row|\w*half\w*)\b"
LAMBDA = r"\[&?\]\((?:int|long long|auto)\b[^)]*\) \{"
TOKEN = re.compile(
    r"(?<![\w.<])\d+(?![\w.>])|(?<= )(?:<=|>=|==|!=|<|>|&&|\|\||\+|-)(?= )|\b(?:min|max|floor_div|ceil_div|lowest|highest)(?=\()|"
    r"(?<=[(,{ ])(?:place\.)?(?:batch|head|kv_head|cta\.batch|cta\.head|cta\.kv_head)(?=[,)}])|\bnot_zero(?=\()")
CHANGED = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
           "+": ["-"], "-": ["+"], "min": ["max"], "max": ["min"], "floor_div": ["ceil_div"], "ceil_div": ["floor_div"],
           "lowest": ["highest"], "highest": ["lowest"], "not_zero": []}


def places(lines):
    """Numbers of the lines that derive, read, judge, mask or walk."""
    inside, classifies = 0, False
    for at, line in enumerate(lines):
        code = line.split("//")[0]
        if line.startswith("extern") and re.search(r"_key_tiles\(", line):
            classifies = True
        if line == "}":
            classifies = inside = False
        if re.search(LAMBDA, code) and not code.rstrip().endswith("},"):
            inside = code.count("{") - code.count("}") > 0
        declares = re.match(r"  const (?:int|bool|SeenTiles|Tensor<.*>|auto) (\w+) = ", code)
        uses = re.search(rf"\b(?:{DERIVED})", code) and not re.match(r"\s*(?:int|bool) \w+;", code)
        if (uses and not re.match(r"\s*\w+[,}]", code)) or re.search(LAMBDA, code) or inside or \
                (classifies and not line.startswith("extern") and "const MappedAttentionParams" not in code and
                 "const FormParams" not in code) or (declares and re.search(r"cta\.form|form\.\w+\(", code)):
            yield at
        if inside and re.match(r"\s*\}\)", code):
            inside = False


def changes(token):
    if token.isdigit():
        return [str(int(token) + 1), str(int(token) - 1)]
    return CHANGED.get(token, ["0"])


def mutants(text):
    """Description and text of each. Two alike in one line have a number."""
    lines = text.split("\n")
    for at in places(lines):
        # Slots of a ring and strides are no bounds.
        code = re.sub(r"(?:ring\.[kv]|stride)\[[^]]*\]", lambda m: "_" * len(m[0]), lines[at].split(" //")[0])
        for found in TOKEN.finditer(code):
            for new in changes(found[0]):
                near = code[max(0, found.start() - 24):found.end() + 16].strip()
                changed = lines[at][:found.start()] + new + lines[at][found.end():]
                yield (f"line {at + 1}, column {found.start() + 1}: {found[0]} to {new} in '{near}'",
                       "\n".join(lines[:at] + [changed] + lines[at + 1:]))


def about(draw, rows, keys):
    """A size at or about edges of tiles, or any."""
    edge = draw.choice((0, 1)) * rows + draw.randint(0, 3) * keys + draw.randint(-2, 2)
    return max(0, draw.choice((edge, edge, draw.randint(0, 3 * keys + rows), draw.randint(0, 3))))


def rule_of(param, draw, rows, keys):
    """Values of a tensor of integers in words; nothing where the check draws them."""
    last = " ".join(param["extents"][-1])
    if param["element"] not in ("bit", "u8", "i32") or draw.random() < 0.3:
        return ""
    low, high = max(param["low"], -2), min(param["high"], 2)
    if last in ("batch", "heads", "kv_heads"):
        first, step = about(draw, rows, keys), draw.randint(0, keys + 1)
        return f"ramp:{first}:{step}" if len(param["extents"]) == 1 and param["low"] <= first and first + 8 * step <= param["high"] else ""
    if last not in ("seq_q", "seq_kv"):
        return f"spread:{low}:{high}"
    size = max(1, about(draw, rows, keys))
    if param.get("ascending"):
        return draw.choice((f"runs:{max(0, low)}:{size}:{size}", f"runs:{low}:{size}:1"))
    isMap = len(param["extents"]) > 1 and " ".join(param["extents"][-2]) in ("seq_q", "seq_kv")
    return f"spread:{max(low, 0)}:{min(high, 1)}:" + (f"{size}:" if isMap else "") + f"{max(1, about(draw, rows, keys))}"


def cases_of(manifest, row, count, draw, hasPlace):
    """Several batches and heads where the mutant takes another's, and in each fourth of the others: one is as good a draw."""
    form, rows, keys = manifest["forms"][row["form"]], row["tile_rows"], row["tile_keys"]
    extents = {word for param in form["params"] for extent in param.get("extents", []) for word in extent}
    for at in range(count):
        hasTensors = any(param.get("extents") for param in form["params"])
        queries = max(1, draw.choice((rows, 2 * rows, rows + 1, draw.randint(1, 3 * rows))))
        place = draw.choice((-1, 0, 1)) * rows + draw.randint(0, 4) * keys + draw.randint(-2, 2)
        shape = (draw.randint(1, 3), 2, draw.randint(1, 2)) if hasTensors and (hasPlace or at % 4 == 0) else (1, 1, 1)
        if row["plan"]["schedule"].get("gqa") == "pack":
            shape = (shape[0], 2 * shape[2], shape[2])
        case = ",".join(map(str, (*shape, queries, max(1, queries + place), row["head_dim_qk"], row["head_dim_v"])))
        case += "" if row["dtype"] == "f16" else f" dtype={row['dtype']}"
        for param in form["params"]:
            if param["rank"] == 0 and param["element"] == "i32" and "value" not in param and param["name"] not in extents:
                case += f" arg.{param['name']}={min(max(about(draw, rows, keys), param['low']), param['high'])}"
            elif param["rank"] and (rule := rule_of(param, draw, rows, keys)):
                case += f" arg.{param['name']}={rule}"
        yield case
