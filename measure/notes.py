# fagen: what a result says of where it comes from, beside what was measured.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os


def notes_of(said):
    """Of --note key=value ...; the commit also comes from FAGEN_COMMIT, as in fagen-run."""
    commit = os.environ.get("FAGEN_COMMIT")
    return {**({"commit": commit} if commit else {}), **dict(note.split("=", 1) for note in said)}
