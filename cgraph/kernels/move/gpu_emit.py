"""Transposes in blocks of threads: both sides are accessed along memory, through a tile in shared memory."""

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.move.gpu_signature import ROWS, SIDE, THREADS
from cgraph.kernels.team.gpu_emit import offsets

WIDTH = SIDE + 1  # items of a row in shared memory, so that items of a column lie in different banks


@block(THREADS)
def transposed(k: GpuBuilder, itemsize: int, rank: int) -> None:
    a, dtype = k.args(), f"u{itemsize}"
    place, i, j = k.block_digits(a.tiles_i, a.tiles_j)
    i, j = i * SIDE, j * SIDE
    to, source = (at + o for at, o in zip((a.out, a.x), offsets(k, a.axes, rank, 2, place)))
    lane, row = k.thread() % SIDE, k.thread() // SIDE
    room = k.shared(dtype, SIDE * WIDTH)
    for down in range(0, SIDE, ROWS):
        with k.if_((i + row + down < a.ni) & (j + lane < a.nj)):
            item = k.pointer(source + (i + row + down) * a.x_i, dtype).load(j + lane)
            room.store(item, (row + down) * WIDTH + lane)
    k.barrier()
    for down in range(0, SIDE, ROWS):
        with k.if_((j + row + down < a.nj) & (i + lane < a.ni)):
            item = room.load(lane * WIDTH + row + down)
            k.pointer(to + (j + row + down) * a.out_j, dtype).store(item, i + lane)
