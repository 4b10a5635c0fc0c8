"""Models and weights from files, and back: ``cgraph.formats.onnx.load(path)``. A format is loaded when it is named."""

from importlib import import_module
from typing import Any

FORMATS = ("darknet", "deep_compression", "keras_h5", "npz", "onnx", "safetensors", "tflite", "torch_file")


def __getattr__(name: str) -> Any:
    """The module of a format."""
    if name not in FORMATS:
        raise AttributeError(f"cgraph.formats has no attribute {name!r}; there are {', '.join(FORMATS)}")
    return import_module(f"cgraph.formats.{name}")


def __dir__() -> list[str]:
    return list(FORMATS)
