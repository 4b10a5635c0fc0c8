"""Setting elements, copies and conversions of every pair of dtypes, known values and lazy ones alike."""

from itertools import product

import numpy as np
import pytest

from cgraph import array_api as xp

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
KEYS = [
    1,
    -1,
    slice(1, 3),
    slice(None, None, -2),
    Ellipsis,
    (Ellipsis, 0),
    np.array([0, 2]),
    np.array([True, False, True, True]),
]


def array(dtype: str, lazy: bool, shape: tuple[int, ...] = (4,)) -> xp.Array:
    """Ones, computed or known."""
    x = xp.ones(shape, dtype=np.dtype(dtype))
    return xp.reshape(x, shape) if not lazy else xp.expand_dims(x, axis=0)[0, ...] if not shape else xp.flip(x)


def raised(action) -> type | None:
    try:
        action()
    except (TypeError, IndexError, ValueError) as error:
        return type(error)
    return None


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_set_to_what_fits_and_to_nothing_wider(dtype, lazy):
    """An Array fits where promotion does not change the dtype."""
    for other in DTYPES:
        x, value = array(dtype, lazy), xp.asarray(np.zeros(1, other)[0])
        wide = np.result_type(dtype, other) != np.dtype(dtype)
        for key in (0, slice(None), slice(1, 2), np.array([0, 1])):
            if wide:
                with pytest.raises(TypeError, match=f"{other} does not fit into {dtype}"):
                    x[key] = value
                np.testing.assert_array_equal(x, np.ones(4, dtype))
        if not wide:
            x[2] = value
            np.testing.assert_array_equal(x, np.array([1, 1, 0, 1], dtype))
        assert x.dtype == np.dtype(dtype) and x.shape == (4,)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_setting_elements_is_what_numpy_does_and_changes_one_array(key, lazy):
    x = xp.asarray(np.arange(4.0))
    x = x * 1 if lazy else x
    others = [x + 0, xp.asarray(x, copy=True), x[::-1], xp.astype(x, xp.float64, copy=True)]
    shared, want = x, np.arange(4.0)
    value = np.full(want[key].shape, 9.0) + np.arange(want[key].size).reshape(want[key].shape)
    want[key] = value
    x[key] = xp.asarray(value)
    assert shared is x
    np.testing.assert_array_equal(x, want)
    for other, before in zip(others, (np.arange(4.0), np.arange(4.0), np.arange(4.0)[::-1], np.arange(4.0))):
        np.testing.assert_array_equal(other, before)


COPIES = {
    "asarray": lambda x: xp.asarray(x, copy=True),
    "astype": lambda x: xp.astype(x, x.dtype, copy=True),
    "asarray of a dtype": lambda x: xp.asarray(x, dtype=x.dtype, copy=True),
}
SAME = {
    "asarray": lambda x: xp.asarray(x),
    "asarray without a copy": lambda x: xp.asarray(x, copy=False),
    "asarray of its dtype": lambda x: xp.asarray(x, dtype=x.dtype),
    "astype without a copy": lambda x: xp.astype(x, x.dtype, copy=False),
    "to_device": lambda x: x.to_device("cpu"),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_another_array_whichever_of_both_is_changed(how, lazy):
    for change in (0, 1):
        x = array("float64", lazy)
        both = (x, COPIES[how](x))
        assert both[0] is not both[1]
        both[change][1] = 7.0
        both[change][slice(0, 1)] = xp.asarray(5.0)
        np.testing.assert_array_equal(both[change], [5, 7, 1, 1])
        np.testing.assert_array_equal(both[1 - change], np.ones(4))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", SAME)
def test_what_is_no_copy_is_the_same_array(how, lazy):
    x = array("float64", lazy)
    assert SAME[how](x) is x


def test_numpys_arrays_are_copied_unless_refused_and_a_refusal_of_a_copy_is_an_error():
    given = np.arange(3.0)
    for copy in (None, True):
        x = xp.asarray(given, copy=copy)
        given[0] += 1
        assert float(x[0]) == given[0] - 1
    shared = xp.asarray(given, copy=False)
    given[1] = 50
    assert float(shared[1]) == 50
    with pytest.raises(ValueError, match="float64 becomes float32 by a copy only"):
        xp.asarray(shared, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)


@pytest.mark.parametrize("lazy", [False, True])
def test_values_become_every_other_dtype_as_numpys_do(lazy):
    for one, other in product(DTYPES, DTYPES):
        x = array(one, lazy, (2, 3))
        with np.errstate(all="ignore"):
            if np.dtype(one).kind == "c" and np.dtype(other).kind != "c":
                continue  # the standard leaves it open
            for found in (xp.astype(x, np.dtype(other)), xp.asarray(x, dtype=np.dtype(other))):
                assert found.dtype == np.dtype(other)
                np.testing.assert_array_equal(found, np.ones((2, 3), one).astype(other))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5, 1j])
def test_pythons_numbers_stand_beside_dtypes_of_their_kind_on_both_sides(dtype, number):
    """A bool beside bool, an int beside numbers, a float beside floats and complex, a complex beside those too."""
    fits = {bool: "b", int: "iufc", float: "fc", complex: "fc"}[type(number)]
    name = "logical_or" if dtype == "bool" else "add"
    x = array(dtype, False)
    operator = (lambda a, b: a | b) if name == "logical_or" else (lambda a, b: a + b)
    for one, other in ((x, number), (number, x)):
        if np.dtype(dtype).kind in fits:
            found = np.asarray(operator(one, other))
            want = operator(np.ones(4, dtype), number)
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)
        else:
            assert raised(lambda one=one, other=other: operator(one, other)) is TypeError


@pytest.mark.parametrize("name", ["sub", "truediv", "pow", "floordiv", "mod", "lshift", "rshift"])
def test_operands_keep_their_sides(name):
    whole = name in ("lshift", "rshift")
    x, y = (
        (np.array([3, 5], "int64"), np.array([2, 1], "int64"))
        if whole
        else (np.array([3.0, 5.0]), np.array([2.0, 4.0]))
    )
    number = 7 if whole else 7.0
    op = getattr(np.ndarray, f"__{name}__")
    a, b = xp.asarray(x), xp.asarray(y)
    python = __import__("operator")
    function = getattr(python, name)
    np.testing.assert_array_equal(function(a, b), op(x, y))
    np.testing.assert_array_equal(function(a, number), op(x, number))
    np.testing.assert_array_equal(function(number, a), function(number, x))
    before, again = a + 0, getattr(python, f"i{name}")(a, b)
    assert again is a
    np.testing.assert_array_equal(a, op(x, y))
    np.testing.assert_array_equal(before, x)


def test_an_operator_in_place_that_would_change_the_shape_is_refused():
    x = array("float64", False, (3, 1))
    with pytest.raises(TypeError, match="does not fit"):
        x += array("float64", False, (1, 4))
    np.testing.assert_array_equal(x, np.ones((3, 1)))


@pytest.mark.parametrize("lazy", [False, True])
def test_an_operator_in_place_that_adds_an_axis_of_one_is_refused(lazy):
    x = array("float64", lazy, (3,))
    with pytest.raises(TypeError, match="does not fit"):
        x += array("float64", lazy, (1, 3))
    assert x.shape == (3,)


def test_other_devices_and_streams_are_refused_wherever_one_is_named():
    x = array("float64", False)
    makers = [
        lambda d: xp.asarray([1.0], device=d), lambda d: xp.arange(3, device=d), lambda d: xp.zeros(2, device=d),
        lambda d: xp.ones(2, device=d), lambda d: xp.empty(2, device=d), lambda d: xp.full(2, 1.0, device=d),
        lambda d: xp.eye(2, device=d), lambda d: xp.linspace(0, 1, 3, device=d), lambda d: xp.zeros_like(x, device=d),
        lambda d: xp.ones_like(x, device=d), lambda d: xp.empty_like(x, device=d),
        lambda d: xp.astype(x, x.dtype, device=d), lambda d: xp.full_like(x, 2.0, device=d),
        lambda d: xp.from_dlpack(np.ones(2), device=d),
    ]  # fmt: skip
    for make in makers:
        assert make("cpu").device == make(None).device == "cpu"
        with pytest.raises(ValueError, match="Use 'cpu'"):
            make("cuda")
    with pytest.raises(ValueError, match="no stream"):
        x.to_device("cpu", stream=1)


@pytest.mark.parametrize("dtype", [None, "int32", "float32", "bool"])
def test_what_is_like_another_has_its_shape_and_its_dtype_unless_told(dtype):
    x = xp.asarray(np.zeros((2, 3), "int16"))
    kind = None if dtype is None else np.dtype(dtype)
    for found, value in (
        (xp.zeros_like(x, dtype=kind), 0),
        (xp.ones_like(x, dtype=kind), 1),
        (xp.full_like(x, 1, dtype=kind), 1),
    ):
        assert found.dtype == np.dtype(dtype or "int16") and found.shape == (2, 3)
        np.testing.assert_array_equal(found, np.full((2, 3), value, dtype or "int16"))
    assert xp.zeros(2).dtype == xp.ones(2).dtype == xp.empty(2).dtype == xp.eye(2).dtype == xp.float64


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["float64", "int8", "complex128"])
def test_sorted_order_keeps_equal_elements_in_theirs_both_ways(lazy, descending, kind):
    x = np.array([[3, 1, 3, 2, 1], [0, 0, 0, 5, 0]]).astype(kind)
    a = xp.asarray(x) * 1 if lazy else xp.asarray(x)
    for axis in (0, 1, -1):
        places = np.asarray(xp.argsort(a, axis=axis, descending=descending))
        order = np.argsort(-x.real if descending else x.real, axis=axis, kind="stable")
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(xp.sort(a, axis=axis, descending=descending), np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("low", [None, -300, 1, -np.inf, -1e30])
@pytest.mark.parametrize("high", [None, 2, 1000, np.inf, 1e30])
def test_clip_with_bounds_beyond_the_dtype(dtype, low, high):
    x = np.array([0, 1, 2, 3, 100], dtype)
    found = xp.clip(xp.asarray(x), low, high)
    assert found.dtype == np.dtype(dtype)
    want = np.minimum(np.maximum(x.astype("f8"), -np.inf if low is None else low), np.inf if high is None else high)
    np.testing.assert_array_equal(found, want.astype(dtype))
