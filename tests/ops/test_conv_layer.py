"""Geometry of convolution nodes: unequal axes, groups, the halo that is read, and which layers stay plain."""

from itertools import product

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.target import host_target
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import Conv2d, ConvFilters, ConvTranspose
from cgraph.ops.physical.conv import ConvEpilogue
from cgraph.ops.physical.conv_layer import (
    LEAST_FILTERS,
    PLAIN_CHANNELS,
    epilogue_halo,
    filter_grad_halo,
    gradient_layer_of,
    is_filter_grad,
    is_transposed,
    layer_of,
    reads_plain,
    takes_pairs,
    transposed_of,
    window_of,
)
from cgraph.ops.physical.frames import Depth, FramesConv

TARGET = host_target()
MOVES = (2, 3), (1, 2, 3, 0), (2, 1)  # stride, pad (top, left, bottom, right), dilation


def layer(c=8, k=6, groups=1, dtype="float32"):
    x, f = cg.Var((2, c, 11, 13), dtype), cg.Var((k, c // groups, 3, 4), dtype)
    return apply(ConvEpilogue(Conv2d(*MOVES, groups)), x, f)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", [1, 3, 8, 16, 17, 32, 33])
def test_frames_that_are_convolved_together_have_whole_blocks_of_channels_each(c, dtype):
    """Plain ones lie behind one another without any unused channel."""
    conv = FramesConv((2, 3), (1, 2, 3, 0), (2, 1), 1, Depth(2, 3, 2))
    node = apply(ConvEpilogue(conv), cg.Var((10, c, 11, 13), dtype), cg.Var((6, c, 3, 3, 4), dtype))
    block = TARGET.channels_of("f4" if dtype == "float32" else "f8")
    assert layer_of(node, TARGET).c == 3 * -(-c // block) * block and layer_of(node, TARGET, True).c == 3 * c
    assert (layer_of(node, TARGET).k, window_of(node)) == (6, layer_of(layer(dtype=dtype), TARGET).window)


def transposed(more=(0, 0)):
    x, f = cg.Var((2, 8, 5, 6)), cg.Var((8, 6, 3, 4))
    plain = cg.conv_transpose2d(x, f, (2, 3), (1, 0), 1, 1, more)
    return apply(ConvEpilogue(plain.op), x, f)


def test_a_layer_has_the_sizes_of_its_operands_and_each_axis_its_own_moves():
    node = layer()
    shape = layer_of(node, TARGET)
    assert (shape.c, shape.h, shape.w, shape.k, shape.groups, shape.is_plain, shape.dtype) == (
        8,
        11,
        13,
        6,
        1,
        False,
        "f4",
    )
    assert window_of(node) == shape.window == Window((3, 4), (2, 3), (1, 2, 3, 0), (2, 1))
    assert shape.result == node.shape[2:]
    assert layer_of(node, TARGET, True).is_plain and layer_of(layer(8, 6, 2), TARGET).groups == 2
    assert layer_of(layer(dtype="float64"), TARGET).dtype == "f8"


def test_the_halo_is_what_windows_read_beyond_the_image():
    node = layer()
    rows, columns = node.shape[2:]
    bottom = (rows - 1) * 2 + 5 - 1 - 11
    right = (columns - 1) * 3 + 4 - 2 - 13
    assert epilogue_halo(node, TARGET) == (1, 2, max(bottom, 0), max(right, 0))


def test_a_transposed_layer_has_more_rows_or_columns_at_the_end():
    for more in ((0, 0), (1, 0), (0, 2)):
        node = transposed(more)
        shape = transposed_of(node, TARGET)
        assert shape.more == more and (shape.c, shape.k, shape.h, shape.w) == (8, 6, 5, 6)
        assert shape.result == node.shape[2:]
        assert epilogue_halo(node, TARGET) == shape.halo()
    assert is_transposed(transposed()) and not is_transposed(layer())
    assert isinstance(transposed().op.conv, ConvTranspose)


GEOMETRIES = [
    (size, kernel, stride, before, after, dilation)
    for size, kernel, stride, before, after, dilation in product(
        range(1, 4), range(1, 4), range(1, 4), range(3), range(3), (1, 2)
    )
    if size + before + after > (kernel - 1) * dilation
]


def test_the_adjoint_of_any_convolution_has_its_images_shape():
    """Also where all windows lie in the padding, so that the padding crops more than the result has."""
    for size, kernel, stride, before, after, dilation in GEOMETRIES:
        x, f = cg.Var((1, 2, size, 3)), cg.Var((2, 2, kernel, 2))
        moves = (stride, 1), (before, 0, after, 0), (dilation, 1)
        y = apply(Conv2d(*moves, 1), x, f)
        node = apply(ConvEpilogue(ConvTranspose(*moves, 1, x.shape[2:])), y, f)
        assert transposed_of(node, TARGET).result == x.shape[2:], (size, kernel, stride, before, after, dilation)


def filter_gradient(c=8, k=6, groups=1, dtype="float32", n=2):
    x, f = cg.Var((n, c, 11, 13), dtype), cg.Var((k, c // groups, 3, 4), dtype)
    g = cg.Var((n, *cg.conv2d(x, f, *MOVES, groups).shape[1:]), dtype)
    return apply(ConvFilters(*MOVES, groups, (3, 4)), x, g)


def test_a_filter_gradient_has_the_geometry_of_its_convolution():
    node = filter_gradient()
    shape = gradient_layer_of(node, TARGET, False)
    assert (shape.c, shape.h, shape.w, shape.k) == (8, 11, 13, 6)
    assert shape.window == Window((3, 4), (2, 3), (1, 2, 3, 0), (2, 1))
    assert filter_grad_halo(node, TARGET) == epilogue_halo(layer(), TARGET)
    assert gradient_layer_of(node, TARGET, True).is_plain


def test_only_gradients_of_enough_filters_and_of_one_group_are_blocked():
    assert is_filter_grad(filter_gradient()) and is_filter_grad(filter_gradient(k=LEAST_FILTERS))
    assert not is_filter_grad(filter_gradient(k=LEAST_FILTERS - 1))
    assert not is_filter_grad(filter_gradient(8, 8, 2)) and not is_filter_grad(filter_gradient(n=0))
    assert not is_filter_grad(filter_gradient(dtype="int32")) and not is_filter_grad(layer())


def test_few_channels_of_one_group_stay_plain():
    assert reads_plain(layer(PLAIN_CHANNELS)) and not reads_plain(layer(PLAIN_CHANNELS + 1))
    assert not reads_plain(layer(4, 6, 2)) and not reads_plain(transposed())


@pytest.mark.parametrize("c, k, groups, dtype, is_plain, want", [
    (8, 6, 1, "float32", False, True), (8, 6, 1, "float64", False, False), (4, 6, 1, "float32", True, False),
    (8, 8, 8, "float32", False, False),
])  # fmt: skip
def test_pairs_are_of_blocked_floats_across_channels(c, k, groups, dtype, is_plain, want):
    assert takes_pairs(layer_of(layer(c, k, groups, dtype), TARGET, is_plain)) == want
    assert np.dtype(dtype) == layer(c, k, groups, dtype).dtype
