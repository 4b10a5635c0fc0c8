"""Check vectors: inputs that differ from one another, and the outputs of one run that changes no Var."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import convert
from cgraph.ir.spec import Spec, dtype_of
from cgraph.standalone.check import check_files, random_input


def read(raw, specs):
    """The arrays of concatenated bytes."""
    values = []
    for spec in specs:
        values.append(np.frombuffer(raw[: spec.nbytes], spec.dtype).reshape(spec.shape))
        raw = raw[spec.nbytes :]
    assert not raw
    return values


def test_inputs_of_one_dtype_and_shape_are_other_numbers_and_the_same_each_time():
    x, y = cg.Var((3, 4), name="x"), cg.Var((3, 4), name="y")
    twin = cg.compile(x - y, [x, y])
    files = check_files(twin, None)
    first, second = read(files["check/in.bin"], [x.spec, y.spec])
    assert (first != second).all() and files == check_files(twin, None)
    np.testing.assert_array_equal(read(files["check/out.bin"], [x.spec])[0], first - second)


def test_inputs_that_are_passed_are_in_their_order_in_c_order_and_in_the_dtype_of_the_input():
    x, y = cg.Var((2, 3), name="x"), cg.Var((2, 3), "int32", name="y")
    given = [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(6, 12).reshape(2, 3)]
    files = check_files(cg.compile(x + cg.astype(y, "float32"), [x, y]), given)
    assert files["check/in.bin"] == given[0].astype("f4").tobytes() + given[1].astype("i4").tobytes()
    assert files["check/out.bin"] == (given[0] + given[1]).astype("f4").tobytes()


def test_a_var_among_the_outputs_is_the_one_before_the_update_and_no_var_changes():
    x, total = cg.Var((2,), name="x"), cg.Var((2,), name="total")
    total.assign(np.float32([5, 7]))
    twin = cg.compile([total, total + x], [x], {total: total + x})
    raw = check_files(twin, [np.float32([1, 2])])["check/out.bin"]
    assert [v.tolist() for v in read(raw, [total.spec] * 2)] == [[5, 7], [6, 9]]
    assert total.value.tolist() == [5, 7]


def test_integers_are_zeros_where_random_ones_lie_outside_an_axis_and_floats_stay_random():
    x, at = cg.Var((2, 4), name="x"), cg.Var((3,), "int32", name="at")
    files = check_files(cg.compile(cg.take(x, at, 0), [x, at]), None)
    table, places = read(files["check/in.bin"], [x.spec, at.spec])
    assert places.tolist() == [0, 0, 0] and len(set(table.reshape(-1).tolist())) == 8
    np.testing.assert_array_equal(read(files["check/out.bin"], [Spec((3, 4), x.dtype)])[0], table[[0, 0, 0]])


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "bool", "int8", "uint8", "uint16", "int64"]
)
def test_random_numbers_fill_the_range_of_their_kind(dtype):
    x = random_input(np.random.default_rng(0), Spec((4000,), np.dtype(dtype)))
    assert x.dtype == dtype and x.shape == (4000,)
    for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
        if x.dtype.kind in "iu":
            assert part.min() == 0 and part.max() == 126
        elif x.dtype.kind == "b":
            assert 0.4 < part.mean() < 0.6
        else:
            assert 0 <= part.min() < 0.01 and 0.99 < part.max() <= 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_random_numbers_of_a_storage_dtype_are_from_0_to_1(dtype):
    kind = dtype_of(dtype)
    x = random_input(np.random.default_rng(0), Spec((400,), kind))
    numbers = convert(x, np.dtype("float32"))
    assert x.dtype == kind and 0 <= numbers.min() < 0.1 and 0.9 < numbers.max() <= 1


@pytest.mark.parametrize("suffix", ["", "_16_3"])
def test_the_names_of_files_end_as_their_run_does_whichever_inputs_there_are(suffix):
    """Arrays that are passed, random ones, and zeros in place of positions outside an axis."""
    x, at = cg.Var((2, 4), name="x"), cg.Var((1,), "int32", name="at")
    twin = cg.compile(cg.take(x, at, 0), [x, at])
    inside = cg.compile(cg.take(x, at % 2, 0), [x, at])
    passed = [np.ones((2, 4), "f4"), np.ones(1, "i4")]
    for function, arrays in ((twin, passed), (inside, None), (twin, None)):
        files = check_files(function, arrays, suffix)
        assert list(files) == [f"check/in{suffix}.bin", f"check/out{suffix}.bin"]
        assert [len(raw) for raw in files.values()] == [36, 16]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_there_are_as_many_arrays_as_inputs(count):
    x, y = cg.Var((2,), name="x"), cg.Var((2,), name="y")
    with pytest.raises(ValueError, match="zip"):
        check_files(cg.compile(x + y, [x, y]), [np.ones(2, "f4")] * count)
