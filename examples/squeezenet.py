"""SqueezeNet v1.0 with its published ImageNet weights names what is in pictures.

    python examples/squeezenet.py --weights compressed_SqueezeNet.net --labels synset.txt PICTURE...

Source: Iandola et al. 2016, arXiv:1602.07360; weights: songhan/SqueezeNet-Deep-Compression.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import cgraph as cg
from cgraph.formats.deep_compression import read_deep_compression
from cgraph.formats.pictures import read_rgb

SIZE, MEAN = 227, np.array([104, 117, 123], "float32")  # blue, green, red, as the network was trained
FIRES = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]


def shapes() -> list[tuple[int, ...]]:
    """The filters' shapes, in the file's order."""
    found: list[tuple[int, ...]] = [(96, 3, 7, 7)]
    channels = 96
    for few, wide in FIRES:
        found += [(few, channels, 1, 1), (wide, few, 1, 1), (wide, few, 3, 3)]
        channels = 2 * wide
    return [*found, (1000, channels, 1, 1)]


def squeezenet(image: cg.Node, layers: list[tuple[np.ndarray, np.ndarray]]) -> cg.Node:
    """Scores ``[1, 1000]`` before the softmax, of an image ``[1, 3, 227, 227]``."""
    rest = iter(layers)

    def conv(x: cg.Node, stride: int = 1, pad: int = 0) -> cg.Node:
        filters, bias = next(rest)
        return cg.relu(cg.conv2d(x, filters, stride, pad) + bias[:, None, None])

    x = cg.max_pool2d(conv(image, stride=2), 3, 2, ceil=True)
    for i in range(len(FIRES)):
        few = conv(x)
        x = cg.concat([conv(few), conv(few, pad=1)], axis=1)
        if i in (2, 6):
            x = cg.max_pool2d(x, 3, 2, ceil=True)
    return cg.global_avg_pool(conv(x, pad=1)).reshape(1, 1000)


def pixels(path: str | Path) -> np.ndarray:
    """The middle square of a picture as the network takes it."""
    picture = ImageOps.fit(read_rgb(path), (SIZE, SIZE), Image.Resampling.BILINEAR)
    return np.ascontiguousarray((np.asarray(picture, "float32")[..., ::-1] - MEAN).transpose(2, 0, 1)[None])


def main() -> None:
    parser = argparse.ArgumentParser(description="What is in a picture?")
    parser.add_argument("--weights", required=True)
    parser.add_argument("--labels", required=True)
    parser.add_argument("pictures", nargs="+")
    args = parser.parse_args()
    labels = [line.split(" ", 1)[-1].strip("'") for line in Path(args.labels).read_text().splitlines()]
    image = cg.Var((1, 3, SIZE, SIZE), name="image")
    scores = squeezenet(image, read_deep_compression(args.weights, shapes()))
    function = cg.compile(cg.softmax(scores), [image])
    print(f"arena {function.nbytes / 2**20:.2f} MiB")
    for path in args.pictures:
        found = function(pixels(path))[0]
        best = ", ".join(f"{labels[i].split(',')[0]} {found[i]:.0%}" for i in np.argsort(-found)[:5])
        print(f"{Path(path).name}: {best}")


if __name__ == "__main__":
    main()
