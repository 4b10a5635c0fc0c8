"""What is left out of a call has one meaning: the stub's, and NumPy's where NumPy has such an argument."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import OPS

STUB = ast.parse(Path(cg.__file__).with_suffix(".pyi").read_text())
DIFFERENT = {  # function, argument: what NumPy has otherwise
    ("arange", "dtype"), ("eye", "dtype"), ("full", "dtype"), ("ones", "dtype"), ("zeros", "dtype"),
    ("round", "decimals"),
}  # fmt: skip


def stubbed() -> Iterator[tuple[str, dict[str, str]]]:
    """Each public function of the stub, and its defaults as they are written."""
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef) and node.name in OPS:
            given = node.args
            names = [*given.posonlyargs, *given.args]
            pairs = [*zip(names[len(names) - len(given.defaults) :], given.defaults)]
            pairs += [(name, value) for name, value in zip(given.kwonlyargs, given.kw_defaults) if value is not None]
            yield node.name, {name.arg: ast.unparse(value) for name, value in pairs}


def defaults_of(function: object) -> dict[str, object]:
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.default is not p.empty}


@pytest.mark.parametrize(("name", "wanted"), list(stubbed()))
def test_a_function_has_the_defaults_of_its_stub(name, wanted):
    assert {k: wanted[k] if wanted[k] == "..." else repr(v) for k, v in defaults_of(OPS[name]).items()} == wanted


def test_defaults_are_numpys():
    compared = 0
    for name, function in OPS.items():
        try:
            theirs = defaults_of(getattr(np, name))
        except (AttributeError, TypeError, ValueError):  # no such function, or one whose arguments are not told
            continue
        for argument, value in defaults_of(function).items():
            if argument in theirs and theirs[argument] is not np._NoValue and (name, argument) not in DIFFERENT:
                assert value == theirs[argument], (name, argument)
                compared += 1
    assert compared > 50
