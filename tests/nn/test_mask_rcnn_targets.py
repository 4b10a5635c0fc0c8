"""Training targets of Mask R-CNN by their rules in NumPy: pixels around a coordinate, samples of boxes."""

import numpy as np
import pytest

import cgraph as cg
from nn.models.mask_rcnn.targets import mask_targets, match_boxes, pixels, sample_boxes
from tests.support.tolerance import assert_near


@pytest.mark.parametrize("count", [1, 2, 5])
def test_pixels_around_a_coordinate_are_those_of_roi_align(count):
    """Within a pixel of the image a coordinate counts as one on its border, farther away not at all."""
    at = np.array([-1.01, -1.0, -0.5, 0.0, 0.25, count - 1.25, count - 1.0, count - 0.5, count, count + 0.01], "f4")
    (first, near), (second, far) = [(x.eval(), y.eval()) for x, y in pixels(cg.Const(at), count)]
    inside = np.clip(at, 0, count - 1)
    np.testing.assert_array_equal(first, np.floor(inside))
    np.testing.assert_array_equal(second, np.minimum(first + 1, count - 1))
    np.testing.assert_array_equal(near + far, [0, *[1] * 8, 0])
    assert_near((first * near + second * far)[1:-1], inside[1:-1], "float32 formulas near zero")


BOOLS = [[False] * 8, [True] * 8, [True, False] * 4, [False, True] * 4]


@pytest.mark.parametrize(("size", "most"), [(5, 2), (8, 8), (3, 0), (1, 1), (20, 30)])
def test_a_sample_has_positives_up_to_most_then_negatives_and_nothing_else(size, most):
    """Of candidates that are positive, negative or neither, in several pictures at once."""
    positive, negative = np.array(BOOLS), np.array([BOOLS[2], BOOLS[0], BOOLS[0], BOOLS[2]])
    places, hit, there = (
        x.eval() for x in sample_boxes(*map(cg.Const, (positive, negative)), cg.Const(cg.random_key(1)), size, most)
    )
    assert places.shape == hit.shape == there.shape == (4, min(size, 8))
    for i in range(4):
        assert len(set(places[i])) == len(places[i]) and (hit[i] <= there[i]).all()
        assert positive[i][places[i][hit[i]]].all() and negative[i][places[i][there[i] & ~hit[i]]].all()
        taken = min(most, size, positive[i].sum())
        assert hit[i].sum() == taken and there[i].sum() == min(size, taken + (negative[i] & ~positive[i]).sum())


@pytest.mark.parametrize("best_of_each", [False, True])
def test_a_box_is_positive_from_the_upper_limit_on_and_negative_below_the_lower(best_of_each):
    """The last object does not exist; the boxes at 0.25 and 0.375 tie for none and for the second."""
    overlaps = np.array([[[0.5, 0, 1], [0.25, 0, 1], [0.125, 0.375, 1], [0, 0.375, 1], [0, 0, 1]]], "f4")
    there = cg.Const(np.array([[True, True, False]]))
    whose, positive, negative = (x.eval()[0] for x in match_boxes(cg.Const(overlaps), there, 0.25, 0.5, best_of_each))
    assert whose.tolist() == [0, 0, 1, 1, 0]
    assert positive.tolist() == [True, False, best_of_each, best_of_each, False]
    assert negative.tolist() == [False, False, False, False, True]


def sampled(mask, x, y):
    """The bilinear value of a mask at a point; 0 beyond a pixel outside."""
    rows, columns = mask.shape
    if not (-1 <= y <= rows and -1 <= x <= columns):
        return 0.0
    y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    top, left = int(y), int(x)
    a, b = mask[top], mask[min(top + 1, rows - 1)]
    right, down, across = min(left + 1, columns - 1), y - top, x - left
    return (1 - down) * ((1 - across) * a[left] + across * a[right]) + down * (
        (1 - across) * b[left] + across * b[right]
    )


@pytest.mark.parametrize("grid", [("corners", 1), ("corners", 2), ("centres", 1), ("centres", 2)], ids=str)
def test_a_cell_of_a_mask_is_the_mean_of_samples_and_only_by_the_rule_of_centres_has_a_box_at_least_a_pixel(grid):
    """Boxes within a pixel, higher than wide, beyond each border; two pictures with unequal sides."""
    owner = np.random.default_rng(0).integers(0, 3, (2, 5, 8)).astype("u1")
    one = [[1.2, 1.4, 1.5, 1.6], [0.5, 0.25, 3.5, 4.75], [-3, -2, 9, 7], [6.5, 3.5, 7.75, 6.5]]
    boxes, whose = np.array([one, one[::-1]], "f4"), np.array([[0, 1, 1, 0], [1, 0, 0, 1]])
    kind, samples = grid
    count = 3 * samples
    steps = np.arange(count) / (count - 1) if kind == "corners" else (np.arange(count) + 0.5) / count
    found = mask_targets(cg.Const(owner), cg.Const(boxes), cg.Const(whose), 3, grid).eval()
    for i in range(2):
        for j, (x0, y0, x1, y1) in enumerate(boxes[i].tolist()):
            width, height = (x1 - x0, y1 - y0) if kind == "corners" else (max(x1 - x0, 1), max(y1 - y0, 1))
            mask = (owner[i] == whose[i, j] + 1).astype(float)
            points = np.array([[sampled(mask, x0 + width * s, y0 + height * r) for s in steps] for r in steps])
            want = points.reshape(3, samples, 3, samples).mean((1, 3))
            assert_near(found[i, j], want, "float32 crops")


def test_the_best_box_of_an_object_is_never_negative_however_little_it_overlaps():
    overlaps = cg.Const(np.float32([[[0.2, 0.1], [0.1, 0.05], [0.6, 0.0]]]))
    there = cg.Const(np.array([[True, True]]))
    for best_of_each, want in ((True, [True, False, True]), (False, [False, False, True])):
        whose, positive, negative = (x.eval() for x in match_boxes(overlaps, there, 0.3, 0.6, best_of_each))
        assert whose.tolist() == [[0, 0, 0]] and positive.tolist() == [want]
        assert negative.tolist() == [[not x for x in want]]


def test_a_box_whose_random_number_is_zero_is_drawn_as_well(monkeypatch):
    monkeypatch.setattr(cg, "random_uniform", lambda key, shape: cg.zeros(shape))
    positive, negative = cg.Const(np.array([[True, False, False]])), cg.Const(np.array([[False, True, False]]))
    places, hit, there = (x.eval() for x in sample_boxes(positive, negative, cg.Const(cg.random_key(0)), 3, 2))
    assert places.tolist()[0][:2] == [0, 1] and hit.tolist() == [[True, False, False]]
    assert there.tolist() == [[True, True, False]]
