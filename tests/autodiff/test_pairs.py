"""Tangents and directions have the specs of what they change: anything else is refused, never converted."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from tests.support.tolerance import assert_near

SPECS = [((2, 3), "float32"), ((2, 3), "float64"), ((3, 2), "float32"), ((1, 3), "float32"), ((), "float32"),
         ((2, 3), "int32")]  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("function", [cg.jvp, cg.hessian_vector_product])
def test_a_tangent_of_another_spec_is_refused_for_each_of_several(function, which, spec):
    xs = [cg.Var((2, 3), "float32", name) for name in "xy"]
    y = cg.sum(cg.square(xs[0]) * cg.exp(xs[1]))
    along = [cg.ones((2, 3), dtype="float32") for _ in xs]
    along[which] = cg.ones(spec[0], dtype=spec[1])
    if spec == SPECS[0]:
        function(y, xs, along)
        return
    with pytest.raises((ShapeError, DTypeError), match=rf"does not fit {'xy'[which]} float32\[2,3\]"):
        function(y, xs, along)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("function", [cg.jvp, cg.hessian_vector_product])
def test_as_many_tangents_as_nodes(function, count):
    xs = [cg.Var((2,), "float64", name) for name in "xy"]
    with pytest.raises(ShapeError, match=f"2 nodes and {count}"):
        function(cg.sum(xs[0] * xs[1]), xs, [np.ones(2)] * count)


def test_each_tangent_belongs_to_the_node_in_its_place():
    rng = np.random.default_rng(0)
    xs = [cg.Var((3,), "float64", name).assign(rng.normal(size=3)) for name in "xy"]
    y = cg.sum(cg.square(xs[0]) * cg.exp(xs[1]))
    along = [rng.normal(size=3) for _ in xs]
    values = [x.value for x in xs]

    def at(step):
        a, b = (v + step * w for v, w in zip(values, along))
        return (a**2 * np.exp(b)).sum()

    found = cg.compile(cg.jvp(y, xs, along), engine="reference")()
    assert_near(found, (at(1e-6) - at(-1e-6)) / 2e-6, "float32 formulas")
    second = cg.compile(cg.hessian_vector_product(y, xs, along), engine="reference")()
    want = (at(1e-4) - 2 * at(0) + at(-1e-4)) / 1e-8
    assert_near(sum(h @ w for h, w in zip(second, along)), want, "float32 long sums")
