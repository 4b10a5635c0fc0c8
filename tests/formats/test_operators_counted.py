"""Loops of an ONNX file that are built once: their size, and their checks."""

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import InputError
from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from cgraph.ops.while_loop import WhileLoop
from tests.support.onnx_open import agrees, info, node, numbers, open_model

pytest.importorskip("onnxruntime")
ROWS = np.random.default_rng(4).normal(size=(6, 3)).astype("f4")
CONSTANTS = {
    "go": np.array(True),
    "zero": numbers(0),
    "start": np.zeros(3, "f4"),
    "first": ROWS[:2],
    "two": np.float32(2),
}


def loop_file(*extra, ends=(), reads=(), starts=(), going="c", constants=None):
    """A loop over rows of `x`: each round gathers ``r``; `reads`, `ends` and `starts` are of its states."""
    nodes = [node("Gather", ["x", "i"], ["r"]), *extra, node("Identity", [going], ["on"])]
    shapes = {"sum": (3,), "next": (3,), "z": (3,)}
    inputs = [info("i", "i8", ()), info("c", "?", ()), *(info(name, "f4", shapes.get(name)) for name in reads)]
    outputs = [info("on", "?", ()), *(info(name, "f4", shapes.get(name)) for name in ends)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    names = [f"y{i}" for i in range(len(ends))]
    return open_model(
        [node("Loop", ["n", "go", *starts], names, body=body)],
        {"x": ("f4", (6, 3)), "n": ("i8", ())},
        {**CONSTANTS, **(constants or {})},
        " ".join(names),
    )


APPENDS = [node("Unsqueeze", ["r", "zero"], ["u"]), node("Concat", ["all", "u", "u"], ["more"], axis=0)]
SUMS = [node("Add", ["sum", "r"], ["next"]), node("Mul", ["next", "two"], ["z"])]
ENDS = [node("ReduceMax", ["next"], ["top"], keepdims=0), node("Less", ["top", "two"], ["small"])]
FILES = {
    "a state and a stack": {"extra": SUMS, "ends": ["next", "z"], "reads": ["sum"], "starts": ["start"]},
    "rows appended": {"extra": APPENDS, "ends": ["more"], "reads": ["all"], "starts": ["first"]},
    "all three": {
        "extra": [*SUMS, *APPENDS], "ends": ["next", "more", "z"], "reads": ["sum", "all"],
        "starts": ["start", "first"],
    },
    "a condition": {
        "extra": [*SUMS, *ENDS], "ends": ["next", "z"], "reads": ["sum"], "starts": ["start"], "going": "small",
    },
}  # fmt: skip


TWO = [
    node("Unsqueeze", ["r", "zero"], ["u"]), node("Neg", ["u"], ["v"]),
    node("Concat", ["all", "u"], ["more"], axis=0), node("Concat", ["few", "v", "u"], ["many"], axis=0),
    node("Mul", ["r", "two"], ["w"]),
]  # fmt: skip
FILES["two that grow, two stacks"] = {
    "extra": [*SUMS, *TWO], "ends": ["many", "next", "more", "z", "w"], "reads": ["few", "sum", "all"],
    "starts": ["none", "start", "first"], "constants": {"none": ROWS[:0]},
}  # fmt: skip


def file_of(name):
    options = dict(FILES[name])
    return loop_file(*options.pop("extra"), **options)


@pytest.mark.parametrize("name", FILES)
def test_rounds_are_those_of_onnxruntime_and_the_body_is_built_once(name):
    raw = file_of(name)
    agrees(raw, [{"x": ROWS, "n": np.int64(n)} for n in (0, 1, 3, 6)], {"n": 6})
    sizes = []
    for most in (6, 600):
        nodes = post_order(load(raw, maximum={"n": most}).outputs)
        assert sum(isinstance(x.op, WhileLoop) for x in nodes) == 1
        sizes.append(len(nodes))
    assert sizes[0] == sizes[1]


def test_conditions_of_a_round_are_checked_in_the_rounds_that_run_and_keep_their_texts():
    """The slice of a row has as many elements as the row says, which the sum takes for three."""
    extra = [
        node("Cast", ["r"], ["whole"], to=7),
        node("Slice", ["whole", "zero", "one"], ["length"]),
        node("Slice", ["r", "zero", "length"], ["part"]),
        node("Add", ["part", "sum"], ["next"]),
    ]
    raw = loop_file(*extra, ends=["next"], reads=["sum"], starts=["start"], constants={"one": numbers(1)})
    function = load(raw, maximum={"n": 6, "length": 3}).compile()
    x = np.full((6, 3), 3, "f4")
    x[4, 0] = 2
    np.testing.assert_array_equal(function(x=x, n=np.int64(4))[0], np.full(3, 12, "f4"))
    with pytest.raises(InputError, match="Add"):
        function(x=x, n=np.int64(5))


def test_a_state_of_a_dynamic_length_that_no_round_changes_needs_one_body():
    nodes = [node("NonZero", ["m"], ["k"]), node("Squeeze", ["k", "zero"], ["j"]), node("Gather", ["x", "j"], ["open"])]
    body = helper.make_graph(
        [node("Add", ["s", "s"], ["next"]), node("Identity", ["c"], ["on"])],
        "body",
        [info("i", "i8", ()), info("c", "?", ()), info("s", "f4", None)],
        [info("on", "?", ()), info("next", "f4", None)],
    )
    raw = open_model(
        [*nodes, node("Loop", ["n", "go", "open"], ["y"], body=body)],
        {"x": ("f4", (6, 3)), "m": ("?", (6,)), "n": ("i8", ())},
        CONSTANTS,
    )
    masks = [np.array(m, bool) for m in ([1, 0, 1, 1, 0, 0], [0] * 6, [1] * 6)]
    agrees(raw, [{"x": ROWS, "m": m, "n": np.int64(n)} for m in masks for n in (0, 2)], {"n": 2})
    assert sum(isinstance(x.op, WhileLoop) for x in post_order(load(raw, maximum={"n": 2}).outputs)) == 1


def test_a_condition_may_change_its_shape_in_the_first_round():
    """It is one axis long after a round, so the rounds are written out or built once from the first round on."""
    ends = [node("ReduceMax", ["next"], ["top"], keepdims=1), node("Less", ["top", "two"], ["small"])]
    options = {"ends": ["next"], "reads": ["sum"], "starts": ["start"], "going": "small"}
    raw = loop_file(*SUMS, *ends, **options)
    x = np.abs(ROWS)
    agrees(raw, [{"x": x * k, "n": np.int64(n)} for n in (0, 1, 3, 6) for k in (0.1, 1, 5)], {"n": 6})
