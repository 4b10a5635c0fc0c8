"""Data sets in COCO's format: what becomes of boxes and masks, and the refusals with their texts."""

import json

import numpy as np
import pytest
from PIL import Image

from cgraph import FormatError
from nn.models.mask_rcnn import matterport_config, torchvision_config
from nn.models.mask_rcnn.tools import coco
from nn.models.mask_rcnn.tools.coco import (
    DataSet,
    Entry,
    arrays_of,
    box_of,
    boxes_of,
    check_masks,
    ground_truth_of,
    key_of,
    largest_first,
    picture_of,
    picture_row,
    read_coco,
)
from tests.support.tolerance import assert_near, near


def data_set(folder, **changes):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(folder / "one.png")
    runs = np.zeros((40, 60), bool)
    runs[5:9, 50:58] = True
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate([[2], runs.T.ravel(), [2]])))).tolist()
    objects = [
        {"image_id": 7, "category_id": 18, "bbox": [10, 5, 20, 30], "segmentation": [[10, 5, 29, 5, 29, 34, 10, 34]]},
        {"image_id": 7, "category_id": 3, "bbox": [50, 5, 8, 4], "segmentation": {"counts": lengths, "size": [40, 60]}},
        {"image_id": 7, "category_id": 3, "bbox": [0, 0, 1, 1], "segmentation": [], "iscrowd": 1},
    ]
    found = {
        "images": [{"id": 7, "file_name": "one.png", "height": 40, "width": 60}],
        "categories": [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}],
        "annotations": objects,
    }
    path = folder / "instances.json"
    path.write_text(json.dumps(found | changes))
    return path


def test_a_data_set_becomes_arrays(tmp_path):
    data = read_coco(data_set(tmp_path), tmp_path)
    assert data.names == ["background", "car", "dog"]
    truth = ground_truth_of(data.entries[0])
    assert truth.classes.tolist() == [2, 1] and truth.masks.sum((1, 2)).tolist() == [600, 32]
    config = torchvision_config((80, 128), 3)
    pictures, windows, boxes, classes, owner = arrays_of(data, config, 4)
    assert pictures.shape == (1, 3, 80, 128) and pictures.dtype == np.uint8 and windows.tolist() == [[0, 0, 120, 80]]
    assert classes.tolist() == [[2, 1, 0, 0]]
    np.testing.assert_array_equal(boxes[0, :2], [[20, 10, 60, 70], [100, 10, 116, 18]])
    assert (owner[0] == 1).sum() == near(2400, "polygon's pixels") and (owner[0] == 2).sum() == 128


@pytest.mark.parametrize(
    "changes",
    [
        {"images": [{"id": 7, "file_name": "../one.png", "height": 40, "width": 60}]},
        {"images": [{"id": 7, "file_name": "/one.png", "height": 40, "width": 60}]},
        {"images": [{"id": 7, "file_name": "one.png", "height": 1 << 20, "width": 1 << 20}]},
        {"images": [{"id": 8, "file_name": "one.png", "height": 40, "width": 60}]},
        {"images": [{"id": 7, "file_name": "one.png", "height": 40, "width": 60}] * 2},
        {"images": {"id": 7, "file_name": "one.png", "height": 40, "width": 60}},
        {"categories": []},
        {"categories": [{"id": 3, "name": "car"}, {"id": 18, "name": "dog"}, {"id": 3, "name": "cat"}]},
        {"annotations": None},
    ],
)
def test_a_data_set_that_cannot_be_is_refused(tmp_path, changes):
    with pytest.raises(FormatError):
        read_coco(data_set(tmp_path, **changes), tmp_path)


def square(x, y, side):
    """A polygon whose pixels are a square."""
    return [[x, y, x + side - 1, y, x + side - 1, y + side - 1, x, y + side - 1]]


def one_entry(folder, *squares, rows=40, columns=60):
    """An entry with an object of class 1, 2, … for each square (x, y, side)."""
    objects = [(i, [x, y, side, side], square(x, y, side)) for i, (x, y, side) in enumerate(squares, 1)]
    return Entry(folder / "one.png", rows, columns, objects)


def test_ids_of_numbers_and_of_texts_are_apart():
    assert key_of(7) == "int 7" and key_of("7") == "str 7"
    for other in (7.0, True, None, [7]):
        with pytest.raises(FormatError) as error:
            key_of(other)
        assert str(error.value) == f"{other!r} is not an id. Use integers or texts as ids."


@pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, "4"], None, [1, 2, 3, float("nan")]])
def test_a_box_is_four_numbers(values):
    assert box_of([1, 2, 3.5, 4]) == [1.0, 2.0, 3.5, 4.0]
    with pytest.raises(FormatError, match="is not a box. Use a list of four numbers: corner, width and height"):
        box_of(values)


def test_a_picture_has_rows_and_columns_and_a_file_in_the_folder():
    row = {"height": 3, "width": 5, "file_name": "a/b.png"}
    assert picture_row(row) == ("a/b.png", 3, 5)
    with pytest.raises(FormatError) as error:
        picture_row(row | {"height": 0})
    assert str(error.value) == f"a/b.png has 0 × 5 pixels. Use pictures of 1 to {1 << 26} pixels."
    assert picture_row(row | {"height": 1 << 13, "width": 1 << 13})[1] == 1 << 13
    with pytest.raises(FormatError, match="has 8192 × 8193 pixels"):
        picture_row(row | {"height": 1 << 13, "width": (1 << 13) + 1})
    for name in ("a/../../b.png", "/etc/b.png", "a\nb.png"):
        with pytest.raises(FormatError, match="is not a file in the folder of the pictures. Use a relative path"):
            picture_row(row | {"file_name": name})


def test_a_picture_of_another_size_than_its_row_is_refused(tmp_path):
    data_set(tmp_path)
    assert picture_of(Entry(tmp_path / "one.png", 40, 60, [])).shape == (40, 60, 3)
    with pytest.raises(FormatError, match="it has 40 × 60 pixels, not 60 × 40"):
        picture_of(Entry(tmp_path / "one.png", 60, 40, []))


def test_corners_of_boxes_are_sums(tmp_path):
    np.testing.assert_array_equal(boxes_of(one_entry(tmp_path, (1, 2, 3), (7, 5, 2))), [[1, 2, 4, 5], [7, 5, 9, 7]])
    assert boxes_of(one_entry(tmp_path)).shape == (0, 4)
    truth = ground_truth_of(one_entry(tmp_path))
    assert truth.masks.shape == (0, 40, 60) and truth.classes.shape == (0,)


def test_masks_of_a_picture_have_a_limit_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(coco, "MOST_MASKS", 2 * 40 * 60)
    check_masks(one_entry(tmp_path, (1, 1, 3), (1, 1, 3)))
    with pytest.raises(FormatError) as error:
        check_masks(one_entry(tmp_path, *[(1, 1, 3)] * 3))
    assert str(error.value) == (
        f"{tmp_path / 'one.png'}: the masks of 3 objects in 40 × 60 pixels need 7.03 KiB, at most 4.69 KiB are "
        "allowed. Scale the picture and its objects down."
    )


def test_the_largest_objects_come_first_and_equal_ones_in_the_order_of_the_file(tmp_path):
    assert largest_first(one_entry(tmp_path, (1, 1, 5), (9, 9, 10), (30, 9, 5), (1, 20, 7))) == [1, 3, 0, 2]


def test_a_pixel_belongs_to_the_smallest_and_only_the_largest_objects_are_used(tmp_path):
    data_set(tmp_path)
    data = DataSet(["background", "a", "b", "c"], [one_entry(tmp_path, (2, 2, 4), (0, 0, 20), (4, 4, 10))])
    *_, boxes, classes, owner = arrays_of(data, torchvision_config((40, 60), 4), 3)
    assert classes.tolist() == [[2, 3, 1]]
    assert [owner[0, i, i] for i in (0, 3, 5, 8, 18, 30)] == [1, 3, 3, 2, 1, 0]
    *_, boxes, classes, owner = arrays_of(data, torchvision_config((40, 60), 4), 2)
    assert classes.tolist() == [[2, 3]] and owner.max() == 2 and boxes.shape == (1, 2, 4)


def test_far_corners_and_windows_are_those_of_the_rule(tmp_path):
    """60 x 40 pixels lie in the middle of 60 x 60 by matterport's rule, whose far corners are one less."""
    data_set(tmp_path)
    data = DataSet(["background", "a"], [one_entry(tmp_path, (2, 3, 10))])
    _, windows, boxes, _, owner = arrays_of(data, matterport_config(60, 2), 1)
    assert windows.tolist() == [[0, 10, 60, 50]] and boxes.tolist() == [[[2, 13, 11, 22]]]
    rows, columns = np.nonzero(owner[0])
    assert (rows.min(), columns.min()) == (13, 2)


def test_rows_and_columns_of_boxes_are_scaled_apart(tmp_path):
    """40 x 60 pixels become 39 x 58, which is a little less of the columns than of the rows."""
    data_set(tmp_path)
    data = DataSet(["background", "a"], [one_entry(tmp_path, (2, 3, 10))])
    _, windows, boxes, _, _ = arrays_of(data, torchvision_config((39, 59), 2), 1)
    assert windows.tolist() == [[0, 0, 58, 39]]
    want = [2 * 58 / 60, 3 * 39 / 40, 12 * 58 / 60, 13 * 39 / 40]
    assert_near(boxes[0, 0], want, "float32 formulas")


def test_a_picture_with_too_many_masks_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(coco, "MOST_MASKS", 1)
    with pytest.raises(FormatError, match="the masks of 1 objects in 40 × 60 pixels"):
        arrays_of(DataSet(["background", "a"], [one_entry(tmp_path, (2, 3, 10))]), torchvision_config((40, 60), 2), 1)


def test_pictures_without_objects_are_left_out(tmp_path):
    data_set(tmp_path)
    empty, full = one_entry(tmp_path), one_entry(tmp_path, (2, 2, 4))
    assert len(arrays_of(DataSet(["background", "a"], [empty, full]), torchvision_config((40, 60), 2), 1)[0]) == 1
    with pytest.raises(FormatError) as error:
        arrays_of(DataSet(["background", "a"], [empty, empty]), torchvision_config((40, 60), 2), 1)
    assert str(error.value) == "none of the 2 pictures of the data set has an object. Check its annotations."


def test_groups_of_objects_are_skipped_and_the_names_follow_the_file(tmp_path):
    data = read_coco(str(data_set(tmp_path)), str(tmp_path))
    assert [kind for kind, *_ in data.entries[0].objects] == [2, 1]
    assert data.entries[0].path == tmp_path / "one.png" and (data.entries[0].rows, data.entries[0].columns) == (40, 60)


def test_a_file_that_is_too_large_or_no_json_is_refused(tmp_path, monkeypatch):
    path = data_set(tmp_path)
    with pytest.raises(FormatError, match="missing.json is not a COCO data set: FileNotFoundError"):
        read_coco(tmp_path / "missing.json", tmp_path)
    monkeypatch.setattr(coco, "MOST_BYTES", path.stat().st_size)
    read_coco(path, tmp_path)
    monkeypatch.setattr(coco, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(FormatError, match="bytes. Split the data set"):
        read_coco(path, tmp_path)
    monkeypatch.undo()
    path.write_text("[" * 100_000)
    with pytest.raises(FormatError, match="is not a COCO data set: (RecursionError|ValueError)"):
        read_coco(path, tmp_path)
