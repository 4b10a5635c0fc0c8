"""Transposed convolutions as products on plain images: meaning, kernels, bands of rows, phases, refusals."""

from itertools import product

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.target import target_named
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.leaf import Var
from cgraph.ops.physical.pixel_transpose import Phases, PixelTranspose, filters_of_pixels
from tests.support.cuts import assert_bands
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_near

LEAKY = BoundedActivation(-1.0, 6.0, 0.25)
H, W = 5, 19
CASES = {  # window, stride, padding, dilation, groups, rows and columns after the last window
    "side by side": ((2, 3), (2, 3), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    "side by side, one column": ((3, 1), (3, 1), (0, 0, 0, 0), (1, 1), 2, (0, 0)),
    "overlapping, cut off": ((4, 4), (2, 2), (1, 1, 1, 1), (1, 1), 1, (0, 0)),
    "overlapping, odd": ((3, 3), (2, 2), (1, 0, 0, 1), (1, 1), 2, (1, 1)),
    "unequal strides": ((2, 4), (2, 3), (0, 1, 1, 0), (1, 1), 1, (0, 0)),
    "apart": ((2, 1), (3, 2), (0, 0, 0, 0), (1, 1), 1, (2, 1)),
    "dilated": ((3, 2), (2, 2), (1, 2, 3, 0), (2, 3), 1, (0, 0)),
    "stride of one": ((3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4, (0, 0)),
    "more cut off than a stride": ((5, 5), (2, 2), (4, 3, 3, 4), (1, 1), 1, (0, 0)),
}


def layer(case, dtype="f4", has_bias=True, activation=LEAKY, k=4, c=8):
    """The op, its operands, and the plain filters and bias."""
    rng = np.random.default_rng(6)
    window, stride, pad, dilation, groups, more = CASES[case]
    sizes = ((H, W)[i] for i in (0, 1))
    extent = [(r - 1) * d + 1 for r, d in zip(window, dilation)]
    shape = tuple((n - 1) * stride[i] + extent[i] - pad[i] - pad[2 + i] + more[i] for i, n in enumerate(sizes))
    conv = ConvTranspose(stride, pad, dilation, groups, shape)
    x = rng.normal(size=(2, c, H, W)).astype(dtype)
    filters = rng.normal(size=(c, k // groups, *window)).astype(dtype)
    bias = rng.normal(size=k).astype(dtype)
    op = PixelTranspose(conv, window, has_bias, activation)
    operands = [x, filters_of_pixels(filters, None, groups), *([bias[:, None, None]] if has_bias else [])]
    return op, operands, (filters, bias)


def spread(conv, x, filters, bias):
    """Every pixel adds its filter to the result: element by element, as the definition says."""
    c, k, *window = filters.shape
    out, size = np.zeros((len(x), k * conv.groups, *conv.shape)) + bias[:, None, None], c // conv.groups
    for i, j, r, s in np.ndindex(*x.shape[2:], *window):
        row = i * conv.stride[0] + r * conv.dilation[0] - conv.pad[0]
        column = j * conv.stride[1] + s * conv.dilation[1] - conv.pad[1]
        if 0 <= row < conv.shape[0] and 0 <= column < conv.shape[1]:
            for g in range(conv.groups):
                part = slice(g * size, (g + 1) * size)
                out[:, g * k : (g + 1) * k, row, column] += x[:, part, i, j] @ filters[part, :, r, s]
    return out


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_meaning_and_kernels_are_the_definition(case, name):
    for dtype, has_bias, activation in (("f4", True, LEAKY), ("f4", False, NONE), ("f8", True, NONE)):
        op, xs, (filters, bias) = layer(case, dtype, has_bias, activation)
        want = spread(op.conv, xs[0].astype("f8"), filters.astype("f8"), bias if has_bias else bias * 0)
        want = np.clip(np.where(want > 0, want, activation.slope * want), activation.low, activation.high)
        node = apply(op, *(Var(x.shape, x.dtype) for x in xs))
        assert node.shape == want.shape and op.name == "conv_transpose"
        for order in ("all", "reverse"):
            for got in (op.meaning(*xs), *kernel_result(node, xs, order, target=target_named(name))):
                assert_near(got, want, "convolution", 8 * 25)


@pytest.mark.parametrize("case", CASES)
def test_bands_have_the_rows_of_the_whole(case):
    op, xs, _ = layer(case)
    stride = op.conv.stride[0]
    assert op.cut(*(Spec(x.shape, x.dtype) for x in xs)).step == stride
    assert_bands(op, xs, (stride, 2 * stride), target_named(TARGETS[0]), meant=False)


@pytest.mark.parametrize("taps, stride, dilation, before", [*product((1, 2, 4, 5), (1, 2, 3), (1, 2), (0, 1, 3))])
def test_each_product_inside_the_result_belongs_to_one_phase(taps, stride, dilation, before):
    images, results = 6, 13
    axis = Phases(taps, stride, dilation, before, images, results)
    places = []
    for phase in range(stride):
        for tap, shift in axis.shifts(phase):
            first, count = axis.inside(phase, shift)
            places += [(tap, q + shift, phase + q * stride) for q in range(first, first + count)]
    every = ((tap, i, i * stride + tap * dilation - before) for tap, i in np.ndindex(taps, images))
    assert sorted(places) == sorted(place for place in every if 0 <= place[2] < results)


def test_a_scale_is_multiplied_into_the_filters_of_its_channel():
    filters = np.random.default_rng(1).normal(size=(4, 3, 2, 2)).astype("f4")
    scale = np.arange(1, 7, dtype="f4")
    scaled = filters_of_pixels(filters, scale, 2)
    assert scaled.shape == (2, 12, 2) and scaled.flags.c_contiguous
    for group, channel in np.ndindex(2, 3):
        rows = filters_of_pixels(filters, None, 2)[group, channel * 4 : channel * 4 + 4]
        np.testing.assert_array_equal(scaled[group, channel * 4 : channel * 4 + 4], rows * scale[group * 3 + channel])


def test_filters_that_do_not_fit_are_refused():
    op, xs, _ = layer("side by side")
    x, filters, bias = (Spec(v.shape, v.dtype) for v in xs)
    for wrong in ((Spec((2, 7, H, W), x.dtype), filters, bias), (x, Spec((1, 23, 8), x.dtype), bias), (x, filters)):
        with pytest.raises(ShapeError, match="do not fit"):
            op.infer(*wrong)
    assert op.multiply_adds(x, filters, bias) == x.size * 4 * 6
