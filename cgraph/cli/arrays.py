"""Inputs from the command line: arrays from files, pictures at the size that a model takes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cgraph.cell import Variable
from cgraph.errors import FormatError, UnavailableError
from cgraph.formats.npz import read_npz

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp")
SCALES = {"unit": (1 / 255, 0.0), "bytes": (1.0, 0.0), "signed": (1 / 127.5, -1.0), "imagenet": (1 / 255, 0.0)}
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MOST_PIXELS = 1 << 28


def read_inputs(
    texts: Sequence[str], inputs: Sequence[Variable], pixels: str, bgr: bool, given: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """An array for every input.

    Parameters
        texts: ``FILE``, in the model's order, or ``NAME=FILE``; a .npz file gives several by name
        pixels: what a picture's numbers become, one of SCALES
        bgr: blue first
        given: inputs that have their values already
    Raises
        FormatError: a file is no array or picture, an input is missing, unknown or given twice
    """
    found = dict(given)
    for text in texts:
        for name, array in arrays_of(text, inputs, found, pixels, bgr).items():
            if name in found:
                raise FormatError(f"input {name!r} is given twice")
            found[name] = array
    missing = [f"{x.name} {x.spec}" for x in inputs if x.name not in found]
    if missing:
        raise FormatError(f"--input is missing for {', '.join(missing)}")
    return found


def arrays_of(
    text: str, inputs: Sequence[Variable], found: dict[str, np.ndarray], pixels: str, bgr: bool
) -> dict[str, np.ndarray]:
    """What one ``--input`` gives, by input name."""
    by_name = {x.name: x for x in inputs}
    name, equals, file = text.partition("=")
    if equals and name in by_name:
        x: Variable | None = by_name[name]
    else:
        x, file = next((v for v in inputs if v.name not in found), None), text
    path = Path(file)
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        unknown = [key for key in arrays if key not in by_name]
        if unknown:
            raise FormatError(f"{path}: {unknown[0]!r} is no input; the inputs are {', '.join(by_name)}")
        return arrays
    if x is None:
        raise FormatError(f"{file}: the model takes {len(inputs)} inputs, more are given")
    if path.suffix.lower() in PICTURES:
        return {x.name: read_picture(path, x, pixels, bgr)}
    return {x.name: read_array(path, x)}


def read_array(path: Path, x: Variable) -> np.ndarray:
    """A .npy file. A number of another dtype of the same kind is converted, another shape is not."""
    try:
        found = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError, OSError) as error:
        raise FormatError(f"{path}: {error}") from None
    return np.asarray(found, x.spec.dtype) if np.can_cast(found.dtype, x.spec.dtype, "same_kind") else np.asarray(found)


def read_picture(path: Path, x: Variable, pixels: str, bgr: bool) -> np.ndarray:
    """A picture at the size of an input ``[1, c, h, w]`` or ``[1, h, w, c]``, with c 1 or 3."""
    try:
        from PIL import Image
    except ImportError:
        raise UnavailableError("pictures need the package Pillow: pip install 'cgraph[image]'") from None
    shape = x.spec.shape
    first = len(shape) == 4 and shape[1] in (1, 3)
    if len(shape) != 4 or shape[0] != 1 or not (first or shape[3] in (1, 3)):
        raise FormatError(f"{path}: {x.name} {x.spec} is no picture; give an array")
    channels, height, width = shape[1:] if first else (shape[3], *shape[1:3])
    try:
        with Image.open(path) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FormatError(f"{path}: {image.width} x {image.height} pixels are too many")
            small = image.convert("RGB" if channels == 3 else "L").resize((width, height), Image.Resampling.BILINEAR)
            values = np.asarray(small, np.float32).reshape(height, width, channels)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise FormatError(f"{path}: {error}") from None
    values = scaled(values, pixels)
    values = values[..., ::-1] if bgr else values
    return np.ascontiguousarray((values.transpose(2, 0, 1) if first else values)[None], x.spec.dtype)


def scaled(values: np.ndarray, pixels: str) -> np.ndarray:
    """Numbers 0..255 brought to the range that a model was trained on."""
    factor, shift = SCALES[pixels]
    values = values * np.float32(factor) + np.float32(shift)
    if pixels == "imagenet" and values.shape[-1] == 3:
        values = (values - np.array(IMAGENET_MEAN, np.float32)) / np.array(IMAGENET_STD, np.float32)
    return values
