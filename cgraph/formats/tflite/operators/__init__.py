"""Importers by family; importing this package fills `OPERATORS`."""

from cgraph.formats.tflite.operators import conv, index, linear, pointwise, quantise, reduce, resize, shape

__all__ = ["conv", "index", "linear", "pointwise", "quantise", "reduce", "resize", "shape"]
