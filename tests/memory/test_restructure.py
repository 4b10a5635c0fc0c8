"""Patches around the peak: the published tables, and the rules behind them against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cgraph as cg
from benchmarks import restructuring
from cgraph.budget.patches.image_steps import ImageStep, image_steps
from cgraph.budget.patches.tile_peak import (
    ALPHAS,
    SLICES,
    as_written,
    between,
    critical_regions,
    joins_of,
    needed,
    patch_of,
    read_range,
    restructure,
    walk_order,
)
from cgraph.errors import PlanError
from cgraph.kernels.views.window import Window
from cgraph.memory.auto import auto
from cgraph.memory.check import check_plan

TABLES = (restructuring.TABLE_2, restructuring.TABLE_3)
ROWS = [(name, *row) for table in TABLES for name, row in table.items()]


@pytest.mark.parametrize(("name", "alpha", "slices", "saving", "extra"), ROWS)
def test_published_cells_are_reproduced(name, alpha, slices, saving, extra):
    assert [f"{x:.1f}" for x in restructuring.measured(name, alpha, slices)] == [f"{saving:.1f}", f"{extra:.1f}"]


@pytest.mark.parametrize("name", restructuring.TABLE_2)
def test_the_published_alpha_saves_most_of_all_in_four_patches(name):
    steps = restructuring.steps_of(name)
    peaks = {alpha: restructure(steps, alpha, (2, 2)).peak for alpha in ALPHAS}
    assert peaks[restructuring.TABLE_2[name][0]] == min(peaks.values())


@pytest.mark.parametrize("seed", range(20))
def test_a_patch_needs_the_pixels_that_brute_force_finds(seed):
    rng = np.random.default_rng(seed)
    steps = drawn(rng)
    order = walk_order(steps)
    joins = joins_of(steps, tuple(range(1, len(steps))))
    slices = tuple(min(3, *(steps[i].shape[axis] for i in joins)) for axis in (1, 2))
    for patch in range(slices[0] * slices[1]):
        found = needed(steps, order[1:], {i: patch_of(steps[i], slices, patch) for i in joins})
        for i, pixels in masks(steps, {i: patch_of(steps[i], slices, patch) for i in joins}).items():
            rows, columns = np.nonzero(pixels.any(1))[0], np.nonzero(pixels.any(0))[0]
            assert found[i] == (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1)


@given(
    length=st.integers(1, 6),
    extent=st.integers(1, 5),
    stride=st.integers(1, 5),
    pads=st.tuples(*[st.integers(0, 9)] * 2),
)
def test_results_that_see_padding_alone_read_up_to_the_next_that_sees_a_pixel(length, extent, stride, pads):
    """Every range of results along an axis against a plain loop, with padding wider than windows on both sides."""
    stride = min(stride, extent)  # no pixel is skipped
    count = (length + sum(pads) - extent) // stride + 1
    starts = [p * stride - pads[0] for p in range(max(count, 0))]
    seen = [[x for x in range(start, start + extent) if 0 <= x < length] for start in starts]
    seeing = [p for p, pixels in enumerate(seen) if pixels]
    for first in range(count if seeing else 0):
        for stop in range(first + 1, count + 1):
            inside = [p for p in seeing if first <= p < stop] or [seeing[0] if stop <= seeing[0] else seeing[-1]]
            pixels = [x for p in inside for x in seen[p]]
            assert read_range(first, stop, stride, pads[0], extent, length) == (min(pixels), max(pixels) + 1)


@pytest.mark.parametrize("seed", range(20))
def test_regions_are_closed_and_their_records_can_be_planned(seed):
    steps = drawn(np.random.default_rng(seed))
    for alpha in ALPHAS[::4]:
        regions = critical_regions(steps, alpha)
        inside = {i for region in regions for i in region}
        assert between(steps, inside) <= inside
        assert len(inside) == sum(map(len, regions))
        found = restructure(steps, alpha, (2, 3))
        assert found.regions == tuple(regions)
        assert found.work >= as_written(steps).work
        check_plan(found.problem, auto(found.problem, nodes=0))


def test_one_patch_costs_no_operation():
    steps = restructuring.steps_of("resnet18")
    assert restructure(steps, 0.4, (1, 1)).work == as_written(steps).work


def test_patches_together_are_the_whole_result():
    step = ImageStep("conv2d", (1, 7, 5))
    covered = np.zeros((7, 5), int)
    for patch in range(12):
        top, stop, left, end = patch_of(step, (3, 4), patch)
        covered[top:stop, left:end] += 1
    assert (covered == 1).all()


def test_what_is_no_share_or_no_patch_is_refused():
    steps = [ImageStep("var", (3, 8, 8), splits=False), ImageStep("conv2d", (4, 8, 8), (0,))]
    for alpha, slices in ((1.5, (2, 2)), (-0.1, (2, 2)), (0.5, (0, 2))):
        with pytest.raises(PlanError, match="a share of the peak"):
            restructure(steps, alpha, slices)


def test_steps_of_a_graph_join_what_belongs_to_a_convolution():
    x, s = cg.Var((2, 3, 9, 8), name="x"), cg.Var((4, 3, 3, 3))
    y = cg.relu(cg.conv2d(x, s, stride=2, pad=1) + cg.Var((1, 4, 1, 1)))
    z = cg.concat([y, cg.avg_pool2d(y, 3, 1, pad=1)], axis=1)
    found = image_steps((cg.mean(z, axis=(2, 3)),), (x,))
    assert [step.name for step in found] == ["x", "conv2d", "avg_pool", "concat", "sum"]
    assert [step.operands for step in found] == [(), (0,), (1,), (1, 2), (3,)]
    assert [step.shape for step in found] == [(6, 9, 8), (8, 5, 4), (8, 5, 4), (16, 5, 4), (16, 1, 1)]
    assert found[1].window == Window((3, 3), (2, 2), (1, 1, 1, 1))
    assert [step.work for step in found] == [0, 28, 9, 0, 20]
    assert [step.splits for step in found] == [False, True, True, True, False]


def test_an_element_of_one_image_costs_one_operation_and_of_several_two():
    x = cg.Var((1, 3, 8, 8), name="x")
    y = cg.conv2d(x, cg.Var((3, 3, 1, 1)))
    found = image_steps((cg.relu(y), y + x, y * y, cg.tanh(y)), (x,))
    assert [(step.name, step.work) for step in found[2:]] == [("relu", 1), ("add", 2), ("multiply", 1), ("tanh", 1)]


def test_what_is_no_op_on_images_is_computed_whole():
    x = cg.Var((1, 3, 8, 8), name="x")
    total = cg.cumsum(x, 3)
    found = image_steps((total, *cg.top_k(x, 2)), (x,))
    assert [(step.name, step.splits, step.work) for step in found[1:3]] == [("cumsum", False, 1), ("top_k", False, 1)]
    assert [step.shape for step in found[1:3]] == [(3, 8, 8), (96, 1, 1)]


def test_a_value_that_is_read_in_two_forms_is_one_operand():
    x = cg.Var((1, 3, 8, 8), name="x")
    y, z = cg.conv2d(x, cg.Var((4, 3, 1, 1))), cg.conv2d(x, cg.Var((5, 3, 1, 1)))
    again = cg.reshape(cg.reshape(y, (4, 64)), y.shape)
    found = image_steps((cg.concat([y, again, z], 1),), (x,))
    assert (found[-1].name, found[-1].operands, found[-1].splits) == ("concat", (1, 2), True)


def test_slices_are_those_of_the_paper():
    assert set(SLICES) == {(h, w) for h in (2, 3, 4) for w in (2, 3, 4)}
    assert ALPHAS == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def drawn(rng: np.random.Generator) -> list[ImageStep]:
    """An image and a few windows, sums and concats over what there is."""
    steps = [ImageStep("image", (int(rng.integers(1, 4)), 17, 13), splits=False)]
    for _ in range(6):
        x = int(rng.integers(max(len(steps) - 2, 0), len(steps)))
        c, h, w = steps[x].shape
        other = [i for i, step in enumerate(steps) if i != x and step.shape[1:] == (h, w)]
        if other and rng.random() < 0.4:
            steps.append(ImageStep("join", (c, h, w), tuple(sorted((x, other[-1])))))
            continue
        kernel = tuple(int(n) for n in rng.integers(1, 4, 2))
        pad = (*(int(rng.integers(0, k)) for k in kernel), *(int(rng.integers(0, k)) for k in kernel))
        stride = tuple(int(rng.integers(1, min(k, 2) + 1)) for k in kernel)  # no pixel is skipped
        window = Window(kernel, stride, pad, tuple(rng.integers(1, 3, 2).tolist()))
        p, q = window.result(h, w)
        if min(p, q) >= 3:
            steps.append(ImageStep("conv2d", (int(rng.integers(1, 9)), p, q), (x,), window, 5))
    return steps


def masks(steps: list[ImageStep], areas: dict[int, tuple[int, int, int, int]]) -> dict[int, np.ndarray]:
    """The pixels that each tensor must have, found by going from every wanted pixel to all that its window spans."""
    found = {i: np.zeros(step.shape[1:], bool) for i, step in enumerate(steps)}
    for i, (top, stop, left, end) in areas.items():
        found[i][top:stop, left:end] = True
    for i in range(len(steps) - 1, -1, -1):
        step, window = steps[i], steps[i].window
        for x in step.operands:
            h, w = found[x].shape
            for p, q in np.argwhere(box_of(found[i])):
                a, b = p * window.stride[0] - window.pad[0], q * window.stride[1] - window.pad[1]
                found[x][max(a, 0) : max(a + window.extent[0], 0), max(b, 0) : max(b + window.extent[1], 0)] = True
    return {i: pixels for i, pixels in found.items() if pixels.any()}


def box_of(pixels: np.ndarray) -> np.ndarray:
    """The rectangle around all pixels that are set: a patch is one."""
    rows, columns = np.nonzero(pixels.any(1))[0], np.nonzero(pixels.any(0))[0]
    box = np.zeros_like(pixels)
    box[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    return box
