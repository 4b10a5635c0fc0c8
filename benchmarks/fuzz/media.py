"""Pictures, sounds, single arrays and COCO's descriptions: readers, small valid files, and changes of these."""

import io
import json
import wave
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.fuzz.mutate import changed_json, mutated


def read_picture(path: Path) -> Any:
    """Read a picture as an input of 8 x 8 pixels."""
    from cgraph.cli.pictures import Look, read_picture
    from cgraph.ops.leaf import Var

    return read_picture(path, Var((1, 3, 8, 8), name="x"), Look())


def read_sound(path: Path) -> Any:
    from cgraph.cli.sounds import samples_of

    return samples_of(path)


def read_coco(path: Path) -> Any:
    """Read a description, and the masks of the picture with most objects, one after another."""
    from nn.models.mask_rcnn.tools.coco import check_masks, mask_at, read_coco

    data = read_coco(path, path.parent)
    most = max(data.entries, key=lambda entry: len(entry.objects), default=None)
    if most is not None:
        check_masks(most)
        for i in range(len(most.objects)):
            mask_at(most, i)
    return data


def npy_samples() -> Sequence[bytes]:
    samples = []
    for x in (np.arange(6, dtype="f4").reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array(True)):
        out = io.BytesIO()
        np.save(out, x)
        samples.append(out.getvalue())
    return samples


def picture_samples() -> Sequence[bytes]:
    """Return a small picture in each of three formats."""
    from PIL import Image

    pixels = np.arange(9 * 7 * 3, dtype="u1").reshape(9, 7, 3)
    samples = []
    for kind in ("PNG", "JPEG", "BMP"):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, kind)
        samples.append(out.getvalue())
    return samples


def sound(samples: bytes, channels: int = 1, width: int = 2) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(samples)
    return out.getvalue()


def sound_samples() -> Sequence[bytes]:
    return [sound(bytes(range(24)), channels, width) for channels, width in ((1, 1), (2, 2), (1, 3), (2, 4))]


def coco(images: list, annotations: list) -> bytes:
    """Return a description of one class."""
    rows = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "thing"}]}
    return json.dumps(rows, separators=(",", ":")).encode()


def image(number: Any, size: int = 4) -> dict[str, Any]:
    return {"id": number, "height": size, "width": size, "file_name": "a.png"}


def thing(number: Any, segmentation: Any) -> dict[str, Any]:
    return {"image_id": number, "category_id": 1, "bbox": [0, 0, 2, 2], "segmentation": segmentation, "iscrowd": 0}


def coco_samples() -> Sequence[bytes]:
    things = [thing(7, [[0, 0, 2, 0, 2, 2]]), thing(7, {"counts": [3, 10, 3]}), thing(9, {"counts": "3:3"})]
    return [coco([image(7)], things[:2]), coco([image(7), image(9)], things[:1])]


def changed_coco(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    """Change values of the description."""
    description = json.loads(whole)
    for _ in range(rng.randint(1, 3)):
        description = changed_json(description, rng)
    return json.dumps(description).encode("utf-8", "replace")


def changed_bytes(whole: bytes, rng: Random, samples: Sequence[bytes]) -> bytes:
    return mutated(whole, rng)
