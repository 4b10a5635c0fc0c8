"""Blur, edges and a sketch of a picture, as one graph with one memory plan.

python examples/image_filters.py [PICTURE]     writes out/filters.png
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import cgraph as cg
from cgraph.formats.pictures import read_rgb

OUT = Path("out")


def filters(picture: cg.Var) -> list[cg.Node]:
    """Blurred, edges, sketch: each ``[3, h, w]`` in 0…1."""
    x = picture[:, None]
    weights = np.exp(-(np.arange(-4, 5) ** 2) / 8.0)
    gauss = (np.outer(weights, weights) / weights.sum() ** 2).astype("float32")
    blurred = cg.conv2d(cg.pad(x, ((0, 0), (0, 0), (4, 4), (4, 4)), "edge"), gauss[None, None])[:, 0]
    padded = cg.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "edge")
    sobel = np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]], "float32")
    across = cg.conv2d(padded, sobel.T[None, None].copy())
    down = cg.conv2d(padded, sobel[None, None])
    edges = np.sqrt(across * across + down * down)[:, 0]
    return [blurred, cg.clip(edges, 0, 1), 1 - cg.clip(edges * 1.5, 0, 1) * (1 - blurred)]


def example_picture(n: int = 200) -> np.ndarray:
    """Rings and a slope, for when no picture is named."""
    y, x = np.mgrid[:n, :n] / n - 0.5
    rings = np.sin(60 * np.hypot(x, y)) > 0
    return np.stack([rings * 1.0, x + 0.5, y + 0.5]).astype("float32")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    if len(sys.argv) > 1:
        pixels = np.asarray(read_rgb(sys.argv[1]), "float32") / 255
        pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1))
    else:
        pixels = example_picture()
    picture = cg.Var(pixels.shape, "float32", "picture")
    function = cg.compile(filters(picture), [picture])
    rows = np.concatenate([pixels, *function(pixels)], axis=2).transpose(1, 2, 0)
    Image.fromarray((255 * np.clip(rows, 0, 1)).astype("uint8")).save(OUT / "filters.png")
    print(f"wrote {OUT / 'filters.png'}; arena {function.nbytes} bytes")


if __name__ == "__main__":
    main()
