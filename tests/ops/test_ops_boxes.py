"""Boxes: overlap, suppression by groups, order and thresholds, encoding, and features of a region, by hand."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.boxes import NonMaximumSuppression, centre_and_size, is_near, neighbours, samples_along
from tests.autodiff.differences import check_first
from tests.support.computed import computed, float64
from tests.support.tolerance import assert_near

SQUARES = np.array([[0, 0, 2, 2], [0, 1, 2, 3], [0, 2, 2, 4], [5, 5, 6, 6.0]])  # neighbours overlap by a third
SCORES = np.array([0.7, 0.9, 0.8, 0.1])


def select(size, iou=0.3, least=-np.inf, groups=None, boxes=SQUARES, scores=SCORES):
    indices, count = cg.non_maximum_suppression(cg.Var(boxes), cg.Var(scores), size, iou, least, groups)
    got = computed(indices, count)
    return got[0].tolist(), got[1].tolist()


def test_overlap_of_every_pair():
    x, y = float64(SQUARES[:2], SQUARES)
    got = computed(cg.box_iou(x, y))
    assert_near(got, [[1, 1 / 3, 0, 0], [1 / 3, 1, 1 / 3, 0]], "float64 formulas")
    assert np.isnan(computed(cg.box_iou(*float64([[1.0, 1, 1, 1]], [[1.0, 1, 1, 1]])))).all()  # nothing over nothing
    assert cg.box_iou(cg.Var((0, 4)), cg.Var((3, 4))).shape == (0, 3)
    assert cg.box_iou(cg.Var((2, 4), "int32"), cg.Var((3, 4), "float32")).dtype == "float64"


def test_the_best_of_overlapping_boxes_is_selected():
    assert select(4) == ([1, 3, -1, -1], 2)
    assert select(1) == ([1], 1)
    assert select(0) == ([], 0)
    assert select(4, iou=1 / 3 + 1e-9) == ([1, 2, 0, 3], 4)


def test_an_overlap_of_the_threshold_itself_does_not_drop_and_a_score_of_it_does():
    pair = np.array([[0, 0, 2, 2], [0, 0, 2, 1.0]])  # overlap by exactly a half
    assert select(2, iou=0.5, boxes=pair, scores=SCORES[:2]) == ([1, 0], 2)
    assert select(2, iou=0.49, boxes=pair, scores=SCORES[:2]) == ([1, -1], 1)
    assert select(4, 0.5, least=0.7) == ([1, 2, -1, -1], 2)


def test_boxes_of_two_groups_do_not_drop_each_other():
    assert select(4, groups=np.array([0, 1, 0, 1])) == ([1, 2, 0, 3], 4)
    assert select(4, groups=np.array(7)) == ([1, 3, -1, -1], 2)


def test_images_are_separate_and_equal_scores_come_in_order():
    boxes, scores = np.stack([SQUARES, SQUARES[::-1]]), np.stack([SCORES, np.zeros(4)])
    assert select(3, boxes=boxes, scores=scores) == ([[1, 3, -1], [0, 1, 3]], [2, 3])


def test_specs_that_do_not_fit_are_refused_and_each_field_counts():
    op, i64 = NonMaximumSuppression(2, 0.5, 0.0), "int64"
    boxes, scores, order = cg.Var((3, 4)), cg.Var((3,)), cg.Var((3,), i64)
    assert len({apply(o, boxes, scores, order) for o in (op, NonMaximumSuppression(3, 0.5, 0.0),
                NonMaximumSuppression(2, 0.4, 0.0), NonMaximumSuppression(2, 0.5, 0.1))}) == 4  # fmt: skip
    for bad in ((boxes, cg.Var((3,), "float64"), order), (boxes, scores, cg.Var((3,), "int32")),
                (boxes, scores, order, scores)):  # fmt: skip
        with pytest.raises(DTypeError, match="pass one float dtype, and int64 order and groups"):
            apply(op, *bad)
    for bad in ((cg.Var((3, 3)), scores, order), (boxes, scores, cg.Var((2,), i64)),
                (boxes, scores, order, cg.Var((4,), i64)), (cg.Var((4,)), cg.Var(()), cg.Var((), i64))):  # fmt: skip
        with pytest.raises(ShapeError, match=r"pass boxes \[..., n, 4\] and scores and groups \[..., n\]"):
            apply(op, *bad)


def test_encoding_uses_each_scale_and_decoding_inverts_it():
    box, anchor, scales = float64([[1.0, 2, 5, 4]], [[0.0, 0, 2, 4]]), cg.Const([[0.0, 0, 2, 4]]), (1, 2, 3, 4)
    box = box[0]
    centre, size = computed(*centre_and_size(box))
    assert (centre.tolist(), size.tolist()) == ([[3, 3]], [[4, 2]])
    deltas = computed(cg.box_encode(box, anchor, scales))
    assert_near(deltas, [[2 / 2, 2 * 1 / 4, 3 * np.log(2), 4 * np.log(0.5)]], "float64 formulas")
    assert_near(computed(cg.box_decode(cg.Var(deltas), anchor, scales)), box.value, "float64 formulas")
    limited = computed(cg.box_decode(cg.Var(deltas), anchor, scales, most=0.0))
    assert_near(limited, [[2, 2, 4, 4]], "float64 formulas")  # only the larger ratio is limited


def test_samples_lie_in_the_middle_of_equal_parts():
    start, size = float64([1.0, 0.0], [4.0, 8.0])
    assert computed(samples_along(start, size, 2, 2)).tolist() == [[1.5, 2.5, 3.5, 4.5], [1, 3, 5, 7]]


def test_neighbours_of_a_coordinate_and_what_is_near():
    at = float64([-1.5, -1.0, 0.25, 2.0, 3.0, 3.5, np.nan])
    assert computed(is_near(at, 3)).tolist() == [False, True, True, True, True, False, False]
    (low, rest), (high, share) = neighbours(at, 3)
    low, rest, high, share = computed(low, rest, high, share)
    assert (low.tolist(), high.tolist()) == ([0, 0, 0, 2, 2, 0, 0], [1, 1, 1, 2, 2, 1, 1])
    np.testing.assert_array_equal(share, [0, 0, 0.25, 0, 0, 0, 0])
    np.testing.assert_array_equal(rest, 1 - share)


def test_a_region_has_rows_of_y_and_columns_of_x():
    x = cg.Var((np.arange(4.0)[:, None] * 10 + np.arange(5.0)).reshape(1, 1, 4, 5))  # 10 y + x
    boxes = cg.Var(np.array([[0.5, 0.5, 4.5, 2.5]]))  # x from 0.5 to 4.5, y from 0.5 to 2.5
    got = computed(cg.roi_align(x, boxes, [0], (1, 2), 1))
    assert_near(got, [[[[10 + 1, 10 + 3]]]], "float64 formulas")
    got = computed(cg.roi_align(x, boxes, [0], (1, 2), 1, aligned=False))
    assert_near(got, [[[[15 + 1.5, 15 + 3.5]]]], "float64 formulas")
    half = computed(cg.roi_align(x, boxes * 2, [0], (1, 2), 1, scale=0.5))
    assert_near(half, [[[[10 + 1, 10 + 3]]]], "float64 formulas")


def test_a_small_box_is_one_pixel_only_if_not_aligned():
    x = cg.Var(np.arange(4.0).reshape(1, 1, 1, 4).repeat(4, 2))
    point = cg.Var(np.array([[1.0, 1.0, 1.0, 1.0]]))
    assert computed(cg.roi_align(x, point, [0], (1, 1), 1, aligned=False)).item() == 1.5
    assert computed(cg.roi_align(x, point, [0], (1, 1), 1)).item() == 0.5


def test_each_box_reads_its_own_image_and_nothing_from_outside():
    x = np.stack([np.full((2, 3, 3), 1.0), np.full((2, 3, 3), np.nan)])
    boxes = cg.Var(np.array([[0.0, 0, 3, 3], [10, 10, 20, 20]]))
    got = computed(cg.roi_align(cg.Var(x), boxes, [0, 1], (1, 1)))
    assert got.ravel().tolist() == [1, 1, 0, 0]
    with pytest.raises(ShapeError, match=r"boxes.* does not fit; pass images \[n, c, h, w\] and boxes \[k, 4\]"):
        cg.roi_align(cg.Var(x), cg.Var((2, 5), name="boxes"), [0, 1], (1, 1))


def test_gradients_agree_with_differences():
    rng = np.random.default_rng(0)
    box = np.array([[0.3, 0.4, 3.1, 2.9]])
    check_first(lambda x, b: cg.roi_align(x, b, [0], (2, 3)), [rng.normal(size=(1, 2, 4, 5)), box])
    check_first(cg.box_encode, [box, box + [[0.1, -0.2, 0.5, 0.7]]])
    check_first(cg.box_decode, [box / 4, box])
    check_first(cg.box_iou, [box, box + [[0.1, -0.2, 0.5, 0.7]]])


@pytest.mark.parametrize("aligned", [True, False])
def test_a_box_whose_corners_are_exchanged_is_read_backwards_if_aligned_and_is_one_pixel_large_otherwise(aligned):
    x = cg.Var(np.random.default_rng(0).normal(size=(1, 2, 6, 7)))
    for box in ([4.5, 1, 1, 3], [1, 4.5, 3, 1], [4.5, 4, 1, 1]):
        x0, y0, x1, y1 = box
        if aligned:
            forward = [min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)]
        else:
            forward = [x0, y0, max(x1, x0 + 1), max(y1, y0 + 1)]
        boxes = (np.array([b], "f8") for b in (box, forward))
        got, want = (computed(cg.roi_align(x, b, [0], (3, 2), 2, 1.0, aligned)) for b in boxes)
        if aligned:
            want = want[:, :, :: -1 if y1 < y0 else 1, :: -1 if x1 < x0 else 1]
        assert_near(got, want, "float64 formulas")
