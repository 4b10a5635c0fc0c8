"""Quantised networks as ONNX files (QDQ): what onnxruntime computes of them, and what we read back."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats import onnx
from cgraph.ir.traverse import post_order
from cgraph.kernels.target import host_target
from cgraph.passes.integers.compute_integers import compute_integers
from cgraph.quantiser import quantise
from tests.quantiser.nets import Net, every_group, pictures
from tests.support.tolerance import assert_near

ort = pytest.importorskip("onnxruntime")


def run(path, value, optimised=True):
    """Run a file by onnxruntime; without ``vpdpbusd`` its optimised sums of bytes saturate at 16 bits."""
    options = ort.SessionOptions()
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: value})[0]


@pytest.mark.parametrize("images", ["uint8", "int8"])
def test_onnxruntime_runs_what_is_written_with_the_same_answers(images, tmp_path):
    x, y = every_group()
    scores = y.operands[0]  # before the softmax
    found = quantise(scores, x, pictures(), images=images)
    path = tmp_path / "q.onnx"
    onnx.save(path, found.outputs, found.inputs)
    function = found.compile()
    for value in pictures(3, seed=7):
        got, plain = function(value)[0], run(path, value, False)
        quantum = np.abs(plain).max() / 127
        assert np.abs(got - plain).max() <= quantum
        if host_target().dot == "mixed":
            assert np.abs(got - run(path, value)).max() <= quantum


def test_what_is_written_is_read_back_with_the_same_bits(tmp_path):
    x, y = every_group()
    found = quantise(y, x, pictures(2))
    onnx.save(tmp_path / "q.onnx", found.outputs, found.inputs, ["scores"])
    model = onnx.load(tmp_path / "q.onnx")
    value = pictures(1, seed=7)[0]
    np.testing.assert_array_equal(model.compile()(value)[0], found.compile()(value)[0])
    names = [sorted(node.op.name for node in post_order(compute_integers(tuple(v.outputs)))) for v in (model, found)]
    assert names[0].count("integer_conv") == names[1].count("integer_conv") == 8


def test_a_matrix_product_with_a_row_is_one_operator(tmp_path):
    from onnx import load

    net, x = Net(), cg.Var((3, 8), name="x")
    onnx.save(tmp_path / "m.onnx", net.linear(x, 5), [x])
    assert [node.op_type for node in load(tmp_path / "m.onnx").graph.node] == ["Gemm", "Identity"]
    value = net.normal(3, 8)
    got = onnx.load(tmp_path / "m.onnx").compile()(value)[0]
    assert_near(run(tmp_path / "m.onnx", value), got, "float32 sums near zero")


def test_a_matrix_that_several_meet_is_written_once(tmp_path):
    from onnx import load

    net, x = Net(), cg.Var((2, 3, 8), name="x")
    found = quantise(net.linear(x, 5), x, [net.normal(2, 3, 8)])
    for i, (y, inputs) in enumerate(((x @ net.normal(8, 5), [x]), (found.outputs, found.inputs))):
        path, value = tmp_path / f"{i}.onnx", net.normal(2, 3, 8)
        onnx.save(path, y, inputs)
        assert not any(node.op_type == "Expand" for node in load(path).graph.node)
        want = onnx.load(path).compile()(value)[0]
        assert_near(run(path, value, host_target().dot == "mixed"), want, "float32 products")


CASES = {
    "one scale": lambda x: cg.quantize(x, np.float32(0.1), 7),
    "along the first axis": lambda x: cg.quantize(x, np.float32([[[0.1]], [[0.2]]]), np.int8([[[3]], [[-4]]]), "int8"),
    "one zero point for several scales": lambda x: cg.quantize(x, np.float32([0.1, 0.2, 0.3, 0.4]), 9),
    "a scale that is computed": lambda x: cg.quantize(x, cg.max(cg.abs(x)) / 100, 100),
}


@pytest.mark.parametrize("case", CASES)
def test_numbers_and_their_floats_come_back(case, tmp_path):
    x = cg.Var((2, 3, 4), name="x")
    small = CASES[case](x)
    onnx.save(tmp_path / "m.onnx", cg.dequantize(small, *small.operands[1:]), [x])
    value = Net().normal(2, 3, 4)
    want = cg.compile(cg.dequantize(small, *small.operands[1:]), [x])(value)
    assert_near(run(tmp_path / "m.onnx", value), want, "float32 formulas")
    np.testing.assert_array_equal(onnx.load(tmp_path / "m.onnx").compile()(value)[0], want)


REFUSED = {
    "as int16": lambda x: cg.quantize(x, np.float32(0.1), 0, "int16"),
    "several axes": lambda x: cg.quantize(x, np.ones((3, 4), "float32")),
    "axis of a zero point .* differs": lambda x: cg.quantize(x, np.ones((3, 1), "float32"), np.ones(4, "uint8")),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_onnx_does_not_have_is_refused(text, tmp_path):
    x = cg.Var((2, 3, 4), name="x")
    with pytest.raises(FormatError, match=text):
        onnx.save(tmp_path / "m.onnx", REFUSED[text](x), [x])
