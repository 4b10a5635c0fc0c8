"""Rows of a matrix of bytes as the pixels of an image in lanes."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.compile import final
from cgraph.kernels.llvm.flow import first_lanes, masked_load


@final
def rows(k: Builder) -> None:
    """The columns, 0 beyond them. Task: one row."""
    a = k.args()
    lanes = k.target.lanes
    first, last = k.tasks()
    with k.loop(first, last) as row, k.loop(0, a.blocks) as block:
        column = block * lanes
        value = masked_load(k, a.x + (row * a.x_row + column), first_lanes(k, a.k - column, lanes))
        (a.out + (block * a.o_plane + row * lanes)).store(value)
