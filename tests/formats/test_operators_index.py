"""Gather, scatter, one-hot and top-k of dynamic lengths beside NumPy, and which ops they choose."""

import numpy as np
import pytest
from onnx import helper

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx.dynamic.intervals import SMALL
from cgraph.formats.onnx.operators.index import (
    gather,
    gather_elements,
    gather_nd,
    is_small_write,
    leading_places,
    one_hot,
    repeated_rows,
    scatter_elements,
    scatter_nd,
    tensor_scatter,
    top_k,
    with_one_more,
    written_vector,
)
from cgraph.ir.traverse import post_order
from cgraph.kernels.sort.calls import LEADING_SHARE
from cgraph.ops.leaf import Const, Var
from cgraph.ops.prefix import prefix
from tests.support.onnx_context import context, length, ragged, value_of

rng = np.random.default_rng(0)
WAYS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def node(*operands, opset=21, **attributes):
    return context(*operands, attributes=[helper.make_attribute(k, v) for k, v in attributes.items()], opset=opset)


def opened(x, axis, n):
    """An array of which only the first n along an axis count, behind which NaN or a large number stands; its values."""
    c, v = node(), Var(x.shape, x.dtype)
    size = length(c, "n", x.shape[axis])
    given = x.copy()
    given[(slice(None),) * axis + (slice(n, None),)] = np.nan if x.dtype.kind == "f" else 99
    return ragged(v, {axis: size}), {v: given, size.node: n}


X = rng.standard_normal((4, 5, 6)).astype("f4")


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_gathered_elements_count_from_the_end_of_what_counts(axis, cut):
    x, given = opened(X, cut, 3)
    want = X[(slice(None),) * cut + (slice(3),)]
    index = np.array([[0, -1], [2, -3]])
    got = gather(node(x, Const(index), axis=axis))
    np.testing.assert_array_equal(value_of(got, given), want.take(index, axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gathered_elements_may_be_of_an_open_number_of_places(axis):
    index, given = opened(np.array([3, -1, 0, 2]), 0, 2)
    got = gather(node(Const(X), index, axis=axis))
    np.testing.assert_array_equal(value_of(got, given), X.take([3, -1], axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_elements_at_places_of_their_own(axis, cut):
    """Other axes of the places are shorter than those of the operand."""
    x, given = opened(X, cut, 3)
    whole = X[(slice(None),) * cut + (slice(3),)]
    shape = [2, 3, 2]
    index = rng.integers(-3, 3, shape)
    part = whole[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(shape))]
    got = gather_elements(node(x, Const(index), axis=axis))
    np.testing.assert_array_equal(value_of(got, given), np.take_along_axis(part, index % part.shape[axis], axis))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_elements_at_rows_of_places(depth, cut):
    x, given = opened(X, cut, 3)
    whole = X[(slice(None),) * cut + (slice(3),)]
    index = rng.integers(-3, 3, (2, 4, depth))
    got = gather_nd(node(x, Const(index)))
    np.testing.assert_array_equal(value_of(got, given), whole[tuple(np.moveaxis(index, -1, 0))])
    with pytest.raises(FormatError, match="batch_dims 1 is not supported if lengths are known only at run time"):
        gather_nd(node(x, Const(index[..., :1]), batch_dims=1))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("cut", [0, 1])
def test_written_elements_of_an_open_operand(way, axis, cut):
    x, given = opened(X[0], cut, 3)
    want = X[0][(slice(None),) * cut + (slice(3),)].copy()
    shape = [2, 3]
    index = np.argsort(rng.random(shape), axis) - 3
    values = rng.standard_normal(shape).astype("f4")
    for at in np.ndindex(*shape):
        place = [*at]
        place[axis] = index[at] % want.shape[axis]
        old = want[tuple(place)]
        want[tuple(place)] = values[at] if way == "none" else WAYS[way](old, values[at])
    more = {} if way == "none" else {"reduction": way}
    got = scatter_elements(node(x, Const(index), Const(values), axis=axis, **more))
    np.testing.assert_array_equal(value_of(got, given), want)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [1, 2])
def test_written_rows_of_an_open_number(way, depth):
    """Places and values have one length, known only at run time."""
    places = np.array([[3, -1], [0, 4], [-2, 0], [1, 1]])[:, :depth]
    c, size, v, w = node(), None, Var(places.shape, "int64"), None
    size = length(c, "n", 4)
    values = rng.standard_normal((4, *X.shape[depth:])).astype("f4")
    w = Var(values.shape, "float32")
    want = X.copy()
    for place, value in zip(places[:3], values):
        at = tuple(place)
        want[at] = value if way == "none" else WAYS[way](want[at], value)
    more = {} if way == "none" else {"reduction": way}
    got = scatter_nd(node(Const(X), ragged(v, {0: size}), ragged(w, {0: size}), **more))
    np.testing.assert_array_equal(value_of(got, {v: places, w: values, size.node: 3}), want)


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize("cut", [0, 1])
def test_codes_of_an_open_number_of_places(axis, cut):
    places = np.array([[0, 2, -1, 4], [1, 1, -3, 9], [2, 0, 0, 1]])
    index, given = opened(places, cut, 2)
    part = places[(slice(None),) * cut + (slice(2),)]
    got = one_hot(node(index, Const(np.array(3)), Const(np.array([0.25, 4.0])), axis=axis))
    hit = np.where(part < 0, part + 3, part)[..., None] == np.arange(3)
    want = np.moveaxis(np.where(hit, 4.0, 0.25), -1, axis)
    np.testing.assert_array_equal(value_of(got, given), want)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_in_order_of_an_open_operand(axis, cut, largest):
    x, given = opened(X, cut, 3)
    whole = X[(slice(None),) * cut + (slice(3),)]
    values, places = top_k(node(x, Const(np.array([2])), axis=axis, largest=largest))
    order = np.argsort(-whole if largest else whole, axis, kind="stable").take([0, 1], axis)
    np.testing.assert_array_equal(value_of(places, given), order)
    np.testing.assert_array_equal(value_of(values, given), np.take_along_axis(whole, order, axis))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_few_of_many_are_selected_and_the_others_are_sorted(axis, dtype, largest):
    n = 4 * LEADING_SHARE
    x = rng.integers(-9, 9, (n, n)).astype(dtype)
    if dtype == "f4":
        x[3], x[:, 5] = np.nan, np.nan
    keys = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(-keys if largest else keys, axis, kind="stable")
    for k, op, other in ((4, "top_k", "argsort"), (5, "argsort", "top_k")):
        got = leading_places(Const(x), axis, k, largest)
        names = {v.op.name for v in post_order([got])}
        assert op in names and other not in names
        np.testing.assert_array_equal(value_of(got, {}), order.take(range(k), axis))


def test_places_that_repeat_along_a_row_are_those_of_rows():
    column = Var((4, 1), "int64")
    assert repeated_rows(cg.broadcast_to(column, (4, 3))).shape == (4,)
    assert repeated_rows(cg.broadcast_to(Var((4, 1, 1), "int64"), (4, 3, 2))).shape == (4,)
    for other in (
        column, Var((4, 3), "int64"), cg.broadcast_to(Var((1, 3), "int64"), (4, 3)),
        cg.broadcast_to(Var((4, 1, 2), "int64"), (4, 3, 2)), cg.broadcast_to(Var((3,), "int64"), (4, 3)),
    ):  # fmt: skip
        assert repeated_rows(other) is None


def test_rows_of_an_array_with_just_one_more_are_taken_from_it():
    x = Var((5, 3))
    n = Var((), "int64")
    assert with_one_more(x[:4]) is x and with_one_more(prefix(prefix(x[:4], n), n)) is x
    assert with_one_more(prefix(x[:3], n)) is not x and with_one_more(prefix(x, n)).shape == (6, 3)
    for other in (x[1:], x[:3], x[:4, :2]):
        wide = with_one_more(other)
        assert wide is not x and wide.shape == (other.shape[0] + 1, other.shape[1])
        assert "concat" in {v.op.name for v in post_order([wide])} or "pad" in {v.op.name for v in post_order([wide])}


def test_a_few_lengths_are_written_as_elements_of_both():
    x, v, index = Var((3,), "int64"), Var((2,), "int64"), Const(np.array([-1, 0]))
    c = node(x, index, v)
    assert is_small_write(c)
    got = value_of(written_vector(c), {x: [1, 2, 3], v: [7, 8]})
    assert got.tolist() == [8, 2, 7]
    others = [
        node(Var((3,)), index, Var((2,))), node(Var((3, 1), "int64"), Const(np.array([[0]])), Var((1, 1), "int64")),
        node(x, Var((2,), "int64"), v), node(x, Const(np.array([3, 0])), v), node(x, Const(np.array([-4, 0])), v),
        node(x, index, v, reduction="add"), node(Const(np.arange(3)), index, Const(np.arange(2))),
        node(Var((SMALL + 1,), "int64"), index, v),
    ]  # fmt: skip
    assert not any(is_small_write(other) for other in others)
    assert is_small_write(node(Var((SMALL,), "int64"), index, v)) and is_small_write(
        node(Const(np.arange(3)), index, v)
    )


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1, 2, 3])
def test_values_are_written_from_the_place_of_each_sample_on(mode, axis):
    x = rng.standard_normal((3, 4, 5, 6)).astype("f4")
    values = x[tuple(slice(2) if i == axis % 4 else slice(None) for i in range(4))] + 10
    start, want = np.array([0, 2, 3 if mode == "circular" else 1]), x.copy()
    for sample, first in enumerate(start):
        for i in range(2):
            place = (first + i) % x.shape[axis]
            np.moveaxis(want[sample], axis % 4 - 1, 0)[place] = np.moveaxis(values[sample], axis % 4 - 1, 0)[i]
    more = {} if axis == -2 else {"axis": axis}
    got = tensor_scatter(node(Const(x), Const(values), Const(start), mode=mode, **more))
    np.testing.assert_array_equal(value_of(got, {}), want)


@pytest.mark.parametrize("opset", [1, 9, 10, 11])
@pytest.mark.parametrize("is_open", [False, True])
def test_older_files_have_the_number_of_the_first_as_an_attribute(opset, is_open):
    x, given = opened(X, 1, 3) if is_open else (Const(X), {})
    whole = X[:, :3] if is_open else X
    how = {"k": 2} if opset < 10 else {}
    operands = [x] if opset < 10 else [x, Const(np.array([2]))]
    for axis in (0, 1, 2):
        values, places = top_k(node(*operands, opset=opset, axis=axis, **how))
        order = np.argsort(-whole, axis, kind="stable").take([0, 1], axis)
        np.testing.assert_array_equal(value_of(places, given), order)
        np.testing.assert_array_equal(value_of(values, given), np.take_along_axis(whole, order, axis))


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_codes_of_places_of_two_open_axes_and_an_open_depth(axis):
    places = np.array([[0, 2, -1, 4], [1, 1, -3, 9], [2, 0, 0, 1]])
    c, v = node(), Var(places.shape, "int64")
    n, m, depth = length(c, "n", 3), length(c, "m", 4), length(c, "d", 5)
    levels = Const(np.array([0.25, 4.0]))
    for count in (3, 5, 1):
        got = one_hot(node(ragged(v, {0: n, 1: m}), Const(np.array(count)), levels, axis=axis))
        part = places[:2, :3]
        hit = np.where(part < 0, part + count, part)[..., None] == np.arange(count)
        want = np.moveaxis(np.where(hit, 4.0, 0.25), -1, axis)
        np.testing.assert_array_equal(value_of(got, {v: places, n.node: 2, m.node: 3}), want)
        c = node(Const(places), cg.reshape(depth.node, (1,)), levels, axis=axis)
        c.limits.at_most(depth.node, 5)
        got = one_hot(c)
        hit = np.where(places < 0, places + count, places)[..., None] == np.arange(count)
        want = np.moveaxis(np.where(hit, 4.0, 0.25), -1, axis)
        np.testing.assert_array_equal(value_of(got, {depth.node: count}), want)
    assert one_hot(node(Const(places), Const(np.array(0)), levels, axis=0)).shape == (0, 3, 4)


def test_values_are_written_from_the_first_place_on_without_places():
    x = rng.standard_normal((2, 3, 4, 5)).astype("f4")
    values = x[:, :, :2] + 10
    want = x.copy()
    want[:, :, :2] = values
    np.testing.assert_array_equal(value_of(tensor_scatter(node(Const(x), Const(values))), {}), want)
