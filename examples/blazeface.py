"""Find faces with BlazeFace and draw them.

python examples/blazeface.py [FOLDER]     writes out/1face.png …

FOLDER holds blazefaceback.pth, anchorsback.npy and pictures, as in hollance's BlazeFace-PyTorch.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import nn
from cgraph.formats.pictures import read_rgb
from cgraph.formats.torch_file import read_torch
from nn.models.faces import Face, faces_of
from nn.models.torch_names import blazeface_arrays

OUT = Path("out")
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "blazeface"
PIXELS, LEAST, ENLARGED = 256, 0.5, 512


def detector(folder: Path) -> nn.Predictor:
    """The back camera's network: it sees small faces too."""
    model = nn.models.blazeface(None, back=True)
    nn.set_values(model, blazeface_arrays(read_torch(folder / "blazefaceback.pth"), model))
    return nn.compile(model)


def find(picture: Image.Image, network: nn.Predictor, anchors: np.ndarray) -> list[Face]:
    small = picture.convert("RGB").resize((PIXELS, PIXELS), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1
    boxes, scores = network(np.ascontiguousarray(pixels))
    return faces_of(boxes[0], scores[0], anchors, PIXELS, LEAST)


def drawn(picture: Image.Image, faces: list[Face]) -> Image.Image:
    """The picture, enlarged, with a box and six points on each face."""
    large = picture.convert("RGB").resize((ENLARGED, ENLARGED))
    pen = ImageDraw.Draw(large)
    for face in faces:
        pen.rectangle([side * ENLARGED for side in face.box], outline=(255, 60, 60), width=3)
        for x, y in face.points * ENLARGED:
            pen.ellipse([x - 3, y - 3, x + 3, y + 3], fill=(60, 255, 60))
    return large


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    if not (folder / "blazefaceback.pth").exists():
        print(f"{folder} has no blazefaceback.pth; name a folder that has")
        return
    OUT.mkdir(exist_ok=True)
    network, anchors = detector(folder), np.load(folder / "anchorsback.npy")
    for path in sorted(folder.glob("*face*.png")):
        picture = read_rgb(path)
        faces = find(picture, network, anchors)
        drawn(picture, faces).save(OUT / path.name)
        print(f"{path.name}: {len(faces)} faces, wrote {OUT / path.name}")


if __name__ == "__main__":
    main()
