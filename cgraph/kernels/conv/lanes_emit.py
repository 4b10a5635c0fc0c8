"""Convolution of channel-blocked images to few channels.

A tile of `cgraph.kernels.conv` has result channels in its lanes, of which three channels leave most empty. Here lanes
are input channels: a step multiplies a block of channels of one pixel by as many weights of each filter, and the lanes
of each sum are added at the end. All lanes multiply, whatever the number of results.
"""

from types import SimpleNamespace

from cgraph.kernels.expression import Program
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.epilogue import ActivationEmitter
from cgraph.kernels.llvm.flow import change_if, divmod_of, fold, shuffle
from cgraph.kernels.llvm.row_totals import join_rows
from cgraph.kernels.llvm.values import Ptr, Val


@final
def tile(k: Builder, dtype: str, pixels: int, channels: int, x_step: int, out_step: int, program: Program) -> None:
    """``out[q, j] = activation(bias[j] + residual[q, j] + sum over steps, lanes of x[q, step] * w[step, j])``

    Task: one tile of `pixels` neighbouring pixels of a row of one image, for all `channels` results. The last tile of a
    row ends with the row and repeats pixels of its neighbour. Unused lanes of the result are ``activation(0)``.
    """
    a, lanes = k.args(), k.target.lanes_of(dtype)
    with k.task_loop() as task:
        image, t = divmod_of(task, a.tiles)
        row, column = divmod_of(t, a.across)
        column = k.smaller(column * pixels, a.columns - pixels)
        x = a.x + (image * a.x_image + row * a.x_row + column * x_step)
        sums = reduce_steps(k, a, x, (pixels, channels), x_step)
        bias = a.bias.load(0, lanes)
        rows = [bias + total(k, sums[q * channels : (q + 1) * channels]) for q in range(pixels)]
        residual = k.pointer(a.residual, dtype) + (image * a.r_image + row * a.r_row + column * out_step)
        with change_if(k, a.residual != 0, rows) as s:
            s.next = [y + residual.load(q * out_step, lanes) for q, y in enumerate(rows)]
        out = a.out + (image * a.o_image + row * a.o_row + column * out_step)
        ActivationEmitter(k, dtype, lanes, program).store(s.values, lambda q, y: out.store(y, q * out_step))


def reduce_steps(k: Builder, a: SimpleNamespace, x: Ptr, tile: tuple[int, int], x_step: int) -> list[Val]:
    """Return the sums of one tile, by pixel, then channel, each with a lane for each input channel of a block."""
    pixels, channels = tile
    lanes = k.target.lanes_of(x.dtype)
    with fold(k, 0, a.steps, [a.w, *[k.const(0.0, x.dtype, lanes)] * (pixels * channels)]) as s:
        w, *sums = s.values
        at = x + a.offsets.load(s.i)
        weights = [w.load(j * lanes, lanes) for j in range(channels)]
        for q in range(pixels):
            block = at.load(q * x_step, lanes)
            for j, weight in enumerate(weights):
                sums[q * channels + j] = k.fma(block, weight, sums[q * channels + j])
        s.next = [w + channels * lanes, *sums]
    return s.values[1:]


def total(k: Builder, sums: list[Val]) -> Val:
    """Return the sum of the lanes of each vector in as many lanes; the others are 0."""
    lanes, zero = sums[0].lanes, k.const(0.0, sums[0].dtype, sums[0].lanes)
    count = 1 << (len(sums) - 1).bit_length()
    (row,), places = join_rows(k, [[x] for x in (*sums, *[zero] * (count - len(sums)))], lambda x, y: [x[0] + y[0]])
    return shuffle(k, row, k.const(0.0, row.dtype, count), [*places, *[count] * (lanes - count)])
