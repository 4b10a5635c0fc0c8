"""Branches and loops whose turns, and whose results' lengths, are known only at run time, as onnxruntime has them."""

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from tests.support.onnx_open import agrees, info, node, numbers, open_model

pytest.importorskip("onnxruntime")
X = ("f4", (4, 3))
ONE = ("i8", ())


def x_of(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape or (4, 3)).astype("f4")


def given(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    return [{name: np.array(v, np.int64), **others} for v in values]


def body(*extra: Any, going: str = "c") -> Any:
    """A loop's body: adds a row, and collects twice the sum."""
    nodes = [
        node("Add", ["sum", "row"], ["more"]),
        *extra,
        node("Identity", [going], ["on"]),
        node("Mul", ["more", "two"], ["z"]),
    ]
    read = [info("turn", "i8", ()), info("c", "?", ()), info("sum", "f4", (3,))]
    return helper.make_graph(nodes, "b", read, [info("on", "?", ()), info("more", "f4", (3,)), info("z", "f4", (3,))])


WHILE = body(node("ReduceMax", ["more"], ["top"], keepdims=0), node("Less", ["top", "limit"], ["small"]), going="small")
LOOP = {"n0": np.int64(0), "two": np.float32(2), "c": np.array(True), "sum": np.zeros(3, "f4"), "limit": np.float32(2)}
ROW = node("Gather", ["x", "n0"], ["row"])


def test_a_loop_takes_as_many_turns_as_it_is_told_when_run():
    raw = open_model([ROW, node("Loop", ["n", "c", "sum"], ["y", "z"], body=body())], {"x": X, "n": ONE}, LOOP, "y z")
    agrees(raw, given("n", 0, 1, 4, 6, x=x_of()), {"n": 6})
    with pytest.raises(InputError, match="maximum gives 6 for 'n'; it is larger"):
        load(raw, maximum={"n": 6}).compile()(x=x_of(), n=np.int64(7))


@pytest.mark.parametrize("rows", [0, 2])
def test_a_loop_appends_a_row_in_every_turn(rows):
    """Mask R-CNN pastes one mask in each turn."""
    nodes = [
        node("Gather", ["x", "turn"], ["r"]),
        node("Unsqueeze", ["r", "axis"], ["u"]),
        node("Concat", ["all", "u"], ["more"], axis=0),
        node("Identity", ["c"], ["on"]),
    ]
    read = [info("turn", "i8", ()), info("c", "?", ()), info("all", "f4", None)]
    append = helper.make_graph(nodes, "b", read, [info("on", "?", ()), info("more", "f4", None)])
    constants = {"c": np.array(True), "first": np.ones((rows, 3), "f4"), "axis": numbers(0)}
    raw = open_model([node("Loop", ["n", "c", "first"], ["y"], body=append)], {"x": X, "n": ONE}, constants)
    agrees(raw, given("n", 0, 1, 4, x=x_of()), {"n": 4})


@pytest.mark.parametrize(("trips", "maximum"), [("n", {}), ("", {"y": 7})])
def test_a_loop_ends_when_its_condition_fails(trips, maximum):
    raw = open_model(
        [ROW, node("Loop", [trips, "c", "sum"], ["y", "z"], body=WHILE)], {"x": X}, LOOP | {"n": np.int64(7)}, "y z"
    )
    agrees(raw, [{"x": np.abs(x_of()) * k + 0.3} for k in (0.1, 1, 5)], maximum)


def test_a_loop_that_has_no_end_is_refused_and_one_that_finds_none_is_said():
    raw = open_model([ROW, node("Loop", ["", "c", "sum"], ["y", "z"], body=WHILE)], {"x": X}, LOOP, "y z")
    with pytest.raises(FormatError, match=r"nothing bounds the iterations of a loop.*maximum={'y': n}"):
        load(raw)
    with pytest.raises(InputError, match="has not ended after 4 turns"):
        load(raw, maximum={"y": 4}).compile()(x=x_of() * 0)


def branches(then: Any, other: Any) -> dict[str, Any]:
    graphs = [
        helper.make_graph([node("Identity", [read], [name])], name, [], [info(name, "f4", None)])
        for read, name in (then, other)
    ]
    return dict(zip(("then_branch", "else_branch"), graphs))


@pytest.mark.parametrize(("then", "other"), [("x", "r"), ("r", "x"), ("r", "few"), ("few", "x")])
def test_branches_may_differ_in_lengths(then, other):
    nodes = [
        node("NonZero", ["m"], ["n"]),
        node("Squeeze", ["n", "zero"], ["i"]),
        node("Gather", ["x", "i"], ["r"]),
        node("If", ["p"], ["y"], **branches((then, "t"), (other, "o"))),
    ]
    raw = open_model(nodes, {"x": X, "m": ("?", (4,)), "p": ("?", ())}, {"zero": numbers(0), "few": x_of(2, 3)})
    masks = [np.array(m, bool) for m in ([1, 0, 1, 1], [0] * 4, [1] * 4)]
    agrees(raw, [{"x": x_of(), "m": m, "p": np.array(p)} for m in masks for p in (True, False)])


def test_a_branch_may_have_constants_of_names_that_the_graph_around_it_has():
    """Each name is that of the innermost graph; the outer one is what it was behind the branch."""
    own = numpy_helper.from_array(np.array([[7.0, 8.0, 9.0]], "f4"), "few")
    then = helper.make_graph([node("Add", ["x", "few"], ["t"])], "t", [], [info("t", "f4", None)], [own])
    other = branches(("x", "t"), ("x", "o"))["else_branch"]
    nodes = [node("If", ["p"], ["b"], then_branch=then, else_branch=other), node("Mul", ["b", "few"], ["y"])]
    function = load(open_model(nodes, {"x": X, "p": ("?", ())}, {"few": np.float32(2)})).compile()
    for p, added in ((True, [7, 8, 9]), (False, 0)):
        np.testing.assert_array_equal(function(x=x_of(), p=np.array(p))[0], (x_of() + np.float32(added)) * 2)


def test_what_a_branch_that_is_not_taken_would_refuse_does_not_matter():
    reshaped = helper.make_graph([node("Reshape", ["x", "n"], ["t"])], "t", [], [info("t", "f4", None)])
    other = branches(("x", "t"), ("flat", "o"))["else_branch"]
    raw = open_model(
        [node("If", ["p"], ["y"], then_branch=reshaped, else_branch=other)],
        {"x": X, "n": ("i8", (1,)), "p": ("?", ())},
        {"flat": x_of(5)},
    )
    function = load(raw).compile()
    assert function(x=x_of(), n=numbers(7), p=np.array(False))[0].shape == (5,)
    with pytest.raises(InputError, match="lengths known only at run time do not fit"):
        function(x=x_of(), n=numbers(7), p=np.array(True))


def test_branches_of_different_numbers_of_axes_are_named_and_the_advice_works():
    then = helper.make_graph([node("Unsqueeze", ["x", "n0"], ["t"])], "t", [], [info("t", "f4", None)])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "e", [], [info("e", "f4", None)])
    steps = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Less", ["s", "limit"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    raw = open_model(steps, {"x": X}, {"n0": numbers(0), "limit": np.float32(-100)})
    with pytest.raises(FormatError, match=r"float32\[1,4,3\] and else_branch float32\[4,3\].*constants={'x': value}"):
        load(raw)
    assert load(raw, constants={"x": x_of()}).outputs[0].shape == (4, 3)
