"""Lookup of bytes in a table of 256."""

from collections.abc import Sequence

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.instructions import call_instruction
from cgraph.kernels.llvm.values import Val

WIDE = 64  # bytes of the vectors that the machine picks from


@final
def look_up(k: Builder, near: bool) -> None:
    """Compute ``out = table[x]``. Task: one block of a row."""
    a = k.args()
    parts = [a.table.load(i * WIDE, WIDE) for i in range(4)] if near and k.target.selects_bytes else []
    with k.task_loop() as task:
        row, block = divmod_of(task, a.blocks)
        x, out = a.x + row * a.x_row, a.out + row * a.o_row
        start = block * a.block
        stop = k.smaller(start + a.block, a.columns)
        if parts:
            whole = stop - (stop - start) % WIDE
            with k.loop(start, whole, WIDE) as i:
                (out + i).store(pick(k, parts, (x + i).load(lanes=WIDE)))
            start = whole
        with k.loop(start, stop) as i:
            byte = (x + i * a.x_step).load()
            (out + i * a.o_step).store((a.table + k.cast(byte, "i8")).load())


def pick(k: Builder, parts: Sequence[Val], x: Val) -> Val:
    """Look up bytes of a table in four vectors: seven bits of `x` select among two of them."""
    low, high = (call_instruction(k, "select bytes", WIDE, parts[i], x, parts[i + 1]) for i in (0, 2))
    return k.select(x < 128, low, high)
