"""Max pooling and its gradient's ops: unequal windows, first of equal ones, NaN, padding, refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.ops.leaf import Var
from cgraph.ops.pool import MaxPool, MaxPoolIndices, ScatterToIndices, TakeAtIndices, sibling
from tests.support.ops import kernel_result

GEOMETRY = ((3, 2), (2, 3), (1, 0, 2, 1), (1, 2), False)
POOL = MaxPool(*GEOMETRY)
SHAPE, RESULT = (2, 3, 6, 8), (4, 3)


def meant(node):
    """The value by meaning."""
    return evaluate((node,), {})[0]


def windows(shape):
    """For each result, its window in order: a pixel's row and column, or None for padding."""
    (r, s), (down, across), (top, left, _, _), (dr, ds), _ = GEOMETRY
    for p, q in np.ndindex(RESULT):
        taps = [(p * down + i * dr - top, q * across + j * ds - left) for i in range(r) for j in range(s)]
        yield (p, q), [(a, b) if 0 <= a < shape[2] and 0 <= b < shape[3] else None for a, b in taps]


def both(op, *xs):
    """The meaning, which kernels must equal."""
    meant = op.meaning(*xs)
    node = apply(op, *(Var(x.shape, x.dtype) for x in xs))
    assert node.spec == Spec(meant.shape, meant.dtype)
    np.testing.assert_array_equal(kernel_result(node, list(xs), "reverse")[0], meant)
    return meant


def draw(dtype="f4", seed=0):
    return np.random.default_rng(seed).integers(-4, 0, SHAPE).astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_each_window_has_its_largest_element_and_the_place_of_the_first(dtype):
    x = draw(dtype)
    got, places = both(POOL, x), both(sibling(POOL, MaxPoolIndices), x)
    assert got.shape == (2, 3, *RESULT) == places.shape and places.dtype == "int32"
    for (p, q), taps in windows(SHAPE):
        for n, c in np.ndindex(2, 3):
            seen = [-99 if at is None else x[n, c][at] for at in taps]
            assert got[n, c, p, q] == max(seen) and places[n, c, p, q] == seen.index(max(seen))


def test_nan_is_the_largest_and_minus_infinity_is_an_element():
    x = np.array([[[1, np.nan, 3, -np.inf, -np.inf, 2]]], "f4")
    got = both(MaxPool((2,), (2,), (0, 0), (1,), False), x)
    np.testing.assert_array_equal(got, [[[np.nan, 3, 2]]])
    assert both(MaxPoolIndices((2,), (2,), (0, 0), (1,), False), x).tolist() == [[[1, 0, 1]]]


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_elements_go_to_their_places_and_come_back(dtype):
    indices, g = sibling(POOL, MaxPoolIndices).meaning(draw(dtype)), np.arange(72).reshape(2, 3, *RESULT).astype(dtype)
    y = draw(dtype, 1)
    spread = both(sibling(POOL, ScatterToIndices, SHAPE[2:]), indices, g)
    taken = both(sibling(POOL, TakeAtIndices), indices, y)
    want = np.zeros(SHAPE, dtype)
    for (p, q), taps in windows(SHAPE):
        for n, c in np.ndindex(2, 3):
            at = taps[indices[n, c, p, q]]
            want[n, c][at] += g[n, c, p, q]
            assert taken[n, c, p, q] == y[n, c][at]
    np.testing.assert_array_equal(spread, want)


def test_the_stride_is_the_window_and_a_last_window_may_extend_beyond_the_end():
    x = np.arange(35, dtype="f4").reshape(1, 1, 5, 7)
    assert meant(cg.max_pool2d(x, (2, 3)))[0, 0].tolist() == [[9, 12], [23, 26]]
    assert meant(cg.max_pool2d(x, (2, 3), ceil=True))[0, 0].tolist() == [[9, 12, 13], [23, 26, 27], [30, 33, 34]]
    assert meant(cg.max_pool2d(x, (2, 3), (3, 4), dilation=(4, 1)))[0, 0].tolist() == [[30, 34]]
    assert meant(cg.global_max_pool(x)).tolist() == [[[[34]]]]


@pytest.mark.parametrize("channels", [1, 16])
def test_the_only_window_may_extend_beyond_the_end_by_less_than_a_stride(channels):
    x = Var((1, channels, 3, 7))
    value = np.arange(21 * channels, dtype="f4").reshape(x.shape)
    pools = cg.max_pool2d(x, 2, 3, ceil=True, dilation=(4, 1)), cg.avg_pool2d(x, (5, 7), (3, 7), ceil=True)
    maxima, means = cg.compile(pools, [x])(value)
    assert maxima[0, 0].tolist() == [[1, 4, 6]] and means[0, 0].tolist() == [[10]]
    for call in (
        lambda: cg.max_pool2d(x, 2, 2, ceil=True, dilation=(4, 1)),
        lambda: cg.avg_pool2d(x, (5, 7), (2, 7), ceil=True),
        lambda: cg.max_pool2d(Var((1, 1, 0, 7)), 2, 3, ceil=True),
    ):
        with pytest.raises(ShapeError, match="does not fit an axis"):
            call()


def test_operands_that_do_not_fit_are_refused():
    spec, f4 = Spec(SHAPE, np.dtype("f4")), np.dtype("f4")
    with pytest.raises(ShapeError, match="pass one of 4"):
        POOL.infer(Spec(SHAPE[1:], f4))
    with pytest.raises(DTypeError, match="astype"):
        POOL.infer(Spec(SHAPE, np.dtype(bool)))
    with pytest.raises(ShapeError, match=r"only padding.*use less padding"):
        MaxPool((2, 2), (1, 1), (2, 0, 0, 0), (1, 1), False).infer(spec)
    for indices in (Spec((2, 3, 3, 4), np.dtype("i4")), Spec((2, 3, *RESULT), np.dtype("i8"))):
        with pytest.raises(ShapeError, match="int32"):
            sibling(POOL, TakeAtIndices).infer(indices, spec)
    g = Spec((2, 3, *RESULT), f4)
    with pytest.raises(ShapeError, match=r"do not fit windows over \[8, 6\]"):
        sibling(POOL, ScatterToIndices, (8, 6)).infer(Spec(g.shape, np.dtype("i4")), g)
