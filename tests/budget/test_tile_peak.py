"""Patches around the peak: the published tables, and the rules behind them against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import restructuring
from cgraph.budget.patches.image_steps import ImageStep
from cgraph.budget.patches.tile_peak import (
    ALPHAS,
    SLICES,
    as_written,
    between,
    connected_sets,
    contract_regions,
    critical_regions,
    grid_of,
    joins_of,
    needed,
    patch_of,
    patches_of,
    pixels,
    read_area,
    read_range,
    restructure,
    share,
    united,
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
        for i, mask in masks(steps, {i: patch_of(steps[i], slices, patch) for i in joins}).items():
            rows, columns = np.nonzero(mask.any(1))[0], np.nonzero(mask.any(0))[0]
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


@pytest.mark.parametrize("slices", [(1, 1), (2, 3), (4, 4)])
@pytest.mark.parametrize("shape", [(1, 7, 5), (2, 2, 5), (1, 3, 1), (1, 1, 1)])
def test_a_join_has_no_patch_without_a_pixel_and_each_pixel_once(shape, slices):
    steps = [ImageStep("image", shape, splits=False), ImageStep("conv2d", shape, (0,))]
    patches = patches_of(steps, (1,), slices)
    assert len(patches) == min(shape[1], slices[0]) * min(shape[2], slices[1])
    covered = np.zeros(shape[1:], int)
    for areas in patches:
        top, stop, left, end = areas[1]
        assert top < stop and left < end and areas[0] == areas[1]
        covered[top:stop, left:end] += 1
    assert (covered == 1).all()


def test_what_is_no_share_or_no_patch_is_refused():
    steps = [ImageStep("var", (3, 8, 8), splits=False), ImageStep("conv2d", (4, 8, 8), (0,))]
    for alpha, slices in ((1.5, (2, 2)), (-0.1, (2, 2)), (0.5, (0, 2))):
        with pytest.raises(PlanError, match="a share of the peak"):
            restructure(steps, alpha, slices)


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


def chain(*sizes: int, splits: bool = True) -> list[ImageStep]:
    """An image, and images of these rows of one channel, each computed from the one before with a window of a pixel."""
    steps = [ImageStep("image", (1, sizes[0], 1), splits=False)]
    steps += [ImageStep("conv2d", (1, n, 1), (i,), work=2, splits=splits) for i, n in enumerate(sizes[1:])]
    return steps


def test_a_network_as_written_needs_its_largest_neighbours():
    found = as_written(chain(10, 30, 20, 5))
    assert (found.peak, found.work, found.regions) == (50, 2 * (30 + 20 + 5), ())
    assert as_written([]).peak == 0


def test_patches_of_a_step_are_copied_out_of_its_fork_and_joined():
    """The image of 10, a patch of it of 5, that of the step of 5; then both patches of 5 and the whole of 10."""
    steps = chain(10, 10)
    found = restructure(steps, 0.5, (2, 1))
    sizes = [x.nbytes for x in found.problem.operands]
    assert found.regions == ((1,),) and sizes == [10, 5, 5, 5, 5, 10]
    assert [x.interval.last for x in found.problem.operands] == [3, 2, 5, 4, 5, 5]
    assert found.work == 20 and found.peak == 20


def test_regions_grow_to_steps_with_a_share_of_the_peak():
    steps = chain(10, 30, 20, 10, 5)
    for alpha, region in ((1.0, (1, 2, 3)), (0.61, (1, 2, 3)), (0.6, (1, 2, 3, 4))):
        assert critical_regions(steps, alpha) == [region], "30 elements while step 3 runs, and 50 at the peak"
    assert critical_regions(chain(10, 30, 20, splits=False), 0.2) == [] == critical_regions([], 0.5)


def test_steps_between_are_those_on_a_path_and_regions_are_connected():
    point = (1, 4, 4)
    steps = [
        ImageStep("a", point),
        *(ImageStep(str(i), point, reads) for i, reads in enumerate([(0,), (1,), (2,), (0,)])),
    ]
    assert between(steps, {1, 3}) >= {2} and 4 not in between(steps, {1, 3})
    assert connected_sets(steps, {1, 2, 4}) == [(1, 2), (4,)] and connected_sets(steps, set()) == []
    assert joins_of(steps, (1, 2)) == [2] and joins_of(steps, (1, 2, 3)) == [3] and joins_of(steps, (0, 1)) == [0, 1]
    order = contract_regions(steps, [(1, 2)])
    assert sorted(order) == [0, 1, 3, 4] and order.index(0) < order.index(1) < order.index(3)


def test_patches_are_as_many_as_rows_and_columns_allow():
    steps = [ImageStep("a", (1, 3, 9)), ImageStep("b", (1, 9, 2))]
    assert grid_of(steps, [0, 1], (4, 4)) == (3, 2) and grid_of(steps, [0], (2, 4)) == (2, 4)
    assert [share(7, 3, i) for i in range(3)] == [(0, 3), (3, 5), (5, 7)]
    assert pixels((1, 3, 2, 7)) == 10 and united((1, 3, 4, 5), (0, 2, 4, 9)) == (0, 3, 4, 9)


def test_an_area_is_read_with_the_window_of_each_axis():
    step = ImageStep("conv2d", (1, 9, 9), (0,), Window((3, 2), (2, 1), (1, 0, 1, 0), (1, 3)))
    assert read_area(step, (1, 3, 2, 5), (1, 17, 12)) == (1, 6, 2, 8)
    assert read_area(step, (0, 9, 0, 9), (1, 17, 12)) == (0, 17, 0, 12)
