# fagen: finds where code asks what something is called, or which family multiplies, instead of asking structure.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# A name is a string of one word in a place where it is compared or looked up. To give a name, or to print one, is free:
# what is assigned, returned, passed to a constructor or written to a text is no question.
import re

# The parts of the tree that ask structure, and those that ask families what they can do: all but where that is said.
ASKS_STRUCTURE = r"^(lib|include/fagen)/(IR|Analysis|Passes|Emit)/"
ASKS_CAPABILITIES = r"^(lib|include/fagen|tools)/(?!Target/)"

WORD = r'"(?!__)(\w*[A-Za-z]\w*)"'
# What turns a literal into something that can be compared: StringRef("x"), variable("x").
WRAPPED = rf"(?:[\w:]+\s*[({{]\s*)*{WORD}"
LOOKUPS = (
    "buffer|constant|constantOr|hasConstant|valueOf|text|integer|expr|has|isSet|operand|attrByName|substitute|uses|variable|"
    "lookup|find|count|contains|at|erase|rfind|starts_with|ends_with|equals|equals_insensitive|compare|compare_insensitive|consume_front|"
    "consume_back|split"
)
QUESTIONS = [
    rf"[=!]=\s*{WRAPPED}",
    rf"{WORD}(?:s|sv)?\s*[)}}]*\s*[=!]=",
    # name == kLast: the name has only moved.
    r"\b(?:name|variable|carry|param|backend)(?:\(\))?\s*[=!]=\s*(k[A-Z]\w*\b)(?!\[)",
    r"\b(k[A-Z]\w*)\s*[=!]=\s*[\w.>()-]*\b(?:name|variable|carry|param|backend)\b",
    rf"\.\s*Cases?(?:Lower)?\(\s*{WORD}",
    # one_of({"k", "v"}, name), for (name : {"k", "v"})
    rf"\w\(\s*\{{\s*{WORD}(?:\s*,\s*\"\w+\")*\s*\}}\s*,",
    rf"\bfor\s*\([^;()]*:\s*\{{\s*{WORD}",
    rf"(?<!lexer\.)\b(?:{LOOKUPS})\(\s*(?:[^()\";]*\+\s*)?{WORD}",
    rf"\b(?:strn?cmp|compare)\([^;()]*{WORD}",
    # isCalled(loop, "last")
    rf"\b(?:is|has|are)[A-Z]\w*\([^;()]*{WORD}",
    rf"\b(?:StringRef|string_view|string)[({{]\s*{WORD}\s*[)}}]\s*\.",
    r"\b(?:name|variable|carry|param|backend)\b[\w.()]*\s*[=!]=\s*'(\w)'",
    # std::set<StringRef>{"k", "v"}
    rf">\s*\w*\s*(?:=\s*)?\{{\s*{WORD}",
    rf"\battributes\[\s*{WORD}",
    # A table of names, or one name.
    rf"\b\w+(?:\s*\*\s*(?:const)?)?\s+\w+\[\w*\]\s*=\s*\{{+\s*{WORD}",
    rf"\b(?:StringLiteral|StringRef|string_view)\s+\w+\s*(?:=\s*|\{{\s*)?{WORD}",
    rf"\bstatic\s+const\b[^;()]*=\s*{WORD}",
    rf"\bk[A-Z]\w*\s*=\s*{WORD}",
    rf"\bconstexpr\b[^;(){{}}]*=[^;]*?{WORD}",
]
# Families of products have capabilities (fagen/Target/MmaInstrs.h).
FAMILIES = [
    r"\bMma::([A-Z]\w*)",
    r"\b(family)\s*[=!]=|\busing enum (?:\w+::)*(Mma)\b|\b(Mma)(?:>\(|\(\d)",
    r'"(scalar|wmma|mma_sync|wgmma)"',
]

# Where a name is meant: (file, names, why).
ALLOWED = [
    (r"include/fagen/Spec/Spec\.h", "Scalar", "the value of a schedule that nothing was read into"),
    (r"include/fagen/IR/RunValues\.h", "batch", "the one list of what expressions name without a declaration"),
    (r"include/fagen/IR/Measures\.h", "kTileRows", "the one list of constants with a meaning"),
    (r"lib/IR/LibraryConstants\.cpp", "kPartialExtra", "the one list of the device library's constants"),
    (r"lib/IR/ExprText\.cpp", "floor_div", "operators that text spells as calls"),
    (r"lib/Emit/ProgramPlan\.cpp", "map|i32|f32", "kinds of a plan's fields, which it has just written"),
    (r"lib/Emit/(programs/RecipeText|single/SingleProgram)\.cpp", r"\w+", "it reads a plan, which is words (docs/Programs.md)"),
    (r"lib/Passes/BuildTiles\.cpp", "j", "it makes the loop, and names its variable"),
    (r"lib/Emit/Emittable\.cpp", "q", "attention's published tensors (fagen/device/params.h)"),
    (r"lib/Emit/(Manifest|Table)\.cpp", "(?i)constant|batch|(fagen_row_)?dispatched", "words by number of an enumeration"),
    (r"lib/Passes/form/FormBuilder\.cpp", "params", "the one list of names that a kernel's text keeps for itself"),
    (r"lib/Emit/MapEmitter\.cpp", "first|along", "it makes the lambda, and names its parameters"),
    (r"lib/Emit/ProgramPlan\.cpp", "sms", "the host's count of SMs in a plan"),
]

COMMENT_OR_TEXT = re.compile(r'R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.M)


def withoutComments(text):
    """Keeps strings and line ends."""
    def keep(match):
        return match.group(0) if match.group(0).startswith('"') else "\n" * match.group(0).count("\n")
    return DIRECTIVE.sub("", COMMENT_OR_TEXT.sub(keep, text))


def isAllowed(file, name):
    return any(re.search(where, file) and re.fullmatch(names, name) for where, names, _ in ALLOWED)


def namesAsked(file, text):
    """(line, name) of each question in a file, in order, each once."""
    questions = (QUESTIONS + FAMILIES if re.match(ASKS_STRUCTURE, file) else
                 FAMILIES if re.match(ASKS_CAPABILITIES, file) else [])
    code = withoutComments(text) if questions else ""
    found = set()
    for question in questions:
        for match in re.finditer(question, code):
            name = match.group(match.lastindex)
            if not isAllowed(file, name):
                found.add((code.count("\n", 0, match.start(match.lastindex)) + 1, name))
    return sorted(found)
