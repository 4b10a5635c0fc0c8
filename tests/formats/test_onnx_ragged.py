"""Every operator on rows that a mask selects, so that their number is known only at run time, beside onnxruntime."""

from typing import Any

import numpy as np
import pytest

from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from tests.support.onnx_open import agrees, node, numbers, open_model
from tests.support.tolerance import assert_near

pytest.importorskip("onnxruntime")
ROWS = [
    node("NonZero", ["m"], ["places"]),
    node("Squeeze", ["places", "zero"], ["i"]),
    node("Gather", ["x", "i"], ["r"]),
]
GIVEN = {"x": ("f4", (4, 3)), "m": ("?", (4,))}
CONSTANTS = {
    "zero": numbers(0),
    "one": numbers(1),
    "two": numbers(2),
    "three": numbers(3),
    "minus": numbers(-1),
    "n0": np.int64(0),
    "n1": np.int64(1),
    "n3": np.int64(3),
    "f0": np.float32(0),
    "far": numbers(2**63 - 1),
    "start": numbers(-(2**63)),
}
MASKS = ([1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0])


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype("f4")


def rows_of(*masks: Any) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(7)
    return [{"x": rng.normal(size=(4, 3)).astype("f4"), "m": np.array(m, bool)} for m in masks]


def case(*nodes: tuple, out: str = "y", **constants: Any) -> tuple:
    """Nodes as kind, operands, results and attributes."""
    made = [
        node(kind, read.split(), written.split(), **(more[0] if more else {})) for kind, read, written, *more in nodes
    ]
    return made, constants, out


W, B = drawn(3, 5), drawn(5)
COUNT = (("Shape", "r", "shape"), ("Gather", "shape n0", "count"))
SUMS = (("ReduceSum", "r one", "s", {"keepdims": 0}), ("Shape", "s", "n"), ("Min", "n two", "k"))
CASES = {
    "the rows": case(("Identity", "r", "y")),
    "a row added": case(("Add", "r b", "a"), ("Relu", "a", "y"), b=drawn(3)),
    "a choice": case(("Greater", "r f0", "g"), ("Where", "g r f0", "y")),
    "clipped": case(("Clip", "r f0", "y")),
    "like": case(("CastLike", "i r", "y")),
    "rows times a matrix": case(("MatMul", "r w", "y"), w=W),
    "a matrix times rows": case(("Transpose", "r", "t"), ("MatMul", "v t", "y"), v=drawn(5, 3)),
    "in a batch": case(("Unsqueeze", "r zero", "u"), ("MatMul", "u w", "y"), w=drawn(2, 3, 5)),
    "a row of sums": case(("Transpose", "r", "t"), ("MatMul", "t r", "y")),
    "gemm": case(("Gemm", "r w b", "y", {"alpha": 0.5}), w=W, b=B),
    "gemm turned": case(("Gemm", "r r", "y", {"transA": 1})),
    "einsum over rows": case(("Einsum", "r r", "y", {"equation": "ij,ik->jk"})),
    "einsum of rows": case(("Einsum", "r r", "y", {"equation": "ij,kj->ik"})),
    "attention": case(
        ("Transpose", "r", "t"), ("MatMul", "r t", "s"), ("Softmax", "s", "p", {"axis": -1}), ("MatMul", "p r", "y")
    ),
    "layer norm": case(("LayerNormalization", "r w b", "y"), w=drawn(3), b=drawn(3)),
    "length of rows": case(("LpNormalization", "r", "y", {"axis": 1})),
    "samples": case(("Unsqueeze", "r two", "u"), ("Conv", "u w", "y"), w=drawn(2, 3, 1)),
    "a pool": case(("Unsqueeze", "r two", "u"), ("GlobalAveragePool", "u", "y")),
    "as bytes and back": case(
        ("QuantizeLinear", "r scale zero_point", "q"),
        ("DequantizeLinear", "q scale zero_point", "y"),
        scale=np.float32(0.1),
        zero_point=np.uint8(128),
    ),
    "scales for columns": case(
        ("QuantizeLinear", "r scale zero_point", "y", {"axis": 1}),
        scale=np.array([0.1, 0.2, 0.3], "f4"),
        zero_point=np.array([0, 128, 7], "u1"),
    ),
    "running sums": case(("CumSum", "r n0", "y")),
    "running sums from behind": case(("CumSum", "r n0", "y", {"reverse": 1, "exclusive": 1})),
    "shape": case(("Shape", "r", "y")),
    "part of a shape": case(("Shape", "r", "y", {"start": 1})),
    "size": case(("Size", "r", "y")),
    "flat": case(("Reshape", "r minus", "y")),
    "flat columns": case(("Transpose", "r", "t"), ("Reshape", "t minus", "y")),
    "columns in front": case(("Reshape", "r s", "y"), s=numbers(3, -1)),
    "an axis between": case(("Reshape", "r s", "y"), s=numbers(-1, 1, 3)),
    "by its count": case(
        *COUNT, ("Unsqueeze", "count zero", "c"), ("Concat", "c three one", "s", {"axis": 0}), ("Reshape", "r s", "y")
    ),
    "by three times its count": case(
        *COUNT, ("Mul", "count n3", "c"), ("Unsqueeze", "c zero", "s"), ("Reshape", "r s", "y")
    ),
    "flattened": case(("Unsqueeze", "r two", "u"), ("Flatten", "u", "y", {"axis": 2})),
    "unsqueezed and back": case(("Unsqueeze", "r zero", "u"), ("Squeeze", "u zero", "y")),
    "joined": case(("Concat", "r b r", "y", {"axis": 0}), b=drawn(2, 3)),
    "joined as columns": case(("Concat", "r r", "y", {"axis": 1})),
    "split": case(("Split", "r parts", "y z", {"axis": 1}), out="y z", parts=numbers(1, 2)),
    "the first two": case(("Slice", "r zero two", "y")),
    "the last two": case(("Slice", "r last far", "y"), last=numbers(-2)),
    "backwards": case(("Slice", "r minus start zero minus", "y")),
    "every other": case(("Slice", "r zero far zero two", "y")),
    "some columns": case(("Slice", "r one three one", "y")),
    "repeated": case(("Tile", "r times", "y"), times=numbers(2, 2)),
    "expanded": case(("Unsqueeze", "r zero", "u"), ("Expand", "u s", "y"), s=numbers(2, 1, 3)),
    "padded": case(("Pad", "r widths", "y"), widths=numbers(1, 0, 2, 1)),
    "cut by pads": case(("Pad", "r widths", "y"), widths=numbers(0, -1, 1, 0)),
    "zeros of its shape": case(("Shape", "r", "s"), ("ConstantOfShape", "s", "y")),
    "a row of its length": case(*COUNT, ("Range", "n0 count n1", "y")),
    "largest": case(*SUMS, ("TopK", "s k", "y z", {"axis": 0}), out="y z"),
    "smallest": case(*SUMS, ("TopK", "s k", "y z", {"axis": 0, "largest": 0}), out="y z"),
    "columns by place": case(("Gather", "r g", "y", {"axis": 1}), g=numbers(-1, 0)),
    "an element of each": case(("ArgMax", "r", "p", {"axis": 1}), ("GatherElements", "r p", "y", {"axis": 1})),
    "triangle": case(("Transpose", "r", "t"), ("MatMul", "r t", "s"), ("Trilu", "s", "y")),
    "places in it": case(("Greater", "r f0", "g"), ("NonZero", "g", "y")),
    "kept of it": case(
        ("Slice", "i zero two", "c"), ("Cast", "c", "b", {"to": 9}), ("Compress", "r b", "y", {"axis": 0})
    ),
    "different ones": case(("Sign", "r", "s"), ("Unique", "s", "y a b c"), out="y a b c"),
    "written back": case(("Unsqueeze", "i one", "u"), ("Neg", "r", "v"), ("ScatterND", "x u v", "y")),
    "added back": case(
        ("Unsqueeze", "i one", "u"),
        ("Expand", "u s", "e"),
        ("ScatterElements", "x e r", "y", {"reduction": "add"}),
        s=numbers(1, 3),
    ),
    "one-hot": case(("OneHot", "i depth values", "y"), depth=numbers(4), values=np.array([0, 1], "f4")),
    "kept in a sequence": case(
        ("SequenceConstruct", "r x", "q"),
        ("ConcatFromSequence", "q", "y", {"axis": 0}),
    ),
}
NOT_EMPTY = {
    "row from behind": case(("Gather", "r g", "y"), g=numbers(-1, 0)),
    "added to rows": case(
        ("ScatterND", "r g v", "y", {"reduction": "add"}), g=np.array([[-1], [0]], np.int64), v=drawn(2, 3)
    ),
    "copied axis": case(("Reshape", "r s", "y"), s=numbers(0, 3)),
}
for _kind in ("ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Softmax", "LogSoftmax", "Hardmax"):
    for _axis in (0, 1):
        _one = (_kind, "r", "y", {"axis": _axis}) if "max" in _kind else (_kind, f"r {('zero', 'one')[_axis]}", "y")
        CASES[f"{_kind} {_axis}"] = case(_one)
for _kind in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp"):
    NOT_EMPTY[f"{_kind} of all"] = case((_kind, "r", "y", {"keepdims": 0}))
    NOT_EMPTY[f"{_kind} down"] = case((_kind, "r zero", "y"))
    CASES[f"{_kind} across"] = case((_kind, "r one", "y", {"keepdims": 0}))
for _kind in ("ArgMax", "ArgMin"):
    NOT_EMPTY[_kind] = case((_kind, "r", "y", {"axis": 0}))


@pytest.mark.parametrize("name", [*CASES, *NOT_EMPTY])
def test_rows_of_a_number_known_only_when_run(name):
    nodes, constants, outputs = (CASES | NOT_EMPTY)[name]
    raw = open_model([*ROWS, *nodes], GIVEN, CONSTANTS | constants, outputs)
    agrees(raw, rows_of(*(m for m in MASKS if any(m) or name in CASES)))


def test_the_mean_of_no_rows_is_nan_as_numpys():
    nodes, constants, _ = NOT_EMPTY["ReduceMean down"]
    function = load(open_model([*ROWS, *nodes], GIVEN, CONSTANTS | constants)).compile()
    assert np.isnan(function(**rows_of(MASKS[1])[0])[0]).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_and_the_reference_give_the_same_bits(threads):
    nodes, constants, _ = CASES["attention"]
    model = load(open_model([*ROWS, *nodes], GIVEN, CONSTANTS | constants))
    (feed,) = rows_of(MASKS[0])
    (want,) = model.compile(threads=1)(**feed)
    np.testing.assert_array_equal(model.compile(threads=threads)(**feed)[0], want)
    assert_near(model.compile(engine="reference")(**feed)[0], want, "float32 sums near zero")


def test_nothing_behind_a_value_is_ever_seen():
    nodes = [node("Div", ["f0", "f0"], ["nan"]), node("Where", ["c", "x", "nan"], ["holes"]), *ROWS[:2]]
    nodes += [node("Gather", ["holes", "i"], ["r"]), node("ReduceSum", ["r", "zero"], ["y"])]
    function = load(open_model(nodes, GIVEN, CONSTANTS | {"c": np.array(MASKS[0], bool)[:, None]})).compile()
    (feed,) = rows_of(MASKS[0])
    assert_near(function(**feed)[0][0], feed["x"][feed["m"]].sum(0), "float32 sums")


def test_an_operator_that_takes_no_open_length_says_so_and_what_to_do():
    with pytest.raises(FormatError, match=r"Det.*float32\[≤4,3\], of a length known only at run time.*constants=.'m'"):
        load(open_model([*ROWS, node("Det", ["r"], ["y"])], GIVEN, CONSTANTS))
    with pytest.raises(FormatError, match=r"ReverseSequence.*known only at run time"):
        load(open_model([*ROWS, node("ReverseSequence", ["r", "i"], ["y"])], GIVEN, CONSTANTS))
