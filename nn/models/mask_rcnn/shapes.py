"""A small Mask R-CNN that ships trained: it finds discs, squares and triangles in pictures that are made here.

    python -m nn.models.mask_rcnn.shapes [--folder out/shapes]

trains it anew from its seed, writes `shapes.safetensors`, and measures it on pictures that it never saw; stopped at any
moment, the command goes on where it was.
"""

import argparse
import sys
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from cgraph import Node
from cgraph.formats.npz import read_npz
from cgraph.terminal import write
from nn.checkpoint import Checkpoint
from nn.compile import compile as compile_model
from nn.history import History
from nn.layer import Layer, initialise
from nn.layers.block import ConvNorm
from nn.layers.conv import Conv2d
from nn.loader import Loader
from nn.mode import Mode
from nn.models.mask_rcnn.batches import positions
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.heads import AnchorHead, BoxHead, MaskHead
from nn.models.mask_rcnn.losses import Training, total
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.mask_rcnn.objects import find
from nn.models.mask_rcnn.precision import GroundTruth, Precision, precision
from nn.models.mask_rcnn.synthetic import OBJECTS, TEST, TRAINING, SyntheticImages, synthetic_images
from nn.models.resnet import Basic
from nn.optim import AdamW, ClipL2, Optimiser, Trapezoid
from nn.train import train
from nn.weights import load_weights, save_weights

NAMES = ("background", "disc", "square", "triangle")
WIDTHS = (24, 48, 96, 128)
PYRAMID = 64


class SmallTrunk(Layer):
    """Images ``[n, 3, h, w]`` to maps at strides 4, 8 and 16."""

    stem: ConvNorm = field(init=False)
    blocks: tuple[Basic, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.hold(stem=ConvNorm(3, WIDTHS[0], 3, 2, 1))
        self.hold(blocks=tuple(Basic(c, k, 2) for c, k in zip(WIDTHS, WIDTHS[1:])))

    def build(self, *xs: Node, mode: Mode) -> tuple[Node, ...]:
        x = self.stem(*xs, mode=mode)
        maps = []
        for block in self.blocks:
            x = block(x, mode=mode)
            maps.append(x)
        return tuple(maps)


def shapes_config() -> Config:
    return Config(
        (128, 128), len(NAMES), anchor_sides=(16, 32, 64), level_side=32.0, level=1, before=200, after=64,
        training_before=200, training_after=64, detections=16, sampled_anchors=128, sampled_boxes=32, positive_boxes=8,
        mean=(127.5, 127.5, 127.5), deviation=(127.5, 127.5, 127.5), portions=1,
    )  # fmt: skip


def shapes_network(weights: int | str | None = 0) -> MaskRCNN:
    """The network without its trained weights."""
    config = shapes_config()
    lateral = tuple(Conv2d(c, PYRAMID, 1) for c in WIDTHS[1:])
    smooth = tuple(Conv2d(PYRAMID, PYRAMID, 3, 1, 1) for _ in lateral)
    box = BoxHead(PYRAMID, config.cells, config.classes, (PYRAMID, PYRAMID), (96, 96), "layer")
    mask = MaskHead(PYRAMID, config.classes, (32, 32), 32)
    model = MaskRCNN(config, SmallTrunk(), lateral, smooth, AnchorHead(PYRAMID, PYRAMID), box, mask)
    return initialise(model, weights)


STEPS, WARMUP, FALL = 2800, 100, 600
BATCH, PICTURES = 8, 4096
TESTED = 500
WEIGHTS = Path(__file__).with_name("shapes.safetensors")


def mask_rcnn_shapes() -> MaskRCNN:
    """The network with the weights that ship."""
    return load_weights(WEIGHTS, shapes_network(None))


def optimiser(steps: int) -> Optimiser:
    """AdamW at a rate that is level and then goes down in a line."""
    return Optimiser(AdamW(), Trapezoid(0.0015, steps, WARMUP, min(FALL, steps)), clipping=ClipL2(5.0))


def loader(folder: Path, pictures: int = PICTURES) -> Loader:
    """The pictures of the training seed, made once, in batches of random positions."""
    path = folder / "pictures.npz"
    if not path.exists():
        np.savez(path, **synthetic_images(TRAINING, 0, pictures)._asdict())
    arrays = read_npz(path)
    return Loader(
        [arrays[name] for name in SyntheticImages._fields], BATCH, change=positions(shapes_config(), turning=True)
    )


def train_shapes(
    folder: Path, steps: int = STEPS, pictures: int = PICTURES, **options: Any
) -> tuple[MaskRCNN, History]:
    """Train the network from its seed, with a checkpoint in `folder` to go on from."""
    folder.mkdir(parents=True, exist_ok=True)
    data, model = loader(folder, pictures), Training(shapes_network(0), OBJECTS)
    checkpoint = Checkpoint(folder / "checkpoint.json", steps=100)
    history = train(
        model, data, total, optimiser(steps), targets=0, epochs=steps / data.steps_per_epoch, checkpoint=checkpoint,
        **options,
    )  # fmt: skip
    return model.model, history


def measure(model: MaskRCNN, count: int = TESTED, **options: Any) -> dict[str, Precision]:
    """Average precision on pictures that no training saw."""
    data = synthetic_images(TEST, 0, count)
    predict = compile_model(model, **options)
    detections = [find(predict, model.config, [x.transpose(1, 2, 0)])[0] for x in data.pictures]
    return precision(detections, [ground_truth(data, i) for i in range(count)], model.config.classes)


def ground_truth(data: SyntheticImages, number: int) -> GroundTruth:
    """The objects of one picture."""
    there = np.flatnonzero(data.classes[number])
    masks = data.owner[number] == there[:, None, None] + 1
    return GroundTruth(data.boxes[number, there], data.classes[number, there], masks)


def log_of(history: History, precisions: dict[str, Precision]) -> str:
    """Losses as means of 100 steps, and what was measured at the end, as text."""
    names = list(history.parts)
    lines = [f"{'steps':>6} {'loss':>7} " + " ".join(f"{name:>13}" for name in names)]
    for first in range(0, len(history.loss), 100):
        some = slice(first, first + 100)
        parts = " ".join(f"{history.parts[name][some].mean():13.4f}" for name in names)
        lines.append(f"{first:6d} {history.loss[some].mean():7.4f} {parts}")
    for kind, value in precisions.items():
        lines.append(f"{kind}: mAP {value.mean:.4f}, AP50 {value.at_50:.4f}, AP75 {value.at_75:.4f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the small network anew.")
    parser.add_argument("--folder", type=Path, default=Path("out/shapes"), help="for pictures, checkpoint and weights")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--pictures", type=int, default=PICTURES, help="to train with")
    parser.add_argument("--tested", type=int, default=TESTED, help="pictures to measure on")
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    model, history = train_shapes(arguments.folder, arguments.steps, arguments.pictures, threads=arguments.threads)
    save_weights(arguments.folder / WEIGHTS.name, model, dtype="float16")
    load_weights(arguments.folder / WEIGHTS.name, model)
    text = log_of(history, measure(model, arguments.tested, threads=arguments.threads))
    (arguments.folder / "log.txt").write_text(text)
    write(text, sys.stdout)


if __name__ == "__main__":
    main()
