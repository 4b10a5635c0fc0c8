"""Training of the small network that ships.

    python -m nn.models.mask_rcnn.tools.train_shapes [--folder out/shapes]

trains the network from its seed, writes `shapes.safetensors`, and measures its precision on images of another seed. The
command resumes from its checkpoint.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cgraph.formats.npz import read_npz
from cgraph.terminal import write
from nn.checkpoint import Checkpoint
from nn.compile import compile as compile_model
from nn.history import History
from nn.loader import Loader
from nn.models.mask_rcnn.losses import Training, total
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.mask_rcnn.objects import find
from nn.models.mask_rcnn.shapes import WEIGHTS, shapes_config, shapes_network
from nn.models.mask_rcnn.tools.batches import positions
from nn.models.mask_rcnn.tools.precision import GroundTruth, Precision, precision
from nn.models.mask_rcnn.tools.synthetic import OBJECTS, TEST, TRAINING, SyntheticImages, synthetic_images
from nn.optim import AdamW, ClipL2, Optimiser, Trapezoid
from nn.train import train
from nn.weights import load_weights, save_weights

STEPS, WARMUP, FALL = 2800, 100, 600
BATCH, PICTURES = 8, 4096
TESTED = 500


def optimiser(steps: int) -> Optimiser:
    """Return AdamW with a rate that is constant and then decays linearly."""
    return Optimiser(AdamW(), Trapezoid(0.0015, steps, WARMUP, min(FALL, steps)), clipping=ClipL2(5.0))


def loader(folder: Path, pictures: int = PICTURES) -> Loader:
    """Return a loader of the images of the training seed, generated once, in random symmetries."""
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
    """Return the average precision on images of the test seed."""
    data = synthetic_images(TEST, 0, count)
    predict = compile_model(model, **options)
    detections = [find(predict, model.config, [x.transpose(1, 2, 0)])[0] for x in data.pictures]
    return precision(detections, [ground_truth(data, i) for i in range(count)], model.config.classes)


def ground_truth(data: SyntheticImages, number: int) -> GroundTruth:
    """Return the true objects of one image."""
    there = np.flatnonzero(data.classes[number])
    masks = data.owner[number] == there[:, None, None] + 1
    return GroundTruth(data.boxes[number, there], data.classes[number, there], masks)


def log_of(history: History, precisions: dict[str, Precision]) -> str:
    """Return means of 100 losses and the final precision as text."""
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
    """Run the command."""
    parser = argparse.ArgumentParser(description="Train the small network from its seed.")
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
    (arguments.folder / "log.txt").write_text(text, "utf-8")
    write(text, sys.stdout)


if __name__ == "__main__":
    main()
