"""rows-of-summary.py SUMMARY DOCUMENT...: the rows of mutation tables in the documents are those of the summary: the same
numbers, in the same order, of whichever columns. Prints the others, and how many rows a document has."""
import re
import sys


def rows(text):
    return [line.split() for line in text.split("\n") if re.match(r"\w+(?: +\d+){6,}$", line)]


summary = {row[0]: row[1:] for row in rows(open(sys.argv[1], encoding="utf-8").read())}
for path in sys.argv[2:]:
    found = rows(open(path, encoding="utf-8").read())
    for name, *numbers in found:
        left = iter(summary.get(name, []))
        if not all(number in left for number in numbers):
            print(f"{path}: {name} {' '.join(numbers)} is not in {sys.argv[1]}")
    print(f"{path.rsplit('/', 1)[-1]}: {len(found)} rows")
