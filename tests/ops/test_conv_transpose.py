"""Lowered transposed convolutions: bias, activation, unequal strides and halos, bands of rows, counts and refusals."""

import numpy as np
import pytest

from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, BoundedActivation
from cgraph.kernels.conv.transpose_calls import TransposedShape, pack_transposed
from cgraph.kernels.target import target_named
from cgraph.kernels.views.window import Window
from cgraph.ops.leaf import Var
from cgraph.ops.physical.conv_transpose import BlockedConvTranspose, transposed_bias
from cgraph.ops.physical.form import Form
from tests.support.cuts import assert_bands
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tolerance import assert_near

LEAKY = BoundedActivation(-1.0, 6.0, 0.25)
UNEVEN = Window((3, 2), (2, 3), (1, 0, 2, 1), (1, 2))
C, H, W, K, GROUPS = 6, 7, 5, 10, 2


def layer(target, window=UNEVEN, activation=LEAKY, halo=(1, 2, 0, 1), more=(0, 1)):
    """A layer of 2 groups with unequal sizes everywhere, its operands, and the plain images, filters and bias."""
    rng = np.random.default_rng(4)
    shape = TransposedShape(C, H, W, K, target, window, more, GROUPS)
    source = Form(2, C, H, W, shape.lanes, "f4", shape.halo())
    result = Form(2, K, *shape.result, shape.lanes, "f4", halo)
    x = rng.normal(size=source.logical).astype("f4")
    filters = rng.normal(size=(C, K // GROUPS, *window.kernel)).astype("f4")
    bias = rng.normal(size=K).astype("f4") * 3
    op = BlockedConvTranspose(shape, source, result, activation)
    operands = [source.to_blocked(x), pack_transposed(shape, filters), transposed_bias(shape, bias)]
    return op, operands, (x, filters, bias)


def spread(shape, x, filters, bias):
    """Every pixel adds its filter to the result: element by element, as the definition says."""
    (down, across), (top, left, _, _), (dr, ds) = shape.window.stride, shape.window.pad, shape.window.dilation
    out = np.zeros((len(x), K, *shape.result)) + bias[:, None, None]
    size, outputs = C // GROUPS, K // GROUPS
    for c, i, j, r, s in np.ndindex(C, H, W, *shape.window.kernel):
        row, column, first = i * down + r * dr - top, j * across + s * ds - left, c // size * outputs
        if 0 <= row < shape.result[0] and 0 <= column < shape.result[1]:
            out[:, first : first + outputs, row, column] += x[:, c, i, j, None] * filters[c, :, r, s]
    return out


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("activation", [LEAKY, NONE], ids=["leaky", "none"])
def test_meaning_and_kernels_are_the_definition_and_the_halo_is_zero(name, activation):
    target = target_named(name)
    op, xs, plain = layer(target, activation=activation)
    want = spread(op.shape, *plain)
    want = np.clip(np.where(want > 0, want, activation.slope * want), activation.low, activation.high)
    node = apply(op, *(Var(x.shape, x.dtype) for x in xs))
    assert node.spec == op.result.spec and op.name == "conv_transpose"
    for got in (op.meaning(*xs), *kernel_result(node, xs, "reverse", target=target)):
        assert_near(op.result.plain(got), want, "convolution", C * op.shape.window.taps)
        assert np.count_nonzero(got) <= np.count_nonzero(op.result.plain(got)), "halo and unused lanes are 0"


@pytest.mark.parametrize("window", [UNEVEN, Window((4, 3), (3, 2), (2, 1, 1, 1), (2, 1))], ids=["3x2", "4x3"])
@pytest.mark.parametrize("halo", [(0, 1, 0, 2), (1, 0, 2, 1)], ids=["no rows", "rows"])
def test_bands_have_the_rows_of_the_whole(window, halo):
    target = target_named(TARGETS[0])
    op, xs, _ = layer(target, window, halo=halo)
    stride = window.stride[0]
    assert op.cut().step == stride and (op.cut().above, op.cut().below) == halo[::2]
    assert_bands(op, xs, (stride, 2 * stride), target, meant=False)


def test_a_cut_counts_the_rows_of_the_results_halo():
    op, _, _ = layer(target_named(TARGETS[0]))
    cut = op.cut()
    assert (cut.above, cut.below, cut.step) == (1, 0, 2) and cut.reads[1:] == (None, None)
    assert len(cut.reads[0][0]) == op.result.shape[2] == len(cut.reads[0][1])


def test_each_pixel_meets_each_tap_once_with_the_results_of_its_group():
    op, _, _ = layer(target_named(TARGETS[0]))
    assert op.multiply_adds() == 2 * H * W * C * (K // GROUPS) * 3 * 2


def test_images_of_another_form_are_refused():
    op, xs, _ = layer(target_named(TARGETS[0]))
    rest = [Spec(x.shape, x.dtype) for x in xs[1:]]
    with pytest.raises(ShapeError, match="ToBlocked"):
        op.infer(Spec(xs[0].shape, np.dtype("f8")), *rest)


def test_a_bias_fills_whole_vectors_and_none_is_zeros():
    shape = TransposedShape(2, 3, 3, 5, target_named(TARGETS[0]), dtype="f8")
    packed = transposed_bias(shape, np.arange(1.0, 6))
    assert packed.dtype == "f8" and len(packed) % shape.lanes == 0 and len(packed) - 5 < shape.lanes
    assert packed[:5].tolist() == [1, 2, 3, 4, 5] and not packed[5:].any()
    nothing = transposed_bias(shape, None)
    assert nothing.shape == packed.shape and not nothing.any()
