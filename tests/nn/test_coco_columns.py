"""Columns of a data set: what was put in comes out, by pictures; ids that nothing describes are refused; the cost."""

import json
from array import array
from pathlib import Path
from types import SimpleNamespace

import pytest

from cgraph import FormatError
from cgraph.formats.allowance import Allowance
from nn.models.mask_rcnn.tools.coco import read_coco
from nn.models.mask_rcnn.tools.coco_columns import (
    ID,
    OBJECT,
    PICTURE,
    Entries,
    Entry,
    ObjectColumns,
    Segmentations,
    Texts,
)


def row(number):
    return json.dumps({"bbox": [number, 1, 2, 3], "segmentation": [[number]]})


def columns_of(objects, pictures=("a", "b"), kinds=("x", "y")):
    """Columns of objects (picture, class), and the numbers of the classes; both are described after their first use."""
    columns = ObjectColumns(Allowance(0))
    for i, (picture, kind) in enumerate(objects):
        columns.add_object(picture, kind, row(i))
    for i, picture in enumerate(pictures):
        columns.add_picture(picture, f"{picture}.png", i + 1, i + 10)
    return columns, array("q", [columns.kind_ids.number(kind) for kind in kinds])


def test_objects_come_by_pictures_in_the_order_of_the_file():
    columns, kinds = columns_of([("b", "y"), ("a", "x"), ("b", "x"), ("b", "y")], ("a", "c", "b"))
    entries = Entries(columns, Path("folder"), kinds)
    boxes = [[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 3.0], [2.0, 1.0, 2.0, 3.0], [3.0, 1.0, 2.0, 3.0]]
    expected = [
        Entry(Path("folder/a.png"), 1, 10, [(1, boxes[1], [[1]])]),
        Entry(Path("folder/c.png"), 2, 11, []),
        Entry(Path("folder/b.png"), 3, 12, [(2, boxes[0], [[0]]), (1, boxes[2], [[2]]), (2, boxes[3], [[3]])]),
    ]
    assert [x._replace(objects=list(x.objects)) for x in entries] == expected
    assert entries[-1].path == Path("folder/b.png") and [x.rows for x in entries[1:]] == [2, 3] and len(entries) == 3
    last = entries[2].objects
    assert last[-1] == last[2] and last[1:] == [last[1], last[2]] and list(Segmentations(last)) == [[[0]], [[2]], [[3]]]
    for sequence in (entries, last):
        with pytest.raises(IndexError):
            sequence[3]


@pytest.mark.parametrize(
    "pictures, kinds, message",
    [
        (("a",), ("x", "y"), "1 objects have a image_id that"),
        (("a", "b"), ("y",), "1 objects have a category_id that"),
        (("a", "b", "a"), ("x", "y"), "two rows of 'images' have the same id"),
        (("a", "b"), ("x", "y", "x"), "two rows of 'categories' have the same id"),
    ],
)
def test_each_id_is_described_once(pictures, kinds, message):
    objects = [("a", "x"), ("b", "y")]
    Entries(*order(columns_of(objects)))
    with pytest.raises(FormatError, match=message):
        Entries(*order(columns_of(objects, pictures, kinds)))


def order(both):
    columns, kinds = both
    return columns, Path(), kinds


def test_texts_of_any_letters_come_back():
    texts = Texts()
    values = ["", "a", "\u00e9\U0001f600", "", "b" * 1000]
    for value in values:
        texts.append(value)
    assert [texts[i] for i in range(len(values))] == values


@pytest.mark.parametrize("name", ["images", "annotations", "categories", "ids"])
def test_each_row_is_charged(tmp_path, monkeypatch, name):
    """What many rows of one kind take is refused once it exceeds the allowance."""
    many = range(200)
    rows = {
        "images": [{"id": i, "height": 1, "width": 1, "file_name": "a"} for i in (many if name == "images" else [0])],
        "categories": [{"id": i, "name": "a"} for i in (many if name == "categories" else [0])],
        "annotations": [
            {"image_id": i if name == "ids" else 0, "category_id": 0, "bbox": [0, 0, 1, 1], "segmentation": []}
            for i in (many if name in ("annotations", "ids") else [])
        ],
    }
    path = tmp_path / "c.json"
    path.write_text(json.dumps(rows))
    spent = []
    spend = Allowance.spend

    def note(self, what, nbytes=0, **others):
        spent.append(nbytes)
        spend(self, what, nbytes, **others)

    monkeypatch.setattr(Allowance, "spend", note)
    if name == "ids":
        with pytest.raises(FormatError, match="199 objects have a image_id"):
            read_coco(path, tmp_path)
    else:
        read_coco(path, tmp_path)
    least = {"images": 200, "annotations": 100, "categories": 200, "ids": 300}[name]
    assert sum(spent[1:]) >= 200 * least
    monkeypatch.setattr("cgraph.formats.allowance.NBYTES_AT_LEAST", sum(spent) - 2 * path.stat().st_size - 1)
    with pytest.raises(FormatError, match="would take .* bytes while reading"):
        read_coco(path, tmp_path)


@pytest.mark.parametrize("name", ["a.png", "ä.png", "日本" * 50])
def test_a_picture_costs_the_bytes_of_its_name_and_an_object_those_of_its_text(name):
    spent = []
    columns = ObjectColumns(SimpleNamespace(spend=lambda what, nbytes: spent.append((what, nbytes))))
    columns.add_picture("a", name, 1, 2)
    columns.add_object("a", "x", "text")
    assert spent == [
        ("pictures", PICTURE + len(name.encode())), ("ids", ID + 1), ("objects", OBJECT + 4), ("ids", ID + 1)
    ]  # fmt: skip
    assert columns.names[0] == name and columns.texts[0] == "text"
