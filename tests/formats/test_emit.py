"""Emitted ONNX nodes beside NumPy, as onnxruntime computes them: operands in order, axes, ends, odd dtypes."""

import numpy as np
import pytest
from scipy import special

import cgraph as cg
from cgraph.errors import FormatError
from cgraph.formats.onnx.emit import EMITTERS, POINTWISE, Emitted, node, without_broadcasts
from cgraph.ir.graph import OPS
from cgraph.ops.leaf import Var
from tests.support.onnx_models import written_nodes, written_result
from tests.support.tolerance import assert_near

X, Y = Var((3, 4), name="x"), Var((3, 4), name="y")
rng = np.random.default_rng(0)
A, B = (rng.uniform(0.1, 0.9, (3, 4)).astype("f4") for _ in range(2))
MEANINGS = {
    "erf": special.erf,
    "relu": lambda v: np.maximum(v, 0),
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "softplus": lambda v: np.log1p(np.exp(v)),
}


@pytest.mark.parametrize("name", [name for name in POINTWISE if name != "where"])
def test_a_pointwise_op_is_numpys_of_its_name(name):
    meaning = MEANINGS.get(name) or getattr(np, name)
    shift = {"arccosh": 1, "isnan": 0}.get(name, -0.5 if name in ("abs", "sign", "negative", "relu", "rint") else 0)
    a = A + np.float32(shift)
    if name == "isnan":
        a = np.where(A > 0.5, np.nan, A).astype("f4")
    if isinstance(meaning, np.ufunc) and meaning.nin == 2 or name in ("maximum", "minimum"):
        got, want = written_result(OPS[name](X, Y), [X, Y], a, B), meaning(a, B)
    else:
        got, want = written_result(OPS[name](X), [X], a), meaning(a)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert_near(got, want, "float32 formulas near zero")


def test_a_choice_is_of_the_first_where_it_holds():
    got = written_result(cg.where(X > Y, X, Y * 10), [X, Y], A, B)
    assert_near(got, np.where(A > B, A, B * 10), "float32 formulas")


N, M = Var((2, 3), "int64", "n"), Var((3,), "int64", "m")
I, J = np.array([[5, -7, 9], [3, 2, -3]]), np.array([3, 2, 5])
P, Q = Var((2, 3), bool, "p"), Var((3,), bool, "q")
T, U = np.array([[1, 0, 1], [0, 0, 1]], bool), np.array([1, 0, 0], bool)
INTEGERS = {
    "and": (N & M, [N, M], I & J),
    "or": (N | M, [N, M], I | J),
    "xor": (N ^ M, [N, M], I ^ J),
    "not": (~N, [N], ~I),
    "differs": (cg.not_equal(N, M), [N, M], I != J),
    "sum of int8": (cg.sum(cg.astype(N, "int8"), axis=1), [N], I.astype("i1").sum(1)),
    "product": (cg.prod(N, axis=(0,)), [N], I.prod(0)),
    "largest": (cg.max(N, axis=1), [N], I.max(1)),
    "smallest": (cg.min(N, axis=(0, 1)), [N], I.min()),
    "running": (cg.cumsum(N, axis=1), [N], I.cumsum(1)),
    "any": (cg.any(N, axis=0), [N], I.any(0)),
    "all": (cg.all(N, axis=1), [N], I.all(1)),
    "narrow": (cg.astype(N, "int8"), [N], I.astype("i1")),
    "upper": (cg.triu(N, 1), [N], np.triu(I, 1)),
    "lower": (cg.tril(N, -1), [N], np.tril(I, -1)),
    "less": (N < M, [N, M], I < J),
    "not less": (N >= M, [N, M], I >= J),
    "greater": (N > M, [N, M], I > J),
    "not greater": (N <= M, [N, M], I <= J),
}
LOGIC = {
    "and": (cg.logical_and(P, Q), [P, Q], T & U),
    "or": (cg.logical_or(P, Q), [P, Q], T | U),
    "xor": (cg.logical_xor(P, Q), [P, Q], T ^ U),
    "not": (cg.logical_not(P), [P], ~T),
    "bits of bool": (P & Q, [P, Q], T & U),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_exact(name):
    output, inputs, want = INTEGERS[name]
    got = written_result(output, inputs, *(I, J)[: len(inputs)])
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", LOGIC)
def test_logic_of_bool_is_logic(name):
    output, inputs, want = LOGIC[name]
    np.testing.assert_array_equal(written_result(output, inputs, *(T, U)[: len(inputs)]), want)


V = Var((3, 4, 5), name="v")
C = rng.standard_normal((3, 4, 5)).astype("f4")
SHAPES = {
    "reshape": (cg.reshape(V, (5, 12)), C.reshape(5, 12)),
    "transpose": (cg.transpose(V, (2, 0, 1)), C.transpose(2, 0, 1)),
    "expand": (cg.broadcast_to(V[:1], (3, 4, 5)), np.broadcast_to(C[:1], (3, 4, 5))),
    "slice": (V[1:, ::2, 1:4:2], C[1:, ::2, 1:4:2]),
    "backwards to the first": (V[::-1, 3::-2, 4:0:-1], C[::-1, 3::-2, 4:0:-1]),
    "concat": (cg.concat([V, V[:, :2]], 1), np.concatenate([C, C[:, :2]], 1)),
    "pad": (
        cg.pad(V, ((1, 0), (0, 2), (3, 4)), constant_values=2.5),
        np.pad(C, ((1, 0), (0, 2), (3, 4)), constant_values=2.5),
    ),
    "take": (cg.take(V, np.array([3, 0]), axis=1), C.take([3, 0], 1)),
    "take along": (
        cg.take_along_axis(V, np.array([[[1], [0], [3], [2]]] * 3), 2),
        np.take_along_axis(C, np.array([[[1], [0], [3], [2]]] * 3), 2),
    ),
    "argmax": (cg.argmax(V, axis=1), C.argmax(1)),
    "argmin": (cg.argmin(V, axis=2), C.argmin(2)),
    "argmax of two axes": (cg.argmax(V, axis=(0, 2)), C.transpose(1, 0, 2).reshape(4, 15).argmax(1)),
    "argmin of all axes": (cg.argmin(V), C.argmin()),
    "argmax of the last two axes": (cg.argmax(V, axis=(1, 2)), C.reshape(3, 20).argmax(1)),
    "argmin of a negative axis": (cg.argmin(V, axis=-2), C.argmin(1)),
    "any of fractions": (cg.any(cg.maximum(V, 0) / 9, axis=(0, 2)), np.maximum(C, 0).any((0, 2))),
    "all of fractions": (cg.all(cg.maximum(V + 1, 0) / 9, axis=1), np.maximum(C + 1, 0).all(1)),
    "sum of two axes": (cg.sum(V, axis=(0, 2)), C.sum((0, 2))),
    "product of two axes": (cg.prod(V, axis=(0, 1)), C.prod((0, 1))),
    "running along the first": (cg.cumsum(V, axis=0), C.cumsum(0)),
    "running along the last": (cg.cumsum(V, axis=-1), C.cumsum(2)),
    "take of a table": (cg.take(V, np.array([[3, 0], [1, 1]]), axis=1), C.take([[3, 0], [1, 1]], 1)),
    "joined along the last axis": (cg.concat([V, V[..., :2], V], 2), np.concatenate([C, C[..., :2], C], 2)),
    "logsumexp": (cg.logsumexp(V, axis=1), special.logsumexp(C, 1)),
    "largest two": (cg.top_k(V, 2, axis=1)[0], -np.sort(-C, 1)[:, :2]),
    "places of the smallest two": (cg.top_k(V, 2, axis=1, largest=False)[1], np.argsort(C, 1)[:, :2]),
    "full": (cg.full((2, 3), -1.5, "float64") + cg.astype(V[0, :2, :3], "float64"), C[0, :2, :3].astype("f8") - 1.5),
    "square": (cg.square(V), C * C),
    "trunc": (cg.trunc(V * 3), np.trunc(C * 3)),
    "fmod": (cg.fmod(V * 3, V[:, :1]), np.fmod(C * 3, C[:, :1])),
    "expm1": (cg.expm1(V), np.expm1(C)),
    "log1p": (cg.log1p(V * V), np.log1p(C * C)),
    "exp2": (cg.exp2(V), np.exp2(C)),
    "log2": (cg.log2(V * V), np.log2(C * C)),
    "log10": (cg.log10(V * V), np.log10(C * C)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_axes_and_formulas_are_numpys(name):
    output, want = SHAPES[name]
    got = written_result(output, [V], C)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert_near(got, want, "float32 products")


def test_an_array_without_elements_keeps_its_shape():
    empty = Var((0, 6), name="e")
    got = written_result(cg.reshape(empty, (3, 0, 2)), [empty], np.zeros((0, 6), "f4"))
    assert got.shape == (3, 0, 2)


def test_broadcasts_are_left_to_onnx_where_the_result_keeps_its_shape():
    row = Var((4,), name="r")
    assert written_nodes(X + row, [X, row]) == {"Add": {}}
    wide = cg.broadcast_to(row, (3, 4))
    both = (wide + cg.broadcast_to(row, (3, 4))).operands
    assert [v.shape for v in without_broadcasts(X + row, (3, 4))] == [(3, 4), (4,)]
    assert without_broadcasts(wide * cg.broadcast_to(row * 2, (3, 4)), (3, 4))[0].shape == (3, 4)
    assert len(both) == 2
    np.testing.assert_array_equal(written_result(wide * wide, [row], B[0]), np.broadcast_to(B[0] * B[0], (3, 4)))


def test_nodes_have_one_result_unless_told_and_every_emitter_has_an_op():
    assert node("Add", 1, 2, axis=3) == Emitted("Add", (1, 2), {"axis": 3}, 1)
    assert EMITTERS["top_k"](cg.top_k(X, 2)[0].operands[0]).results == 2
    assert set(POINTWISE) <= EMITTERS.keys()
    with pytest.raises(FormatError, match="complex64"):
        EMITTERS["cast"](cg.astype(X, "complex64"))
