"""Transposed convolutions on tiles: the meaning's values, the same bits in bands and for fewer images."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.dtypes.convert import convert
from cgraph.dtypes.storage import BFLOAT16
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.conv.transpose_calls import TransposedShape
from cgraph.kernels.target import target_named
from cgraph.kernels.tile_conv.transposed_calls import TileTransposed, pack_tile_transposed
from cgraph.kernels.views.window import Window
from cgraph.ops.conv import ConvTranspose
from cgraph.ops.physical.form import Form
from cgraph.ops.physical.tile_conv import pack_tile_bias
from cgraph.ops.physical.tile_transposed import TileConvTranspose
from tests.support.cuts import assert_bands
from tests.support.emulated import emulate_tiles
from tests.support.kernels import TARGETS
from tests.support.ops import kernel_result
from tests.support.tiles import bfloat16_bits

RNG = np.random.default_rng(5)
WINDOWS = {
    "halved": (Window((3, 3), (2, 2), (1, 1, 1, 1)), (1, 1)),
    "one stride": (Window((3, 3), pad=(1, 1, 1, 1)), (0, 0)),
    "points": (Window((1, 1), (2, 2)), (1, 0)),
    "uneven": (Window((4, 2), (2, 3), (3, 0, 0, 1), (1, 2)), (0, 1)),
}
every_target = pytest.mark.parametrize("target", [emulate_tiles(target_named(name)) for name in TARGETS], ids=TARGETS)


def layer(target, window, more, activation=NONE):
    """An op, its operands, and what it means by the logical op; whole numbers, whose sums are exact."""
    shape = TransposedShape(40, 6, 5, 24, target, window, more)
    source = Form(2, 40, 6, 5, 32, BFLOAT16.code, shape.halo())
    result = Form(2, 24, *shape.result, shape.lanes, "f4", (1, 0, 1, 2))
    x, f, bias = (RNG.integers(-4, 5, size).astype("f4") for size in (source.logical, (40, 24, *window.kernel), 24))
    images = source.to_blocked(convert(x, BFLOAT16.dtype))
    packed = pack_tile_transposed(TileTransposed(shape), bfloat16_bits(f))
    conv = ConvTranspose(window.stride, window.pad, window.dilation, 1, shape.result)
    want = conv.meaning(x, f) + bias[:, None, None]
    op = TileConvTranspose(shape, source, result, activation)
    return op, [images, packed, pack_tile_bias(shape, bias)], result.to_blocked(np.maximum(want, activation.low))


@every_target
@pytest.mark.parametrize("activation", [NONE, RELU], ids=str)
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_meaning_and_kernels_have_the_logical_ops_values(window, activation, target):
    op, xs, want = layer(target, *window, activation)
    node = apply(op, *(cg.Var(x.shape, x.dtype) for x in xs))
    np.testing.assert_array_equal(op.meaning(*xs), want)
    for order in ("all", "reverse"):
        np.testing.assert_array_equal(kernel_result(node, xs, order, target=target)[0], want)
    assert node.spec == op.result.spec and op.name == "conv_transpose" and op.work(target).nbytes == 0


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_bands_and_fewer_images_have_the_same_bits(window):
    target = emulate_tiles(target_named("host"))
    op, xs, want = layer(target, *window)
    assert_bands(op, xs, (2, 6), target)
    first = op.row_rule(*(Spec(x.shape, x.dtype) for x in xs)).first(1)
    few = [xs[0][:1], *xs[1:]]
    node = apply(first, *(cg.Var(x.shape, x.dtype) for x in few))
    np.testing.assert_array_equal(kernel_result(node, few, "all", target=target)[0], want[:1])


def test_other_forms_are_refused():
    op, xs, _ = layer(emulate_tiles(target_named("host")), *WINDOWS["halved"])
    with pytest.raises(ShapeError, match="is not of the form"):
        apply(op, *(cg.Var(x.shape, x.dtype) for x in (xs[0][:, :1], *xs[1:])))
