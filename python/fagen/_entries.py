# fagen: which entry of offsets, lengths, tables or slots is wrong: what kernels hold to the tensors without a word is said here.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each function reads its tensors, which waits for the GPU, and raises errors.Error for the first wrong entry by its name and place."""
from . import errors


def check_offsets(function, name, offsets, total):
    """Offsets [sequences + 1] of packed sequences in `total` rows: from 0 on, none less than that before it, none beyond the rows."""
    values = offsets.tolist()
    for i, value in enumerate(values):
        if i and value < values[i - 1]:
            raise errors.Error(f"{function}: {name}[{i}] is {value}, less than {name}[{i - 1}], {values[i - 1]}; offsets ascend")
        if not 0 <= value <= total:
            raise errors.Error(f"{function}: {name}[{i}] is {value}; there are {total} rows, and offsets are 0 to {total}")


def check_rows(function, name, offsets, most):
    """Offsets [sequences + 1] of packed sequences: none has more than `most` rows."""
    values = offsets.tolist()
    for i, (begin, end) in enumerate(zip(values, values[1:])):
        if end - begin > most:
            raise errors.Error(f"{function}: {name}[{i + 1}] - {name}[{i}] is {end - begin}; most_rows is {most}")


def check_lengths(function, name, lengths, most, what):
    """Lengths [sequences], each from 0 to `most`, a number or one for each sequence; what: where so many have a place."""
    for i, value in enumerate(lengths.tolist()):
        limit = most if isinstance(most, int) else most[i]
        if not 0 <= value <= limit:
            raise errors.Error(f"{function}: {name}[{i}] is {value}; {what} has {limit}, and a length is 0 to {limit}")


def check_table(function, name, table, lengths, page_size, pages):
    """Entries of a table [sequences, columns] that lengths [sequences] make use of: numbers of pages there are."""
    for i, (row, length) in enumerate(zip(table.tolist(), lengths.tolist())):
        for j, page in enumerate(row[:-(-max(length, 0) // page_size)]):
            if not 0 <= page < pages:
                raise errors.Error(f"{function}: {name}[{i}, {j}] is {page}; there are {pages} pages, and sequence {i} uses this entry: it has "
                                   f"{length} keys, {page_size} a page")


def check_slots(function, name, slots, rows):
    """Slots of new keys in a cache of `rows` rows: each once; below 0 are those that are not put anywhere."""
    seen = {}
    for i, slot in enumerate(slots.tolist()):
        if slot >= rows:
            raise errors.Error(f"{function}: {name}[{i}] is {slot}; the cache has {rows} rows, and slots are 0 to {rows - 1}, or below 0 for none")
        if slot >= 0 and slot in seen:
            raise errors.Error(f"{function}: {name}[{i}] and {name}[{seen[slot]}] are both {slot}; a row of the cache takes one new key")
        seen[slot] = i
