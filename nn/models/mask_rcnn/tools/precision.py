"""Average precision as COCO measures it, of boxes and of masks. Needs pycocotools (extra `examples`)."""

import contextlib
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgraph.system.extras import missing_package
from nn.compile import compile as compile_model
from nn.models.mask_rcnn.config import Config
from nn.models.mask_rcnn.network import MaskRCNN
from nn.models.mask_rcnn.objects import Detection, find


class Precision(NamedTuple):
    """Average precision: the mean over overlaps from 0.5 to 0.95, and at 0.5 and at 0.75."""

    mean: float
    at_50: float
    at_75: float


class GroundTruth(NamedTuple):
    """The true objects of a picture: boxes ``[k, 4]``, classes ``[k]``, masks bool ``[k, rows, columns]``."""

    boxes: np.ndarray
    classes: np.ndarray
    masks: np.ndarray


def precision(
    detections: Sequence[Sequence[Detection]], truths: Sequence[GroundTruth], classes: int
) -> dict[str, Precision]:
    """Return the average precision of the detections of each picture, for ``boxes`` and for ``masks``.

    Source: COCO's evaluation, by pycocotools.
    """
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        raise missing_package("pycocotools", "measures of COCO") from None
    annotations = [one for i, truth in enumerate(truths) for one in truth_rows(i, truth)]
    rows = [row for i, objects in enumerate(detections) for row in detection_rows(i, objects)]
    if not rows:
        return dict.fromkeys(("boxes", "masks"), Precision(0.0, 0.0, 0.0))
    measured = {}
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "info": {},
            "images": [image_row(i, one) for i, one in enumerate(truths)],
            "annotations": [one | {"id": i + 1} for i, one in enumerate(annotations)],
            "categories": [{"id": kind, "name": str(kind)} for kind in range(1, classes)],
        }
        truth.createIndex()
        for name, kind in (("boxes", "bbox"), ("masks", "segm")):
            key = "bbox" if kind == "bbox" else "segmentation"
            results = truth.loadRes([{k: v for k, v in row.items() if k in (*SHARED, key)} for row in rows])
            evaluation = COCOeval(truth, results, kind)
            for step in (evaluation.evaluate, evaluation.accumulate, evaluation.summarize):
                step()
            measured[name] = Precision(*(float(x) for x in evaluation.stats[:3]))
    return measured


SHARED = ("image_id", "category_id", "score")


def image_row(number: int, truth: GroundTruth) -> dict[str, int]:
    rows, columns = truth.masks.shape[1:]
    return {"id": number + 1, "height": rows, "width": columns}


def truth_rows(number: int, truth: GroundTruth) -> list[dict[str, Any]]:
    return [
        {
            "image_id": number + 1, "category_id": int(kind), "iscrowd": 0, "area": float(mask.sum()),
            "bbox": corner_and_size(box), "segmentation": encode_mask(mask),
        }
        for box, kind, mask in zip(*truth)
    ]  # fmt: skip


def detection_rows(number: int, objects: Sequence[Detection]) -> list[dict[str, Any]]:
    return [
        {
            "image_id": number + 1, "category_id": one.kind, "score": one.score, "bbox": corner_and_size(one.box),
            "segmentation": encode_mask(one.pixels()),
        }
        for one in objects
    ]  # fmt: skip


def corner_and_size(box: Any) -> list[float]:
    x0, y0, x1, y1 = (float(v) for v in box)
    return [x0, y0, x1 - x0, y1 - y0]


def encode_mask(mask: np.ndarray) -> Any:
    """Return a mask as runs, in the form of COCO's files."""
    from pycocotools import mask as runs

    return runs.encode(np.asfortranarray(mask, np.uint8))


def validation(
    model: MaskRCNN, pictures: Sequence[np.ndarray], truths: Sequence[GroundTruth], batch: int = 1
) -> Callable[[], float]:
    """Return a validation for `nn.train`: one minus the mean precision of masks with the current weights."""
    config: Config = model.config
    predict = compile_model(model, batch, frozen=False)

    def lack() -> float:
        return 1.0 - precision(find(predict, config, pictures), truths, config.classes)["masks"].mean

    return lack
