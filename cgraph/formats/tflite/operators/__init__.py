"""Importers by family; importing this package fills `OPERATORS`."""

from cgraph.formats.tflite.operators import (
    control,
    conv,
    custom,
    fourier,
    index,
    linear,
    pointwise,
    quantise,
    recurrent,
    reduce,
    resize,
    shape,
    sparse,
    state,
)

__all__ = [
    "control",
    "conv",
    "custom",
    "fourier",
    "index",
    "linear",
    "pointwise",
    "quantise",
    "recurrent",
    "reduce",
    "resize",
    "shape",
    "sparse",
    "state",
]
