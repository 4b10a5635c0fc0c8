"""Images with axes of one element, that run backwards or hold infinities: computed, folded and by meaning the same."""

import itertools

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.ops.resize import COORDINATES, ROUNDINGS
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
OPS = {
    "conv": lambda x: cg.conv2d(x, RNG.normal(size=(5, x.shape[1], 1, 1)).astype("float32")),
    "wide conv": lambda x: cg.conv2d(x, RNG.normal(size=(5, x.shape[1], 3, 3)).astype("float32"), 1, 1),
    "depthwise": lambda x: cg.conv2d(x, RNG.normal(size=(x.shape[1], 1, 3, 3)).astype("float32"), 1, 1, 1, x.shape[1]),
    "transposed": lambda x: cg.conv_transpose2d(x, RNG.normal(size=(x.shape[1], 4, 2, 2)).astype("float32"), 2),
    "max": lambda x: cg.max_pool2d(x, 3, 1, 1),
    "average": lambda x: cg.avg_pool2d(x, 3, 1, 1),
    "resize": lambda x: cg.resize(x, (4, 6), "linear"),
}


@pytest.mark.parametrize("step", [-1, 2, -2])
@pytest.mark.parametrize("op", OPS)
def test_an_axis_of_one_element_has_any_stride(op, step):
    for c, h, w in itertools.product((1, 3, 8), (1, 5), (1, 5)):
        x = cg.Var((2, c, h, w), "float32", "x")
        value = RNG.normal(size=x.shape).astype("float32")
        for view in (x[..., ::step], x[:, :, ::step], x[:, ::step], x[::step]):
            y = OPS[op](view)
            assert_near(cg.compile(y, [x])(value), evaluate([y], {x: value})[0], "float32 networks")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_resizing_a_constant_spreads_what_is_not_finite_no_farther_than_a_kernel(mode, coordinates, rounding):
    value = RNG.normal(size=(1, 2, 4, 5)).astype("float32")
    value[0, :, 1, 2], value[0, 1, 3, 4] = np.inf, np.nan
    x = cg.Var(value.shape, "float32", "x")
    for shape in ((8, 10), (3, 2), (1, 7)):
        y, folded = (cg.resize(z, shape, mode, coordinates, rounding) for z in (x, cg.Const(value)))
        computed = cg.compile(y, [x])(value)
        assert_near(cg.compile(folded)(), computed, "float32 products")
        assert_near(evaluate([y], {x: value})[0], computed, "float32 products")
