"""Scan over dynamic lengths, as onnxruntime runs it: a loop of as many rounds, and masked rounds where it must be."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from cgraph.errors import FormatError, InputError
from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from tests.support.onnx_open import agrees, node, numbers, open_model

pytest.importorskip("onnxruntime")
LENGTH = 6
MASK = [node("NonZero", ["m"], ["n"]), node("Squeeze", ["n", "axis"], ["i"])]
RNG = np.random.default_rng(0)


def graph(nodes: list[Any], inputs: str, outputs: str) -> Any:
    names = ([helper.make_empty_tensor_value_info(name) for name in text.split()] for text in (inputs, outputs))
    return helper.make_graph(nodes, "body", *names)


SUMS = graph([node("Add", ["s", "row"], ["sum"]), node("Mul", ["sum", "factor"], ["kept"])], "s row", "sum kept")


def scan_model(body: Any, states: str, axis: int = 0, results: str = "last all", **options: Any) -> bytes:
    """A Scan over the rows of `x` that a mask selects along an axis."""
    rows = node("Gather", ["x", "i"], ["rows"], axis=axis)
    made = node("Scan", [*states.split(), "rows"], results.split(), body=body, num_scan_inputs=1, **options)
    shape = (LENGTH, 3) if axis == 0 else (3, LENGTH)
    constants = {"axis": numbers(0), "start": np.ones(3, "f4"), "factor": np.float32(2), "zero": numbers(0)}
    return open_model([*MASK, rows, made], {"x": ("f4", shape), "m": ("?", (LENGTH,))}, constants, results)


def feeds(axis: int = 0, counts: tuple[int, ...] = (1, 4, LENGTH)) -> list[dict[str, Any]]:
    x = RNG.uniform(-1, 1, (LENGTH, 3) if axis == 0 else (3, LENGTH)).astype("f4")
    return [{"x": x, "m": RNG.permutation(LENGTH) < count} for count in counts]


def has_loop(raw: bytes) -> bool:
    return any(x.op.name == "while_loop" for x in post_order(load(raw).outputs))


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("output_axis", [0, 1, -1])
def test_a_loop_runs_as_many_rounds_as_there_are_rows(backward, turned, axis, output_axis):
    raw = scan_model(
        SUMS, "start", axis, scan_input_axes=[axis], scan_output_axes=[output_axis],
        scan_input_directions=[backward], scan_output_directions=[turned],
    )  # fmt: skip
    assert has_loop(raw)
    agrees(raw, feeds(axis))


def test_no_rows_leave_the_state():
    last, kept = load(scan_model(SUMS, "start")).compile()(**feeds(0, (0,))[0])
    assert kept.shape == (0, 3)
    np.testing.assert_array_equal(last, np.ones(3, "f4"))


def test_rows_of_a_fixed_number_and_of_a_dynamic_one_must_be_as_many():
    body = graph([node("Add", ["s", "row"], ["t"]), node("Mul", ["t", "other"], ["sum"])], "s row other", "sum")
    rows = node("Gather", ["x", "i"], ["rows"], axis=0)
    made = node("Scan", ["start", "rows", "x"], ["last"], body=body, num_scan_inputs=2)
    constants = {"axis": numbers(0), "start": np.ones(3, "f4")}
    raw = open_model([*MASK, rows, made], {"x": ("f4", (LENGTH, 3)), "m": ("?", (LENGTH,))}, constants, "last")
    agrees(raw, feeds(0, (LENGTH,)))
    with pytest.raises(InputError, match="lengths known only at run time do not fit"):
        load(raw).compile()(**feeds(0, (2,))[0])


GROWING = graph(
    [
        node("Greater", ["row", "limit"], ["high"]),
        node("Compress", ["row", "high"], ["few"], axis=0),
        node("ReduceSum", ["few"], ["part"], keepdims=0),
        node("Add", ["s", "part"], ["sum"]),
        node("Identity", ["part"], ["kept"]),
    ],
    "s row",
    "sum kept",
)


def test_values_of_dynamic_length_inside_a_round():
    body = GROWING
    body.initializer.append(helper.make_tensor("limit", 1, [], [0.0]))
    raw = scan_model(body, "start")
    agrees(raw, feeds())


@pytest.mark.parametrize("turned", [0, 1])
def test_rounds_with_something_to_check_are_written_out(turned):
    """The number of elements that are not 0 must fit the shape: a condition of each round."""
    nodes = [
        node("NonZero", ["row"], ["places"]),
        node("Squeeze", ["places", "zero"], ["flat"]),
        node("Gather", ["row", "flat"], ["some"]),
        node("Add", ["some", "row"], ["twice"]),
        node("Add", ["s", "twice"], ["sum"]),
        node("Identity", ["twice"], ["kept"]),
    ]
    raw = scan_model(
        graph(nodes, "s row", "sum kept"), "start", scan_input_directions=[turned], scan_output_directions=[turned]
    )
    assert not has_loop(raw)
    agrees(raw, feeds())


def test_a_state_whose_value_decides_a_shape_is_known_in_written_out_rounds():
    nodes = [
        node("Expand", ["row", "s"], ["wide"]),
        node("ReduceSum", ["wide"], ["kept"], keepdims=0),
        node("Identity", ["s"], ["same"]),
    ]
    rows = node("Gather", ["x", "i"], ["rows"], axis=0)
    made = node("Scan", ["shape", "rows"], ["last", "all"], body=graph(nodes, "s row", "same kept"), num_scan_inputs=1)
    constants = {"axis": numbers(0), "shape": numbers(1, 3)}
    raw = open_model([*MASK, rows, made], {"x": ("f4", (LENGTH, 3)), "m": ("?", (LENGTH,))}, constants, "last all")
    agrees(raw, feeds())


@pytest.mark.parametrize("count", [0, 3])
def test_a_number_of_scanned_operands_that_does_not_fit_is_refused(count):
    made = node("Scan", ["start", "x"], ["last", "all"], body=SUMS, num_scan_inputs=count)
    raw = open_model([made], {"x": ("f4", (LENGTH, 3))}, {"start": np.ones(3, "f4"), "factor": np.float32(2)}, "last")
    with pytest.raises(FormatError, match=f"num_scan_inputs is {count}, but there are 2 operands"):
        load(raw)


BOTH = graph(
    [
        node("Add", ["s", "row"], ["sum"]),
        node("Mul", ["t", "column"], ["product"]),
        node("Sub", ["sum", "column"], ["first"]),
        node("Add", ["product", "row"], ["second"]),
    ],
    "s t row column",
    "sum product first second",
)
WAYS = [((0, 1), (1, 0), (0, 1)), ((1, 0), (0, 1), (-1, 0)), ((1, 1), (0, 0), (1, -1))]


def checked_both() -> Any:
    """The same, with the elements of a row that are not 0 in the third result, which must be as many as there are."""
    some = [
        node("NonZero", ["row"], ["places"]),
        node("Squeeze", ["places", "axis"], ["flat"]),
        node("Gather", ["row", "flat"], ["some"]),
        node("Add", ["first", "some"], ["third"]),
    ]
    return graph([*BOTH.node, *some], "s t row column", "sum product third second")


CHECKED_BOTH = checked_both()


@pytest.mark.parametrize(("backward", "turned", "axes"), WAYS)
@pytest.mark.parametrize("kind", ["fixed", "loop", "masked"])
def test_two_operands_and_results_may_differ_in_axis_and_direction(kind, backward, turned, axes):
    """Rows of one and columns of the other, and two states; masked if each round has something to check."""
    body = CHECKED_BOTH if kind == "masked" else BOTH
    read = ["x", "v"] if kind == "fixed" else ["rows", "columns"]
    picked = [node("Gather", ["x", "i"], ["rows"], axis=0), node("Gather", ["v", "i"], ["columns"], axis=1)]
    made = node(
        "Scan", ["start", "ones", *read], ["a", "b", "c", "d"], body=body, num_scan_inputs=2, scan_input_axes=[0, 1],
        scan_input_directions=list(backward), scan_output_directions=list(turned), scan_output_axes=list(axes),
    )  # fmt: skip
    constants = {"axis": numbers(0), "start": np.zeros(3, "f4"), "ones": np.ones(3, "f4")}
    inputs = {"x": ("f4", (LENGTH, 3)), "v": ("f4", (3, LENGTH)), "m": ("?", (LENGTH,))}
    nodes = [made] if kind == "fixed" else [*MASK, *picked, made]
    raw = open_model(nodes, inputs, constants, "a b c d")
    assert has_loop(raw) == (kind == "loop")
    v = RNG.uniform(-1, 1, (3, LENGTH)).astype("f4")
    agrees(raw, [feed | {"v": v} for feed in feeds(0, (LENGTH,) if kind == "fixed" else (1, 4, LENGTH))])


def scan_of_opset_8(lengths: bool) -> bytes:
    """Scans of each sample: sums of rows, and twice each sum; the first operand is the lengths."""
    body = graph([node("Add", ["s", "row"], ["sum"]), node("Add", ["sum", "sum"], ["kept"])], "s row", "sum kept")
    made = node("Scan", ["lengths" if lengths else "", "start", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    inputs = [("start", 1, (2, 3)), ("x", 1, (2, 5, 3)), *([("lengths", 7, (2,))] if lengths else [])]
    whole = helper.make_graph(
        [made], "g", [helper.make_tensor_value_info(*x) for x in inputs],
        [helper.make_empty_tensor_value_info(name) for name in ("last", "all")],
    )  # fmt: skip
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 8)], ir_version=4).SerializeToString()


def test_a_scan_of_opset_8_is_of_each_sample():
    x, start = RNG.integers(-4, 5, (2, 5, 3)).astype("f4"), RNG.integers(-4, 5, (2, 3)).astype("f4")
    last, kept = load(scan_of_opset_8(False)).compile(engine="reference")(start=start, x=x)
    sums = start[:, None] + x.cumsum(1)
    np.testing.assert_array_equal(last, sums[:, -1])
    np.testing.assert_array_equal(kept, 2 * sums)
    with pytest.raises(FormatError, match="lengths of sequences are not supported. Omit operand 0"):
        load(scan_of_opset_8(True))


PARTS = graph(
    [
        node("Mul", ["row", "row"], ["square"]),
        node("ReduceSum", ["square"], ["part"], keepdims=0),
        node("Mul", ["s", "factor"], ["grown"]),
        node("Add", ["grown", "part"], ["sum"]),
        node("Identity", ["part"], ["kept"]),
    ],
    "s row",
    "sum kept",
)
CHOICES = [node("NonZero", ["k"], ["p"]), node("Squeeze", ["p", "axis"], ["j"])]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dynamic", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("backward", [0, 1])
def test_any_axes_of_what_is_scanned_may_be_dynamic(axis, dynamic, backward):
    """Rounds are counted by an axis, of a fixed length or not; other axes leave rows of dynamic lengths."""
    shape = (LENGTH, 4, 5)
    picked, name, inputs, feed = [], "x", {"x": ("f4", shape)}, {}
    for i, a in enumerate(dynamic):
        mask = f"m{a}"
        picked += [
            node("NonZero", [mask], [f"n{a}"]), node("Squeeze", [f"n{a}", "axis"], [f"i{a}"]),
            node("Gather", [name, f"i{a}"], [f"rows{i}"], axis=a),
        ]  # fmt: skip
        name, inputs[mask] = f"rows{i}", ("?", (shape[a],))
    made = node(
        "Scan", ["start", name], ["last", "all"], body=PARTS, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[backward], scan_output_directions=[backward],
    )  # fmt: skip
    constants = {"axis": numbers(0), "start": np.float32(1), "factor": np.float32(2)}
    raw = open_model([*picked, made], inputs, constants, "last all")
    assert has_loop(raw) == (dynamic == (axis,))
    x = RNG.integers(-3, 4, shape).astype("f4")
    for least in (1, 3):
        feed = {f"m{a}": RNG.permutation(shape[a]) < least + i for i, a in enumerate(dynamic)}
        agrees(raw, [{"x": x} | feed])


def test_a_state_may_have_other_lengths_after_a_round():
    """The first sum has three elements, of one; so the body is not built once, unless there is no row."""
    made = node("Scan", ["one", "rows"], ["last", "all"], body=SUMS, num_scan_inputs=1)
    constants = {"axis": numbers(0), "one": np.ones(1, "f4"), "factor": np.float32(2)}
    raw = open_model(
        [*MASK, node("Gather", ["x", "i"], ["rows"]), made], {"x": ("f4", (LENGTH, 3)), "m": ("?", (LENGTH,))},
        constants, "last",
    )  # fmt: skip
    assert not has_loop(raw)
    last = load(raw).compile()
    for count in (0, 1, 4, LENGTH):
        feed = {"x": RNG.integers(-3, 4, (LENGTH, 3)).astype("f4"), "m": RNG.permutation(LENGTH) < count}
        want = np.ones(1, "f4") if count == 0 else 1 + feed["x"][feed["m"]].sum(0)
        np.testing.assert_array_equal(last(**feed)[0], want)


def test_a_state_of_a_dynamic_length_is_scanned_in_written_out_rounds():
    """Its length stays; the scalar of each row is added to it."""
    body = graph([node("Add", ["s", "row"], ["sum"]), node("Add", ["row", "row"], ["kept"])], "s row", "sum kept")
    made = node("Scan", ["rows", "v"], ["last", "all"], body=body, num_scan_inputs=1)
    other = node("Scan", ["rows", "w"], ["last2", "all2"], body=body, num_scan_inputs=1)
    picked = [node("Gather", ["x", "i"], ["rows"]), *CHOICES, node("Gather", ["v", "j"], ["w"])]
    inputs = {"x": ("f4", (LENGTH, 3)), "v": ("f4", (4,)), "m": ("?", (LENGTH,)), "k": ("?", (4,))}
    raw = open_model([*MASK, *picked, made, other], inputs, {"axis": numbers(0)}, "last all last2 all2")
    assert not has_loop(raw)
    more = [{"v": np.arange(4, dtype="f4"), "k": np.array(k, bool)} for k in ([1, 0, 1, 1], [1] * 4, [0, 0, 1, 0])]
    agrees(raw, [a | b for a, b in zip(feeds(), more, strict=True)])


def test_no_room_for_a_row_leaves_the_states_and_collects_nothing():
    body = graph(SUMS.node, "s row", "sum")
    body.output.append(helper.make_tensor_value_info("kept", 1, (3,)))
    raw = scan_model(body, "start", scan_output_axes=[1], scan_output_directions=[1])
    model = load(raw, maximum={"i": 0})
    assert not any(x.op.name == "while_loop" for x in post_order(model.outputs))
    last, kept = model.compile()(**feeds(0, (0,))[0])
    assert (kept.shape, kept.dtype) == ((3, 0), "float32")
    np.testing.assert_array_equal(last, np.ones(3, "f4"))


def two_scanned(first: tuple[int, ...], second: tuple[int, ...], axes: list[int]) -> bytes:
    body = graph([node("Add", ["s", "a"], ["t"]), node("Add", ["t", "b"], ["sum"])], "s a b", "sum")
    made = node("Scan", ["start", "x", "v"], ["last"], body=body, num_scan_inputs=2, scan_input_axes=axes)
    return open_model([made], {"x": ("f4", first), "v": ("f4", second)}, {"start": np.ones(3, "f4")}, "last")


def test_scanned_operands_have_one_length_up_to_a_maximum(monkeypatch):
    agrees(two_scanned((5, 3), (3, 5), [0, 1]), [{"x": np.ones((5, 3), "f4"), "v": np.ones((3, 5), "f4")}])
    for axes, lengths in (([0, 0], "5, 3"), ([1, 1], "3, 5")):
        with pytest.raises(FormatError, match=rf"scanned operands have lengths \[{lengths}\]; give one length up to"):
            load(two_scanned((5, 3), (3, 5), axes))
    monkeypatch.setattr("cgraph.formats.onnx.operators.scans.MOST_TRIPS", LENGTH)
    load(two_scanned((LENGTH, 3), (3, LENGTH), [0, 1]))
    load(scan_model(SUMS, "start"))
    monkeypatch.setattr("cgraph.formats.onnx.operators.scans.MOST_TRIPS", LENGTH - 1)
    with pytest.raises(FormatError, match=r"lengths \[6, 6\]; give one length up to 5"):
        load(two_scanned((LENGTH, 3), (3, LENGTH), [0, 1]))
    with pytest.raises(FormatError, match=r"nothing bounds the rounds to 5.*maximum={'rows': n}"):
        load(scan_model(SUMS, "start"))
    load(scan_model(SUMS, "start"), maximum={"i": 5})
