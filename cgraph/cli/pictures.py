"""Pictures as inputs: upright, resized and scaled as a model needs them."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.pictures import open_picture
from cgraph.record import Record
from cgraph.storage.cell import Variable

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")
SCALES = {"unit": (1 / 255, 0.0), "bytes": (1.0, 0.0), "signed": (1 / 127.5, -1.0), "imagenet": (1 / 255, 0.0)}
FITS = ("stretch", "letterbox", "crop")
GREY = 114  # the grey around a picture with which detectors are trained
ORIENTATION = 0x0112  # tag of EXIF
TURNS = {
    2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE",
    8: "ROTATE_90",
}  # fmt: skip
SIDEWAYS = ("TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90")
STRIP = 1 << 20  # pixels that are converted at once
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Look(Record):
    """Options for the conversion of pictures to numbers.

    Fields
        pixels: the range to which 0 to 255 are scaled, one of SCALES
        bgr: blue first
        fit: treatment of a picture of another aspect ratio: ``stretch`` takes the whole picture and changes the ratio,
            ``letterbox`` adds grey bars, ``crop`` takes its middle
    """

    pixels: str = "unit"
    bgr: bool = False
    fit: str = "stretch"


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add the options for pictures to a command."""
    parser.add_argument(
        "--pixels",
        choices=SCALES,
        default="unit",
        help="what a picture's numbers become: 0 to 1, 0 to 255, -1 to 1, or of mean 0 and variance 1 over ImageNet",
    )
    parser.add_argument("--bgr", action="store_true", help="blue before red")
    parser.add_argument(
        "--fit",
        choices=FITS,
        default="stretch",
        help="where a picture has another aspect ratio: stretch it, put it between grey bars, or take its middle",
    )


def look_of(args: argparse.Namespace) -> Look:
    return Look(args.pixels, args.bgr, args.fit)


def read_picture(path: Path, x: Variable, look: Look) -> np.ndarray:
    """Return a picture at the size of an input ``[1, c, h, w]`` or ``[1, h, w, c]``, with c 1 or 3."""
    shape = x.spec.shape
    first = len(shape) == 4 and shape[1] in (1, 3)
    if len(shape) != 4 or shape[0] != 1 or not (first or shape[3] in (1, 3)):
        raise FormatError(f"{path}: {x.name} {x.spec} is not a picture; give an array")
    channels, height, width = shape[1:] if first else (shape[3], *shape[1:3])
    values = scale_pixels(picture_values(path, channels, (width, height), look.fit), look.pixels)
    values = values[..., ::-1] if look.bgr else values
    return np.ascontiguousarray((values.transpose(2, 0, 1) if first else values)[None], x.spec.dtype)


def picture_values(path: Path, channels: int, size: tuple[int, int], fit: str) -> np.ndarray:
    """Return a picture's numbers, 0 to 255, ``[h, w, channels]``. FormatError if it cannot be read."""
    with open_picture(path, resized=size) as image:
        values = np.asarray(fit_picture(image, channels, size, fit), np.float32).reshape(size[1], size[0], -1)
    return np.repeat(values, channels // values.shape[2], axis=2)


def fit_picture(image: Any, channels: int, size: tuple[int, int], fit: str) -> Any:
    """Convert a picture to `channels` bands, fit it to a size and turn it upright: few pixels are turned, not all."""
    from PIL import Image, ImageOps

    image.load()
    turn = TURNS.get(image.getexif().get(ORIENTATION, 1))
    plain, how = as_bytes(image, channels), Image.Resampling.BILINEAR
    lying = size[::-1] if turn in SIDEWAYS else size
    if fit == "stretch":
        small = plain.resize(lying, how)
    else:
        small = (ImageOps.fit if fit == "crop" else ImageOps.contain)(plain, lying, how)
    upright = small if turn is None else small.transpose(Image.Transpose[turn])
    if fit != "letterbox":
        return upright
    return ImageOps.pad(upright, size, how, color=(GREY,) * 3 if plain.mode == "RGB" else GREY)


def as_bytes(image: Any, channels: int) -> Any:
    """Convert a picture to one or three bands of 0 to 255; 16 bits become floats, because Pillow would clip them."""
    if image.mode.startswith("I"):
        return floats_of(image)
    bands = "RGB" if channels == 3 else "L"
    return image if image.mode == bands else image.convert(bands)


def floats_of(image: Any) -> Any:
    """Convert a picture of 16 bits to floats of 0 to 255, some rows at a time."""
    from PIL import Image

    plain = Image.new("F", image.size)
    rows = max(STRIP // image.width, 1)
    for top in range(0, image.height, rows):
        strip = image.crop((0, top, image.width, min(top + rows, image.height)))
        plain.paste(Image.fromarray(np.asarray(strip, np.float32) / 257), (0, top))
    return plain


def scale_pixels(values: np.ndarray, pixels: str) -> np.ndarray:
    """Scale numbers from 0..255 to the range that a model was trained on."""
    factor, shift = SCALES[pixels]
    values = values * np.float32(factor) + np.float32(shift)
    if pixels == "imagenet" and values.shape[-1] == 3:
        values = (values - np.array(IMAGENET_MEAN, np.float32)) / np.array(IMAGENET_STD, np.float32)
    return values
