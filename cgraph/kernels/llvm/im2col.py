"""The pixels that each filter tap meets, as rows of a matrix: plain images ``[c, h, w]`` to ``[c, r, s, p, q]``."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.compile import final
from cgraph.kernels.llvm.conv import divided
from cgraph.kernels.llvm.plain import clear

ARGS = {
    # tables: per filter row (column), the first and the last result (excluded) that lies in the image there
    "row_table": "i8*", "column_table": "i8*", "x": "T*", "x_plane": "i8", "x_row": "i8", "x_column": "i8",
    "r": "i8", "s": "i8", "p": "i8", "q": "i8",
    "down": "i8", "across": "i8", "row_step": "i8", "column_step": "i8", "top": "i8", "left": "i8", "out": "T*",
}  # fmt: skip


@final
def unfold(k: Builder, dtype: str) -> None:
    """Task: one channel and tap; zeros where the tap lies outside the image. Strides in elements."""
    a = k.args(**{n: kind.replace("T", dtype) for n, kind in ARGS.items()})
    first, last = k.tasks()
    with k.loop(first, last) as task:
        rest, j = divided(task, a.s)
        channel, i = divided(rest, a.r)
        rows = [(a.row_table + i * 2).load(n) for n in (0, 1)]
        columns = [(a.column_table + j * 2).load(n) for n in (0, 1)]
        x = a.x + (channel * a.x_plane + (i * a.row_step - a.top) * a.x_row + (j * a.column_step - a.left) * a.x_column)
        out = a.out + task * a.p * a.q
        clear(k, out, rows[0] * a.q)
        with k.loop(rows[0], rows[1]) as row:
            line, source = out + row * a.q, x + row * a.down * a.x_row
            clear(k, line, columns[0])
            with k.loop(columns[0], columns[1]) as column:
                line.store(source.load(column * a.across * a.x_column), column)
            clear(k, line + columns[1], a.q - columns[1])
        clear(k, out + rows[1] * a.q, (a.p - rows[1]) * a.q)
