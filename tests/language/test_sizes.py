"""Sizes of functions in cgraph and nn.

A function has at most 45 lines, its docstring included, and at most 8 parameters, without `self`. A facade may have
more of both: a function whose further parameters are keyword-only, or the options of one, and whose statements take at
most 30 lines.
"""

import ast

import pytest

from tests.support.wiring import sources

MOST_LINES, MOST_PARAMETERS, MOST_LINES_OF_A_FACADE = 45, 8, 30
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def lines_of(node: Function) -> int:
    """The lines from ``def`` to the end."""
    return (node.end_lineno or 0) - node.lineno + 1


def statement_lines(node: Function) -> int:
    """The lines of the body without the docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def positional(node: Function) -> list[str]:
    return [x.arg for x in (*node.args.posonlyargs, *node.args.args) if x.arg not in ("self", "cls")]


def complaint(node: Function) -> str | None:
    """What is too long, or None."""
    is_facade = bool(node.args.kwonlyargs or node.args.kwarg)
    if is_facade and statement_lines(node) > MOST_LINES_OF_A_FACADE and lines_of(node) > MOST_LINES:
        return f"a facade of {statement_lines(node)} lines of statements"
    if not is_facade and lines_of(node) > MOST_LINES:
        return f"{lines_of(node)} lines"
    if len(positional(node)) > MOST_PARAMETERS:
        return f"{len(positional(node))} positional parameters"
    return None


def test_functions_and_their_parameter_lists_are_short():
    rows = []
    for path, tree in sources().items():
        for node in functions(tree):
            if reason := complaint(node):
                rows.append(f"{path}:{node.lineno}: {node.name} has {reason}")
    assert not rows, "split them, or pass what travels together as a record:\n" + "\n".join(rows)


def function(parameters: str, docstring: int, statements: int) -> Function:
    lines = [f"def f({parameters}):", '    """', *[""] * (docstring - 2), '    """', *["    x = 1"] * statements]
    return functions(ast.parse("\n".join(lines)))[0]


@pytest.mark.parametrize(
    ("parameters", "docstring", "statements", "is_refused"),
    [
        ("", 4, 40, False),
        ("", 4, 41, True),
        ("*, a=1", 40, 30, False),
        ("*, a=1", 40, 31, True),
        ("*, a=1", 2, 42, False),
        ("**options", 40, 30, False),
        ("a, b, c, d, e, f, g, h", 3, 3, False),
        ("self, a, b, c, d, e, f, g, h", 3, 3, False),
        ("a, b, c, d, e, f, g, h, i", 3, 3, True),
        ("a, b, c, d, e, f, g, h, *, i, j", 3, 3, False),
        ("a, b, c, d, e, f, g, h, i, *, j", 3, 3, True),
    ],
)
def test_long_functions_are_refused_unless_they_are_facades(parameters, docstring, statements, is_refused):
    assert (complaint(function(parameters, docstring, statements)) is not None) is is_refused
