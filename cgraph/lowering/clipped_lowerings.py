"""Which convolutions leave out taps that meet padding, and the halo that they read."""

import numpy as np

from cgraph.ir.graph import Node
from cgraph.kernels.conv.clipped import clipped_time, halo_read
from cgraph.kernels.conv.lanes_rule import gains_by_lanes
from cgraph.kernels.mapped import is_finite
from cgraph.kernels.target import Target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.winograd.rule import winograd_rule
from cgraph.lowering.image_builder import ImageBuilder
from cgraph.ops.physical.conv_layer import epilogue_halo, is_transposed, layer_of
from cgraph.ops.physical.form import NO_HALO, Form, Halo
from cgraph.ops.physical.frames import FramesConv
from cgraph.passes.fold_constants import stored_array
from cgraph.record import replace


def is_clipped(shape: ConvShape, weights: np.ndarray) -> bool:
    """Return True for a direct convolution that is faster cut, and whose products with padding are 0."""
    return clipped_time(shape) < 1 and is_finite(weights)


def leaves_out_padding(node: Node, target: Target) -> bool:
    """Return True for a ConvEpilogue that is cut. It is not rounded, since that gains less."""
    weights = stored_array(node.operands[1])
    if is_transposed(node) or target.tiles or weights is None or weights.dtype != node.dtype:
        return False
    if isinstance(node.op.conv, FramesConv) or epilogue_halo(node, target) == NO_HALO:  # type: ignore[attr-defined]
        return False
    shape = layer_of(node, target)
    return is_clipped(shape, weights) and not gains_by_lanes(shape) and not winograd_rule(shape, node.shape[0], weights)


def layer_halo(node: Node, target: Target) -> Halo:
    """Return the halo that a ConvEpilogue reads around its images.

    One that leaves out taps in the padding reads none: images with a halo as wide as the dilation take many times the
    bytes.
    """
    if not leaves_out_padding(node, target):
        return epilogue_halo(node, target)
    return halo_read(replace(layer_of(node, target), is_clipped=True))


def source_form(b: ImageBuilder, x: Node, shape: ConvShape) -> Form:
    """Return the form in which a layer reads `x`: its own, unless that has a narrower halo than the layer reads."""
    needed = halo_read(shape)
    form = b.form_of(x, needed)
    halo = tuple(max(sides) for sides in zip(form.halo, needed))
    return replace(form, halo=halo)
