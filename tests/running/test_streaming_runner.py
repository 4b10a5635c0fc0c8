"""A Runner by rows: each output goes to an array, a function or a new array, and results come in their places."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError
from cgraph.running.streaming_runner import new_array

VALUE = np.random.default_rng(0).standard_normal((1, 2, 40, 5)).astype("f4")


def by_rows() -> cg.Function:
    """Twice an image that goes by rows, and a sum of an array that does not, first."""
    x, b = cg.Var(VALUE.shape, name="x"), cg.Var((3,), name="b")
    y = x * 2
    return cg.compile([cg.cumsum(b, 0), y], [x, b], rows=[x, y])


def single() -> cg.Function:
    x = cg.Var(VALUE.shape, name="x")
    y = x * 2
    return cg.compile(y, [x], rows=[x, y])


def test_results_stand_in_the_order_of_the_outputs():
    totals, image = by_rows()(VALUE, np.ones(3))
    assert totals.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(image, 2 * VALUE)
    assert [str(x) for x in by_rows().results] == ["float32[3]", "float32[1,2,40,5]"]


def test_rows_go_to_an_array_or_a_function_and_the_other_output_to_its_array():
    f, totals, image, bands = by_rows(), np.zeros(3, "f4"), np.zeros(VALUE.shape, "f4"), []
    results = f(iter(VALUE.transpose(2, 0, 1, 3)), np.ones(3), out=[totals, image])
    assert results[1] is image and results[0] is totals and totals.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(image, 2 * VALUE)
    totals[:] = 0
    results = f(VALUE, np.ones(3), out=[totals, bands.append])
    assert results[1] is None and totals.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(np.concatenate(bands, 2), 2 * VALUE)


def test_one_output_takes_its_array_or_function_without_a_list():
    f, image, bands = single(), np.zeros(VALUE.shape, "f4"), []
    assert f(VALUE, out=image) is image and f(VALUE, out=bands.append) is None and f(VALUE, out=[image]) is image
    for got in (image, f(VALUE), np.concatenate(bands, 2)):
        np.testing.assert_array_equal(got, 2 * VALUE)


def test_other_destinations_are_refused_before_a_row_is_read():
    def rows():
        raise AssertionError("a row was read")
        yield

    f, image = by_rows(), np.zeros(VALUE.shape, "f4")
    for out, text in [
        ([image], "1 arrays or functions for 2 outputs"),
        ([print, image], "out has <built-in function print> for"),
        ([np.zeros(3, "f4"), image[:, :, 1:]], r"float32\[1, 2, 39, 5\] for"),
        (image, "1 arrays or functions for 2 outputs"),
    ]:
        with pytest.raises(InputError, match=text):
            f(rows(), np.ones(3), out=out)


def test_another_library_gets_the_arrays_and_nothing_for_rows_that_went_to_a_function(monkeypatch):
    """NumPy's own `from_dlpack` stands in for torch's, which refuses None as well."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_dlpack=lambda x: ("torch", np.from_dlpack(x))))
    f, bands = by_rows().returning("torch"), []
    (library, totals), image = f(VALUE, np.ones(3), out=[np.zeros(3, "f4"), bands.append])
    assert library == "torch" and totals.tolist() == [1, 2, 3] and image is None
    np.testing.assert_array_equal(np.concatenate(bands, 2), 2 * VALUE)


def test_a_new_array_has_the_shape_and_dtype_of_its_spec():
    array = new_array(cg.Var((2, 3), "int16").spec)
    assert (array.shape, array.dtype) == ((2, 3), np.dtype("i2"))
