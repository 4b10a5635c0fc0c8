"""Softmax and its kin beside NumPy along any axes; which of them are computed row by row, and in bands."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError
from cgraph.ir.spec import Spec
from cgraph.ops.softmax import LogSoftmax, Logsumexp, Softmax
from tests.support.tolerance import assert_close

KINDS = pytest.mark.parametrize("kind", [Softmax, LogSoftmax])


def image(*shape):
    return Spec(shape, np.dtype("float32"))


@pytest.mark.parametrize("axis", [None, 1, -1, (0, 2), (2, 0), ()])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_sums_of_exponentials_over_any_axes_do_not_overflow(axis, keepdims, engine):
    x = np.random.default_rng(0).normal(size=(3, 4, 2)) * 3 + 900
    axes = tuple(range(3)) if axis is None else axis
    want = x if axis == () else 900 + np.log(np.exp(x - 900).sum(axes, keepdims=keepdims))
    v = cg.Var(x.shape, "float64", "x")
    got = cg.compile(cg.logsumexp(v, axis, keepdims=keepdims), v, engine=engine)(x)
    assert got.shape == want.shape
    assert_close(got, want)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_sum_of_no_exponentials_is_zero_and_shares_of_nothing_are_none(engine):
    v = cg.Var((2, 0), "float64", "x")
    outputs = [cg.logsumexp(v, 1), cg.logsumexp(v, 0), cg.softmax(v, 1), cg.log_softmax(v, 0)]
    along, none, shares, logs = cg.compile(outputs, v, engine=engine)(np.zeros((2, 0)))
    assert along.tolist() == [-np.inf, -np.inf] and none.shape == (0,) and shares.shape == logs.shape == (2, 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_whole_numbers_are_floats_first_and_an_op_of_others_is_refused(name):
    x = np.array([[1, 2, 4], [0, 0, 3]])
    function = getattr(cg, name)
    assert_close(function(x, 1).eval(), function(x.astype("float64"), 1).eval())
    assert function(x.astype("int8"), 1).dtype == np.float32
    with pytest.raises(DTypeError, match="softmax needs a float, not int32; convert with astype"):
        Softmax(1).infer(Spec((2, 3), np.dtype("int32")))


@KINDS
def test_rows_are_independent_unless_they_are_summed_along(kind):
    assert kind(0).row_rule(image(4, 5)) is None
    rule = kind(1).row_rule(image(4, 5))
    assert rule.operands == (0,) and rule.first(2) == kind(1)


@KINDS
@pytest.mark.parametrize(
    ("axis", "shape", "is_cut"),
    [
        (3, (1, 2, 6, 3), True),  # each sum is of one row
        (1, (1, 2, 6, 16), True),  # rows of a cache line
        (1, (1, 2, 6, 15), False),
        (0, (1, 2, 6, 16), True),
        (2, (1, 2, 6, 16), False),  # sums across rows
        (2, (2, 6, 16), False),
    ],
)
def test_images_are_cut_by_rows_where_sums_keep_their_order(kind, axis, shape, is_cut):
    cut = kind(axis).cut(image(*shape))
    assert (cut is not None) == is_cut
    if is_cut:
        ((first, stop),) = cut.reads
        assert list(first) == list(range(6)) and list(stop) == list(range(1, 7)) and cut.band(1, 3) == kind(axis)
    assert Logsumexp(axis).cut(image(*shape)) is None
