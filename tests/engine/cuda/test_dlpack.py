"""Capsules of other libraries: strides that are left out, offsets, elements NumPy lacks, and memory given back once."""

import gc
import weakref
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.engine.cuda import dlpack
from cgraph.engine.cuda.arrays import LEGACY, device_array, interface_array
from cgraph.engine.cuda.dlpack import FRESH, DLManagedTensor, SharedArray, capsule_of, get_pointer, read_capsule
from cgraph.errors import InputError

DEVICE = SimpleNamespace(number=(dlpack.CUDA, 1), name="a GPU")


class Memory:
    """What keeps the memory alive."""


def capsule(shape=(2, 3, 4), steps=(12, 4, 1), dtype="f4", owner=None, **changes):
    """A capsule as another library would fill it."""
    shown = SharedArray(4096, shape, steps, np.dtype(dtype), (dlpack.CUDA, 3), owner)
    made = capsule_of(shown)
    tensor = DLManagedTensor.from_address(get_pointer(id(made), FRESH)).tensor
    for name, value in changes.items():
        setattr(tensor, name, value)
    return made


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 3, 4), (1, 5, 1), (3, 0, 2)], ids=str)
def test_strides_are_those_of_the_capsule_or_of_c_order(shape):
    strides = tuple(range(7, 7 + len(shape)))
    assert read_capsule(capsule(shape, strides)).strides == strides
    found = read_capsule(capsule(shape, strides, strides=None))
    assert (found.shape, found.strides) == (shape, tuple(prod(shape[i + 1 :]) for i in range(len(shape))))


def test_the_first_element_lies_behind_the_offset():
    assert read_capsule(capsule(first=40)).address == 4096 + 40
    assert read_capsule(capsule((0,), (1,), data=None)).address == 0


@pytest.mark.parametrize("changes", [{"lanes": 2}, {"lanes": 0}, {"bits": 4}, {"bits": 33}, {"kind": 3}, {"kind": 4}])
def test_elements_without_a_numpy_dtype_are_refused_and_their_memory_given_back(changes):
    owner, gone = Memory(), []
    given = capsule(owner=owner, **changes)
    weakref.finalize(owner, gone.append, 1)
    del owner
    with pytest.raises(BufferError, match=r"kind \d+ with \d+ bits have no NumPy dtype"):
        read_capsule(given)
    gc.collect()
    assert gone == [1]


@pytest.mark.parametrize("taken", [False, True])
def test_memory_is_given_back_once_by_the_capsule_or_by_who_took_it(taken):
    owner, gone = Memory(), []
    given = capsule(owner=owner)
    weakref.finalize(owner, gone.append, 1)
    del owner
    found = read_capsule(given) if taken else None
    del given
    gc.collect()
    assert gone == ([] if taken else [1])
    del found
    gc.collect()
    assert gone == [1]


def interface(shape=(2, 3), version=3, **more):
    """An array of one device by NVIDIA's interface alone."""
    said = {"data": (4096, False), "shape": shape, "typestr": "<f8", "version": version} | more
    return SimpleNamespace(__cuda_array_interface__=said)


@pytest.mark.parametrize(
    ("version", "more", "stream"),
    [(2, {}, LEGACY), (2, {"stream": 9}, LEGACY), (3, {}, None), (3, {"stream": None}, None), (3, {"stream": 9}, 9)],
)
def test_an_interface_names_the_stream_that_writes_from_version_3_on(version, more, stream):
    found = interface_array(DEVICE, interface(version=version, **more))
    assert (found.stream, found.address, found.shape, found.dtype) == (stream, 4096, (2, 3), "float64")


@pytest.mark.parametrize("strides", [None, (24, 8), (8, 16), (48, 8)])
def test_strides_of_an_interface_are_read_and_others_than_of_c_order_refused(strides):
    given = interface(strides=strides)
    assert interface_array(DEVICE, given).view.strides == (strides or (24, 8))
    if strides in (None, (24, 8)):
        assert device_array(DEVICE, given).address == 4096
    else:
        with pytest.raises(InputError, match=r"has strides .*, not those of C order; make it contiguous first"):
            device_array(DEVICE, given)


@pytest.mark.parametrize("typestr", ["|b1", "|i1", "<u2", "<i8", "<f4", "<c8", "<c16"])
def test_an_interface_has_its_dtype(typestr):
    assert interface_array(DEVICE, interface(typestr=typestr)).dtype == np.dtype(typestr)


def test_arrays_of_other_devices_are_not_read_in_place():
    class Elsewhere:
        def __dlpack_device__(self):
            return dlpack.CUDA, 0

    assert device_array(DEVICE, Elsewhere()) is None and device_array(DEVICE, np.zeros(3)) is None
    assert device_array(SimpleNamespace(number=None, name="none"), interface()) is None
    assert device_array(DEVICE, 3) is None
