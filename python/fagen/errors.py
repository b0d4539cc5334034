# fagen: what goes wrong, as exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every exception of fagen is an Error. None is raised after a launch: kernels report nothing later."""
import contextlib
from collections import namedtuple

_MOST_QUOTED = 160  # characters of a spec's line


class Error(RuntimeError):
    """Anything that fagen refuses or cannot do."""


class ArgumentError(Error, TypeError):
    """An argument that a function does not have, or of a kind that it does not take."""


class Unsupported(Error):
    """A valid call that no kernel here computes: the message has the function and the reason, `reason` the reason alone."""

    def __init__(self, reason, function=None, remedy=None):
        super().__init__(f"{function}: {reason}{f'; {remedy}' if remedy else ''}" if function else reason)
        self.reason = reason
        self._said = reason, function, remedy

    def __reduce__(self):
        """For pickle, which else makes it again from its message."""
        return type(self), self._said


class Misaligned(Unsupported):
    """Kernels exist, but base pointers or strides are not aligned enough for any of them."""


class CudaError(Error):
    """The CUDA driver is missing or reported an error."""


class CompileError(Error):
    """NVRTC is missing or refused a kernel; log has its words."""

    def __init__(self, message):
        super().__init__(message)
        self.log = message


class Diagnostic(namedtuple("Diagnostic", "file line column severity message end_line end_column", defaults=(0, 0))):
    """One thing that the compiler says of a spec: an error, warning, remark or note.

    Lines and columns count from 1; 0: no place. end_line and end_column are those of the first character after it.
    """

    __slots__ = ()

    def __str__(self):
        """As compilers write it: with the line of the spec, where that can be read."""
        if not self.line:
            return f"fagen: {self.severity}: {self.message}"
        said = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        quoted = self._quoted()
        if quoted is None:
            return said
        length = self.end_column - self.column if self.end_line == self.line else 1
        first = max(0, min(self.column - 1 - _MOST_QUOTED // 2, len(quoted) - _MOST_QUOTED))
        shown = quoted[first:first + _MOST_QUOTED]
        before = "".join("\t" if c == "\t" else " " for c in shown[:self.column - 1 - first])
        if first:
            shown = "..." + shown[3:]
        if len(quoted) > first + _MOST_QUOTED:
            shown = shown[:-3] + "..."
        return f"{said}\n{shown}\n{before}^{'~' * min(length - 1, len(shown) - len(before) - 1)}"

    def _quoted(self):
        try:
            with open(self.file, encoding="utf-8") as file:
                return file.read().split("\n")[self.line - 1]
        except (OSError, UnicodeDecodeError, IndexError):
            return None


class SpecError(Error):
    """A spec that the compiler refuses. diagnostics is a list of Diagnostic, a note after what it belongs to."""

    def __reduce__(self):
        """For pickle, which else makes it again from its message. Lines of the spec are kept as they are quoted now."""
        return _with_message, (type(self), self.diagnostics, str(self))

    def named(self, file, name):
        """The same of a file that will be gone, under another name."""
        renamed = [d._replace(file=name) if d.file == file else d for d in self.diagnostics]
        return _with_message(type(self), renamed, str(self).replace(file, name))

    def __init__(self, diagnostics):
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


@contextlib.contextmanager
def reading(path, what):
    """Whatever a file lacks, or is damaged in, that is read in this context is an Error with its path."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:  # no file, not UTF-8, no JSON, nested too deep
        raise Error(f"cannot read {what} '{path}': {error}") from None
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise Error(f"'{path}' is no {what}: {error!r}") from None


def read_diagnostics(text):
    """The diagnostics that `fagen --diagnostics=json` printed; what is none of them is an error without a place."""
    import json
    found = []
    for line in filter(None, text.splitlines()):
        said = json.loads(line) if line.startswith("{") else {"severity": "error", "message": line}
        for one in (said, *said.get("notes", ())):
            place = (one.get(key, 0) for key in ("line", "column"))
            end = (one.get(key, 0) for key in ("endLine", "endColumn"))
            found.append(Diagnostic(one.get("file", ""), *place, one["severity"], one["message"], *end))
    return found


def _with_message(kind, diagnostics, message):
    error = kind(diagnostics)
    error.args = (message,)
    return error
