"""Importers by family; importing this package fills `OPERATORS`."""

from cgraph.formats.tflite.operators import (
    boxes,
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
    volumes,
)

__all__ = [
    "boxes",
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
    "volumes",
]
