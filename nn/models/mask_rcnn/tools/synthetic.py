"""Synthetic images of discs, squares and triangles with ground truth; each depends only on a seed and its number.

Backgrounds have patches and a gradient, objects have colours and stripes; later objects cover earlier ones, with noise.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SIDE = 128
MOST = 6
"""Maximum number of objects in an image."""
OBJECTS = 8
"""Number of rows of boxes and classes, padded with zeros."""
LEAST_PIXELS = 40
TRAINING, CHECK, TEST = 0, 1, 2
"""Seeds of disjoint sets of images."""
Y, X = np.mgrid[:SIDE, :SIDE] + 0.5


class SyntheticImages(NamedTuple):
    """Images and their ground truth.

    Fields
        pictures: uint8 ``[n, 3, SIDE, SIDE]``
        windows: the whole of each image ``[n, 4]``
        boxes: boxes of the visible pixels, far edges excluded ``[n, OBJECTS, 4]``
        classes: 1 disc, 2 square, 3 triangle, 0 no object ``[n, OBJECTS]``
        owner: number of the object of each pixel, from 1 on; 0 for none ``[n, SIDE, SIDE]``
    """

    pictures: np.ndarray
    windows: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    owner: np.ndarray


def synthetic_images(seed: int, first: int, count: int) -> SyntheticImages:
    """Return `count` images of a seed, from number `first` on."""
    return SyntheticImages(*(np.stack(x) for x in zip(*(picture(seed, first + i) for i in range(count)))))


def picture(seed: int, number: int) -> SyntheticImages:
    """Return one image, without the leading axis."""
    rng = np.random.default_rng([seed, number])
    image = ground(rng)
    owner, kinds = np.zeros((SIDE, SIDE), np.uint8), []
    for i in range(rng.integers(1, MOST + 1)):
        kind = int(rng.integers(1, 4))
        mask, along = shape(rng, kind)
        image = np.where(mask, paint(rng, image, mask, along), image)
        owner[mask] = i + 1
        kinds.append(kind)
    noisy = np.clip(image + rng.normal(0, 0.04, image.shape), 0, 1)
    whole = np.array([0, 0, SIDE, SIDE])
    return SyntheticImages((noisy * 255).round().astype(np.uint8), whole, *truth(owner, kinds))


def ground(rng: np.random.Generator) -> np.ndarray:
    """Return a background: a constant, patches of 16 pixels and a gradient, for each colour."""
    patches = np.kron(rng.normal(size=(3, 8, 8)), np.ones((SIDE // 8, SIDE // 8)))
    slope = 0.15 * ((X * rng.normal() + Y * rng.normal()) / SIDE - 0.5)
    return rng.uniform(0.2, 0.8, (3, 1, 1)) + 0.08 * patches + slope


def shape(rng: np.random.Generator, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of a random object, and the coordinate of its stripes."""
    size, (x, y), angle = rng.uniform(8, 28), rng.uniform(12, SIDE - 12, 2), rng.uniform(0, 2 * np.pi)
    return shape_at(kind, size, x, y, angle)


def shape_at(kind: int, size: float, x: float, y: float, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of an object at a position, and the coordinate of its stripes."""
    u = (X - x) * np.cos(angle) + (Y - y) * np.sin(angle)
    v = -(X - x) * np.sin(angle) + (Y - y) * np.cos(angle)
    if kind == 1:
        return u * u + v * v < 0.8 * size * size, u
    if kind == 2:
        return np.maximum(abs(u), abs(v)) < 0.75 * size, u
    return (v > -0.5 * size) & (v < size - 1.732 * abs(u)), u


def paint(rng: np.random.Generator, image: np.ndarray, mask: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return stripes of a colour that differs from the image below."""
    colour = rng.uniform(0, 1, 3)
    if not mask.any() or abs(colour - image[:, mask].mean(1)).max() < 0.25:
        colour = 1 - colour
    return colour[:, None, None] + 0.08 * np.sin(along * rng.uniform(0.3, 1) + rng.uniform(0, 6))


def film(frames: int, seed: int = TEST) -> Iterator[np.ndarray]:
    """Yield images uint8 ``[SIDE, SIDE, 3]`` of four objects that move, rotate, and bounce off the border."""
    rng = np.random.default_rng([seed, frames])
    below = ground(rng)
    size, colour = (
        rng.uniform(12, 22, 4),
        np.array([[0.9, 0.3, 0.2], [0.2, 0.5, 0.9], [0.9, 0.8, 0.3], [0.3, 0.8, 0.4]]),
    )
    start, speed = rng.uniform(0, 2 * (SIDE - 40), (4, 2)), rng.uniform(-3, 3, (4, 2))
    turn = rng.uniform(-0.15, 0.15, 4)
    for t in range(frames):
        image = below
        for i, way in enumerate(start + t * speed):
            x, y = 20 + abs(way % (2 * (SIDE - 40)) - (SIDE - 40))
            mask, along = shape_at(1 + i % 3, size[i], x, y, t * turn[i])
            image = np.where(mask, colour[i, :, None, None] + 0.08 * np.sin(0.6 * along), image)
        noisy = np.clip(image + rng.normal(0, 0.04, image.shape), 0, 1)
        yield np.ascontiguousarray((noisy * 255).round().astype(np.uint8).transpose(1, 2, 0))


def truth(owner: np.ndarray, kinds: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boxes, classes and owners of the objects with enough visible pixels, numbered consecutively."""
    boxes, classes = np.zeros((OBJECTS, 4), np.float32), np.zeros(OBJECTS, np.int64)
    visible_owner = np.zeros_like(owner)
    for i, kind in enumerate(kinds, 1):
        rows, columns = np.nonzero(owner == i)
        if len(rows) < LEAST_PIXELS:
            continue
        n = int(visible_owner.max())
        boxes[n] = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        classes[n] = kind
        visible_owner[owner == i] = n + 1
    return boxes, classes, visible_owner
