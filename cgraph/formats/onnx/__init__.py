"""Read, write and run ONNX models. Needs the extra `onnx`."""

from cgraph.formats.onnx.reader import load
from cgraph.formats.onnx.writer import save, serialised

__all__ = ["load", "save", "serialised"]
