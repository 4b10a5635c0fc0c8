"""Dtypes by kind, limits of dtypes in the standard's fields, and the capabilities of the namespace."""

import numpy as np
import pytest

from cgraph import array_api as xp
from cgraph.array_api.inspection import Information

FLOATS = ("float32", "float64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")


def test_limits_of_floats_are_python_numbers_of_the_formats():
    got = xp.finfo(xp.float32)  # IEEE 754, binary32
    assert got == (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, -(2 - 2.0**-23) * 2.0**127, 2.0**-126, np.dtype("float32"))
    assert (got.bits, got.eps, got.smallest_normal, got.dtype) == (32, 2.0**-23, 2.0**-126, xp.float32)
    assert xp.finfo(xp.asarray(1.0)).eps == 2.0**-52
    assert xp.finfo(xp.complex64).dtype == xp.float32, "of the parts"
    assert {type(x) for x in got[1:5]} == {float}


def test_limits_of_integers_are_exact():
    assert xp.iinfo(xp.int8) == (8, 127, -128, np.dtype("int8"))
    got = xp.iinfo(xp.asarray([1], dtype=xp.uint64))
    assert (got.bits, got.max, got.min, got.dtype) == (64, 2**64 - 1, 0, xp.uint64)
    with pytest.raises(ValueError):
        xp.iinfo(xp.float32)


def test_casts_go_one_way_and_types_combine():
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    assert xp.can_cast(xp.asarray(1.0, dtype=xp.float32), xp.float64) and not xp.can_cast(xp.asarray(1.0), xp.float32)
    assert xp.result_type(xp.asarray([1], dtype=xp.int8), xp.uint8) == xp.int16
    assert xp.result_type(xp.float32, xp.complex64) == xp.complex64
    assert xp.isdtype(xp.uint8, "integral") and not xp.isdtype(xp.uint8, "signed integer")
    assert xp.isdtype(xp.bool, ("numeric", "bool")) and not xp.isdtype(xp.bool, "numeric")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("bool", ("bool",)), ("signed integer", SIGNED), ("unsigned integer", UNSIGNED),
        ("integral", SIGNED + UNSIGNED),
        ("real floating", FLOATS), ("complex floating", COMPLEX), ("numeric", SIGNED + UNSIGNED + FLOATS + COMPLEX),
        (("bool", "real floating"), ("bool", *FLOATS)), (None, ("bool", *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)),
    ],
)  # fmt: skip
def test_dtypes_of_a_kind(kind, names):
    got = xp.asarray(1.0).__array_namespace__().__array_namespace_info__().dtypes(kind=kind)
    assert got == {name: np.dtype(name) for name in names}


def test_defaults_are_those_that_functions_choose():
    info = Information()
    assert info.default_dtypes() == {
        "real floating": xp.zeros(1).dtype,
        "complex floating": xp.asarray(1j).dtype,
        "integral": xp.arange(2).dtype,
        "indexing": xp.argmax(xp.asarray([1.0])).dtype,
    }
    assert info.default_device() == xp.asarray(1).device and info.devices() == [info.default_device()]
    capabilities = info.capabilities()
    assert capabilities["boolean indexing"] and capabilities["data-dependent shapes"]
    x = xp.asarray([3.0, 1.0, 2.0])
    assert x[x > 1.5].shape == (2,) and xp.nonzero(x)[0].shape == (3,)
    assert xp.zeros((1,) * capabilities["max dimensions"]).ndim == 32


def test_each_device_has_the_same_dtypes():
    info = Information()
    for device in (None, *info.devices()):
        assert info.default_dtypes(device=device) == info.default_dtypes()
        for kind in (None, "bool", ("bool", "complex floating")):
            assert info.dtypes(device=device, kind=kind) == info.dtypes(kind=kind)
