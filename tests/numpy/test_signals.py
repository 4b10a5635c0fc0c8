"""Differences, slopes, areas, convolutions and padding are NumPy's: every axis, both ends, odd and even lengths."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ArgumentError, NoMeaningError
from cgraph.numpy import signals
from tests.numpy.evaluated import FLOATS, compare, drawn

PLACES = np.array([0.0, 0.5, 2.0, 2.25, 7.0])


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool"])
def test_differences_with_ends(dtype):
    x = drawn((3, 4), dtype)
    for n, axis in product((0, 1, 2, 3, 4, 5), (0, 1, -1, -2)):
        compare(f"np.diff(x, {n}, {axis})", dtype, x=x)
    ends = {"p": drawn((3, 2), dtype, 1), "e": drawn((3, 1), dtype, 2), "s": np.ones((), dtype)}
    for how in ("prepend=p", "append=e", "prepend=p, append=e", "prepend=s", "append=s, axis=0", "n=2, prepend=s"):
        compare(f"np.diff(x, {how})", dtype, x=x, **ends)


def test_differences_of_all_elements_between_others():
    x, a, b = np.array([[1, 5], [2, 2]]), np.array([7, 8]), np.array([[9]])
    for how in ("", ", to_end=a", ", to_begin=a", ", a, b", ", to_begin=3", ", to_end=b, to_begin=a"):
        compare(f"np.ediff1d(x{how})", x=x, a=a, b=b)
    compare("np.ediff1d(x)", x=np.zeros(0))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex128"])
@pytest.mark.parametrize("edge_order", [1, 2, 3])
def test_slopes_with_even_and_uneven_distances(dtype, edge_order):
    x, more = drawn((4, 5), dtype), f"edge_order={edge_order}"
    for axis in (None, 0, 1, -1, (0,), (1, 0), (-2, -1)):
        compare(f"np.gradient(x, axis={axis}, {more})", dtype, x=x)
        compare(f"np.gradient(x, 0.5, axis={axis}, {more})", dtype, x=x)
    compare(f"np.gradient(x, 0.5, 2.0, {more})", dtype, x=x)
    compare(f"np.gradient(x, 0.5, p, {more})", dtype, x=x, p=PLACES.astype("float32" if dtype == "float32" else float))
    compare(f"np.gradient(x, p, 2.0, axis=(1, 0), {more})", x=drawn((4, 5)), p=PLACES)
    compare(f"np.gradient(x, 1.0, 2.0, 3.0, {more})", dtype, x=x)
    for length in (1, 2, 3):
        compare(f"np.gradient(x, {more})", dtype, x=drawn((length,), dtype))


@pytest.mark.parametrize("dtype", ["float64", "int32", "complex128"])
def test_areas_of_any_distances(dtype):
    y = drawn((4, 5), dtype)
    for axis, dx in product((0, 1, -1, -2), (1.0, 2.5, -1)):
        compare(f"np.trapezoid(y, dx={dx}, axis={axis})", y=y)
    compare("np.trapezoid(y, x)", y=y, x=PLACES)
    compare("np.trapezoid(y, x, axis=0)", y=y, x=PLACES[:4])
    for axis in (0, 1):
        compare(f"np.trapezoid(y, x, 9.0, {axis})", y=y, x=drawn((4, 5), seed=1))
    compare("np.trapezoid(y)", y=y[0, :1])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_trapezoids_of_integers_wrap_around(dtype):
    y = np.array([1, 127, 200, 1, 2**63 - 1]).astype(dtype)
    compare("np.trapezoid(y), np.trapezoid(y, x)", "float64", y=y, x=np.arange(5.0))


@pytest.mark.parametrize("function", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid", "other"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
def test_rows_of_every_pair_of_lengths(function, mode, dtype):
    for m, n in product((0, 1, 2, 3, 4, 7), repeat=2):
        compare(f"np.{function}(a, v, {mode!r})", dtype, a=drawn((m,), dtype), v=drawn((n,), dtype, 1))
    compare(f"np.{function}(a, v)", dtype, a=drawn((5,), dtype), v=drawn((3,), "float64", 1))
    compare(f"np.{function}(a, v)", a=drawn((2, 2)), v=drawn((2,)))


@pytest.mark.parametrize("function", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_padding_is_not_multiplied_with_numbers_that_are_not_finite(function, mode, dtype, monkeypatch):
    """Triangles of products are divided as those of long rows are."""
    monkeypatch.setattr(signals, "SHORT", 2)
    rng = np.random.default_rng(0)
    for m, n in product((1, 2, 3, 6, 11), repeat=2):
        a, v = drawn((m,), dtype), drawn((n,), dtype, 1)
        for x, count in ((a, m // 3), (v, (n + 1) // 2)):
            x[rng.permutation(len(x))[:count]] = rng.choice([np.inf, -np.inf, np.nan, 0.0], count)
        compare(f"np.{function}(a, v, {mode!r})", dtype, a=a, v=v)


@pytest.mark.parametrize("more", ["", ", discont=4", ", discont=1", ", period=4", ", period=5", ", period=2.5"])
def test_steps_of_half_a_period_go_the_way_that_numpys_do(more):
    steps = np.array(
        [[0.0, 3.2, 6.4, 0.5, -3.0, -6.5], [0.0, 2.0, 4.0, 0.0, -2.0, 5.0], [1.0, 3.5, 6.0, 1.0, 8.5, 1.0]]
    )
    for axis in (-1, 0, 1):
        compare(f"np.unwrap(x, axis={axis}{more})", x=steps)
        compare(f"np.unwrap(x, axis={axis}{more})", x=(steps * 2).astype("int64"))


# -- padding ----------------------------------------------------------------------------------------------------------

WIDTHS = (0, 2, (1, 3), ((0, 2), (3, 1)), ((5, 0), (0, 7)), ((1,), (2,)), {1: (2, 1)}, {-1: 3}, {0: 1, 1: (0, 2)})


@pytest.mark.parametrize("mode", [
    "edge", "reflect", "symmetric", "wrap", "constant", "linear_ramp", "maximum", "minimum", "mean", "median",
])  # fmt: skip
@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
def test_padding_of_any_width(mode, dtype):
    for width in WIDTHS:
        compare(f"np.pad(x, {width}, {mode!r})", dtype, x=drawn((2, 3), dtype))
    compare(f"np.pad(x, (2, 1), {mode!r})", dtype, x=drawn((1,), dtype))
    compare(f"np.pad(x, -1, {mode!r})", dtype, x=drawn((3,), dtype))


@pytest.mark.parametrize("of", ["7", "(1, 2)", "((1, 2), (3, 4))", "-1.5"])
def test_constants_and_ends_of_each_side(of):
    for x in (drawn((2, 3)), drawn((2, 3), "int32")):
        compare(f"np.pad(x, ((1, 2), (2, 3)), constant_values={of})", x=x)
        compare(f"np.pad(x, ((1, 2), (2, 3)), 'linear_ramp', end_values={of})", x=x)


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median"])
@pytest.mark.parametrize("length", [1, 2, 9, (1, 2), ((1, 2), (3, 1))])
def test_statistics_of_the_elements_nearest_to_each_side(mode, length):
    for dtype in ("float64", "int32"):
        compare(f"np.pad(x, ((1, 2), (2, 1)), {mode!r}, stat_length={length})", x=drawn((3, 4), dtype) * 3)


def test_padding_without_a_meaning_is_refused_with_the_way_out():
    with pytest.raises(NoMeaningError, match="linear_ramp"):
        np.pad(cg.Var((3,)), 1, "other")
    with pytest.raises(NoMeaningError, match=r"2 \* edge"):
        np.pad(cg.Var((3,)), 1, "reflect", reflect_type="odd")


def test_rows_with_axes_and_rows_of_nothing_are_not_convolved():
    x = np.arange(6.0)
    for name in ("convolve", "correlate"):
        for v in ("x[:4].reshape(2, 2)", "x[:0]", "x.reshape(2, 3)", "x[:1].reshape(1, 1)"):
            compare(f"np.{name}(x, {v})", x=x)
            compare(f"np.{name}({v}, x)", x=x)
    for v in ("x[0]", "x[3:4]"):
        compare(f"np.convolve(x, {v})", x=x)
        compare(f"np.convolve({v}, x, 'same')", x=x)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, 33, 64, 65, 130])
def test_rows_of_any_length_are_convolved_whatever_is_infinite(n, mode):
    rng = np.random.default_rng(n)
    a, v = rng.normal(size=150), rng.normal(size=n)
    compare(f"np.convolve(a, v, {mode!r}), np.correlate(a, v, {mode!r}), np.correlate(v, a, {mode!r})", a=a, v=v)
    a[[0, 70, 149]] = np.inf, -np.inf, np.nan
    compare(f"np.convolve(a, v, {mode!r})", a=a, v=v)


@pytest.mark.parametrize("discont", [None, 1.0, np.pi, 3.2, 4.0, 10.0])
def test_steps_of_exactly_the_limit_are_unwrapped_as_in_numpy(discont):
    steps = np.array([0.0, np.pi, -np.pi, 3.2, -3.2, 4.0, -4.0, 2 * np.pi, -7.0, 10.0, -10.0, 1.0])
    compare(f"np.unwrap(x, {discont})", x=np.cumsum(steps))
    compare(f"np.unwrap(x, {discont}, period=4), np.unwrap(x, {discont}, period=5)", x=np.array([0, 2, 5, 1, 3, 9, 4]))
    compare(f"np.unwrap(x, {discont}, axis=0)", x=np.cumsum(steps).reshape(4, 3))


def test_the_first_option_that_a_mode_does_not_have_is_named():
    x = cg.Var((3,), name="x")
    with pytest.raises(ArgumentError, match="end_values= changes nothing in mode 'constant'"):
        np.pad(x, 1, stat_length=2, end_values=4)
    with pytest.raises(ArgumentError, match="constant_values= changes nothing in mode 'mean'"):
        np.pad(x, 1, "mean", constant_values=2)


def test_empty_padding_has_the_operand_inside():
    x = drawn((2, 3))
    got = np.pad(cg.Var(x.shape, "float64").assign(x), ((1, 2), (0, 3)), "empty").eval()
    assert got.shape == (5, 6)
    np.testing.assert_array_equal(got[1:3, :3], x)
