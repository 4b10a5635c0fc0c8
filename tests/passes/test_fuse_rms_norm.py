"""Root-mean-square normalisation that is written out becomes one op: in the forms of exporters, and nowhere else."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_rms_norm import fuse_rms_norm
from cgraph.passes.multiply_powers import multiply_powers
from tests.support.rewrites import assert_left, assert_same_values, ops_of

RNG = np.random.default_rng(0)
X = cg.Var((2, 3, 4, 6), name="x")
SCALE = RNG.normal(size=6).astype("float32")
EPS = np.float32(1e-3)
ONE = cg.Const(np.float32(1))


def squares(x=X, axes=-1, eps=EPS):
    return cg.mean(x * x, axes, keepdims=True) + eps


FORMS = {
    "torch's rms_norm, dynamo": X * cg.reciprocal(cg.sqrt(squares())) * SCALE,
    "transformers, TorchScript": SCALE * (X * (ONE / cg.sqrt(cg.mean(cg.power(X, 2), -1, keepdims=True) + EPS))),
    "a quotient": X / cg.sqrt(EPS + cg.mean(X * X, -1, keepdims=True)) * SCALE,
    "a power by -0.5": X * cg.power(squares(), -0.5) * SCALE,
    "a power by 0.5": X / cg.power(squares(), 0.5) * SCALE,
    "Gemma": X * cg.reciprocal(cg.sqrt(squares())) * (1 + cg.Var((6,), name="w")),
    "without a scale": X / cg.sqrt(squares()),
    "a number": X / cg.sqrt(squares()) * np.float32(2),
    "two axes": X / cg.sqrt(squares(axes=(-2, -1))) * RNG.normal(size=(4, 6)).astype("float32"),
    "double precision": (lambda x: x / cg.sqrt(squares(x, eps=1e-6)) * SCALE.astype("f8"))(cg.Var((5, 6), "float64")),
}


def after_powers(outputs):
    return fuse_rms_norm(multiply_powers(outputs))


@pytest.mark.parametrize("name", FORMS)
def test_a_written_out_norm_is_one_op(name):
    node = FORMS[name]
    ops = ops_of(after_powers((node,)))
    assert ops["rms_norm"] == 1 and set(ops) <= {"rms_norm", "reshape", "add"}
    assert_same_values(after_powers, node)
    assert_same_values(rewrite_graph, node)


LEFT = {
    "channels": X / cg.sqrt(squares(axes=1)),
    "a sum": X / cg.sqrt(cg.sum(X * X, -1, keepdims=True) + EPS),
    "eps behind the root": X / (cg.sqrt(squares(eps=0)) + EPS),
    "a negative eps": X / cg.sqrt(squares(eps=np.float32(-1e-3))),
    "another's squares": cg.Var(X.shape) / cg.sqrt(squares()),
    "products of two": X / cg.sqrt(cg.mean(X * cg.Var(X.shape), -1, keepdims=True) + EPS),
    "the root by x": cg.sqrt(squares()) / X,
    "complex numbers": (lambda x: x / cg.sqrt(squares(x, eps=1e-3)))(cg.Var((4, 6), "complex64")),
    "complex numbers and a real eps": (lambda x: x / cg.sqrt(squares(x)))(cg.Var((4, 6), "complex64")),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_rms_norm_is_left(name):
    assert_left(fuse_rms_norm, LEFT[name])
    assert_same_values(rewrite_graph, LEFT[name])


def test_a_factor_for_each_row_stays_a_product_and_parts_that_others_read_are_left():
    node = X / cg.sqrt(squares()) * RNG.normal(size=(4, 1)).astype("float32")
    assert ops_of(fuse_rms_norm((node,))) == {"rms_norm": 1, "multiply": 1}
    root = cg.sqrt(squares())
    assert_left(fuse_rms_norm, X / root, root)
