"""Recurrent layers and attention with lengths that only a run decides, as onnxruntime has them; zero included."""

from typing import Any

import numpy as np
import onnx
import pytest

import cgraph as cg
from cgraph.engine.cpu.engine import CpuEngine
from cgraph.errors import FormatError
from cgraph.formats.onnx import compile_sizes, load
from cgraph.formats.onnx.operators.recurrent import WRITTEN_OUT
from cgraph.ir.traverse import post_order
from tests.support.onnx_open import agrees, node, numbers, open_model
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
LENGTH, BATCH, INPUTS, HIDDEN = 5, 3, 2, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
MASK = [node("NonZero", ["m"], ["n"]), node("Squeeze", ["n", "axis"], ["i"])]
RNG = np.random.default_rng(2)


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("f4")


def rows_of(axis: int = 0, name: str = "x", out: str = "rows") -> Any:
    """The elements along an axis that a mask selects."""
    return node("Gather", [name, "i"], [out], axis=axis)


def feeds(n: int, x: np.ndarray, *counts: int) -> list[dict[str, Any]]:
    return [{"x": x, "m": RNG.permutation(n) < count} for count in counts]


def layer(kind: str, operands: list[str], direction: str, axis: int, extra: dict[str, Any]) -> bytes:
    ways = 2 if direction == "bidirectional" else 1
    constants = {
        "axis": numbers(0),
        "w": floats(ways, GATES[kind] * HIDDEN, INPUTS),
        "r": floats(ways, GATES[kind] * HIDDEN, HIDDEN),
        "h": floats(ways, BATCH, HIDDEN),
        **extra,
    }
    results = "y last cell" if kind == "LSTM" else "y last"
    made = node(kind, operands, results.split(), hidden_size=HIDDEN, direction=direction)
    n = (LENGTH, BATCH)[axis]
    inputs = {"x": ("f4", (LENGTH, BATCH, INPUTS)), "m": ("?", (n,))}
    return open_model([*MASK, rows_of(axis), made], inputs, constants, results)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_sequences_of_open_length(kind, direction):
    raw = layer(kind, ["rows", "w", "r", "", "", "h"], direction, 0, {})
    agrees(raw, feeds(LENGTH, floats(LENGTH, BATCH, INPUTS), 1, 3, 5))


def test_a_sequence_without_steps_leaves_the_state():
    raw = layer("GRU", ["rows", "w", "r", "", "", "h"], "forward", 0, {})
    model = load(raw)
    start = next(x for name, x in model.values.items() if name == "h").op.array
    y, last = model.compile(engine=CpuEngine(poison=True))(**feeds(LENGTH, floats(LENGTH, BATCH, INPUTS), 0)[0])
    assert y.shape == (0, 1, BATCH, HIDDEN)
    np.testing.assert_array_equal(last, start)


@pytest.mark.parametrize("kind", GATES)
def test_samples_of_an_open_number(kind):
    raw = layer(kind, ["rows", "w", "r"], "forward", 1, {})
    agrees(raw, feeds(BATCH, floats(LENGTH, BATCH, INPUTS), 1, 2, 3))


def test_samples_end_before_an_open_length():
    lengths = np.array([1, 2, 2], "i4")
    raw = layer("LSTM", ["rows", "w", "r", "", "lengths", "h", "h"], "bidirectional", 0, {"lengths": lengths})
    agrees(raw, feeds(LENGTH, floats(LENGTH, BATCH, INPUTS), 2, 4, 5))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_the_steps_of_the_length_are_a_loop_and_those_of_few_steps_are_written_out(kind, direction):
    function = agrees(
        few_steps(kind, direction, WRITTEN_OUT), feeds(WRITTEN_OUT, floats(WRITTEN_OUT, BATCH, INPUTS), 1, 4)
    )
    assert "while_loop" not in names_of_steps(function)
    function = agrees(few_steps(kind, direction, WRITTEN_OUT + 1), feeds(5, floats(5, BATCH, INPUTS), 1, 3, 5))
    assert "while_loop" in names_of_steps(function)


def few_steps(kind: str, direction: str, length: int) -> bytes:
    """A layer over the rows that a mask of `length` selects."""
    ways = 2 if direction == "bidirectional" else 1
    shapes = {"w": (ways, GATES[kind] * HIDDEN, INPUTS), "r": (ways, GATES[kind] * HIDDEN, HIDDEN)}
    constants = {"axis": numbers(0), **{name: floats(*shape) for name, shape in shapes.items()}}
    made = node(kind, ["rows", "w", "r"], ["y", "last"], hidden_size=HIDDEN, direction=direction)
    inputs = {"x": ("f4", (length, BATCH, INPUTS)), "m": ("?", (length,))}
    return open_model([*MASK, rows_of(0), made], inputs, constants, "y last")


def names_of_steps(function: Any) -> set[str]:
    return {step.node.name for step in function.compiled.steps}


def test_a_loop_of_steps_has_as_many_nodes_for_any_maximum():
    counts = [len(post_order(load(few_steps("LSTM", "forward", n)).outputs)) for n in (8, 5000)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_saved_layer_of_open_length_gives_the_same_bits_with_any_number_of_threads(tmp_path, threads):
    model, feed = load(few_steps("GRU", "bidirectional", 9)), feeds(9, floats(9, BATCH, INPUTS), 6)[0]
    want = model.compile(threads=1)(**feed)
    model.compile(threads=threads).save(tmp_path / "layer")
    for got, other in zip(cg.load(tmp_path / "layer")(**feed), want, strict=True):
        np.testing.assert_array_equal(got, other)


def test_sequences_and_samples_of_open_numbers_batch_first():
    constants = {"axis": numbers(0), "w": floats(1, 4 * HIDDEN, INPUTS), "r": floats(1, 4 * HIDDEN, HIDDEN)}
    both = [*MASK, rows_of(0, "x", "samples"), rows_of(1, "samples", "rows")]
    swapped = node("Transpose", ["rows"], ["turned"], perm=[1, 0, 2])
    made = node("LSTM", ["turned", "w", "r"], ["y", "last"], hidden_size=HIDDEN, direction="reverse")
    raw = open_model([*both, swapped, made], {"x": ("f4", (6, 6, INPUTS)), "m": ("?", (6,))}, constants, "y last")
    agrees(raw, feeds(6, floats(6, 6, INPUTS), 1, 4, 6))


def test_inputs_of_an_open_number_are_refused():
    turned = [*MASK, rows_of(0), node("Transpose", ["rows"], ["wide"], perm=[1, 2, 0])]
    made = node("GRU", ["wide", "w", "r"], ["y"], hidden_size=HIDDEN)
    inputs = {"x": ("f4", (LENGTH, BATCH, INPUTS)), "m": ("?", (LENGTH,))}
    constants = {"axis": numbers(0), "w": floats(1, 12, LENGTH), "r": floats(1, 12, HIDDEN)}
    with pytest.raises(
        FormatError, match=r"GRU.*axis 2 of operand 0, float32\[3,2,≤5\], is known only at run time. Give shapes="
    ):
        load(open_model([*turned, made], inputs, constants))


# -- attention --------------------------------------------------------------------------------------------------------

HEADS, SIZE = 2, 4
PACKED = {"q_num_heads": HEADS, "kv_num_heads": HEADS}


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, past: int = 0, mask: Any = 0.0) -> np.ndarray:
    """Attention of ``[batch, heads, length, size]`` in NumPy, the meaning of the operator."""
    scores = q @ k.swapaxes(2, 3) / np.sqrt(np.float32(q.shape[3])) + mask
    if causal:
        scores = np.where(np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None] + past, scores, -np.inf)
    return softmax(scores) @ v


def attention_model(operands: list[str], inputs: dict[str, tuple], results: str = "y", **attributes: Any) -> bytes:
    made = node("Attention", operands, results.split(), **attributes)
    nodes = [*MASK, rows_of(2, "x", "rows"), made]
    raw = open_model(
        nodes, {"x": ("f4", (2, HEADS, 5, SIZE)), "m": ("?", (5,)), **inputs}, {"axis": numbers(0)}, results
    )
    graph = onnx.load_from_string(raw)
    graph.opset_import[0].version = 23
    return graph.SerializeToString()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_queries_keys_and_values_of_one_open_length(causal, count):
    raw = attention_model(["rows", "rows", "rows"], {}, is_causal=int(causal))
    (feed,) = feeds(5, floats(2, HEADS, 5, SIZE), count)
    (got,) = load(raw).compile(engine=CpuEngine(poison=True))(**feed)
    rows = feed["x"][:, :, feed["m"]]
    assert got.shape == rows.shape
    assert_near(got, attended(rows, rows, rows, causal), "float32 products")


@pytest.mark.parametrize("count", [1, 4])
def test_keys_of_an_open_length_follow_the_past_and_have_a_mask(count):
    shapes = {"q": (2, HEADS, 3, SIZE), "past": (2, HEADS, 2, SIZE)}
    inputs = {name: ("f4", shape) for name, shape in shapes.items()}
    raw = attention_model(["q", "rows", "rows", "", "past", "past"], inputs, "y k v", is_causal=1)
    (feed,) = feeds(5, floats(2, HEADS, 5, SIZE), count)
    feed |= {name: floats(*shape) for name, shape in shapes.items()}
    y, k, v = load(raw).compile(engine=CpuEngine(poison=True))(**feed)
    keys = np.concatenate([feed["past"], feed["x"][:, :, feed["m"]]], 2)
    np.testing.assert_array_equal(k, keys)
    np.testing.assert_array_equal(v, keys)
    assert_near(y, attended(feed["q"], keys, keys, True, 2), "float32 products")


def test_no_queries_give_no_rows():
    raw = attention_model(["rows", "x", "x"], {})
    for count in (0, 2):
        (feed,) = feeds(5, floats(2, HEADS, 5, SIZE), count)
        (got,) = load(raw).compile()(**feed)
        assert got.shape == (2, HEADS, count, SIZE)
        assert_near(got, attended(feed["x"][:, :, feed["m"]], feed["x"], feed["x"], False), "float32 products")


def test_scores_of_an_open_length_are_refused():
    raw = attention_model(["rows", "rows", "rows"], {}, "y k v scores")
    with pytest.raises(FormatError, match=r"Attention.*result 3 and softmax_precision are not supported with a length"):
        load(raw)


def test_compile_sizes_takes_open_lengths():
    """Sizes of calls, and counts of runs; zero of both."""
    raw = open_model([node("NonZero", ["x"], ["y"])], {"x": ("f4", ("N",))})
    for most in (None, {"N": 8}):
        function = compile_sizes(raw, most)
        for x in (np.arange(4.0, dtype="f4"), np.zeros(3, "f4"), np.arange(8.0, dtype="f4"), np.zeros(0, "f4")):
            np.testing.assert_array_equal(function(x)[0], np.array(np.nonzero(x)))
