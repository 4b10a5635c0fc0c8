"""Where a convolution may write its result over its residual."""

import itertools

import numpy as np
import pytest

import cgraph as cg
from cgraph.kernels.conv.calls import conv_overwrites_residual
from cgraph.kernels.target import host_target
from cgraph.kernels.views.conv_shape import ConvShape
from cgraph.kernels.views.window import Window
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.form import NO_HALO
from tests.support.tolerance import assert_near

SIZES = list(itertools.product((1, 2, 3, 6, 8, 14), (1, 5, 6, 7, 9, 13, 14, 15, 17, 24, 28, 29, 35)))


def shape_of(rows: int, columns: int) -> ConvShape:
    return ConvShape(16, rows, columns, 16, host_target(), Window((1, 1)))


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_points_on_images_with_a_halo_overwrite_only_rows_that_come_out_even(rows, columns):
    """Rows do not follow one another there; a tile at the end of a row begins over pixels that are written."""
    shape = shape_of(rows, columns)
    assert conv_overwrites_residual(shape, True) is (columns % shape.pixels(columns) == 0)
    assert conv_overwrites_residual(shape, False) is (rows * columns % shape.pixels(rows * columns) == 0)


def test_the_two_differ_for_some_sizes():
    differ = [size for size in SIZES if conv_overwrites_residual(shape_of(*size), False)]
    assert any(not conv_overwrites_residual(shape_of(*size), True) for size in differ)


def test_points_between_padded_convolutions_add_a_residual_that_lies_in_a_halo():
    """Values of sizes for which only whole images come out even."""
    differ = [
        size
        for size in SIZES
        if conv_overwrites_residual(shape_of(*size), False) and not conv_overwrites_residual(shape_of(*size), True)
    ]
    rng = np.random.default_rng(0)
    wide, point = (cg.Const(rng.normal(0, 0.1, (16, 16, k, k)).astype("f4")) for k in (3, 1))
    for rows, columns in differ[:3]:
        x = cg.Var((1, 16, rows, columns), name="x")
        y = cg.conv2d(x, wide, 1, 1)
        z = cg.conv2d(cg.relu(cg.conv2d(y, point, 1, 0) + y), wide, 1, 1)
        value = rng.normal(size=x.shape).astype("f4")
        got, want = (cg.compile(z, [x], engine=engine)(value) for engine in ("cpu", "reference"))
        assert_near(got, want, "float32 small networks")


def test_points_whose_images_alone_have_a_halo_keep_their_residual():
    """A padded convolution reads the same images; result and residual have no halo."""
    differ = [
        size
        for size in SIZES
        if conv_overwrites_residual(shape_of(*size), False) and not conv_overwrites_residual(shape_of(*size), True)
    ]
    rng = np.random.default_rng(1)
    wide, point, other = (cg.Const(rng.normal(0, 0.1, (16, 16, k, k)).astype("f4")) for k in (3, 1, 1))
    for rows, columns in differ[:3]:
        x = cg.Var((1, 16, rows, columns), name="x")
        images = cg.relu(cg.conv2d(x, wide, 1, 1))
        outputs = [cg.conv2d(images, point, 1, 0) + cg.conv2d(x, other, 1, 0), cg.conv2d(images, wide, 1, 1)]
        function = cg.compile(outputs, [x])
        ops = [n.op for n in function.compiled.layout.steps if isinstance(n.op, BlockedConv)]
        (op,) = [op for op in ops if op.residual is not None and op.shape.window.is_point]
        assert op.source.halo != NO_HALO and op.residual.halo == op.result.halo == NO_HALO and op.overwrites == ()
        value = rng.normal(size=x.shape).astype("f4")
        for got, want in zip(function(value), cg.compile(outputs, [x], engine="reference")(value)):
            assert_near(got, want, "float32 small networks")
