"""NumPy's functions at the ends: no elements, one, equal ones, infinities, largest numbers, every order of axes, any
sign of a keyword. Whatever NumPy refuses is refused, when the graph is built or when it runs."""

import warnings
from itertools import chain, combinations, permutations, product

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import CgraphError, PositionError
from tests.numpy.evaluated import called, values
from tests.numpy.test_calls import assert_same

FLOATS = ("float64", "float32")
KINDS = (*FLOATS, "int32", "uint8", "bool", "complex128")


def compare(call: str, dtype: str = "float64", **arrays: np.ndarray) -> None:
    """AssertionError unless nodes give what NumPy gives, or refuse what it refuses."""
    nodes = {name: cg.Var(x.shape, x.dtype, name).assign(x) for name, x in arrays.items()}
    try:
        wanted = called(call, arrays)
    except (ValueError, TypeError, IndexError, ZeroDivisionError):
        with pytest.raises((CgraphError, ValueError, TypeError, IndexError)):
            values(called(call, nodes))
        return
    got = values(called(call, nodes))
    assert len(got) == len(wanted), call
    for mine, theirs in zip(got, wanted):
        try:
            assert_same(mine, theirs, dtype)
        except AssertionError as error:
            raise AssertionError(f"{call} of {arrays}: {error}") from None


def drawn(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape) * 3
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else np.abs(x).astype(dtype)


def orders(count: int) -> list[tuple[int, ...]]:
    """Every choice of axes in every order, and the same from the end."""
    some = list(chain.from_iterable(permutations(range(count), n) for n in range(1, count + 1)))
    return [*some, *(tuple(i - count for i in axes) for axes in some)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", ["frexp", "modf", "sqrt", "log2", "sign", "signbit", "spacing", "abs", "cbrt", "nan_to_num"]
)
def test_subnormal_numbers_are_numbers(name, dtype):
    info = np.finfo(dtype)
    x = np.array([info.smallest_subnormal, info.smallest_subnormal * 5, info.smallest_normal / 3, info.smallest_normal])
    compare(f"np.{name}(x)", dtype, x=np.concatenate([x, -x if name not in ("sqrt", "log2") else x]).astype(dtype))


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="NumPy laid a single row along observations")
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (3, 2), (3,)])
@pytest.mark.parametrize("other", [None, (1, 3), (3,), (3, 1), (3, 2)])
@pytest.mark.parametrize("rowvar", [True, False])
def test_cov_lays_rows_or_columns_of_both_operands_along_variables(shape, other, rowvar):
    arrays = {"x": drawn(shape)} if other is None else {"x": drawn(shape), "y": drawn(other, seed=1)}
    compare(f"np.cov({', '.join(arrays)}, rowvar={rowvar})", **arrays)


# -- choices ----------------------------------------------------------------------------------------------------------


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


# -- lines between points ---------------------------------------------------------------------------------------------

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


# -- middles ----------------------------------------------------------------------------------------------------------

LARGE = {"float32": [3e38, 3.2e38, -3e38, 3.4e38], "float64": [1.5e308, 1.7e308, -1.6e308, 1.6e308]}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", ["median", "nanmedian"])
@pytest.mark.parametrize("count", range(1, 5))
def test_a_median_lies_between_its_two_numbers_however_large_they_are(dtype, function, count):
    """NumPy's own overflows to an infinity from half the largest number on; the mean of two numbers never does."""
    for some in combinations(LARGE[dtype], count):
        x = np.array(some, dtype)
        low, high = np.sort(x)[(count - 1) // 2], np.sort(x)[count // 2]
        (found,) = values(called(f"np.{function}(x)", {"x": cg.Var(x.shape, x.dtype).assign(x)}))
        assert found.dtype == dtype and low <= found <= high, some


ENDS = [-np.inf, np.inf, np.nan, 1.0]


@pytest.mark.parametrize("function", ["median", "nanmedian", "nanmax", "nanmin", "nansum", "nanmean", "nanvar", "ptp"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_numpy_makes_of_infinities_and_nan(function, count):
    for some in product(ENDS, repeat=count):
        compare(f"np.{function}(x)", x=np.array(some))


@pytest.mark.parametrize("function", ["median", "nanmedian", "quantile", "nanpercentile"])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8"])
def test_middles_along_any_axes_in_any_order(function, dtype):
    share = {"quantile": ", [0.25, 1]", "nanpercentile": ", 30.5"}.get(function, "")
    for axes, keepdims in product(orders(3), (False, True)):
        compare(f"np.{function}(x{share}, axis={axes}, keepdims={keepdims})", dtype, x=drawn((2, 3, 4), dtype))


METHODS = (
    "linear", "weibull", "hazen", "interpolated_inverted_cdf", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("function", ["quantile", "nanquantile"])
@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_every_method_at_every_share(method, function, count):
    q = np.array([0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0])
    compare(f"np.{function}(x, q, method={method!r})", x=drawn((count,)), q=q)
    if function == "nanquantile" and count > 2:
        x = drawn((3, count))
        x[0, 1] = x[1, 0] = x[1, 2] = np.nan
        compare(f"np.nanquantile(x, q, axis=1, method={method!r})", x=x, q=q)


# -- reductions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.parametrize("ddof", [-1, 0, 0.5, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex128"])
def test_variances_of_few_elements_are_numpys(function, ddof, dtype):
    for n in range(4):
        compare(f"np.{function}(x, ddof={ddof})", dtype, x=drawn((n,), dtype))
        compare(f"np.{function}(x, axis=1, correction={ddof}, keepdims=True)", dtype, x=drawn((2, n), dtype))
    compare(f"np.{function}(x, axis=0, ddof={ddof}, where=w)", dtype, x=drawn((4, 3), dtype), w=WHERE)
    compare(f"np.{function}(x, axis=(1, 0), ddof={ddof})", dtype, x=np.full((2, 2), 3, dtype))


WHERE = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]], bool)  # of columns all, two and none


@pytest.mark.parametrize("method", ["var", "std"])
@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 5])
def test_variances_by_method_are_never_negative(method, ddof):
    for n in range(4):
        x = cg.Var((n,), "float64").assign(drawn((n,)))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = getattr(np, method)(drawn((n,)), ddof=ddof)
            found = cg.compile(getattr(cg, method)(x, ddof=ddof), engine="reference")()
        assert not found < 0
        assert_same(found, want)


@pytest.mark.parametrize("function", ["sum", "prod", "mean", "max", "min", "any", "all", "nansum", "nanprod", "nanmax"])
@pytest.mark.parametrize("dtype", KINDS)
def test_reductions_along_any_axes_of_what_a_mask_names(function, dtype):
    x, w = drawn((2, 3, 4), dtype), drawn((2, 3, 4)) > 1.5
    first = "" if function in ("mean", "any", "all") else ", initial=2"
    for axes in [None, *orders(3)]:
        compare(f"np.{function}(x, axis={axes})", dtype, x=x)
        compare(f"np.{function}(x, axis={axes}, where=w{first}, keepdims=True)", dtype, x=x, w=w)
        compare(f"np.{function}(x, axis={axes}, where=w{first})", dtype, x=x, w=w[:1, :, :1])


@pytest.mark.parametrize(
    "function", ["sum", "prod", "mean", "any", "all", "max", "min", "nansum", "nanmean", "median", "nanmedian"]
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_reductions_of_nothing(function, shape):
    if "median" in function and len(shape) == 3:
        return  # NumPy's own ends in an error of its reshape
    for axes in [None, *orders(len(shape))]:
        compare(f"np.{function}(x, axis={axes})", x=np.zeros(shape))
    if function in ("sum", "prod", "max", "min"):
        compare(f"np.{function}(x, initial=3.5, keepdims=True)", x=np.zeros(shape))


@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex128"])
def test_average_lays_weights_along_the_axes_as_they_are_named(returned, keepdims, dtype):
    x, how = drawn((2, 3, 4), dtype), f"returned={returned}, keepdims={keepdims}"
    compare(f"np.average(x, {how})", dtype, x=x)
    compare(f"np.average(x, weights=w, {how})", dtype, x=x, w=drawn(x.shape) + 1)
    for axes in orders(3):
        some = tuple(x.shape[i] for i in axes)
        compare(f"np.average(x, axis={axes}, {how})", dtype, x=x)
        compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(some, seed=3) + 1)
        compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(x.shape, seed=3) + 1)
        if len(axes) == 1:
            compare(f"np.average(x, axis={axes[0]}, weights=w, {how})", dtype, x=x, w=drawn(some) + 1)
        if len(some) > 1 and some[::-1] != some:
            compare(f"np.average(x, axis={axes}, weights=w, {how})", dtype, x=x, w=drawn(some[::-1]) + 1)


@pytest.mark.parametrize("function", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool"])
def test_running_sums_along_every_axis(function, dtype):
    for axis, kind in product((None, 0, 1, -1), ("", ", dtype='int64'", ", dtype='float32'")):
        compare(f"np.{function}(x, axis={axis}{kind})", "float32", x=drawn((3, 4), dtype))


@pytest.mark.parametrize("function", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("first", [False, True])
def test_running_sums_with_a_first_element(function, first):
    for axis, kind in product((0, 1, 2, -1, -3), ("", ", dtype='float32'")):
        compare(f"np.{function}(x, axis={axis}, include_initial={first}{kind})", "float32", x=drawn((2, 3, 4), "int32"))
    compare(f"np.{function}(x, include_initial={first})", x=drawn((3,)))
    compare(f"np.{function}(x)", x=drawn((3, 2)))


@pytest.mark.parametrize("function", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_the_place_of_an_extreme_is_the_first_of_equal_ones(function):
    x = np.array([[1.0, 3.0, 3.0, 0.0], [0.0, 0.0, 2.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
    for axis, keepdims in product((None, 0, 1, -1), (False, True)):
        compare(f"np.{function}(x, axis={axis}, keepdims={keepdims})", x=x)
    compare(f"np.{function}(x, axis=1)", x=np.where(x == 3, np.nan, x))


# -- statistics -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["", ", bias=True", ", ddof=0", ", ddof=2", ", bias=True, ddof=1", ", ddof=9"])
@pytest.mark.parametrize("weights", ["", ", fweights=f", ", aweights=g", ", fweights=f, aweights=g"])
@pytest.mark.parametrize("rowvar", [True, False])
def test_cov_with_every_kind_of_weight(how, weights, rowvar):
    x = drawn((3, 5)) if rowvar else drawn((5, 3))
    given = {"f": np.array([1, 2, 0, 3, 1]), "g": np.array([0.5, 1.0, 2.0, 0.25, 1.5])}
    compare(f"np.cov(x, rowvar={rowvar}{how}{weights})", x=x, **given)
    compare(f"np.cov(x, y, rowvar={rowvar}{how}{weights})", x=x, y=x[::-1].copy() * 2, **given)


@pytest.mark.parametrize("bins", ["5", "1", "[0, 1, 1, 3]", "np.array([-1.0, 0.5, 2.0])"])
@pytest.mark.parametrize("span", ["", ", range=(0.5, 2)", ", range=(-4, 9)"])
@pytest.mark.parametrize("more", ["", ", density=True", ", weights=w", ", weights=w, density=True"])
def test_histograms_of_every_kind(bins, span, more):
    for x in (drawn((2, 6)), np.array([0.5, 1.0, 1.0, 2.0, 3.0, -1.0]), np.full(4, 2.0)):
        compare(f"np.histogram(x, {bins}{span}{more})", x=x, w=drawn(x.shape, seed=4))


@pytest.mark.parametrize("bins", ["3", "(2, 4)", "[[0, 1, 3], [0, 0.5, 1, 4]]"])
@pytest.mark.parametrize("more", ["", ", density=True", ", weights=w", ", range=[(0, 2), (0.5, 3)]"])
def test_histograms_of_points_keep_their_axes_apart(bins, more):
    x, y = drawn((9,)), drawn((9,), seed=1)
    compare(f"np.histogram2d(x, y, {bins}{more})", x=x, y=y, w=drawn((9,), seed=2))


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
