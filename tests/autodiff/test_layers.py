"""Gradients of every kind of layer, compiled, equal those of the reference, and reach every weight."""

import numpy as np
import pytest

import cgraph as cg
import nn
from nn.layer import initialise
from tests.nn.support import draw
from tests.nn.test_gradients import LAYERS
from tests.support.tolerance import assert_close


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_compiled_gradients_of_a_layer_equal_reference_gradients(name, recompute):
    layer, shape = LAYERS[name]
    initialise(layer, 0)
    x = cg.Var(shape).assign(draw(*shape))
    result = layer(x, mode=nn.Mode(training=True))
    loss = cg.sum(cg.sin(result) * cg.Const(draw(*result.shape, seed=3)))
    wanted = [loss, *cg.gradient(loss, [x, *layer.parameters().values()])]
    want = cg.compile(wanted, engine="reference")()
    got = cg.compile(wanted, recompute=recompute)()
    scale = max(1.0, *(float(np.abs(b).max(initial=0)) for b in want))
    for a, b in zip(got, want):
        assert_close(a, b, 10 * scale)


@pytest.mark.parametrize("activation", [cg.relu, cg.gelu, cg.sigmoid, cg.tanh, cg.softplus])
def test_an_activation_keeps_one_value_for_its_gradient(activation):
    """A layer more costs the plan of a gradient one value more, not what the activation computes on its way."""

    def nbytes(layers):
        x = y = cg.Var((64, 64), name="x")
        for i in range(layers):
            y = activation(y @ cg.Const(draw(64, 64, seed=i)))
        return cg.compile(cg.gradient(cg.sum(y), x), x).nbytes

    assert nbytes(6) - nbytes(3) == 3 * 64 * 64 * 4
