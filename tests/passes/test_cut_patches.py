"""Patches around the peak, run: the values of the whole, on random networks and on those of the paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cgraph as cg
from benchmarks import restructuring
from cgraph.budget.patches.cut_patches import cut_patches
from cgraph.budget.patches.image_steps import image_steps
from cgraph.budget.patches.tile_peak import critical_regions, joins_of, patches_of, pixels, restructure
from cgraph.engine.reference import evaluate
from cgraph.errors import PlanError
from cgraph.ir.traverse import post_order
from cgraph.ops.conv import Conv2d
from nn import models
from tests.support.networks import networks
from tests.support.tolerance import assert_close, assert_near

ALPHAS = st.sampled_from((0.0, 0.3, 0.7, 1.0))
SLICES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=100, deadline=None)
@given(drawn=networks(), alpha=ALPHAS, slices=SLICES, seed=st.integers(0, 9))
def test_patches_mean_what_the_whole_means(drawn, alpha, slices, seed):
    image, outputs = drawn
    value = drawn_value(image, seed)
    cut = cut_patches(tuple(outputs), (image,), alpha, slices)
    for got, want in zip(evaluate(cut, {image: value}), evaluate(outputs, {image: value})):
        assert_close(got, want)


@settings(max_examples=20, deadline=None)
@given(drawn=networks(), alpha=ALPHAS, slices=SLICES, seed=st.integers(0, 9))
def test_patches_run(drawn, alpha, slices, seed):
    image, outputs = drawn
    value = drawn_value(image, seed)
    got = cg.compile(outputs, [image], restructure=(alpha, slices))(value)
    for one, want in zip(got, cg.compile(outputs, [image])(value)):
        assert_close(one, want, scale=10)


def drawn_value(image, seed):
    return np.random.default_rng(seed).standard_normal(image.shape).astype(image.dtype)


POOLS = {
    "ceil": lambda x: cg.max_pool2d(x, 3, 2, ceil=True),
    "padded": lambda x: cg.max_pool2d(x, 5, 1, pad=2),
    "padding that counts": lambda x: cg.avg_pool2d(x, 3, 2, pad=1, ceil=True, count_pad=True),
    "padding that does not": lambda x: cg.avg_pool2d(x, 4, 3, pad=(2, 1, 1, 2), ceil=True),
    "a window far apart": lambda x: cg.conv2d(x, np.ones((4, 4, 3, 3), "float32"), pad=4, dilation=3),
    "a window of one row": lambda x: cg.conv2d(x, np.ones((4, 4, 1, 5), "float32"), (1, 2), (0, 0, 0, 4)),
}


@pytest.mark.parametrize("slices", [(2, 2), (3, 1), (4, 4)])
@pytest.mark.parametrize("case", POOLS)
def test_windows_at_every_border(case, slices):
    x = cg.Var((2, 4, 17, 18), name="image")
    y = cg.relu(POOLS[case](x * 2 + np.arange(18, dtype="float32")) - 1) + 3
    value = drawn_value(x, 0)
    cut = cut_patches((y,), (x,), 0.0, slices)
    assert_near(*evaluate(cut, {x: value}), *evaluate((y,), {x: value}), "float32 formulas")


@pytest.mark.parametrize("name", restructuring.TABLE_3)
def test_convolutions_do_the_work_that_the_table_counts(name):
    image = cg.Var(restructuring.IMAGE)
    whole = (getattr(models, name)(None)(image),)
    alpha, slices, *_ = restructuring.TABLE_3[name]
    assert products(cut_patches(whole, (image,), alpha, slices)) == counted(image_steps(whole, (image,)), alpha, slices)


def counted(steps, alpha, slices):
    """Operations of the convolutions, by the pixels of patches."""
    regions = restructure(steps, alpha, slices).regions
    inside = {i for region in regions for i in region}
    assert inside
    patches = [areas for region in regions for areas in patches_of(steps, region, slices)]
    parts = [(i, steps[i].shape[0] * pixels(areas[i])) for areas in patches for i in inside.intersection(areas)]
    wholes = [(i, x.size) for i, x in enumerate(steps) if i not in inside]
    return sum(steps[i].work * size for i, size in (*parts, *wholes) if steps[i].name == "conv2d")


def products(outputs):
    """Operations of all convolutions, as tables count them."""
    nodes = [x for x in post_order(outputs) if isinstance(x.op, Conv2d)]
    return sum(x.size * (int(np.prod(x.operands[1].shape[1:])) + 1) for x in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("name", restructuring.TABLE_3)
def test_the_networks_of_the_paper_run_in_patches(name):
    model, image = getattr(models, name)(0), cg.Var(restructuring.IMAGE, name="image")
    scores, weights, value = model(image), list(model.variables().values()), drawn_value(image, 0)
    whole = cg.compile(scores, [image], freeze=weights)
    alpha, slices, *_ = restructuring.TABLE_3[name]
    small = cg.compile(scores, [image], freeze=weights, restructure=(alpha, slices))
    assert small.nbytes < 0.8 * whole.nbytes
    assert_close(small(value), whole(value), scale=10)


def test_what_is_no_patch_is_refused():
    x = cg.Var((1, 4, 8, 8))
    for alpha, slices in ((1.1, (2, 2)), (0.5, (0, 2))):
        with pytest.raises(PlanError, match="a share of the peak from 0 to 1 and two counts"):
            cg.compile(cg.max_pool2d(x, 2), [x], restructure=(alpha, slices))


@pytest.mark.parametrize("slices", [(1, 2), (3, 1), (4, 4)])
def test_a_join_that_its_own_region_reads_on(slices):
    x = cg.Var((1, 2, 9, 9), name="image")
    inner = cg.concat([x, x + 1], 1)
    outputs = (cg.conv2d(inner, np.ones((3, 4, 3, 3), "float32"), 1, 1), cg.mean(inner, (2, 3)))
    steps = image_steps(outputs, (x,))
    assert any(
        set(joins_of(steps, r)) & {j for i in r for j in steps[i].operands} for r in critical_regions(steps, 0.0)
    )
    value = drawn_value(x, 0)
    for got, want in zip(evaluate(cut_patches(outputs, (x,), 0.0, slices), {x: value}), evaluate(outputs, {x: value})):
        assert_close(got, want)


@pytest.mark.parametrize("slices", [(1, 2), (3, 1), (4, 4)])
def test_what_a_step_reads_behind_a_reshape_is_not_what_lies_before_it(slices):
    x = cg.Var((1, 2, 9, 9), name="image")
    filters = np.random.default_rng(1).standard_normal((2, 2, 3, 3)).astype("float32")
    h = cg.relu(cg.reshape(cg.conv2d(x, filters, 1, 1), (2, 1, 9, 9)))
    y = cg.conv2d(cg.reshape(h, (1, 2, 9, 9)), filters, 1, 1)
    assert critical_regions(image_steps((y,), (x,)), 0.0) == [(1, 2)]
    value = drawn_value(x, 0)
    assert_close(*evaluate(cut_patches((y,), (x,), 0.0, slices), {x: value}), *evaluate((y,), {x: value}))
