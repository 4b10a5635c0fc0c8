"""Depthwise convolutions of plain images: meaning, kernels, bands of rows, refusals."""

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from cgraph.ops.leaf import Var
from cgraph.ops.physical.plain_depthwise import PlainDepthwise
from tests.support.cuts import assert_bands
from tests.support.kernels import ORDERS, TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_near

LEAKY = BoundedActivation(-1.0, 6.0, 0.25)
CASES = {  # rows and columns of the images, window
    "3x3": (9, 45, Window((3, 3), pad=(1, 1, 1, 1))),
    "3x3, stride 2": (9, 83, Window((3, 3), (2, 2), (1, 1, 1, 1))),
    "2x4, other strides": (8, 70, Window((2, 4), (1, 3), (1, 0, 0, 2))),
    "stride 5": (6, 61, Window((3, 3), (2, 5), (0, 2, 1, 1))),
    "dilated": (11, 40, Window((3, 2), (1, 1), (4, 3, 2, 1), (2, 3))),
    "few columns": (7, 3, Window((3, 3), pad=(1, 1, 1, 1))),
    "no column with all taps": (6, 4, Window((1, 7), pad=(0, 3, 0, 3))),
    "rows and columns that meet no tap": (3, 5, Window((2, 2), (1, 1), (3, 2, 2, 3))),
    "11x11": (13, 37, Window((11, 11), pad=(5, 5, 5, 5))),
}


def layer(case, dtype="f4", activation=LEAKY):
    rng, (h, w, window) = np.random.default_rng(8), CASES[case]
    x = rng.normal(size=(2, 3, h, w)).astype(dtype)
    filters, bias = rng.normal(size=(3, 1, *window.kernel)).astype(dtype), rng.normal(size=3).astype(dtype)
    return PlainDepthwise(window, activation), [x, filters, bias]


def correlate(window, x, filters, bias):
    """Each window of the padded images times the filter of its channel."""
    top, left, bottom, right = window.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    out = np.zeros((*x.shape[:2], *window.result(*x.shape[2:]))) + bias[:, None, None]
    for i, j in np.ndindex(out.shape[2:]):
        rows = slice(i * window.stride[0], i * window.stride[0] + window.extent[0], window.dilation[0])
        columns = slice(j * window.stride[1], j * window.stride[1] + window.extent[1], window.dilation[1])
        out[:, :, i, j] += (padded[:, :, rows, columns] * filters[:, 0]).sum((2, 3))
    return out


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_meaning_and_kernels_are_the_definition(case, name):
    for dtype, activation in (("f4", LEAKY), ("f4", NONE), ("f8", LEAKY)):
        op, xs = layer(case, dtype, activation)
        want = correlate(op.window, *(x.astype("f8") for x in xs))
        want = np.clip(np.where(want > 0, want, activation.slope * want), activation.low, activation.high)
        node = apply(op, *(Var(x.shape, x.dtype) for x in xs))
        assert node.shape == want.shape and op.name == "depthwise"
        results = [kernel_result(node, xs, order, target=target_named(name))[0] for order in ORDERS]
        for got in (op.meaning(*xs), *results):
            assert_near(got, want, "convolution", op.window.taps)
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("case", CASES)
def test_bands_have_the_rows_of_the_whole(case):
    op, xs = layer(case)
    assert_bands(op, xs, (1, 2, 5), target_named(TARGETS[0]), meant=False)


def test_filters_that_do_not_fit_are_refused():
    op, xs = layer("3x3")
    x, filters, bias = (Spec(v.shape, v.dtype) for v in xs)
    for wrong in (
        (filters, Spec((4,), bias.dtype)),
        (Spec((3, 1, 3, 2), filters.dtype), bias),
        (Spec((2, 1, 3, 3), x.dtype), bias),
    ):
        with pytest.raises(ShapeError, match="do not fit"):
            op.infer(x, *wrong)
    assert op.multiply_adds(x, filters, bias) == x.size * 9
