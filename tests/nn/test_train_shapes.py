"""The training of the small network: its rate, its pictures on disk, its truth and its log."""

from types import SimpleNamespace

import numpy as np
import pytest

import cgraph as cg
from nn.history import History
from nn.models.mask_rcnn.tools import train_shapes
from nn.models.mask_rcnn.tools.precision import Precision
from nn.models.mask_rcnn.tools.synthetic import OBJECTS, TEST, TRAINING, synthetic_images
from nn.models.mask_rcnn.tools.train_shapes import ground_truth, loader, log_of, optimiser
from nn.optim import AdamW, ClipL2
from tests.support.tolerance import near


@pytest.mark.parametrize(
    ("steps", "at"), [(2800, {0: 1 / 100, 99: 1, 2200: 1, 2500: 0.5, 2799: 1 / 600}), (10, {0: 1 / 100, 9: 1 / 10})]
)
def test_the_rate_rises_stays_and_falls_over_what_there_is_of_the_training(steps, at):
    rule = optimiser(steps)
    assert isinstance(rule.method, AdamW) and rule.clipping == ClipL2(5.0)
    for step, share in at.items():
        assert rule.rate.at(cg.Const(np.float32(step))).eval() == near(0.0015 * share, "float32 formulas")


def test_pictures_are_made_once_and_read_afterwards(tmp_path):
    data = loader(tmp_path, 16)
    assert data.steps_per_epoch == 2
    want = synthetic_images(TRAINING, 0, 16)
    with np.load(tmp_path / "pictures.npz") as file:
        assert list(file) == list(want._fields)
        for name in file:
            np.testing.assert_array_equal(file[name], getattr(want, name))
    assert loader(tmp_path, 24).steps_per_epoch == 2  # the file is not made again
    again = loader(tmp_path, 16)
    for one, other in zip(data.at(0), again.at(0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_truth_of_a_picture_are_its_objects_alone():
    data = synthetic_images(0, 0, 6)
    for i in range(6):
        boxes, classes, masks = ground_truth(data, i)
        count = int((data.classes[i] > 0).sum())
        assert len(boxes) == len(classes) == len(masks) == count < OBJECTS
        np.testing.assert_array_equal(classes, data.classes[i, :count])
        for j, (mask, box) in enumerate(zip(masks, boxes)):
            np.testing.assert_array_equal(mask, data.owner[i] == j + 1)
            rows, columns = np.nonzero(mask)
            assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_pictures_of_the_test_are_measured_with_rows_first_beside_their_truths(monkeypatch):
    seen = []
    monkeypatch.setattr(train_shapes, "compile_model", lambda model, **options: (model, options))
    monkeypatch.setattr(train_shapes, "find", lambda *given: [[seen.append(given)]])
    monkeypatch.setattr(train_shapes, "precision", lambda *given: given)
    model, data = SimpleNamespace(config=SimpleNamespace(classes=7)), synthetic_images(TEST, 0, 3)
    detections, truths, classes = train_shapes.measure(model, 3, threads=1)
    assert detections == [[None]] * 3 and classes == 7
    for i, (predict, config, (picture,)) in enumerate(seen):
        assert predict == (model, {"threads": 1}) and config is model.config
        np.testing.assert_array_equal(np.moveaxis(picture, -1, 0), data.pictures[i])
        for one, other in zip(truths[i], ground_truth(data, i), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_log_has_means_of_a_hundred_steps_and_the_precision():
    loss = np.repeat([1.0, 3.0], [100, 50])
    none = np.zeros(0)
    history = History(loss, loss, none, none, parts={"anchors": loss / 2, "masks": loss / 4})
    precisions = {"boxes": Precision(0.75, 0.5, 0.25), "masks": Precision(1.0, 0.00004, 0.00006)}
    assert log_of(history, precisions) == (
        " steps    loss       anchors         masks\n"
        "     0  1.0000        0.5000        0.2500\n"
        "   100  3.0000        1.5000        0.7500\n"
        "boxes: mAP 0.7500, AP50 0.5000, AP75 0.2500\n"
        "masks: mAP 1.0000, AP50 0.0000, AP75 0.0001\n"
    )
