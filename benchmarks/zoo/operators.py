"""Write files of one operator each, whose times can be compared by themselves.

python -m benchmarks.zoo.operators FOLDER && python -m benchmarks.zoo.compare FOLDER operators
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

Layer = tuple[str, tuple[int, ...], Any, dict[str, Any]]  # operator, shape of its images, further operand, attributes


def filters(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, shape).astype("float32")


def conv(c: int, k: int, size: int, window: int, pad: int, dilation: int = 1) -> Layer:
    options = {"pads": [pad] * 4, "dilations": [dilation] * 2}
    return "Conv", (1, c, size, size), filters(k, c, window, window), options


def transposed(c: int, k: int, size: int, window: int, pad: int) -> Layer:
    options = {"strides": [2, 2], "pads": [pad] * 4}
    return "ConvTranspose", (1, c, size, size), filters(c, k, window, window), options


def resize(shape: tuple[int, ...], size: tuple[int, int], mode: str = "cubic", antialias: int = 0) -> Layer:
    options = {"mode": mode, "coordinate_transformation_mode": "half_pixel", "antialias": antialias}
    return "Resize", shape, np.array([*shape[:2], *size]), options


def pool(kind: str, shape: tuple[int, ...], window: tuple[int, ...], stride: tuple[int, ...]) -> Layer:
    return kind, shape, None, {"kernel_shape": window, "strides": stride}


LAYERS: dict[str, Layer] = {
    "transposed 32 to 3 of 56, 4x4": transposed(32, 3, 56, 4, 1),
    "transposed 64 to 3 of 64, 4x4": transposed(64, 3, 64, 4, 1),
    "transposed 64 to 1 of 28, 2x2": transposed(64, 1, 28, 2, 0),
    "transposed 64 to 1 of 112, 2x2": transposed(64, 1, 112, 2, 0),
    "transposed 64 to 32 of 28, 2x2": transposed(64, 32, 28, 2, 0),
    "conv 64 to 3 of 112, 3x3": conv(64, 3, 112, 3, 1),
    "conv 64 to 3 of 112, 7x7": conv(64, 3, 112, 7, 3),
    "conv 32 to 1 of 64, 3x3": conv(32, 1, 64, 3, 1),
    "conv 64 to 1 of 112, 1x1": conv(64, 1, 112, 1, 0),
    "conv 64 to 64 of 10, dilation 6": conv(64, 64, 10, 3, 6, 6),
    "conv 256 to 256 of 10, dilation 6": conv(256, 256, 10, 3, 6, 6),
    "conv 960 to 256 of 14, dilation 12": conv(960, 256, 14, 3, 12, 12),
    "conv 512 to 64 of 28, dilation 24": conv(512, 64, 28, 3, 24, 24),
    "bicubic 64 of 32 to 64": resize((1, 64, 32, 32), (64, 64)),
    "bicubic antialias 3 of 512 to 224": resize((1, 3, 512, 512), (224, 224), antialias=1),
    "bilinear antialias 3 of 512 to 224": resize((1, 3, 512, 512), (224, 224), "linear", 1),
    "bicubic antialias 64 of 32 to 64": resize((1, 64, 32, 32), (64, 64), antialias=1),
    "largest of a volume, 1x2x2": pool("MaxPool", (1, 64, 16, 28, 28), (1, 2, 2), (1, 2, 2)),
    "mean of a volume, 2x7x7": pool("AveragePool", (1, 512, 2, 7, 7), (2, 7, 7), (1, 1, 1)),
    "conv of a volume, 1x1x1": ("Conv", (1, 64, 8, 28, 28), filters(64, 64, 1, 1, 1), {}),
    "conv of a volume, 3x1x1": ("Conv", (1, 64, 8, 28, 28), filters(64, 64, 3, 1, 1), {"pads": [1, 0, 0] * 2}),
    "softmax of 1024 x 128": ("Softmax", (1, 1024, 128), None, {"axis": -1}),
    "softmax of 256 x 512": ("Softmax", (1, 256, 512), None, {"axis": -1}),
    "softmax of 784 x 196": ("Softmax", (4, 196, 196), None, {"axis": -1}),
    "softmax of 2352 x 196": ("Softmax", (12, 196, 196), None, {"axis": -1}),
}


def write(path: Path, layer: Layer) -> None:
    """Write a file of one operator of opset 18."""
    from onnx import TensorProto, helper, numpy_helper, save

    operator, shape, operand, options = layer
    names = ["x"] if operand is None else ["x", "", "", "w"] if operator == "Resize" else ["x", "w"]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **options)],
        operator,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [] if operand is None else [numpy_helper.from_array(operand, "w")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) / "operators"
    folder.mkdir(parents=True, exist_ok=True)
    for name, layer in LAYERS.items():
        write(folder / f"{name}.onnx", layer)
