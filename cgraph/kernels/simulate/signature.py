"""Arithmetic that NumPy lacks; a step is the bytes from one element to the next."""

from cgraph.kernels.signature import Signature

FMA = Signature(
    "simulate.fma",
    ("dtype",),
    {"x": "dtype*", "x_step": "i8", "y": "dtype*", "y_step": "i8", "z": "dtype*", "z_step": "i8", "out": "dtype*"},
)
