"""New Arrays: NumPy's values and the standard's dtypes; what shares memory and what is a copy; only one device."""

from types import SimpleNamespace

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.array import Array


def same(got, want):
    assert isinstance(got, Array) and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.value, want)


def test_every_argument_of_ranges_grids_and_constants_is_numpys():
    same(xp.arange(4), np.arange(4))
    same(xp.arange(1, 8, 3, dtype=xp.float32), np.arange(1, 8, 3, dtype="float32"))
    same(xp.arange(5, 0, -2), np.arange(5, 0, -2))
    same(xp.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False))
    same(xp.linspace(xp.asarray(2.0), 1, 3, dtype=xp.float32), np.linspace(2, 1, 3, dtype="float32"))
    same(xp.eye(2, 4, k=1), np.eye(2, 4, 1))
    same(xp.eye(3, k=-1, dtype=xp.int8), np.eye(3, k=-1, dtype="int8"))
    same(xp.full((2, 3), xp.asarray(5)), np.full((2, 3), 5))
    same(xp.full(2, True), np.full(2, True))


def test_constants_are_float64_by_default_and_those_like_an_array_have_its_dtype():
    x = xp.asarray([[1, 2, 3]], dtype=xp.int16)
    for name in ("zeros", "ones"):
        like = getattr(xp, f"{name}_like")
        same(getattr(xp, name)((2, 0)), getattr(np, name)((2, 0)))
        same(getattr(xp, name)(3, dtype=xp.bool), getattr(np, name)(3, bool))
        same(like(x), getattr(np, name)((1, 3), "int16"))
        same(like(x, dtype=xp.float32), getattr(np, name)((1, 3), "float32"))
    same(xp.full_like(x, 7), np.full((1, 3), 7, "int16"))
    same(xp.full_like(x, 1.5, dtype=xp.float64), np.full((1, 3), 1.5))
    assert xp.empty(2).dtype == xp.float64 and xp.empty_like(x).dtype == xp.int16 and xp.empty_like(x).shape == (1, 3)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_grids_have_the_axes_of_their_indexing(indexing):
    x, y = np.arange(3), np.arange(2.0)
    got = xp.meshgrid(xp.asarray(x), xp.asarray(y), indexing=indexing)
    assert type(got) is list
    for a, b in zip(got, np.meshgrid(x, y, indexing=indexing), strict=True):
        same(a, b)


def test_numpys_arrays_are_copied_unless_copy_is_false():
    x = np.arange(3.0)
    copies, shared = [xp.asarray(x), xp.asarray(x, copy=True)], [xp.asarray(x, copy=False), xp.from_dlpack(x)]
    x[0] = 9
    assert [float(a[0]) for a in copies] == [0, 0] and [float(a[0]) for a in shared] == [9, 9]
    same(xp.asarray([xp.asarray(1), (2, 3)[1]]), np.asarray([1, 3]))
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)


def test_an_array_is_itself_unless_its_dtype_changes_or_a_copy_is_asked_for():
    x = xp.asarray([1.5, -2.5])
    assert xp.asarray(x) is x and xp.asarray(x, dtype=xp.float64, copy=False) is x and xp.asarray(x, copy=True) is not x
    assert xp.astype(x, xp.float64, copy=False) is x and xp.astype(x, xp.float64) is not x
    same(xp.asarray(x, copy=True), np.array([1.5, -2.5]))
    same(xp.asarray(x, dtype=xp.int32), np.array([1, -2], "int32"))
    same(xp.astype(x, xp.int8), np.array([1, -2], "int8"))
    with pytest.raises(ValueError, match="float64 becomes float32 by a copy only"):
        xp.asarray(x, dtype=xp.float32, copy=False)


def test_a_copy_of_a_lazy_array_is_lazy():
    x = xp.asarray([1.5, -2.5]) + 1
    copies = [xp.asarray(x, copy=True), xp.astype(x, xp.float64)]
    assert x.is_lazy and all(copy.is_lazy and copy is not x for copy in copies)
    copies[0][0] = 7
    x[1] = 8
    for array, want in zip((x, *copies), ([2.5, 8], [7, -1.5], [2.5, -1.5])):
        same(array, np.array(want))


def test_a_copy_keeps_its_numbers_when_the_memory_of_the_original_is_written():
    x = xp.asarray([1.5, -2.5])
    copies = [
        xp.asarray(x, copy=True), xp.astype(x, xp.float64), xp.astype(x, xp.float32),
        xp.asarray(x, dtype=xp.complex128), xp.from_dlpack(x, copy=True),
    ]  # fmt: skip
    shown = np.from_dlpack(x)
    for y in copies:
        assert not np.shares_memory(np.asarray(y), shown)
    shown[:] = 7
    for y in copies:
        assert np.asarray(y).tolist() == [1.5, -2.5]


def test_another_device_is_an_error_of_every_function():
    x = xp.asarray([1.0])
    calls = [
        (xp.asarray, 1), (xp.from_dlpack, np.ones(1)), (xp.arange, 3), (xp.empty, 1), (xp.zeros, 1), (xp.ones, 1),
        (xp.full, 1, 0), (xp.empty_like, x), (xp.zeros_like, x), (xp.ones_like, x), (xp.full_like, x, 0), (xp.eye, 2),
        (xp.linspace, 0, 1, 2), (xp.astype, x, xp.int8),
    ]  # fmt: skip
    for call, *arguments in calls:
        assert isinstance(call(*arguments, device="cpu"), Array)
        with pytest.raises(ValueError, match="there is no device 'gpu'"):
            call(*arguments, device="gpu")


def test_arrays_of_other_libraries_are_copied_unless_copy_is_false():
    given = np.arange(3.0)
    other = SimpleNamespace(__dlpack__=given.__dlpack__, __dlpack_device__=given.__dlpack_device__)
    copies = [xp.asarray(other), xp.asarray(other, copy=True), xp.from_dlpack(given, copy=True)]
    shared = [xp.asarray(other, copy=False), xp.from_dlpack(other), xp.from_dlpack(given, copy=False)]
    same(xp.asarray(other, dtype=xp.float32), given.astype("float32"))
    given[0] = 9
    assert [float(x[0]) for x in copies] == [0, 0, 0] and [float(x[0]) for x in shared] == [9, 9, 9]
