"""Half-precision exports: half at the edges, float32 inside, rounded where the file says so."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.dtypes.convert import is_storage
from cgraph.errors import InputError
from cgraph.formats.onnx import backend, load, serialised
from cgraph.ir.traverse import post_order
from cgraph.ops.leaf import ConstOp
from tests.support.tolerance import assert_near

KINDS = {"float16": (TensorProto.FLOAT16, np.float16), "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / 8).astype("float32")


WEIGHTS = {"f": normal(64, 64, 3, 3), "b": normal(64), "w": normal(64, 600), "small": normal(600)}


def network(number: int, dtype, fields: bool = False) -> bytes:
    """A convolution and a product with weights of a dtype, stored as bytes or in fields of numbers."""
    nodes = [
        helper.make_node("Conv", ["x", "f", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["m", "w", "small"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(name, number, shape) for name, shape in (("x", (2, 64, 9, 9)), ("y", (2, 600)))
    ]
    stored = []
    for name, x in WEIGHTS.items():
        x = x.astype(dtype)
        if fields:
            stored.append(helper.make_tensor(name, number, x.shape, x.astype("float32").ravel()))
        else:
            stored.append(numpy_helper.from_array(x, name))
    graph = helper.make_graph(nodes, "half", values[:1], values[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return model.SerializeToString()


def wide_network(dtype) -> bytes:
    """The same in float32, with weights that half precision holds."""
    model = onnx.load_from_string(network(TensorProto.FLOAT, "float32"))
    for tensor in model.graph.initializer:
        x = numpy_helper.to_array(tensor).astype(dtype).astype("float32")
        tensor.CopyFrom(numpy_helper.from_array(x, tensor.name))
    return model.SerializeToString()


@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_gives_the_rounded_results_of_float32(kind, fields):
    number, dtype = KINDS[kind]
    given = normal(2, 64, 9, 9).astype(dtype)
    function = load(network(number, dtype, fields)).compile()
    (want,) = load(wide_network(dtype)).compile(winograd=False)(given.astype("float32"))
    (got,) = function(given)
    assert got.tobytes() == want.astype(dtype).tobytes()
    held = [x for x in post_order(function.outputs) if isinstance(x.op, ConstOp) and x.nbytes > 1 << 15]
    assert len(held) == 2 and all(is_storage(x.dtype) for x in held)
    with pytest.raises(InputError, match=f"x expects {kind}"):
        function(given.astype("float32"))


def test_an_export_in_float16_is_what_onnxruntime_gives_within_half_precision():
    model, given = network(*KINDS["float16"]), normal(2, 64, 9, 9).astype("float16")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": given})[0]
    (got,) = load(model).compile()(given)
    assert got.dtype == want.dtype == np.float16
    assert_near(got.astype("float64"), want.astype("float64"), "float16 networks")


@pytest.mark.parametrize("kind", KINDS)
def test_casts_round_and_what_lies_between_does_not(kind):
    number, dtype = KINDS[kind]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (5,)) for name in "xyz"]
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=number),
        helper.make_node("Add", ["h", "h"], ["s"]),
        helper.make_node("Mul", ["s", "h"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["p"], ["q"], to=number),
        helper.make_node("Cast", ["q"], ["z"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(nodes, "casts", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = normal(5)
    h = x.astype(dtype).astype("float32")
    y, z = load(model.SerializeToString()).compile()(x)
    assert y.tobytes() == ((h + h) * h).tobytes() and z.tobytes() == y.astype(dtype).astype("float32").tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_the_backend_takes_and_gives_the_packages_own_arrays(kind):
    number, dtype = KINDS[kind]
    given = normal(2, 64, 9, 9).astype(dtype)
    (got,) = backend.run_model(onnx.load_from_string(network(number, dtype)), [given])
    assert got.dtype == dtype and got.shape == (2, 600)


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_with_half_precision_is_written_and_read_again(kind):
    number, dtype = KINDS[kind]
    x, w = cg.Var((3, 300), kind, "x"), cg.Const(normal(300, 200), kind)
    y = (x.astype("float32") @ w.astype("float32")).astype(kind)
    model = serialised([y], [x])
    assert onnx.load_from_string(model).graph.input[0].type.tensor_type.elem_type == number
    given = normal(3, 300).astype(dtype)
    assert load(model).compile()(given)[0].tobytes() == cg.compile(y, [x])(given).tobytes()


def test_an_output_of_dynamic_length_has_the_dtype_that_the_file_declares():
    graph = helper.make_graph(
        [
            helper.make_node("Compress", ["x", "m"], ["some"], axis=0),
            helper.make_node("Mul", ["some", "some"], ["y"]),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT16, [4]),
            helper.make_tensor_value_info("m", TensorProto.BOOL, [4]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
    )
    raw = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    x, shown = np.array([1.001, 2, 3.003, 4], "f2"), np.array([True, False, True, False])
    (got,) = load(raw).compile(engine="reference")(x=x, m=shown)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, x[shown] * x[shown])
