"""Small faults that people make, as changes of a module's text: `benchmarks/mutants.py` draws from them.

A comparison that takes the other side of equality, a constant that is one off, a condition that is dropped or always
holds, `and` for `or`, a sign, a statement or a call left out, another result. Not among them: annotations, assertions,
messages, names, text.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Change = tuple[Any, ast.AST]  # a part of a module that may be faulty, and what stands there then

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SIGNS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Fault(NamedTuple):
    """Another text in the place of a node's."""

    line: int
    function: int  # the line where the function around it begins; the one below where there is none
    start: int
    end: int
    text: str
    name: str = ""  # of the kind of fault


def faults_of(source: str, changes: Callable[[Any], Iterator[Change]] | None = None, name: str = "") -> list[Fault]:
    """All faults of a module that these `changes` make, small ones (`small_changes`) where none are named."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, nbytes: int) -> int:
        start = starts[line - 1]
        return start + len(source[start : start + nbytes].encode()[:nbytes].decode())  # columns are bytes of UTF-8

    tree = ast.parse(source)
    spans = function_spans(tree)
    faults = []
    for node in walked(tree):
        for old, new in (changes or small_changes)(node):
            start, end = place(old.lineno, old.col_offset), place(old.end_lineno, old.end_col_offset)
            function = function_around(spans, old.lineno)
            faults.append(Fault(old.lineno, function, start, end, text_of(new, old.col_offset), name))
    return list(dict.fromkeys(faults))  # functions inside of functions are walked twice


def function_spans(tree: ast.AST) -> list[tuple[int, int]]:
    """Return the first and last line of each function."""
    return [(x.lineno, x.end_lineno or 0) for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)]


def function_around(spans: list[tuple[int, int]], line: int) -> int:
    """Return the line where the function around a line begins; the one below where there is none."""
    return max((first for first, last in spans if first <= line <= last), default=line + 1)


def text_of(node: ast.AST, indent: int) -> str:
    """The text of a node, whose lines behind the first are indented by so many columns."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return f"({text})" if isinstance(node, ast.expr) else text.replace("\n", "\n" + " " * indent)


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, without annotations, what is asserted for mypy, and messages.

    Places inside of formatted text are not exact.
    """
    yield node
    if isinstance(node, ast.JoinedStr | ast.Assert):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from walked(child)


def small_changes(node: Any) -> Iterator[Change]:
    """Every part of a node that may be faulty, and what stands there then."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield node, with_fields(node, ops=[COMPARISONS[type(op)]()])
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield node, ast.Constant(node.value + 1)
        case ast.BoolOp(op=op, values=values):
            yield node, with_fields(node, op=ast.And() if isinstance(op, ast.Or) else ast.Or())
            yield from ((node, with_fields(node, values=values[:i] + values[i + 1 :])) for i in range(len(values)))
        case ast.UnaryOp(op=ast.Not()):
            yield node, node.operand
        case ast.BinOp(op=op) if type(op) in SIGNS:
            yield node, with_fields(node, op=SIGNS[type(op)]())
        case ast.If() | ast.IfExp():
            yield from ((node.test, ast.Constant(value)) for value in (True, False))
        case ast.While():
            yield node.test, ast.Constant(False)
        case ast.comprehension(ifs=[test, *_]):
            yield test, ast.Constant(True)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield node, ast.Pass()
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield node, ast.Return(ast.Constant(None))


def with_fields(node: Any, **fields: object) -> Any:
    """The node with other values for some fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
