"""Choices, positions, sorted order and lines between points are NumPy's, at the ends and outside."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, PositionError, ShapeError
from tests.numpy.evaluated import compare, drawn


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("position", [-4, -3, -1, 0, 2, 3, 7])
def test_choose_takes_and_refuses_the_positions_that_numpys_does(mode, position):
    compare(f"np.choose(at, [a, b, c], mode={mode!r})", at=np.array([0, position, 2]),
            a=np.arange(3.0), b=np.arange(3.0) + 10, c=np.arange(3.0) + 20)  # fmt: skip


@pytest.mark.parametrize("wrong", [-1, -3, 3])
def test_choose_of_a_position_that_is_not_there_is_a_position_error(wrong):
    at = cg.Var((2,), "int64").assign(np.array([0, wrong]))
    for engine in ("reference", "cpu"):
        with pytest.raises(PositionError):
            cg.compile(np.choose(at, [cg.Const(np.ones(2)), cg.Const(np.zeros(2)), 3.0]), engine=engine)()


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("position", [-13, -5, -4, -1, 0, 2, 3, 11, 12])
def test_take_at_any_position_in_any_mode(mode, axis, position):
    compare(f"np.take(x, at, axis={axis}, mode={mode!r})", x=drawn((3, 4)), at=np.array([[0, position]]))


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip", ("wrap", "clip"), ("clip", "wrap")])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ravel_multi_index_in_both_orders(mode, order):
    inside = mode == "raise"
    i = np.array([0, 2, 1]) if inside else np.array([-1, 5, 1])
    j = np.array([3, 0, 2]) if inside else np.array([4, -2, 9])
    compare(f"np.ravel_multi_index((i, j), (3, 4), mode={mode!r}, order={order!r})", i=i, j=j)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4), (4, 3, 2)])
def test_unravel_index_of_every_position(order, shape):
    compare(f"np.unravel_index(i, {shape}, order={order!r})", i=np.arange(24).reshape(4, 6))


BEYOND = np.array([-9.0, -2.0, -0.5, 0.0, 0.25, 1.0, 2.0, 2.5, 4.0, 31.0, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize("period", [None, 3.0, -3.0, 0.75, -0.75, 100.0, -100.0, 0.0])
@pytest.mark.parametrize("ends", ["", ", left=-5", ", right=7", ", left=-5, right=7"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_interp_with_any_period_and_ends(period, ends, count):
    points = np.array([0.0, 0.5, 1.0, 1.75, 2.5])[:count]
    x = BEYOND if period is None else BEYOND[np.isfinite(BEYOND)]
    compare(f"np.interp(x, xp, fp{ends}, period={period})", x=x, xp=points, fp=drawn((count,), seed=1))


@pytest.mark.parametrize("period", [None, 2.0, -2.0])
def test_interp_with_equal_points_and_infinite_values(period):
    points, x = np.array([0.0, 1.0, 1.0, 1.5]), np.array([-0.25, 0.0, 0.5, 1.0, 1.25, 1.5, 1.75])
    compare(f"np.interp(x, xp, fp, period={period})", x=x, xp=points, fp=np.array([1.0, 2.0, 5.0, 3.0]))


def test_interp_of_no_points_and_of_rows_of_other_lengths_is_refused():
    for m, n in ((0, 0), (3, 2), (2, 3)):
        compare("np.interp(x, xp, fp)", x=np.ones(2), xp=np.arange(float(m)), fp=np.arange(float(n)))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0], [1.0, 1.0, 2.0], [1.0], [2.0, 0.0, 1.0]])
def test_digitize_into_rising_and_falling_bins(right, bins):
    compare(f"np.digitize(x, {bins}, right={right})", x=np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_by_a_sorter(side):
    a = np.array([3.0, 1.0, 2.0, 2.0])
    compare(f"np.searchsorted(a, v, side={side!r}, sorter=s)", a=a, v=np.array([0.0, 2.0, 2.5, 9.0]), s=np.argsort(a))


@pytest.mark.parametrize("count", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("invert", [False, True])
def test_isin_small_and_large_sets(count, invert):
    rng = np.random.default_rng(0)
    compare(f"np.isin(x, y, invert={invert})", x=rng.integers(0, 300, (3, 40)), y=rng.integers(0, 300, count))
    compare(f"np.isin(x, y, invert={invert})", x=np.array([-5, 400, 299]), y=rng.integers(0, 300, count))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lexsort_orders_by_the_last_key_first(axis):
    rng = np.random.default_rng(0)
    keys = {name: rng.integers(0, 3, (6, 5)) for name in "abc"}
    compare(f"np.lexsort((a, b, c), axis={axis})", **keys)


@pytest.mark.parametrize("call", [
    "np.piecewise(x, [x < 0, x > 1, x == 0.5], [1, 2, 3])", "np.piecewise(x, [x < 0, x > 1, x == 0.5], [1, 2, 3, 4])",
    "np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])", "np.piecewise(x, x < 0, [5, 6])",
    "np.piecewise(x, [x < 0], [lambda v, a, b=0: v * a + b, -1], 3, b=2)", "np.piecewise(x[0], x[0] < 0, [5, 6])",
    "np.piecewise(x[0], [x[0] < 0, x[0] > -5], [5, 6, 7])", "np.piecewise(x, [x < 0, x > 1], [1])",
    "np.piecewise(x, [[True, False] * 3, [False, True] * 3], [1, 2])", "np.piecewise(x, [True, False] * 3, [1, 2])",
    "np.piecewise(x, [x[0] > 0, x[4] > 0, True, False, x[5] > 3, x[1] < 0], [7, 8])", "np.piecewise(x, True, [7, 8])",
    "np.piecewise(x[:2], [True, False], [5, 6])", "np.piecewise(x[0], [True, False], [5, 6])",
    "np.piecewise(x[:2], (True, False), [5, 6])", "np.piecewise(x[:2], np.array([True, False]), [5, 6])",
    "np.piecewise(x.reshape(2, 3), [x.reshape(2, 3) > 0, x.reshape(2, 3) < -1, x.reshape(2, 3) > 1], [1, 2, 3, 4])",
])  # fmt: skip
def test_pieces_of_several_conditions_and_of_a_number(call):
    compare(call, x=np.array([-2.0, -0.5, 0.0, 0.5, 1.5, 3.0]))


def test_any_kind_of_a_partition_sorts():
    x = drawn((3, 5))
    for name in ("partition", "argpartition"):
        for kth in (0, 4, -1, -5, [1, 3], (0, -1), np.array([2])):
            got = getattr(np, name)(cg.Var(x.shape, "float64").assign(x), kth, 1, "introselect").eval()
            np.testing.assert_array_equal(got, np.sort(x, 1) if name == "partition" else np.argsort(x, 1))
    for kth in (5, -6, [0, 5], [7, -9]):
        for axis, first in ((1, 5), (0, 3)):
            outside = next(k for k in np.ravel(kth).tolist() if not -first <= k < first)
            with pytest.raises(ShapeError, match=f"kth is {outside}, but .* has {first} elements"):
                np.partition(cg.Var(x.shape), kth, axis)
    flat = np.partition(cg.Var(x.shape, "float64").assign(x), 14, None).eval()
    np.testing.assert_array_equal(flat, np.sort(x, None))
    with pytest.raises(ShapeError, match="kth is 15"):
        np.partition(cg.Var(x.shape), 15, None)


def test_the_first_condition_that_is_no_bool_is_named():
    x = cg.Var((3,), name="x")
    with pytest.raises(DTypeError, match=r"a condition is int64\[3\], not bool"):
        np.select([x > 0, cg.Var((3,), "int64"), x], [x, x, x])
