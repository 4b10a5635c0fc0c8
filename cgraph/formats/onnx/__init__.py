"""Read, write and run ONNX models. Needs the extra `onnx`."""

from cgraph.formats.onnx.reader import load
from cgraph.formats.onnx.sizes import compile_sizes, open_shapes
from cgraph.formats.onnx.writer import save, serialised

__all__ = ["compile_sizes", "load", "open_shapes", "save", "serialised"]


def __dir__() -> list[str]:
    return __all__
