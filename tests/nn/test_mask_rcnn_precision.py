"""Rows of COCO's evaluation: pictures, true objects and detections; precision at each overlap; a validation of it."""

import numpy as np
import pytest

from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.objects import Detection
from nn.models.mask_rcnn.tools import precision as measures
from nn.models.mask_rcnn.tools.precision import (
    GroundTruth,
    Precision,
    corner_and_size,
    detection_rows,
    image_row,
    precision,
    truth_rows,
    validation,
)
from tests.support.tolerance import all_near, assert_near

runs = pytest.importorskip("pycocotools.mask", reason="pycocotools is not installed")


def block(rows, columns, x0, y0, x1, y1):
    """The pixels of a box."""
    mask = np.zeros((rows, columns), bool)
    mask[y0:y1, x0:x1] = True
    return mask


def truth_of(rows, columns, *objects):
    """True objects from classes and boxes, which they fill."""
    boxes = np.array([box for _, box in objects], "f4").reshape(-1, 4)
    masks = np.array([block(rows, columns, *box) for _, box in objects], bool).reshape(-1, rows, columns)
    return GroundTruth(boxes, np.array([kind for kind, _ in objects], np.int64), masks)


class Found:
    """A detection whose mask is the block of another box."""

    def __init__(self, kind, box, score=0.5, shape=(50, 100), filled=None):
        self.kind, self.box, self.score = kind, box, score
        self.mask = block(*shape, *(filled or box))

    def pixels(self):
        return self.mask


TRUTH = truth_of(3, 5, (2, (2, 1, 4, 3)), (1, (0, 0, 1, 1)))


def test_pictures_are_counted_from_one_and_have_rows_for_their_height():
    assert image_row(3, TRUTH) == {"id": 4, "height": 3, "width": 5}


def test_a_box_becomes_a_corner_and_a_size():
    assert corner_and_size(np.array([1, 2, 4, 9], "f4")) == [1, 2, 3, 7]


def test_a_true_object_has_the_class_area_box_and_mask_of_its_place():
    rows = truth_rows(3, TRUTH)
    masks = [runs.decode(row.pop("segmentation")) for row in rows]
    assert rows == [
        {"image_id": 4, "category_id": 2, "iscrowd": 0, "area": 4.0, "bbox": [2, 1, 2, 2]},
        {"image_id": 4, "category_id": 1, "iscrowd": 0, "area": 1.0, "bbox": [0, 0, 1, 1]},
    ]
    np.testing.assert_array_equal(masks, TRUTH.masks)


def test_a_detection_has_its_score_and_the_pixels_of_its_mask():
    one = Detection((1.0, 0.0, 4.0, 2.0), 0.75, 2, np.ones((28, 28), "f4"), (3, 5))
    (row,) = detection_rows(1, [one])
    np.testing.assert_array_equal(runs.decode(row.pop("segmentation")), one.pixels())
    assert row == {"image_id": 2, "category_id": 2, "score": 0.75, "bbox": [1, 0, 3, 2]}


BOX = (10, 10, 50, 30)
MOVED = (19, 10, 59, 30)  # an overlap of 620 / 980, above 0.5, 0.55 and 0.6


def test_precision_of_boxes_and_of_masks_are_apart_at_each_overlap():
    """Pictures are wider than high, and the second one has an object of another class."""
    truths = [truth_of(50, 100, (1, BOX)), truth_of(50, 100, (2, BOX))]
    found = precision([[Found(1, MOVED, filled=BOX)], [Found(2, MOVED, filled=BOX)]], truths, 3)
    assert list(found) == ["boxes", "masks"]
    assert_near(found["boxes"], Precision(mean=0.3, at_50=1, at_75=0), "float64 formulas")
    assert_near(found["masks"], Precision(1, 1, 1), "float64 formulas")


def test_objects_of_another_class_or_picture_are_wrong_and_the_last_class_counts():
    truths = [truth_of(50, 100, (2, BOX)), truth_of(50, 100)]
    for right, detections in ((1, [[Found(2, BOX)], []]), (0, [[Found(1, BOX)], []]), (0, [[], [Found(2, BOX)]])):
        found = precision(detections, truths, 3)
        assert_near([found["boxes"].mean, found["masks"].mean], [right, right], "float64 formulas")


def test_without_detections_the_precision_is_zero():
    assert precision([[], []], [truth_of(50, 100, (1, BOX))] * 2, 3) == {
        "boxes": Precision(0.0, 0.0, 0.0), "masks": Precision(0.0, 0.0, 0.0),
    }  # fmt: skip


@pytest.mark.parametrize("batch", [(), (4,)])
def test_a_validation_is_what_the_masks_of_the_current_weights_lack(batch, monkeypatch):
    """The network is compiled once with live weights, and asked anew each time."""
    calls, objects = [], [[Found(1, BOX, filled=MOVED)]]
    model = type("Model", (), {"config": Config((64, 64), 3)})
    monkeypatch.setattr(measures, "compile_model", lambda *args, **options: calls.append((args, options)) or "network")
    monkeypatch.setattr(measures, "find", lambda *args: calls.append(args) or objects)
    lack = validation(model, ["picture"], [truth_of(50, 100, (1, BOX))], *batch)
    assert calls == [((model, *(batch or (1,))), {"frozen": False})]
    assert_near(lack(), 0.7, "float64 formulas")
    objects[:] = [[Found(1, MOVED, filled=BOX)]]
    assert all_near(lack(), 0.0)
    assert calls[1:] == [("network", model.config, ["picture"])] * 2
