"""On random graphs: compiled gradients equal those of the reference, and both agree with differences."""

import numpy as np
from hypothesis import assume, given, settings

import cgraph as cg
from cgraph.engine.reference import evaluate
from tests.autodiff.differences import RTOL, STEP, directions, slope, weighted
from tests.support.graphs import draw_values, graphs
from tests.support.tolerance import assert_close


@settings(max_examples=60)
@given(drawn=graphs())
def test_compiled_gradients_equal_reference_gradients(drawn):
    values = draw_values(drawn.leaves)
    loss = sum((weighted(y, i) for i, y in enumerate(drawn.outputs)), start=cg.Const(0, drawn.leaves[0].dtype))
    wanted = [loss, *cg.gradient(loss, drawn.leaves)]
    want = evaluate(wanted, dict(zip(drawn.leaves, values)))
    for a, b in zip(cg.compile(wanted, drawn.leaves)(*values), want):
        assert_close(a, b, 10)


@settings(max_examples=60)
@given(drawn=graphs(zero_size=False, dtypes=("float64",)))
def test_gradients_agree_with_differences(drawn):
    arrays = [np.random.default_rng(i).normal(size=x.shape) for i, x in enumerate(drawn.leaves)]
    for x, value in zip(drawn.leaves, arrays):
        x.assign(value)
    along = directions(arrays)
    loss = weighted(drawn.outputs[-1])
    found = evaluate(cg.gradient(loss, drawn.leaves))
    want, nearer = (float(slope(loss, drawn.leaves, along, step)) for step in (STEP, STEP / 4))
    assume(np.isfinite(want) and abs(want - nearer) <= RTOL * (1 + abs(want)))  # no corner nearby, and little curvature
    got = sum(np.vdot(g, d) for g, d in zip(found, along))
    assert abs(got - want) <= 10 * RTOL * (1 + abs(want))
