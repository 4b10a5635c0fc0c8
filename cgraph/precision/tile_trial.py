"""``python -m cgraph.precision.tile_trial``: compare tile registers with their emulation, bit for bit.

The exit status is 0 if all results are equal. An illegal instruction ends the process, as it would end a user's.
"""

import sys
from collections.abc import Iterator

import numpy as np

from cgraph.engine.cpu.engine import CpuEngine
from cgraph.ir.graph import Node, apply
from cgraph.kernels.conv8.calls import Result
from cgraph.kernels.isa.records import Target
from cgraph.kernels.target import target_named
from cgraph.lowering.rounded_layers import RoundedLayers
from cgraph.ops.activation import relu
from cgraph.ops.attention import scaled_dot_product_attention
from cgraph.ops.conv import Conv2d, conv2d, conv_transpose2d
from cgraph.ops.leaf import Var, constant
from cgraph.ops.linear import matmul
from cgraph.ops.physical.integer import IntegerConv, IntegerMatmul
from cgraph.planning.options import CompileOptions, Request
from cgraph.record import replace
from cgraph.running.runner import Runner


class EmulatedTilesEngine(CpuEngine):
    """The CPU engine on a target with tile registers that kernels emulate, with the same bits."""

    @property
    def kernel_target(self) -> Target:
        return replace(target_named(self.target), tiles="emulated", bf16="")


def cases() -> Iterator[tuple[Node, Var, np.ndarray]]:
    """Yield small graphs, their input and its value: products, convolutions and attention, floats and bytes.

    The transposed convolution has pixels that meet no tap of its filters.
    """
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype("f4")

    def weights(*shape: int) -> tuple[Node, Node, Node]:
        """Return filters of bytes, int32 biases and factors of sums."""
        k, bias = shape[-1] if len(shape) == 2 else shape[0], (-900, 900)
        filters = rng.integers(-128, 128, shape, "int8")
        return constant(filters), constant(rng.integers(*bias, k, "int32")), constant(rng.random(k, "f4") / 512)

    x = Var((37, 70), name="x")
    yield relu(matmul(x, constant(floats(70, 45)))) + constant(floats(45)), x, floats(37, 70)
    x = Var((2, 3, 18, 17), name="x")
    first = relu(conv2d(x, constant(floats(40, 3, 7, 7)), 2, 3))
    again = relu(conv2d(first, constant(floats(40, 40, 3, 3)), 1, 1) + first)
    yield conv2d(again, constant(floats(33, 40, 1, 1)), 2, 0), x, floats(2, 3, 18, 17)
    x = Var((48, 48, 4, 3), name="x")
    yield conv_transpose2d(x, x, (5, 2), 1), x, floats(48, 48, 4, 3)  # its own filters, packed in each run
    x = Var((1, 2, 40, 32), name="x")
    yield scaled_dot_product_attention(x, x * 2, x + 1), x, floats(1, 2, 40, 32)
    x = Var((37, 130), "uint8", "x")
    yield apply(IntegerMatmul(3, Result(zero=9)), x, *weights(130, 45)), x, rng.integers(0, 256, (37, 130), "uint8")
    x = Var((1, 70, 9, 8), "uint8", "x")
    op = IntegerConv(Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 1), 7, Result(zero=100))
    yield apply(op, x, *weights(40, 70, 3, 3)), x, rng.integers(0, 256, (1, 70, 9, 8), "uint8")


def result(engine: CpuEngine, y: Node, x: Var, value: np.ndarray) -> bytes:
    """Return the bytes of `y` for a value of its input, as an engine computes them."""
    options = CompileOptions(precision=RoundedLayers())
    request = Request((y,), (x,), {})
    request = request.of(engine.lower(request.roots, options))
    compiled = engine.plan(request, options)
    program = engine.program(engine.code(request, compiled))
    return Runner(program, [x], (), (), compiled.outputs, True, None)(value).tobytes()


def differences(tiles: CpuEngine, emulated: CpuEngine) -> int:
    """Return the number of graphs whose results differ in a bit."""
    return sum(result(tiles, *case) != result(emulated, *case) for case in cases())


if __name__ == "__main__":
    sys.exit(differences(CpuEngine(threads=1, tiles=True), EmulatedTilesEngine(threads=1)))
