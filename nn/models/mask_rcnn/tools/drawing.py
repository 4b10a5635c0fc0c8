"""Drawing of detections: tinted masks with outlines, boxes, and names with scores. Needs Pillow."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn.models.mask_rcnn.objects import Detection

COLOURS = (
    (230, 60, 60), (60, 120, 235), (250, 190, 40), (60, 190, 90), (170, 80, 220), (20, 195, 215), (245, 120, 30),
    (235, 90, 180), (150, 205, 45), (120, 90, 60),
)  # fmt: skip
SHARE = 0.4
"""Share of the class's colour in the pixels of a mask."""


def draw_detections(picture: np.ndarray, detections: Sequence[Detection], names: Sequence[str], scale: int = 1) -> Any:
    """Return a Pillow image of a picture uint8 ``[h, w, 3]`` with its objects, each pixel a square of `scale`."""
    from PIL import Image, ImageDraw

    image = tint(picture, detections).repeat(scale, 0).repeat(scale, 1)
    pillow_image = Image.fromarray(image)
    pen = ImageDraw.Draw(pillow_image)
    width = max(2, round(min(image.shape[:2]) / 300))
    for one in reversed(detections):
        pen.rectangle([v * scale for v in inside(one)], outline=COLOURS[one.kind % len(COLOURS)], width=width)
    for one in reversed(detections):
        label(pen, one, names[one.kind], scale, image.shape[:2])
    return pillow_image


def tint(picture: np.ndarray, detections: Sequence[Detection]) -> np.ndarray:
    """Return the picture with every mask and its outline in its class's colour, the most likely on top."""
    image = picture.astype(np.float32)
    for one in reversed(detections):
        mask, colour = one.pixels(), np.array(COLOURS[one.kind % len(COLOURS)], np.float32)
        image[mask] = (1 - SHARE) * image[mask] + SHARE * colour
        image[outline(mask)] = colour
    return image.astype(np.uint8)


def outline(mask: np.ndarray) -> np.ndarray:
    """Return the pixels of a mask that have a neighbour outside it."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return mask & ~inner


def inside(one: Detection) -> tuple[float, float, float, float]:
    """Return the box within the picture, far edges included, as Pillow draws them."""
    (rows, columns), (x0, y0, x1, y1) = one.size, one.box
    x0, y0 = min(max(x0, 0), columns - 1), min(max(y0, 0), rows - 1)
    return x0, y0, max(min(x1, columns) - 1, x0), max(min(y1, rows) - 1, y0)


def label(pen: Any, one: Detection, name: str, scale: int, shape: tuple[int, ...]) -> None:
    """Draw name and score on the class's colour, above the box, or inside it at the top of the picture."""
    from PIL import ImageFont

    font = ImageFont.load_default(size=max(11, min(shape) / 40))
    text, colour = f"{name} {one.score:.2f}", COLOURS[one.kind % len(COLOURS)]
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    width, height = right - left + 6, bottom - top + 6
    x, y = (v * scale for v in inside(one)[:2])
    x = min(x, shape[1] - width)
    y = y - height if y >= height else y
    pen.rectangle((x, y, x + width, y + height), fill=colour)
    dark = np.dot(colour, (0.299, 0.587, 0.114)) < 150
    pen.text((x + 3 - left, y + 3 - top), text, fill=(255, 255, 255) if dark else (0, 0, 0), font=font)
