"""Graphs that look like what ONNX has one operator for: written, they mean what they meant."""

import numpy as np
import onnx
import pytest

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx import load, serialised
from cgraph.ir.traverse import post_order
from tests.support.tolerance import assert_near

X, Z = cg.Var((2, 3, 4, 5), name="x"), cg.Var((2, 3, 4, 5), name="z")
A, B = cg.Var((4, 3), name="a"), cg.Var((3, 5), name="b")
N, ROW, COLUMN = cg.Var((4, 5), "int64", name="n"), cg.Var((5,), name="row"), cg.Var((4, 1), name="column")
F = np.random.default_rng(1).standard_normal((6, 3, 2, 2)).astype("float32")
CONV, LINE = cg.conv2d(X, F), cg.conv1d(X[:, :, 0], F[:, :, 0])
SIX = np.arange(6, dtype="float32")

bent = cg.where


CHANNELS = np.array([0.5, 0.25, 2], "f4").reshape(3, 1, 1)
ZEROS = np.array([3, -4, 0], "int8").reshape(3, 1, 1)
BYTES = cg.quantize(X, 0.125, 3, "int8")

GRAPHS = {
    "bent": bent(X >= 0, X, X * 0.2),
    "bent at a half": bent(X >= 0.5, X, X * 0.2),
    "bent above": bent(X > 0, X, X * 0.2),
    "bent below": bent(X <= 0, X, X * 0.2),
    "bent by another": bent(Z >= 0, X, X * 0.2),
    "bent to another": bent(X >= 0, Z, X * 0.2),
    "bent, another's part": bent(X >= 0, X, Z * 0.2),
    "bent by an array": bent(X >= 0, X, X * np.arange(5, dtype="float32")),
    "bent by a node": bent(X >= 0, X, X * cg.sum(Z)),
    "bent from the left": bent(X >= 0, X, 0.2 * X),
    "bent to a sum": bent(X >= 0, X, X + 0.2),
    "bent at another": bent(X >= Z, X, X * 0.2),
    "bent integers": bent(N >= 0, N, N * 3),
    "held": cg.minimum(cg.maximum(X, -0.5), 0.5),
    "held from above first": cg.maximum(cg.minimum(X, 0.5), -0.5),
    "held by an array": cg.minimum(cg.maximum(X, np.linspace(-1, 0, 5, dtype="float32")), 0.5),
    "held by a node": cg.minimum(cg.maximum(X, -0.5), Z),
    "held on the right": cg.minimum(0.5, cg.maximum(X, -0.5)),
    "held, integers": cg.minimum(cg.maximum(N, 2), 5),
    "held from above": cg.minimum(X, 0.5),
    "the mean of pixels": cg.mean(X, (2, 3), keepdims=True),
    "a mean of columns": cg.mean(X, 3, keepdims=True),
    "a mean of channels": cg.mean(X, 1),
    "a mean of sequences": cg.mean(X[:, :, 0], 2, keepdims=True),
    "a mean of rows": cg.mean(A, (0, 1), keepdims=True),
    "a mean of integers": cg.mean(N, 0),
    "a sum over another number": cg.sum(X, (2, 3), keepdims=True) / np.float32(19),
    "a sum over an array": cg.sum(X, (2, 3)) / np.arange(1, 4, dtype="float32"),
    "a sum in another shape": cg.reshape(cg.sum(X, (2, 3)), (3, 2)) / np.float32(20),
    "a product over a number": cg.prod(X, (2, 3)) / np.float32(20),
    "a quotient": X / np.float32(20),
    "a layer": CONV + SIX.reshape(6, 1, 1),
    "a layer of one image's": CONV + SIX.reshape(1, 6, 1, 1),
    "a layer of a node's": CONV + cg.reshape(cg.sum(Z) * SIX, (6, 1, 1)),
    "a layer on the right": SIX.reshape(6, 1, 1) + CONV,
    "a layer with one number": CONV + 2.5,
    "a layer with columns": CONV + np.arange(4, dtype="float32"),
    "a layer with rows": CONV + np.arange(3, dtype="float32").reshape(3, 1),
    "a layer with images": CONV + np.arange(12, dtype="float32").reshape(3, 4),
    "a layer with itself": CONV + CONV,
    "a layer minus": CONV - SIX.reshape(6, 1, 1),
    "a layer of a line": LINE + SIX.reshape(6, 1),
    "a layer of a line with columns": LINE + np.arange(4, dtype="float32"),
    "two layers": cg.conv2d(X, F[:, :, :1, :1]) + cg.conv2d(Z, F[:, :, :1, :1]),
    "transposed": cg.conv_transpose2d(X, F.transpose(1, 0, 2, 3).copy(), 2) + SIX.reshape(6, 1, 1),
    "a product and a row": A @ B + ROW,
    "a row and a product": ROW + A @ B,
    "a product and a column": A @ B + COLUMN,
    "a product and a number": A @ B + 2.5,
    "a product and a matrix": A @ B + cg.astype(N, "float32"),
    "a product and a wide row": A @ B + cg.reshape(ROW, (1, 5)),
    "products and a row": cg.matmul(X, np.ones((5, 5), "f4")) + ROW,
    "whole products and a row": cg.matmul(N, np.ones((5, 5), "i8")) + np.arange(5),
    "a product of broadcast matrices": cg.matmul(cg.broadcast_to(A[:, :3], (2, 4, 3)), cg.broadcast_to(B, (2, 3, 5))),
    "a product of one broadcast": cg.matmul(cg.broadcast_to(COLUMN, (4, 3)), B),
    "broadcast parts": cg.broadcast_to(COLUMN, (4, 5)) * cg.broadcast_to(ROW, (4, 5)),
    "a wide column": cg.exp(cg.broadcast_to(COLUMN, (4, 5))),
    "wide columns": cg.broadcast_to(COLUMN, (4, 5)) + cg.broadcast_to(COLUMN * 2, (4, 5)),
    "ends of slices": X[:, ::-1, 3:0:-2, 1::3],
    "no elements": cg.reshape(X[:0], (0, 5, 12)),
    "several places": cg.argmin(X, (3, 1)),
    "truth": cg.any(N > 3, (0, 1)) | cg.all(N, 1)[0],
    "a sum of bytes": cg.sum(cg.astype(N, "int8"), 1),
    "odd sizes": cg.resize(X, (3, 7)),
    "sizes of a half": cg.resize(X, (6, 2), scales=(1.5, 0.5)),
    "sizes of more than fit": cg.resize(X, (6, 7), "linear", scales=(1.6, 1.5)),
    "groups of channels": cg.group_norm(cg.conv2d(X, F), SIX + 1, SIX, 3, 0.25),
    "bytes": BYTES,
    "bytes without a sign": cg.quantize(X, 0.125, 120),
    "bytes and back": cg.dequantize(BYTES, np.float32(0.125), 3),
    "bytes of channels": cg.quantize(X, CHANNELS, ZEROS, "int8"),
    "bytes of channels around one zero": cg.quantize(X, CHANNELS, 5, "int8"),
    "channels back": cg.dequantize(BYTES, CHANNELS, ZEROS),
    "columns back": cg.dequantize(BYTES, np.linspace(1, 2, 5, dtype="f4"), np.int8(0)),
    "bytes by a node's scale": cg.quantize(X, cg.exp(cg.sum(Z) * 0.01) * 0.1, 3, "int8"),
    "bytes by nodes' scales": cg.quantize(X, cg.reshape(cg.exp(ROW), (5,)), 3, "int8"),
    "back by a node's scale": cg.dequantize(BYTES, cg.exp(cg.sum(Z) * 0.01), 3),
    "sums of products back": cg.dequantize(cg.astype(N, "int32"), np.float32(0.5)),
    "safe attention": cg.scaled_dot_product_attention(
        X, Z, Z, np.arange(4)[:, None] != np.array([0, 2, 0, 2]), safe=True
    ),
    "safe attention without keys": cg.scaled_dot_product_attention(X, Z, Z, (np.arange(4) > 1)[:, None], safe=True),
    "logarithms": cg.log2(cg.abs(X) + 1) * 2 + cg.log10(cg.abs(X) + 1) + cg.exp2(X),
}  # fmt: skip
INPUTS = [X, Z, A, B, N, ROW, COLUMN]


@pytest.mark.parametrize("name", GRAPHS)
def test_it_means_the_same(name):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    drawn = {x: (rng.standard_normal(x.shape) * 3).astype(x.dtype) for x in INPUTS}
    output = GRAPHS[name]
    below = set(post_order([output]))
    inputs = [x for x in INPUTS if x in below]
    values = [drawn[x] for x in inputs]
    body = serialised(output, inputs)
    (want,) = cg.compile([output], inputs, engine="reference")(*values)
    (back,) = load(body).compile(engine="reference")(*values)
    assert_near(back, want, "float32 products")
    session = runtime.InferenceSession(body, providers=["CPUExecutionProvider"])
    (peers,) = session.run(None, {x.name: v for x, v in zip(inputs, values)})
    assert (peers.shape, peers.dtype) == (want.shape, want.dtype)
    assert_near(peers, want, "float32 networks")


def test_what_onnx_broadcasts_itself_is_not_expanded():
    body = serialised([X * ROW, cg.maximum(COLUMN, ROW)], [X, ROW, COLUMN])
    assert "Expand" not in {node.op_type for node in onnx.load_from_string(body).graph.node}


NOT_WRITTEN = {
    "doubles": (cg.quantize(X.astype("float64"), 0.5, 3), "ONNX does not quantise float64 as uint8"),
    "sixteen bits": (cg.quantize(X, 0.5, 3, "int16"), "ONNX does not quantise float32 as int16"),
    "sums as bytes": (cg.quantize(X, 0.5, 3, "int32"), "ONNX does not quantise float32 as int32"),
    "scales of two axes": (cg.quantize(X, np.ones((4, 5), "f4"), 3), "has several axes"),
    "a zero for each channel alone": (cg.quantize(X, 0.5, ZEROS, "int8"), "differs from that of its scale"),
    "zeros of columns": (cg.quantize(X, CHANNELS, np.zeros(5, "int8"), "int8"), "differs from that of its scale"),
}


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_what_onnx_does_not_quantise_is_refused(name):
    output, match = NOT_WRITTEN[name]
    with pytest.raises(FormatError, match=match):
        serialised(output, [X])
