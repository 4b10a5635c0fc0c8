"""Masks of COCO's objects: drawn in strips they have the pixels of the whole picture, and their work is bounded."""

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

from cgraph import FormatError
from nn.models.mask_rcnn.tools import coco, masks


def drawn_whole(polygons, rows, columns):
    image = Image.new("1", (columns, rows))
    for corners in polygons:
        if len(corners) >= 6:
            ImageDraw.Draw(image).polygon(corners, fill=1)
    return np.array(image)


def random_polygons(rng):
    """Up to three polygons, some of integers, some beside the picture."""
    sizes = rng.integers(2, 12, rng.integers(4))
    draw = rng.choice([lambda n: rng.uniform(-40, 90, n), lambda n: rng.integers(-10, 70, n).astype(float)])
    return [draw(2 * n).tolist() for n in sizes]


@pytest.mark.parametrize("strip", [1, 50, 400, masks.STRIP])
def test_polygons_in_strips_are_those_of_the_whole_picture(strip, monkeypatch):
    monkeypatch.setattr(masks, "STRIP", strip)
    rng = np.random.default_rng(strip)
    for _ in range(60):
        polygons, (rows, columns) = random_polygons(rng), rng.integers(1, 60, 2).tolist()
        mask = masks.mask_of(polygons, rows, columns)
        assert mask.dtype == bool
        np.testing.assert_array_equal(mask, drawn_whole(polygons, rows, columns))


def test_the_work_of_polygons_is_at_most_what_their_corners_allow():
    rng = np.random.default_rng(0)
    for _ in range(100):
        polygons, (rows, columns) = random_polygons(rng), rng.integers(1, 60, 2).tolist()
        assert masks.work_of(polygons, rows, columns) <= masks.work_at_most(polygons, rows, columns)


HEAVY = {
    "edges that cross every row": [[0, 0, 4000, 4000] * 40],
    "polygons that fill the picture": [[0, 0, 4000, 0, 4000, 4000, 0, 4000]],
    "very many small polygons": [[0, 0, 2, 0, 2, 2]] * 1000,
    "edges along a row": [[0, 0, 4000, 0] * 800],
}


@pytest.mark.parametrize("name", HEAVY)
def test_objects_that_take_too_much_work_are_refused_before_they_are_drawn(name, monkeypatch):
    """The sum of a picture's objects counts."""
    work = masks.work_of(HEAVY[name], 4000, 4000) + masks.OBJECT
    assert work > 4_000_000
    monkeypatch.setattr(masks, "MOST_WORK", 2 * work)
    masks.check_work([HEAVY[name]] * 2, 4000, 4000, "a.png")
    with pytest.raises(
        FormatError, match=r"a\.png: the masks of 3 objects in 4000 × 4000 pixels take .* steps to draw"
    ):
        masks.check_work([HEAVY[name]] * 3, 4000, 4000, "a.png")


def test_objects_of_no_pixels_are_work_too(monkeypatch):
    """Each takes calls of Python: a picture may have tens of thousands, which must not take minutes."""
    monkeypatch.setattr(masks, "MOST_WORK", 5 * masks.OBJECT)
    masks.check_work([[]] * 5, 40, 60, "a.png")
    with pytest.raises(FormatError, match="the masks of 6 objects in 40 × 60 pixels take 600,000 steps to draw"):
        masks.check_work([[]] * 6, 40, 60, "a.png")


def test_detailed_objects_of_a_photograph_are_drawn():
    angle = np.linspace(0, 6.28, 2000)
    outline = (np.stack([1500 + 900 * np.cos(angle), 1200 + 900 * np.sin(angle)], 1)).ravel().tolist()
    masks.check_work([[outline]] * 40, 3000, 4000, "a.png")


def test_the_work_of_a_picture_is_checked_before_its_masks_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(masks, "MOST_WORK", masks.OBJECT + 10_000)
    thing = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 9, 0, 9, 9]] * 4}
    picture = {"id": 1, "height": 40, "width": 60, "file_name": "a.png"}
    text = {"categories": [{"id": 1, "name": "x"}], "images": [picture], "annotations": [thing]}
    (tmp_path / "c.json").write_text(json.dumps(text))
    entry = coco.read_coco(tmp_path / "c.json", tmp_path).entries[0]
    with pytest.raises(
        FormatError, match=r"a\.png: the masks of 1 objects .* take 121,604 .* at most 110,000 are allowed"
    ):
        coco.ground_truth_of(entry)


@pytest.mark.parametrize("text", ["?" * 100_000, "/", "_" * 5 + "?"])
def test_packed_runs_longer_than_a_picture_are_refused(text):
    with pytest.raises(FormatError, match=r"(?s)runs .* do not fill a picture|packed runs"):
        masks.mask_of({"counts": text}, 4, 4)


@pytest.mark.parametrize("value", [0, -1.5, masks.MOST_PIXELS, -float(masks.MOST_PIXELS)])
def test_coordinates_are_numbers_in_the_range_of_pixels(value):
    assert masks.is_coordinates([]) and masks.is_coordinates([1, value])
    beyond = np.copysign(masks.MOST_PIXELS + 1, value).item()
    for wrong in ([1, beyond], [beyond, 1], [True], ["1"], [None], [float("nan")], [[1]], (1, 2), 3, None):
        assert not masks.is_coordinates(wrong)


def test_runs_have_a_sum_if_all_are_lengths():
    assert masks.total_of([]) == 0 and masks.total_of([3, 0, 4]) == 7
    assert masks.total_of(np.array([2**31 - 1, 2**31 - 1], np.int32)) == 2**32 - 2
    for wrong in ([3, -1], [3, 1.0], [True], ["3"], (3, 4), None, 7):
        assert masks.total_of(wrong) is None


@pytest.mark.parametrize("polygon", [[0, 0, 4, 0, 4], [0, 0, 4, 0, 4, "4"], [0, 0, 4, 0, 4, 1e9]], ids=str)
def test_a_polygon_has_pairs_of_coordinates(polygon):
    with pytest.raises(FormatError, match="is not a polygon. Use a list of x and y in turn"):
        masks.outlines_of([[0, 0, 4, 0, 4, 4], polygon])


def test_outlines_leave_out_what_has_fewer_than_three_corners_and_truncate_towards_zero():
    outlines = masks.outlines_of([[1, 2, 3, 4], [-0.9, 0.9, 2.9, -2.9, 5, 6], [], [7, 8, 9, 1, 2, 3, 4, 5]])
    assert outlines.starts.tolist() == [0, 3, 7]
    assert outlines.corners.tolist() == [[0, 0], [2, -2], [5, 6], [7, 8], [9, 1], [2, 3], [4, 5]]


def packed(lengths):
    """Runs as COCO's text: five bits in a letter, the lowest first; from the fourth on differences."""
    letters = ""
    for i, length in enumerate(lengths):
        value, more = length - (lengths[i - 2] if i > 2 else 0), True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            letters += chr(48 + bits + 32 * more)
    return letters


def test_runs_go_down_the_columns_and_begin_with_zeros():
    mask = masks.mask_of({"counts": [1, 3, 2, 0, 4, 2]}, 3, 4)
    assert mask.astype(int).tolist() == [[0, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1]]
    assert masks.mask_of({"counts": [0, 6]}, 2, 3).all() and not masks.mask_of({"counts": [6]}, 2, 3).any()
    for counts in ([5], [1, 3, 1], [7], [3, -1, 4], None, "5"):
        with pytest.raises(FormatError, match="runs .* do not fill a picture of 2 × 3. Make their sum 6"):
            masks.mask_of({"counts": counts}, 2, 3)


@pytest.mark.parametrize(
    "lengths",
    [
        [],
        [0],
        [15],
        [16],
        [31, 32],
        [5, 0, 3, 0],
        [1000, 1, 1000, 1, 1000],
        [3, 900, 2, 1, 40, 40000],
        [1, 2, 3, 2, 1, 0],
    ],
    ids=str,
)
def test_packed_runs_are_lengths_and_from_the_fourth_on_differences(lengths):
    assert masks.unpack_runs(packed(lengths)).tolist() == lengths


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ä", "'ä' is not a text of packed runs"),
        ("0/", "'/' is not a letter of packed runs"),
        ("0p", "'p' is not a letter of packed runs"),
        ("P", "packed runs end within a number"),
        ("O", f"packed runs have one of -1 pixels. Use 0 to {masks.MOST_PIXELS}."),
    ],
)
def test_a_text_that_is_not_packed_runs_is_named(text, message):
    with pytest.raises(FormatError) as error:
        masks.unpack_runs(text)
    assert str(error.value) == message
