"""Bounds of values by interval arithmetic: signs, ends of dtypes, infinities, NaN, large values by their hull."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.formats.onnx.dynamic.intervals import SMALL, bounds_of, dtype_range, ends, fit_to_node, trusts_floats
from cgraph.ir.graph import apply
from cgraph.ops.leaf import Const, Var
from cgraph.ops.shape import items
from cgraph.ops.sort import Unique

X, Y = Var((3,), "int64", "x"), Var((3,), "int64", "y")
F = Var((3,), "float32", "f")
INF = np.inf


def pair(low, high):
    return np.broadcast_to(np.asarray(low, float), (3,)), np.broadcast_to(np.asarray(high, float), (3,))


A, B = pair([-2, 0, 3], [5, 4, 3]), pair(2, 4)
RULES = {
    "add": (X + Y, (A, B), [0, 2, 5], [9, 8, 7]),
    "subtract": (X - Y, (A, B), [-6, -4, -1], [3, 2, 1]),
    "negative": (-X, (A,), [-5, -4, -3], [2, 0, -3]),
    "product": (X * Y, (A, pair(-1, 4)), [-8, -4, -3], [20, 16, 12]),
    "product with infinity": (X * Y, (pair(0, 3), pair(-1, INF)), [-3] * 3, [INF] * 3),
    "floor": (cg.floor_divide(X, Y), (A, B), [-1, 0, 0], [2, 2, 1]),
    "floor by what may be 0": (cg.floor_divide(X, Y), (A, pair(0, 4)), [-INF] * 3, [INF] * 3),
    "remainder": (cg.remainder(X, Y), (A, B), [0, 0, 0], [3, 3, 3]),
    "remainder of less": (cg.remainder(X, Y), (pair(0, 1), B), [0] * 3, [1] * 3),
    "remainder by what may be 0": (cg.remainder(X, Y), (A, pair(0, 4)), [-INF] * 3, [INF] * 3),
    "absolute": (cg.abs(X), (pair([-2, -5, 1], [1, -3, 4]),), [0, 3, 1], [2, 5, 4]),
    "maximum": (cg.maximum(X, Y), (A, B), [2, 2, 3], [5, 4, 4]),
    "minimum": (cg.minimum(X, Y), (A, B), [-2, 0, 2], [4, 4, 3]),
    "sign": (cg.sign(X), (A,), [-1, 0, 1], [1, 1, 1]),
    "sum": (cg.sum(X), (A,), 1, 12),
    "running sum": (cg.cumsum(X), (A,), [-2, -2, 1], [5, 9, 12]),
    "largest": (cg.max(X), (A,), 3, 5),
    "product of all": (cg.prod(X), (pair([1, 0, 3], [5, 4, 3]),), 0, 60),
    "product of some below 0": (cg.prod(X), (A,), -INF, INF),
    "flip": (cg.flip(X), (A,), [3, 0, -2], [3, 4, 5]),
    "less": (X < Y, (A, B), [0, 0, 0], [1, 1, 1]),
    "less or equal is not less": (X < Y, (pair(0, 2), B), [0] * 3, [1] * 3),
    "nothing times anything": (X * Y, (pair(0, 0), pair(-INF, INF)), [-INF] * 3, [INF] * 3),
    "surely less": (X < Y, (pair(0, 1), B), [1] * 3, [1] * 3),
    "surely not less": (X < Y, (pair(4, 9), B), [0] * 3, [0] * 3),
    "surely less or equal": (X <= Y, (pair(0, 2), B), [1] * 3, [1] * 3),
    "surely not less or equal": (X <= Y, (pair(5, 9), B), [0] * 3, [0] * 3),
    "surely greater": (X > Y, (pair(5, 9), B), [1] * 3, [1] * 3),
    "surely greater or equal": (X >= Y, (pair(4, 9), B), [1] * 3, [1] * 3),
    "perhaps equal": (cg.equal(X, Y), (A, B), [0, 0, 0], [1, 1, 1]),
    "surely equal": (cg.equal(X, Y), (pair(4, 4), pair(4, 4)), [1] * 3, [1] * 3),
    "surely different": (cg.not_equal(X, Y), (pair(5, 9), B), [1] * 3, [1] * 3),
    "perhaps different": (cg.not_equal(X, Y), (pair(4, 4), B), [0] * 3, [1] * 3),
}


@pytest.mark.parametrize("name", RULES)
def test_bounds_by_hand(name):
    node, pairs, low, high = RULES[name]
    got = bounds_of(node, pairs)
    np.testing.assert_array_equal(got[0], low)
    np.testing.assert_array_equal(got[1], high)
    assert got[0].dtype == got[1].dtype == np.float64


def test_floats_may_be_nan_so_only_constants_compare():
    g = Var((3,), "float32", "g")
    np.testing.assert_array_equal(bounds_of(cg.less(F, g), (pair(0, 1), pair(2, 4))), [[0] * 3, [1] * 3])
    np.testing.assert_array_equal(bounds_of(cg.less(F, g), (pair(1, 1), pair(2, 2))), [[1] * 3, [1] * 3])


def test_a_choice_is_bounded_by_what_may_be_chosen():
    node = cg.where(X < Y, X, Y)
    low, high = bounds_of(node, (pair([1, 0, 0], [1, 0, 1]), pair(-1, 1), pair(5, 9)))
    assert low.tolist() == [-1, 5, -1] and high.tolist() == [1, 9, 9]


CASTS = [
    ("int64", "int8", (-5, 100), (-5, 100)),
    ("int64", "int8", (-5, 128), (-128, 127)),
    ("int64", "uint8", (-1, 100), (0, 255)),
    ("int64", "bool", (0, 0), (0, 0)),
    ("int64", "bool", (1, 9), (1, 1)),
    ("int64", "bool", (-9, -1), (1, 1)),
    ("int64", "bool", (-1, 1), (0, 1)),
    ("int64", "float64", (-3, 7), (-3, 7)),
    ("float32", "int64", (-2.5, 2.5), (-2, 2)),
    ("float32", "int64", (-INF, 2.5), (-INF, 2)),
    ("float32", "int32", (0.5, INF), (-(2**31), 2**31 - 1)),
    ("float32", "int8", (0.5, 2.5), (-128, 127)),
]


@pytest.mark.parametrize(("old", "new", "bounds", "want"), CASTS)
def test_casts_stay_within_their_dtype(old, new, bounds, want):
    x = Var((3,), old)
    low, high = bounds_of(x.astype(new), (pair(*bounds),))
    assert (low[0], high[0]) == want
    assert trusts_floats(x.astype(new)) is (old == "float32")


def test_logic_of_bool():
    p, q = Var((3,), bool, "p"), Var((3,), bool, "q")
    sure, perhaps = pair(1, 1), pair(0, 1)
    np.testing.assert_array_equal(bounds_of(p & q, (sure, perhaps)), [[0] * 3, [1] * 3])
    np.testing.assert_array_equal(bounds_of(p | q, (sure, perhaps)), [[1] * 3, [1] * 3])
    np.testing.assert_array_equal(bounds_of(~p, (sure,)), [[0] * 3, [0] * 3])
    np.testing.assert_array_equal(bounds_of(X & Y, (sure, sure)), [[-INF] * 3, [INF] * 3])


def test_elements_at_constant_places_have_their_own_bounds():
    np.testing.assert_array_equal(bounds_of(cg.take(X, Y), (A, pair([2, 0, 0], [2, 0, 0]))), [[3, -2, -2], [3, 5, 5]])
    np.testing.assert_array_equal(bounds_of(cg.take(X, Y), (A, pair(0, 2))), [[-2] * 3, [5] * 3])


def test_indices_and_counts_are_bounded_by_sizes():
    x = Var((4, 5), "float32")
    places, count = cg.nonzero(x, 20)
    assert [float(v.max()) for v in bounds_of(places, ())] == [0, 4] and bounds_of(count, ())[1] == 20
    for node, most in ((cg.argmax(x, 1), 19), (cg.argmin(x, 0), 19), (cg.argsort(x, 1), 19)):
        low, high = bounds_of(node, ())
        assert low.min() == 0 and high.max() == most


def test_ranges_of_dtypes():
    assert dtype_range(np.dtype("int8")) == (-128, 127) and dtype_range(np.dtype("uint32")) == (0, 2**32 - 1)
    assert dtype_range(np.dtype(bool)) == (0, 1) and dtype_range(np.dtype("uint64")) == (0, INF)
    assert dtype_range(np.dtype("int64")) == dtype_range(np.dtype("float32")) == (-INF, INF)


def test_values_without_a_rule_have_the_range_of_their_dtype():
    assert bounds_of(Var((), "int8"), ()) == (-128, 127)
    np.testing.assert_array_equal(bounds_of(cg.full((2,), 7), ()), [[7, 7], [7, 7]])


def test_large_values_have_one_pair_for_all():
    wide = cg.broadcast_to(X, (SMALL, 3))
    low, high = bounds_of(wide, (A,))
    assert low.shape == high.shape == () and (low, high) == (-2, 5)
    total = cg.sum(wide)
    assert bounds_of(total, ((low, high),)) == (-2 * 3 * SMALL, 5 * 3 * SMALL)
    large = Const(np.arange(SMALL + 1))
    assert bounds_of(large, ()) == (-INF, INF)
    np.testing.assert_array_equal(bounds_of(Const(np.arange(SMALL)), ())[1], np.arange(SMALL))
    assert ends((np.zeros(0), np.zeros(0))) == (INF, -INF)


def test_each_element_has_its_own_bounds_up_to_a_size():
    """Of the result, and of an operand."""
    x = Var((4,), "int64", "x")
    pairs = np.arange(4.0), np.arange(4.0) + 10
    low, high = bounds_of(cg.broadcast_to(x, (SMALL // 4, 4)), (pairs,))
    assert low.shape == (SMALL // 4, 4) and low[5].tolist() == [0, 1, 2, 3] and high[7].tolist() == [10, 11, 12, 13]
    low, high = bounds_of(cg.broadcast_to(x, (SMALL // 4 + 1, 4)), (pairs,))
    assert low.shape == () and (low, high) == (0, 13)
    for n in (SMALL, SMALL + 1):
        y = Var((n,), "int64", "y")
        pairs = fit_to_node(y, (np.arange(n), np.arange(n) + 1))
        low, high = bounds_of(cg.sum(y), (pairs,))
        assert (low, high) == ((n * (n - 1) / 2, n * (n + 1) / 2) if n == SMALL else (0, n * n))


def test_sums_and_extremes_along_an_axis_of_a_large_value():
    """Of n elements along the axis, whatever their number in the result; a product has no bounds."""
    wide = cg.broadcast_to(X, (SMALL, 3))
    bounds = np.array(-2.0), np.array(5.0)
    for node, low, high in (
        (cg.sum(wide, axis=0), -2 * SMALL, 5 * SMALL),
        (cg.sum(wide, axis=1), -6, 15),
        (cg.max(wide, axis=0), -2, 5),
        (cg.min(wide, axis=1), -2, 5),
        (cg.any(wide, axis=0), 0, 1),
        (cg.prod(wide, axis=1), -INF, INF),
    ):
        for got, want in zip(bounds_of(node, (bounds,)), (low, high)):
            assert set(np.ravel(got)) == {want}
    for least, most, want in ((1, 3, (1, 1)), (0, 0, (0, 0)), (-3, -1, (1, 1)), (0, 3, (0, 1))):
        for function in (cg.any, cg.all):
            low, high = bounds_of(function(wide, axis=0), ((np.array(float(least)), np.array(float(most))),))
            assert set(np.ravel(low)) == {want[0]} and set(np.ravel(high)) == {want[1]}
    assert bounds_of(cg.prod(wide), ((np.array(1.0), np.array(1.0)),)) == (-INF, INF)


def test_operators_of_dtypes_without_a_rule_have_no_bounds():
    """Bits of integers, remainders of floats, complex numbers; floats of which one is not constant."""
    g = Var((3,), "float32", "g")
    np.testing.assert_array_equal(bounds_of(~X, (pair(0, 1),)), [[-INF] * 3, [INF] * 3])
    np.testing.assert_array_equal(bounds_of(X | Y, (pair(0, 1), pair(0, 1))), [[-INF] * 3, [INF] * 3])
    np.testing.assert_array_equal(bounds_of(cg.remainder(F, g), (pair(0, 1), pair(2, 4))), [[-INF] * 3, [INF] * 3])
    np.testing.assert_array_equal(bounds_of(cg.remainder(X, Y), (pair(5, 9), pair(2, 4))), [[0] * 3, [3] * 3])
    assert bounds_of(Const(np.array(2 + 1j)), ()) == (-INF, INF)
    for a, b in ((pair(1, 1), pair(2, 3)), (pair(0, 1), pair(2, 2))):
        for node in (cg.less(F, g), cg.less_equal(F, g), cg.greater(F, g), cg.equal(F, g), cg.not_equal(F, g)):
            np.testing.assert_array_equal(bounds_of(node, (a, b)), [[0] * 3, [1] * 3])


@pytest.mark.parametrize("shape", [(4, 5), (5, 4), (1, 1), (0, 3), (7,), ()])
def test_places_and_counts_of_elements_are_bounded_by_the_shape(shape):
    """Places along an axis by the longest one; the values of Unique are any of their dtype."""
    x = cg.ravel(Var(shape, "int8")) if shape == () else Var(shape, "int8")
    places, count = cg.nonzero(x, 2)
    low, high = bounds_of(count, ())
    assert (low, high) == (0, x.size)
    low, high = bounds_of(places, ())
    assert set(low.flat) <= {0} and set(high.flat) <= {max((*shape, 1)) - 1}
    for i, result in enumerate(items(apply(Unique(2, 0), x))):
        low, high = bounds_of(result, ())
        if i == 0:
            assert set(low.flat) <= {-128} and set(high.flat) <= {127}
        else:
            assert set(low.flat) <= {min(x.size, 1)} and set(high.flat) <= {x.size}
    for node in (cg.argsort(x) if shape else None, cg.argmax(x) if x.size else None):
        if node is not None:
            low, high = bounds_of(node, ())
            assert set(low.flat) <= {0} and set(high.flat) <= {max(x.size - 1, 0)}


def test_bounds_are_rounded_as_their_values_and_nan_bounds_nothing():
    low, high = fit_to_node(F, (0.1, np.nan))
    assert low[0] == np.float32(0.1) and high.tolist() == [INF] * 3
    assert fit_to_node(X, (np.nan, 2))[0].tolist() == [-INF] * 3


OPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "negative": lambda x, y: -x,
    "product": lambda x, y: x * y,
    "quotient": cg.true_divide,
    "whole quotient": cg.floor_divide,
    "remainder": cg.remainder,
    "absolute": lambda x, y: cg.abs(x),
    "sign": lambda x, y: cg.sign(x),
    "maximum": cg.maximum,
    "minimum": cg.minimum,
    "relu": lambda x, y: cg.relu(x),
    "rounded up": lambda x, y: cg.ceil(x),
    "less": cg.less,
    "less or equal": cg.less_equal,
    "greater": cg.greater,
    "greater or equal": cg.greater_equal,
    "equal": cg.equal,
    "not equal": cg.not_equal,
    "and": lambda x, y: cg.less(x, 1) & cg.less(y, 2),
    "or": lambda x, y: cg.less(x, 1) | cg.less(y, 2),
    "choice": lambda x, y: cg.where(cg.less(x, 1), y, x),
    "sum": lambda x, y: cg.sum(x),
    "product of all": lambda x, y: cg.prod(x),
    "largest": lambda x, y: cg.max(x),
    "smallest": lambda x, y: cg.min(x),
    "any": lambda x, y: cg.any(x),
    "all": lambda x, y: cg.all(x),
    "running sum": lambda x, y: cg.cumsum(x),
    "joined": lambda x, y: cg.concat([x, y], 0),
    "part": lambda x, y: x[1:],
    "repeated": lambda x, y: cg.broadcast_to(y, (2, *y.shape)),
    "elements": lambda x, y: cg.take(y, np.array([2, 0])),
    "int8": lambda x, y: x.astype("int8"),
    "uint8": lambda x, y: x.astype("uint8"),
    "bool": lambda x, y: x.astype(bool),
    "int64": lambda x, y: x.astype("int64"),
    "float": lambda x, y: x.astype("float32"),
}
WITHIN = ("int8", "uint8", "int32", "int64", "bool", "float32")


def bounds_within(node, bounds):
    """Bounds of a node from those of its variables."""
    if node not in bounds:
        bounds[node] = bounds_of(node, [bounds_within(x, bounds) for x in node.operands])
    return bounds[node]


def drawn_bounds(rng, x, scale):
    """Bounds that are far from 0 on both sides, on one side, or one number; and numbers within them."""
    least, most = (-scale, scale) if x.dtype.kind in "if" else (0, min(2 * scale, 1) if x.dtype == bool else 2 * scale)
    low, high = np.sort(rng.integers(least, most + 1, (2, *x.shape)), axis=0)
    high = np.where(rng.integers(2, size=x.shape), high, low)
    values = [low, high, *rng.integers(low, high + 1, (3, *x.shape))]
    pair = fit_to_node(x, (low, high))
    return pair, [v.astype(x.dtype) for v in values]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("n", [4, SMALL + 1])
def test_values_lie_within_their_bounds(name, n):
    """Of every dtype, also where integers wrap around, and where one pair of bounds is for all elements."""
    rng = np.random.default_rng(0)
    for dtype, scale in [(dtype, scale) for dtype in WITHIN for scale in (3, 127)]:
        if dtype == "bool" and name in ("subtract", "negative", "sign"):
            continue
        x, y = Var((n,), dtype, "x"), Var((n,), dtype, "y")
        node = OPS[name](x, y)
        (a, xs), (b, ys) = drawn_bounds(rng, x, scale // 2), drawn_bounds(rng, y, scale)
        low, high = bounds_within(node, {x: a, y: b})
        with np.errstate(all="ignore"):
            results = [evaluate([node], {x: v, y: w})[0] for v in xs for w in ys]
        for got in results:
            assert ((low <= got) & (got <= high) | np.isnan(got)).all(), (dtype, scale)
