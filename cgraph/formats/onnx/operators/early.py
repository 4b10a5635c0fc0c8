"""Importers of operators of the first ONNX files, which converters from Core ML wrote and onnxruntime still runs."""

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.dynamic_ops.operators import elementwise, samples
from cgraph.ir.graph import Node


@operator("Affine", "ParametricSoftplus", "ScaledTanh")
@elementwise
def function_of_two_numbers(c: Context) -> Node:
    """Import alpha * f(beta * x) for softplus or tanh, and alpha * x + beta for Affine."""
    if c.kind == "Affine":
        return c[0] * c.attribute("alpha", 1.0) + c.attribute("beta", 0.0)
    inner = c[0] * c.required("beta")
    return (cg.tanh(inner) if c.kind == "ScaledTanh" else cg.softplus(inner)) * c.required("alpha")


@operator("Scale")
@elementwise
def scale(c: Context) -> Node:
    return c[0] * c.attribute("scale", 1.0)


@operator("ImageScaler")
@samples(0)
def image_scaler(c: Context) -> Node:
    """Import ImageScaler: the image ``[n, c, h, w]`` times a scale, plus a bias of each channel."""
    x, bias = c[0], np.asarray(c.required("bias"), "float32")
    if x.ndim != 4 or bias.shape != x.shape[1:2]:
        raise FormatError(f"{bias.size} biases do not fit an image {list(x.shape)}. Give one for each channel")
    return x * c.attribute("scale", 1.0) + bias[:, None, None].astype(x.dtype)


@operator("Crop")
@samples(0)
def crop(c: Context) -> Node:
    """Import Crop: the image without a border ``[left, top, right, bottom]``, or `scale` pixels from its corner."""
    x, border, size = c[0], c.required("border"), c.attribute("scale") or []
    if x.ndim != 4 or len(border) != 4 or len(size) not in (0, 2) or min(border) < 0:
        raise FormatError(f"the border {border} of an image {list(x.shape)} is not supported. Give 4 numbers from 0 on")
    left, top, right, bottom = border
    last = (top + size[0], left + size[1]) if size else (x.shape[2] - bottom, x.shape[3] - right)
    if not (top < last[0] <= x.shape[2] and left < last[1] <= x.shape[3]):
        raise FormatError(f"the border {border} leaves no pixel of an image {list(x.shape)}, or more than it has")
    return x[:, :, top : last[0], left : last[1]]
