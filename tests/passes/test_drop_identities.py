"""Where a node is its operand, and where it only looks like it."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ir.graph import apply
from cgraph.ir.traverse import post_order
from cgraph.ops.arithmetic import Add
from cgraph.ops.shape import BroadcastTo, Contiguous, Full
from cgraph.ops.slicing import SetSlice
from cgraph.passes.drop_identities import drop_identities
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values

X = cg.Var((2, 3, 4), "float64", "x")
ROW = cg.Var((4,), "float64", "row")

DROPPED = {
    "x + 0": (X + 0.0, X),
    "0 + x": (0.0 + X, X),
    "x + zeros": (X + np.zeros((3, 1)), X),
    "x - 0": (X - 0.0, X),
    "x * 1": (X * 1.0, X),
    "1 * x": (1.0 * X, X),
    "x / 1": (X / 1.0, X),
    "-(-x)": (cg.negative(-X), X),
    "reshape of reshape": (cg.reshape(cg.reshape(X, (6, 4)), (8, 3)), cg.reshape(X, (8, 3))),
    "reshape back": (cg.reshape(cg.reshape(X, (6, 4)), X.shape), X),
    "transpose of transpose": (cg.transpose(cg.transpose(X, (1, 2, 0)), (0, 2, 1)), cg.transpose(X, (1, 0, 2))),
    "transpose back": (cg.transpose(cg.transpose(X, (1, 2, 0)), (2, 0, 1)), X),
    "broadcast of broadcast": (
        cg.broadcast_to(cg.broadcast_to(ROW, (3, 4)), X.shape),
        cg.broadcast_to(ROW, X.shape),
    ),
    "broadcast to the same shape": (apply(BroadcastTo(X.shape), X), X),
    "copy of a copy": (apply(Contiguous(), apply(Contiguous(), X.T)), apply(Contiguous(), X.T)),
}
LEFT = {
    "0 - x": 0.0 - X,
    "1 / x": 1.0 / X,
    "x * 0": X * 0.0,
    "x * 2": X * 2.0,
    "x + 1": X + 1.0,
    "x - 1": X - 1.0,
    "x / 2": X / 2.0,
    "x ** 1": X**1.0,
    "x + part of zeros": X + np.array([0.0, 0.0, 1.0, 0.0]),
    "x * part of ones": X * np.array([1.0, 1.0, 0.0, 1.0]),
    "x + a Var": X + ROW,
    "-x": -X,
    "-abs(-x)": -cg.abs(-X),
    "reshape": cg.reshape(X, (6, 4)),
    "reshape of transpose": cg.reshape(cg.transpose(X), (8, 3)),
    "transpose": cg.transpose(X, (0, 2, 1)),
    "transpose of a reshape": cg.transpose(cg.reshape(X, (6, 4))),
    "broadcast": cg.broadcast_to(ROW, X.shape),
    "a copy": apply(Contiguous(), X.T),
}


@pytest.mark.parametrize("name", DROPPED)
def test_a_node_that_changes_nothing_is_dropped(name):
    node, want = DROPPED[name]
    assert drop_identities((node,))[0] is want
    assert_same_values(drop_identities, node)


@pytest.mark.parametrize("name", LEFT)
def test_a_node_that_changes_something_is_left(name):
    assert_left(drop_identities, LEFT[name])


def test_constants_of_many_bytes_are_not_looked_at(monkeypatch):
    node = X + np.zeros(X.shape)
    monkeypatch.setitem(drop_identities.__globals__, "_MOST_LOOKED_AT", X.nbytes - 1)
    assert_left(drop_identities, node)
    monkeypatch.setitem(drop_identities.__globals__, "_MOST_LOOKED_AT", X.nbytes)
    assert drop_identities((node,))[0] is X


def test_whole_numbers_are_no_different():
    x = cg.Var((3,), "int32", "n")
    assert drop_identities((x * 1 + 0,))[0] is x
    assert_left(drop_identities, x * 2 + 1)


@settings(max_examples=30)
@given(drawn=graphs(impure=True))
def test_random_graphs_keep_their_values_and_nothing_is_left_to_drop(drawn):
    assert_keeps_values(drop_identities, drawn)
    assert_leaves_nothing(drop_identities, drawn)


def test_slices_of_zeros_that_are_added_are_set_one_after_the_other():
    x = cg.Var((3, 8), "float64", "x")
    parts = cg.split(x, 4, -1)
    loss = cg.sum(sum(cg.sin(part * i) for i, part in enumerate(parts, 1)))
    (node,) = drop_identities((cg.gradient(loss, x),))
    kinds = [type(n.op) for n in post_order([node])]
    assert kinds.count(SetSlice) == 4 and Add not in kinds
    values = {x: np.random.default_rng(0).normal(size=x.shape)}
    np.testing.assert_array_equal(*(evaluate([n], values)[0] for n in (node, cg.gradient(loss, x))))


@pytest.mark.parametrize("slices", [(np.s_[:, :4], np.s_[:, 3:]), (np.s_[::2], np.s_[1::2]), (np.s_[:2], np.s_[:, :4])])
def test_slices_that_may_overlap_are_added(slices):
    x = cg.Var((4, 8), "float64", "x")
    (node,) = drop_identities((cg.gradient(sum(cg.sum(cg.sin(x[s])) for s in slices), x),))
    assert isinstance(node.op, Add)


def test_a_slice_is_not_added_to_what_is_not_zero():
    x, y = cg.Var((4, 8), "float64", "x"), cg.Var((4, 8), "float64", "y")
    (node,) = drop_identities((y + cg.gradient(cg.sum(cg.sin(x[:2])), x),))
    assert isinstance(node.op, Add)


NOTHING = {
    "no channels": ((1, 0, 9, 9), (16, 0, 3, 3), {}),
    "no channels, strided": ((2, 0, 9, 9), (4, 0, 3, 3), {"stride": 2}),
    "filters without rows": ((1, 4, 9, 9), (16, 4, 0, 3), {}),
    "filters of nothing on padded images": ((1, 32, 9, 9), (16, 32, 0, 0), {"pad": 1}),
    "groups": ((2, 0, 9, 9), (4, 0, 1, 1), {"groups": 2}),
    "no filters": ((1, 4, 9, 9), (0, 4, 3, 3), {}),
    "no images": ((0, 4, 9, 9), (16, 4, 3, 3), {}),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", NOTHING)
def test_a_convolution_of_nothing_is_zero_and_so_are_its_gradients(name, frozen):
    images, filters, options = NOTHING[name]
    x, f = cg.Var(images), cg.Const(np.ones(filters, "float32")) if frozen else cg.Var(filters)
    y = cg.conv2d(x, f, **options)
    assert isinstance(drop_identities((y,))[0].op, Full)
    outputs = [cg.relu(y + 1.0), *cg.gradient(cg.sum(y), [x, f])]
    values = [np.ones(images, "float32")] if frozen else [np.ones(images, "float32"), np.ones(filters, "float32")]
    ones, *gradients = cg.compile(outputs, [x] if frozen else [x, f])(*values)
    np.testing.assert_array_equal(ones, np.ones(y.shape))
    assert [g.shape for g in gradients] == [images, filters] and not any(g.any() for g in gradients)


@pytest.mark.parametrize(
    "sizes", [((1, 0, 4, 4), (0, 3, 2, 2)), ((2, 3, 4, 4), (3, 2, 0, 2)), ((0, 3, 4, 4), (3, 2, 2, 2))]
)
def test_a_transposed_convolution_of_nothing_is_zero(sizes):
    x, f = (np.ones(shape, "float32") for shape in sizes)
    y = cg.conv_transpose2d(cg.Var(x.shape, name="x"), cg.Var(f.shape, name="f"))
    np.testing.assert_array_equal(cg.conv_transpose2d(x, f).eval(), np.zeros(y.shape))
    np.testing.assert_array_equal(cg.compile(y, list(y.operands))(x, f), np.zeros(y.shape))


PLACES = {
    "apart": ((slice(0, 2), slice(2, 4), slice(4, 8)), 3),
    "the last one overlaps the first": ((slice(0, 3), slice(4, 6), slice(2, 4)), 2),
    "the last one overlaps the second": ((slice(0, 2), slice(3, 6), slice(5, 8)), 2),
    "interleaved": ((slice(0, 8, 2), slice(1, 8, 4), slice(3, 8, 4)), 1),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", PLACES)
def test_each_slice_is_compared_with_all_that_are_set_before(name, turned):
    """In either order of a sum: so many of the slices are set in one array, the others are added."""
    places, count = PLACES[name]
    parts = [cg.Var((*cg.Var((8,))[place].shape,), "float64", f"x{i}") for i, place in enumerate(places)]
    total = None
    for place, part in zip(places, parts):
        one = cg.set_slice(cg.zeros((8,), "float64"), (place,), part)
        total = one if total is None else one + total if turned else total + one
    kinds = [type(n.op) for n in post_order(drop_identities((total,)))]
    assert kinds.count(Add) == 3 - count
    assert_same_values(drop_identities, total)


@pytest.mark.parametrize(
    "base, count",
    [(cg.zeros((8,), "float64"), 1), (np.zeros(8), 1), (cg.full((8,), 2.0, "float64"), 2), (np.ones(8), 2)],
)
def test_slices_are_set_one_after_the_other_in_zeros_only(base, count):
    """Zeros may be made in the graph or given; other numbers are added."""
    a, b = (cg.Var((2,), "float64", name) for name in "ab")
    node = cg.set_slice(base, np.s_[:2], a) + cg.set_slice(base, np.s_[4:6], b)
    kinds = [type(n.op) for n in post_order(drop_identities((node,)))]
    assert kinds.count(Add) == count - 1
    assert_same_values(drop_identities, node)
