"""One ONNX node with random shapes, axes, attributes and opsets: a function for each operator."""

from tests.support.onnx_draws import along, bytes, more, moves, other, own, places, pointwise, windows
from tests.support.onnx_draws.draws import DRAWN

__all__ = ["DRAWN", "along", "bytes", "more", "moves", "other", "own", "places", "pointwise", "windows"]
