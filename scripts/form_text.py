# fagen: what the text of a form means, read by itself: a check of the programs that the laboratory's reference runs.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The reference interprets programs that the compiler has written. Parser, names and types of the compiler stand
# between a form's text and these. Here the text of a spec is read anew, and its values are compared with those of the
# manifest's programs at random elements. Nothing of the compiler is shared but the text and the programs.
import math
import random
import re

TOKEN = re.compile(r"\s*(?://[^\n]*\n\s*)*(\d+\.\d*(?:[eE][-+]?\d+)?|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/<>!?:&|^()\[\]{},;=])")
# By how tightly they bind, the loosest first.
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/"]]
F32_MOST = 3.4028234663852886e38


def divide(a, b):
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def guarded(function, beyond):
    """`beyond(x)` where the function has no value."""
    def call(x):
        try:
            return function(x)
        except (ValueError, OverflowError):
            return beyond(x)
    return call


def truncated(x):
    return 0 if math.isnan(x) else int(max(-2**31, min(2**31 - 1, x)))


def times(a, b):
    return a * b


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": times, "/": divide,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b), "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "floor_div": lambda a, b: a // b,
    "floor_mod": lambda a, b: a % b, "min": min, "max": max,
}
UNARY = {
    "neg": lambda a: -a, "!": lambda a: not a, "abs": abs, "f32": lambda a: float(a),
    "i32": lambda a: int(a) if isinstance(a, bool) else truncated(a),
    "exp": guarded(math.exp, lambda x: math.inf), "exp2": guarded(lambda x: 2.0**x, lambda x: math.inf),
    "log": guarded(math.log, lambda x: -math.inf if x == 0 else math.nan),
    "log2": guarded(math.log2, lambda x: -math.inf if x == 0 else math.nan),
    "sqrt": guarded(math.sqrt, lambda x: math.nan), "tanh": math.tanh,
}


class Reader:
    """Reads values as functions of an environment."""

    def __init__(self, text):
        self.tokens, at = [], 0
        while match := TOKEN.match(text, at):
            self.tokens.append(match[1])
            at = match.end()
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted and token != wanted:
            raise ValueError(f"'{wanted}' expected, not '{token}'")
        self.at += 1
        return token

    def list(self, end):
        values = [self.value()]
        while self.peek() == ",":
            self.take()
            values.append(self.value())
        self.take(end)
        return values

    def value(self):
        condition = self.choice(0)
        if self.peek() != "?":
            return condition
        self.take()
        a = self.value()
        self.take(":")
        b = self.value()
        return lambda env: a(env) if condition(env) else b(env)

    def choice(self, level):
        if level == len(LEVELS):
            return self.unary()
        a = self.choice(level + 1)
        while self.peek() in LEVELS[level]:
            a = self.joined(BINARY[self.take()], a, self.choice(level + 1))
        return a

    @staticmethod
    def joined(function, a, b):
        return lambda env: function(a(env), b(env))

    def unary(self):
        if self.peek() not in ("-", "!"):
            return self.primary()
        function = UNARY["neg" if self.take() == "-" else "!"]
        operand = self.unary()
        return lambda env: function(operand(env))

    def primary(self):
        token = self.take()
        if token == "(":
            value = self.value()
            self.take(")")
            return value
        if token[0].isdigit():
            number = float(token) if "." in token or "e" in token else int(token)
            return lambda env: number
        if token == "inf":
            return lambda env: math.inf
        if self.peek() == "[":
            self.take()
            return self.readOf(token, self.list("]"))
        if self.peek() == "(":
            self.take()
            return self.call(token, self.list(")"))
        return lambda env: env.value(token)

    @staticmethod
    def readOf(name, indices):
        return lambda env: env.read(name, [index(env) for index in indices])

    @staticmethod
    def call(name, operands):
        if name == "clamp":
            x, low, high = operands
            return lambda env: min(max(x(env), low(env)), high(env))
        if name in UNARY:
            return lambda env: UNARY[name](operands[0](env))
        return lambda env: BINARY[name](operands[0](env), operands[1](env))


def formsOf(spec):
    """The statements of each form of a spec's text: {form: {statement: function}}; lets have their names."""
    forms = {}
    for name, body in re.findall(r"\bform\s+(\w+)\s*\{(.*?)\n?\}", spec, re.S):
        statements = {}
        for line in re.sub(r"//[^\n]*", "", body).split(";"):
            found = re.match(r"\s*(?:let\s+(\w+)|(score|mask|sink))\s*=(?!=)(.*)", line, re.S)
            if found:
                statements[found[1] or found[2]] = Reader(found[3]).value()
        forms[name] = statements
    return forms


class Environment:
    """An element of a small problem, and numbers for all params."""

    def __init__(self, form, statements, draw):
        self.form, self.statements, self.draw = form, statements, draw
        batch, kvHeads, group, seqQ, seqKv = draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 60), draw.randint(1, 90)
        self.places = {"batch": batch, "kv_heads": kvHeads, "heads": kvHeads * group, "seq_q": seqQ, "seq_kv": seqKv,
                       "b": draw.randrange(batch), "h": draw.randrange(kvHeads * group), "q": draw.randrange(seqQ),
                       "k": draw.randrange(seqKv), "s": draw.randint(-64, 64) / 8}
        self.places["hk"] = self.places["h"] // group
        self.places["p"] = self.places["q"] + seqKv - seqQ
        self.params = {param["name"]: param for param in form["params"]}
        self.numbers = {name: param.get("bound", self.number(param)) for name, param in self.params.items()}
        self.elements = {}

    def number(self, param):
        """Of its range, the ends and what is small among them; reals are eighths."""
        low, high = param.get("low"), param.get("high")
        if param["element"] == "bit":
            return self.draw.random() < 0.5
        if param["element"] not in ("i32", "u8"):
            low, high = (-4 if low is None else low), (4 if high is None else high)
            return min(max(round(self.draw.uniform(low, high) * 8) / 8, low), high)
        ends = [(-2**30 if low is None else low), (2**30 if high is None else high)]
        small = min(max(self.draw.randint(-60, 60), ends[0]), ends[1])
        return int(self.draw.choice([small, small, self.draw.randint(int(ends[0]), int(ends[1])), *ends]))

    def value(self, name):
        if name in self.places:
            return self.places[name]
        return self.statements[name](self) if name in self.statements else self.numbers[name]

    def read(self, name, indices):
        extents = [self.extent(one) for one in self.params[name]["extents"]]
        if 0 in extents:
            return 0
        at = tuple(max(0, min(index, extent - 1)) for index, extent in zip(indices, extents))
        return self.elements.setdefault((name, at), self.number(self.params[name]))

    def extent(self, words):
        word = str(words[0]).lstrip("$@")
        return int(word) if word.isdigit() else self.value(word)

    def run(self, program):
        """A postfix program of the manifest."""
        lets = dict(self.form["lets"])
        stack = []
        for word in program.split():
            read = re.fullmatch(r"(\w+)\[(\d+)\]", word)
            if word[0] in "@$":
                stack.append(self.places[word[1:]] if word[0] == "@" else self.numbers[word[1:]])
            elif word[0] == "=" and word[1:] in lets:
                stack.append(self.run(lets[word[1:]]))
            elif read:
                stack[-int(read[2]):] = [self.read(read[1], stack[-int(read[2]):])]
            elif word == "?:":
                stack[-3:] = [stack[-2] if stack[-3] else stack[-1]]
            elif word in BINARY:
                stack[-2:] = [BINARY[word](*stack[-2:])]
            elif word in UNARY:
                stack[-1] = UNARY[word](stack[-1])
            else:
                stack.append(int(word) if re.fullmatch(r"-?\d+", word) else float(word))
        return stack[0]


def isSame(a, b):
    """But for the rounding of written numbers to f32."""
    a, b = float(a), float(b)
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-5 * max(1.0, abs(a), abs(b))


def compare(spec, forms, seed, elements=24):
    """What a program of the manifest's forms gives other than the spec's text: a list of lines; and how many values agreed."""
    texts, wrong, agreed = formsOf(spec), [], 0
    for form in forms:
        statements = texts.get(form["name"])
        if statements is None: # none and causal are no one's text
            continue
        draw = random.Random(f"{seed} {form['text']}")
        for result in ("score", "mask", "sink"):
            if (result in statements) != bool(form.get(result)):
                wrong.append(f"form {form['text']}: the text and the manifest do not both have a {result}")
        for _ in range(elements):
            environment = Environment(form, statements, draw)
            for result in ("score", "mask", "sink"):
                if result not in statements or not form.get(result):
                    continue
                wanted, given = statements[result](environment), environment.run(form[result])
                if isSame(wanted, given):
                    agreed += 1
                else:
                    wrong.append(f"form {form['text']}: {result} is {wanted} by the text, {given} by the program, at "
                                 f"{environment.places} with {environment.numbers}")
    return wrong, agreed
