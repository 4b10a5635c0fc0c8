"""Files that onnxruntime's own quantiser writes: computed on bytes, and what onnxruntime computes."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cgraph.formats.onnx import load
from cgraph.ir.traverse import post_order
from cgraph.ops.physical.byte_matmul import ByteMatmul
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul
from cgraph.passes.integers.compute_integers import compute_integers
from tests.support.tolerance import assert_near

ort = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
UNSIGNED, SIGNED = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
QDQ, QOPERATOR = quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator
SHAPE = (1, 3, 20, 20)
STATIC = {"QDQ, unsigned": (QDQ, UNSIGNED), "QDQ, signed": (QDQ, SIGNED), "QOperator": (QOPERATOR, UNSIGNED)}


class Pictures:
    """What calibration reads. Changes: each picture is given once."""

    def __init__(self, shape=SHAPE):
        rng = np.random.default_rng(1)
        self.left = iter([{"x": rng.standard_normal(shape).astype("f4")} for _ in range(3)])

    def get_next(self):
        return next(self.left, None)


def network():
    """Convolutions, one with a filter for each channel, a pool, a concat, a mean and a product."""
    rng = np.random.default_rng(0)
    nodes, constants = [], {}

    def constant(name, *shape):
        constants[name] = (rng.standard_normal(shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype("f4")
        return name

    def conv(x, y, channels, filters, window, groups=1, stride=1):
        weights = constant(f"{y}_w", filters, channels // groups, window, window), constant(f"{y}_b", filters)
        pads = [window // 2] * 4
        nodes.append(helper.make_node("Conv", [x, *weights], [y], pads=pads, group=groups, strides=[stride] * 2))
        return y

    def then(kind, xs, y, **attributes):
        nodes.append(helper.make_node(kind, xs, [y], name=y, **attributes))
        return y

    first = then("Relu", [conv("x", "a", 3, 24, 3)], "b")
    pooled = then("MaxPool", [first], "c", kernel_shape=[2, 2], strides=[2, 2])
    deep = then("Clip", [conv(pooled, "d", 24, 24, 3, 24), constant("low"), constant("high")], "e")
    constants |= {"low": np.float32(0), "high": np.float32(6)}
    joined = then("Concat", [conv(deep, "f", 24, 32, 1), conv(deep, "g", 24, 16, 3, 1)], "h", axis=1)
    mean = then("GlobalAveragePool", [conv(joined, "i", 48, 20, 1)], "j")
    flat = then("Flatten", [mean], "k")
    then("Gemm", [flat, constant("m", 10, 20), constant("n", 10)], "y", transB=1)
    return nodes, constants, SHAPE


def perceptron():
    """Two products of matrices."""
    rng = np.random.default_rng(0)
    sizes = {"v": (24, 40), "w": (40, 10)}
    constants = {name: (rng.standard_normal(size) / 5).astype("f4") for name, size in sizes.items()}
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    return nodes, constants, (6, 24)


def scores():
    """Scores of attention and their product with values: products of two computed sides, of matrices and of batches."""
    rng = np.random.default_rng(0)
    constants = {name: (rng.standard_normal((24, 24)) / 5).astype("f4") for name in "qkv"}
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}x"]) for name in "qkv"]
    nodes += [
        helper.make_node("Transpose", ["kx"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["qx", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "vx"], ["y"]),
    ]
    return nodes, constants, (2, 9, 24)


def written(path, nodes, constants, shape):
    named = [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], named), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return str(path)


def both(path, value, optimised=True):
    """What a file gives here and in onnxruntime, whose optimised products of bytes round another way."""
    model, options = load(path), ort.SessionOptions()
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return model, model.compile()(value)[0], session.run(None, {"x": value})[0]


@pytest.mark.parametrize("form", STATIC)
def test_static_files_are_computed_on_bytes(form, tmp_path):
    format_, kind = STATIC[form]
    source, path = written(tmp_path / "float.onnx", *network()), tmp_path / "bytes.onnx"
    more = {"quant_format": format_, "activation_type": kind, "weight_type": SIGNED, "per_channel": True}
    more["reduce_range"] = True  # seven bits: onnxruntime's sums of pairs saturate without VNNI
    quantization.quantize_static(source, str(path), Pictures(), **more)
    value = np.random.default_rng(2).standard_normal(SHAPE).astype("f4")
    model, got, want = both(path, value)
    order = post_order(compute_integers(tuple(model.outputs)))
    assert [sum(isinstance(x.op, op) for x in order) for op in (IntegerConv, IntegerMatmul)] == [5, 1]
    assert not any(x.op.name in ("conv2d", "matmul") for x in order)
    assert_near(got, want, "float32 formulas")


@pytest.mark.parametrize("form", ["QDQ, unsigned", "QOperator"])
def test_products_of_two_computed_sides_are_computed_on_bytes(form, tmp_path):
    format_, kind = STATIC[form]
    nodes, constants, shape = scores()
    source, path = written(tmp_path / "float.onnx", nodes, constants, shape), tmp_path / "bytes.onnx"
    more = {"quant_format": format_, "activation_type": kind, "weight_type": SIGNED, "reduce_range": True}
    quantization.quantize_static(source, str(path), Pictures(shape), **more)
    value = np.random.default_rng(2).standard_normal(shape).astype("f4")
    model, got, want = both(path, value, optimised=False)
    order = post_order(compute_integers(tuple(model.outputs)))
    assert [sum(isinstance(x.op, op) for x in order) for op in (IntegerMatmul, ByteMatmul)] == [3, 2]
    assert_near(got, want, "float32 products by their largest")


def test_dynamic_files_add_up_bytes(tmp_path):
    source, path = written(tmp_path / "float.onnx", *perceptron()), tmp_path / "bytes.onnx"
    quantization.quantize_dynamic(source, str(path), weight_type=SIGNED)
    value = np.random.default_rng(2).standard_normal((6, 24)).astype("f4")
    model, got, want = both(path, value)
    order = post_order(compute_integers(tuple(model.outputs)))
    assert sum(isinstance(x.op, IntegerMatmul) for x in order) == 2
    assert_near(got, want, "float32 products by their largest")


def test_what_quantized_files_give_is_near_the_floats(tmp_path):
    source, path = written(tmp_path / "float.onnx", *network()), tmp_path / "bytes.onnx"
    quantization.quantize_static(source, str(path), Pictures(), activation_type=UNSIGNED, weight_type=SIGNED)
    value = np.random.default_rng(2).standard_normal(SHAPE).astype("f4")
    (floats,), (got,) = load(source).compile()(value), load(path).compile()(value)
    assert np.linalg.norm(got - floats) <= 0.1 * np.linalg.norm(floats)


def test_a_constant_that_is_quantized_may_meet_floats(tmp_path):
    named = {"q": np.array([1, 2, 3], "uint8"), "s": np.float32(0.5), "z": np.uint8(1)}
    nodes = [helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("Add", ["x", "d"], ["y"])]
    path = written(tmp_path / "m.onnx", nodes, named, (3,))
    np.testing.assert_array_equal(load(path).compile()(np.ones(3, "f4"))[0], [1.0, 1.5, 2.0])
