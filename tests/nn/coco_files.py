"""Made pictures as a data set in COCO's format, its masks as packed runs."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

from nn.models.mask_rcnn.shapes import NAMES
from nn.models.mask_rcnn.tools.synthetic import SIDE, SyntheticImages
from nn.models.mask_rcnn.tools.train_shapes import ground_truth


def write_data_set(folder: Path, data: SyntheticImages) -> str:
    """Write pictures and the JSON file; the path of the latter."""
    from pycocotools import mask as runs

    annotations = []
    for i, picture in enumerate(data.pictures):
        Image.fromarray(picture.transpose(1, 2, 0)).save(folder / f"{i}.png")
        for (x0, y0, x1, y1), kind, mask in zip(*ground_truth(data, i)):
            counts = runs.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()
            box = [float(v) for v in (x0, y0, x1 - x0, y1 - y0)]
            annotations.append(
                {"image_id": i, "category_id": int(kind), "bbox": box, "segmentation": {"counts": counts}}
            )
    images = [{"id": i, "file_name": f"{i}.png", "height": SIDE, "width": SIDE} for i in range(len(data.pictures))]
    kinds = [{"id": i, "name": name} for i, name in enumerate(NAMES) if i]
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": kinds}))
    return str(path)
