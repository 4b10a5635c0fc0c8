"""ONNX files of some hundred bytes that describe gigabytes or hours: refused at once, or free until they run."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.fuzz.child import Child
from cgraph.formats.allowance import Allowance
from cgraph.formats.constants import Evaluator
from cgraph.formats.onnx import load
from cgraph.ops.leaf import Const, Var
from tests.support.onnx_models import FLOAT, INT32, INT64, model_of, one

WIDE = 1 << 26


def doubled_concat():
    """A constant of 2**27 numbers, the largest of which is a size."""
    nodes = [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(27)]
    nodes += [helper.make_node("ReduceMax", ["c27"], ["s"], keepdims=1), helper.make_node("Reshape", ["x", "s"], ["y"])]
    return model_of(nodes, [("x", FLOAT, (1,))], {"c0": np.array([1])})


def doubled_functions():
    """Each of 40 functions calls the next one twice."""
    functions = []
    for i in range(40):
        last = [helper.make_node("Relu", ["v"], ["w"])]
        calls = [helper.make_node(f"F{i + 1}", [a], [b], domain="d") for a, b in (("v", "a"), ("a", "w"))]
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("d", 1)]
        functions.append(helper.make_function("d", f"F{i}", ["v"], ["w"], calls if i < 39 else last, opsets))
    return model_of([helper.make_node("F0", ["x"], ["y"], domain="d")], [("x", FLOAT, (2,))], functions=functions)


def loop_in_loop():
    """10,000 turns of 10,000 turns of one addition."""

    def turning(body, name):
        inputs = [("i", INT64, ()), ("c", TensorProto.BOOL, ()), ("s", FLOAT, ())]
        values = [helper.make_tensor_value_info(f"{name}{v}", *rest) for v, *rest in inputs]
        ends = [
            helper.make_tensor_value_info(f"{name}c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info(f"{name}n", FLOAT, ()),
        ]
        return helper.make_graph(body, name, values, ends)

    inner = turning([helper.make_node("Add", ["as", "as"], ["an"])], "a")
    outer = turning([helper.make_node("Loop", ["trips", "go", "bs"], ["bn"], body=inner)], "b")
    nodes = [helper.make_node("Loop", ["trips", "go", "x"], ["y"], body=outer)]
    return model_of(nodes, [("x", FLOAT, ())], {"trips": np.array(10_000), "go": np.array(True)})


def branch_in_loop():
    """Every turn looks at the names of a large branch that is not taken."""
    result = [helper.make_tensor_value_info("r", FLOAT, None)]
    steps = [helper.make_node("Relu", ["s"], [f"r{i}" if i else "r"]) for i in range(30_000)]
    large = helper.make_graph(steps, "l", [], result)
    small = helper.make_graph([helper.make_node("Relu", ["s"], ["r"])], "m", [], result)
    given = [("i", INT64, ()), ("c", TensorProto.BOOL, ()), ("s", FLOAT, ())]
    values = [helper.make_tensor_value_info(*x) for x in given]
    body = helper.make_graph(
        [helper.make_node("If", ["go"], ["n"], then_branch=small, else_branch=large)],
        "b",
        values,
        [helper.make_tensor_value_info("c", TensorProto.BOOL, ()), helper.make_tensor_value_info("n", FLOAT, ())],
    )
    nodes = [helper.make_node("Loop", ["trips", "go", "x"], ["y"], body=body)]
    return model_of(nodes, [("x", FLOAT, ())], {"trips": np.array(10_000), "go": np.array(True)})


def suppressed(count):
    """Boxes that do not overlap, all of which are kept."""
    boxes = np.zeros((1, count, 4), "f4")
    boxes[0, :, 0] = np.arange(count) * 2
    boxes[0, :, 2:] = np.stack([boxes[0, :, 0] + 1, np.ones(count)], -1)
    scores = np.random.default_rng(0).random((1, 1, count), np.float32)
    node = helper.make_node("NonMaxSuppression", ["b", "s", "m"], ["y"])
    return model_of([node], constants={"b": boxes, "s": scores, "m": np.array([count])})


def sparse_constant():
    """Two of 2**36 numbers."""
    values = numpy_helper.from_array(np.ones(2, "f4"), "w")
    tensor = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([0, 9])), (1 << 18, 1 << 18))
    nodes = [helper.make_node("Constant", [], ["c"], sparse_value=tensor), helper.make_node("Add", ["x", "c"], ["y"])]
    return model_of(nodes, [("x", FLOAT, (1,))])


def wide(name, *shape, dtype=FLOAT):
    return (name, dtype, shape)


HUGE = {  # files of up to some thousand bytes (boxes: 400 kB) that describe gigabytes, or hours
    "concat doubled": doubled_concat(),
    "functions doubled": doubled_functions(),
    "a loop in a loop": loop_in_loop(),
    "a branch in a loop": branch_in_loop(),
    "suppressed boxes": suppressed(20_000),
    "Split": one("Split", [wide("x", 6)], opset=18, num_outputs=1 << 40),
    "SplitToSequence": one("SplitToSequence", [wide("x", 1 << 30)]),
    "LSTM": one("LSTM", [wide("x", 1 << 20, 1, 1), wide("w", 1, 4, 1), wide("r", 1, 4, 1)], opset=18, hidden_size=1),
    "TfIdfVectorizer": one(
        "TfIdfVectorizer",
        [wide("x", 12, dtype=INT32)],
        opset=9,
        max_gram_length=2,
        max_skip_count=5,
        min_gram_length=2,
        mode="TF",
        ngram_counts=[64, 2147483647],
        ngram_indexes=[0, 1, 2],
        pool_int64s=[2, 3, 5],
    ),
    "TfIdfVectorizer's columns": one(
        "TfIdfVectorizer",
        [wide("x", 12, dtype=INT32)],
        opset=9,
        max_gram_length=1,
        max_skip_count=0,
        min_gram_length=1,
        mode="TF",
        ngram_counts=[0],
        ngram_indexes=[1 << 40],
        pool_int64s=[2],
    ),
    "GatherND": one("GatherND", [wide("x", WIDE, 1), wide("i", WIDE, 1, dtype=INT64)], batch_dims=1),
    "OneHot": one("OneHot", [wide("i", 8, dtype=INT64)], {"d": np.int64(WIDE), "v": np.array([0, 1.0], "f4")}),
    "AveragePool": one(
        "AveragePool", [wide("x", 1, 1, 32, 4096, 32)], opset=22, kernel_shape=[5] * 3, dilations=[2] * 3
    ),
    "MaxPool": one("MaxPool", [wide("x", 1, 1, 8, 8)], kernel_shape=[1 << 31] * 2, pads=[1 << 31] * 4),
    "LpPool": one("LpPool", [wide("x", 1, 1, 1 << 14, 1 << 14)], kernel_shape=[9, 9]),
    "ReverseSequence": one("ReverseSequence", [wide("x", WIDE, 2), wide("n", 2, dtype=INT64)]),
    "Hardmax": one("Hardmax", [wide("x", 2, WIDE)]),
    "Col2Im": one("Col2Im", [wide("x", 1, 1 << 28, 4)], {"s": np.array([16385] * 2), "b": np.array([16384] * 2)}),
    "DeformConv": one("DeformConv", [wide("x", 1, 1, WIDE, 4), wide("f", 1, 1, 1, 1), wide("o", 1, 2, WIDE, 4)]),
    "Pad": one("Pad", [wide("x", 4)], {"p": np.array([0, WIDE])}, mode="wrap"),
    "Resize": one(
        "Resize",
        [wide("x", 1, 1, WIDE)],
        {"r": np.zeros(0, "f4"), "s": np.float32([1, 1, 1e-7])},
        antialias=1,
        mode="linear",
    ),
    "EyeLike": one("EyeLike", [wide("x", 1 << 16, 1 << 16)]),
    "Range": one("Range", [], {"a": np.int64(0), "b": np.int64(1 << 40), "c": np.int64(1)}),
    "AffineGrid": one("AffineGrid", [wide("t", 1, 2, 3)], {"n": np.array([1, 1, 1 << 15, 1 << 15])}),
    "HannWindow": one("HannWindow", [], {"n": np.int64(1 << 40)}),
    "MelWeightMatrix": one(
        "MelWeightMatrix",
        [],
        {"n": np.int64(1 << 15), "l": np.int64(1 << 16), "r": np.int64(8000), "a": np.float32(0), "b": np.float32(3e3)},
    ),
    "DFT": one("DFT", [wide("x", 1, 16, 1)], {"n": np.int64(1 << 30)}),
    "DFT back": one("DFT", [wide("x", 1, 16, 2)], {"n": np.int64(1 << 30)}, inverse=1, onesided=1),
    "Upsample": one("Upsample", [wide("x", 1, 1, 1, 1)], {"s": np.float32([1, 1, 1e9, 1])}, opset=9),
    "a loss over many classes": one("NegativeLogLikelihoodLoss", [wide("x", 1, WIDE), wide("t", 1, dtype=INT64)]),
    "a sparse constant": sparse_constant(),
    "LinearAttention": one(
        "LinearAttention",
        [wide(n, 1, 1 << 20, 4) for n in "qkv"],
        opset=25,
        q_num_heads=1,
        kv_num_heads=1,
        update_rule="linear",
    ),
}


@pytest.fixture(scope="module")
def child():
    with Child("onnx") as found:
        yield found


@pytest.mark.parametrize("name", HUGE)
def test_a_small_file_that_describes_something_huge_is_refused_at_once(name, child, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(HUGE[name])
    found = child.outcome(path)
    assert found.kind == "refused" and "is not supported" not in found.text, found


CHEAP = {  # what takes nothing until it is compiled or run, from the length of an axis
    "ConstantOfShape": lambda n: one("ConstantOfShape", [], {"s": np.array([n >> 6, n >> 6])}),
    "ScatterElements": lambda n: one(
        "ScatterElements",
        [wide("x", n >> 13, 1 << 13), wide("i", n >> 13, 1 << 13, dtype=INT64), wide("u", n >> 13, 1 << 13)],
    ),
    "Trilu": lambda n: one("Trilu", [wide("x", n >> 12, 1 << 14)]),
    "GatherElements": lambda n: one("GatherElements", [wide("x", n), wide("i", n, dtype=INT64)]),
    "RoiAlign": lambda n: one(
        "RoiAlign",
        [wide("x", 1, 1, 8, 8), wide("r", 1, 4), wide("b", 1, dtype=INT64)],
        output_height=n,
        output_width=n,
        sampling_ratio=n,
    ),
    "a wide window": lambda n: one("MaxPool", [wide("x", 1, 1, n)], kernel_shape=[3]),
}


@pytest.mark.parametrize("name", CHEAP)
def test_what_is_huge_only_when_it_runs_is_read(name, child, tmp_path):
    """A small one of its kind is read first: what a process imports on the way is none of its bytes."""
    path = tmp_path / "net.onnx"
    for length in (1 << 14, WIDE):
        path.write_bytes(CHEAP[name](length))
        result = child.outcome(path)
        assert result.kind == "model", result
    assert result.nbytes < 4 << 20, result


def test_a_filled_constant_is_the_same_as_one_that_is_stored():
    image = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype("f4")
    shape, value = np.array([80, 8, 3, 3]), numpy_helper.from_array(np.float32([0.5]))
    filled = [
        helper.make_node("ConstantOfShape", ["s"], ["f"], value=value),
        helper.make_node("Conv", ["x", "f"], ["y"]),
    ]
    stored = [helper.make_node("Conv", ["x", "f"], ["y"])]
    inputs = [("x", FLOAT, image.shape)]
    functions = [
        load(model_of(filled, inputs, {"s": shape})).compile(),
        load(model_of(stored, inputs, {"f": np.full(shape, 0.5, "f4")})).compile(),
    ]
    one_result, other = (function(image)[0] for function in functions)
    np.testing.assert_array_equal(one_result, other)
    assert functions[0].nbytes == functions[1].nbytes


def test_many_questions_about_a_long_chain_take_time_in_proportion():
    """Every node of a chain is looked at once, though each of many operators asks whether it depends on an input."""
    known = Evaluator(Allowance(0))
    x = chain = Var((2,))
    for _ in range(2000):
        chain = chain * 2.0
        assert known.is_open(chain)
    assert len(known.opened) < 3 * 2000 and not known.is_open(Const(1.0) + 1.0) and known.is_open(x)
