"""Small programming mistakes, as changes of a module's text: `benchmarks/mutants.py` draws from them.

A comparison with the other side of equality, a constant that is one off, a condition that is dropped or always true,
`and` for `or`, a sign, a statement or a call omitted, another result. Excluded: annotations, assertions, messages,
names, texts.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Change = tuple[Any, ast.AST]  # a part of a module that may be faulty, and its replacement

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
    """A replacement of a node's text."""

    line: int
    function: int  # the line where the enclosing function begins; the line below if there is none
    start: int
    end: int
    text: str
    name: str = ""  # name of the kind of fault


def faults_of(source: str, changes: Callable[[Any], Iterator[Change]] | None = None, name: str = "") -> list[Fault]:
    """Return all faults of a module from these `changes`, small ones (`small_changes`) by default."""
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
    return list(dict.fromkeys(faults))  # nested functions are walked twice


def function_spans(tree: ast.AST) -> list[tuple[int, int]]:
    """Return the first and last line of each function."""
    return [(x.lineno, x.end_lineno or 0) for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)]


def function_around(spans: list[tuple[int, int]], line: int) -> int:
    """Return the line where the function around a line begins; the one below where there is none."""
    return max((first for first, last in spans if first <= line <= last), default=line + 1)


def text_of(node: ast.AST, indent: int) -> str:
    """Return the text of a node; lines after the first are indented by so many columns."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return f"({text})" if isinstance(node, ast.expr) else text.replace("\n", "\n" + " " * indent)


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all nodes below it, without annotations, assertions for mypy, and messages.

    Positions inside formatted texts are not exact.
    """
    yield node
    if isinstance(node, ast.JoinedStr | ast.Assert):
        return
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from walked(child)


def small_changes(node: Any) -> Iterator[Change]:
    """Yield every part of a node that may be faulty, and its replacement."""
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
    """Return the node with other values of some fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
