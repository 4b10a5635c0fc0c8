"""Pictures: one place opens them, of few formats, and whatever is wrong with one is a FormatError that names it."""

import ast
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cgraph.cli import pictures
from cgraph.cli.pictures import picture_values
from cgraph.errors import FormatError
from cgraph.formats.allowance import Allowance
from cgraph.formats.jpeg_scans import count_scans
from cgraph.formats.pictures import FORMATS, decoding_nbytes, open_picture, read_rgb, size_of, spend_decoding
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
    if "Image" not in source and "PIL" not in source:  # no need to parse it
        return False
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
    match = r"x\.bmp: Pillow reads at most 178956970 pixels, it has more\. Scale it down"
    with pytest.raises(FormatError, match=match), open_picture(tmp_path / "x.bmp"):
        raise AssertionError("it was opened")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_picture_of_many_pixels_is_refused_before_it_is_decoded(reader, kind, tmp_path, monkeypatch):
    """Small files; as most pixels are zero, they would take more than twice their bytes and what any file may take."""
    monkeypatch.setattr("cgraph.formats.allowance.NBYTES_AT_LEAST", 1 << 14)
    monkeypatch.setattr("cgraph.formats.allowance.NBYTES", 0)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda image: pytest.fail("it was decoded"))
    Image.new("L", (1, 16_000)).save(tmp_path / "x.png", kind)
    with pytest.raises(FormatError, match=r"x\.png: decoding 1 x [0-9]* pixels would take .* bytes while reading"):
        READERS[reader](tmp_path / "x.png")


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_is_too_large_is_decoded_smaller_where_it_is_resized(progressive, tmp_path, monkeypatch):
    ramp = np.linspace(0, 255, 800, dtype="u1")
    Image.fromarray(np.broadcast_to(ramp[:, None], (800, 600))).save(tmp_path / "x.jpg", progressive=progressive)
    sizes, fit = [], pictures.fit_picture
    monkeypatch.setattr(pictures, "fit_picture", lambda image, *more: sizes.append(image.size) or fit(image, *more))
    whole = picture_values(tmp_path / "x.jpg", 1, (6, 8), "stretch")
    nbytes = (1 << 20) + 2 * 800 * 600 * progressive - 2 * (tmp_path / "x.jpg").stat().st_size
    monkeypatch.setattr("cgraph.formats.allowance.NBYTES_AT_LEAST", nbytes)
    with pytest.raises(FormatError, match="decoding 600 x 800 pixels would take 2,400,000 bytes"):
        read_rgb(tmp_path / "x.jpg")
    smaller = picture_values(tmp_path / "x.jpg", 1, (6, 8), "stretch")
    assert sizes[0] == (600, 800) and sizes[-1] == (300, 400) and np.abs(smaller - whole).max() <= 2


def test_scans_of_a_jpeg_are_counted_and_charged(tmp_path, monkeypatch):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    wholes = []
    for progressive in (False, True):
        file = io.BytesIO()
        picture.save(file, "JPEG", progressive=progressive, exif=b"Exif\0\0" + b"\xff\xda" * 50)
        wholes.append(file.getvalue())
    baseline, whole = wholes
    assert count_scans(baseline) == 1 and count_scans(whole) == 10 and count_scans(b"") == 0
    last = whole[whole.rindex(b"\xff\xda") : -2]
    (tmp_path / "x.jpg").write_bytes(whole[:-2] + last * 90 + whole[-2:] + last)
    monkeypatch.setattr("cgraph.formats.allowance.WORK", 0)
    monkeypatch.setattr("cgraph.formats.allowance.WORK_AT_LEAST", 100 * 64 * 64 * 3 / 2 / 4)
    read_rgb(tmp_path / "x.jpg")
    (tmp_path / "x.jpg").write_bytes(whole[:-2] + last * 91 + whole[-2:])
    with pytest.raises(FormatError, match=r"x\.jpg: 101 scans of 64 x 64 pixels would take"):
        read_rgb(tmp_path / "x.jpg")


@pytest.mark.parametrize("fit", ["stretch", "crop", "letterbox"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_has_the_numbers_of_an_upright_one(fit, orientation, tmp_path):
    pixels = np.add.outer(np.arange(60), 2 * np.arange(40)).astype("u1")
    turns = {1: pixels, 2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1], 5: pixels.T}
    turns |= {6: np.rot90(pixels), 7: pixels[::-1, ::-1].T, 8: np.rot90(pixels, -1)}
    Image.fromarray(pixels).save(tmp_path / "upright.png")
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.ascontiguousarray(turns[orientation])).save(tmp_path / "turned.png", exif=exif)
    for size in ((20, 30), (16, 16), (30, 10)):
        upright, turned = (picture_values(tmp_path / f"{x}.png", 1, size, fit) for x in ("upright", "turned"))
        assert np.abs(upright - turned).max() <= 1, "resampling rounds once for rows and once for columns"


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_the_first_of_several_frames_outlives_its_file(kind, tmp_path):
    first, second = (Image.new("RGB", (9, 7), colour) for colour in ("red", "blue"))
    options = {"lossless": True} if kind == "WEBP" else {}
    first.save(tmp_path / "x.png", kind, save_all=True, append_images=[second], **options)
    assert (np.asarray(read_rgb(tmp_path / "x.png")) == [255, 0, 0]).all()


WRONG = {
    "not a readable picture": (b"nothing", {}),
    "6 x 8 pixels are too many; at most 47 are read": (encoded("PNG"), {"pictures.MOST_PIXELS": 47}),
    "would take": (encoded("PNG"), {"allowance.NBYTES_AT_LEAST": 0, "allowance.NBYTES": 0}),
}


@pytest.mark.parametrize("message", WRONG)
def test_an_open_file_is_called_by_its_name_whatever_is_wrong(message, monkeypatch):
    raw, limits = WRONG[message]
    for name, value in limits.items():
        monkeypatch.setattr(f"cgraph.formats.{name}", value)
    with pytest.raises(FormatError, match=rf"^one\.jpg of all\.tar: .*{message}"):
        read_rgb(io.BytesIO(raw), "one.jpg of all.tar")


@pytest.mark.parametrize(("kind", "mode", "each"), [
    ("PNG", "RGB", 4 + 1), ("PNG", "L", 1 + 4), ("PNG", "1", 1 + 4), ("PNG", "I;16", 2 + 4), ("BMP", "RGB", 4 + 1 + 2),
    ("WEBP", "RGB", 4 + 1 + 12),
])  # fmt: skip
def test_a_picture_is_charged_by_its_mode_and_decoder_and_the_longer_side_of_its_new_size(kind, mode, each):
    image = SimpleNamespace(mode=mode, format=kind, width=60, height=80, size=(60, 80))
    for factor in (1, 2):
        assert decoding_nbytes(image, None, factor) == each * 60 * 80 / factor**2
        for resized in ((7, 30), (30, 7), (30, 30)):
            between = 4 * 30 * 80 / factor + 16 * (60 + 80)
            assert decoding_nbytes(image, resized, factor) == each * 60 * 80 / factor**2 + between


def test_as_many_pixels_as_are_read_are_not_too_many(monkeypatch):
    monkeypatch.setattr("cgraph.formats.pictures.MOST_PIXELS", 48)
    assert read_rgb(io.BytesIO(encoded("PNG"))).size == (6, 8)


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


def test_the_size_of_a_file_is_that_from_its_beginning_and_an_open_one_stays_where_it_is(tmp_path):
    file = io.BytesIO(b"0123456789")
    file.seek(3)
    assert size_of(file) == 10 and file.tell() == 3
    (tmp_path / "x").write_bytes(b"0123456789")
    assert size_of(tmp_path / "x") == size_of(str(tmp_path / "x")) == 10


class OpenPicture(SimpleNamespace):
    """Stands for an open JPEG of Pillow. Changes: its size, by `draft`."""

    def draft(self, mode, size):
        self.drafts.append((mode, size))
        self.width, self.height = self.size = size


def open_jpeg(width, height, kind="JPEG"):
    return OpenPicture(mode="RGB", format=kind, width=width, height=height, size=(width, height), drafts=[])


@pytest.mark.parametrize("kind", ["JPEG", "MPO"])
@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_a_jpeg_is_decoded_at_the_largest_size_that_its_allowance_holds(factor, kind, monkeypatch):
    """One byte less than a quarter of the size needs is enough for an eighth."""
    monkeypatch.setattr("cgraph.formats.pictures.spend_scans", lambda *_: None)
    for width, height in ((803, 1601), (5, 16001), (16001, 5)):
        image, allowance = open_jpeg(width, height, kind), Allowance(0)
        allowance.nbytes = int(np.ceil(decoding_nbytes(image, (4, 3), min(factor, 4)))) - (factor == 8)
        spend_decoding(image, allowance, (4, 3))
        small = max(width // factor, 1), max(height // factor, 1)
        assert image.drafts == ([] if factor == 1 else [(None, small)])


def test_only_a_jpeg_that_is_resized_is_decoded_at_a_smaller_size(monkeypatch):
    monkeypatch.setattr("cgraph.formats.pictures.spend_scans", lambda *_: None)
    for kind, resized in (("PNG", (4, 3)), ("JPEG", None)):
        image, allowance = open_jpeg(803, 1601, kind), Allowance(0)
        allowance.nbytes = int(np.ceil(decoding_nbytes(image, resized)))
        spend_decoding(image, allowance, resized)
        allowance.nbytes = int(np.ceil(decoding_nbytes(image, resized))) - 1
        with pytest.raises(FormatError, match="decoding 803 x 1601 pixels would take"):
            spend_decoding(image, allowance, resized)
        assert not image.drafts


@pytest.mark.parametrize("name", ["", "one.bmp of all.tar"])
def test_too_many_pixels_for_pillow_are_called_by_a_name_or_the_path(name, tmp_path):
    raw = bytearray(encoded("BMP"))
    raw[18:26] = np.array([20_000, 14_000], "<i4").tobytes()
    (tmp_path / "x.bmp").write_bytes(raw)
    with pytest.raises(FormatError) as caught:
        read_rgb(tmp_path / "x.bmp", name)
    assert str(caught.value).startswith(f"{name or tmp_path / 'x.bmp'}: Pillow reads at most 178956970 pixels")
