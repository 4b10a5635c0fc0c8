"""Reductions joined with what feeds them: same values on random graphs, and no bytes between."""

import numpy as np
import pytest
from hypothesis import given, settings

import cgraph as cg
from cgraph.ir.traverse import post_order
from cgraph.ops.family import Pointwise
from cgraph.ops.fused import FusedReduction
from cgraph.ops.reduce import Reduction
from cgraph.passes.fuse_pointwise import fuse_pointwise
from cgraph.passes.fuse_reductions import fuse_reductions
from tests.support.graphs import graphs
from tests.support.rewrites import assert_keeps_values, assert_leaves_nothing, assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_close, assert_near

KINDS = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")


@settings(max_examples=60)
@given(drawn=graphs())
def test_joined_reductions_keep_the_values(drawn):
    assert_keeps_values(lambda outputs: fuse_reductions(fuse_pointwise(outputs)), drawn)


@settings(max_examples=30)
@given(drawn=graphs())
def test_nothing_is_left_to_join(drawn):
    assert_leaves_nothing(lambda outputs: fuse_reductions(fuse_pointwise(outputs)), drawn)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_gives_what_numpy_gives(kind, axis, dtype):
    x, y = (cg.Var((70, 90), dtype, name) for name in "xy")
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 2, x.shape).astype(dtype) for _ in range(2)]
    function = cg.compile(getattr(cg, kind)(cg.maximum(x, y), axis=axis), [x, y])
    assert [type(n.op) for n in function.compiled.layout.steps] == [FusedReduction]
    want = getattr(np, kind)(np.maximum(*values), axis=axis)
    got = function(*values)
    assert got.dtype == want.dtype
    assert_close(got, want)


def test_a_large_sum_in_parts_agrees_and_needs_no_array():
    x, y = cg.Var((1 << 20,), "float64", "x"), cg.Var((1 << 20,), "float64", "y")
    function = cg.compile(cg.sum(cg.sin(x) * y), [x, y])
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(x.shape) for _ in range(2)]
    assert function.nbytes < x.nbytes / 100
    assert_near(function(*values), np.sum(np.sin(values[0]) * values[1]), "float64 conditioned")


def test_a_value_that_somebody_else_reads_is_not_computed_twice():
    x = cg.Var((8, 8), name="x")
    y = cg.exp(x)
    nodes = post_order(fuse_reductions((y / cg.sum(y, 0), cg.max(cg.sin(x)))))
    assert sum(isinstance(n.op, Reduction) for n in nodes) == 1
    assert sum(isinstance(n.op, FusedReduction) for n in nodes) == 1
    assert any(isinstance(n.op, Pointwise) and n.name == "exp" for n in nodes)


X = cg.Var((3, 4), "float64", "x")
SIN = cg.sin(X)
APART = {
    "an output that is read": (SIN, cg.sum(SIN, 0)),
    "two reductions": (cg.sum(SIN, 0), cg.max(SIN, 1)),
    "a reduction and another op": (cg.sum(SIN, 0), cg.cumsum(SIN, 0)),
    "no pointwise op": (cg.sum(cg.cumsum(X, 0), 1),),
    "a view of a pointwise op": (cg.sum(SIN[::2], 0), cg.max(cg.exp(X).T, 0)),
    "a Var": (cg.sum(X),),
    "another op that adds up": (cg.cumsum(SIN, 0),),
}


@pytest.mark.parametrize("name", APART)
def test_not_joined(name):
    assert_left(fuse_reductions, *APART[name])


def test_joined_where_the_reduction_alone_reads_it():
    assert ops_of(fuse_reductions((cg.sum(SIN, 0), cg.max(cg.exp(X)))))["sin"] == 0
    assert_same_values(fuse_reductions, cg.sum(SIN, 0), cg.max(cg.exp(X)))
