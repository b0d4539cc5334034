# fagen: what goes wrong, as exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every exception of fagen is an Error. None is raised behind a launch: kernels report nothing later."""
import re
from collections import namedtuple


class Error(RuntimeError):
    """Anything that fagen refuses or cannot do."""


class Unsupported(Error):
    """A valid call that no kernel here computes: the message has the function and the reason, `reason` the reason alone."""

    def __init__(self, reason, function=None, remedy=None):
        super().__init__(f"{function}: {reason}{f'; {remedy}' if remedy else ''}" if function else reason)
        self.reason = reason


class Misaligned(Unsupported):
    """Kernels exist, but base pointers or strides are not aligned enough for any of them."""


class CudaError(Error):
    """The CUDA driver is missing or reported an error."""


class CompileError(Error):
    """NVRTC is missing or refused a kernel; log has its words."""

    def __init__(self, message):
        super().__init__(message)
        self.log = message


class Diagnostic(namedtuple("Diagnostic", "file line column severity message")):
    """One thing that the compiler says of a spec: an error, warning or note. line and column count from 1; 0: no place."""

    __slots__ = ()


class SpecError(Error):
    """A spec that the compiler refuses. diagnostics is a list of Diagnostic; str() is the compiler's own text."""

    def __init__(self, text):
        super().__init__(text)
        self.diagnostics = parse_diagnostics(text)


_DIAGNOSTIC = re.compile(r"^(?:(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): |fagen: )(?P<severity>error|warning|note): (?P<message>.*)$")


def parse_diagnostics(text: str) -> "list[Diagnostic]":
    """The diagnostics in what the compiler printed; the quoted lines of the spec are left out."""
    found = []
    for line in text.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match:
            place = int(match["line"] or 0), int(match["column"] or 0)
            found.append(Diagnostic(match["file"] or "", *place, match["severity"], match["message"]))
    return found
