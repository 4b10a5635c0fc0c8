"""Values of Vars: what fits, what is rounded, what is copied, and what a run may write."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import InputError, UnassignedError
from cgraph.ir.spec import Spec
from cgraph.storage.cell import (
    LIBRARIES,
    Cell,
    CellValue,
    aligned_empty,
    assign_all,
    fitting_array,
    new_value,
    of_plain,
    reader_of,
    set_all,
    shareable,
    value_of,
)
from cgraph.system.alignment import ALIGNMENT

F4, I4 = Spec((2,), np.dtype("float32")), Spec((2,), np.dtype("int32"))


@pytest.mark.parametrize(("value", "spec", "want"), [
    ([1, 2], F4, [1, 2]), ((True, 0.5), F4, [1, 0.5]), (range(2), I4, [0, 1]), ([1.0, -2.0], I4, [1, -2]),
    (np.array([1.5, 2]), F4, [1.5, 2]), (np.float32([3, 4]), F4, [3, 4]), (np.array([np.inf, np.nan]), F4, None),
    (np.array([1e-60, 1]), F4, [0, 1]), (np.array([1, 2j]), Spec((2,), np.dtype("complex64")), [1, 2j]),
])  # fmt: skip
def test_what_fits_has_the_dtype_of_the_var(value, spec, want):
    got = fitting_array(value, spec, "x")
    assert got.dtype == spec.dtype and got.shape == spec.shape
    np.testing.assert_array_equal(got, np.asarray(value) if want is None else want)


@pytest.mark.parametrize(("value", "spec", "match"), [
    (np.array([1, 2]), F4, r"x expects float32\[2\], got int64\[2\]. Convert it with .astype\('float32'\)"),
    (np.zeros(3, "f4"), F4, r"got float32\[3\]. Reshape it"), (np.zeros((1, 2), "f4"), F4, "Reshape it"),
    (np.array([1e300, 0]), F4, "numbers beyond 3.403e.38"), ([1.5, 2], I4, "int32 holds integers only"),
    (["a", "b"], F4, "x expects"), (np.array(["a", "b"]), F4, "holds no numbers"), (object(), F4, "holds no numbers"),
    (np.float32([1, 2]), Spec((2,), np.dtype("float64")), r"\.astype\('float64'\)"), ([1, [2]], F4, "x expects"),
    (np.zeros(3), F4, r"got float64\[3\]. Reshape it"), ([1, 2**40], I4, "x expects"),
])  # fmt: skip
def test_what_does_not_fit_is_refused_with_what_it_is(value, spec, match):
    with pytest.raises(InputError, match=match):
        fitting_array(value, spec, "x")


def test_float64_is_rounded_unless_the_very_array_is_wanted():
    with pytest.raises(InputError, match="astype"):
        fitting_array(np.zeros(2), F4, "x", exact=True)
    with pytest.raises(InputError, match="astype"):
        new_value(np.zeros(2), F4, "x", copy=False)
    assert new_value(np.zeros(2), F4, "x").array.dtype == "float32"


def test_a_value_is_copied_unless_it_is_lent():
    x = aligned_empty(F4)
    x[:] = 1, 2
    own, lent = new_value(x, F4, "x"), new_value(x, F4, "x", copy=False)
    x[:] = 5, 6
    assert own.array.tolist() == [1, 2] and not own.shared
    assert lent.array.tolist() == [5, 6] and lent.shared and lent.stamp is None
    assert own.address % ALIGNMENT == 0 and own.address == own.array.ctypes.data


def test_a_run_writes_into_a_copy_of_shared_bytes():
    x, done = np.float32([1, 2]), np.ones(1, "int64")
    value = CellValue(x, shared=True)
    own = value.writable(F4, done)
    assert own is not x and own.tolist() == [1, 2] and not value.shared and value.writable(F4, done) is own
    own[:] = 9
    assert x.tolist() == [1, 2]


def test_a_first_value_is_there_once_the_run_is_done():
    cell, done = Cell(), np.zeros(1, "int64")
    array = cell.value.writable(F4, done)
    array[:] = 3
    assert cell.array is None and cell.share() is None and not cell.value.is_there
    done[0] = 1
    assert cell.array is array and cell.value.is_there


def test_versions_and_stamps_are_never_the_same_twice():
    one, other = CellValue(np.zeros(2)), CellValue(np.zeros(2))
    assert one.version != other.version and one.stamp is None
    stamp = one.settle()
    assert stamp is not None and one.settle() == stamp == one.stamp and other.settle() not in (None, stamp)
    version = one.version
    one.renew()
    assert one.version not in (version, other.version)
    assert CellValue().settle() is None and CellValue(np.zeros(2), shared=True).settle() is None


def test_a_newer_copy_is_fetched_once():
    class Copy:
        count = 0

        def fetched(self):
            self.count += 1
            return np.float32([7, 8])

    copy, value = Copy(), CellValue(np.float32([1, 2]), shared=True)
    before = value.address
    value.newer = copy
    assert value.is_there and value.stamp is None and copy.count == 0
    assert value.array.tolist() == [7, 8] == value.array.tolist() and copy.count == 1 and not value.shared
    assert value.address == value.array.ctypes.data != before
    assert value.equal is copy and value.newer is None, "the device needs no copy of it"
    value.writable(cg.Var((2,)).spec, np.zeros(1, np.int64))
    assert value.equal is None, "a run may have written it"


def test_bytes_that_moved_have_a_new_stamp_and_a_new_address():
    """After a run made its own copy of shared bytes, and after a device's copy was fetched."""
    cell, done = Cell(), np.ones(1, "int64")
    cell.value = value = CellValue(np.float32([1, 2]))
    stamps, places = [value.settle()], [(value.array, value.address)]
    cell.share()
    assert value.stamp is None, "shared bytes have none"
    value.writable(F4, done)
    stamps.append(value.settle())
    places.append((value.array, value.address))
    value.newer = SimpleNamespace(fetched=lambda: np.float32([3, 4]), settle=lambda: None)
    assert value.stamp is None, "a device has newer ones"
    stamps.append((value.array is not None) and value.settle())
    places.append((value.array, value.address))
    assert len(set(stamps)) == 3 and None not in stamps
    assert all(address == array.ctypes.data for array, address in places)
    assert value.writable(F4, done) is places[-1][0] and value.settle() == stamps[-1], "they stay where they are"


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[1:3], np.s_[:2]])
@pytest.mark.parametrize("copy", [True, False])
def test_a_value_is_in_order_whatever_the_array(view, copy):
    x = aligned_empty(Spec((2, 4), np.dtype("float32")))
    x[...] = np.arange(8).reshape(2, 4)
    for part in (x[:, view], x[:, view].T):
        value = new_value(part, Spec(part.shape, part.dtype), "x", copy=copy)
        np.testing.assert_array_equal(value.array, part)
        assert value.array.flags.c_contiguous and value.shared is not copy
        assert value.address % (ALIGNMENT if copy else x.itemsize) == 0


def test_all_vars_change_or_none():
    x, y = cg.Var((2,), name="x").assign([1, 2]), cg.Var((), "int32", name="y").assign(3)
    with pytest.raises(InputError, match="y expects"):
        assign_all({x: [5, 6], y: 0.5})
    assert value_of(x).tolist() == [1, 2] and value_of(y) == 3
    assign_all({x: [5, 6], y: 4})
    assert value_of(x).tolist() == [5, 6] and value_of(y) == 4
    value_of(x)[:] = 0
    assert value_of(x).tolist() == [5, 6]
    with pytest.raises(UnassignedError, match=r"z float32\[\] \(made at test_cell.py:\d+\) has no value"):
        value_of(cg.Var((), name="z"))


def test_each_holder_gets_its_own_value():
    cells = [Cell(), Cell()]
    values = [CellValue(), CellValue()]
    set_all(cells, "value", values)
    assert [x.value for x in cells] == values


def test_numbers_become_integers_only_without_fractions():
    assert of_plain([1.0, 2], np.dtype("uint8")).tolist() == [1, 2]
    with pytest.raises(ValueError, match="uint8 holds integers only"):
        of_plain(0.5, np.dtype("uint8"))


def test_only_arrays_that_others_can_write_are_shared_with_them():
    x = np.arange(6.0).reshape(2, 3)
    turned = x.T
    closed = x.copy()
    closed.flags.writeable = False
    assert shareable(x) is x and shareable(turned) is turned
    assert shareable(closed) is not closed and shareable(x[::-1]).strides == (24, 8)
    assert reader_of("numpy")(closed) is closed
    for name in ("tensorflow", 3):
        with pytest.raises(InputError, match="Use one of numpy, torch, jax, cupy"):
            reader_of(name)


@pytest.mark.parametrize("library", ["torch", "jax", "cupy"])
def test_another_library_gets_our_memory_or_a_copy_that_it_may_write(monkeypatch, library):
    """Stand-ins of the libraries. An array of a device is not copied; cupy reads arrays of the host by `asarray`."""
    stand_in = SimpleNamespace(from_dlpack=lambda x: ("in place", x), asarray=lambda x: ("read", x))
    monkeypatch.setitem(sys.modules, LIBRARIES[library], stand_in)
    read, x = reader_of(library), np.arange(6.0).reshape(2, 3)
    closed = x.copy()
    closed.flags.writeable = False
    way = "read" if library == "cupy" else "in place"
    for array, is_shared in ((x, True), (x.T, True), (x[:, ::2], True), (closed, False), (x[::-1], False)):
        got, y = read(array)
        assert got == way and (y is array) == is_shared and y.flags.writeable and min(y.strides) >= 0
        np.testing.assert_array_equal(y, array)
    on_device = object()
    assert read(on_device) == ("in place", on_device)
    monkeypatch.setitem(sys.modules, LIBRARIES[library], None)
    with pytest.raises(InputError, match=f"arrays of {library} cannot be returned: .* Install the library"):
        reader_of(library)


@pytest.mark.parametrize("setting", ["raise", "ignore", "warn"])
@pytest.mark.parametrize(("wide", "narrow"), [("float64", "float32"), ("complex128", "complex64")])
def test_what_is_rounded_and_what_is_refused_does_not_depend_on_the_users_settings_of_numpy(setting, wide, narrow):
    """Numbers that round to 0, to subnormal numbers and to the largest one; NaN and infinities stay."""
    most = float(np.finfo("float32").max)
    numbers = np.array([1e-300, -1e-46, 1e-45, 1e-40, 0.1, most * (1 + 1e-9), -most, np.nan, np.inf, -np.inf], wide)
    with np.errstate(all="ignore"):
        want = numbers.astype(narrow)
    x, y = cg.Var(numbers.shape, narrow, "x"), cg.Var(numbers.shape, narrow, "y")
    function = cg.compile(x * 1, x)
    with np.errstate(all=setting):
        np.testing.assert_array_equal(y.assign(numbers).value, want)
        np.testing.assert_array_equal(function(numbers), want)
        np.testing.assert_array_equal(function(x=numbers), want)
        for beyond in (1e39, -most * 1.0001):
            for give in (y.assign, function):
                with pytest.raises(InputError, match=rf"got {wide} with numbers beyond 3.403e\+38"):
                    give(np.where(numbers == 0.1, beyond, numbers))


class Lent:
    """An array of another library, which says on which device it lies."""

    def __init__(self, array: np.ndarray, device: int) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


def test_arrays_of_others_are_read_in_place_in_the_hosts_memory_alone():
    """DLPack's numbers: 1 the host, 3 pinned memory of the host; the others are devices."""
    x = np.float32([1, 2])
    for device in (1, 3):
        got = fitting_array(Lent(x, device), F4, "x")
        assert np.shares_memory(got, x) and got.tolist() == [1, 2]
    for device in (0, 2, 4, 10, 13):
        with pytest.raises(
            InputError, match=rf"memory of the DLPack device \({device}, 0\). Copy it to the host first"
        ):
            fitting_array(Lent(x, device), F4, "x")


def test_first_contents_of_a_device_are_there_once_its_run_is_done():
    """Until then the run may still write, so it is awaited before the word is read."""
    value, done, awaited = CellValue(np.float32([1, 2])), np.zeros(1, "int64"), []
    value.await_device(done)
    assert not value.is_there and not awaited
    value.newer = SimpleNamespace(fetched=lambda: np.float32([7, 8]), settle=lambda: awaited.append(int(done[0])))
    assert not value.is_there and awaited == [0]
    done[0] = 1
    assert value.is_there and awaited == [0, 1] and value.array.tolist() == [7, 8]


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("copy", [True, False])
def test_kernels_read_every_value_at_a_multiple_of_its_elements(offset, copy):
    """One that is lent and lies elsewhere is copied."""
    raw = aligned_empty(Spec((32,), np.dtype("uint8")))
    raw[:] = np.arange(32)
    x = np.frombuffer(raw, "f4", 2, offset)
    value = new_value(x, F4, "x", copy=copy)
    assert value.address % 4 == 0 and value.array.flags.aligned and value.shared is not copy
    np.testing.assert_array_equal(value.array.view("u1"), raw[offset : offset + 8])
    assert np.shares_memory(value.array, raw) == (offset % 4 == 0 and not copy)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_plain_numbers_take_any_dtype_of_a_var(dtype):
    for value in ([1, 0], (1.0, 0), range(1, -1, -1), [True, False]):
        x = cg.Var((2,), dtype, "x").assign(value)
        got = fitting_array(value, x.spec, "x")
        assert got.dtype == x.spec.dtype and got.tobytes() == x.value.tobytes()
        np.testing.assert_array_equal(cg.eval(cg.astype(x, "float32")), [1, 0])


@pytest.mark.parametrize("copy", [None, True, False])
def test_arrays_that_are_assigned_together_are_copied_unless_told_otherwise(copy):
    xs = [cg.Var((2,), name=name) for name in "ab"]
    arrays = [aligned_empty(F4) for _ in xs]
    for array in arrays:
        array[:] = 1, 2
    assign_all(dict(zip(xs, arrays)), *([] if copy is None else [copy]))
    for x, array in zip(xs, arrays):
        array[:] = 5, 6
        assert x.value.tolist() == ([5, 6] if copy is False else [1, 2])


@pytest.mark.parametrize("values", [[1.5, 2.0], [2.0, 1.5], [1.0, float("nan")], [float("inf"), 1.0]])
def test_one_fraction_in_a_list_of_numbers_is_enough_to_refuse_it(values):
    with pytest.raises(InputError, match="x expects"):
        fitting_array(values, I4, "x")
    assert fitting_array([1.0, -3.0], I4, "x").tolist() == [1, -3]
