"""Features of boxes at borders, and with pixels that are no numbers: which pixels count."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from tests.support.tolerance import assert_near

H, W = 5, 7


def ramp(dtype="float64"):
    """Pixels whose value is their row and, times a hundred, their column."""
    return (np.arange(H)[:, None] + 100.0 * np.arange(W))[None, None].astype(dtype)


def read(at, n):
    """The mean row that a sample at a coordinate reads of an axis of n; None further than one pixel outside."""
    return min(max(at, 0.0), n - 1.0) if -1 <= at <= n else None


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("kind", ["roi_align", "levels"])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_sample_counts_up_to_exactly_one_pixel_outside_on_every_side(aligned, kind, engine):
    """One sample a box, at coordinates on both sides of every limit of both axes."""
    steps = {
        n: [-1.5, -1.0 - 2**-40, -1.0, -0.5, 0.0, 1.25, n - 1.0, n - 0.5, float(n), n + 2**-40, n + 0.5] for n in (H, W)
    }
    samples = [(y, x) for y in steps[H] for x in steps[W]]
    shift = 0.5 if aligned else 0.0
    boxes = np.array([(x + shift - 0.5, y + shift - 0.5, x + shift + 0.5, y + shift + 0.5) for y, x in samples])
    zeros = np.zeros(len(boxes), np.int64)
    if kind == "roi_align":
        y = cg.roi_align(ramp(), boxes, zeros, (1, 1), samples=1, aligned=aligned)
    else:
        grid = "aligned" if aligned else "cells"
        y = cg.roi_align_levels([ramp()], boxes, zeros, zeros, (1, 1), (1.0,), 1, grid)
    found = cg.compile(y, [], engine=engine)()[:, 0, 0, 0]
    want = [
        0.0 if read(row, H) is None or read(column, W) is None else read(row, H) + 100 * read(column, W)
        for row, column in samples
    ]
    assert_near(found, want, "float64 coordinates")


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("grid", ["cells", "aligned", "corners"])
def test_only_pixels_that_a_cell_weighs_reach_it(grid, engine, special):
    """Each pixel in turn: those cells are not finite that it would change, no others; in the gradient alike."""
    rng = np.random.default_rng(1)
    image = rng.uniform(1, 2, (2, 2, H, W))
    corners = np.sort(rng.uniform(-3, 9, (6, 2, 2)), 1).reshape(6, 4)
    boxes = np.concatenate([corners, [[20.0, 20, 30, 30], [0, 0, 4, 4]]])
    batch = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    x, g = cg.Var(image.shape, "float64", "x"), cg.Var((8, 2, 3, 2), "float64", "g")
    y = cg.roi_align_levels([x], boxes, batch, np.zeros(8, int), (3, 2), (1.0,), 1 if grid == "corners" else 2, grid)
    forward, back = cg.compile(y, [x], engine=engine), cg.compile(cg.gradient(cg.sum(y * g), [x]), [g], engine=engine)
    weights = {}
    for row, column in np.ndindex(H, W):
        one = np.zeros(image.shape)
        one[0, 1, row, column] = 1
        weights[row, column] = forward(one)[:, 1] != 0
        assert not forward(one)[:, 0].any()
        broken = image.copy()
        broken[0, 1, row, column] = special
        found = forward(broken)
        np.testing.assert_array_equal(~np.isfinite(found[:, 1]), weights[row, column])
        assert np.isfinite(found[:, 0]).all()
    for cell in ((0, 1, 0, 0), (2, 1, 2, 1), (4, 1, 1, 0), (6, 1, 0, 0)):
        given = np.ones((8, 2, 3, 2))
        given[cell] = special
        found = ~np.isfinite(back(given)[0])
        want = np.array([[weights[row, column][cell[0], cell[2], cell[3]] for column in range(W)] for row in range(H)])
        np.testing.assert_array_equal(found[0, 1], want)
        assert found.sum() == want.sum()


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("corner", range(4))
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_a_box_that_is_no_number_reads_nothing_and_fails_nothing(special, corner, engine):
    """Other boxes are what they were; and a box far outside is 0 beside a border of NaN."""
    boxes = np.array([[0.0, 0, 4, 3], [1, 1, 5, 4], [1, 1, 5, 4], [50, 50, 60, 60]])
    whole = cg.roi_align(ramp(), boxes[1:], np.zeros(3, int), (2, 2)).eval()
    boxes[0, corner] = special
    image = cg.Var((1, 1, H, W), "float64", "image")
    y = cg.roi_align(image, boxes, np.zeros(4, int), (2, 2))
    found = cg.compile(y, [image], engine=engine)(ramp())
    np.testing.assert_array_equal(found[1:], whole)
    assert np.isfinite(found).all()
    border = np.pad(ramp()[:, :, 1:-1, 1:-1], ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    found = cg.compile(y, [image], engine=engine)(border)
    assert not found[3].any()


@pytest.mark.parametrize("count, scales", [(1, [1.0, 0.5]), (2, [1.0]), (3, [1.0, 0.5])])
def test_each_level_has_a_scale(count, scales):
    levels = [cg.Var((1, 2, H, W), name=f"level{i}") for i in range(count)]
    boxes, zero = cg.Var((3, 4), name="boxes"), cg.zeros((3,), "int64")
    with pytest.raises(ShapeError, match=f"there are {count} levels and {len(scales)} scales"):
        cg.roi_align_levels(levels, boxes, zero, zero, (2, 2), scales)


def test_boxes_have_no_gradient():
    image, boxes, zero = cg.Var((1, 1, H, W), "float64"), cg.Var((2, 4), "float64"), cg.zeros((2,), "int64")
    total = cg.sum(cg.roi_align_levels([image], boxes, zero, zero, (2, 2), [1.0]))
    to_boxes, to_image = cg.gradient(total + cg.sum(boxes[:, 0]) * 3, [boxes, image])
    values = np.random.default_rng(0).random(image.shape), np.array([[0.5, 1, 3, 4], [1, 0.25, 5, 3]])
    got, pixels = cg.compile([to_boxes, to_image], [image, boxes])(*values)
    np.testing.assert_array_equal(got, [[3, 0, 0, 0]] * 2)
    assert pixels.sum() > 0


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_gradients_of_boxes_of_no_image_and_of_another_level_are_left_out(engine):
    """A run of the gradient alone checks no numbers of images."""
    levels = [cg.Var((2, 1, 4, 4), "float64", f"level{i}") for i in range(2)]
    g, batch, level = cg.Var((5, 1, 2, 2), "float64", "g"), cg.Var((5,), "int64"), cg.Var((5,), "int64")
    boxes = np.array([[0.0, 0, 2, 2]] * 5)
    y = cg.roi_align_levels(levels, boxes, batch, level, (2, 2), (1.0, 1.0))
    f = cg.compile(cg.gradient(cg.sum(y * g), levels), [g, batch, level], engine=engine)
    given = np.arange(1.0, 6).reshape(5, 1, 1, 1) * np.ones((5, 1, 2, 2))
    first, second = f(given, np.array([-1, 0, 1, 1, 2]), np.array([0, 0, 1, 0, 1]))
    assert_near(first.sum((1, 2, 3)), [8, 16], "float64 formulas")
    assert_near(second.sum((1, 2, 3)), [0, 12], "float64 formulas")
