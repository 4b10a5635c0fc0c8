"""Readers and writers of model files, such as ``cgraph.formats.onnx.load(path)``. A format is imported on first use."""

from importlib import import_module
from typing import Any

FORMATS = ("darknet", "deep_compression", "keras_h5", "npz", "onnx", "safetensors", "tflite", "torch_file")


def __getattr__(name: str) -> Any:
    """Return the module of a format."""
    if name not in FORMATS:
        raise AttributeError(f"cgraph.formats has no attribute {name!r}. Use one of {', '.join(FORMATS)}")
    return import_module(f"cgraph.formats.{name}")


def __dir__() -> list[str]:
    return list(FORMATS)
