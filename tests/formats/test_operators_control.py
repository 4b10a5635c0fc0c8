"""Loops that are written out, states that grow in them, limits of rounds, and branches with several results."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.control import growing_states, names_read
from cgraph.ir.traverse import post_order
from cgraph.ops.while_loop import WhileLoop
from tests.support.onnx_open import agrees, info, node, numbers, open_model

pytest.importorskip("onnxruntime")
CONTROL = "cgraph.formats.onnx.operators.control"
ROWS = np.random.default_rng(5).integers(-4, 5, (6, 3)).astype("f4")
CONSTANTS = {
    "go": np.array(True), "zero": numbers(0), "first": ROWS[:2], "start": np.zeros(3, "f4"), "two": np.float32(2),
    "three": np.int64(3), "five": np.int64(5), "none": np.int64(0), "limit": np.float32(1e6),
}  # fmt: skip
SOME = [node("NonZero", ["m"], ["k"]), node("Squeeze", ["k", "zero"], ["j"]), node("Gather", ["x", "j"], ["some"])]


def body(nodes: list[Any], reads: str, ends: str, going: str = "c", **shapes: Any) -> Any:
    """A round with turn `i` and condition `c`; states and results have no declared shapes but the given ones."""
    names = [info("i", "i8", ()), info("c", "?", ()), *(info(name, "f4", shapes.get(name)) for name in reads.split())]
    written = [info("on", "?", ()), *(info(name, "f4", shapes.get(name)) for name in ends.split())]
    return helper.make_graph([*nodes, node("Identity", [going], ["on"])], "body", names, written)


def looped(inner: Any, operands: str, results: str, before: list[Any] = SOME) -> bytes:
    loop = node("Loop", ["" if name == "-" else name for name in operands.split()], results.split(), body=inner)
    inputs = {"x": ("f4", (6, 3)), "m": ("?", (6,)), "n": ("i8", ()), "most": ("f4", ())}
    return open_model([*before, loop], inputs, CONSTANTS, results)


def feeds(counts: tuple[int, ...], masks: tuple[int, ...] = (0b101101, 0, 0b111111), most: float = 10) -> list[Any]:
    bits = [np.array([bool(mask >> i & 1) for i in range(6)]) for mask in masks]
    return [{"x": ROWS, "m": m, "n": np.int64(n), "most": np.float32(most)} for n in counts for m in bits]


def has_loop(raw: bytes, **options: Any) -> bool:
    return any(isinstance(x.op, WhileLoop) for x in post_order(load(raw, **options).outputs))


ROW = node("Gather", ["x", "i"], ["r"])
TWO_ROWS = [ROW, node("Unsqueeze", ["r", "zero"], ["u"]), node("Concat", ["all", "u", "u"], ["more"], axis=0)]
OPEN = node("Add", ["s", "s"], ["next"])
DOUBLED = [node("Add", ["s", "s"], ["twice"]), node("Concat", ["twice", "s"], ["next"], axis=0)]
GROWN = body([*TWO_ROWS, *DOUBLED, node("Mul", ["r", "two"], ["z"])], "all s", "more next z", z=(3,))


def test_rows_are_appended_in_rounds_that_are_written_out():
    """The other state doubles its length, so the body is not built once; the first grows by two rows a round."""
    raw = looped(GROWN, "n go first some", "y last z")
    assert not has_loop(raw, maximum={"n": 4})
    agrees(raw, feeds((0, 1, 3, 4)), {"n": 4})


def test_rounds_that_never_run_leave_the_states_and_collect_nothing():
    raw = looped(GROWN, "n go first some", "y last z")
    agrees(raw, feeds((0,)), {"n": 0})
    with pytest.raises(InputError, match="maximum gives 0 for 'n'; it is larger"):
        load(raw, maximum={"n": 0}).compile()(**feeds((1,))[0])
    fixed = body([ROW, node("Add", ["s", "r"], ["next"]), node("Mul", ["r", "two"], ["z"])], "s", "next z", z=(3,))
    agrees(looped(fixed, "n go start", "y z"), feeds((0,), (1,)), {"n": 0})


def test_rows_whose_number_only_a_run_knows_cannot_be_appended():
    appends = [node("Concat", ["all", "some"], ["more"], axis=0), OPEN]
    raw = looped(body(appends, "all s", "more next"), "n go first some", "y last")
    with pytest.raises(FormatError, match="cannot append rows whose number is known only at run time or differs"):
        load(raw, maximum={"n": 3})


def test_a_written_out_loop_that_goes_on_after_its_maximum_is_said():
    ends = [*DOUBLED, node("ReduceMax", ["next"], ["top"], keepdims=0), node("Less", ["top", "most"], ["small"])]
    raw = looped(body(ends, "s", "next", "small"), "- go some", "y")
    assert not has_loop(raw, maximum={"y": 4})
    agrees(raw, feeds((0,), (0b101101, 0b111111), most=20), {"y": 4})
    with pytest.raises(InputError, match="the loop has not ended after 4 turns"):
        load(raw, maximum={"y": 4}).compile()(**feeds((0,), (0b111111,), most=1e9)[0])


def test_a_state_may_not_change_its_number_of_axes_in_a_loop():
    deeper = body([node("Unsqueeze", ["s", "zero"], ["next"])], "s", "next")
    for state in ("some", "first"):
        with pytest.raises(FormatError, match="state 0 of a loop changes its dtype or number of axes"):
            load(looped(deeper, "n go some" if state == "some" else "n go start", "y"), maximum={"n": 2})


BRANCHES = {
    "then_branch": helper.make_graph([node("Identity", ["go"], ["t"])], "t", [], [info("t", "?", ())]),
    "else_branch": helper.make_graph([node("Identity", ["small"], ["e"])], "e", [], [info("e", "?", ())]),
}


@pytest.mark.parametrize("trips", ["five", "n", "-"])
@pytest.mark.parametrize("sure", [1, 2, 3])
def test_the_first_rounds_may_be_sure_and_later_ones_not(trips, sure):
    """A round before `sure` always goes on; afterwards the sum decides."""
    nodes = [
        ROW, node("Add", ["s", "r"], ["next"]), node("Mul", ["next", "two"], ["z"]),
        node("ReduceMax", ["next"], ["top"], keepdims=0), node("Less", ["top", "most"], ["small"]),
        node("Add", ["i", "one"], ["j"]), node("Less", ["j", "sure"], ["early"]),
        node("If", ["early"], ["going"], **BRANCHES),
    ]  # fmt: skip
    inner = body(nodes, "s", "next z", "going", s=(3,), next=(3,), z=(3,))
    inner.initializer.append(helper.make_tensor("one", TensorProto.INT64, [], [1]))
    inner.initializer.append(helper.make_tensor("sure", TensorProto.INT64, [], [sure]))
    raw = looped(inner, f"{trips} go start", "y z", [])
    given = [f for most in (-10, 3, 5) for f in feeds((1, 3, 5) if trips == "n" else (0,), (0,), most)]
    for feed in given:
        feed["x"] = np.abs(ROWS)
    agrees(raw, given, {"n": 5} if trips == "n" else {"y": 6} if trips == "-" else None)


def test_a_loop_is_written_out_up_to_a_number_of_rounds(monkeypatch):
    monkeypatch.setattr(f"{CONTROL}.MOST_TRIPS", 5)
    inner = body([ROW, node("Add", ["s", "r"], ["next"])], "s", "next")
    agrees(looped(inner, "five go start", "y"), feeds((0,), (0,)))
    monkeypatch.setattr(f"{CONTROL}.MOST_TRIPS", 4)
    with pytest.raises(FormatError, match="a loop of more than 4 iterations cannot be unrolled: reduce its trip count"):
        load(looped(inner, "five go start", "y"))


def test_a_loop_with_a_dynamic_state_has_a_maximum_of_rounds(monkeypatch):
    monkeypatch.setattr(f"{CONTROL}.MOST_TRIPS", 4)
    raw = looped(body([OPEN], "s", "next"), "n go some", "y")
    agrees(raw, feeds((0, 4), (0b1011,)), {"n": 4})
    with pytest.raises(FormatError, match="nothing bounds the iterations of a loop to 4"):
        load(raw, maximum={"n": 5})
    with pytest.raises(FormatError, match=r"nothing bounds axis 0.*maximum={'n': n}"):
        load(raw)
    asks = [OPEN, node("Less", ["most", "limit"], ["small"])]
    with pytest.raises(FormatError, match=r"nothing bounds the iterations of a loop to 4.*maximum={'y': n}"):
        load(looped(body(asks, "s", "next", "small"), "- go some", "y"))
    with pytest.raises(FormatError, match=r"nothing bounds the iterations of a loop to 4.*maximum={'y': n}"):
        load(looped(body(asks, "s", "next", "small"), "five go some", "y"))
    agrees(looped(body(asks, "s", "next", "small"), "three go some", "y"), feeds((0,), most=1) + feeds((0,), most=2e6))


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_loop_of_no_rounds_collects_nothing_of_the_dtype_and_shape_of_a_round(is_declared):
    """Two results of different dtypes and axes, which the file may leave undeclared."""
    nodes = [
        ROW, node("Add", ["s", "r"], ["next"]), node("Cast", ["r"], ["whole"], to=TensorProto.INT64),
        node("Unsqueeze", ["r", "zero"], ["deep"]),
    ]  # fmt: skip
    inner = body(nodes, "s", "next")
    if is_declared:
        inner.output.extend([info("whole", "i8", (3,)), info("deep", "f4", (1, 3))])
    else:
        inner.output.extend([helper.make_empty_tensor_value_info(name) for name in ("whole", "deep")])
    for trips, go in (("none", "go"), ("-", "stop"), ("five", "stop")):
        raw = looped(inner, f"{trips} {go} first_row", "y whole_rows deep_rows", [])
        raw = with_constants(raw, stop=np.array(False), first_row=ROWS[3])
        last, whole, deep = load(raw).compile()(**feeds((0,), (0,))[0])
        np.testing.assert_array_equal(last, ROWS[3])
        assert (whole.shape, whole.dtype, deep.shape, deep.dtype) == ((0, 3), "int64", (0, 1, 3), "float32")


def with_constants(raw: bytes, **arrays: Any) -> bytes:
    """The model with more initialisers."""
    import onnx

    model = onnx.load_from_string(raw)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in arrays.items())
    return model.SerializeToString()


def concat(*operands: str, to: str = "end", axis: int = 0) -> Any:
    return node("Concat", list(operands), [to], axis=axis)


def inside(name: str) -> Any:
    """A node that reads a name only in a graph inside a graph of it."""
    inner = helper.make_graph([node("Neg", [name], ["q"])], "inner", [], [info("q", "f4", None)])
    outer = helper.make_graph([node("If", ["c"], ["p"], then_branch=inner, else_branch=inner)], "o", [], [])
    return node("If", ["c"], ["z"], then_branch=outer, else_branch=outer)


RETURNED = helper.make_graph([], "returned", [], [info("s", "f4", None)])
BODIES = {
    "rows after the state": ([concat("s", "r")], True),
    "several": ([concat("s", "r", "r")], True),
    "rows before the state": ([concat("r", "s")], False),
    "the state alone": ([concat("s")], False),
    "columns": ([concat("s", "r", axis=1)], False),
    "another operator": ([node("Add", ["s", "r"], ["end"])], False),
    "the state twice": ([concat("s", "r", "s")], False),
    "the state is read": ([node("Neg", ["s"], ["z"]), concat("s", "r")], False),
    "the state is read inside": ([inside("s"), concat("s", "r")], False),
    "the state is returned inside": (
        [node("If", ["c"], ["z"], then_branch=RETURNED, else_branch=RETURNED), concat("s", "r")], False),
    "the result is read": ([concat("s", "r"), node("Neg", ["end"], ["z"])], False),
    "the result is read inside": ([concat("s", "r"), inside("end")], False),
    "others are read": ([node("Neg", ["r"], ["z"]), inside("r"), concat("s", "r")], True),
    "no node": ([], False),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_state_grows_if_rows_are_appended_and_nothing_else_reads_it(name):
    """Beside it, one state grows and one does not, before and after it."""
    nodes, grows = BODIES[name]
    beside = [concat("a", "r", to="more"), node("Neg", ["b"], ["less"])]
    end = "end" if nodes else "s"
    inner = body([*nodes, *beside], f"a s b {'' if nodes else 'r'}", f"more {end} less")
    assert growing_states(inner) == ([0, 1] if grows else [0])
    swapped = body([*nodes, *beside], "b s a", f"less {end} more")
    assert growing_states(swapped) == ([1, 2] if grows else [2])


def test_names_that_a_node_reads_are_its_own_and_those_of_graphs_inside():
    assert list(names_read(concat("s", "r"))) == ["s", "r"]
    assert sorted(names_read(inside("w"))) == sorted(["c"] + 2 * (["c"] + 2 * ["q", "w"]))
    assert list(names_read(node("If", ["c"], ["z"], then_branch=RETURNED, else_branch=RETURNED))) == ["c", "s", "s"]


def branch(nodes: list[Any], names: str) -> Any:
    return helper.make_graph(nodes, "b", [], [helper.make_empty_tensor_value_info(name) for name in names.split()])


THEN = branch([node("Add", ["x", "x"], ["a"]), node("Neg", ["x"], ["b"])], "a b")
ELSE = {
    "same": branch([node("Neg", ["x"], ["d"]), node("Add", ["x", "x"], ["e"])], "d e"),
    "second differs": branch([node("Neg", ["x"], ["d"]), node("Gather", ["x", "zero"], ["e"])], "d e"),
    "first differs": branch([node("Gather", ["x", "zero"], ["d"]), node("Neg", ["x"], ["e"])], "d e"),
}


@pytest.mark.parametrize("other", ELSE)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_condition_that_constants_gives_stays_open_where_all_results_are_alike(other, shape):
    raw = open_model(
        [node("If", ["p"], ["y", "z"], then_branch=THEN, else_branch=ELSE[other])],
        {"x": ("f4", (6, 3)), "p": ("?", shape)}, {"zero": numbers(0)}, "y z",
    )  # fmt: skip
    for given in (True, False):
        model = load(raw, constants={"p": np.full(shape, given)})
        assert (list(model.fixed) == ["p"]) is (other != "same") and not model.counts
        function = model.compile()
        feed = {"x": ROWS, "p": np.full(shape, given)}
        if other == "same":
            want = (2 * ROWS, -ROWS) if given else (-ROWS, 2 * ROWS)
        else:
            want = (2 * ROWS, -ROWS) if given else (ROWS[:1], -ROWS) if other == "first differs" else (-ROWS, ROWS[:1])
        for got, wanted in zip(function(**feed), want, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("is_open", ["then", "else", "both"])
def test_a_condition_that_constants_gives_takes_one_branch_where_a_length_is_open(is_open):
    """The other one is not part of the graph."""
    opened, closed = (branch([node("Neg", [name], ["r"])], "r") for name in ("some", "x"))
    then, other = (opened if is_open in (name, "both") else closed for name in ("then", "else"))
    raw = open_model(
        [*SOME, node("If", ["p"], ["y"], then_branch=then, else_branch=other)],
        {"x": ("f4", (6, 3)), "m": ("?", (6,)), "p": ("?", ())}, {"zero": numbers(0)}, "y",
    )  # fmt: skip
    mask = np.array([1, 0, 1, 1, 0, 0], bool)
    for given in (True, False):
        model = load(raw, constants={"p": np.array(given)})
        rows = ROWS[mask] if is_open in ("then" if given else "else", "both") else ROWS
        assert list(model.fixed) == ["p"] and bool(model.counts) is (len(rows) == 3)
        (got,) = model.compile()(x=ROWS, m=mask, p=np.array(given))
        np.testing.assert_array_equal(got, -rows)
