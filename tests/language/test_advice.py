"""Calls that texts name can be made as they stand: the function exists, and takes its arguments in that order."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import cgraph as cg
import nn

ROOT = Path(__file__).resolve().parents[2]
CALL = re.compile(r"\b(?:cg|nn)\.[\w.]+\((?:[^()]|\([^()]*\))*\)")
PACKAGES = {"cg": cg, "nn": nn}


def texts():
    """Yield the place and the value of every text in the sources."""
    for file in sorted([*(ROOT / "cgraph").rglob("*.py"), *(ROOT / "nn").rglob("*.py")]):
        source = file.read_text()
        for node in ast.walk(ast.parse(source)) if CALL.search(source) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value


def calls():
    """Yield the place and the tree of every call of a public name in a text."""
    for place, text in texts():
        for match in CALL.finditer(text):
            try:
                tree = ast.parse(match[0], mode="eval").body
            except SyntaxError:  # a pattern such as nn.Loader(...)
                continue
            if isinstance(tree, ast.Call):
                yield place, match[0], tree


def problem(tree):
    """Return what is wrong with a call, or an empty text."""
    path = ast.unparse(tree.func).split(".")
    function = PACKAGES[path[0]]
    for name in path[1:]:
        if not hasattr(function, name):
            return f"there is no {'.'.join(path)}"
        function = getattr(function, name)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return ""
    names = [x.name for x in parameters]
    for i, argument in enumerate(tree.args):
        if isinstance(argument, ast.Name) and argument.id in names and names.index(argument.id) != i:
            return f"{argument.id} is argument {names.index(argument.id)}"
    takes_any = any(x.kind is x.VAR_KEYWORD for x in parameters)
    unknown = [x.arg for x in tree.keywords if x.arg and x.arg not in names and not takes_any]
    return f"there is no {unknown[0]}=" if unknown else ""


def test_calls_in_texts_can_be_made():
    found = list(calls())
    assert len(found) > 80
    wrong = [f"{place}: {text}: {problem(tree)}" for place, text, tree in found if problem(tree)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["nn.save_weights(model, path)", "nn.save_weight(path)", "cg.sin(x, rows=1)"])
def test_calls_that_cannot_be_made_are_found(text):
    assert problem(ast.parse(text, mode="eval").body)
