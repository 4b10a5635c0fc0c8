"""Read, write and run ONNX models. Needs the extra `onnx`. The writer is imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cgraph.formats.onnx.reader import load
from cgraph.formats.onnx.sizes import compile_sizes, open_shapes

if TYPE_CHECKING:
    from cgraph.formats.onnx.writer import save, serialised

__all__ = ["compile_sizes", "load", "open_shapes", "save", "serialised"]


def __getattr__(name: str) -> Any:
    """Return a function of the writer."""
    if name not in __all__:
        raise AttributeError(f"cgraph.formats.onnx has no attribute {name!r}. Use one of {', '.join(__all__)}")
    return getattr(import_module("cgraph.formats.onnx.writer"), name)


def __dir__() -> list[str]:
    return __all__
