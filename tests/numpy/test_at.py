"""``x.at[i].set(v)`` and the like, on nodes and on traced arrays, against NumPy's assignments and ``ufunc.at``."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, NoMeaningError, ShapeError
from tests.support.tolerance import assert_near

A = np.arange(12.0).reshape(3, 4)
INDICES = {
    "an integer": 1,
    "a negative integer": (-1, -2),
    "slices": (slice(1, None), slice(None, None, 2)),
    "a reversed slice": slice(None, None, -1),
    "everything": ...,
    "a new axis": (slice(None), None, 1),
    "an array": [0, 2],
    "equal positions": [1, 1, 0],
    "pairs": ([0, 2, 0], [1, -1, 1]),
    "a slice and an array": (slice(1, 3), np.array([3, 0])),
    "equal positions behind a number": (1, [2, 2, 0]),
    "equal positions behind a slice": (slice(1, 3), np.array([3, 3])),
    "a constant mask": A > 5,
}
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def numpys(how: str, index: object, value: object, dtype: str) -> np.ndarray:
    x = A.astype(dtype)
    if how == "set":
        x[index] = value
    else:
        UFUNCS[how].at(x, index, np.asarray(value, dtype))
    return x


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("how", ["set", *UFUNCS])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_an_update_is_numpys_on_nodes_and_traced_arrays(index, how, dtype):
    want = numpys(how, index, 3, dtype)
    x = cg.Var(A.shape, dtype)
    node = cg.compile(getattr(x.at[index], how)(3), [x], engine="reference")(A.astype(dtype))
    traced = cg.jit(lambda x, v: getattr(x.at[index], how)(v))(A.astype(dtype), np.asarray(3, dtype))
    for got in (node, traced):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


@pytest.mark.parametrize("how", ["set", *UFUNCS])
def test_a_traced_mask_and_traced_positions_select_elements(how):
    @cg.jit
    def update(x, i):
        return getattr(x.at[x > 4], how)(2.5), getattr(x.at[x.sum(1) > 10], how)(x[0]), getattr(x.at[i], how)(x[2])

    i = np.array([1, 0, 1])
    for got, index, value in zip(update(A, i), (A > 4, A.sum(1) > 10, i), (2.5, A[0], A[2])):
        np.testing.assert_array_equal(got, numpys(how, index, value, "float64"))


@pytest.mark.parametrize("how", ["divide", "power"])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_quotients_and_powers_are_numpys_up_to_rounding(index, how):
    want = A.copy()
    {"divide": np.true_divide, "power": np.power}[how].at(want, index, 1.5)
    x = cg.Var(A.shape, "float64")
    got = cg.compile(getattr(x.at[index], how)(1.5), [x], engine="reference")(A)
    assert_near(got, want, "float64 formulas")
    np.testing.assert_array_equal(got[want == A], A[want == A])


def test_a_function_is_applied_once_to_each_element_and_under_a_mask():
    @cg.jit
    def update(x):
        return x.at[[0, 0]].apply(np.square), x.at[x > 5].apply(lambda y: y - 1), x.at[:, 1].apply(np.negative)

    twice, masked, column = update(A)
    want = A.copy()
    want[:, 1] *= -1
    np.testing.assert_array_equal(twice, np.concatenate([A[:1] ** 2, A[1:]]))
    np.testing.assert_array_equal(masked, np.where(A > 5, A - 1, A))
    np.testing.assert_array_equal(column, want)


def test_the_array_itself_stays_and_get_returns_the_elements():
    @cg.jit
    def update(x):
        y = x.at[0].set(7.0).at[1, 1:].multiply(2.0)
        return x, y, y.at[:, 1].get()

    same, changed, part = update(A)
    want = A.copy()
    want[0], want[1, 1:] = 7.0, want[1, 1:] * 2
    np.testing.assert_array_equal(same, A)
    np.testing.assert_array_equal(changed, want)
    np.testing.assert_array_equal(part, want[:, 1])


def test_updates_have_gradients_and_batches():
    def f(x):
        return (x.at[[0, 0, 2]].add(x[1]).at[1].multiply(3.0) ** 2).sum()

    x = np.array([1.0, 2.0, 3.0])
    step = 1e-6 * np.eye(3)
    slope = [(f(cg.Const(x + d)).eval() - f(cg.Const(x - d)).eval()) / 2e-6 for d in step]
    assert_near(cg.grad(f)(x), slope, "float32 formulas near zero")
    assert_near(
        cg.vmap(f)(np.stack([x, 2 * x])),
        [f(cg.Const(x)).eval(), f(cg.Const(2 * x)).eval()],
        "float32 formulas near zero",
    )


def test_an_update_that_does_not_fit_is_refused():
    x = cg.Var((3,), "int32", name="x")
    with pytest.raises(DTypeError, match=r"float64 does not go into x int32\[3\]; use value.astype\('int32'\)"):
        x.at[0].add(np.array(1.5))
    with pytest.raises(DTypeError, match=r"a quotient is not an integer, and x is int32\[3\]; use x.astype"):
        x.at[0].divide(2)
    with pytest.raises(ShapeError):
        x.at[0].set(np.zeros(2, "int32"))
    with pytest.raises(ShapeError):
        x.at[3].add(1)


def test_an_assignment_to_a_node_names_the_update():
    x = cg.Var((3,), name="x")
    with pytest.raises(NoMeaningError, match=r"use x = x.at\[index\].set\(value\)"):
        x[0] = 1


@pytest.mark.parametrize("how", ["set", "divide", "power", *UFUNCS])
@pytest.mark.parametrize("other", ["int8", "int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "complex64"])
def test_values_of_a_narrower_kind_are_converted_and_of_a_wider_one_refused(dtype, other, how):
    x, value = np.array([2, 3, 4]).astype(dtype), np.array([2, 1]).astype(other)
    act = getattr(cg.Var(x.shape, dtype, "x").assign(x).at[:2], how)
    if how == "set" and other == "complex64" != dtype:
        says = "a complex value does not go into x"
    elif how == "divide" and "int" in dtype:
        says = "a quotient is not an integer, and x is"
    elif how != "set" and not np.can_cast(other, dtype, "same_kind"):
        says = f"{other} does not go into x {dtype}"
    else:
        want = x.copy()
        ufunc = ({"divide": np.true_divide, "power": np.power} | UFUNCS).get(how, lambda a, b: b)
        want[:2] = ufunc(want[:2], value.astype(dtype))
        got = act(value).eval()
        assert got.dtype == dtype
        assert_near(got, want, "float32 formulas")
        return
    with pytest.raises(DTypeError, match=says):
        act(value)


def test_elements_are_shown_with_their_index():
    x = cg.Var((3,), name="x")
    assert repr(x.at) == f"<at of {x!r}>"
    assert repr(x.at[1:]) == f"<elements {slice(1, None)!r} of {x!r}; .get() returns them, .set(value) replaces them>"


@pytest.mark.parametrize("how", ["set", "add", "multiply", "min"])
@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: (m,)], ids=["a mask", "a tuple of one mask"])
def test_elements_of_a_mask_of_the_first_axes_are_combined(wrap, how):
    x, mask = np.arange(12.0).reshape(3, 4) + 1, np.array([True, False, True])
    for m in (mask, x > 5):
        node = cg.Var(x.shape, "float64").assign(x)
        given = cg.Var(m.shape, "bool").assign(m)
        got = getattr(node.at[wrap(given)], how)(2.5).eval()
        want, ufunc = x.copy(), {"add": np.add, "multiply": np.multiply, "min": np.minimum}.get(how, lambda a, b: b)
        want[m] = ufunc(want[m], 2.5)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("how", UFUNCS)
@pytest.mark.parametrize(
    "dtype, other", [("float64", "int8"), ("float64", "float32"), ("int64", "int8"), ("complex64", "float32")]
)
def test_values_of_a_narrower_dtype_at_listed_places_are_converted(dtype, other, how):
    if dtype == "complex64" and how in ("min", "max"):
        return
    x, value = np.array([2, 3, 4, 5]).astype(dtype), np.array([2, 1, 3]).astype(other)
    want = x.copy()
    UFUNCS[how].at(want, [3, 0, 3], value)
    for index in ([3, 0, 3], np.array([3, 0, -1])):
        got = getattr(cg.Var(x.shape, dtype).assign(x).at[index], how)(value).eval()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want)
