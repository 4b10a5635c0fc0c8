"""Train Mask R-CNN on your own pictures: a COCO-format JSON file, whose masks are polygons or runs.

    python examples/mask_rcnn_train.py --annotations train.json --pictures FOLDER [--validation valid.json]
        [--weights maskrcnn_resnet50_fpn.pth]    begins with weights for other classes; only the last layers start anew

Writes out/mask_rcnn.safetensors, and a checkpoint from which the same command goes on. After every epoch it measures
the mean average precision of masks on --validation (needs pycocotools). With --weights the trunk's norms, stem and
first group stay as they are.
"""

import argparse
from pathlib import Path

import nn
from cgraph.formats.torch_file import read_torch
from cgraph.record import replace
from nn.models.mask_rcnn import Training, adopt, mask_rcnn, torchvision_config
from nn.models.mask_rcnn.losses import total
from nn.models.mask_rcnn.tools.batches import positions
from nn.models.mask_rcnn.tools.coco import arrays_of, ground_truth_of, picture_of, read_coco
from nn.models.mask_rcnn.tools.precision import validation

OUT = Path("out")
FROZEN = ("model.trunk.stem", "model.trunk.groups.0")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train Mask R-CNN on your own pictures.")
    for name in ("annotations", "pictures"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--validation", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--side", type=int, default=512, help="pixels of the square that the network sees, times 32")
    parser.add_argument("--depth", type=int, default=50, choices=(50, 101, 152))
    parser.add_argument("--epochs", type=float, default=12)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.0025, help="for a batch of 2; torchvision's 0.02 is for 16")
    parser.add_argument("--objects", type=int, default=50, help="in a picture at most")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    data = read_coco(given.annotations, given.pictures)
    config = replace(torchvision_config((given.side, given.side), len(data.names)), training_after=1000)
    network = mask_rcnn(given.depth, 0, config, frozen=given.weights is not None)
    if given.weights:
        adopt(network, read_torch(given.weights))
    model = Training(network, given.objects)
    loader = nn.Loader(arrays_of(data, config, given.objects), given.batch, change=positions(config))
    steps = round(given.epochs * loader.steps_per_epoch)
    rate = nn.optim.Steps(given.rate, (steps * 2 // 3, steps * 8 // 9), warmup=min(500, steps // 5))
    method, momentum, decay = nn.optim.GradientDescent(), nn.optim.Standard(0.9), nn.optim.L2(5e-5)
    optimiser = nn.Optimiser(method, rate, momentum, nn.optim.ClipL2(5.0), decay)
    check = None
    if given.validation:
        entries = read_coco(given.validation, given.pictures).entries
        check = validation(network, [picture_of(x) for x in entries], [ground_truth_of(x) for x in entries])
    OUT.mkdir(exist_ok=True)
    history = nn.train(
        model, loader, total, optimiser, targets=0, epochs=given.epochs, validation=check,
        checkpoint=nn.Checkpoint(OUT / "mask_rcnn.json", epochs=1),
        trained=model.parameters(FROZEN if given.weights else ()),
    )  # fmt: skip
    nn.save_weights(OUT / "mask_rcnn.safetensors", network)
    few = len(history.loss) // 10 + 1
    for name, part in history.parts.items():
        print(f"{name}: {part[:few].mean():.3f} at first, {part[-few:].mean():.3f} now")
    if check:
        print("mean average precision of masks after each epoch:", *(f"{1 - x:.3f}" for x in history.validation))


if __name__ == "__main__":
    main()
