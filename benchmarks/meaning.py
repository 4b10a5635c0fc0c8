"""Semantic faults, as changes of a module's text: the second kind that `benchmarks/mutants.py` draws from.

Each is a plausible mistake: the wrong one of two values, an option that is not passed on, a cache key that is too
short, a missing lock or release, a loop that ends early. `KINDS` lists them by name.
"""

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from benchmarks.faults import Change, Fault, faults_of, walked, with_fields

SYMMETRIC = {"gcd", "isinstance", "issubclass", "lcm", "logical_and", "logical_or", "max", "maximum", "min", "minimum"}
ENDLESS = {"count", "cycle", "iter", "repeat"}  # iterators that a list cannot replace
LOCKS = ("condition", "guard", "lock", "mutex", "turn")
KEYED = ("cache", "key", "known", "memo", "seen")  # names of keys, and of tables indexed by them
LOOK_UPS = {"add", "get", "pop", "setdefault"}
RELEASES = {"close", "join", "kill", "release", "rmtree", "shutdown", "stop", "terminate", "unlink", "wait"}
PAIRS = (
    ("rows", "columns"),
    ("row", "column"),
    ("height", "width"),
    ("h", "w"),
    ("top", "left"),
    ("bottom", "right"),
    ("left", "right"),
    ("first", "second"),
    ("first", "last"),
    ("low", "high"),
    ("start", "end"),
    ("start", "stop"),
    ("before", "after"),
    ("min", "max"),
    ("minimum", "maximum"),
)


def meaning_faults_of(source: str) -> list[Fault]:
    """Return all semantic faults of a module."""
    return [fault for name, changes in KINDS.items() for fault in faults_of(source, changes, name)]


def swapped_arguments(node: Any) -> Iterator[Change]:
    """Swap two adjacent arguments of one kind, or the values of two adjacent keywords."""
    if not isinstance(node, ast.Call) or named(node.func) in SYMMETRIC:
        return
    for i, (one, two) in enumerate(pairwise(node.args)):
        if alike(one, two):
            yield node, with_fields(node, args=[*node.args[:i], two, one, *node.args[i + 2 :]])
    for i, (first, second) in enumerate(pairwise(node.keywords)):
        if first.arg and second.arg and alike(first.value, second.value):
            swapped = [with_fields(first, value=second.value), with_fields(second, value=first.value)]
            yield node, with_fields(node, keywords=[*node.keywords[:i], *swapped, *node.keywords[i + 2 :]])


def alike(one: ast.expr, two: ast.expr) -> bool:
    """Return True if two arguments may be of one type: both names, both attributes and so on, and not the same."""
    same_form = type(one) is type(two) and isinstance(one, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return same_form and ast.dump(one) != ast.dump(two)


def forgotten_options(node: Any) -> Iterator[Change]:
    """Omit a keyword argument, so that the default of the called function applies."""
    if not isinstance(node, ast.Call):
        return
    for i, keyword in enumerate(node.keywords):
        if keyword.arg and not isinstance(keyword.value, ast.Constant):
            yield node, with_fields(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])


def dropped_clears(node: Any) -> Iterator[Change]:
    """Omit a call that empties, removes or resets."""
    if isinstance(node, ast.Delete) or calls_method(node, {"clear"}):
        yield node, ast.Pass()
    if not isinstance(node, ast.FunctionDef) or node.name in ("__init__", "__new__"):
        return
    for each in walked(node):
        targets = each.targets if isinstance(each, ast.Assign) and is_empty(each.value) else []
        if targets and all(isinstance(x, ast.Attribute | ast.Subscript) for x in targets):
            yield each, ast.Pass()


def is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=None | False | 0) | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="dict" | "list" | "set"), args=[], keywords=[]):
            return True
    return False


def short_keys(node: Any) -> Iterator[Change]:
    """Drop an element of a tuple that is the key of a table."""
    match node:
        case ast.FunctionDef() if about_keys(node.name):
            results = [x.value for x in walked(node) if isinstance(x, ast.Return)]
        case ast.Assign(targets=[ast.Name(id=name)]) if about_keys(name):
            results = [node.value]
        case ast.Subscript() if about_keys(named(node.value)):
            results = [node.slice]
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) if about_keys(named(node.comparators[0])):
            results = [node.left]
        case ast.Call(func=ast.Attribute(value=table, attr=attr), args=[key, *_]) if attr in LOOK_UPS:
            results = [key] if about_keys(named(table)) else []
        case _:
            return
    for key in results:
        if isinstance(key, ast.Tuple) and len(key.elts) > 1 and not any(isinstance(x, ast.Slice) for x in key.elts):
            for i in range(len(key.elts)):
                yield key, with_fields(key, elts=key.elts[:i] + key.elts[i + 1 :])


def about_keys(name: str) -> bool:
    return any(word in name.lower() for word in KEYED)


def missing_locks(node: Any) -> Iterator[Change]:
    """Run the body of a `with lock:` without the lock."""
    for item in node.items if isinstance(node, ast.With) else ():
        if any(word in ast.unparse(item.context_expr).lower() for word in LOCKS):
            yield item.context_expr, ast.parse("__import__('contextlib').nullcontext()", mode="eval").body


def early_ends(node: Any) -> Iterator[Change]:
    """End a loop after its first element; return from a function before its last statement."""
    if not isinstance(node, ast.For | ast.FunctionDef):
        return
    last = node.body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Break | ast.Continue | ast.FunctionDef | ast.Pass):
        return
    if isinstance(node, ast.For):
        yield last, ast.Module([last, ast.Break()], [])
    elif len(node.body) > 1 and not is_text(last):
        yield last, ast.Pass()


def is_text(node: ast.stmt) -> bool:
    """Return True for a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def wrong_defaults(node: Any) -> Iterator[Change]:
    """Change the default of a parameter."""
    if not isinstance(node, ast.arguments):
        return
    for default in (*node.defaults, *node.kw_defaults):
        match default:
            case ast.Constant(value=bool(value)):
                yield default, ast.Constant(not value)
            case ast.Constant(value=int(value)):
                yield default, ast.Constant(value + 1)
            case ast.Constant(value=float(value)):
                yield default, ast.Constant(value / 2 if value else 1.0)


def one_of_two(node: Any) -> Iterator[Change]:
    """Examine all but the last element, or take the other one of two."""
    match node:
        case ast.For() | ast.comprehension() if not endless(node.iter):
            yield node.iter, but_the_last(node.iter)
        case ast.Subscript(slice=ast.Constant(value=0 | 1 as i), ctx=ast.Load()) if i is not True and i is not False:
            yield node, with_fields(node, slice=ast.Constant(1 - i))
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield node.func, ast.Name("max" if name == "min" else "min", ast.Load())


def endless(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and named(node.func) in ENDLESS


def but_the_last(node: ast.expr) -> ast.expr:
    every = ast.Call(ast.Name("list", ast.Load()), [node], [])
    return ast.Subscript(every, ast.Slice(None, ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.Load())


def other_names(node: Any) -> Iterator[Change]:
    """Swap rows and columns, low and high: the other name of a pair, in a function that has both."""
    if not isinstance(node, ast.FunctionDef):
        return
    inside = list(walked(node))
    names = {x.id for x in inside if isinstance(x, ast.Name)} | {x.arg for x in inside if isinstance(x, ast.arg)}
    attributes = {x.attr for x in inside if isinstance(x, ast.Attribute)}
    for old in inside:
        for one, two in (*PAIRS, *((b, a) for a, b in PAIRS)):
            match old:
                case ast.Name(id=name, ctx=ast.Load()) if name == one and two in names:
                    yield old, with_fields(old, id=two)
                case ast.Attribute(attr=name, ctx=ast.Load()) if name == one and two in attributes:
                    yield old, with_fields(old, attr=two)


def kept_resources(node: Any) -> Iterator[Change]:
    """Do not release a resource, or only if nothing has failed."""
    if calls_method(node, RELEASES):
        yield node, ast.Pass()
    for last in node.finalbody if isinstance(node, ast.Try) else ():
        fine = ast.parse("__import__('sys').exc_info()[0] is None", mode="eval").body
        yield last, ast.Pass()
        yield last, ast.If(fine, [last], [])


def calls_method(node: Any, names: set[str]) -> bool:
    """Return True for a statement that only calls a method of one of these names."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in names
    return False


def named(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for other expressions."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


KINDS: dict[str, Callable[[Any], Iterator[Change]]] = {
    "swapped arguments": swapped_arguments,
    "forgotten option": forgotten_options,
    "dropped clear": dropped_clears,
    "short key": short_keys,
    "missing lock": missing_locks,
    "early end": early_ends,
    "wrong default": wrong_defaults,
    "one of two": one_of_two,
    "other name of a pair": other_names,
    "kept resource": kept_resources,
}
