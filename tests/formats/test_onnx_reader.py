"""The ONNX reader: what it builds, what it refuses and how it says so."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.kernels.mapped import mapping_of
from cgraph.ops.leaf import ConstOp
from tests.support.tolerance import assert_near

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=None, opset=21, **options):
    """The bytes of a model; inputs and outputs are ``name: shape``, constants ``name: array``."""
    graph = helper.make_graph(
        nodes,
        "g",
        [info(*pair) for pair in inputs.items()],
        [info(name, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *options.pop("imports", [])]
    return helper.make_model(graph, opset_imports=imports, **options).SerializeToString()


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def run(body, *arrays, **options):
    return load(body, **options).compile()(*arrays)


def test_names_shapes_and_constants_come_from_the_file():
    weights = np.arange(12, dtype="float32").reshape(3, 4)
    found = load(model([node("MatMul", "x w", "y")], {"x": (2, 3)}, ["y"], {"w": weights}))
    assert [x.name for x in found.inputs] == ["x"] and found.names == ("y",)
    assert found.outputs[0].shape == (2, 4)
    np.testing.assert_array_equal(found.values["w"].op.array, weights)


def test_nodes_know_their_number_in_the_file(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(model([node("Exp", "x", "a"), node("Tanh", "a", "y")], {"x": (2,)}, ["y"]))
    found = load(path)
    assert found.values["a"].place == "net.onnx:0" and found.outputs[0].place == "net.onnx:1"


def test_symbolic_dimensions_are_fixed_by_name():
    body = model([node("Relu", "x", "y")], {"x": ("N", 3)}, ["y"])
    assert load(body, {"N": 5}).outputs[0].shape == (5, 3)
    assert load(body, {"x": (7, 3)}).outputs[0].shape == (7, 3)
    with pytest.raises(FormatError, match="sizes of inputs are unknown; give shapes={'N': 1}"):
        load(body)
    with pytest.raises(FormatError, match=r"declared as \[\?, 3\], not \[7, 4\]"):
        load(body, {"x": (7, 4)})
    with pytest.raises(FormatError, match="negative axis"):
        load(body, {"N": -1})


def test_a_size_of_minus_one_is_an_open_axis(tmp_path):
    """Older exporters of Paddle and mxnet write it."""
    body = model([node("Relu", "x", "y")], {"x": (-1, 3)}, ["y"])
    assert load(body, {"x": (7, 3)}).outputs[0].shape == (7, 3)
    with pytest.raises(FormatError, match=r"sizes of inputs are unknown; give shapes={'x': \(1, 3\)}"):
        load(body)
    with pytest.raises(FormatError, match=r"declared as \[\?, 3\], not \[7, 4\]"):
        load(body, {"x": (7, 4)})
    path = tmp_path / "net.onnx"
    path.write_bytes(body)
    relu = cg.load(path)
    for rows in (2, 5):
        x = np.full((rows, 3), -1.0, "f4")
        np.testing.assert_array_equal(relu(x)[0], np.zeros((rows, 3), "f4"))
    assert relu.sizes == ("x.0",)


def test_an_axis_that_is_declared_without_elements_has_none():
    body = model([node("Relu", "x", "y")], {"x": (0, 3)}, ["y"])
    assert load(body).outputs[0].shape == load(body, {"x": (0, 3)}).outputs[0].shape == (0, 3)
    with pytest.raises(FormatError, match=r"declared as \[0, 3\], not \[2, 3\]"):
        load(body, {"x": (2, 3)})


@pytest.mark.parametrize("name", ["?", "*", "-1", "None"])
def test_a_sign_for_an_unknown_size_does_not_name_it(name, tmp_path):
    """Paddle writes one sign for axes of different sizes."""
    body = model([node("Relu", "x", "y")], {"x": (name, 3, name)}, ["y"])
    assert load(body, {"x": (2, 3, 5)}).outputs[0].shape == (2, 3, 5)
    with pytest.raises(FormatError, match=r"sizes of inputs are unknown; give shapes={'x': \(1, 3, 1\)}"):
        load(body)
    (tmp_path / "net.onnx").write_bytes(body)
    relu = cg.load(tmp_path / "net.onnx")
    assert relu.sizes == ("x.0", "x.2") and relu(np.ones((2, 3, 5), "f4"))[0].shape == (2, 3, 5)


def test_computations_of_shapes_are_folded():
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Unsqueeze", "n axes", "n1"),
        node("Concat", "n1 rest", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    constants = {"zero": np.int64(0), "axes": np.array([0]), "rest": np.array([-1])}
    found = load(model(nodes, {"x": (2, 3, 4)}, ["y"], constants))
    assert found.outputs[0].shape == (2, 12)
    assert isinstance(found.values["shape"].op, ConstOp)


def test_an_input_that_decides_how_many_axes_there_are_must_be_given():
    graph = helper.make_graph(
        [node("Unsqueeze", "x axes", "y")], "g", [info("x", (6,)), info("axes", (2,), INT64)], [info("y", None)]
    )
    body = helper.make_model(graph).SerializeToString()
    with pytest.raises(FormatError, match="operand 1 must be constant.*depends on input 'axes'.*constants="):
        load(body)
    found = load(body, constants={"axes": np.array([0, 2])})
    assert found.outputs[0].shape == (1, 6, 1) and list(found.fixed) == ["axes"]


def test_every_unsupported_operator_is_named_with_its_count():
    nodes = [node("Nonsense", "x", "a"), node("Nonsense", "a", "b"), node("Relu", "b", "c")]
    nodes.append(node("Undreamt", "c", "y"))
    with pytest.raises(FormatError, match=r"2 operators are not supported: Nonsense \(2 times\), Undreamt\."):
        load(model(nodes, {"x": (2,)}, ["y"]))


def test_an_error_names_the_node_and_what_does_not_fit():
    body = model([node("MatMul", "x w", "y", name="last")], {"x": (2, 3)}, ["y"], {"w": np.ones((4, 5), "float32")})
    with pytest.raises(FormatError, match="in MatMul 'last' -> y: .*3.*4"):
        load(body)


def test_an_operand_that_is_nowhere_is_an_error():
    with pytest.raises(FormatError, match="operand 'nowhere' has no value"):
        load(model([node("Add", "x nowhere", "y")], {"x": (2,)}, ["y"]))


@pytest.mark.parametrize("opset", [28, 99])
def test_an_opset_from_the_future_is_refused(opset):
    with pytest.raises(FormatError, match=f"opset {opset}"):
        load(model([node("Relu", "x", "y")], {"x": (2,)}, ["y"], opset=opset))


def test_a_dtype_that_the_engine_does_not_have_is_named():
    graph = helper.make_graph(
        [node("Relu", "x", "y")], "g", [info("x", (2,), TensorProto.COMPLEX64)], [info("y", None)]
    )
    with pytest.raises(FormatError, match="input 'x' has ONNX's dtype COMPLEX64"):
        load(helper.make_model(graph).SerializeToString())


def branch(name, kind):
    return helper.make_graph([node(kind, "x", name)], name, [], [info(name, None)])


def test_a_branch_is_chosen_by_a_constant_or_inside_the_graph():
    x = np.array([0.5, 2.0], "float32")
    choose = node("If", "c", "y", then_branch=branch("a", "Exp"), else_branch=branch("b", "Neg"))
    body = model([choose], {"x": (2,)}, ["y"], {"c": np.array(True)})
    assert_near(run(body, x)[0], np.exp(x), "float32 formulas")
    graph = helper.make_graph([choose], "g", [info("x", (2,)), info("c", (), BOOL)], [info("y", None)])
    function = load(helper.make_model(graph).SerializeToString()).compile()
    assert_near(function(x, np.array(True))[0], np.exp(x), "float32 formulas")
    assert_near(function(x, np.array(False))[0], -x, "float64 through float32")


def test_a_loop_is_unrolled():
    body = helper.make_graph(
        [node("Add", "v x", "v_out"), node("Identity", "v_out", "row"), node("Identity", "c", "c_out")],
        "body",
        [info("i", (), INT64), info("c", (), BOOL), info("v", None)],
        [info("c_out", (), BOOL), info("v_out", None), info("row", None)],
    )
    loop = node("Loop", "trips going start", "last rows", body=body)
    constants = {"trips": np.int64(4), "going": np.array(True), "start": np.zeros(2, "float32")}
    x = np.array([1.0, 2.0], "float32")
    last, rows = run(model([loop], {"x": (2,)}, ["last", "rows"], constants), x)
    np.testing.assert_array_equal(last, 4 * x)
    np.testing.assert_array_equal(rows, np.outer([1, 2, 3, 4], x))


def test_a_scan_accumulates():
    body = helper.make_graph(
        [node("Add", "s row", "s_out"), node("Identity", "s_out", "kept")],
        "body",
        [info("s", None), info("row", None)],
        [info("s_out", None), info("kept", None)],
    )
    scan = node("Scan", "start x", "last all", body=body, num_scan_inputs=1)
    x = np.arange(6, dtype="float32").reshape(3, 2)
    last, kept = run(model([scan], {"x": (3, 2)}, ["last", "all"], {"start": np.zeros(2, "float32")}), x)
    np.testing.assert_array_equal(kept, np.cumsum(x, 0))
    np.testing.assert_array_equal(last, x.sum(0))


def test_a_function_of_the_model_is_built_in_place():
    scaled = helper.make_node("LeakyRelu", ["v"], ["w"])
    scaled.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function("mine", "Bent", ["v"], ["w"], [scaled], [helper.make_opsetid("", 21)], ["slope"])
    call = helper.make_node("Bent", ["x"], ["y"], domain="mine", slope=0.5)
    body = model([call], {"x": (2,)}, ["y"], functions=[function], imports=[helper.make_opsetid("mine", 1)])
    np.testing.assert_array_equal(run(body, np.array([-2.0, 2.0], "float32"))[0], [-1.0, 2.0])


def test_old_opsets_keep_their_meaning():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4) / 10
    flat = np.exp(x.reshape(2, 12))
    found = run(model([node("Softmax", "x", "y")], {"x": x.shape}, ["y"], opset=11), x)[0]
    assert_near(found, (flat / flat.sum(1, keepdims=True)).reshape(x.shape), "float32 sums")
    by_axis = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    assert_near(run(model([node("Softmax", "x", "y")], {"x": x.shape}, ["y"], opset=13), x)[0], by_axis, "float32 sums")
    clipped = node("Clip", "x", "y", min=0.5, max=1.0)
    np.testing.assert_array_equal(
        run(model([clipped], {"x": x.shape}, ["y"], opset=7), x)[0], np.clip(x, np.float32(0.5), np.float32(1))
    )


def test_packed_float_data_is_read_like_raw_data():
    values = np.linspace(-1, 1, 600, dtype="float32")
    tensor = helper.make_tensor("w", FLOAT, (600,), values.tolist())
    assert not tensor.HasField("raw_data")
    graph = helper.make_graph([node("Add", "x w", "y")], "g", [info("x", (600,))], [info("y", None)], [tensor])
    body = helper.make_model(graph).SerializeToString()
    np.testing.assert_array_equal(run(body, np.zeros(600, "float32"))[0], values)


def test_large_weights_stay_in_the_mapped_file(tmp_path):
    weights = np.arange(1 << 16, dtype="float32")
    path, found = tmp_path / "net.onnx", set()
    for pad in range(4):  # the weights' place in the file follows the length of a name: one of four is aligned
        name = "w" + "x" * pad
        path.write_bytes(model([node("Add", f"x {name}", "y")], {"x": weights.shape}, ["y"], {name: weights}))
        loaded = load(path)
        array = loaded.values[name].op.array
        assert mapping_of(array) is not None
        np.testing.assert_array_equal(array, weights)
        found.add(array.flags.aligned)
        function = loaded.compile()
        constants = [n.op.array for n in function.compiled.views if isinstance(n.op, ConstOp)]
        assert all(x.flags.aligned for x in constants)
        np.testing.assert_array_equal(function(np.zeros_like(weights))[0], weights)
    assert found == {True, False}


def test_items_of_sequences_are_outputs_of_their_own():
    made = [node("Neg", "x", "n"), node("SequenceConstruct", "x n x", "y"), node("Exp", "x", "z")]
    found = load(model(made, {"x": (2,)}, ["y", "z"]))
    assert found.names == ("y.0", "y.1", "y.2", "z")
    x = np.array([1.0, -2.0], "f4")
    results = found.compile()(x)
    for got, want in zip(results[:3], (x, -x, x), strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(FormatError, match="output 'y' is empty; only tensors can be outputs"):
        load(model([node("SequenceEmpty", "", "y")], {"x": (2,)}, ["y"]))


def test_an_input_of_any_number_of_axes_needs_its_shape():
    body = model([node("Relu", "x", "y"), node("Add", "y v", "z")], {"x": None, "v": ("n", "m")}, ["z"])
    with pytest.raises(FormatError, match=r"sizes of inputs are unknown; give shapes={'x': \(1, 3\), 'n': 1, 'm': 1}"):
        load(body)
    with pytest.raises(FormatError, match=r"give shapes={'x': \(1, 3\), 'm': 1}"):
        load(body, {"n": 4})
    found = load(body, {"x": (5, 3), "n": 5, "m": 1})
    assert found.outputs[0].shape == (5, 3) and [v.shape for v in found.inputs] == [(5, 3), (5, 1)]
    assert load(body, {"x": 3, "v": (2, 3)}).outputs[0].shape == (2, 3)


def test_the_first_of_several_unknown_names_is_named():
    body = model([node("Relu", "x", "y")], {"x": ("rows", "columns"), "w": (2,)}, ["y"], {"w": np.ones(2, "f4")})
    with pytest.raises(FormatError, match="'a' is neither a dimension nor an input. Use one of columns, rows, x$"):
        load(body, {"z": 1, "a": 2, "rows": 3})
    with pytest.raises(FormatError, match="maximum gives 'a', but no computed value has this name. Remove it"):
        load(body, {"x": (2, 3)}, maximum={"z": 1, "a": 2})


def test_inputs_of_one_name_are_counted():
    inputs = [info("x", (2,)), info("v", (2,)), info("x", (3,)), info("x", (2,)), info("v", (2,))]
    graph = helper.make_graph([node("Relu", "x", "y")], "g", inputs, [info("y", None)])
    with pytest.raises(FormatError, match="3 inputs have the name 'x': rename all but one"):
        load(helper.make_model(graph).SerializeToString())


def test_several_sparse_tensors_are_stored_and_may_be_inputs():
    def sparse(name, dims, values, indices):
        tensors = (numpy_helper.from_array(np.array(x), n) for x, n in ((np.float32(values), name), (indices, "")))
        return onnx.SparseTensorProto(dims=dims, values=next(tensors), indices=next(tensors))

    graph = helper.make_graph(
        [node("Add", "x a", "s"), node("Mul", "s b", "y")], "g",
        [info("x", (2, 3)), info("a", (2, 3)), info("b", (3,))], [info("y", None)],
        sparse_initializer=[sparse("a", [2, 3], [7, 8], [1, 5]), sparse("b", [3], [2, 3], [2, 0])],
    )  # fmt: skip
    body = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    found = load(body)
    assert [v.name for v in found.inputs] == ["x"]
    x = np.arange(6, dtype="f4").reshape(2, 3)
    np.testing.assert_array_equal(found.compile()(x)[0], (x + [[0, 7, 0], [0, 0, 8]]) * [3, 0, 2])


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_inputs_that_are_no_tensors_are_given_as_constants(kind):
    """Nothing, an array or a list."""
    floats = helper.make_tensor_type_proto(FLOAT, None)
    made = helper.make_sequence_type_proto(floats) if kind == "sequence" else helper.make_optional_type_proto(floats)
    first = node("SequenceAt", "v one", "a") if kind == "sequence" else node("OptionalGetElement", "v", "a")
    graph = helper.make_graph(
        [first, node("Add", "x a", "y")], "g", [info("x", (2,)), helper.make_value_info("v", made)], [info("y", None)],
        [numpy_helper.from_array(np.int64(1), "one")],
    )  # fmt: skip
    body = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    with pytest.raises(FormatError, match=f"input 'v' is a {kind}; give its value in constants="):
        load(body)
    x, value = np.array([1.0, 2.0], "f4"), np.array([10.0, 20.0], "f4")
    given = [x * 0, value] if kind == "sequence" else value
    found = load(body, constants={"v": given})
    assert [v.name for v in found.inputs] == ["x"]
    np.testing.assert_array_equal(found.compile()(x)[0], x + value)
    if kind == "optional":
        with pytest.raises(FormatError, match="the optional is empty: check it with OptionalHasElement"):
            load(body, constants={"v": None})
