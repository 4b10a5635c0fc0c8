"""Pictures: one place opens them, of few formats, and whatever is wrong with one is a FormatError that names it."""

import ast
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

from cgraph.cli.pictures import picture_values
from cgraph.errors import FormatError
from cgraph.formats.pictures import FORMATS, open_picture, read_rgb
from nn.models.mask_rcnn.tools.coco import Entry, picture_of
from nn.models.mask_rcnn.tools.frames import is_film, read_film

Image = pytest.importorskip("PIL.Image")
ROOT = Path(__file__).parents[2]
OPENER = "cgraph/formats/pictures.py"
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
DDS = b"DDS " + np.array([124, 0x1007, 4, 4, 0, 0, 0, *[0] * 11, 32, *[0] * 7], "<u4").tobytes() + bytes(84)
READERS = {
    "an input": lambda path: picture_values(path, 3, (4, 4), "stretch"),
    "a letterbox": lambda path: picture_values(path, 1, (4, 4), "letterbox"),
    "a data set": lambda path: picture_of(Entry(path, 8, 6, [])),
    "a film": lambda path: list(read_film(path).frames),
    "a film, perhaps": is_film,
    "an example": read_rgb,
}


def encoded(kind: str, mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (8, 6, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, kind)
    return file.getvalue()


def savable() -> list[str]:
    Image.init()
    kinds = []
    for kind in sorted(Image.SAVE):
        try:
            encoded(kind)
        except Exception:  # a format of its own modes, or one that needs another library
            continue
        kinds.append(kind)
    return kinds


def opens_pictures(source: str) -> bool:
    """A module calls ``Image.open``, or imports `open` of Pillow."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "open" and ast.unparse(node.value).endswith("Image"):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "PIL.Image" and "open" in {x.name for x in node.names}:
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "PIL" and any(x.asname for x in node.names):
            return True
    return False


def test_pictures_are_opened_in_one_place():
    for folder in ("cgraph", "nn", "examples", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            assert name == OPENER or not opens_pictures(path.read_text(encoding="utf-8")), f"{name}: use {OPENER}"
    for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.rglob("examples/*.ipynb"), ROOT / "README.md"]:
        assert "Image.open" not in path.read_text(encoding="utf-8"), path
    for source in ("Image.open(x)", "import PIL.Image\nPIL.Image.open(x)", "from PIL.Image import open"):
        assert opens_pictures(source)
    assert "formats=FORMATS" in (ROOT / OPENER).read_text(encoding="utf-8")


@pytest.mark.parametrize("reader", READERS)
def test_postscript_under_a_pictures_name_starts_no_program(reader, tmp_path, monkeypatch):
    for name in ("gs", "gswin32c", "gswin64c", "ghostscript"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho 10.0\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "evil.png").write_bytes(POSTSCRIPT)
    with pytest.raises(FormatError, match=r"evil\.png: .*it is none of JPEG, PNG"):
        READERS[reader](tmp_path / "evil.png")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", savable())
def test_few_formats_are_read_whatever_the_name(kind, tmp_path):
    (tmp_path / "x.png").write_bytes(encoded(kind))
    if kind in FORMATS or kind == "MPO":  # which begins as a JPEG
        assert np.asarray(read_rgb(tmp_path / "x.png")).shape == (8, 6, 3)
        return
    with pytest.raises(FormatError, match=r"x\.png: .*it is none of"):
        read_rgb(tmp_path / "x.png")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [*FORMATS, "DDS", "a number in a PPM", "nothing", "a folder", "no file"])
def test_what_is_wrong_with_a_picture_is_an_error_that_names_it(reader, kind, tmp_path):
    """Cut anywhere, and with any byte changed, a picture is read or refused as such."""
    path, rng = tmp_path / "x.png", np.random.default_rng(3)
    if kind == "a folder":
        path.mkdir()
    others = {"DDS": DDS, "a number in a PPM": b"P6\n" + b"1" * 20, "nothing": b""}
    wholes = [others[kind]] * 2 if kind in others else [encoded(kind), encoded(kind, "L")] if kind in FORMATS else []
    refused = 0
    for whole in wholes:
        for _ in range(40):
            raw = bytearray(whole)
            for at in rng.integers(0, len(raw), 3) if raw else []:
                raw[at] = rng.integers(256)
            path.write_bytes(raw[: rng.integers(len(raw))] if raw and rng.random() < 0.5 else raw)
            try:
                READERS[reader](path)
            except FormatError as error:
                refused += 1
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
    if not wholes:
        with pytest.raises(FormatError, match=r"x\.png: .*(No such file|Is a directory)"):
            READERS[reader](path)
    else:
        assert refused == 80 if kind in others else refused > (0 if reader == "a film, perhaps" else 10)


def test_too_many_pixels_are_refused_before_they_are_decoded(tmp_path):
    raw = bytearray(encoded("BMP"))
    raw[18:26] = np.array([20_000, 14_000], "<i4").tobytes()
    (tmp_path / "x.bmp").write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.bmp: "), open_picture(tmp_path / "x.bmp"):
        raise AssertionError("it was opened")


def test_an_open_file_is_called_by_its_name():
    with pytest.raises(FormatError, match=r"^one\.jpg of all\.tar: "):
        read_rgb(io.BytesIO(b"nothing"), "one.jpg of all.tar")


def test_masks_of_a_picture_have_an_allowance_in_training_too(tmp_path, monkeypatch):
    from nn.models.mask_rcnn.config import torchvision_config
    from nn.models.mask_rcnn.tools import coco

    Image.fromarray(np.zeros((40, 60, 3), np.uint8)).save(tmp_path / "a.png")
    square = [[10, 5, 29, 5, 29, 34, 10, 34]]
    rows = [{"image_id": 1, "category_id": 1, "bbox": [10, 5, 20, 30], "segmentation": square}] * 9
    row = {"id": 1, "height": 40, "width": 60, "file_name": "a.png"}
    text = {"categories": [{"id": 1, "name": "x"}], "images": [row], "annotations": rows}
    (tmp_path / "c.json").write_text(json.dumps(text))
    data = coco.read_coco(tmp_path / "c.json", tmp_path)
    monkeypatch.setattr(coco, "MOST_MASKS", 9 * 40 * 60)
    config = torchvision_config((40, 60), 2)
    assert coco.ground_truth_of(data.entries[0]).masks.sum() == 9 * 600
    assert (coco.arrays_of(data, config, 4)[3] == 1).sum() == 4
    monkeypatch.setattr(coco, "MOST_MASKS", 9 * 40 * 60 - 1)
    message = r"a\.png: the masks of 9 objects in 40 × 60 pixels need 21.* KiB, at most"
    with pytest.raises(FormatError, match=message):
        coco.ground_truth_of(data.entries[0])
    with pytest.raises(FormatError, match=message):
        coco.arrays_of(data, config, 4)


def test_ids_of_a_data_set_cannot_be_chosen_to_collide(tmp_path):
    """As texts: numbers that are equal modulo 2**61 - 1 have one hash."""
    from nn.models.mask_rcnn.tools.coco import key_of, read_coco

    numbers = [7 + k * ((1 << 61) - 1) for k in range(1000)]
    assert len({hash(n) for n in numbers}) == 1 and len({hash(key_of(n)) for n in numbers}) == 1000
    rows = [{"id": n, "height": 1, "width": i + 1, "file_name": "a"} for i, n in enumerate(numbers[:3])]
    kinds = [{"id": n, "name": str(i)} for i, n in enumerate(numbers[:3])]
    objects = [
        {"image_id": numbers[2 - i], "category_id": numbers[i], "bbox": [0, 0, 1, 1], "segmentation": []}
        for i in range(3)
    ]
    text = {"categories": kinds, "images": rows, "annotations": objects}
    (tmp_path / "c.json").write_text(json.dumps(text))
    entries = read_coco(tmp_path / "c.json", ".").entries
    assert [(x.columns, x.objects[0][0]) for x in entries] == [(1, 3), (2, 2), (3, 1)]
    for number in (1.5, True, None, [1]):
        (tmp_path / "c.json").write_text(json.dumps(text | {"images": [rows[0] | {"id": number}]}))
        with pytest.raises(FormatError, match="is not an id"):
            read_coco(tmp_path / "c.json", ".")
