"""Resizing by tables of rows and columns, on channel-blocked images or plain views."""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.emitter import final
from cgraph.kernels.llvm.flow import divmod_of
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.windows import interpolate


@final
def nearest(k: Builder, dtype: str, is_blocked: bool) -> None:
    """``out[p, q] = x[rows[p], columns[q]]``. Task: one row of one plane of an image."""
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    a = k.args()
    first, last = k.tasks()
    with k.loop(first, last) as task:
        x, out, row = places(a, task)
        x = x + a.row_table.load(row)
        with k.loop(0, a.columns) as column:
            out.store(x.load(a.column_table.load(column), lanes), column * a.o_column)


@final
def linear(k: Builder, dtype: str, is_blocked: bool) -> None:
    """Compute weighted means of two rows and two columns. Task: one row of one plane of an image."""
    lanes = k.target.lanes_of(dtype) if is_blocked else 0
    a = k.args()
    first, last = k.tasks()
    with k.loop(first, last) as task:
        x, out, row = places(a, task)
        lines = [x + a.row_table.load(row * 2 + i) for i in (0, 1)]
        weight = a.row_weights.load(row)
        with k.loop(0, a.columns) as column:
            at = [a.column_table.load(column * 2 + i) for i in (0, 1)]
            across = a.column_weights.load(column)
            above, below = (interpolate(line.load(at[0], lanes), line.load(at[1], lanes), across) for line in lines)
            out.store(interpolate(above, below, weight), column * a.o_column)


def places(a, task: Val):
    """Return the plane that a task reads, the row of the result that it writes, and the row's number."""
    plane, row = divmod_of(task, a.rows)
    image, channel = divmod_of(plane, a.planes)
    x = a.x + (image * a.x_image + channel * a.x_plane)
    return x, a.out + (image * a.o_image + channel * a.o_plane + row * a.o_row), row
