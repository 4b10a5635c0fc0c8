"""Sequences and optionals of ONNX files, and outputs that are sequences; their meaning is in ONNX's own node tests."""

import numpy as np
import pytest

from cgraph.errors import FormatError, PositionError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.sequences import (
    concat_from_sequence,
    optional_get,
    optional_has,
    sequence_at,
    sequence_erase,
    sequence_insert,
    sequence_length,
    split_to_sequence,
)
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_context import context, length, ragged, value_of
from tests.support.tolerance import assert_near

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto
FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
X = np.arange(6, dtype="f4").reshape(2, 3)


def sequence_info(name):
    return helper.make_value_info(name, helper.make_sequence_type_proto(FLOATS))


def model_of(nodes, outputs):
    """A model of one input X ``[2, 3]``."""
    inputs = [helper.make_tensor_value_info("X", TensorProto.FLOAT, (2, 3))]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs), ir_version=10).SerializeToString()


def added(*names):
    """A graph that adds its inputs."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node("Sum", list(names), ["total"])], "body", infos, [total])


def test_each_item_of_an_output_that_is_a_sequence_is_an_output_with_its_index_in_its_name():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("Identity", ["rows"], ["same"]),
        helper.make_node("Neg", ["X"], ["y"]),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3))
    model = load(model_of(nodes, [sequence_info("same"), y]))
    assert model.names == ("same.0", "same.1", "y")
    results = model.compile()(X)
    for got, want in zip(results, (X[:1], X[1:], -X), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(results["same.1"], X[1:])


def test_an_output_that_is_an_empty_sequence_is_refused():
    with pytest.raises(FormatError, match="output 'none' is empty; only tensors can be outputs. Remove it"):
        load(model_of([helper.make_node("SequenceEmpty", [], ["none"])], [sequence_info("none")]))


def test_a_graph_is_built_for_each_item_with_arrays_and_items_of_other_sequences():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("SequenceMap", ["rows", "X", "rows"], ["sums"], body=added("a", "b", "c")),
    ]
    results = load(model_of(nodes, [sequence_info("sums")])).compile()(X)
    for i, got in enumerate(results):
        np.testing.assert_array_equal(got, X + 2 * X[i : i + 1])


def test_sequences_of_other_lengths_are_not_mapped_together():
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("SplitToSequence", ["X"], ["columns"], axis=1),
        helper.make_node("SequenceMap", ["rows", "columns"], ["sums"], body=added("a", "b")),
    ]
    with pytest.raises(FormatError, match="sequences of 2, 3 items: all must have one length"):
        load(model_of(nodes, [sequence_info("sums")]))


@pytest.mark.parametrize(("at", "is_inside"), [(-3, False), (-2, True), (1, True), (2, False)])
def test_an_item_is_at_an_index_of_the_sequence(at, is_inside):
    nodes = [
        helper.make_node("SplitToSequence", ["X"], ["rows"], axis=0),
        helper.make_node("Constant", [], ["at"], value_int=at),
        helper.make_node("SequenceAt", ["rows", "at"], ["y"]),
    ]
    data = model_of(nodes, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    if is_inside:
        np.testing.assert_array_equal(load(data).compile()(X)[0], X[at][None])
        return
    with pytest.raises(PositionError, match=f"index {at} is outside a sequence of 2 items"):
        load(data)


ITEMS = [Const(np.float32(i)) for i in range(3)]


@pytest.mark.parametrize("at", [None, *range(-4, 5)])
def test_items_are_read_inserted_and_erased_where_python_does_it_within_the_sequence(at):
    """An item is added behind the last one, and the last one erased, unless a place is given."""
    new, place = Const(np.float32(9)), None if at is None else Const(np.int64(at))
    ends = {sequence_at: 2, sequence_insert: 3, sequence_erase: 2}
    for importer, last in ends.items():
        if at is None and importer is sequence_at:
            continue
        c = context(ITEMS, *([new] if importer is sequence_insert else []), place)
        if at is not None and not -3 <= at <= last:
            with pytest.raises(PositionError, match=f"index {at} is outside a sequence of 3 items"):
                importer(c)
            continue
        want = list(ITEMS)
        if importer is sequence_at:
            assert importer(c) is want[at]
            continue
        if importer is sequence_insert:
            want.insert(3 if at is None else at, new)
        else:
            del want[-1 if at is None else at]
        (got,) = importer(c)
        assert len(got) == len(want) and all(x is y for x, y in zip(got, want))
    assert len(ITEMS) == 3  # each sequence stays what it is
    assert sequence_length(context(ITEMS)).op.array == 3 and sequence_length(context([])).op.array == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("parts", [None, 2, 5, [1, 3, 1], [5]], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_parts_are_of_a_length_or_of_lengths_and_axes_of_one_go_where_no_length_is_given(axis, parts, keepdims):
    x = np.arange(25.0).reshape(5, 5)
    attributes = [helper.make_attribute("axis", axis), helper.make_attribute("keepdims", keepdims)]
    ((*got,),) = split_to_sequence(
        context(Const(x), None if parts is None else Const(np.array(parts)), attributes=attributes)
    )
    edges = list(range(1, 5)) if parts is None else list(range(parts, 5, parts)) if isinstance(parts, int) else None
    want = np.split(x, np.cumsum(parts)[:-1] if edges is None else edges, axis)
    want = [y.squeeze(axis) for y in want] if parts is None and not keepdims else want
    assert len(got) == len(want)
    for y, piece in zip(got, want):
        np.testing.assert_array_equal(value_of(y, {}), piece)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [0, 1])
def test_items_are_joined_along_an_axis_that_may_be_new(new, axis):
    parts = [np.arange(6.0).reshape(2, 3), np.arange(6.0, 12).reshape(2, 3)]
    attributes = [helper.make_attribute("axis", axis), helper.make_attribute("new_axis", new)]
    y = concat_from_sequence(context([Const(x) for x in parts], attributes=attributes))
    np.testing.assert_array_equal(value_of(y, {}), (np.stack if new else np.concatenate)(parts, axis))


def test_an_optional_is_there_or_not():
    assert optional_has(context(ITEMS[0])).op.array and optional_has(context([])).op.array
    assert not optional_has(context(None)).op.array
    assert optional_get(context(ITEMS)) == [ITEMS]
    with pytest.raises(FormatError, match="the optional is empty: check it with OptionalHasElement"):
        optional_get(context(None))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_items_of_an_open_length_are_joined_and_not_stacked(axis):
    v, w = Var((2, 3), "float32", "v"), Var((2, 3), "float32", "w")
    c = context()
    n, m = length(c, "n", (2, 3)[axis]), length(c, "m", (2, 3)[axis])
    items = [ragged(v, {axis % 2: n}), ragged(w, {axis % 2: m}), Const(X)]
    attributes = [helper.make_attribute("axis", axis), helper.make_attribute("new_axis", 0)]
    joined = concat_from_sequence(context(items, attributes=attributes))
    for i, j in ((1, 2), (2, 1), (0, 2)):
        parts = [x.take(range(k), axis) for x, k in ((X + 10, i), (X * 2, j))]
        got = value_of(joined, {v: X + 10, w: X * 2, n.node: i, m.node: j})
        np.testing.assert_array_equal(got, np.concatenate([*parts, X], axis))
    attributes = [helper.make_attribute("axis", axis), helper.make_attribute("new_axis", 1)]
    with pytest.raises(FormatError, match="values of a length known only at run time cannot be stacked. Give shapes="):
        concat_from_sequence(context(items, attributes=attributes))


def test_two_further_sequences_and_an_array_go_to_each_item():
    """Item by item of each sequence; the array whole."""
    made = [
        helper.make_node("Neg", ["X"], ["n"]), helper.make_node("Exp", ["X"], ["e"]),
        *(helper.make_node("SequenceConstruct", names, [y]) for names, y in ((["X", "n"], "a"), (["e", "X"], "b"))),
        helper.make_node("SequenceConstruct", ["n", "n"], ["c"]),
        helper.make_node("SequenceMap", ["a", "b", "c", "X"], ["y"], body=added("p", "q", "r", "s")),
    ]  # fmt: skip
    model = load(model_of(made, [sequence_info("y")]))
    first, second = model.compile()(X)
    assert_near(first, X + np.exp(X) - X + X, "float32 formulas near zero")
    assert_near(second, -X + X - X + X, "float32 formulas near zero")
    short = [*made[:4], helper.make_node("SequenceConstruct", ["n"], ["c"]), made[5]]
    with pytest.raises(FormatError, match="sequences of 2, 2, 1 items: all must have one length"):
        load(model_of(short, [sequence_info("y")]))
