"""Name what is in pictures, with a network of nn.models or of Keras, or with SqueezeNet.

    python examples/classify.py --network densenet121 --weights densenet121.pth PICTURE...    torchvision's weights
    python examples/classify.py --weights network.h5 PICTURE...                               a whole Keras network

--side, --mean and --deviation say what the network wants to see. For SqueezeNet's compressed weights: squeezenet.py.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

import cgraph as cg
import nn
from cgraph.formats.keras_graph import load_keras
from cgraph.formats.pictures import read_rgb
from cgraph.formats.torch_file import read_torch
from nn.models.torch_names import torchvision_arrays

LOGITS = "resnet18 resnet34 resnet50 resnet101 resnet152 vgg16 squeezenet1_0 squeezenet1_1 densenet121 densenet201"
PROBABILITIES = ("mobilenet_v2", "inception_v3")  # which have a form of their own in torchvision


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What is in a picture?")
    parser.add_argument("pictures", nargs="+", type=Path)
    parser.add_argument(
        "--network", choices=(*LOGITS.split(), *PROBABILITIES), default="resnet50", help="of a .pth file"
    )
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--labels", type=Path, help="a file of names, one a line; else numbers are shown")
    parser.add_argument("--side", type=int, help="pixels of the middle square; those of the network by default")
    parser.add_argument("--mean", type=float, nargs=3, default=(123.675, 116.28, 103.53))
    parser.add_argument("--deviation", type=float, nargs=3, default=(58.395, 57.12, 57.375))
    return parser.parse_args()


def classifier(given: argparse.Namespace) -> tuple[Callable[[np.ndarray], np.ndarray], tuple[int, ...]]:
    """A function from images ``[1, 3, h, w]`` to probabilities, and the shape of an image."""
    if given.weights.suffix == ".h5":
        graph = load_keras(given.weights)
        (image,) = graph.inputs
        function = cg.compile(graph.outputs[0], [image])
        return function, image.shape[1:]
    arrays = read_torch(given.weights)
    form = {"torch": True} if given.network in PROBABILITIES else {}
    model = getattr(nn.models, given.network)(None, classes=len([*arrays.values()][-1]), **form)
    nn.set_values(model, torchvision_arrays(arrays, model), str(given.weights))
    side = given.side or model.samples[0].shape[1]
    predict = nn.compile(model, samples=[nn.Sample((3, side, side))])
    return (lambda x: softmax(predict(x))) if given.network not in PROBABILITIES else predict, (3, side, side)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def pixels(path: Path, shape: tuple[int, ...], given: argparse.Namespace) -> np.ndarray:
    """The middle of a picture as the network takes it."""
    picture = ImageOps.fit(read_rgb(path), shape[:0:-1], Image.Resampling.BILINEAR)
    colours = (np.asarray(picture, np.float32) - given.mean) / given.deviation
    return np.ascontiguousarray(colours.transpose(2, 0, 1)[None], np.float32)


def main() -> None:
    given = arguments()
    labels, (classify, shape) = given.labels and given.labels.read_text().splitlines(), classifier(given)
    for path in given.pictures:
        found = classify(pixels(path, shape, given))[0].ravel()
        best = np.argsort(-found)[:5]
        print(f"{path.name}:", ", ".join(f"{labels[i] if labels else i} {found[i]:.0%}" for i in best))


if __name__ == "__main__":
    main()
