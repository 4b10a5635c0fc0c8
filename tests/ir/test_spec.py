"""Shapes and dtypes: bounds from both sides, sizes without elements, and what messages name."""

from fractions import Fraction

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.spec import LARGEST, MOST_AXES, Bundle, Spec, dtype_of, shape_of
from cgraph.system.alignment import ALIGNMENT, aligned

F32, U8 = np.dtype("float32"), np.dtype("uint8")


def test_sizes_count_every_axis():
    x = Spec((2, 3, 5), F32)
    assert (x.ndim, x.size, x.nbytes, str(x)) == (3, 30, 120, "float32[2,3,5]")


def test_a_scalar_has_one_element_and_an_axis_of_0_has_none():
    assert (Spec((), F32).size, Spec((), F32).nbytes, str(Spec((), F32))) == (1, 4, "float32[]")
    assert (Spec((3, 0), F32).size, Spec((3, 0), F32).nbytes) == (0, 0)


def test_a_negative_axis_is_refused_and_0_is_not():
    assert Spec((0,), F32).shape == (0,)
    with pytest.raises(ShapeError, match=r"shape \[4, -1\] has a negative axis"):
        Spec((4, -1), F32)


def test_as_many_axes_as_numpy_broadcasts():
    assert Spec((1,) * MOST_AXES, F32).ndim == MOST_AXES
    with pytest.raises(ShapeError, match=f"has {MOST_AXES + 1} axes; at most {MOST_AXES}"):
        Spec((1,) * (MOST_AXES + 1), F32)


def test_bytes_are_bounded_and_an_axis_of_0_hides_none():
    assert Spec((LARGEST,), U8).nbytes == LARGEST
    for shape, dtype in (((LARGEST + 1,), U8), ((LARGEST // 4 + 1,), F32), ((0, LARGEST, 2), U8)):
        with pytest.raises(ShapeError, match="needs more than 2"):
            Spec(shape, dtype)


def test_dtypes_outside_of_the_table_are_refused():
    with pytest.raises(DTypeError, match="dtype object is not supported"):
        Spec((), np.dtype(object))
    with pytest.raises(DTypeError, match="dtype object is not supported"):
        dtype_of(object)
    with pytest.raises(DTypeError, match="'no such' is not a dtype"):
        dtype_of("no such")


@pytest.mark.parametrize(
    "dtype, name", [(float, "float64"), (np.int64, "int64"), ("uint8", "uint8"), (bool, "bool"), ("c8", "complex64")]
)
def test_dtypes_by_every_name(dtype, name):
    assert dtype_of(dtype) == np.dtype(name)


def test_results_of_a_bundle_are_aligned_and_the_last_offset_is_their_end():
    bundle = Bundle((Spec((3,), U8), Spec((0,), F32), Spec((5,), F32)))
    step = aligned(1)
    assert step > 20
    assert bundle.offsets == (0, step, step, 2 * step) and bundle.nbytes == 2 * step
    assert str(bundle) == "(uint8[3], float32[0], float32[5])"


def test_a_bundle_of_nothing_has_no_bytes():
    assert Bundle(()).offsets == (0,) and Bundle(()).nbytes == 0


@pytest.mark.parametrize(
    "shape, expected",
    [
        (3, (3,)),
        (np.int64(3), (3,)),
        (4.0, (4,)),
        ([3, np.int32(4)], (3, 4)),
        ((2.0, 5), (2, 5)),
        ((), ()),
        (np.array([2, 3]), (2, 3)),
    ],
)
def test_shapes_in_every_form(shape, expected):
    lengths = shape_of(shape)
    assert lengths == expected and all(type(n) is int for n in lengths)


@pytest.mark.parametrize(
    "shape",
    [
        *(2.5, 1e6 + 0.5, (3, 4.5), "ab", None, (3, None), float("inf"), np.float32(0.5)),
        *("3", b"3", (2, "3"), Fraction(5, 2), np.array(2.5), (2, np.array(2.5))),
    ],
    ids=repr,
)
def test_what_is_refused_as_a_shape(shape):
    with pytest.raises(ShapeError, match="is not a shape; pass integers"):
        shape_of(shape)


def test_the_other_byte_order_is_refused_with_the_conversion_that_works():
    for kind in ("float32", "int16", "complex128"):
        x = np.arange(3).astype(np.dtype(kind).newbyteorder("S"))
        for use in (cg.Const, cg.Var, cg.jit(lambda x: x + 1), lambda x: cg.ones((2,), x.dtype)):
            with pytest.raises(DTypeError, match=rf"other byte order; convert the array with x.astype\('{kind}'\)"):
                use(x)
        assert cg.jit(lambda x: x + 1)(x.astype(kind)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", [U8, F32, np.dtype("float64"), np.dtype("complex128")])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 100, 1000])
def test_no_result_of_several_begins_before_the_end_of_the_one_before(dtype, size):
    bundle = Bundle((Spec((size,), dtype), Spec((2, size), dtype), Spec((), U8)))
    for spec, begin, end in zip(bundle.specs, bundle.offsets, bundle.offsets[1:]):
        assert begin + spec.nbytes <= end < begin + spec.nbytes + ALIGNMENT and begin % ALIGNMENT == 0
    assert bundle.nbytes == bundle.offsets[-1]
