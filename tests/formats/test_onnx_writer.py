"""The ONNX writer: what comes back is the same, and onnxruntime computes the same."""

import sys
from collections import Counter

import numpy as np
import onnx
import pytest

import cgraph as cg
from cgraph.errors import FormatError, UnassignedError, UnavailableError
from cgraph.formats.onnx import load, save, serialised
from cgraph.formats.onnx.onnx_messages import MODULE, messages
from cgraph.ir.graph import apply
from cgraph.ops.shape import Contiguous
from nn import models
from tests.support.tolerance import assert_near

X = cg.Var((2, 3, 4, 5), name="x")
Y = cg.Var((5,), name="y")
N = cg.Var((4, 6), "int64", name="n")
B = cg.Var((3, 4), bool, name="b")
F = np.random.default_rng(1).standard_normal((6, 3, 2, 2)).astype("float32")

GRAPHS = {
    "arithmetic": (cg.abs(X) + Y * 2 - X / (Y * Y + 1), [X, Y]),
    "functions": (cg.tanh(X) + cg.exp(-cg.square(X)) + cg.log1p(cg.abs(X)) + cg.expm1(X) + cg.exp2(X), [X]),
    "rounding": (cg.floor(X) + cg.ceil(X) + cg.rint(X) + cg.trunc(X) + cg.sign(X), [X]),
    "choice": (cg.where(X > Y, X, cg.maximum(Y, 0.5)), [X, Y]),
    "logic": (cg.logical_or(B, cg.logical_not(cg.all(B, axis=0))), [B]),
    "integers": (cg.minimum(N * 3 - 1, cg.max(N, axis=0)), [N]),
    "bits": (cg.bitwise_xor(cg.bitwise_and(N, 12), cg.invert(N)), [N]),
    "conversion": (cg.astype(X * 10, "int32"), [X]),
    "reductions": (cg.sum(X, axis=(0, 2)) + cg.mean(X, axis=(0, 2)) * cg.min(X), [X]),
    "extremes": (cg.argmax(X, axis=1) + cg.argmin(X, axis=-3), [X]),
    "logsumexp": (cg.logsumexp(X, axis=-1), [X]),
    "shapes": (cg.transpose(cg.reshape(X, (6, 20)))[2:11:3, ::-1], [X]),
    "joins": (cg.concat([X, cg.flip(X, 3), cg.pad(X, ((0, 0),) * 4)], axis=2), [X]),
    "padding": (cg.pad(X, ((0, 0), (1, 2), (0, 0), (3, 0)), constant_values=1.5), [X]),
    "broadcast": (cg.broadcast_to(Y, (4, 5)), [Y]),
    "takes": (cg.take(X, np.array([2, 0, 1]), axis=1), [X]),
    "running sums": (cg.cumsum(X, axis=2), [X]),
    "products": (X @ cg.Const(np.ones((5, 3), "float32")), [X]),
    "attention": (cg.scaled_dot_product_attention(X, X[:, :1] * 2, X[:, :1], causal=True), [X]),
    "softmax": (cg.softmax(X, axis=1) + cg.log_softmax(X), [X]),
    "convolution": (cg.conv2d(X, F, 2, (1, 0, 2, 1)) + np.ones((6, 1, 1), "float32"), [X]),
    "transposed convolution": (cg.conv_transpose2d(X, F.transpose(1, 0, 2, 3).copy(), 2, 0, 1, 1, 1), [X]),
    "pooling": (cg.max_pool2d(X, 2, 1, 1) + cg.avg_pool2d(X, 2, 1, 1, count_pad=True), [X]),
    "mean of channels": (cg.mean(X, axis=(2, 3), keepdims=True), [X]),
    "normalisation": (cg.layer_norm(X, np.ones(5, "float32"), np.zeros(5, "float32")), [X]),
    "groups": (cg.group_norm(X, np.ones(3, "float32") * 2, np.ones(3, "float32"), 1), [X]),
    "instances": (cg.instance_norm(X, np.ones(3, "float32") * 2, np.ones(3, "float32")), [X]),
    "neighbours": (cg.lrn(X, 3), [X]),
    "bent": (cg.leaky_relu(X, 0.2) + cg.relu6(X) + cg.relu(X), [X]),
    "the largest": (cg.top_k(X, 2, axis=3)[0], [X]),
    "places of the smallest": (cg.top_k(X, 2, axis=1, largest=False)[1], [X]),
    "two logarithms": (cg.log2(cg.abs(X) + 1) - cg.log10(cg.abs(X) + 2), [X]),
    "remainders": (cg.fmod(X, Y), [X, Y]),
    "what differs": (cg.not_equal(N, 3), [N]),
    "a copy": (apply(Contiguous(), X.transpose(3, 1, 0, 2)), [X]),
    "one number": (cg.full((2, 3), 2.5) + cg.sum(X), [X]),
    "elements beside": (cg.take_along_axis(X, cg.top_k(X, 2, axis=3)[1], 3), [X]),
    "triangles": (cg.triu(X, 1) - cg.tril(X, -1), [X]),
    "statistics": (cg.batch_norm(X, *(np.full(3, v, "float32") for v in (2, 1, 0.5, 3)), 0.25), [X]),
    "sizes": (cg.resize(X, (8, 5), "linear") + cg.resize(cg.resize(X, (3, 7)), (8, 5)), [X]),
    "a channel each": (cg.group_norm(X, np.ones(3, "float32") * 2, np.ones(3, "float32"), 3), [X]),
    "two axes": (cg.argmax(X, axis=(1, 3)), [X]),
    "ceiling": (cg.avg_pool2d(X, 2, 3, ceil=True), [X]),
}


def values_for(inputs):
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(x.shape).astype("float32")
        if x.dtype.kind == "f"
        else rng.integers(0, 9, x.shape).astype(x.dtype)
        for x in inputs
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_round_trip_and_onnxruntime_give_the_same(name):
    runtime = pytest.importorskip("onnxruntime")
    output, inputs = GRAPHS[name]
    values = values_for(inputs)
    body = serialised(output, inputs)
    onnx.checker.check_model(onnx.load_from_string(body), full_check=True)
    want = cg.compile(output, inputs, engine="reference")(*values)
    back = load(body).compile(engine="reference")(*values)[0]
    assert_near(back, want, "float32 formulas near zero")
    session = runtime.InferenceSession(body, providers=["CPUExecutionProvider"])
    peer = session.run(None, {x.name: v for x, v in zip(inputs, values)})[0]
    assert peer.dtype == want.dtype
    assert_near(peer, want, "float32 small networks")


def kinds(output, inputs):
    return Counter(n.op_type for n in onnx.load_from_string(serialised(output, inputs)).graph.node)


def test_what_onnx_has_one_operator_for_becomes_one():
    assert kinds(cg.leaky_relu(X, 0.2), [X]) == {"LeakyRelu": 1, "Identity": 1}
    assert kinds(cg.where(X >= 0, X, X * 0.2), [X]) == {"LeakyRelu": 1, "Identity": 1}
    assert kinds(cg.relu6(X), [X]) == {"Clip": 1, "Identity": 1}
    assert kinds(cg.clip(X, -1, 2), [X]) == {"Clip": 1, "Identity": 1}
    assert kinds(cg.hard_sigmoid(X), [X]) == {"Mul": 1, "Add": 1, "Clip": 1, "Identity": 1}
    assert kinds(cg.mean(X, axis=(2, 3), keepdims=True), [X]) == {"GlobalAveragePool": 1, "Identity": 1}
    bias = np.ones((6, 1, 1), "float32")
    assert kinds(cg.conv2d(X, F) + bias, [X])["Add"] == 0


def test_similar_graphs_are_not_taken_for_such_operators():
    assert "LeakyRelu" not in kinds(cg.where(X >= 1, X, X * 0.2), [X])
    assert "GlobalAveragePool" not in kinds(cg.sum(X, axis=(2, 3), keepdims=True) / np.float32(19), [X])


def test_vars_that_are_no_inputs_become_initialisers(tmp_path):
    w = cg.Var((5,), name="weights")
    with pytest.raises(UnassignedError, match="weights"):
        serialised(X * w, [X])
    w.assign(np.arange(5, dtype="float32"))
    save(tmp_path / "net.onnx", X * w, [X], ["scaled"])
    found = load(tmp_path / "net.onnx")
    assert [x.name for x in found.inputs] == ["x"] and found.names == ("scaled",)
    np.testing.assert_array_equal(found.values["weights"].op.array, np.arange(5))


def test_outputs_have_the_given_names_before_those_of_a_dictionary():
    def names(*args):
        return [v.name for v in onnx.load_from_string(serialised(*args)).graph.output]

    both = X * 2, X + 1
    assert names(both, [X]) == ["output0", "output1"] and names(X + 1, [X]) == ["output0"]
    assert names(both, [X], ["b", "a"]) == ["b", "a"]
    assert names(dict(zip("pq", both)), [X]) == ["p", "q"]
    assert names(dict(zip("pq", both)), [X], ["b", "a"]) == ["b", "a"]
    assert names(both, [X], ["y", "y"]) == ["y", "y_1"]
    assert names(both, [X], ["x", "y"]) == ["x", "y"]
    assert [v.name for v in onnx.load_from_string(serialised(both, [X], ["x", "y"])).graph.input] == ["x_1"]


def run_file(body, **inputs):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(body, providers=["CPUExecutionProvider"]).run(None, inputs)


def test_a_var_that_is_an_output_keeps_its_value_whatever_its_name():
    """Inputs that are outputs, weights that are outputs, each of another's name or its own."""
    x, w = cg.Var((3,), name="x"), cg.Var((3,), name="w")
    weights, value = np.arange(3, dtype="float32"), np.array([5, 6, 7], "float32")
    w.assign(weights)
    for names in (["w", "x", "y"], ["x", "w", "y"], ["a", "b", "w"], ["w", "b", "x"], ["y", "x", "w"]):
        body = serialised([w, x, x * w], [x], names)
        graph = onnx.load_from_string(body).graph
        assert [v.name for v in graph.output] == names
        (given,) = (v.name for v in graph.input)
        assert given == ("x" if "x" not in names or names[1] == "x" else "x_1")
        for got, again, want in zip(
            run_file(body, **{given: value}),
            load(body).compile()(value),
            (weights, value, value * weights),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(again, want)


def test_small_arrays_of_one_dtype_shape_and_value_are_stored_once():
    """Up to 256 bytes, as the places of 16 windows of 2 elements are; values of Vars are stored each for itself."""

    def stored(nodes, inputs=()):
        return len(onnx.load_from_string(serialised(nodes, inputs)).graph.initializer)

    def windows(n, length, names="ab"):
        inputs = [cg.Var((n,), name=name) for name in names]
        return [cg.sliding(x, length) for x in inputs], inputs

    assert stored(*windows(17, 2)) == 1  # 32 numbers of 64 bits
    assert stored(*windows(13, 3)) == 2  # 33
    (few, _), (many, _) = windows(9, 2), windows(9, 3)
    assert stored([few[0], many[1]], [few[0].operands[0], many[1].operands[0]]) == 2
    ones = [cg.Const(np.ones(4, "float32")), cg.Const(np.ones((2, 2), "float32")), cg.Const(np.ones(4, "float64"))]
    assert stored(ones) == 3
    a, b = cg.Var((4,), name="a"), cg.Var((4,), name="b")
    a.assign(np.ones(4, "float32"))
    b.assign(np.ones(4, "float32"))
    assert stored([a, b, ones[0]]) == 3


def test_ops_that_onnx_does_not_have_are_named_with_their_count():
    x = cg.Var((4,), name="x")
    with pytest.raises(FormatError, match=r"2 ops have no ONNX operator: arctan2 \(2 times\), hypot\."):
        serialised([cg.arctan2(x, 1.0), cg.arctan2(1.0, x), cg.hypot(x, x)], [x])


@pytest.mark.parametrize("dtype", ["complex64", "float8_e4m3fn", "float8_e5m2fnuz"])
def test_dtypes_that_files_cannot_contain_are_refused_by_name(dtype):
    x, w = cg.Var((2, 2), dtype, "x"), cg.Const(np.ones((2, 2), "float32"), dtype)
    for node, inputs in ((cg.transpose(x), [x]), (cg.transpose(w), [])):
        with pytest.raises(FormatError, match=f"ONNX files cannot contain {dtype} here. Convert values with astype"):
            serialised(node, inputs)


def test_constants_have_no_more_bytes_than_protobuf_writes(monkeypatch):
    weights = cg.Const(np.arange(100, dtype="float32"))  # too large to be one with its equals
    output = cg.Var((100,), name="v") * weights
    nbytes = sum(
        len(t.raw_data) for t in onnx.load_from_string(serialised(output, output.operands[:1])).graph.initializer
    )
    monkeypatch.setattr("cgraph.formats.onnx.writer.LARGEST", nbytes)
    serialised(output, output.operands[:1])
    monkeypatch.setattr("cgraph.formats.onnx.writer.LARGEST", nbytes - 1)
    with pytest.raises(FormatError, match=f"exceed {nbytes - 1} bytes"):
        serialised(output, output.operands[:1])


@pytest.mark.parametrize("act", [lambda: serialised(X, [X]), lambda: load(b"model")])
def test_without_the_package_onnx_the_way_to_it_is_named(act, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    messages.cache_clear()
    with pytest.raises(UnavailableError, match="pip install"):
        act()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["squeezenet1_1", "resnet18", "mobilenet_v2", "densenet121", "inception_v3", "deeplab_v3"]
)
def test_known_networks_make_the_round_trip(name):
    runtime = pytest.importorskip("onnxruntime")
    network = getattr(models, name)(0)
    inputs = [cg.Var((1, *s.shape), s.dtype, name=f"x{i}") for i, s in enumerate(network.samples)]
    found = network(*inputs)
    outputs = list(found) if isinstance(found, tuple) else [found]
    values = values_for(inputs)
    body = serialised(outputs, inputs)
    back = load(body).compile()(*values)
    session = runtime.InferenceSession(body, providers=["CPUExecutionProvider"])
    for ours, theirs in zip(back, session.run(None, {x.name: v for x, v in zip(inputs, values)})):
        assert_near(ours, theirs, "quantised networks by their largest")
