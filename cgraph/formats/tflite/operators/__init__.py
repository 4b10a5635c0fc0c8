"""Importers by family; importing this package fills `OPERATORS`."""

from cgraph.formats.tflite.operators import control, conv, index, linear, pointwise, quantise, reduce, resize, shape

__all__ = ["control", "conv", "index", "linear", "pointwise", "quantise", "reduce", "resize", "shape"]
