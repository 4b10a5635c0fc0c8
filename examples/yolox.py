"""Find things in a picture with YOLOX: network, decoding and the choice of boxes are one graph with one plan.

python examples/yolox.py yolox_nano.onnx PICTURE     writes out/yolox.png

Source: Ge et al. 2021, arXiv:2107.08430; weights: github.com/Kazuhito00/YOLOX-ONNX-TFLite-Sample.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from PIL import Image, ImageDraw

import cgraph as cg
from cgraph.formats import onnx
from cgraph.formats.pictures import read_rgb

OUT = Path("out")
SIDE, MOST, GREY = 416, 100, 114
NAMES = """person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,
parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,
tie,suitcase,frisbee,skis,snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,
tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,
hot dog,pizza,donut,cake,chair,couch,potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,
keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,
hair drier,toothbrush""".replace("\n", "").split(",")


def letterbox(image: Image.Image) -> tuple[np.ndarray, float]:
    """A picture ``[1, 3, SIDE, SIDE]``, blue first, 0..255, grey beside it; and how much smaller it became."""
    scale = min(SIDE / image.width, SIDE / image.height)
    small = image.resize((int(image.width * scale), int(image.height * scale)), Image.Resampling.BILINEAR)
    whole = np.full((SIDE, SIDE, 3), GREY, "float32")
    whole[: small.height, : small.width] = np.asarray(small, "float32")[..., ::-1]
    return np.ascontiguousarray(whole.transpose(2, 0, 1)[None]), scale


def found(raw: cg.Node, overlap: float = 0.45, least: float = 0.3) -> list[cg.Node]:
    """Boxes ``[MOST, 4]`` as corners, scores, classes, and how many they are, from the network's ``[1, n, 85]``."""
    cells = [(x, y, stride) for stride in (8, 16, 32) for y in range(SIDE // stride) for x in range(SIDE // stride)]
    grid = np.array(cells, "float32")
    place, stride, rows = grid[:, :2], grid[:, 2:], raw[0]
    centre, size = (rows[:, :2] + place) * stride, cg.exp(rows[:, 2:4]) * stride
    boxes = cg.concat([centre - size / 2, centre + size / 2], axis=1)
    scores = rows[:, 5:] * rows[:, 4:5]
    best, kind = cg.max(scores, axis=1), cg.argmax(scores, axis=1)
    apart = boxes + cg.astype(kind, "float32")[:, None] * (2.0 * SIDE)  # boxes of different classes never overlap
    places, count = cg.non_maximum_suppression(apart, best, MOST, overlap, least)
    rows_taken = cg.maximum(places, 0)
    return [*(cg.take(v, rows_taken, axis=0) for v in (boxes, best, kind)), count]


def main() -> None:
    model = onnx.load(sys.argv[1])
    function = cg.compile(found(model.outputs[0]), model.inputs)
    image = read_rgb(sys.argv[2])
    pixels, scale = letterbox(image)
    function(pixels)
    begin = perf_counter()
    boxes, scores, kinds, count = function(pixels)
    seconds = perf_counter() - begin
    draw = ImageDraw.Draw(image)
    for box, score, kind in list(zip(boxes / scale, scores, kinds))[: int(count)]:
        draw.rectangle(box.tolist(), outline="red", width=3)
        draw.text((box[0] + 4, box[1] + 4), f"{NAMES[kind]} {score:.2f}", fill="red")
        print(f"{NAMES[kind]:<14} {score:.2f}  {box.round().astype(int).tolist()}")
    OUT.mkdir(exist_ok=True)
    image.save(OUT / "yolox.png")
    print(f"wrote {OUT / 'yolox.png'}; {1e3 * seconds:.1f} ms, arena {function.nbytes} bytes")


if __name__ == "__main__":
    main()
