"""Operators that onnxruntime's optimiser writes: what it computes, attributes and optional operands included."""

from itertools import product

import numpy as np
import pytest
from onnx import helper

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load
from cgraph.formats.onnx.operators.fused import ACTIVATIONS
from cgraph.ir.traverse import post_order
from tests.support.microsoft import assert_same, model_of
from tests.support.tolerance import assert_near

ort = pytest.importorskip("onnxruntime")
CONV_ACTIVATIONS = {
    "Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.3], "Clip": [-0.25, 0.75], "HardSigmoid": [0.3, 0.4],
}  # fmt: skip
GEMM_ACTIVATIONS = {
    "Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"alpha": 0.3}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "Elu": {"alpha": 0.7}, "Selu": {"alpha": 1.3, "gamma": 0.9}, "Softplus": {}, "Softsign": {},
    "ThresholdedRelu": {"alpha": 0.4},
}  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5))])
@pytest.mark.parametrize("flags", list(product((0, 1), repeat=2)))
def test_products_of_transposed_operands(rng, tmp_path, shapes, flags):
    turned = [s[:-2] + s[:-3:-1] if flag and len(s) > 1 else s for s, flag in zip(shapes, flags)]
    operands = [floats(rng, *s) for s in turned]
    names = dict(zip(("transA", "transB"), flags))
    assert_same(tmp_path / "m.onnx", "FusedMatMul", operands, alpha=0.375, **names)


@pytest.mark.parametrize("flags", list(product((0, 1), repeat=4)))
def test_products_with_the_batch_axes_moved(rng, tmp_path, flags):
    """A is [batch, 2, i, j] in that order; the other orders come from the flags."""
    operands = []
    for (m, n), batch, swapped in zip(((5, 4), (4, 6)), flags[:2], flags[2:]):
        m, n = (n, m) if swapped else (m, n)
        operands.append(floats(rng, *((m, 3, 2, n) if batch else (3, 2, m, n))))
    names = dict(zip(("transBatchA", "transBatchB", "transA", "transB"), flags))
    (y,) = assert_same(tmp_path / "m.onnx", "FusedMatMul", operands, **names)
    assert y.shape == (3, 2, 5, 6)


@pytest.mark.parametrize("kind", CONV_ACTIVATIONS)
@pytest.mark.parametrize("operands", ["bias", "sum", "neither"])
def test_convolutions_with_an_activation(rng, tmp_path, kind, operands):
    x, f, b, z = floats(rng, 2, 4, 7, 9), floats(rng, 6, 2, 3, 3), floats(rng, 6), floats(rng, 2, 6, 4, 5)
    given = {"bias": [x, f, b], "sum": [x, f, b, z], "neither": [x, f]}[operands]
    how = {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}
    numbers = CONV_ACTIVATIONS[kind]
    how |= {"activation_params": numbers} if numbers else {}
    assert_same(tmp_path / "m.onnx", "FusedConv", given, 1, (1,), activation=kind, **how)


@pytest.mark.parametrize("kind", GEMM_ACTIVATIONS)
def test_products_with_an_activation(rng, tmp_path, kind):
    operands = [floats(rng, 4, 3), floats(rng, 4, 5), floats(rng, 5)]
    numbers = {f"activation_{name}": value for name, value in GEMM_ACTIVATIONS[kind].items()}
    assert_same(tmp_path / "m.onnx", "FusedGemm", operands, transA=1, alpha=0.5, beta=2.0, activation=kind, **numbers)


def test_each_activation_is_compared():
    assert {*CONV_ACTIVATIONS, *GEMM_ACTIVATIONS} | {"HardSwish"} == set(ACTIVATIONS)


def test_defaults_of_activations(rng):
    """A file may leave them out; onnxruntime's kernels do not allow that, so ONNX's operators say what they are."""
    x = floats(rng, 4, 4)
    for kind in ACTIVATIONS:
        raw = model_of("FusedGemm", [x, np.eye(4, dtype="f4"), np.zeros(4, "f4")], activation=kind)
        plain = model_of(kind, [x], domain="")
        (got,), (want,) = load(raw).compile()(x, np.eye(4, dtype="f4"), np.zeros(4, "f4")), load(plain).compile()(x)
        assert_near(got, want, "float32 products and a residual")


@pytest.mark.parametrize("kind", ["Gelu", "BiasGelu", "FastGelu", "FastGelu with a bias"])
@pytest.mark.parametrize("width", [4, 37])
def test_gelu(rng, tmp_path, kind, width):
    kind, _, bias = kind.partition(" ")
    operands = [3 * floats(rng, 2, 3, width)] + ([floats(rng, width)] if bias or kind == "BiasGelu" else [])
    assert_same(tmp_path / "m.onnx", kind, operands)


@pytest.mark.parametrize("alpha", [None, 1.0, 1.702, -0.5])
def test_quick_gelu(rng, tmp_path, alpha):
    assert_same(tmp_path / "m.onnx", "QuickGelu", [floats(rng, 3, 17)], **({} if alpha is None else {"alpha": alpha}))


def test_an_unknown_activation_is_refused(rng):
    operands = [floats(rng, 2, 2)] * 3
    for how in ({"activation": "Swirl"}, {"activation": "Elu", "activation_beta": 0.5}):
        with pytest.raises(FormatError, match="without onnxruntime's optimisations"):
            load(model_of("FusedGemm", operands, **how))
    operands = [floats(rng, 1, 2, 3, 3), floats(rng, 2, 2, 1, 1)]
    with pytest.raises(FormatError, match="'Relu' with parameter 0"):
        load(model_of("FusedConv", operands, activation="Relu", activation_params=[0.5]))


@pytest.mark.parametrize("metric", [None, "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_distances(rng, tmp_path, metric, dtype):
    operands = [floats(rng, *shape).astype(dtype) for shape in ((5, 3), (7, 3))]
    assert_same(tmp_path / "m.onnx", "CDist", operands, **({} if metric is None else {"metric": metric}))


def test_equal_rows_have_no_distance(rng):
    x = 100 * floats(rng, 9, 3)
    (got,) = load(model_of("CDist", [x, x], metric="euclidean")).compile()(x, x)
    assert (got >= 0).all() and (np.diag(got) < 0.1).all()
    with pytest.raises(FormatError, match="Use sqeuclidean or euclidean"):
        load(model_of("CDist", [x, x], metric="cityblock"))


@pytest.mark.parametrize("kind", ["Inverse", "Trilu", "GridSample"])
def test_older_names_of_operators(rng, tmp_path, kind):
    """Names that exports had before ONNX had the operator."""
    x = floats(rng, 2, 3, 4, 4)
    more = {"GridSample": [rng.uniform(-1, 1, (2, 5, 6, 2)).astype("f4")]}
    how = {"Trilu": {"upper": 0}, "GridSample": {"mode": "bilinear", "align_corners": 1}}
    if kind == "Inverse":
        (got,) = load(model_of(kind, [x])).compile()(x)
        assert_near(got, np.linalg.inv(x), "float32 networks by their largest")
        return
    assert_same(tmp_path / "m.onnx", kind, [x, *more.get(kind, [])], **how.get(kind, {}))


def test_images_in_a_processors_layout_are_refused_with_a_way_out(rng):
    raw = model_of("Conv", [floats(rng, 1, 8, 4, 4), floats(rng, 8, 8, 1, 1)], domain="com.microsoft.nchwc")
    with pytest.raises(FormatError, match="nchwc.Conv.*up to ORT_ENABLE_EXTENDED"):
        load(raw)


def test_products_of_dynamic_lengths(rng, tmp_path):
    """Rows that a mask selects, times a transposed matrix."""
    import onnx

    nodes = [
        helper.make_node("Compress", ["x", "mask"], ["rows"], axis=0),
        helper.make_node("FusedMatMul", ["rows", "w"], ["z"], domain="com.microsoft", transB=1, alpha=0.5),
        helper.make_node("BiasGelu", ["z", "b"], ["y"], domain="com.microsoft"),
    ]
    x, w, b = floats(rng, 6, 4), floats(rng, 5, 4), floats(rng, 5)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", 1, x.shape), info("mask", onnx.TensorProto.BOOL, (6,)), info("w", 1, w.shape), info("b", 1, (5,))],
        [info("y", 1, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    f = load(tmp_path / "m.onnx").compile()
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    for mask in ([1, 0, 1, 1, 0, 0], [0] * 6, [1] * 6):
        feed = {"x": x, "mask": np.array(mask, bool), "w": w, "b": b}
        (got,), (want,) = f(**feed), session.run(None, feed)
        assert got.shape == want.shape
        assert_near(got, want, "float32 products and a residual")


@pytest.mark.parametrize("kind", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("flags", list(product((0, 1), repeat=2)))
def test_batch_axes_are_moved_only_with_fixed_lengths(kind, side, flags):
    """A mask selects the batches of either operand."""
    import onnx

    names = ["a", "b"]
    names[side] = "rows"
    options = dict(zip(("transBatchA", "transBatchB"), flags))
    nodes = [
        helper.make_node("Compress", ["ab"[side], "mask"], ["rows"], axis=0),
        helper.make_node(kind, names, ["y"], domain="com.microsoft", **options),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("a", 1, (3, 3, 3)), info("b", 1, (3, 3, 3)), info("mask", onnx.TensorProto.BOOL, (3,))]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", 1, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    raw = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    if any(flags):
        with pytest.raises(FormatError, match="transBatchA and transBatchB are not supported with dynamic lengths"):
            load(raw)
    else:
        load(raw)


def test_attention_is_found_in_fused_products(rng):
    """As onnxruntime writes it: the factor of the scores is that of the product."""
    shape = (1, 2, 40, 16)
    q, k, v = (cg.Var(shape, name=name) for name in "qkv")
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("FusedMatMul", ["q", "k"], ["s"], domain="com.microsoft", transB=1, alpha=0.25),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [info(n, 1, shape) for n in "qkv"], [info("y", 1, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    f = load(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()).compile()
    values = [floats(rng, *shape) for _ in range(3)]
    assert_near(f(*values)[0], cg.eval(cg.scaled_dot_product_attention(*values)), "float32 products and a residual")
    assert [x.op.name for x in post_order(f.outputs) if x.operands] == ["attention"]


def test_an_older_name_of_products_of_transposed_operands(rng, tmp_path):
    operands = [floats(rng, 2, 4, 3), floats(rng, 2, 5, 4)]
    assert_same(tmp_path / "m.onnx", "TransposeMatMul", operands, alpha=0.375, transA=1, transB=1)


def test_without_an_activation_there_is_none(rng, tmp_path):
    gemm = [floats(rng, 4, 3), floats(rng, 3, 5), floats(rng, 5)]
    (got,) = load(model_of("FusedGemm", gemm, activation="")).compile()(*gemm)
    assert_near(got, gemm[0] @ gemm[1] + gemm[2], "float32 products")
    x, f = floats(rng, 2, 4, 7), floats(rng, 6, 4, 3)
    (got,), (want,) = (
        load(raw).compile()(x, f) for raw in (model_of("FusedConv", [x, f]), model_of("Conv", [x, f], domain=""))
    )
    np.testing.assert_array_equal(got, want)


def test_each_parameter_without_a_name_is_numbered(rng):
    operands = [floats(rng, 1, 2, 3, 3), floats(rng, 2, 2, 1, 1)]
    for kind, count, names in (("Relu", 2, "parameter 0, parameter 1"), ("Elu", 3, "alpha, parameter 1, parameter 2")):
        with pytest.raises(FormatError, match=f"the activation '{kind}' with {names} is not supported"):
            load(model_of("FusedConv", operands, activation=kind, activation_params=[0.5] * count))


def test_a_matrix_has_no_batch_axes_to_move(rng):
    """Nor has a vector axes to exchange."""
    a, b, v = floats(rng, 3, 4), floats(rng, 4, 5), floats(rng, 4)
    for flags in product((0, 1), repeat=2):
        names = dict(zip(("transBatchA", "transBatchB"), flags))
        (got,) = load(model_of("FusedMatMul", [a, b], **names)).compile()(a, b)
        assert_near(got, a @ b, "float32 products")
        names = dict(zip(("transA", "transBatchA"), flags))
        (got,) = load(model_of("FusedMatMul", [v, b], **names)).compile()(v, b)
        assert_near(got, v @ b, "float32 products")


@pytest.mark.parametrize("flags", list(product((0, 1), repeat=2)))
@pytest.mark.parametrize("vector", [0, 1, None])
def test_axes_of_dynamic_length_are_exchanged_and_vectors_stay(flags, vector):
    """Both operands are cut to one length along the axis that is summed."""
    import onnx

    shapes = [(2, 3, 6) if not flags[0] else (2, 6, 3), (2, 6, 5) if not flags[1] else (2, 5, 6)]
    summed = [1 if flags[0] else 2, 2 if flags[1] else 1]
    if vector is not None:
        shapes[vector], summed[vector] = (6,), 0
    nodes = [
        helper.make_node("Compress", ["a", "mask"], ["p"], axis=summed[0]),
        helper.make_node("Compress", ["b", "mask"], ["q"], axis=summed[1]),
        helper.make_node("FusedMatMul", ["p", "q"], ["y"], domain="com.microsoft", transA=flags[0], transB=flags[1]),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("a", 1, shapes[0]), info("b", 1, shapes[1]), info("mask", onnx.TensorProto.BOOL, (6,))]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", 1, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    raw = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    function = load(raw).compile()
    draw = np.random.default_rng(3)
    a, b = (draw.integers(-4, 5, shape).astype("f4") for shape in shapes)
    for mask in (0b101101, 0b1, 0b111111):
        m = np.array([mask >> i & 1 for i in range(6)], bool)
        p, q = (np.compress(m, x, axis) for x, axis in zip((a, b), summed))
        p, q = (x.swapaxes(-1, -2) if flag and x.ndim > 1 else x for x, flag in zip((p, q), flags))
        np.testing.assert_array_equal(function(a=a, b=b, mask=m)[0], p @ q)
