"""Data sets in COCO's format: a JSON file of pictures and objects, whose masks are polygons or runs.

Source: cocodataset.org/#format-data. Files are not trusted: sizes and the work of drawing are bounded, and no path may
leave the folder.
"""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cgraph import FormatError
from cgraph.errors import bytes_text
from cgraph.formats.allowance import Allowance
from cgraph.formats.json_rows import json_rows
from cgraph.formats.pictures import open_picture, rgb_of
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.pictures import network_view, resize_images
from nn.models.mask_rcnn.tools.coco_columns import ID, Entries, Entry, ObjectColumns, Segmentations
from nn.models.mask_rcnn.tools.masks import MOST_PIXELS, check_work, is_coordinates, mask_of
from nn.models.mask_rcnn.tools.precision import GroundTruth

MOST_BYTES = 4 << 30
MOST_MASKS = 512 << 20  # bytes of all masks of one picture, one byte for each pixel
PARSING = 32 << 20  # bytes of memory to parse one row of the file


class DataSet(NamedTuple):
    """Names of the classes, the background first, and the pictures in the order of the file."""

    names: list[str]
    entries: Sequence[Entry]


def read_coco(annotations: str | Path, folder: str | Path) -> DataSet:
    """Read the data set of a JSON file; groups of objects (``iscrowd``) are skipped.

    Parameters
        annotations: the file, such as ``instances_train2017.json``
        folder: folder of the pictures
    Raises
        FormatError: no such file, or it has an unknown class or picture, or an invalid size
    """
    path = Path(annotations)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise FormatError(f"{path} has more than {MOST_BYTES} bytes. Split the data set.")
        return data_set_of(path, Path(folder), Allowance(size))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError(f"{path} is not a COCO data set: {type(error).__name__} {error}") from error


def data_set_of(path: Path, folder: Path, allowance: Allowance) -> DataSet:
    """Read the rows of the file one after another into columns."""
    allowance.spend("parsing", nbytes=PARSING)
    columns, names, kinds = ObjectColumns(allowance), ["background"], array("q")
    lists = set()
    for row in json_rows(path):
        if isinstance(row, str):
            lists.add(row)
        elif row.name == "categories":
            allowance.spend("names of classes", nbytes=ID + len(row.text))
            kinds.append(columns.kind_ids.number(key_of(row.value["id"])))
            names.append(str(row.value["name"]))
        elif row.name == "images":
            columns.add_picture(key_of(row.value["id"]), *picture_row(row.value))
        elif row.name == "annotations" and not row.value.get("iscrowd"):
            box_of(row.value["bbox"]), row.value["segmentation"]
            columns.add_object(key_of(row.value["image_id"]), key_of(row.value["category_id"]), row.text)
    if missing := {"annotations", "categories", "images"} - lists:
        raise FormatError(f"{path} is not a COCO data set: it has no list of {', '.join(sorted(missing))}.")
    return DataSet(names, Entries(columns, folder, kinds))


def key_of(number: Any) -> str:
    """Return an id as text: the hashes of integers can be chosen to collide, those of texts cannot."""
    if type(number) not in (int, str):
        raise FormatError(f"{number!r:.80} is not an id. Use integers or texts as ids.")
    return f"{type(number).__name__} {number}"


def picture_row(row: dict[str, Any]) -> tuple[str, int, int]:
    """Return file, rows and columns of a picture. FormatError for an invalid size or path."""
    rows, columns, name = int(row["height"]), int(row["width"]), Path(str(row["file_name"]))
    if rows < 1 or columns < 1 or rows * columns > MOST_PIXELS:
        raise FormatError(f"{name} has {rows} × {columns} pixels. Use pictures of 1 to {MOST_PIXELS} pixels.")
    if name.is_absolute() or ".." in name.parts or not str(name).isprintable():
        raise FormatError(
            f"{str(name)!r:.200} is not a file in the folder of the pictures. Use a relative path without '..'."
        )
    return str(name), rows, columns


def box_of(values: list[float]) -> list[float]:
    """Return a box as corner and size."""
    if not is_coordinates(values) or len(values) != 4:
        raise FormatError(f"{values!r:.80} is not a box. Use a list of four numbers: corner, width and height.")
    return [float(v) for v in values]


def picture_of(one: Entry) -> np.ndarray:
    """Return the picture uint8 ``[rows, columns, 3]``. FormatError when the file has another size."""
    with open_picture(one.path) as image:
        if image.size != (one.columns, one.rows):
            raise FormatError(f"it has {image.size[1]} × {image.size[0]} pixels, not {one.rows} × {one.columns}")
        return np.asarray(rgb_of(image))


def ground_truth_of(one: Entry) -> GroundTruth:
    """Return the objects of a picture in its pixels. FormatError as in `check_masks`."""
    check_masks(one)
    count = len(one.objects)
    masks = np.empty((count, one.rows, one.columns), bool)
    for i in range(count):
        masks[i] = mask_at(one, i)
    return GroundTruth(boxes_of(one), np.array([kind for kind, *_ in one.objects], np.int64), masks)


def check_masks(one: Entry) -> None:
    """FormatError when the masks of a picture's objects have more than `MOST_MASKS` pixels or take too much work."""
    count = len(one.objects)
    nbytes = count * one.rows * one.columns
    if nbytes > MOST_MASKS:
        raise FormatError(
            f"{one.path}: the masks of {count} objects in {one.rows} × {one.columns} pixels need {bytes_text(nbytes)}, "
            f"at most {bytes_text(MOST_MASKS)} are allowed. Scale the picture and its objects down."
        )
    check_work(Segmentations(one.objects), one.rows, one.columns, str(one.path))


def boxes_of(one: Entry) -> np.ndarray:
    """Return the boxes of a picture's objects by their corners, float32 ``[k, 4]``."""
    return np.array([[x, y, x + w, y + h] for _, (x, y, w, h), _ in one.objects], np.float32).reshape(-1, 4)


def mask_at(one: Entry, number: int) -> np.ndarray:
    """Return the mask of one object of a picture."""
    return mask_of(one.objects[number][2], one.rows, one.columns)


def arrays_of(data: DataSet, config: Config, objects: int) -> tuple[np.ndarray, ...]:
    """Return all pictures with objects in a network's input size: pictures uint8, windows, boxes, classes and owners.

    Where objects overlap, a pixel belongs to the smallest. Of each picture the largest `objects` are used.
    """
    rows = list(training_rows(data, config, objects))
    if not rows:
        raise FormatError(
            f"none of the {len(data.entries)} pictures of the data set has an object. Check its annotations."
        )
    return tuple(np.stack(x) for x in zip(*rows))


def training_rows(data: DataSet, config: Config, objects: int) -> Iterator[tuple[np.ndarray, ...]]:
    for one in data.entries:
        if not one.objects:
            continue
        check_masks(one)
        view = network_view(picture_of(one), config)
        corners = boxes_of(one)
        left, top, right, bottom = view.window
        boxes, classes = np.zeros((objects, 4), np.float32), np.zeros(objects, np.int64)
        owner = np.zeros(config.image, np.uint8)
        scale = np.array([(right - left) / one.columns, (bottom - top) / one.rows] * 2)
        for i, j in enumerate(largest_first(one)[:objects]):
            boxes[i] = corners[j] * scale + [left, top, left, top] - [0, 0, config.far, config.far]
            classes[i] = one.objects[j][0]
            mask = (
                resize_images(mask_at(one, j)[None, None].astype(np.float32), (bottom - top, right - left))[0, 0] >= 0.5
            )
            owner[top:bottom, left:right][mask] = i + 1
        yield np.round(view.pixels).astype(np.uint8), np.array(view.window), boxes, classes, owner


def largest_first(one: Entry) -> list[int]:
    """Return the objects of a picture by falling numbers of pixels; one mask is in memory at a time."""
    sizes = [int(mask_at(one, i).sum()) for i in range(len(one.objects))]
    return sorted(range(len(sizes)), key=lambda i: -sizes[i])
