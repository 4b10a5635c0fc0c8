"""Constants of products of bytes: the sum from which a tile starts takes the zero point's part away."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.kernels.conv8.calls import ByteShape, Result
from cgraph.kernels.target import target_named
from cgraph.lowering.pack_int8 import pack_product, starts
from cgraph.ops.physical.integer import IntegerMatmul, PackedIntegerMatmul, unpack_bytes

RNG = np.random.default_rng(0)
TARGET = target_named("portable")
DEPTH, COLUMNS = 5, 7


def test_a_start_is_the_bias_without_the_zero_points_part_and_0_behind_the_last_channel():
    filters = RNG.integers(-128, 128, (COLUMNS, DEPTH, 1, 1), "int8")
    bias, scale = RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32")
    shape = ByteShape(DEPTH, 1, 3, COLUMNS, TARGET)
    start, scales = starts(shape, filters, bias, 131, scale)
    assert start.dtype == np.int32 and start.shape == (shape.panels * shape.panel_channels,) == scales.shape
    assert start[:COLUMNS].tolist() == [
        int(bias[j]) - 131 * sum(int(n) for n in filters[j].reshape(-1)) for j in range(COLUMNS)
    ]
    assert not start[COLUMNS:].any() and not scales[COLUMNS:].any()
    assert scales[:COLUMNS].tolist() == scale.tolist()


@pytest.mark.parametrize("rows", [(1,), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("zero", [0, 7])
def test_a_packed_product_is_the_product(rows, zero):
    y = RNG.integers(-128, 128, (DEPTH, COLUMNS), "int8")
    constants = [y, RNG.integers(-900, 900, COLUMNS, "int32"), RNG.random(COLUMNS, "float32") / 64]
    x = cg.Var((*rows, DEPTH), "uint8", "x")
    node = apply(IntegerMatmul(zero, Result(zero=3)), x, *map(cg.Const, constants))
    packed = pack_product(node, node.operands, TARGET)
    assert isinstance(packed.op, PackedIntegerMatmul) and packed.spec == node.spec and packed.operands[0] is x
    images = RNG.integers(0, 256, x.shape, "uint8")
    panels, start, scale = (c.op.array for c in packed.operands[1:])
    assert packed.op.meaning(images, panels, start, scale).tolist() == node.op.meaning(images, *constants).tolist()
    assert unpack_bytes(packed.op.shape, panels).reshape(COLUMNS, DEPTH).T.tolist() == y.tolist()
