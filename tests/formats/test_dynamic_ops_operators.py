"""What importers are told about lengths of a run: results' lengths, padding that changes nothing, what is refused."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx.dynamic_ops.operators import (
    contracting,
    elementwise,
    highest,
    keeping,
    lowest,
    number,
    reducing,
    samples,
)
from cgraph.ops.leaf import Var
from tests.support.onnx_context import context, holds, length, ragged, value_of
from tests.support.tolerance import assert_near

X, Y = Var((4, 3), "float32", "x"), Var((4, 3), "float32", "y")
A = np.arange(12, dtype="f4").reshape(4, 3) + 1
B = A[::-1] * 10


def test_elementwise_operands_have_one_length():
    importer = elementwise(lambda c: c[0] - c[1])
    c = context(X, Y)
    n, m = length(c, "n", 4), length(c, "m", 4)
    y = importer(c.reading({0: ragged(X, {0: n}), 1: ragged(Y, {0: m})}))
    np.testing.assert_array_equal(value_of(y, {X: A, Y: B, n.node: 3, m.node: 3}), (A - B)[:3])
    assert holds(c, {n.node: 3, m.node: 3}) and not holds(c, {n.node: 3, m.node: 2})
    assert importer(c).shape == (4, 3)
    one = Var((3,), "float32", "z")
    y = importer(c.reading({0: ragged(X, {0: n}), 1: one}))
    np.testing.assert_array_equal(value_of(y, {X: A, one: A[0], n.node: 2}), (A - A[0])[:2])


def test_absent_operands_stay_absent():
    importer = elementwise(lambda c: c[0] * 2 if c.value(1) is None else c[1])
    c = context(X, None)
    n = length(c, "n", 4)
    np.testing.assert_array_equal(value_of(importer(c.reading({0: ragged(X, {0: n})})), {X: A, n.node: 1}), A[:1] * 2)


@pytest.mark.parametrize("declare", [elementwise, samples(0, 2)])
def test_operands_behind_an_absent_one_keep_their_places(declare):
    importer = declare(lambda c: c[0] - c[2] if c.value(1) is None else c[1])
    c = context(X, None, Y)
    n = length(c, "n", 4)
    y = importer(c.reading({0: ragged(X, {0: n}), 2: ragged(Y, {0: n})}))
    np.testing.assert_array_equal(value_of(y, {X: A, Y: B, n.node: 3}), (A - B)[:3])


@pytest.mark.parametrize("n", [0, 1, 3, 4])
@pytest.mark.filterwarnings("ignore:invalid value")  # of a softmax of nothing
def test_padding_along_the_axis_of_a_computation_is_neutral(n):
    importer = keeping(lambda c: (0,), lowest)(lambda c: cg.softmax(c[0], 0))
    c = context(X)
    size = length(c, "n", 4)
    got = value_of(importer(c.reading({0: ragged(X, {0: size})})), {X: A, size.node: n})
    powers = np.exp(A[:n] - A[:n].max(0, initial=0))
    assert got.shape == (n, 3)
    assert_near(got, powers / powers.sum(0), "float32 formulas near zero")


def test_an_axis_of_a_computation_is_refused_without_padding_and_others_are_not():
    c = context(X)
    n = length(c, "n", 3)
    cut = c.reading({0: ragged(X, {1: n})})
    for axes in ((1,), (-1,), (0, 1)):
        with pytest.raises(
            FormatError, match=r"it computes along axis 1 of float32\[4,≤3\], whose length is known only"
        ):
            keeping(lambda c, a=axes: a)(lambda c: c[0])(cut)
    y = keeping(lambda c: (0,))(lambda c: (cg.flip(c[0], 0), c[0]))(cut)
    np.testing.assert_array_equal(value_of(y[0], {X: A, n.node: 2}), A[::-1, :2])
    np.testing.assert_array_equal(value_of(y[1], {X: A, n.node: 1}), A[:, :1])


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (-1,)])
def test_reductions_leave_the_lengths_of_other_axes(keeps, axes):
    importer = reducing(lambda c: axes, lambda c: keeps, number(0.0))(lambda c: cg.sum(c[0], axes, keepdims=keeps))
    c = context(X)
    n, m = length(c, "n", 4), length(c, "m", 3)
    y = importer(c.reading({0: ragged(X, {0: n, 1: m})}))
    for i, j in ((0, 2), (3, 1), (4, 3)):
        got = value_of(y, {X: A, n.node: i, m.node: j})
        np.testing.assert_array_equal(got, A[:i, :j].sum(axes, keepdims=keeps))


def test_samples_are_counted_along_the_first_axis():
    places = Var((4,), "int64", "p")
    importer = samples(0, 1)(lambda c: c[0] + cg.take(c[0], c[1], 0))
    c = context(X, places)
    n, m = length(c, "n", 4), length(c, "m", 4)
    y = importer(c.reading({0: ragged(X, {0: n}), 1: ragged(places, {0: m})}))
    got = value_of(y, {X: A, places: np.array([1, 0, 99, -99]), n.node: 2, m.node: 2})
    np.testing.assert_array_equal(got, A[:2] + A[[1, 0]])
    assert not holds(c, {n.node: 2, m.node: 3})
    with pytest.raises(FormatError, match="it computes along axis 1"):
        importer(c.reading({0: ragged(X, {1: length(c, "k", 3)})}))


def test_contractions_add_up_to_the_length_alone():
    importer = contracting(lambda c: (["ij", "jk"], "ik"))(lambda c: cg.matmul(c[0], c[1]))
    turned = Var((3, 4), "float32", "t")
    c = context(X, turned)
    i, j, k = length(c, "i", 4), length(c, "j", 3), length(c, "k", 4)
    y = importer(c.reading({0: ragged(X, {0: i, 1: j}), 1: ragged(turned, {1: k})}))
    values = {X: A, turned: B.T, i.node: 2, j.node: 3, k.node: 1}
    np.testing.assert_array_equal(value_of(y, values), A[:2] @ B.T[:, :1])
    assert holds(c, values | {X: A}) and not holds(c, {i.node: 2, j.node: 2, k.node: 1})
    with pytest.raises(FormatError, match=r"operands have \[2, 3\] axes, not those of ij, jk"):
        importer(c.reading({0: ragged(X, {0: i}), 1: Var((1, 3, 4))}))


def test_an_absent_operand_of_a_contraction_is_left_out():
    """The sum of a product and nothing, or a row."""

    def total(c):
        product = cg.matmul(c[0], c[1])
        return product if c.value(2) is None else product + c[2]

    importer = contracting(lambda c: (["ij", "jk", "k"], "ik"))(total)
    turned, row = Var((3, 4), "float32", "t"), Var((4,), "float32", "r")
    for third in (None, row):
        c = context(X, turned, third)
        i = length(c, "i", 4)
        y = importer(c.reading({0: ragged(X, {0: i})}))
        got = value_of(y, {X: A, turned: B.T, i.node: 3} | ({row: B[:, 0]} if third is row else {}))
        np.testing.assert_array_equal(got, A[:3] @ B.T + (0 if third is None else B[:, 0]))


def test_the_first_of_several_axes_that_are_not_padded_is_named():
    c = context(X)
    n, m = length(c, "n", 4), length(c, "m", 3)
    both = c.reading({0: ragged(X, {0: n, 1: m})})
    for axes, first in (((1, 0), 0), ((0, 1), 0), ((1,), 1), ((-1, -2), 0)):
        with pytest.raises(FormatError, match=rf"it computes along axis {first} of float32\[≤4,≤3\]"):
            keeping(lambda c, a=axes: a)(lambda c: c[0])(both)


def test_neutral_numbers_of_each_dtype():
    for dtype, low, high in (("f4", -np.inf, np.inf), ("i1", -128, 127), ("u1", 0, 255), ("?", False, True)):
        assert lowest(np.dtype(dtype)) == low and highest(np.dtype(dtype)) == high
    assert number(3)(np.dtype("f4")) == 3
