# fagen: types of what goes wrong.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from typing import List, Literal, NamedTuple, Optional

class Error(RuntimeError): ...

class ArgumentError(Error, TypeError): ...

class Unsupported(Error):
    reason: str
    def __init__(self, reason: str, function: Optional[str] = None, remedy: Optional[str] = None) -> None: ...

class Misaligned(Unsupported): ...
class CudaError(Error): ...

class CompileError(Error):
    log: str
    def __init__(self, message: str) -> None: ...

class Diagnostic(NamedTuple):
    file: str
    line: int
    column: int
    severity: Literal["error", "warning", "remark", "note"]
    message: str
    end_line: int = 0
    end_column: int = 0

class SpecError(Error):
    diagnostics: List[Diagnostic]
    def __init__(self, diagnostics: List[Diagnostic]) -> None: ...
    def named(self, file: str, name: str) -> "SpecError": ...

def read_diagnostics(text: str) -> List[Diagnostic]: ...
