"""Arrays in a device's memory go in and out of a run without a copy; large ones of NumPy go by pinned buffers."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.cuda import pinned
from cgraph.engine.cuda.arrays import LEGACY, DeviceArray, interface_array
from cgraph.engine.cuda.dlpack import CUDA, SharedArray, capsule_of, read_capsule
from cgraph.errors import InputError
from tests.support.tolerance import assert_near

VALUE = np.arange(12, dtype="float32").reshape(3, 4)


def functions(engine):
    """One that makes an array on the device, and one that reads it."""
    x = cg.Var((3, 4), name="x")
    return cg.compile(cg.exp(x / 10), x, engine=engine), cg.compile(cg.sum(x, 0), x, engine=engine)


class Other:
    """Another library's array, over one of ours: by one protocol alone."""

    def __init__(self, array, protocol):
        self.array, self.streams = array, []
        if protocol == "dlpack":
            self.__dlpack_device__ = array.__dlpack_device__
        else:
            self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": 7}

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


@pytest.mark.parametrize("engine", ["cuda", "cuda-sim"])
def test_a_result_stays_on_the_device_and_is_read_there(library, engine):
    make, read = functions(engine)
    found = make(VALUE, copy=False)
    assert isinstance(found, DeviceArray) and found.shape == (3, 4) and found.dtype == "float32"
    library.moved.clear()
    got = read(found)
    assert library.moved == ({"down": got.nbytes} if engine == "cuda" else {})
    assert_near(got, np.exp(VALUE / 10).sum(0), "float32 formulas")
    assert_near(np.asarray(found), np.exp(VALUE / 10), "float32 formulas")
    assert np.asarray(found, "float64").dtype == "float64"


@pytest.mark.parametrize("protocol", ["dlpack", "interface"])
def test_arrays_of_other_libraries_are_read_where_they_lie(library, protocol):
    make, read = functions("cuda")
    given = Other(make(VALUE, copy=False), protocol)
    library.moved.clear()
    assert_near(read(given), np.exp(VALUE / 10).sum(0), "float32 formulas")
    assert library.moved == {"down": 16}
    assert library.followed == 1  # the stream that writes them
    assert given.streams == ([1] if protocol == "dlpack" else [])


def test_what_a_function_made_may_be_given_to_it_again(library):
    x = cg.Var((5,), name="x")
    twice = cg.compile(cg.exp(x) * 2 + x, x, engine="cuda")
    first = np.linspace(-1, 1, 5, dtype="float32")
    again = twice(twice(first, copy=False))
    assert_near(again, twice(twice(first)), "float32 formulas")


def test_memory_lives_as_long_as_somebody_shows_it(library):
    make, _ = functions("cuda")
    found = make(VALUE, copy=False)
    capsule, where = found.__dlpack__(), found.__cuda_array_interface__["data"][0]
    del make, found
    gc.collect()
    shown = read_capsule(capsule)
    assert shown.address == where and shown.device == (CUDA, 0) and any(a <= where for a in library.alive)
    before = len(library.alive)
    del shown, capsule
    gc.collect()
    assert len(library.alive) < before


def test_a_strided_result_says_its_strides_and_is_not_read_in_place(library):
    x = cg.Var((3, 4), name="x")
    turn = cg.compile(cg.transpose(cg.exp(x)), x, engine="cuda")
    found = turn(VALUE, copy=False)
    assert found.__cuda_array_interface__["strides"] == (4, 16)
    assert_near(np.asarray(found), np.exp(VALUE).T, "float32 formulas")
    y = cg.Var((4, 3), name="y")
    with pytest.raises(InputError, match="make it contiguous first"):
        cg.compile(y + 1, y, engine="cuda")(found)


def test_another_shape_or_dtype_is_refused(library):
    make, _ = functions("cuda")
    found = make(VALUE, copy=False)
    for spec in (((4, 3), "float32"), ((3, 4), "int32")):
        x = cg.Var(*spec, name="x")
        with pytest.raises(InputError, match=r"x expects \w+\[.*\], got float32\[3,4\]"):
            cg.compile(x + 1, x, engine="cuda")(found)


def test_a_simulated_device_shares_no_memory():
    make, read = functions("cuda-sim")
    found = make(VALUE, copy=False)
    assert not hasattr(found, "__cuda_array_interface__")
    with pytest.raises(BufferError, match="shares no memory"):
        found.__dlpack_device__()
    assert "DeviceArray float32[3,4]" in repr(found)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "complex128"])
def test_numpy_reads_our_capsules_and_we_read_its(dtype):
    x = (np.arange(24).reshape(2, 3, 4) % 3).astype(dtype)
    shown = SharedArray(x.ctypes.data, (2, 3, 4), (12, 4, 1), x.dtype, (1, 0), x)

    class Exporter:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **more):
            return capsule_of(shown)

    np.testing.assert_array_equal(np.from_dlpack(Exporter()), x)
    capsule = x[:, ::2].__dlpack__()
    found = read_capsule(capsule)
    assert (found.shape, found.strides, found.dtype) == ((2, 2, 4), (12, 8, 1), x.dtype)
    assert found.address == x.ctypes.data and found.device == (1, 0)
    with pytest.raises(BufferError, match="taken before"):
        read_capsule(capsule)


@pytest.mark.parametrize("nbytes", [pinned.LEAST_PINNED, 3 * 1000 * 4])
def test_large_arrays_go_by_two_pinned_buffers(library, monkeypatch, nbytes):
    monkeypatch.setattr(pinned, "PIECE", 1000 * 4 if nbytes < pinned.LEAST_PINNED else pinned.PIECE)
    monkeypatch.setattr("cgraph.engine.cuda.gpu.LEAST_PINNED", min(nbytes, pinned.LEAST_PINNED))
    x = cg.Var((nbytes // 4 + 7,), name="x")
    value = np.arange(x.size, dtype="float32")
    np.testing.assert_array_equal(cg.compile(x + 1, x, engine="cuda")(value), value + 1)
    assert len(library.pinned) == 2 and library.calls["cuEventRecord"] >= 2


def test_bringing_results_down_makes_no_streams(library):
    make, _ = functions("cuda")
    found = make(VALUE, copy=False)
    np.asarray(found)
    before = library.calls["cuStreamCreate"]
    for _ in range(3):
        np.asarray(found)
    assert library.calls["cuStreamCreate"] == before


VIEWS = {
    "turned": np.transpose, "flipped": lambda x: x[::-1], "every other": lambda x: x[:, ::-2],
    "a part": lambda x: x[1:, 1:3], "nothing": lambda x: x[:0],
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_result_comes_to_the_host_in_its_own_order(name):
    x = cg.Var((3, 4), name="x")
    y = cg.cumsum(x, 1)
    f = cg.compile([y, VIEWS[name](y)], x, engine="cuda-sim")
    want = np.cumsum(VALUE, 1)
    for results in (f(VALUE, copy=False), f(VALUE)):
        for got, expected in zip(map(np.asarray, results), (want, VIEWS[name](want)), strict=True):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(got, expected)


def test_strides_of_a_capsule_are_in_elements(library):
    x = cg.Var((3, 4), "float64", name="x")
    found = cg.compile(cg.transpose(cg.exp(x)), x, engine="cuda")(VALUE.astype("f8"), copy=False)
    shown = read_capsule(found.__dlpack__())
    assert (shown.shape, shown.strides, shown.address) == ((4, 3), (1, 4), found.address)
    assert found.__cuda_array_interface__["strides"] == (8, 32)


@pytest.mark.parametrize("convert", [np.asarray, np.array, np.copy, lambda x: np.asarray(x, "float64")])
def test_a_copy_on_the_host_can_be_written_and_changes_nothing_on_the_device(convert):
    x = cg.Var((3, 4), name="x")
    for y in (cg.exp(x), cg.exp(x)[::-1], cg.exp(x)[:0]):
        found = cg.compile(y, x, engine="cuda-sim")(VALUE / 10, copy=False)
        array, want = convert(found), np.asarray(found).copy()
        np.testing.assert_array_equal(array, want)
        array[...] = 7
        np.testing.assert_array_equal(np.asarray(found), want)


def test_an_array_of_a_device_is_copied_or_refused():
    make, _ = functions("cuda-sim")
    found = make(VALUE, copy=False)
    assert np.asarray(found, copy=True).shape == (3, 4)
    with pytest.raises(ValueError, match=r"float32\[3,4\] on a simulated GPU> is not in the host's memory.*copy=None"):
        np.asarray(found, copy=False)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_a_copy_on_the_host_has_the_dtype_that_is_asked_for(shape):
    x = cg.Var(shape, name="x")
    array = cg.compile(x * 2, x, engine="cuda-sim")(np.ones(shape, "f4"), copy=False)
    for dtype in (None, np.dtype("f8"), np.dtype("i2")):
        copy = array.__array__(dtype)
        assert copy.dtype == (dtype or "f4") and copy.tolist() == np.full(shape, 2).tolist()


@pytest.mark.parametrize(("version", "stream"), [(1, LEGACY), (2, LEGACY), (3, 7), (4, 7)])
def test_a_stream_is_said_from_the_third_version_of_the_interface_on(library, version, stream):
    make, _ = functions("cuda")
    found = make(VALUE, copy=False)

    class Shown:
        __cuda_array_interface__ = found.__cuda_array_interface__ | {"version": version, "stream": 7}

    got = interface_array(found.device, Shown())
    assert (got.stream, got.shape, got.dtype, got.address) == (stream, (3, 4), "float32", found.address)


def test_strides_of_the_interface_are_bytes(library):
    make, _ = functions("cuda")
    found = make(VALUE, copy=False)
    said = found.__cuda_array_interface__ | {"shape": (2, 3), "strides": (8, 16)}
    got = interface_array(found.device, SimpleNamespace(__cuda_array_interface__=said))
    np.testing.assert_array_equal(np.asarray(got), np.asarray(found).ravel()[[[0, 4, 8], [2, 6, 10]]])
