# fagen: a spec with its white space thrown away, and other white space and comments thrown in: mangle.py SPEC SEED > FILE
# Tokens and the comments of the spec stay in their order. A number and its unit stay in a line, as the grammar asks.
import random
import re
import sys

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\w+(?:\.\d+)?|==|!=|<=|>=|&&|\|\||\S", re.S)

text = open(sys.argv[1], encoding="utf-8").read()
chance = random.Random(int(sys.argv[2]))
tokens = TOKEN.findall(text)
out = []
for token, after in zip(tokens, [*tokens[1:], ""]):
    out.append(token)
    if token.startswith("//"):
        out.append("\n" * chance.randint(1, 4))
    elif token[0].isdigit() and after in ("B", "KiB"):
        out.append(" " * chance.randint(0, 3))
    else:
        space = [" ", "  ", "\n", "\n\n\n", "\t", "\r\n", " /* c */ ", " /* two\nlines */ ", " // end  \n"]
        out.append(chance.choices(space, [30, 5, 8, 2, 2, 1, 1, 1, 1])[0])
sys.stdout.write("".join(out))
