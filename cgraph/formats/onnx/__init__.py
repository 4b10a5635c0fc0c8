"""Read, write and run ONNX models. Needs the extra `onnx`."""

from cgraph.formats.onnx.reader import load

__all__ = ["load"]
