"""Faces from raw rows: decoding, thresholds, and boxes that are blended, all by hand."""

import numpy as np
import pytest

from nn.models.faces import decode_boxes, faces_of, intersection_over_union
from tests.support.tolerance import assert_near, near

UNIT = np.array([[0.5, 0.5, 1.0, 1.0]])


def logit(p):
    return np.log(p / (1 - p))


def row(x0, y0, x1, y1, point=0.0):
    """The raw row, in pixels of 128, of a box whose anchor is the whole picture."""
    numbers = [(x0 + x1) / 2 - 0.5, (y0 + y1) / 2 - 0.5, x1 - x0, y1 - y0, *[point - 0.5] * 12]
    return np.array(numbers) * 128


def faces(rows, probabilities, **options):
    anchors = np.repeat(UNIT, len(rows), 0)
    return faces_of(np.array(rows).reshape(-1, 16), logit(np.array(probabilities))[:, None], anchors, **options)


def test_a_row_is_relative_to_centre_and_size_of_its_anchor():
    raw = np.array([[0.1, -0.2, 0.5, 0.25, *[0.0, 0.0, 0.1, -0.1, *[0.2] * 8]]])
    (got,) = decode_boxes(raw, np.array([[0.5, 0.25, 0.4, 0.2]]))
    centre, half = (0.5 + 0.1 * 0.4, 0.25 - 0.2 * 0.2), (0.5 * 0.4 / 2, 0.25 * 0.2 / 2)
    box = [centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1]]
    assert_near(got[:4], box, "float64 formulas")
    assert_near(got[4:8], [0.5, 0.25, 0.5 + 0.04, 0.25 - 0.02], "float64 formulas")


def test_overlaps_are_shares_of_the_union():
    boxes = np.array([[0, 0, 2, 1], [1, 0, 3, 1], [2, 0, 3, 1], [5, 5, 6, 6], [0, 0, 4, 2], [1, 1, 1, 1]], float)
    assert_near(intersection_over_union(boxes[0], boxes), [1, 1 / 3, 0, 0, 0.25, 0], "float64 formulas")
    assert intersection_over_union(boxes[5], boxes[5:]).tolist() == [0]


def test_boxes_that_overlap_are_one_face_weighted_by_probability():
    rows = [row(0.0, 0.0, 0.4, 0.4, 0.1), row(0.1, 0.0, 0.5, 0.4, 0.2), row(0.6, 0.6, 0.9, 0.9)]
    first, second = faces(rows, [0.8, 0.9, 0.84])
    share = 0.9 / 1.7
    assert_near(first.box, [0.1 * share, 0, 0.4 + 0.1 * share, 0.4], "float64 formulas near zero")
    assert first.probability == near(0.85, "float64 formulas")
    assert_near(first.points, np.full((6, 2), 0.1 + 0.1 * share), "float64 formulas")
    assert_near(second.box, [0.6, 0.6, 0.9, 0.9], "float64 formulas")


def test_the_most_probable_face_comes_first():
    found = faces([row(0, 0, 0.2, 0.2), row(0.5, 0.5, 0.7, 0.7)], [0.8, 0.95])
    assert [round(x.probability, 6) for x in found] == [0.95, 0.8]
    equal = faces([row(0, 0, 0.2, 0.2), row(0.5, 0.5, 0.7, 0.7)], [0.8, 0.8])
    assert equal[0].box[0] < equal[1].box[0]


def test_a_face_of_several_boxes_is_placed_by_their_mean_probability():
    rows = [row(0, 0, 0.4, 0.4), row(0, 0, 0.4, 0.4), row(0.5, 0.5, 0.9, 0.9)]
    first, second = faces(rows, [0.95, 0.76, 0.9])
    assert (round(first.probability, 6), round(second.probability, 6)) == (0.9, 0.855)
    assert_near(first.box, [0.5, 0.5, 0.9, 0.9], "float64 formulas")


@pytest.mark.parametrize(("overlap", "count"), [(0.3, 1), (0.5, 2), (0.7, 2)])
def test_above_an_overlap_two_boxes_are_one(overlap, count):
    """Half of the second box is in the first, which is twice as large: an overlap of 0.5, which is not beyond 0.5."""
    rows = [row(0.0, 0.0, 0.5, 0.5), row(0.0, 0.0, 0.5, 0.25)]
    assert len(faces(rows, [0.9, 0.8], overlap=overlap)) == count


def test_the_default_thresholds():
    """0.75 for a face and 0.3 for one face."""
    rows = [row(0.0, 0.0, 0.5, 0.5), row(0.0, 0.0, 0.5, 0.125)]
    assert len(faces(rows, [0.9, 0.8])) == 2
    assert len(faces([rows[0], row(0.0, 0.0, 0.5, 0.2)], [0.9, 0.8])) == 1
    assert len(faces(rows[:1], [0.749])) == 0 and len(faces(rows[:1], [0.751])) == 1
    assert len(faces(rows[:1], [0.5], least=0.5)) == 1


def test_other_cameras_have_other_units():
    (face,) = faces([2 * row(0.25, 0.25, 0.5, 0.75)], [0.9], pixels=256)
    assert_near(face.box, [0.25, 0.25, 0.5, 0.75], "float64 formulas")


def test_a_box_without_area_is_a_face_of_its_own():
    """It does not overlap even itself, which must not go on for ever."""
    found = faces([row(0.2, 0.2, 0.2, 0.2), row(0.2, 0.2, 0.2, 0.2)], [0.9, 0.8])
    assert [round(x.probability, 6) for x in found] == [0.9, 0.8]


def test_no_anchors_or_none_likely_are_no_faces():
    assert faces_of(np.zeros((0, 16)), np.zeros((0, 1)), np.zeros((0, 4))) == []
    assert faces([row(0, 0, 1, 1)] * 3, [0.1, 0.2, 0.7]) == []


def test_scores_beyond_what_an_exponential_takes_are_certain():
    with np.errstate(over="raise"):
        rows = np.stack([row(0, 0, 0.2, 0.2)] * 2)
        (face,) = faces_of(rows, np.array([[1e4], [-1e4]], np.float32), np.repeat(UNIT, 2, 0))
    assert face.probability == 1.0
