"""Options of ops' functions: each is passed, with a value other than its default, to a call that has a formula.

A call without one of its keywords gives something else: a table that did not show an option would show nothing.
"""

import ast
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import CgraphError
from tests.ops import option_formulas
from tests.support.tolerance import assert_close

rng = np.random.default_rng(7)


def draw(*shape: int) -> np.ndarray:
    return rng.normal(size=shape)


OPERANDS = {
    "x": draw(3, 4, 5),
    "z": draw(3, 4, 5, 2),
    "p": np.abs(draw(3, 4, 5)) + 0.5,
    "b": draw(3, 4, 5) > 0.2,
    "M": draw(4, 6),
    "S": draw(5, 5),
    "i": rng.integers(-4, 5, (3, 4)),
    "u": np.array([4.0, 1, 1, 0, 7, 4, 4]),
    "row": np.array([1.0, 2, 2, 3, 5]),
    "v": np.array([2.0, 0, 5, 4]),
    "s1": draw(2, 6, 11),
    "f1": draw(8, 3, 3),
    "s2": draw(2, 4, 9, 8),
    "f2": draw(6, 2, 3, 2),
    "s3": draw(1, 4, 5, 6, 4),
    "f3": draw(6, 2, 2, 3, 2),
    "t1": draw(6, 2, 3),
    "t2": draw(4, 3, 3, 2),
    "t3": draw(4, 3, 2, 3, 2),
    "c": draw(4),
    "d": draw(4),
    "m": draw(4),
    "n": np.abs(draw(4)) + 0.1,
    "q": draw(2, 3, 4, 5),
    "k": draw(2, 3, 6, 5),
    "w": draw(2, 3, 6, 2),
    "mask": draw(4, 6),
    "boxes": np.array([[0.0, 0, 4, 4], [1, 1, 5, 4], [6, 2, 9, 7], [2, 0, 4, 3.5]]),
    "near": np.array([[0.5, 0, 4, 5], [0, 1, 6, 4], [5, 2, 9, 8], [2, 1, 5, 4]]),
    "rois": np.array([[0.5, 0, 4, 5], [0, 1, 6, 4], [5, 2, 9, 8], [2, 1, 2.6, 4]]),
    "g": draw(3, 6),
    "gh": draw(3, 2),
    "gu": draw(2, 6),
    "gb": draw(6),
    "gx": draw(3, 3),
}

EQUAL, MISSING = np.array([0, 1, 0, 0, 0, 0, 0], bool), np.array([1, 0, 1, 0, 0, 0, 0], bool)
TREES = (  # a tree of two levels, and one of one
    np.array([0, 2]),
    np.array([0, 1, 1, -1, -1, -1, -1]),
    np.array([0.5, 3, 2, 0, 0, 0, 0]),
    np.array([1, 3, 5, 0, 0, 0, 0]),
    np.array([4, 4, 6, 0, 0, 0, 0]),
)
PACKED = {
    "BX": draw(3, 32).astype("float32"),
    "BY": rng.integers(0, 256, (2, 2, 8)).astype("uint8"),
    "BS": np.abs(draw(2, 2)).astype("float32"),
    "BZ": np.array([[1, 5], [9, 14]], "uint8"),
    "PRODUCTS": np.array([1, 2, 3, -5, 1 << 20, -(1 << 22) - 1], "int32"),
}


def key() -> cg.Node:
    return cg.Const(np.array([1, 2], "uint32"))


def encode(boxes, anchors) -> np.ndarray:
    """Offsets of centres over the anchors' sizes, logs of ratios of sizes."""
    low, high, a, b = boxes[:, :2], boxes[:, 2:], anchors[:, :2], anchors[:, 2:]
    return np.concatenate([((low + high) - (a + b)) / 2 / (b - a), np.log((high - low) / (b - a))], 1)


def capped(boxes, anchors, most: float) -> np.ndarray:
    """Boxes with the centres of these, and sizes of the anchors times at most ``exp(most)``."""
    low, high, a, b = boxes[:, :2], boxes[:, 2:], anchors[:, :2], anchors[:, 2:]
    half = np.minimum((high - low) / (b - a), np.exp(most)) * (b - a) / 2
    return np.concatenate([(low + high) / 2 - half, (low + high) / 2 + half], 1)


def put(x, indices, values, axis: int) -> np.ndarray:
    out = x.copy()
    np.put_along_axis(out, np.broadcast_to(indices, np.broadcast_shapes(np.shape(indices), (3, 1, 5))), values, axis)
    return out


def linear(x, count: int, axis: int) -> np.ndarray:
    """`count` results between the elements along an axis, each at its number times the ratio of the lengths."""
    last = x.shape[axis] - 1
    at = np.arange(count) * (last + 1) / count
    low = np.minimum(at.astype(int), last)
    weight = (at - low).reshape(-1, *[1] * (x.ndim - 1 - axis))
    return np.take(x, low, axis) * (1 - weight) + np.take(x, np.minimum(low + 1, last), axis) * weight


def bilinear(image, y: float, x: float) -> np.ndarray:
    """The channels of an image between its pixels; 0 more than a pixel outside."""
    h, w = image.shape[1:]
    if not (-1 <= y <= h and -1 <= x <= w):
        return np.zeros(len(image))
    y, x = np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)
    i, j = int(y), int(x)
    k, m = min(i + 1, h - 1), min(j + 1, w - 1)
    above = image[:, i, j] * (1 - x + j) + image[:, i, m] * (x - j)
    return above * (1 - y + i) + (image[:, k, j] * (1 - x + j) + image[:, k, m] * (x - j)) * (y - i)


def aligned(images, boxes, batch, shape, samples: int, scale: float, is_aligned: bool) -> np.ndarray:
    """Means of samples in the cells of a grid over each box."""
    out = np.zeros((len(boxes), images.shape[1], *shape))
    for n, (box, i) in enumerate(zip(np.asarray(boxes) * scale, batch)):
        x0, y0, x1, y1 = box - 0.5 * is_aligned
        least = 0 if is_aligned else 1
        height, width = max(y1 - y0, least) / shape[0], max(x1 - x0, least) / shape[1]
        for p, q, a, b in np.ndindex(*shape, samples, samples):
            y, x = y0 + (p + (a + 0.5) / samples) * height, x0 + (q + (b + 0.5) / samples) * width
            out[n, :, p, q] += bilinear(images[i], y, x) / samples**2
    return out


def pairs(numbers) -> np.ndarray:
    """Complex numbers as pairs of real ones."""
    return np.stack([numbers.real, numbers.imag], -1)


def halves(packed) -> np.ndarray:
    """The low and the high half of each byte, in this order."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1).astype("float64")


uniform, normal = evaluate(
    [cg.random_uniform(key(), (4,), dtype="float64"), cg.random_normal(key(), (4,), dtype="float64")]
)
MEANINGS = {name: x for name, x in vars(option_formulas).items() if callable(x)} | {
    "np": np,
    "nan": np.nan,
    "inf": np.inf,
    "uniform": uniform,
    "normal": normal,
    "encode": encode,
    "capped": capped,
    "put": put,
    "linear": linear,
    "aligned": aligned,
    "halves": halves,
    "pairs": pairs,
    "TREES": TREES,
    "EQUAL": EQUAL,
    "MISSING": MISSING,
    **PACKED,
}
ROWS = [line.split(" | ") for line in Path(__file__).with_name("options.txt").read_text().splitlines()]


def given(call: str | ast.Expression, is_lazy: bool = False) -> Any:
    """The value of a call with nodes, or its shape, where it asks for that; the node itself if `is_lazy`."""
    variables = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in OPERANDS.items()}
    names = MEANINGS | variables | {"cg": cg, "key": key(), "upper": cg.Var((), "int64", "upper").assign(np.int64(7))}
    code = call if isinstance(call, str) else compile(call, "a call of the table", "eval")
    found = eval(code, names)
    return evaluate([found])[0] if isinstance(found, cg.Node) and not is_lazy else found


@pytest.mark.parametrize(("call", "formula"), ROWS)
def test_a_call_with_options_gives_what_its_formula_says(call, formula):
    got, want = np.asarray(given(call)), np.asarray(eval(formula, MEANINGS | OPERANDS))
    assert got.dtype.kind == want.dtype.kind
    assert_close(got, want.astype(got.dtype), 1e4)


def without_each_keyword(call: str) -> list[tuple[str, ast.Expression]]:
    """The call without one of the keywords of its outermost ``cg`` function, for each that it has."""
    found = []
    for i, keyword in enumerate(outermost(ast.parse(call, mode="eval")).keywords):
        tree = ast.parse(call, mode="eval")
        del outermost(tree).keywords[i]
        found.append((str(keyword.arg), tree))
    return found


def outermost(tree: ast.AST) -> ast.Call:
    """The first call of a function of cg with keywords, from outside inwards."""
    calls = [x for x in ast.walk(tree) if isinstance(x, ast.Call) and ast.unparse(x.func).startswith("cg.")]
    return next((x for x in calls if x.keywords), calls[0])


def is_same(x: Any, y: Any) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and x.shape == y.shape and bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))


@pytest.mark.parametrize("call", [call for call, _ in ROWS])
def test_each_option_of_a_call_matters(call):
    want = given(call)
    for name, tree in without_each_keyword(call):
        try:
            other = given(tree)
        except (CgraphError, TypeError):
            continue
        assert not is_same(other, want), f"{call}: {name} has no effect"


UNPASSED = {
    "names and messages": "Const.name lazy_print.max_row lazy_print.max_col lazy_print.header lazy_print.fmt",
    "without effect: every sort is stable": "argsort.kind argsort.stable sort.kind sort.stable",
    "tests of kernels that users write": "kernel.function kernel.out kernel.tasks kernel.dtype kernel.grad",
    "where a constant lies": "Const.copy",
}
"""Options that no call of the table passes."""


def passed() -> set[str]:
    """Each function with each keyword that some call of the table has."""
    calls = [x for call, _ in ROWS for x in ast.walk(ast.parse(call)) if isinstance(x, ast.Call)]
    return {f"{ast.unparse(x.func).removeprefix('cg.')}.{y.arg}" for x in calls for y in x.keywords}


def test_every_option_of_every_op_is_passed_by_some_call():
    """An option that no call passes could be forgotten on its way and no test would see it."""
    options = {
        f"{name}.{x.name}"
        for name, function in ((n, getattr(cg, n)) for n in dir(cg))
        if inspect.isfunction(function) and function.__module__.startswith("cgraph.ops")
        for x in inspect.signature(function).parameters.values()
        if x.default is not x.empty
    }
    assert options - passed() == {x for names in UNPASSED.values() for x in names.split()}


@pytest.mark.slow
def test_kernels_give_what_formulas_say():
    found = [x for call, _ in ROWS if isinstance(x := given(call, is_lazy=True), cg.Node)]
    for got, want in zip(cg.compile(found, passes=False)(), evaluate(found), strict=True):
        assert_close(got, want, 1e4)
