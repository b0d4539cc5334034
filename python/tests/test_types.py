# fagen: the .pyi files say what the code takes.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ast
import os
import subprocess
import sys

import pytest

TESTS = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(TESTS, "..", "fagen")
STUBS = sorted(name for name in os.listdir(PACKAGE) if name.endswith(".pyi"))


def functions(file):
    """The functions of a file, and its classes' methods, by name: all overloads of each."""
    with open(os.path.join(PACKAGE, file), encoding="utf-8") as text:
        tree, found = ast.parse(text.read()), {}
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(f"{getattr(owner, 'name', '')}.{node.name}".lstrip("."), []).append(node)
    return found


def parameters(function):
    """{name: default} in order, and the names that are taken by name only. The default of one that has none is None."""
    taken = function.args
    plain = [*taken.posonlyargs, *taken.args]
    defaults = [None] * (len(plain) - len(taken.defaults)) + taken.defaults
    named = dict(zip((a.arg for a in taken.kwonlyargs), taken.kw_defaults))
    both = {**dict(zip((a.arg for a in plain), defaults)), **named}
    return {name: default and ast.unparse(default) for name, default in both.items()}, set(named)


def is_public(name):
    return not any(part.startswith("_") and part not in ("__call__", "__init__") for part in name.split("."))


@pytest.mark.parametrize("stub", STUBS)
def test_stubs_take_what_the_code_takes(stub):
    code = functions(stub[:-1])
    if stub == "__init__.pyi":
        code.update(functions("_stats.py"))
    for name, overloads in functions(stub).items():
        wanted, by_name = parameters(code[name][0])
        rest = code[name][0].args.kwarg
        passed_on = rest is not None and rest.arg == "options"
        for overload in overloads:
            said, said_by_name = parameters(overload)
            if passed_on:  # **options, which the stub spells out
                said = {parameter: default for parameter, default in said.items() if parameter in wanted}
            assert set(said) == set(wanted), name
            assert by_name <= said_by_name, name
            for parameter, default in said.items():
                spelt = default if default not in ("...", None) or wanted[parameter] is None else wanted[parameter]
                assert spelt == wanted[parameter], f"{name}({parameter})"
        assert any(list(parameters(o)[0])[:len(wanted)] == list(wanted) for o in overloads) or passed_on, name


@pytest.mark.parametrize("stub", STUBS)
def test_what_is_public_has_types(stub):
    if stub in ("__init__.pyi", "_kernels.pyi", "errors.pyi"):
        missing = set()
    else:
        missing = {name for name in functions(stub[:-1]) if is_public(name)} - set(functions(stub))
    for_the_package = {"attend", "attend_form", "why_not_form", "check_tensors", "describe", "reason_of", "computed_at_once", "Plan.__init__",
                       "checks_now", "compute", "dense", "run_here", "type_of"}
    assert missing <= for_the_package  # of fagen.torch and fagen.jax


def test_uses_of_the_package_as_mypy_sees_them():
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.path.join(TESTS, "..", "..", "pyproject.toml"),
               "--cache-dir", os.devnull, os.path.join(TESTS, "typed.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
