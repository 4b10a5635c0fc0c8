"""Reductions, places of extremes and running sums beside NumPy: each dtype, axis, option and axis of dynamic length."""

import numpy as np
import pytest
from onnx import helper
from scipy import special

from cgraph.formats.onnx.operators import importer_of
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, length, ragged, value_of
from tests.support.tolerance import assert_near

X = np.random.default_rng(0).integers(1, 5, (3, 4, 5))
LENGTHS = (2, 3, 4)  # that count of an axis which is dynamic
MEANINGS = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
    "ReduceLogSum": lambda x, **how: np.log(np.sum(x, **how)),
    "ReduceLogSumExp": special.logsumexp,
}
ONLY_FLOATS = {"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}


def result(kind, *operands, opset=21, **attributes):
    listed = [helper.make_attribute(name, v) for name, v in attributes.items()]
    return importer_of(kind)(context(*operands, attributes=listed, opset=opset, kind=kind))


def opened(x, cut):
    """An array, of which some count along an axis unless `cut` is None, its values, and what counts."""
    if cut is None:
        return Const(x), {}, x
    v, given, n = Var(x.shape, x.dtype), x.copy(), LENGTHS[cut]
    size = length(context(), "n", x.shape[cut])
    given[(slice(None),) * cut + (slice(n, None),)] = np.nan if x.dtype.kind == "f" else 99
    return ragged(v, {cut: size}), {v: given, size.node: n}, x[(slice(None),) * cut + (slice(n),)]


def check(got, given, want, dtype):
    value = value_of(got, given)
    assert (value.shape, value.dtype) == (np.shape(want), dtype)
    if value.dtype.kind == "f":
        assert_near(value, want, "float32")
    else:
        np.testing.assert_array_equal(value, np.asarray(want).astype(dtype))  # which wraps


PAIRS = [
    (kind, dtype)
    for kind in MEANINGS
    for dtype in ("float32", "float64", "int32", "int64")
    if dtype[0] == "f" or kind not in ONLY_FLOATS
]


@pytest.mark.parametrize(("kind", "dtype"), PAIRS)
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_a_reduction_over_any_axes(kind, dtype, cut):
    x, given, counted = opened(X.astype(dtype) * (-1 if kind in ("ReduceL1", "ReduceL2") else 1), cut)
    for axes in ([0], [1], [-1], [0, 2], [-2, 0], [0, 1, 2]):
        for keep in ({}, {"keepdims": 0}, {"keepdims": 1}):
            how = {"axis": tuple(axes), "keepdims": bool(keep.get("keepdims", 1))}
            want = MEANINGS[kind](counted, **how)
            check(result(kind, x, Const(np.array(axes)), **keep), given, want, dtype)
            check(result(kind, x, opset=11, axes=axes, **keep), given, want, dtype)


@pytest.mark.parametrize("kind", MEANINGS)
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_without_axes_it_is_all_of_them_unless_told(kind, cut):
    x, given, counted = opened(X.astype("f4"), cut)
    whole = MEANINGS[kind](counted, axis=(0, 1, 2), keepdims=True)
    for more in ([], [Const(np.zeros(0, "i8"))]):
        check(result(kind, x, *more), given, whole, "float32")
        check(result(kind, x, *more, keepdims=0), given, whole.reshape(()), "float32")
        each = {"ReduceL2": np.abs, "ReduceSumSquare": np.square, "ReduceLogSum": np.log}.get(kind, np.asarray)
        check(result(kind, x, *more, noop_with_empty_axes=1), given, each(counted), "float32")
    check(result(kind, x, Const(np.array([1])), noop_with_empty_axes=1), given,
          MEANINGS[kind](counted, axis=1, keepdims=True), "float32")  # fmt: skip


@pytest.mark.parametrize(("kind", "op", "none"), [("ReduceMax", np.any, -np.inf), ("ReduceMin", np.all, np.inf)])
def test_extremes_of_truth_and_of_nothing(kind, op, none):
    truth = X > 2
    for axes in ([0], [1, 2]):
        check(result(kind, Const(truth), Const(np.array(axes))), {}, op(truth, tuple(axes), keepdims=True), "bool")
    nothing = np.zeros((3, 0, 2), "f4")
    check(result(kind, Const(nothing), Const(np.array([1]))), {}, np.full((3, 1, 2), none), "float32")
    check(result(kind, Const(nothing), Const(np.array([1, 0])), keepdims=0), {}, np.full(2, none), "float32")
    check(result(kind, Const(nothing), Const(np.array([0]))), {}, np.zeros((1, 0, 2)), "float32")
    for dtype in ("int32", "uint8"):
        ends = np.iinfo(dtype)
        end = ends.min if kind == "ReduceMax" else ends.max
        got = result(kind, Const(nothing.astype(dtype)), Const(np.array([-2])), keepdims=0)
        check(got, {}, np.full((3, 2), end, dtype), dtype)


@pytest.mark.parametrize(("kind", "op"), [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_places_of_extremes(kind, op, dtype, axis, cut):
    x, given, counted = opened(X.astype(dtype), cut)
    at = (axis or 0) % 3
    for last in (0, 1):
        if last and cut == at:
            continue  # padding stands behind what counts
        want = counted.shape[at] - 1 - op(np.flip(counted, at), at) if last else op(counted, at)
        for keep in ({}, {"keepdims": 0}):
            more = keep | ({} if axis is None else {"axis": axis}) | ({"select_last_index": 1} if last else {})
            wanted = np.expand_dims(want, at) if not keep else want
            check(result(kind, x, **more), given, wanted, "int64")


@pytest.mark.parametrize(("kind", "op", "first"), [("CumSum", np.cumsum, 0), ("CumProd", np.cumprod, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("cut", [None, 0, 1, 2])
def test_running_sums_and_products(kind, op, first, dtype, axis, cut):
    x, given, counted = opened(X.astype(dtype), cut)
    for backward in (0, 1):
        for without in (0, 1):
            want = np.moveaxis(counted, axis, 0)
            want = want[::-1] if backward else want
            want = op(want, 0)
            want = np.concatenate([np.full_like(want[:1], first), want[:-1]]) if without else want
            want = np.moveaxis(want[::-1] if backward else want, 0, axis)
            more = ({"reverse": 1} if backward else {}) | ({"exclusive": 1} if without else {})
            check(result(kind, x, Const(np.array(axis)), **more), given, want, dtype)
