"""What boxes see, and the gradient for the images, on images in lanes and on plain views, against the op's meaning."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.regions.calls import Boxes, SampleGrid, align_calls, spread_calls
from cgraph.kernels.target import target_named
from cgraph.ops.regions import RoiAlign, RoiAlignGrad
from cgraph.record import replace
from tests.support.images import assert_zero_frame, empty_laned, laned, plain
from tests.support.kernels import ORDERS, TARGETS, run_calls, view_of
from tests.support.tolerance import assert_near

GRIDS = [("cells", 2), ("cells", 1), ("cells", 3), ("aligned", 2), ("corners", 1)]
SCALES = (0.5, 0.25)


def drawn(channels: int, count: int = 30):
    """Boxes around two images of two sizes: larger than them, without area, outside, and of no number at all."""
    rng = np.random.default_rng(2)
    low = rng.uniform(-6, 24, (count, 2))
    boxes = np.concatenate([low, low + rng.uniform(0, 14, (count, 2))], 1).astype("f4")
    boxes[0], boxes[1], boxes[2], boxes[3] = (-50, -50, 90, 90), (3, 3, 3, 3), (100, 4, 120, 9), np.nan
    batch, level = rng.integers(0, 2, count), rng.integers(0, 2, count)
    images = [rng.standard_normal((2, channels, *size)).astype("f4") for size in ((9, 11), (5, 6))]
    return boxes, batch, level, images


def views(boxes, batch, level) -> Boxes:
    return Boxes(view_of(boxes), view_of(batch), view_of(level))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "samples"), GRIDS)
def test_cells_of_blocked_and_plain_images_are_the_meaning(kind, samples, order, target):
    boxes, batch, level, images = drawn(20)
    grid = SampleGrid(kind, samples, SCALES)
    with np.errstate(invalid="ignore"):
        want = RoiAlign((3, 4), grid).meaning(boxes, batch, level, *images)
    machine = target_named(target)
    lanes = machine.lanes_of("f4")
    out = empty_laned(want.shape, lanes, (1, 0, 2, 1))
    sources = [laned(x, lanes, halo) for x, halo in zip(images, [(1, 1, 1, 1), (0, 2, 0, 0)])]
    run_calls(align_calls(machine, out, views(boxes, batch, level), sources, grid), machine, order)
    assert_zero_frame(out)
    assert_near(plain(out), want, "float32 products")
    apart = np.full(want.shape, np.nan, "f4")
    run_calls(align_calls(machine, view_of(apart), views(boxes, batch, level), sources, grid), machine, order)
    np.testing.assert_array_equal(apart, plain(out))
    dense = np.full(want.shape, np.nan, "f4")
    turned = [view_of(np.ascontiguousarray(x.swapaxes(1, 3)).swapaxes(1, 3)) for x in images]
    run_calls(align_calls(machine, view_of(dense), views(boxes, batch, level), turned, grid), machine, order)
    assert_near(dense, want, "float32 products")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "samples"), GRIDS)
def test_gradients_of_blocked_and_plain_images_are_the_meaning(kind, samples, order, target):
    boxes, batch, level, images = drawn(20)
    boxes[3] = 1
    g = np.random.default_rng(3).standard_normal((len(boxes), 20, 3, 4)).astype("f4")
    machine, grid = target_named(target), SampleGrid(kind, samples, SCALES)
    lanes = machine.lanes_of("f4")
    for which, x in enumerate(images):
        want = RoiAlignGrad(which, (2, *x.shape[2:]), grid).meaning(boxes, batch, level, g)
        out = empty_laned(x.shape, lanes, (1, 0, 2, 1))
        given = laned(g, lanes, (0, 1, 0, 0))
        run_calls(spread_calls(machine, out, views(boxes, batch, level), given, which, grid), machine, order)
        assert_zero_frame(out)
        assert_near(plain(out), want, "float32 products and a residual")
        dense = np.full(x.shape, np.nan, "f4")
        run_calls(
            spread_calls(machine, view_of(dense), views(boxes, batch, level), view_of(g), which, grid), machine, order
        )
        assert_near(dense, want, "float32 products and a residual")


@pytest.mark.parametrize(("batch", "level"), [(2, 0), (-1, 0), (0, 2), (0, -1)])
def test_an_image_or_a_size_that_is_not_there_sets_the_error(batch, level):
    boxes, _, _, images = drawn(3, 4)
    error, out = np.zeros(1, np.int64), np.zeros((4, 3, 1, 1), "f4")
    places = np.array([0, batch, 0, 0]), np.array([0, level, 0, 0])
    sources = [view_of(x) for x in images]
    grid = SampleGrid("cells", 2, SCALES)
    run_calls(align_calls(target_named("host"), view_of(out), views(boxes, *places), sources, grid, Pointer(error)))
    assert error[0] == 1 and np.isfinite(out[2]).all()


@pytest.mark.parametrize("cells", [(1, 1), (1, 3), (4, 1)], ids=str)
@pytest.mark.parametrize(("kind", "samples"), GRIDS)
def test_boxes_of_one_cell_along_an_axis_are_the_meaning(kind, samples, cells):
    """The single sample of a grid of corners lies in the middle of its box."""
    boxes, batch, level, images = drawn(5)
    grid = SampleGrid(kind, samples, SCALES)
    with np.errstate(invalid="ignore"):
        want = RoiAlign(cells, grid).meaning(boxes, batch, level, *images)
    out, target = np.full(want.shape, np.nan, "f4"), target_named("host")
    sources = [view_of(x) for x in images]
    run_calls(align_calls(target, view_of(out), views(boxes, batch, level), sources, grid), target)
    assert_near(out, want, "float32 products")
    boxes[3] = 1
    g = np.random.default_rng(3).standard_normal(want.shape).astype("f4")
    for which, x in enumerate(images):
        want = RoiAlignGrad(which, (2, *x.shape[2:]), grid).meaning(boxes, batch, level, g)
        out = np.full(x.shape, np.nan, "f4")
        run_calls(spread_calls(target, view_of(out), views(boxes, batch, level), view_of(g), which, grid), target)
        assert_near(out, want, "float32 products and a residual")


def test_no_boxes_and_no_images_need_no_call():
    target, grid = target_named("host"), SampleGrid("cells", 2, SCALES)
    none = views(np.zeros((0, 4), "f4"), np.zeros(0, "i8"), np.zeros(0, "i8"))
    x, lanes = np.zeros((2, 3, 5, 5), "f4"), target.lanes_of("f4")
    assert align_calls(target, view_of(np.zeros((0, 3, 2, 2), "f4")), none, [view_of(x)], grid) == []
    empty = np.zeros((0, 3, 5, 5), "f4")
    assert spread_calls(target, view_of(empty), none, view_of(np.zeros((0, 3, 2, 2), "f4")), 0, grid) == []
    out = laned(x, lanes, (1, 1, 1, 1))  # of no boxes the gradient is zero
    run_calls(spread_calls(target, out, none, replace(out, n=0), 0, grid), target)
    assert not plain(out).any()
