"""Importers by family; importing this package fills `OPERATORS`."""

from cgraph.formats.onnx.operators import conv, index, linear, norm, pointwise, reduce, shape

__all__ = ["conv", "index", "linear", "norm", "pointwise", "reduce", "shape"]
