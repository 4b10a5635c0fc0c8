"""Group normalisation written as instance normalisation of groups becomes one op."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.engine.reference import evaluate
from cgraph.passes import rewrite_graph
from cgraph.passes.fuse_group_norm import fuse_group_norm
from tests.support.rewrites import assert_left, assert_same_values, ops_of

RNG = np.random.default_rng(0)
X, WIDE = cg.Var((2, 6, 4, 5), name="x"), cg.Var((2, 6, 4, 5), "float64", "wide")
SCALE, SHIFT = (RNG.normal(size=(6, 1, 1)).astype("float32") for _ in range(2))


def groups(x=X, count=3, scale=1.0, shape=None, shift=0.0):
    inner = cg.reshape(x, shape or (x.shape[0], count, -1))
    norm = cg.group_norm(inner, np.full(count, scale, x.dtype), np.full(count, shift, x.dtype), count)
    return cg.reshape(norm, x.shape)


FORMS = {
    "torch, TorchScript": groups() * SCALE + SHIFT,
    "a scale alone": groups() * SCALE,
    "a shift alone": SHIFT + groups(),
    "numbers": groups() * np.float32(2) + np.float32(1),
    "parameters of the graph": groups() * cg.Var((6, 1, 1), name="a") + cg.Var((1, 6, 1, 1), name="b"),
    "one group": groups(count=1) * SCALE + SHIFT,
    "rows": groups(cg.Var((4, 6), name="rows")) * SCALE.reshape(6) + SHIFT.reshape(6),
    "a scale alone in double precision": groups(WIDE) * SCALE.astype("f8"),
    "a shift alone in double precision": groups(WIDE) + SHIFT.astype("f8"),
    "of instances": cg.instance_norm(X, np.ones(6, "f4"), np.zeros(6, "f4")) * SCALE + SHIFT,
}


@pytest.mark.parametrize("name", FORMS)
def test_a_norm_of_groups_is_one_op(name):
    node = FORMS[name]
    ops = ops_of(fuse_group_norm((node,)))
    assert ops["group_norm"] == 1 and set(ops) <= {"group_norm", "reshape"}
    assert_same_values(fuse_group_norm, node)
    assert_same_values(rewrite_graph, node)


LEFT = {
    "elements in one row": cg.reshape(groups(), (-1,)) * np.float32(2),
    "groups of parts of channels": groups(count=4) * SCALE,
    "groups of other channels than the op's": cg.reshape(
        cg.group_norm(cg.reshape(X, (2, 12, -1)), np.ones(12, "f4"), np.zeros(12, "f4"), 3), X.shape
    )
    * SCALE,
    "groups of more channels": cg.reshape(
        cg.group_norm(cg.reshape(X, (2, 3, -1)), np.ones(3, "f4"), np.zeros(3, "f4"), 1), X.shape
    )
    * SCALE,
    "a scale for each row": groups() * RNG.normal(size=(4, 1)).astype("f4"),
    "a scale for each image": groups() * RNG.normal(size=(2, 1, 1, 1)).astype("f4"),
    "a shift alone for each pixel": groups() + RNG.normal(size=(4, 5)).astype("f4"),
    "shifted before": groups(shift=0.5) * SCALE + SHIFT,
    "an instance that is shifted before": cg.instance_norm(X, np.ones(6, "f4"), np.ones(6, "f4")) * SCALE,
    "scaled before": groups(scale=2.0) * SCALE,
    "groups across images": groups(shape=(1, 3, -1)) * SCALE,
    "another result's shape": cg.reshape(groups(), (2, 6, 5, 4)) * SCALE,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_norm_of_groups_is_left(name):
    assert_left(fuse_group_norm, LEFT[name])
    assert_same_values(rewrite_graph, LEFT[name])


def test_a_norm_that_another_reads_is_left():
    norm = groups()
    assert_left(fuse_group_norm, norm * SCALE + SHIFT, norm)


@pytest.mark.parametrize("shape", [(4, 1), (4, 5), (2, 1, 1, 1)])
def test_a_shift_that_is_not_of_channels_stays_a_sum(shape):
    node = groups() * SCALE + RNG.normal(size=shape).astype("float32")
    ops = ops_of(fuse_group_norm((node,)))
    assert ops["group_norm"] == ops["add"] == 1
    assert_same_values(fuse_group_norm, node)


def test_a_norm_without_a_term_keeps_the_signs_of_zeros():
    factors = np.array([1, -1, 2, -2, 3, -3], "f4").reshape(6, 1, 1)
    node = groups() * factors
    (fused,) = fuse_group_norm((node,))
    value = np.full(X.shape, 2.5, "f4")
    (got,), (want,) = evaluate((fused,), {X: value}), evaluate((node,), {X: value})
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    assert not got.any() and np.signbit(got).any()
